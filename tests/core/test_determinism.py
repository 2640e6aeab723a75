"""The same program, seed and number of threads give the same bits: again, while others keep the helpers busy, in another process."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.arrays import parallel as large, threads

F = mg.nn.functional
ROWS = 1024 * 1024  # elements: more than any operation needs to be split


def net(module: Any, *shape: int) -> Callable[[], list[Any]]:
    """The result of a module that was made anew, and the gradients of its parameters and of its input."""
    def run() -> list[Any]:
        m, x = module(), mg.randn(*shape, requires_grad=True)
        out = m(x)
        out = out[0] if isinstance(out, tuple) else out
        (out * mg.randn(*out.shape)).sum().backward()
        return [out, x.grad, *(p.grad for p in m.parameters())]

    return run


def function(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        xs = [mg.randn(*shape, requires_grad=True) for shape in shapes]
        out = f(*xs)
        (out * mg.randn(*out.shape)).sum().backward()
        return [out, *(x.grad for x in xs)]

    return run


def trained(optimizer: Any, **settings: Any) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        params = [mg.nn.Parameter(mg.randn(*shape)) for shape in ((700, 700), (700,), (300, 900))]
        made = optimizer(params, **settings)
        for _ in range(2):
            for p in params:
                p.grad = mg.randn(*p.shape)
            made.step()
        return params

    return run


V = (ROWS,)
M = (1024, 1024)
PROGRAMS: dict[str, Callable[[], list[Any]]] = {
    "sum": function(lambda x: x.sum(), V), "mean": function(lambda x: x.mean(), V), "norm": function(lambda x: x.norm(), V),
    "sum of rows": function(lambda x: x.sum(1), M), "sum of columns": function(lambda x: x.sum(0), M), "var": function(lambda x: x.var(0), M),
    "elementwise": function(lambda x, y: mg.exp(mg.sin(x)) * y + mg.tanh(x / (y * y + 1)), V, V), "gelu": function(F.gelu, V),
    "broadcast": function(lambda x, y, z: x * y + z, M, (1024,), (1024, 1)), "in place": function(lambda x: (x * 1).mul_(x).add_(2)[:-1].mul_(x[1:]), V),
    "softmax": function(lambda x: x.softmax(1), M), "log_softmax": function(lambda x: x.log_softmax(0), M), "logsumexp": function(lambda x: x.logsumexp(1), M),
    "amax": function(lambda x: x.amax(1), M), "cumsum": function(lambda x: x.cumsum(0), V), "matmul": function(lambda x, y: x @ y, (512, 512), (512, 512)),
    "transposed": function(lambda x: x.t().contiguous() * 2, M), "embedding": function(
        lambda table: F.embedding(mg.randint(0, 1000, (20_000,)), table), (1000, 64)),
    "index_add": function(lambda x, y: x.index_add(0, mg.randint(0, 512, (2048,)), y), (512, 512), (2048, 512)),
    "gather": function(lambda x: x.gather(1, mg.randint(0, 1024, M)), M), "picked": function(lambda x: x[mg.randint(0, 1024, (99_999,)), 3], M),
    "cross_entropy": function(lambda x: F.cross_entropy(x, mg.randint(0, 1024, (1024,)), weight=mg.rand(1024)), M),
    "layer_norm": net(lambda: mg.nn.LayerNorm(1024), 1024, 1024), "group_norm": net(lambda: mg.nn.GroupNorm(4, 32), 32, 32, 32, 32),
    "batch_norm": net(lambda: mg.nn.BatchNorm2d(32), 32, 32, 32, 32), "rms_norm": net(lambda: mg.nn.RMSNorm(1024), 1024, 1024),
    "instance_norm": net(lambda: mg.nn.InstanceNorm2d(32, affine=True), 32, 32, 32, 32),
    "conv": net(lambda: mg.nn.Conv2d(8, 16, 3), 32, 8, 32, 32), "conv_transpose": net(lambda: mg.nn.ConvTranspose2d(8, 8, 3, 2), 32, 8, 24, 24),
    "max_pool": net(lambda: mg.nn.MaxPool2d(2), 32, 32, 32, 32), "linear": net(lambda: mg.nn.Linear(256, 1024), 512, 256),
    "lstm": net(lambda: mg.nn.LSTM(32, 64, batch_first=True), 64, 8, 32),
    "attention": function(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *[(8, 8, 128, 32)] * 3),
    "dropout": function(lambda x: F.dropout(x, 0.3), V), "transformer": net(
        lambda: mg.nn.TransformerEncoderLayer(32, 4, 256, 0.1, batch_first=True), 32, 64, 32),
    "Adam": trained(mg.optim.Adam), "SGD": trained(mg.optim.SGD, lr=0.1, momentum=0.9), "Adafactor": trained(mg.optim.Adafactor),
    "second order": function(lambda x: mg.autograd.grad((mg.sin(x) * x).sum(), x, create_graph=True)[0], V),
}


def digest(name: str) -> str:
    mg.manual_seed(0)
    found = hashlib.sha256()
    for result in PROGRAMS[name]():
        found.update(result.detach().numpy().tobytes())
    return found.hexdigest()


@pytest.fixture
def several(request: Any) -> Iterator[int]:
    """Sets the number of threads, for one test."""
    before = mg.get_num_threads()
    mg.set_num_threads(request.param)
    yield request.param
    mg.set_num_threads(before)


@pytest.fixture(scope="module")
def busy() -> Iterator[Callable[[bool], None]]:
    """A thread that keeps the helpers at work for as long as it is told to."""
    on, over = threading.Event(), threading.Event()
    x = mg.randn(large.LARGE + 3)

    def run() -> None:
        while not over.is_set():
            if on.wait(0.1):
                mg.exp(x)

    thread = threading.Thread(target=run)
    thread.start()
    yield lambda wanted: on.set() if wanted else on.clear()
    over.set()
    thread.join(60)


ON_THREE = ("sum", "elementwise", "softmax", "layer_norm", "batch_norm", "conv", "attention", "Adam")  # one for each way of cutting


@pytest.mark.parametrize(("name", "several"), [*((name, 2) for name in PROGRAMS), *((name, 3) for name in ON_THREE)], indirect=["several"])
def test_again_and_while_the_helpers_are_busy(name: str, several: int, busy: Callable[[bool], None]) -> None:
    expected = digest(name)
    for repetition in range(3):
        busy(repetition > 0)
        found = digest(name)
        busy(False)
        assert found == expected, f"{name}: other bits in repetition {repetition}"


def test_partial_sums_come_in_the_order_of_the_spans() -> None:
    """Whichever is done first: here the helpers are, then the caller."""
    before, size = mg.get_num_threads(), 100
    mg.set_num_threads(4)
    try:
        for late in range(4):
            gate = threading.Event()

            def work(part: slice) -> int:
                if cuts.index(part) == late:
                    gate.wait(0.05)
                return part.start

            cuts = threads.cut(size, 4)
            assert threads.in_spans(size, work) == [part.start for part in cuts]
            assert threads.in_steps(size, 7, lambda part: part.start) == [s for part in cuts for s in range(part.start, part.stop, 7)]
    finally:
        mg.set_num_threads(before)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 1001])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_cuts_cover_all_and_depend_on_nothing_else(size: int, count: int) -> None:
    found = threads.cut(size, count)
    assert [i for part in found for i in range(part.start, part.stop)] == list(range(size))
    assert len(found) <= count and found == threads.cut(size, count)


def test_other_processes() -> None:
    """Where memory lies and how strings hash differs from one to the next."""
    names = ["sum", "broadcast", "layer_norm", "conv", "embedding", "cross_entropy", "Adam", "second order"]
    program = f"import mutagrad as mg; mg.set_num_threads(2)\nfrom test_determinism import digest\nfor name in {names}: print(name, digest(name))"
    path = os.pathsep.join([str(Path(mg.__file__).parents[1]), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    found = {subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(seed)}, check=True,
                            capture_output=True, text=True, timeout=120).stdout for seed in (1, 2)}
    assert len(found) == 1, "\n".join(line for text in found for line in text.splitlines())
