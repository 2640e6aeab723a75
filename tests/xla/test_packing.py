"""Memory that is handed over packed: whatever else is done with it between two runs, a step computes what it did."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

pytest.importorskip("jax")

from mutagrad.xla import packing


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(packing, "PLATFORMS", {"cpu"})
    yield


class Training:
    """Two networks, and steps over one and over both of them."""

    def __init__(self, compiled: bool) -> None:
        mg.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).to("xla").double()
        self.other = nn.Linear(2, 1).to("xla").double()
        self.optimizer = mg.optim.Adam(self.model.parameters(), lr=0.01)
        self.both = mg.optim.SGD([*self.model.parameters(), *self.other.parameters()], lr=0.01, momentum=0.9)
        self.x, self.y = mg.randn(8, 3).double().to("xla"), mg.randn(8, 2).double().to("xla")
        self.kept: list[Any] = []
        wrap: Callable[[Any], Any] = mg.compile if compiled else lambda step: step
        self.one_step, self.both_step = wrap(self.step), wrap(self.step_both)

    def step(self) -> Any:
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def step_both(self) -> Any:
        self.both.zero_grad()
        loss = self.other(self.model(self.x)).square().mean()
        loss.backward()
        self.both.step()
        return loss.detach()

    # What is done between two runs; each returns something that is compared.
    def read(self) -> Any:
        return self.model[0].weight.sum()

    def read_gradient(self) -> Any:
        return None if self.model[3].weight.grad is None else self.model[3].weight.grad * 2

    def keep_gradient(self) -> None:
        self.kept.append(self.model[0].bias.grad)

    def keep_clone(self) -> None:
        self.kept += [self.model[0].weight.detach().clone(), self.model[1].running_mean.clone()]

    def write(self) -> None:
        with mg.no_grad():
            self.model[0].weight[1].mul_(0.5)

    def write_all(self) -> None:
        with mg.no_grad():
            self.model[3].bias.copy_(mg.ones(2).double().to("xla"))

    def write_gradient(self) -> None:
        if self.model[0].weight.grad is not None:
            self.model[0].weight.grad.zero_()

    def no_gradient(self) -> None:
        self.model[3].bias.grad = None

    def no_gradients(self) -> None:
        self.model.zero_grad()

    def data(self) -> None:
        self.model[0].bias.data = self.model[0].bias.data * 0.5

    def saved_for_later(self) -> Any:
        """A history outside of the step still needs what the step will write."""
        out = self.model[0].weight.square().sum()
        self.one_step()
        return mg.autograd.grad(out, self.model[0].weight)[0]

    def load(self) -> None:
        state = copy.deepcopy(self.model.state_dict())
        self.one_step()
        self.model.load_state_dict(state)

    def load_optimizer(self) -> None:
        state = copy.deepcopy(self.optimizer.state_dict())
        self.one_step()
        self.optimizer.load_state_dict(state)

    def evaluate(self) -> Any:
        with mg.no_grad():
            return self.model.eval()(self.x).sum() + 0 * len(self.model.train()._modules)

    def rate(self) -> None:
        self.optimizer.param_groups[0]["lr"] *= 0.9

    def collect(self) -> None:
        gc.collect()

    def seen(self) -> list[Any]:
        tensors = [*self.model.state_dict().values(), *self.other.parameters(),
                   *(p.grad for p in self.model.parameters() if p.grad is not None), *filter(lambda v: v is not None, self.kept)]
        return [t.detach().cpu().numpy().copy() for t in tensors]


BETWEEN = [name for name in vars(Training) if name not in ("step", "step_both", "seen") and not name.startswith("_")]


def ran(compiled: bool, seed: int) -> tuple[list[Any], int]:
    rng = np.random.default_rng(seed)
    training, found, packed = Training(compiled), [], 0
    for _ in range(20):
        step = training.both_step if rng.random() < 0.15 else training.one_step
        for _ in range(int(rng.integers(1, 6))):
            found.append(step().item())
            packed += any(type(p._array.cell) is packing.Packed for p in training.model.parameters())
        result = getattr(training, BETWEEN[rng.integers(len(BETWEEN))])()
        found.append(None if result is None else result.detach().cpu().numpy().copy())
    return [*found, *training.seen()], packed


def test_each_of_these_on_packed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "FIRST", 1)
    monkeypatch.setattr(packing, "LASTING", 0)
    compiled, wanted = Training(True), Training(False)
    for name in BETWEEN:
        for _ in range(4):
            compiled.one_step()
            wanted.one_step()
        assert type(compiled.model[3].bias._array.cell) is packing.Packed
        getattr(compiled, name)()
        getattr(wanted, name)()
        for _ in range(2):
            compiled.one_step()
            wanted.one_step()
        for one, other in zip(compiled.seen(), wanted.seen()):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_done_between_two_runs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "FIRST", 1)
    monkeypatch.setattr(packing, "LASTING", 1)  # packed again at once
    found, packed = ran(True, seed)
    wanted, _ = ran(False, seed)
    assert packed >= 10
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        if one is None:
            assert other is None
        else:
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def steady() -> Training:
    training = Training(True)
    for _ in range(5):
        training.one_step()
    assert type(training.model[0].weight._array.cell) is packing.Packed
    return training


def test_what_an_optimizer_keeps_is_packed_as_well_and_explained() -> None:
    training = steady()
    assert all(type(state["exp_avg"]._array.cell) is packing.Packed for state in training.optimizer.state.values())
    assert all(type(p.grad._array.cell) is packing.Packed for p in training.model.parameters() if p.grad is not None)
    explanation = training.one_step.explain()
    assert explanation.packed == 27  # 6 parameters, with gradients and two moments; 3 buffers of the norm
    assert "27 memories" in str(explanation)


def test_an_arena_that_is_opened_again_and_again_is_made_ever_less_often() -> None:
    training, packed = Training(True), []
    for _ in range(70):
        training.one_step()
        packed.append(type(training.model[0].weight._array.cell) is packing.Packed)
        training.read()
    assert 1 <= sum(packed) <= 6


def test_one_that_lasts_is_made_again_at_once() -> None:
    training = steady()
    for _ in range(3):
        for _ in range(packing.LASTING + 2):
            training.one_step()
        training.read()
        for _ in range(packing.FIRST + 1):
            training.one_step()
        assert type(training.model[0].weight._array.cell) is packing.Packed


def test_a_memory_that_nobody_has_any_more_does_not_come_back() -> None:
    training = steady()
    training.model[3].bias.grad = None
    training.one_step()
    assert training.model[3].bias.grad is not None
    training.read()


def test_other_threads_read_while_it_runs() -> None:
    training, stop = steady(), threading.Event()
    found: list[Any] = []

    def reading() -> None:
        while not stop.is_set():
            try:
                found.append(float(training.model[0].weight.sum()))
            except Exception as error:
                found.append(error)

    reader = threading.Thread(target=reading)
    reader.start()
    for _ in range(200):
        training.one_step()
    stop.set()
    reader.join()
    wanted = Training(False)
    for _ in range(205):
        wanted.one_step()
    errors = [e for e in found if isinstance(e, Exception)]
    assert not errors, errors[0]
    np.testing.assert_allclose(training.model[0].weight.detach().cpu().numpy(),
                               wanted.model[0].weight.detach().cpu().numpy(), rtol=2e-2, atol=2e-3)


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tenth cell that is packed, or gets a value again, is one too many."""
    held, count = packing.HELD, 0

    class Interrupted:
        @staticmethod
        def __get__(cell: Any) -> Any:
            return held.__get__(cell)

        @staticmethod
        def __set__(cell: Any, value: Any) -> None:
            nonlocal count
            count += 1
            if count == 10:
                raise KeyboardInterrupt
            held.__set__(cell, value)

    with monkeypatch.context() as patched:
        patched.setattr(packing, "HELD", Interrupted)
        yield


