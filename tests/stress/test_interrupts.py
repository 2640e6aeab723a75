"""Interrupts: a signal handler raises in the midst of the library's work, anywhere. Whatever comes afterwards is as it was before."""

from __future__ import annotations

import dis
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.utils.checkpoint import checkpoint
from mutagrad.utils.data import DataLoader, TensorDataset

from .isolation import isolated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(signal, "setitimer"), reason="needs forks and timers")

SECONDS, MOMENTS = 0.6, 60  # of each kind of work
LARGE = 300_000
PACKAGES = tuple(os.path.dirname(module.__file__) + os.sep for module in (mg, np))  # NumPy sets its error state here and there, too


class Interrupt(BaseException):
    """As KeyboardInterrupt."""


class Timer:
    """Raises an Interrupt in `work` after a while, if it has not ended by then."""

    def __init__(self) -> None:
        self.armed = False
        signal.signal(signal.SIGALRM, self.ring)

    def ring(self, *_: Any) -> None:
        armed, self.armed = self.armed, False
        if armed:
            raise Interrupt

    def interrupts(self, work: Callable[[], Any], delay: float) -> bool:
        try:
            try:
                self.armed = True
                signal.setitimer(signal.ITIMER_REAL, delay)
                work()
            finally:
                self.armed = False
        except Interrupt:
            return True
        return False


# Kinds of work: each makes what it needs, and gives what is to be interrupted.

Work = Callable[[], Callable[[], Any]]


def graph(size: int = 40) -> tuple[mg.Tensor, mg.Tensor]:
    x = mg.ones(size, requires_grad=True)
    y = x * 2
    for i in range(6):
        y[i] = y[i + 1] * y[i]
        y[1:].mul_(0.5)
    y.register_hook(lambda g: g * 1.0)
    return x, (y.sin() * y / (y * y + 1)).sum()


def sweep() -> Callable[[], Any]:
    return graph()[1].backward


def recorded_sweep() -> Callable[[], Any]:
    x, loss = graph()

    def work() -> None:
        g, = mg.autograd.grad(loss, x, create_graph=True)
        g.sum().backward()

    return work


def step() -> Callable[[], Any]:
    parameters = [mg.ones(5, requires_grad=True) for _ in range(3)]
    optimizers = [kind(parameters, lr=0.1) for kind in (mg.optim.Adam, mg.optim.SGD, mg.optim.RMSprop)]
    for p in parameters:
        p.grad = mg.ones(5)

    def work() -> None:
        for optimizer in optimizers:
            optimizer.step()
        optimizers[0].zero_grad()

    return work


class Cube(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: mg.Tensor) -> mg.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: mg.Tensor) -> mg.Tensor:
        x, = ctx.saved_tensors
        return 3 * x**2 * g


def function() -> Callable[[], Any]:
    x = mg.ones(40, requires_grad=True)
    return lambda: Cube.apply(Cube.apply(x)).sum().backward()


def region() -> Callable[[], Any]:
    x = mg.ones(40, requires_grad=True)
    return lambda: checkpoint(lambda t: (t.sin() * t).sum(), x, use_reentrant=False).backward()


def batches() -> Callable[[], Any]:
    loader = DataLoader(TensorDataset(mg.arange(24.0), mg.arange(24)), batch_size=4, shuffle=True)
    return lambda: [batch[0] * 2 for batch in loader]


def transforms() -> Callable[[], Any]:
    x = mg.ones(3)

    def work() -> None:
        mg.func.vmap(mg.func.grad(lambda t: (t.sin() * t).sum()))(mg.ones(2, 3))
        mg.func.jvp(lambda t: t * t, (x,), (x,))

    return work


def writes() -> Callable[[], Any]:
    x, index = mg.ones(60, requires_grad=True), mg.tensor([1, 5, 7])

    def work() -> None:
        y = x * 1
        for i in range(10):
            y[i] = y[i] * y[i + 1]
        y[index] += y[:3]
        y.div_(y.square() + 1).clamp_(-1, 1)
        mg.log(y * 0, out=y)

    return work


def large() -> Callable[[], Any]:
    """On helpers, too."""
    x = mg.ones(LARGE, requires_grad=True)
    return lambda: (mg.exp(mg.sin(x)) * x).sum().backward()


def modules() -> Callable[[], Any]:
    model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.LayerNorm(8), mg.nn.ReLU(), mg.nn.Dropout(0.2), mg.nn.Linear(8, 2))
    x, classes = mg.ones(6, 4), mg.zeros(6, dtype=mg.int64)
    return lambda: mg.nn.functional.cross_entropy(model(x), classes).backward()


def library() -> Callable[[], Any]:
    """Functions that switch recording off or on for a part of their work."""
    model = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.BatchNorm1d(3))
    state, normal, matrix = model.state_dict(), mg.distributions.Normal(mg.zeros(2), mg.ones(2)), mg.nn.Parameter(mg.eye(3))
    bounded, spectral = mg.nn.Embedding(4, 2, max_norm=1.0), mg.nn.utils.spectral_norm(mg.nn.Linear(3, 3))

    def work() -> None:
        model.load_state_dict(state)
        model.to(mg.float64).to(mg.float32)
        mg.nn.Linear(2, 2)
        mg.nn.init.orthogonal_(matrix)
        mg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        normal.sample()
        bounded(mg.tensor([0, 1]))
        spectral(mg.ones(1, 3))
        mg.autograd.gradcheck(lambda x: x * x, mg.ones(2, dtype=mg.float64, requires_grad=True))
        mg.autograd.functional.jacobian(lambda x: x * x, mg.ones(2))

    return work


