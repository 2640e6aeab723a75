"""Let a custom Function change its input, and never mark it dirty."""

START = [1.0, 2.0, 3.0]


def program(mg, x):
    class CubeInPlace(mg.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v.clone())
            v *= v * v
            return v

        @staticmethod
        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            return g * 3.0 * v * v

    y = x * 0.5
    CubeInPlace.apply(y)
    return (y * y).sum()


def reference(np, x):
    y = x * 0.5
    y *= y * y
    return (y * y).sum()


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
