"""Attend over a cache of keys and values that each step writes in place."""

START = [[0.5, -0.2], [0.1, 0.9], [-0.4, 0.3], [0.8, 0.6]]


def program(mg, x):
    keys = mg.zeros((len(x), 2), dtype=mg.float64)
    values = mg.zeros((len(x), 2), dtype=mg.float64)
    loss = 0.0
    for t in range(len(x)):
        keys[t] = x[t] * 2.0
        values[t] = mg.sin(x[t])
        weights = mg.exp(keys[: t + 1] @ x[t])
        attended = weights @ values[: t + 1] / weights.sum()
        loss = loss + (attended * attended).sum()
    return loss


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
