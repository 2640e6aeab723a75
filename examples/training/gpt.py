"""Train a small GPT on characters through a cache of keys and values that is written in place.

    python examples/training/gpt.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

The network reads one character at a time, as it will when it writes: step t stores its key and value in column t of the
cache and attends to columns 0 to t. Every later loss depends on every earlier write, and the gradients flow back through
the cache, so training and writing are one and the same code. The text is the beginning of the Declaration of
Independence of the United States (1776).
"""
from pathlib import Path

from common import compiled, finish, options, save_plot

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

TEXT = (Path(__file__).parent / "text.txt").read_text(encoding="utf-8").replace("\n", " ")
LETTERS = sorted(set(TEXT))
LENGTH, WIDTH, HEADS, LAYERS = 24, 64, 4, 2


class Block(nn.Module):
    """Attention to what came before, then a small network for each position alone."""

    def __init__(self):
        super().__init__()
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, keys, values, t):
        """x: (batch, width), the position t alone; keys, values: (batch, length, heads, width / heads)."""
        query, key, value = self.query_key_value(self.norm(x)).view(len(x), 3, HEADS, -1).unbind(1)
        keys[:, t] = key
        values[:, t] = value
        past = mg.arange(LENGTH) <= t
        attended = F.scaled_dot_product_attention(query.unsqueeze(2), keys.transpose(1, 2), values.transpose(1, 2), attn_mask=past)
        x = x + self.out(attended.reshape(len(x), WIDTH))
        return x + self.network(self.last_norm(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.positions = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def new_cache(self, batch):
        """Keys and values of all layers, still empty."""
        return mg.zeros(2, LAYERS, batch, LENGTH, HEADS, WIDTH // HEADS)

    def forward(self, letters, cache, t):
        """What follows the letters at position t: (batch, number of letters)."""
        x = self.letters(letters) + self.positions.weight[t]
        for block, keys, values in zip(self.blocks, *cache):
            x = block(x, keys, values, t)
        return self.out(self.norm(x))

    def loss(self, text):
        """How surprising each next letter of `text`, (batch, LENGTH + 1), is on average, in nats."""
        cache = self.new_cache(len(text))
        scores = mg.empty(len(text), LENGTH, len(LETTERS))

        def read(t):
            scores[:, t] = self(text[:, t], cache, t)

        mg.loop(LENGTH, read)
        return F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())

    @mg.no_grad()
    def write(self, start, count):
        """Continues `start`; when the cache is full, it begins anew with the last half of what was written."""
        written = [LETTERS.index(letter) for letter in start]
        read, t, cache = written[:], 0, self.new_cache(1)
        while len(written) < len(start) + count:
            if t == LENGTH:
                read, t, cache = written[-LENGTH // 2:], 0, self.new_cache(1)
            scores = self(mg.tensor(read[t:t + 1]), cache, t)
            t += 1
            if t == len(read):
                letter = mg.multinomial(F.softmax(scores[0] / 0.7, 0), 1).item()
                written.append(letter)
                read.append(letter)
        return "".join(LETTERS[i] for i in written)


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=500)
    text = mg.tensor([LETTERS.index(letter) for letter in TEXT])
    model = GPT()
    optimizer = mg.optim.AdamW(model.parameters(), lr=6e-3, betas=(0.9, 0.98))
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train(letters):
        optimizer.zero_grad()
        loss = model.loss(letters)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        starts = mg.randint(0, len(text) - LENGTH, (24, 1))
        loss = train(text[starts + mg.arange(LENGTH + 1)])
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")

    print(model.write("He has ", 200))

    def draw(axes):
        axes.plot(losses)
        axes.set(title="loss, nats for each letter", xlabel="step")

    save_plot(given, "gpt", draw)
    finish(given, "loss", sum(losses[-20:]) / len(losses[-20:]), at_most=1.3)
    return losses


if __name__ == "__main__":
    main()
