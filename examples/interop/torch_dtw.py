"""A PyTorch program in which only the loss, dynamic time warping that fills a table, is written with mutagrad.

    python examples/interop/torch_dtw.py [--steps N]

It learns the shape behind curves that run early or late. Module, optimizer, schedule and data are PyTorch's; the loss
assigns each cell of its table, which PyTorch's own autograd differentiates at a cost that is quadratic in the cells.
"""
import argparse

import torch

import mutagrad as mg
from mutagrad import interop

CURVES, LENGTH = 12, 24


@interop.torch
def distance(curves, template, softness=0.003):
    """How far each of the curves, (count, n), is from the template, (m,), when time may be stretched."""
    cost = (curves.T[:, None] - template[:, None]) ** 2  # (n, m, count)
    n, m, count = cost.shape
    table = mg.full((n + 1, m + 1, count), mg.inf, dtype=cost.dtype)
    table[0, 0] = 0
    for i in range(n):
        for j in range(m):
            before = mg.stack((table[i, j], table[i, j + 1], table[i + 1, j]))
            table[i + 1, j + 1] = cost[i, j] - softness * mg.logsumexp(before / -softness, 0)
    return table[n, m]


def shape(time):
    """A high peak, a hollow and a low peak, for times from 0 to 1."""
    return torch.exp(-((time - 0.25) / 0.07) ** 2) - 0.5 * torch.exp(-((time - 0.5) / 0.07) ** 2) + 0.6 * torch.exp(-((time - 0.75) / 0.07) ** 2)


class Template(torch.nn.Module):
    """A curve that is learned."""

    def __init__(self, start):
        super().__init__()
        self.values = torch.nn.Parameter(start.clone())

    def forward(self, curves):
        return distance(curves, self.values).mean()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, metavar="N")
    steps = parser.parse_args(arguments).steps
    torch.manual_seed(0)
    time = torch.linspace(0, 1, LENGTH)
    curves = shape(time + 0.2 * (torch.rand(CURVES, 1) - 0.5)) + 0.03 * torch.randn(CURVES, LENGTH)
    template = Template(curves.mean(0))
    optimizer = torch.optim.Adam(template.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = template(curves)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 10 == 0:
            print(f"step {step:3}  distance {losses[-1]:.3f}")
    mean, learned = (distance(curves, x, softness=1e-3).mean().item() for x in (curves.mean(0), template.values.detach()))
    print(f"distance of the curves from their mean {mean:.3f}, from the template {learned:.3f}")
    if steps >= 60 and learned > 0.5 * mean:
        raise SystemExit("missed the goal: the second should be at most half of the first")
    return losses


if __name__ == "__main__":
    main()
