"""The programs that are timed: each a function of the library, so that both run the same statements.

    @row("x * w", target=0.6, per=300)
    def small_mul(lib):
        x, w = leaf(lib, 10), leaf(lib, 10)
        def run():              # what is timed: forward, backward, and the graph's end
            ...
            return x.grad       # compared between the libraries, so that nobody is fast and wrong
        return run

`per` is the number of operations in one run, where a figure per operation says more than one per run.
Every input comes from NumPy with a fixed seed, so that the libraries see equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    group: str
    make: Callable[[Any], Run] | None = None  # None: bench.py measures it in its own way
    target: float | None = None
    per: int = 1
    rounds: int = 15  # at most, and fewer where they are slow
    before: Callable[[Any], Run] | None = None  # the same in small, run before memory is measured


ROWS: dict[str, Row] = {}
GROUP = ""


def add(name: str, title: str, make: Callable[[Any], Run] | None = None, **settings: Any) -> None:
    assert name not in ROWS, f"two rows are called {name}"
    ROWS[name] = Row(name, title, GROUP, make, **settings)


def row(title: str, **settings: Any) -> Callable[[Callable[[Any], Run]], Callable[[Any], Run]]:
    def declare(make: Callable[[Any], Run]) -> Callable[[Any], Run]:
        add(make.__name__, title, make, **settings)
        return make

    return declare


def values(*shape: int, mean: float = 1.0, spread: float = 1e-3, seed: int = 0) -> np.ndarray:
    """Float32 values near `mean`: long products of numbers near 1 stay near 1."""
    return np.random.default_rng(seed).normal(mean, spread, shape).astype(np.float32)


def whole_numbers(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, high, shape)


def leaf(lib: Any, *shape: int, **settings: Any) -> Any:
    return lib.tensor(values(*shape, **settings), requires_grad=True)


def indices(lib: Any, high: int, *shape: int) -> Any:
    return lib.tensor(whole_numbers(high, *shape))


# --------------------------------------------------------------------------------------------------
GROUP = "Small ops: 10 float32 elements, a chain of 300, forward + backward, per op"


@row("x*w, +b, sin, exp, *0.3, tanh in turn", target=0.6, per=300)
def small_mix(lib: Any) -> Run:
    x, w, b = leaf(lib, 10), leaf(lib, 10, seed=1), leaf(lib, 10, mean=0.1, seed=2)
    sin, exp, tanh = lib.sin, lib.exp, lib.tanh

    def run() -> Any:
        x.grad = w.grad = b.grad = None
        h = x
        for _ in range(50):
            h = tanh(exp(sin(h * w + b)) * 0.3)
        h.sum().backward()
        return w.grad

    return run


@row("x * w", target=0.6, per=300)
def small_mul(lib: Any) -> Run:
    x, w = leaf(lib, 10), leaf(lib, 10, seed=1)

    def run() -> Any:
        x.grad = w.grad = None
        h = x
        for _ in range(300):
            h = h * w
        h.sum().backward()
        return w.grad

    return run


@row("x + w", target=0.6, per=300)
def small_add(lib: Any) -> Run:
    x, w = leaf(lib, 10), leaf(lib, 10, seed=1)

    def run() -> Any:
        x.grad = w.grad = None
        h = x
        for _ in range(300):
            h = h + w
        h.sum().backward()
        return w.grad

    return run


@row("x * 0.999", target=0.6, per=300)
def small_scale(lib: Any) -> Run:
    x = leaf(lib, 10)

    def run() -> Any:
        x.grad = None
        h = x
        for _ in range(300):
            h = h * 0.999
        h.sum().backward()
        return x.grad

    return run


@row("sin(x)", target=0.6, per=300)
def small_sin(lib: Any) -> Run:
    x, sin = leaf(lib, 10), lib.sin

    def run() -> Any:
        x.grad = None
        h = x
        for _ in range(300):
            h = sin(h)
        h.sum().backward()
        return x.grad

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Element loops: forward + backward, per element"

# `y[i] = y[i] * y[i-1]` itself is an error in PyTorch: the product saves what the assignment overwrites.
# The sum makes the same reads and the same write, and saves nothing.
# The product stands below as it must be written there.


def write_loop(lib: Any, n: int) -> Run:
    x = leaf(lib, n, mean=0.0)

    def run() -> Any:
        x.grad = None
        y = x.clone()
        for i in range(1, n):
            y[i] = y[i] + y[i - 1]
        y.sum().backward()
        return x.grad

    return run


for n, target in (10_000, None), (30_000, 0.3), (100_000, 0.1):
    add(
        f"writes_{n // 1000}k",
        f"y[i] = y[i] + y[i-1], N = {n:,}",
        partial(write_loop, n=n),
        target=target,
        per=n,
        rounds=2 if n > 50_000 else 15,
    )


@row("y[i] = y[i] * 2, N = 30,000", target=0.3, per=30_000)
def writes_scale_30k(lib: Any) -> Run:
    x = leaf(lib, 30_000)

    def run() -> Any:
        x.grad = None
        y = x.clone()
        for i in range(30_000):
            y[i] = y[i] * 2
        y.sum().backward()
        return x.grad

    return run


@row("y[i] = y[i].clone() * y[i-1].clone(), N = 10,000", per=10_000)
def writes_product_10k(lib: Any) -> Run:
    x = leaf(lib, 10_000)

    def run() -> Any:
        x.grad = None
        y = x.clone()
        for i in range(1, 10_000):
            y[i] = y[i].clone() * y[i - 1].clone()
        y.sum().backward()
        return x.grad

    return run


@row("s = s + x[i], N = 10,000", target=0.6, per=10_000)
def reads_10k(lib: Any) -> Run:
    x = leaf(lib, 10_000)

    def run() -> Any:
        x.grad = None
        s = x[0]
        for i in range(1, 10_000):
            s = s + x[i]
        s.backward()
        return x.grad

    return run


@row("h[t] = tanh(x[t]), 1,000 rows of 64", per=1_000)
def writes_rows(lib: Any) -> Run:
    x, tanh = leaf(lib, 1_000, 64), lib.tanh

    def run() -> Any:
        x.grad = None
        h = lib.zeros(1_000, 64)
        for t in range(1_000):
            h[t] = tanh(x[t])
        h.sum().backward()
        return x.grad

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Simulators: a pond of waves, gradient of its start; in place here, out of place in PyTorch, which cannot do otherwise"


def pond(lib: Any, size: int, times: int) -> Run:
    """`examples/training/wave.py`: each step changes heights and speeds, and a few heights are recorded."""
    start = leaf(lib, size - 2, size - 2, mean=0, spread=0.1)
    floats = indices(lib, size * size, 60)
    pad = lib.nn.functional.pad
    speed_squared, spring = 0.25, 0.02

    def in_place() -> Any:
        height, speed, record = lib.zeros(size, size), lib.zeros(size - 2, size - 2), lib.empty(times, 60)
        inside = height[1:-1, 1:-1]
        above, below, left, right = height[:-2, 1:-1], height[2:, 1:-1], height[1:-1, :-2], height[1:-1, 2:]
        inside.copy_(start)
        for t in range(times):
            speed.add_(speed_squared * (above + below + left + right - 4 * inside) - spring * inside**3)
            inside.add_(speed)
            record[t] = height.view(-1)[floats]
        return record

    def out_of_place() -> Any:
        height, speed, record = pad(start, (1, 1, 1, 1)), lib.zeros(size - 2, size - 2), []
        for _ in range(times):
            inside = height[1:-1, 1:-1]
            around = height[:-2, 1:-1] + height[2:, 1:-1] + height[1:-1, :-2] + height[1:-1, 2:]
            speed = speed + speed_squared * (around - 4 * inside) - spring * inside**3
            height = pad(inside + speed, (1, 1, 1, 1))
            record.append(height.view(-1)[floats])
        return lib.stack(record)

    simulate = in_place if lib.__name__ == "mutagrad" else out_of_place

    def run() -> Any:
        start.grad = None
        simulate().square().sum().backward()
        return start.grad

    return run


add("pond_80", "80 steps of 32 x 32", partial(pond, size=32, times=80), target=0.6)
add("pond_1000", "1,000 steps of 32 x 32", partial(pond, size=32, times=1000), target=0.6)
add("pond_large", "200 steps of 512 x 512", partial(pond, size=512, times=200), target=0.8, rounds=5)

# --------------------------------------------------------------------------------------------------
GROUP = "Large arrays: one million float32, forward + backward"


@row("10 ops: *, +, sin, exp, tanh, -, sum", target=0.9)
def large_mix(lib: Any) -> Run:
    x, w = leaf(lib, 1_000_000, spread=0.3), leaf(lib, 1_000_000, spread=0.3, seed=1)
    sin, exp, tanh = lib.sin, lib.exp, lib.tanh

    def run() -> Any:
        x.grad = w.grad = None
        h = sin(x * w + 0.5)
        h = tanh(exp(h * 0.5) - w)
        (h * x + w).sum().backward()
        return w.grad

    return run


@row("8 ops: *, +, -, sum", target=1.1)
def large_arithmetic(lib: Any) -> Run:
    x, w = leaf(lib, 1_000_000, spread=0.3), leaf(lib, 1_000_000, spread=0.3, seed=1)

    def run() -> Any:
        x.grad = w.grad = None
        h = x * w + x
        h = (h * 0.5 - w) * h
        (h + x * 2.0).sum().backward()
        return w.grad

    return run


@row("in place: y *= 2, y += x, y -= 1, y.neg_(), sum")
def large_in_place(lib: Any) -> Run:
    x = leaf(lib, 1_000_000)

    def run() -> Any:
        x.grad = None
        y = x.clone()
        y *= 2.0
        y += x
        y -= 1.0
        y.neg_()
        y.sum().backward()
        return x.grad

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Networks and matrices: forward + backward"


def mlp(lib: Any, layers: int, width: int, batch: int) -> Run:
    scale = (2.0 / width) ** 0.5
    weights = [leaf(lib, width, width, mean=0, spread=scale, seed=i) for i in range(layers)]
    biases = [leaf(lib, width, mean=0, seed=i) for i in range(layers)]
    data = leaf(lib, batch, width, mean=0, spread=1, seed=99).detach()
    relu = lib.relu

    def run() -> Any:
        h = data
        for w, b in zip(weights, biases, strict=True):
            w.grad = b.grad = None
            h = relu(h @ w + b)
        (h * h).mean().backward()
        return weights[0].grad

    return run


add("mlp_small", "MLP, 4 layers of 64, batch 32", partial(mlp, layers=4, width=64, batch=32))
add("mlp_medium", "MLP, 4 layers of 512, batch 256", partial(mlp, layers=4, width=512, batch=256))


@row("chain of 8 matmuls, 256 x 256")
def matmul_chain(lib: Any) -> Run:
    x = leaf(lib, 256, 256, mean=0, spread=0.1)
    w = leaf(lib, 256, 256, mean=0, spread=1 / 16, seed=1)

    def run() -> Any:
        x.grad = w.grad = None
        h = x
        for _ in range(8):
            h = h @ w
        h.sum().backward()
        return x.grad

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Reductions and indexing: 256 x 1,024 float32, forward + backward"


@row("sum, mean, var, amax over rows")
def reductions(lib: Any) -> Run:
    x = leaf(lib, 256, 1024, spread=1)

    def run() -> Any:
        x.grad = None
        (x.sum(1) + x.mean(1) + x.var(1) + x.amax(1)).sum().backward()
        return x.grad

    return run


@row("softmax(x, -1), weighted sum")
def softmax(lib: Any) -> Run:
    x, w = leaf(lib, 256, 1024, spread=1), leaf(lib, 256, 1024, spread=1, seed=1)

    def run() -> Any:
        x.grad = w.grad = None
        (lib.softmax(x, -1) * w).sum().backward()
        return w.grad

    return run


@row("x[rows, columns], 100,000 reads")
def index_read(lib: Any) -> Run:
    x, rows, columns = leaf(lib, 256, 1024), indices(lib, 256, 100_000), indices(lib, 1024, 100_000)

    def run() -> Any:
        x.grad = None
        x[rows, columns].sum().backward()
        return x.grad

    return run


@row("index_put_ with accumulate, 100,000 writes")
def index_put(lib: Any) -> Run:
    x, v = leaf(lib, 256, 1024), leaf(lib, 100_000)
    where = indices(lib, 256, 100_000), indices(lib, 1024, 100_000)

    def run() -> Any:
        x.grad = v.grad = None
        x.clone().index_put_(where, v, accumulate=True).sum().backward()
        return v.grad

    return run


@row("y[mask] = v, a scalar")
def mask_write(lib: Any) -> Run:
    x = leaf(lib, 256, 1024, mean=0, spread=1)

    def run() -> Any:
        x.grad = None
        y = x.clone()
        y[x > 0] = 0.5
        y.sum().backward()
        return x.grad

    return run


@row("gather(1, index)")
def gather(lib: Any) -> Run:
    x, index = leaf(lib, 256, 1024), indices(lib, 1024, 256, 1024)

    def run() -> Any:
        x.grad = None
        x.gather(1, index).sum().backward()
        return x.grad

    return run


@row("scatter_add_(1, index, v)")
def scatter_add(lib: Any) -> Run:
    v, index = leaf(lib, 256, 1024), indices(lib, 1024, 256, 1024)

    def run() -> Any:
        v.grad = None
        y = lib.zeros(256, 1024).scatter_add_(1, index, v)
        (y * y).sum().backward()
        return v.grad

    return run


@row("embedding, 32,768 rows of 128 out of 10,000")
def embedding(lib: Any) -> Run:
    table, index = leaf(lib, 10_000, 128), indices(lib, 10_000, 64, 512)

    def run() -> Any:
        table.grad = None
        lib.nn.functional.embedding(index, table).sum().backward()
        return table.grad

    return run


@row("table[index], 4,096 rows of 512 out of 30,000")
def rows_read(lib: Any) -> Run:
    table, index = leaf(lib, 30_000, 512), indices(lib, 30_000, 4096)

    def run() -> Any:
        table.grad = None
        table[index].sum().backward()
        return table.grad

    return run


@row("y[mask] = v, as many values as the mask picks")
def mask_write_values(lib: Any) -> Run:
    x, v = leaf(lib, 256, 1024, mean=0, spread=1), leaf(lib, 256 * 1024)
    mask = (x > 0).detach()
    count = int(mask.sum())

    def run() -> Any:
        x.grad = v.grad = None
        y = x.clone()
        y[mask] = v[:count]
        y.sum().backward()
        return v.grad

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Parts of networks: float32, forward + backward"


def weighted(lib: Any, *shape: int) -> tuple[Any, Any]:
    """An input, and what to weight the result with: a plain sum has the same adjoint everywhere, which is easier."""
    return leaf(lib, *shape, mean=0, spread=1), leaf(lib, *shape, mean=0, spread=1, seed=9).detach()


@row("layer_norm, 4,096 x 1,024")
def layer_norm(lib: Any) -> Run:
    (x, w), scale, shift = weighted(lib, 4096, 1024), leaf(lib, 1024), leaf(lib, 1024, mean=0)

    def run() -> Any:
        x.grad = scale.grad = shift.grad = None
        (lib.nn.functional.layer_norm(x, (1024,), scale, shift) * w).sum().backward()
        return x.grad

    return run


@row("rms_norm, 4,096 x 1,024")
def rms_norm(lib: Any) -> Run:
    (x, w), scale = weighted(lib, 4096, 1024), leaf(lib, 1024)

    def run() -> Any:
        x.grad = scale.grad = None
        (lib.nn.functional.rms_norm(x, (1024,), scale) * w).sum().backward()
        return x.grad

    return run


@row("batch_norm, 32 x 64 x 32 x 32")
def batch_norm(lib: Any) -> Run:
    (x, w), scale, shift = weighted(lib, 32, 64, 32, 32), leaf(lib, 64), leaf(lib, 64, mean=0)

    def run() -> Any:
        x.grad = scale.grad = shift.grad = None
        (lib.nn.functional.batch_norm(x, None, None, scale, shift, True) * w).sum().backward()
        return x.grad

    return run


@row("group_norm, 32 x 64 x 32 x 32, 8 groups")
def group_norm(lib: Any) -> Run:
    (x, w), scale, shift = weighted(lib, 32, 64, 32, 32), leaf(lib, 64), leaf(lib, 64, mean=0)

    def run() -> Any:
        x.grad = scale.grad = shift.grad = None
        (lib.nn.functional.group_norm(x, 8, scale, shift) * w).sum().backward()
        return x.grad

    return run


@row("softmax, 4,096 x 1,024")
def softmax_large(lib: Any) -> Run:
    x, w = weighted(lib, 4096, 1024)

    def run() -> Any:
        x.grad = None
        (lib.softmax(x, -1) * w).sum().backward()
        return x.grad

    return run


@row("cross_entropy, 4,096 x 1,024")
def cross_entropy(lib: Any) -> Run:
    x, target = leaf(lib, 4096, 1024, mean=0, spread=1), indices(lib, 1024, 4096)

    def run() -> Any:
        x.grad = None
        lib.nn.functional.cross_entropy(x, target).backward()
        return x.grad

    return run


@row("gelu, one million")
def gelu(lib: Any) -> Run:
    x, w = weighted(lib, 1_000_000)

    def run() -> Any:
        x.grad = None
        (lib.nn.functional.gelu(x) * w).sum().backward()
        return x.grad

    return run


@row("conv2d, 3 x 3, 32 to 64 channels, 16 x 32 x 32 x 32")
def conv2d(lib: Any) -> Run:
    x, w, b = leaf(lib, 16, 32, 32, 32, mean=0, spread=1), leaf(lib, 64, 32, 3, 3, mean=0, spread=0.1), leaf(lib, 64, mean=0)

    def run() -> Any:
        x.grad = w.grad = b.grad = None
        y = lib.nn.functional.conv2d(x, w, b, padding=1)
        (y * y).mean().backward()
        return w.grad

    return run


@row("attention, 8 x 8 heads, 256 x 64")
def attention(lib: Any) -> Run:
    (q, w), k, v = weighted(lib, 8, 8, 256, 64), leaf(lib, 8, 8, 256, 64, mean=0, spread=1, seed=1), leaf(lib, 8, 8, 256, 64, mean=0, spread=1, seed=2)

    def run() -> Any:
        q.grad = k.grad = v.grad = None
        (lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True) * w).sum().backward()
        return k.grad

    return run


@row("layer_norm, 4 x 8")
def layer_norm_small(lib: Any) -> Run:
    (x, w), scale, shift = weighted(lib, 4, 8), leaf(lib, 8), leaf(lib, 8, mean=0)

    def run() -> Any:
        x.grad = scale.grad = shift.grad = None
        (lib.nn.functional.layer_norm(x, (8,), scale, shift) * w).sum().backward()
        return x.grad

    return run


@row("attention, 2 heads, 4 x 8")
def attention_small(lib: Any) -> Run:
    (q, w), k, v = weighted(lib, 2, 4, 8), leaf(lib, 2, 4, 8, mean=0, spread=1, seed=1), leaf(lib, 2, 4, 8, mean=0, spread=1, seed=2)

    def run() -> Any:
        q.grad = k.grad = v.grad = None
        (lib.nn.functional.scaled_dot_product_attention(q, k, v) * w).sum().backward()
        return k.grad

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Training: float32, forward + backward + step of the optimizer"

RATE = 1e-12  # so small that the gradient, which is compared, is the same after however many steps


def drawn(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Parameters as small as their layers would draw them, the same for every library."""
    random = np.random.default_rng(0)
    spreads = [math.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1 for shape in shapes]
    return [random.normal(0, spread, shape).astype(np.float32) for spread, shape in zip(spreads, shapes, strict=True)]