def test_an_interrupt_while_it_is_opened_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    training, wanted = steady(), Training(False)
    with interrupted(monkeypatch), pytest.raises(KeyboardInterrupt):
        training.read()
    for _ in range(5):
        wanted.one_step()
    for who in (training, wanted):
        with mg.no_grad():
            for p in who.model.parameters():
                p.mul_(0.5)
    for _ in range(3):
        training.one_step()
        wanted.one_step()
    for one, other in zip(training.seen(), wanted.seen()):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_an_interrupt_while_it_is_packed_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    training, wanted = Training(True), Training(False)
    for _ in range(packing.FIRST):
        training.one_step()
    with interrupted(monkeypatch), pytest.raises(KeyboardInterrupt):
        training.one_step()
    for _ in range(packing.FIRST):
        wanted.one_step()
    for who in (training, wanted):
        found = [*who.model.parameters(), *(state["exp_avg"] for state in who.optimizer.state.values())]
        with mg.no_grad():
            for p in sorted(found, key=lambda p: type(p._array.cell) is packing.Packed if who is training else 0):
                p.mul_(0.5)  # those first that are not packed yet
    for one, other in zip(training.seen(), wanted.seen()):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    for _ in range(9):
        training.one_step()
        wanted.one_step()
    for one, other in zip(training.seen(), wanted.seen()):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@pytest.fixture
