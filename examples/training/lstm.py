"""The adding problem: an LSTM must remember two marked numbers of a long sequence and add them.

    python examples/training/lstm.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

A network that has not understood answers 1, the mean of a sum of two numbers between 0 and 1; its squared error is 1/6.
"""
from common import compiled, finish, options, save_plot

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

LENGTH, BATCH = 30, 64


def problems(count):
    """Sequences of (number, mark), (length, count, 2), two of them marked, one in each half; and the sums of those two."""
    sequence = mg.zeros(LENGTH, count, 2)
    numbers, marks = sequence.unbind(2)
    numbers.uniform_()
    every = mg.arange(count)
    first, second = mg.randint(0, LENGTH // 2, (count,)), mg.randint(LENGTH // 2, LENGTH, (count,))
    marks[first, every] = 1
    marks[second, every] = 1
    return sequence, numbers[first, every] + numbers[second, every]


class Adder(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm, self.out = nn.LSTM(2, hidden), nn.Linear(hidden, 1)
        with mg.no_grad():  # begin with open forget gates: PyTorch's order of gates is input, forget, cell, output
            self.lstm.bias_ih_l0[hidden:2 * hidden] = 1.0

    def forward(self, sequence):
        states, _ = self.lstm(sequence)
        return self.out(states[-1]).squeeze(1)


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=1200)
    model = Adder()
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train(sequence, sums):
        optimizer.zero_grad()
        loss = F.mse_loss(model(sequence), sums)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        sequence, sums = problems(BATCH)
        loss = train(sequence, sums)
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0:
            print(f"step {step:4}  squared error {loss.item():.5f}")

    with mg.no_grad():
        sequence, sums = problems(1000)
        answers = model(sequence)
        error = F.mse_loss(answers, sums).item()

    def draw(left, right):
        left.plot(losses, linewidth=0.8)
        left.axhline(1 / 6, color="gray", linestyle=":")
        left.set(title="squared error", xlabel="step", yscale="log")
        right.plot(sums[:300].numpy(), answers[:300].numpy(), ".", markersize=3)
        right.set(title="new problems", xlabel="sum", ylabel="answer")

    save_plot(given, "lstm", draw, columns=2)
    finish(given, "squared error on new problems", error, at_most=0.005)
    return losses


if __name__ == "__main__":
    main()
