"""Tell handwritten digits apart with two layers, trained on images that are shifted in place.

    python examples/training/digits_mlp.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]
"""
from common import batches, compiled, digits, finish, options, save_plot

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

ROW, COLUMN = 1, 2


def shift_some(images, share=0.25):
    """Moves some of the images by one pixel, in one of the four directions; what enters is black."""
    grid = images.view(-1, 8, 8)
    for dim, step in (ROW, 1), (ROW, -1), (COLUMN, 1), (COLUMN, -1):
        chosen = mg.rand(len(grid)) < share / 4
        moved = grid[chosen].roll(step, dim)
        moved.select(dim, 0 if step > 0 else -1).zero_()  # what left on one side came in on the other
        grid[chosen] = moved


def accuracy(model, x, y):
    with mg.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=1000)
    x_train, y_train, x_test, y_test = digits()
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(inplace=True), nn.Linear(256, 10))
    optimizer = mg.optim.Adam(model.parameters(), lr=3e-3)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses, accuracies = [], []

    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    while len(losses) < given.steps:
        for x, y in batches(64, x_train, y_train):
            shift_some(x)
            loss = train(x, y)
            schedule.step()
            losses.append(loss.item())
            if len(losses) % 100 == 0:
                accuracies.append((len(losses), accuracy(model, x_test, y_test)))
                print(f"step {len(losses):4}  loss {loss.item():.3f}  test accuracy {accuracies[-1][1]:.3f}")
            if len(losses) == given.steps:
                break

    def draw(left, right):
        left.plot(losses, linewidth=0.8)
        left.set(title="loss", xlabel="step", yscale="log")
        right.plot(*zip(*accuracies), marker="o")
        right.set(title="test accuracy", xlabel="step", ylim=(0.8, 1))

    save_plot(given, "digits_mlp", draw, columns=2)
    finish(given, "test accuracy", accuracy(model, x_test, y_test), at_least=0.97)
    return losses


if __name__ == "__main__":
    main()
