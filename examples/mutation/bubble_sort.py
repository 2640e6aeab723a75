"""Sort a parameter by swapping in place: gradients go back with the swaps."""

START = [3.0, 1.0, 4.0, 2.0]


def program(mg, x):
    for end in range(len(x) - 1, 0, -1):
        for i in range(end):
            if x[i] > x[i + 1]:
                x[[i, i + 1]] = x[[i + 1, i]]
    return (x[1:] * x[:-1]).sum() + x[0] ** 3


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
