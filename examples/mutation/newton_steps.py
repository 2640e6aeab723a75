"""Take Newton steps that update w in place, on an energy built in place."""

START = [0.5, 2.0, 3.0]


def program(mg, x):
    w = mg.ones(3, dtype=mg.float64, requires_grad=True)
    for _ in range(3):
        energy = w * w
        energy *= w / 3.0
        energy -= x * w
        (slope,) = mg.autograd.grad(energy.sum(), w, create_graph=True)
        (curvature,) = mg.autograd.grad(slope.sum(), w, create_graph=True)
        w -= slope / curvature
    return (w * w * w).sum()


def reference(np, x):
    w = np.ones(3)
    for _ in range(3):
        w -= (w * w - x) / (2.0 * w)
    return (w * w * w).sum()


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
