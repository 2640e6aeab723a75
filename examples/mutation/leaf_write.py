"""Write into a leaf: what was overwritten had no influence on the loss."""

START = [1.0, 2.0, 3.0]


def program(mg, x):
    x[0] = 5.0
    return (x * x).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