def filled(model: Any) -> Any:
    """A model whose parameters have equal values in both libraries."""
    parameters = list(model.parameters())
    for p, value in zip(parameters, drawn([tuple(p.shape) for p in parameters]), strict=True):
        p.data.copy_(type(p.data)(value))
    return model


def training(model: Any, optimizer: Any, loss: Callable[[], Any]) -> Run:
    first = next(model.parameters())

    def run() -> Any:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        return first.grad

    return run


def classifier(lib: Any, model: Any, x: Any) -> Run:
    target = indices(lib, 10, x.shape[0])
    return training(model, lib.optim.Adam(model.parameters(), lr=RATE), lambda: lib.nn.functional.cross_entropy(model(x), target))


@row("MLP, 784-512-512-10, batch 128, Adam", target=1.0)
def train_mlp(lib: Any) -> Run:
    nn = lib.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return classifier(lib, filled(model), leaf(lib, 128, 784, mean=0, spread=1).detach())


@row("gradients for each of 256 samples: vmap(grad(loss)), MLP 16-32-32-4")
def samples_mlp(lib: Any) -> Run:
    nn = lib.nn
    model = filled(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)))
    weights = {name: p.detach() for name, p in model.named_parameters()}
    x, target = leaf(lib, 256, 16, mean=0, spread=1).detach(), indices(lib, 4, 256)

    def loss(weights: Any, x: Any, target: Any) -> Any:
        return nn.functional.cross_entropy(lib.func.functional_call(model, weights, (x,)), target)

    every = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: every(weights, x, target)["0.weight"]


