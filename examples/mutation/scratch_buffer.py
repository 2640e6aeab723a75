"""Reuse a scratch buffer for every row: each needs what it held then."""

START = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def program(mg, x):
    scratch = mg.empty(2, dtype=mg.float64)
    loss = 0.0
    for row in x:
        scratch[:] = row * row
        scratch += 1.0
        loss = loss + (scratch * row).sum()
    return loss


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
