"""Tell handwritten digits apart with a small convolutional network, fed by a DataLoader.

    python examples/training/digits_cnn.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]
"""
from common import compiled, digits, finish, options, save_plot, tiles

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F
from mutagrad.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    """Two convolutions, each followed by normalisation, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True))
        self.last = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(self.first(x), 2)
        x = F.max_pool2d(self.second(x), 2)
        x = F.dropout(x.flatten(1), 0.3, self.training, inplace=True)
        return self.last(x)


def hide_a_corner(images):
    """Blackens a random 3 x 3 patch of each image, so that no single stroke decides."""
    corners = mg.randint(0, 6, (len(images), 2)).tolist()
    for image, (row, column) in zip(images, corners):
        image[0, row:row + 3, column:column + 3] = 0


@mg.no_grad()
def predict(model, x):
    """How probable each digit is for each image."""
    model.eval()
    probabilities = F.softmax(model(x), 1)
    model.train()
    return probabilities


def accuracy(model, x, y):
    return (predict(model, x).argmax(1) == y).float().mean().item()


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=600)
    x_train, y_train, x_test, y_test = digits()
    x_train, x_test = x_train.view(-1, 1, 8, 8), x_test.view(-1, 1, 8, 8)
    loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True, drop_last=True)
    model = Network()
    optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=given.steps)
    losses = []

    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    while len(losses) < given.steps:
        for x, y in loader:
            hide_a_corner(x)
            loss = train(x, y)
            schedule.step()
            losses.append(loss.item())
            if len(losses) % 100 == 0:
                print(f"step {len(losses):4}  loss {loss.item():.3f}  test accuracy {accuracy(model, x_test, y_test):.3f}")
            if len(losses) == given.steps:
                break

    def draw(left, right):
        probabilities = predict(model, x_test)
        hardest = probabilities[mg.arange(len(y_test)), y_test].argsort()[:8]
        answers = probabilities[hardest].argmax(1).tolist()
        left.plot(losses, linewidth=0.8)
        left.set(title="loss", xlabel="step", yscale="log")
        right.imshow(tiles(x_test[hardest, 0], rows=2), cmap="gray_r")
        right.set(title="hardest, taken for " + " ".join(map(str, answers)), xticks=[], yticks=[])

    save_plot(given, "digits_cnn", draw, columns=2)
    finish(given, "test accuracy", accuracy(model, x_test, y_test), at_least=0.97)
    return losses


if __name__ == "__main__":
    main()