def cnn(lib: Any, batch: int) -> Run:
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))  # fmt: skip
    return classifier(lib, filled(model), leaf(lib, batch, 1, 28, 28, mean=0, spread=1).detach())


def cnn_3x3(lib: Any, channels: int, size: int, wide: int, batch: int = 64) -> Run:
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(channels, wide, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(wide, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * (size // 4) ** 2, 10))  # fmt: skip
    return classifier(lib, filled(model), leaf(lib, batch, channels, size, size, mean=0, spread=1).detach())


def lstm(lib: Any, steps: int = 50, batch: int = 32) -> Run:
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(64, 128), nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x.transpose(0, 1))[0][-1])

    return classifier(lib, filled(Model()), leaf(lib, batch, steps, 64, mean=0, spread=1).detach())


def gpt(lib: Any, layers: int = 4, width: int = 128, heads: int = 4, context: int = 128, batch: int = 8, vocabulary: int = 64) -> Run:
    nn, functional = lib.nn, lib.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, heads, width // heads).transpose(1, 2) for part in self.into(x).split(width, dim=2))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.blocks(self.tokens(x) + self.places(lib.arange(x.shape[1])))))

    model = filled(Model())
    text = indices(lib, vocabulary, batch, context + 1)
    x, target = text[:, :-1], text[:, 1:].reshape(-1)
    optimizer = lib.optim.AdamW(model.parameters(), lr=RATE)
    return training(model, optimizer, lambda: functional.cross_entropy(model(x).reshape(-1, vocabulary), target))


add("train_gpt", "GPT, 4 layers of 128, context 128, batch 8, AdamW", gpt, target=1.0)
add("train_cnn", "CNN like LeNet, 28 x 28, batch 64, Adam", partial(cnn, batch=64), target=1.2)


add("train_cnn_28", "CNN, 3 x 3, 16 and 32 channels on 28 x 28, batch 64, Adam", partial(cnn_3x3, channels=1, size=28, wide=16), target=1.2)
add("train_cnn_32", "CNN, 3 x 3, 32 channels on 32 x 32, batch 64, Adam", partial(cnn_3x3, channels=32, size=32, wide=32), target=1.2)
add("train_lstm", "LSTM over 50 steps, 64 to 128, batch 32, Adam", lstm, target=1.2)


@row("Adam alone, 10 million parameters", target=0.5)
def adam_large(lib: Any) -> Run:
    weights = [leaf(lib, 1000, 1000, seed=i) for i in range(10)]
    for i, w in enumerate(weights):
        w.grad = leaf(lib, 1000, 1000, mean=0, seed=99 + i).detach()
    optimizer = lib.optim.Adam(weights, lr=RATE)

    def run() -> Any:
        optimizer.step()
        return weights[0]

    return run


# --------------------------------------------------------------------------------------------------
GROUP = "Import and memory: fresh processes"

add("import", "import", target=0.1)
add(
    "memory",
    "peak of a 50-layer MLP, width 512, batch 512",
    partial(mlp, layers=50, width=512, batch=512),
    target=1.1,
    before=partial(mlp, layers=2, width=8, batch=8),
)
add("memory_process", "the same, whole process", ROWS["memory"].make, before=ROWS["memory"].before)
add("memory_gpt", "peak of training the GPT", gpt, target=1.1, before=partial(gpt, layers=1, width=8, heads=2, context=8, batch=1))
add("memory_cnn", "peak of training the CNN, batch 512", partial(cnn, batch=512), target=1.1, before=partial(cnn, batch=1))
