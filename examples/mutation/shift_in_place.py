"""Shift in place: a statement reads what overlaps before it writes it."""

START = [1.0, 2.0, 3.0, 4.0]


def program(mg, x):
    y = x * x
    y[1:] = y[:-1] * 2.0
    y[1:] -= y[:-1]
    return (y * x).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
