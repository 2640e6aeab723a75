"""Train the loop that PyTorch's documentation of nn.RNN gives as its meaning, which PyTorch itself cannot differentiate.

    python examples/training/rnn_document.py [--steps N] [--seed S] [--compile] [--no-plot] [--out DIR]

The loop writes the state of each layer into `h_t[layer]`, and the layer above reads it before the next time step
overwrites it. PyTorch's backward() then finds the states that it had saved changed, and stops with a RuntimeError.
"""
from common import compiled, finish, options, save_plot

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

LENGTH, BATCH, HIDDEN, LAYERS = 40, 32, 24, 2


def document(rnn, x):
    """nn.RNN's results, (time, batch, hidden), by the loop of its documentation."""
    params = dict(rnn.named_parameters())
    h_t = mg.zeros(rnn.num_layers, x.shape[1], rnn.hidden_size)
    h_t_minus_1 = h_t.clone()
    output = []
    for t in range(len(x)):
        for layer in range(rnn.num_layers):
            input_t = x[t] if layer == 0 else h_t[layer - 1]
            h_t[layer] = mg.tanh(
                input_t @ params[f"weight_ih_l{layer}"].T
                + h_t_minus_1[layer] @ params[f"weight_hh_l{layer}"].T
                + params[f"bias_hh_l{layer}"]
                + params[f"bias_ih_l{layer}"]
            )
        output.append(h_t[-1].clone())
        h_t_minus_1 = h_t.clone()
    return mg.stack(output)


def check(rnn, x):
    """Compares the loop's gradients with those of the built-in layer, which is one operation."""
    parameters = list(rnn.parameters())
    ours = mg.autograd.grad(document(rnn, x).square().sum(), parameters)
    built_in = mg.autograd.grad(rnn(x)[0].square().sum(), parameters)
    furthest = max(mg.dist(a, b) / b.norm() for a, b in zip(ours, built_in)).item()
    assert furthest < 1e-4, furthest
    print(f"gradients of the loop and of nn.RNN differ by {furthest:.0e} of their length at most")


def waves(count):
    """Noisy waves of one frequency each, (LENGTH + 1, count, 1), and the same without noise."""
    time, frequency, phase = mg.arange(LENGTH + 1.0)[:, None], mg.empty(count).uniform_(0.2, 0.8), 6.28 * mg.rand(count)
    clean = mg.sin(frequency * time + phase)[..., None]
    return clean + 0.2 * mg.randn_like(clean), clean


def main(arguments=None):
    given = options(__doc__.splitlines()[0], arguments, steps=400)
    rnn, out = nn.RNN(1, HIDDEN, LAYERS), nn.Linear(HIDDEN, 1)
    check(rnn, waves(4)[0])
    parameters = [*rnn.parameters(), *out.parameters()]
    optimizer = mg.optim.Adam(parameters, lr=5e-3)
    schedule = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    losses = []

    def train(noisy, clean):
        optimizer.zero_grad()
        loss = F.mse_loss(out(document(rnn, noisy[:-1])), clean[1:])
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss.detach()

    train = compiled(given, train)

    for step in range(1, given.steps + 1):
        noisy, clean = waves(BATCH)
        loss = train(noisy, clean)
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:3}  squared error {loss.item():.4f}")

    with mg.no_grad():
        noisy, clean = waves(500)
        predicted = out(document(rnn, noisy[:-1]))
        late = slice(LENGTH // 2, None)  # when it has seen enough of a wave
        error = F.mse_loss(predicted[late], clean[1:][late]).item()
        repeating = F.mse_loss(noisy[:-1][late], clean[1:][late]).item()
    print(f"squared error of repeating the last value: {repeating:.4f}")

    def draw(axes):
        axes.plot(range(LENGTH + 1), noisy[:, 0, 0].numpy(), "k.", markersize=3, label="seen")
        axes.plot(range(LENGTH + 1), clean[:, 0, 0].numpy(), "k:", linewidth=0.8, label="without noise")
        axes.plot(range(1, LENGTH + 1), predicted[:, 0, 0].numpy(), label="predicted")
        axes.set(title="next value of a new wave", xlabel="time", ylim=(-1.6, 2))
        axes.legend(fontsize=7, loc="upper center", ncols=3)

    save_plot(given, "rnn_document", draw)
    finish(given, "squared error of the prediction", error, at_most=0.03)
    return losses


if __name__ == "__main__":
    main()
