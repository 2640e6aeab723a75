"""Learn to read a stream of sounds that nobody has cut into letters, with CTC written as a loop over a table.

    python examples/training/ctc.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

Words of four letters are spoken at varying speed and with noise. The network says at every moment which letter it
hears, or none; the loss (Graves and others, 2006) sums over all ways to place the word's letters in time.
"""
from common import compiled, finish, options, save_plot

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

LETTERS, WORD, TIMES, CHANNELS = 6, 4, 28, 8
BLANK = 0  # "no letter"; the letters are 1 to LETTERS
NEVER = -1e9  # the logarithm of no chance; an infinity would make nan of the derivative of nothing plus nothing


def ctc(log_probabilities, words):
    """Minus the log-probability of each word, (count, WORD), by those of the letters at each time, (times, count, letters)."""
    times, count, _ = log_probabilities.shape
    stations = mg.full((count, 2 * words.shape[1] + 1), BLANK)
    stations[:, 1::2] = words
    emitted = log_probabilities.gather(2, stations.expand(times, -1, -1))
    skip = mg.zeros(stations.shape)  # from letter to letter without a blank, unless both are the same
    skip[:, 2:][stations[:, 2:] == stations[:, :-2]] = NEVER

    table = mg.full((times, stations.shape[1], count), NEVER, dtype=emitted.dtype)
    table[0, :2] = emitted[0, :, :2].T

    def listen(before):
        t = before + 1
        for s in range(stations.shape[1]):
            ways = [table[before, s]]
            if s > 0:
                ways.append(table[before, s - 1])
            if s > 1:
                ways.append(table[before, s - 2] + skip[:, s])
            table[t, s] = emitted[t, :, s] + mg.logsumexp(mg.stack(ways), 0)

    mg.loop(times - 1, listen)
    return -mg.logaddexp(table[-1, -1], table[-1, -2])


def check(words):
    """Compares the gradient with finite differences along a random direction, and the loss with nn.functional.ctc_loss."""
    scores = mg.randn(TIMES, len(words), LETTERS + 1, dtype=mg.float64, requires_grad=True)
    loss = lambda x: ctc(F.log_softmax(x, 2), words).sum()
    (gradient,) = mg.autograd.grad(loss(scores), scores)
    with mg.no_grad():
        direction, small = mg.randn_like(scores), 1e-4
        difference = (loss(scores + small * direction) - loss(scores - small * direction)) / (2 * small)
        assert abs((gradient * direction).sum() - difference) < 1e-6 * abs(difference)
        lengths = mg.full((len(words),), TIMES), mg.full((len(words),), WORD)
        built_in = F.ctc_loss(F.log_softmax(scores, 2), words, *lengths, reduction="sum")
        assert abs(loss(scores) - built_in) < 1e-6 * built_in
    print("the gradient agrees with finite differences, the loss with nn.functional.ctc_loss")


def spoken(words, voice):
    """Sounds, (count, channels, times): noise, into which each letter's pattern is written for as long as it lasts."""
    sounds = 0.3 * mg.randn(len(words), CHANNELS, TIMES)
    lasting, silence = mg.randint(3, 6, words.shape).tolist(), mg.randint(1, 3, words.shape).tolist()
    for sound, word, long, pauses in zip(sounds, words.tolist(), lasting, silence):
        t = 0
        for letter, length, pause in zip(word, long, pauses):
            t += pause
            sound[:, t:t + length] += voice[letter][:, None]
            t += length
    return sounds


def read(log_probabilities):
    """The most probable letter at each time, repetitions and blanks left out: one list for each word."""
    best = log_probabilities.argmax(2).T.tolist()
    return [[letter for letter, before in zip(times, [BLANK, *times]) if letter not in (before, BLANK)] for times in best]


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=300)
    voice = mg.randn(LETTERS + 1, CHANNELS)
    draw_words = lambda count: mg.randint(1, LETTERS + 1, (count, WORD))
    check(draw_words(3))
    model = nn.Sequential(nn.Conv1d(CHANNELS, 48, 5, padding=2), nn.ReLU(inplace=True), nn.Conv1d(48, LETTERS + 1, 5, padding=2))
    hear = lambda sounds: F.log_softmax(model(sounds).permute(2, 0, 1), 2)
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-2)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train(sounds, words):
        optimizer.zero_grad()
        loss = ctc(hear(sounds), words).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        words = draw_words(32)
        loss = train(spoken(words, voice), words)
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:3}  loss {loss.item():.3f}")

    words = draw_words(500)
    with mg.no_grad():
        heard = hear(spoken(words, voice))
    right = sum(a == b for a, b in zip(read(heard), words.tolist())) / len(words)

    def draw(left, right):
        left.plot(losses)
        left.set(title="loss", xlabel="step", yscale="log")
        right.imshow(heard[:, 0].exp().T.numpy(), aspect="auto", cmap="gray_r")
        right.set(title=f"{words[0].tolist()} as it is heard", xlabel="time", ylabel="letter")

    save_plot(given, "ctc", draw, columns=2)
    finish(given, "share of new words read without a fault", right, at_least=0.95)
    return losses


if __name__ == "__main__":
    main()
