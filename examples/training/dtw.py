"""Learn the shape behind curves that run early or late, with dynamic time warping written as a loop over a table.

    python examples/training/dtw.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

Each cell of the table is assigned once, from its three neighbours, and the gradient of the distance flows back through
the assignments. The mean of the curves smears what is out of step; the learned template does not. (The soft minimum is
that of Cuturi and Blondel, 2017.)
"""
from common import compiled, finish, options, save_plot

import mutagrad as mg

CURVES, LENGTH = 12, 24


def distance(curves, template, softness):
    """How far each of the curves, (count, n), is from the template, (m,), when time may be stretched."""
    cost = (curves.T[:, None] - template[:, None]) ** 2  # (n, m, count)
    n, m, count = cost.shape
    table = mg.full((n + 1, m + 1, count), mg.inf, dtype=cost.dtype)
    table[0, 0] = 0

    def row(i):
        for j in range(m):
            table[i + 1, j + 1] = cost[i, j] + softmin(table[i, j], table[i, j + 1], table[i + 1, j], softness)

    mg.loop(n, row)
    return table[n, m]


def softmin(x, y, z, softness):
    return -softness * mg.logsumexp(mg.stack((x, y, z)) / -softness, 0)


def check_gradient():
    """Compares the gradient with finite differences, for short curves in double precision."""
    curves, template = mg.randn(2, 5, dtype=mg.float64, requires_grad=True), mg.randn(4, dtype=mg.float64, requires_grad=True)
    assert mg.autograd.gradcheck(lambda c, t: distance(c, t, 0.5), (curves, template))
    print("the gradient agrees with finite differences")


def shape(time):
    """A high peak, a hollow and a low peak, for times from 0 to 1."""
    return mg.exp(-((time - 0.25) / 0.07) ** 2) - 0.5 * mg.exp(-((time - 0.5) / 0.07) ** 2) + 0.6 * mg.exp(-((time - 0.75) / 0.07) ** 2)


def late_and_early_curves():
    """The shape in times that were bent at random, with a little noise: (CURVES, LENGTH)."""
    time = mg.linspace(0, 1, LENGTH).repeat(CURVES, 1)
    time += 0.2 * (mg.rand(CURVES, 1) - 0.5)
    time += 0.06 * mg.sin(6.28 * time) * mg.randn(CURVES, 1)
    curves = shape(time)
    curves += 0.03 * mg.randn(CURVES, LENGTH)
    return curves


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=60)
    check_gradient()
    curves = late_and_early_curves()
    mean = curves.mean(0)
    template = mean.clone().requires_grad_()
    optimizer = mg.optim.Adam([template], lr=0.05)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train():
        optimizer.zero_grad()
        loss = distance(curves, template, softness=0.003).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        loss = train()
        schedule.step()
        losses.append(loss.item())
        if step % 10 == 0:
            print(f"step {step:3}  distance {loss.item():.3f}")

    learned = template.detach()
    nearly_hard = {name: distance(curves, x, softness=1e-3).mean().item() for name, x in (("mean", mean), ("learned", learned))}
    print(f"distance of the curves from their mean {nearly_hard['mean']:.3f}, from the template {nearly_hard['learned']:.3f}")

    def draw(left, right):
        left.plot(curves.T.numpy(), color="gray", linewidth=0.6)
        left.plot(mean.numpy(), "C1", label="mean")
        left.set(title="curves and their mean", ylim=(-0.8, 1.2))
        right.plot(shape(mg.linspace(0, 1, LENGTH)).numpy(), "k:", label="shape behind them")
        right.plot(learned.numpy(), "C0", label="learned")
        right.set(title="template", ylim=(-0.8, 1.2))
        right.legend(fontsize=7)

    save_plot(given, "dtw", draw, columns=2)
    finish(given, "distance, as a share of the mean's", nearly_hard["learned"] / nearly_hard["mean"], at_most=0.3)
    return losses


if __name__ == "__main__":
    main()
