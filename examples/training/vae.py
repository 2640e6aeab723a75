"""A variational autoencoder of handwritten digits, and digits that nobody wrote.

    python examples/training/vae.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]
"""
from common import batches, compiled, digits, finish, options, save_plot, tiles

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

LATENT, HIDDEN = 8, 256


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 64))

    def forward(self, x):
        """Pixels as they are decoded (before the sigmoid), and where in the latent space the images lie."""
        mean, log_variance = self.encoder(x).chunk(2, 1)
        latent = mg.randn_like(mean)
        latent *= (0.5 * log_variance).exp()  # the noise becomes the sample, in its own memory
        latent += mean
        return self.decoder(latent), mean, log_variance

    def loss(self, x):
        """The negative evidence lower bound for each image: what it costs to describe it, in nats."""
        pixels, mean, log_variance = self(x)
        decoding = F.binary_cross_entropy_with_logits(pixels, x, reduction="sum")
        divergence = 0.5 * (mean ** 2 + log_variance.exp() - 1 - log_variance).sum()
        return (decoding + divergence) / len(x)

    @mg.no_grad()
    def sample(self, count):
        return mg.sigmoid(self.decoder(mg.randn(count, LATENT))).view(-1, 8, 8)


@mg.no_grad()
def evaluate(model, x):
    return sum(model.loss(x).item() for _ in range(10)) / 10


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=1500)
    x_train, _, x_test, _ = digits()
    model = Autoencoder()
    optimizer = mg.optim.Adam(model.parameters(), lr=2e-3)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train(x):
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    while len(losses) < given.steps:
        for x, in batches(64, x_train):
            loss = train(x)
            schedule.step()
            losses.append(loss.item())
            if len(losses) % 250 == 0:
                print(f"step {len(losses):4}  nats for each image {loss.item():.2f}, unseen ones {evaluate(model, x_test):.2f}")
            if len(losses) == given.steps:
                break

    def draw(left, right):
        with mg.no_grad():
            pixels, *_ = model(x_test[:24])
        rows = mg.empty(6, 8, 8, 8)  # images above, below each how it was decoded
        rows[::2] = x_test[:24].view(3, 8, 8, 8)
        rows[1::2] = mg.sigmoid(pixels).view(3, 8, 8, 8)
        left.imshow(tiles(rows.flatten(0, 1), rows=6), cmap="gray_r")
        left.set(title="unseen, and decoded", xticks=[], yticks=[])
        right.imshow(tiles(model.sample(48), rows=6), cmap="gray_r")
        right.set(title="invented", xticks=[], yticks=[])

    save_plot(given, "vae", draw, columns=2)
    finish(given, "nats for each unseen image", evaluate(model, x_test), at_most=25.5)
    return losses


if __name__ == "__main__":
    main()