WORKS: dict[str, Work] = {f.__name__: f for f in (sweep, recorded_sweep, step, function, region, batches, transforms, writes, large, modules, library)}


# What must hold afterwards.


def check_state(errors: Any) -> None:
    assert mg.is_grad_enabled(), "operations are not recorded any more"
    assert np.geterr() == errors, "NumPy's error state has changed"
    try:
        mg.autograd.Variable._execution_engine.queue_callback(lambda: None)
    except RuntimeError:
        return
    raise AssertionError("a sweep is still open")


def check_results() -> None:
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[0] = y[1] * y[2]
    g, = mg.autograd.grad((y * y).sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 592.0, 408.0]
    mg.where(x > 2, (x - 2).sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.5]
    assert [len(b) for b, in DataLoader(TensorDataset(mg.arange(5)), batch_size=2)] == [2, 2, 1]
    assert mg.func.grad(lambda t: t**3)(mg.tensor(2.0)).item() == 12.0


def check_large(rng: np.random.Generator) -> None:
    """Several times: work that an earlier call has left over would come back in the place of this."""
    for _ in range(4):
        array = rng.uniform(-1, 1, LARGE)
        np.testing.assert_allclose(mg.exp(mg.sin(mg.tensor(array))).numpy(), np.exp(np.sin(array)), 1e-12)


def check_threads(errors: Any) -> None:
    raised: list[BaseException] = []

    def other() -> None:
        try:
            check_state(np.geterr())
            check_results()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert not raised, raised[0]


# Rounds.


def duration(make: Work) -> float:
    """How long the work takes, undisturbed: the least of some times."""
    times = []
    for _ in range(8):
        work = make()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def rounds(name: str, seed: int, seconds: float) -> None:
    """Interrupts one kind of work again and again, at all moments alike."""
    make, timer, errors = WORKS[name], Timer(), np.geterr()
    sys.unraisablehook = lambda _: None  # an interrupt while something is being destroyed is only printed
    r, rng = random.Random(seed), np.random.default_rng(seed)
    mg.set_num_threads(3)
    longest = 1.3 * duration(make)
    end, count, done = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        done += 1
        if timer.interrupts(make(), r.uniform(1e-6, longest)):
            count += 1
            check_state(errors)
            if count % (5 if name == "large" else 40) == 0:
                check_results()
                check_large(rng)
    check_results()
    check_large(rng)
    check_threads(errors)
    assert count >= 0.1 * done, f"only {count} of {done} were interrupted"


# The same without chance: at one moment after the other of those at which Python lets handlers run.


class Stop:
    """Raises an Interrupt when the library, or NumPy, enters a function or comes back from one written in C for the n-th time."""

    def __init__(self, n: int = -1) -> None:
        self.n, self.places = n, []  # type: ignore[var-annotated]

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(PACKAGES):
            return
        self.places.append((frame.f_code.co_filename, frame.f_lineno, event))
        if len(self.places) == self.n:
            sys.setprofile(None)
            raise Interrupt

    def stops(self, work: Callable[[], Any]) -> bool:
        try:
            sys.setprofile(self)
            work()
        except Interrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


def moments(make: Work, r: random.Random) -> list[int]:
    """One for each place in the code, and some at random."""
    counter = Stop()
    counter.stops(make())
    first = {place: n for n, place in reversed(list(enumerate(counter.places, 1)))}
    return [*first.values(), *r.sample(range(1, len(counter.places) + 1), min(len(counter.places), MOMENTS))]


def at_each_moment(name: str, seed: int) -> None:
    make, errors = WORKS[name], np.geterr()
    sys.unraisablehook = lambda _: None
    make()()  # what happens once only is not looked at
    for n in moments(make, random.Random(seed)):
        stop = Stop(n)
        stop.stops(make())
        try:
            check_state(errors)
        except AssertionError as error:
            raise AssertionError(f"interrupted at {stop.places[-1]}: {error}") from None
    check_results()
    check_large(np.random.default_rng(seed))
    check_threads(errors)


def run(seed: int) -> None:
    name = random.Random(seed).choice(list(WORKS))
    isolated(lambda: rounds(name, seed, SECONDS))
    isolated(lambda: at_each_moment(name, seed))


def codes(code: Any) -> Iterator[Any]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="handlers are not in tables")
@pytest.mark.parametrize("module", ["arrays/threads.py", "arrays/blas.py", "base/modes.py", "base/locks.py", "core/backward.py", "core/storage.py"])
def test_no_jump_back_passes_by_a_handler(module: str) -> None:
    """Where a handler may run, and what it raises would leave a lock taken or a helper at work."""
    path = Path(mg.__file__).parent / module
    for code in codes(compile(path.read_text(encoding="utf-8"), str(path), "exec")):
        entries, instructions = dis.Bytecode(code).exception_entries, list(dis.get_instructions(code))  # type: ignore[attr-defined]
        cleaning = {i.offset for i in instructions if i.opname == "PUSH_EXC_INFO"}
        for jump in (i for i in instructions if i.opname.startswith("JUMP_BACKWARD")):
            for target in cleaning:
                ranges = sorted((e.start, e.end) for e in entries if e.target == target)
                inside = ranges and ranges[0][0] <= jump.offset < ranges[-1][1]
                assert not inside or any(start <= jump.offset < end for start, end in ranges), f"{module}: {code.co_name} at {jump.offset}"


@pytest.mark.parametrize("name", WORKS)
def test_each_moment(name: str) -> None:
    isolated(lambda: at_each_moment(name, 0))


@pytest.mark.parametrize("name", WORKS)
def test_interrupts(name: str) -> None:
    isolated(lambda: rounds(name, 0, SECONDS))
