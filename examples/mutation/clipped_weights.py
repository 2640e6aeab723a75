"""Clip weights through .data before backward(): the loss came before."""

START = [-2.0, 0.5, 3.0]


def program(mg, x):
    loss = (x * x * x).sum()
    x.data.clamp_(-1.0, 1.0)
    return loss


def reference(np, x):
    loss = (x * x * x).sum()
    np.clip(x, -1.0, 1.0, out=x)
    return loss


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
