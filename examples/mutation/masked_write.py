"""Assign under a mask: each entry's gradient follows the branch it took."""

START = [-2.0, -0.5, 0.5, 1.0, 2.0]


def program(mg, x):
    y = x * 1.5
    cold = y < 0.0
    y[cold] = mg.exp(y[cold]) - 1.0
    y[y > 2.0] = 2.0
    return (y * y).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
