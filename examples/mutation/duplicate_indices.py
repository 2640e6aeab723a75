"""Write twice to one slot: the last stays, and alone earns a gradient."""

START = [1.0, 2.0, 3.0, 4.0, 5.0]


def program(mg, x):
    slots = [0, 2, 0, 1, 2]
    table = mg.zeros(3, dtype=mg.float64)
    table[slots] = x * x
    return (table * table).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
