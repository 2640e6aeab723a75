"""Accumulate along a graph's edges: every message gets its share."""

START = [0.1, 0.2, 0.3, 0.4]
SENDERS, RECEIVERS = [0, 0, 1, 3, 2], [1, 2, 2, 2, 0]


def program(mg, x):
    senders, receivers = mg.tensor(SENDERS), mg.tensor(RECEIVERS)
    state = x * 2.0
    for _ in range(3):
        state.index_add_(0, receivers, mg.tanh(state[senders]))
    return (state * state).sum()


def reference(np, x):
    senders, receivers = np.array(SENDERS), np.array(RECEIVERS)
    state = x * 2.0
    for _ in range(3):
        np.add.at(state, receivers, np.tanh(state[senders]))
    return (state * state).sum()


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
