"""Overwrite a value that two derivatives still need: exp's and a product's."""

START = [0.0, 0.5, 1.0]


def program(mg, x):
    y = mg.exp(x)
    squares = y * y
    y[:2] = 0.0
    return (y + squares).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
