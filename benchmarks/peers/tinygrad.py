"""The programs in tinygrad, under its `TinyJit`, on the CPU. Loops over elements are left out: it would compile each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygrad import Context, Device, Tensor, TinyJit, nn

from peers import SPEED_SQUARED, SPRING, Run, inputs, rows
from programs import RATE


def ready(step: Callable[[], list[Tensor]], shown: int = 0) -> Run:
    """A run of `step`, captured: TinyJit computes its first call, captures the second and replays the third."""
    captured = TinyJit(step)

    def run() -> Any:
        results = captured()
        Device[Device.DEFAULT].synchronize()
        return results[shown]

    run()
    run()
    return run


def gradient(loss: Callable[..., Tensor], arrays: Any, wanted: int, shown: int = 0) -> Run:
    """A run that computes the gradients of the first `wanted` arrays, and returns one of them."""
    tensors = [Tensor(a).realize() for a in arrays]

    def step() -> list[Tensor]:
        grads = loss(*tensors).gradient(*tensors[:wanted])
        Tensor.realize(*grads)
        return grads

    return ready(step, shown)


def small_mix(lib: Any) -> Run:
    def loss(x: Any, w: Any, b: Any) -> Any:
        for _ in range(50):
            x = ((x * w + b).sin().exp() * 0.3).tanh().contiguous()  # a kernel of all 50 would not be compiled in minutes
        return x.sum()

    return gradient(loss, inputs.small(), 3, 1)


def pond(lib: Any, size: int, times: int) -> Run:
    start, places = inputs.pond(size)
    floats = Tensor(places).realize()

    def loss(start: Any) -> Any:
        height, speed, record = start.pad((1, 1, 1, 1)), start.zeros_like(), []
        for _ in range(times):
            inside = height[1:-1, 1:-1]
            around = height[:-2, 1:-1] + height[2:, 1:-1] + height[1:-1, :-2] + height[1:-1, 2:]
            speed = (speed + SPEED_SQUARED * (around - 4 * inside) - SPRING * inside**3).contiguous()
            height = (inside + speed).pad((1, 1, 1, 1)).contiguous()
            record.append(height.flatten()[floats])
        return Tensor.stack(*record).square().sum()

    return gradient(loss, [start], 1)


def large_mix(lib: Any) -> Run:
    def loss(x: Any, w: Any) -> Any:
        h = (x * w + 0.5).sin()
        h = ((h * 0.5).exp() - w).tanh()
        return (h * x + w).sum()

    return gradient(loss, inputs.large(), 2, 1)


def softmax(lib: Any) -> Run:
    return gradient(lambda x, w: (x.softmax(-1) * w).sum(), inputs.softmax(), 2, 1)


def layer_norm(lib: Any) -> Run:
    return gradient(lambda x, scale, shift, w: ((x.layernorm() * scale + shift) * w).sum(), inputs.norm(), 3)


def cross_entropy(lib: Any) -> Run:
    return gradient(lambda x, target: x.sparse_categorical_crossentropy(target), inputs.entropy(), 1)


def gelu(lib: Any) -> Run:
    return gradient(lambda x, w: (0.5 * x * (1 + (x * 0.5**0.5).erf()) * w).sum(), inputs.weighted(1_000_000), 1)


def train_mlp(lib: Any) -> Run:
    drawn, *data = inputs.mlp()
    parameters = [Tensor(p).realize() for p in drawn]
    x, target = (Tensor(a).realize() for a in data)
    optimizer = nn.optim.Adam(parameters, lr=RATE)

    def step() -> list[Tensor]:
        h = x
        for w, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            h = h.linear(w.T, b).relu()
        optimizer.zero_grad()
        h.linear(parameters[-2].T, parameters[-1]).sparse_categorical_crossentropy(target).backward()
        first = parameters[0].grad.clone()
        Tensor.realize(first, *optimizer.schedule_step())
        return [first]

    with Context(TRAINING=1):
        return ready(step)


ROWS = rows(small_mix, large_mix, softmax, layer_norm, cross_entropy, gelu, train_mlp, pond=pond)
