"""Run a recurrent net in a preallocated buffer: row t + 1 from row t."""

START = [[0.5, -0.3], [0.8, 0.2]]


def program(mg, x):
    states = mg.zeros((6, 2), dtype=mg.float64)
    states[0] = 1.0
    for t in range(5):
        states[t + 1] = mg.tanh(x @ states[t])
    return states.sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
