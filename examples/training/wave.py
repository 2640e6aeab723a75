"""Find out how a pond was disturbed from what a few floats saw later: gradients through a simulator that works in place.

    python examples/training/wave.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

The simulator is written as for NumPy: two buffers, height and speed, that every time step changes with `+=`, and a
record that is filled row by row. A spring that grows with the cube of the height pulls the water back, so derivatives
need the heights of all times, which the buffer no longer holds.
"""
from common import compiled, finish, options, save_plot

import mutagrad as mg
from mutagrad.nn import functional as F

SIZE, TIMES, FLOATS = 32, 80, 60
SPEED, SPRING = 0.25, 0.02  # squared speed of the waves, in cells for each time step; strength of the spring


def simulate(start, floats):
    """What the floats record when the water is let go from the heights `start`: (times, floats)."""
    height, speed = start.clone(), mg.zeros(SIZE, SIZE)
    record = mg.empty(TIMES, len(floats))
    inside, pushed = height[1:-1, 1:-1], speed[1:-1, 1:-1]
    above, below, left, right = height[:-2, 1:-1], height[2:, 1:-1], height[1:-1, :-2], height[1:-1, 2:]

    def move(t):
        pushed.add_(SPEED * (above + below + left + right - 4 * inside) - SPRING * inside ** 3)
        inside.add_(pushed)
        record[t] = height.view(-1)[floats]

    mg.loop(TIMES, move)
    return record


def two_drops():
    """A high bump, and a hollow beside it."""
    row, column = mg.meshgrid(mg.arange(SIZE), mg.arange(SIZE), indexing="ij")
    start = mg.zeros(SIZE, SIZE)
    start += mg.exp(-((row - 10) ** 2 + (column - 12) ** 2) / 12)
    start -= 0.7 * mg.exp(-((row - 20) ** 2 + (column - 21) ** 2) / 20)
    start[0] = start[-1] = start[:, 0] = start[:, -1] = 0
    return start


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=100)
    true = two_drops()
    floats = mg.randperm(SIZE * SIZE)[:FLOATS]
    seen = simulate(true, floats)
    seen += 0.005 * mg.randn_like(seen)

    guess = mg.zeros(SIZE - 2, SIZE - 2, requires_grad=True)
    optimizer = mg.optim.Adam([guess], lr=0.05)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train():
        start = mg.zeros(SIZE, SIZE)
        start[1:-1, 1:-1] = guess  # the shore stays at zero
        optimizer.zero_grad()
        rough = (start[1:] - start[:-1]).square().mean() + (start[:, 1:] - start[:, :-1]).square().mean()
        loss = F.mse_loss(simulate(start, floats), seen) + 1e-3 * rough
        loss.backward()
        optimizer.step()
        return loss.detach(), start.detach()

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        loss, start = train()
        schedule.step()
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step:3}  loss {loss.item():.2e}  error of the start {mg.dist(start, true) / true.norm():.3f}")

    error = (mg.dist(guess.detach(), true[1:-1, 1:-1]) / true.norm()).item()

    def draw(left, middle, right):
        limits = {"vmin": -1, "vmax": 1, "cmap": "RdBu"}
        left.imshow(true.numpy(), **limits)
        left.plot(floats.numpy() % SIZE, floats.numpy() // SIZE, "k.", markersize=2)
        left.set(title="start, and the floats", xticks=[], yticks=[])
        middle.plot(seen[:, :4].numpy(), linewidth=0.9)
        middle.set(title="what four floats saw", xlabel="time")
        right.imshow(start.numpy(), **limits)
        right.set(title="recovered", xticks=[], yticks=[])

    save_plot(given, "wave", draw, columns=3)
    finish(given, "relative error of the recovered start", error, at_most=0.05)
    return losses


if __name__ == "__main__":
    main()
