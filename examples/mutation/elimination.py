"""Eliminate in place for a log-determinant: pivots rewrite the rows below."""

START = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]


def program(mg, x):
    a = x * 1.0
    for i in range(len(a) - 1):
        a[i + 1 :] -= mg.outer(a[i + 1 :, i] / a[i, i], a[i])
    return mg.log(mg.diagonal(a)).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