def two_programs(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """One that changes a and b in place, whose memory is packed, and one that writes a without reading it, and changes c."""
    monkeypatch.setattr(packing, "FEWEST", 1)
    a, b, c = (mg.full((3,), float(k)).to("xla") for k in range(3))

    def both() -> None:
        a.add_(1)
        b.add_(1)

    def fill() -> None:
        a.fill_(5)
        c.add_(1)

    one, other = mg.compile(both), mg.compile(fill)
    other()
    for _ in range(4):
        one()
    assert type(a._array.cell) is packing.Packed
    return one, other, a, b, c


def test_an_interrupt_while_an_arena_is_opened_leaves_nothing_stale(
        two_programs: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    one, _, a, b, _ = two_programs
    held, count = packing.HELD, 0

    class Interrupted:
        def __get__(self, *arguments: Any) -> Any:
            return held.__get__(*arguments)

        def __set__(self, *arguments: Any) -> None:
            nonlocal count
            count += 1
            if count == 2:
                raise KeyboardInterrupt
            held.__set__(*arguments)

    with monkeypatch.context() as patched:
        found = Interrupted()
        patched.setattr(packing, "HELD", type("Held", (), {"__get__": staticmethod(found.__get__),
                                                           "__set__": staticmethod(found.__set__)}))
        with pytest.raises(KeyboardInterrupt):
            a.sum()
    one()
    assert a.tolist() == [10] * 3 and b.tolist() == [6] * 3


def test_an_interrupt_while_what_another_program_writes_is_opened_loses_nothing(
        two_programs: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, a, b, c = two_programs

    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(packing.Arena, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other()
    assert [t.tolist()[0] for t in (a, b, c)] == [9, 5, 3]
    other()
    one()
    assert [t.tolist()[0] for t in (a, b, c)] == [6, 6, 4]


def test_without_assertions_what_is_written_is_not_stale() -> None:
    source = """
import mutagrad as mg
from mutagrad.xla import packing
packing.PLATFORMS, packing.FEWEST = {"cpu"}, 1
a, b = mg.zeros(3).to("xla"), mg.zeros(3).to("xla")
step, other = mg.compile(lambda: (a.add_(1), b.add_(1))), mg.compile(lambda: a.fill_(5))
other()
for _ in range(4):
    step()
if type(a._array.cell) is packing.Packed:
    other()
    step()
    print(a.tolist(), b.tolist())
"""
    found = subprocess.run([sys.executable, "-O", "-c", source], capture_output=True, text=True, check=True).stdout
    assert found.split("\n")[0] == "[6.0, 6.0, 6.0] [5.0, 5.0, 5.0]"
