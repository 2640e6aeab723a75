"""Step a simulator in place: nonlinear heat flow on a rod that is one array."""

START = [0.0, 0.4, 1.0, 0.3, 0.6, 0.0]


def program(mg, x):
    u = x * 1.0
    for _ in range(10):
        conductivity = 1.0 + u[1:] * u[:-1]
        flux = conductivity * (u[1:] - u[:-1])
        u[1:-1] += 0.1 * (flux[1:] - flux[:-1])
    return (u * u).sum()


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
