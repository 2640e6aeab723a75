"""Fill a dynamic program cell by cell: the best alignment's gradient."""

START = [0.2, 1.1, 1.9, 2.4, 0.7]
TEMPLATE = [0.0, 1.0, 2.5, 1.0]


def program(mg, x):
    n, m = len(x), len(TEMPLATE)
    cost = mg.full((n + 1, m + 1), float("inf"), dtype=mg.float64)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best = mg.minimum(cost[i - 1, j], cost[i, j - 1])
            best = mg.minimum(best, cost[i - 1, j - 1])
            cost[i, j] = best + (x[i - 1] - TEMPLATE[j - 1]) ** 2
    return cost[n, m]


reference = program  # NumPy runs the same statements on a plain array


if __name__ == "__main__":
    import mutagrad

    x = mutagrad.tensor(START, dtype=mutagrad.float64, requires_grad=True)
    loss = program(mutagrad, x)
    loss.backward()
    print(f"loss = {loss.item():.6g}", f"x.grad = {x.grad}", sep="\n")
