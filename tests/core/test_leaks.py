"""Memory stays flat over thousands of training steps, without help of the cycle collector: a graph dies with its tensors."""
from __future__ import annotations

import gc
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.nn import functional

WARM_UP, STEPS = 500, 5000
MOST_GROWTH = 2 << 20  # an array of 128 floats for each step would be more

Step = Callable[[], object]


def batch(*shape: int) -> mg.Tensor:
    return mg.tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def mlp_with_adam() -> Step:
    model = mg.nn.Sequential(mg.nn.Linear(8, 64), mg.nn.ReLU(), mg.nn.Linear(64, 3))
    optimizer = mg.optim.Adam(model.parameters())
    x, target = batch(16, 8), mg.tensor([0, 1, 2, 0] * 4)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step


def lstm_with_carried_state() -> Step:
    cell = mg.nn.LSTMCell(4, 16)
    optimizer = mg.optim.SGD(cell.parameters(), lr=0.01, momentum=0.9)
    x = batch(8, 4)
    state = [mg.zeros(8, 16), mg.zeros(8, 16)]

    def step() -> None:
        optimizer.zero_grad()
        h, c = cell(x, (state[0].detach(), state[1].detach()))
        (h * h).mean().backward()
        optimizer.step()
        state[:] = h, c

    return step


class WithBuffers(mg.nn.Module):
    """Writes into buffers that live on: a ring of its latest results, and a sum that is recorded and then cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = mg.nn.Linear(8, 8)
        self.norm = mg.nn.BatchNorm1d(8)
        self.ring: mg.Tensor
        self.register_buffer("ring", mg.zeros(4, 16, 8))
        self.calls = 0

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        y = self.norm(self.linear(x))
        self.ring[self.calls % 4] = y
        self.calls += 1
        total = self.ring.sum()
        self.ring.detach_()
        return total


def model_that_mutates_buffers() -> Step:
    model = WithBuffers()
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
    x = batch(16, 8)

    def step() -> None:
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()

    return step


def evaluation() -> Step:
    """Results that are recorded and dropped without a backward pass."""
    model = mg.nn.Sequential(mg.nn.Linear(8, 16), mg.nn.Tanh(), mg.nn.Linear(16, 1))
    x = batch(16, 8)
    return lambda: model(x).sum().item()


def live_objects() -> Counter[str]:
    """How many objects of this package's types there are, by name."""
    kinds = (type(thing) for thing in gc.get_objects())
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).partition(".")[0] == "mutagrad")


def resident_bytes() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


PROGRAMS = [mlp_with_adam, lstm_with_carried_state, model_that_mutates_buffers, evaluation]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="resident memory is read from /proc")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.usefixtures("no_collector")
def test_memory_is_flat(program: Callable[[], Step]) -> None:
    step = program()
    for _ in range(WARM_UP):
        step()
    objects, resident = live_objects(), resident_bytes()
    for _ in range(STEPS - WARM_UP):
        step()
    assert live_objects() == objects
    assert resident_bytes() - resident < MOST_GROWTH


@pytest.mark.usefixtures("no_collector")
def test_a_leak_is_noticed() -> None:
    step, kept = mlp_with_adam(), []
    step()
    before = live_objects()
    x = batch(4).requires_grad_()
    kept.append(x * 2)
    assert live_objects() != before
