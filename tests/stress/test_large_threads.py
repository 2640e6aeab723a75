"""Large arrays on several threads: operands that overlap the target, several of the user's threads, interrupts at any moment.

MUTAGRAD_STRESS_SECONDS in the environment says for how long each of the random tests runs (1.2 if not set).
"""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import blas, parallel as large, threads

SECONDS = float(os.environ.get("MUTAGRAD_STRESS_SECONDS", "1.2"))
LARGE = large.LARGE


@pytest.fixture(params=[2, 3])
def several(request: Any) -> Iterator[int]:
    """Sets the number of threads, for one test."""
    before = mg.get_num_threads()
    mg.set_num_threads(request.param)
    yield request.param
    mg.set_num_threads(before)


# ----------------------------------------------------------------------------------------------------------------- overlap

# Each writes into its first argument; they need not be of the same length.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda x, y: x.add_(y), "mul_": lambda x, y: x.mul_(y), "div_": lambda x, y: x.div_(y), "atan2_": lambda x, y: x.atan2_(y),
    "sub_ alpha": lambda x, y: x.sub_(y, alpha=0.5), "pow_": lambda x, y: x.pow_(y), "maximum out": lambda x, y: mg.maximum(x, y, out=x),
    "lerp_": lambda x, y: x.lerp_(y, 0.25), "addcmul_": lambda x, y: x.addcmul_(y, y), "copysign_": lambda x, y: x.copysign_(y),
    "fmod_": lambda x, y: x.fmod_(y), "hypot_": lambda x, y: x.hypot_(y), "copy_": lambda x, y: x.copy_(y), "other first": lambda x, y: mg.div(y, x, out=x),
    "where": lambda x, y: mg.where(y > 1, y, x, out=x),
}
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, y: mg.exp(y, out=x), "sin": lambda x, y: mg.sin(y, out=x), "sqrt": lambda x, y: mg.sqrt(y, out=x), "neg": lambda x, y: mg.neg(y, out=x),
    "sigmoid": lambda x, y: mg.sigmoid(y, out=x), "rsqrt": lambda x, y: mg.rsqrt(y, out=x), "square": lambda x, y: mg.square(y, out=x),
    "clamp": lambda x, y: mg.clamp(y, 0.6, 1.4, out=x), "cumsum": lambda x, y: mg.cumsum(y, 0, out=x),
}


def windows(source: random.Random, buffer: Any, n: int) -> tuple[Any, Any]:
    """A target of n elements, and an operand that shares its memory or part of it; both are windows of one vector."""
    room = len(buffer) - n
    shift = source.choice([0, 1, 7, source.randrange(1, room), n // 2])
    first = source.randrange(0, max(room - shift, 0) + 1)
    target, operand = buffer[first:first + n], buffer[min(first + shift, room):][:n]
    if source.random() < 0.5:
        target, operand = operand, target
    kind = source.randrange(6)
    if kind == 0:
        operand = target[source.randrange(n)]  # an element, which is a window as well
    elif kind == 1:
        operand = target[source.randrange(n)].expand(n)
    elif kind == 2:
        operand = target.flip(0) if source.random() < 0.5 else target.detach()
    elif kind == 3 and n % 2 == 0:
        operand, target = operand.reshape(n // 2, 2), target.reshape(n // 2, 2)
    return target, operand


def test_operands_that_overlap_the_target_are_read_before_it_is_written(several: int) -> None:
    source, end, seen = random.Random(several), time.monotonic() + SECONDS, 0
    start = np.random.default_rng(several).uniform(0.5, 1.5, 3 * LARGE + 60_000).astype(np.float32)
    while time.monotonic() < end or seen < 40:
        name, write = source.choice([*BINARY.items(), *UNARY.items()])
        buffer = mg.tensor(start)
        target, operand = windows(source, buffer, source.choice([LARGE + 5, 300_000, 3 * LARGE + 1]))
        if name in UNARY and operand.shape != target.shape:
            continue
        expected = target.clone()
        write(expected, operand.clone())
        whole = buffer.numpy().copy()
        write(target, operand)
        text = f"{name}, {tuple(target.shape)} of a vector, offsets {target.storage_offset()} and {operand.storage_offset()}, operand {tuple(operand.shape)}"
        np.testing.assert_array_equal(target.numpy(), expected.numpy(), err_msg=text)
        first = target.storage_offset()
        whole[first:first + target.numel()] = expected.numpy().reshape(-1)
        np.testing.assert_array_equal(buffer.numpy(), whole, err_msg=f"{text}: other elements have changed")
        seen += 1


def test_the_gradient_of_a_large_overlapping_write() -> None:
    n = 3 * LARGE + 1
    x = mg.full((n + 1,), 1.0, dtype=mg.float64, requires_grad=True)
    y = x * mg.linspace(1, 2, n + 1, dtype=mg.float64)
    old = y.detach().clone()
    y[:-1].mul_(y[1:])
    np.testing.assert_array_equal(y.detach().numpy()[:-1], old.numpy()[:-1] * old.numpy()[1:])
    y.sum().backward()
    g = np.zeros(n + 1)
    g[:-1] += old.numpy()[1:]
    g[1:] += old.numpy()[:-1]
    g[-1] += 1
    np.testing.assert_allclose(x.grad.numpy(), g * np.linspace(1, 2, n + 1), 1e-12)


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("accumulate", ["index_add_", "index_put_"])
def test_rows_added_to_the_rows_they_come_from(accumulate: str, foreign: bool) -> None:
    """Also where only NumPy knows that they are the same memory."""
    start = np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32)
    picks = np.random.default_rng(1).integers(0, 3000, 3000)
    expected = start.astype(np.float64)
    np.add.at(expected, picks, start)
    x, rows = mg.from_numpy(start), mg.tensor(picks)
    y = mg.from_numpy(start) if foreign else x
    x.index_add_(0, rows, y) if accumulate == "index_add_" else x.index_put_((rows,), y, accumulate=True)
    np.testing.assert_allclose(x.numpy(), expected, 1e-4, 1e-4)


@pytest.mark.parametrize("foreign", [False, True])
def test_an_optimizer_of_parameters_that_share_memory_updates_one_after_the_other(several: int, foreign: bool) -> None:
    n, shift = 400_000, 1000
    start = np.random.default_rng(2).normal(size=n + shift).astype(np.float32)

    def params() -> tuple[list[Any], Any]:
        if foreign:
            array = start.copy()
            return [mg.from_numpy(array[:n]).requires_grad_(), mg.from_numpy(array[shift:]).requires_grad_()], array
        flat = mg.tensor(start)
        return [flat[:n].requires_grad_(), flat[shift:].requires_grad_()], flat.numpy()

    both, memory = params()
    for p in both:
        p.grad = mg.ones(n)
    mg.optim.AdamW(both, lr=0.1, weight_decay=0.5).step()
    (first, second), expected = params()
    for p in (first, second):
        p.grad = mg.ones(n)
        mg.optim.AdamW([p], lr=0.1, weight_decay=0.5).step()
    np.testing.assert_array_equal(memory, expected)


def test_a_gradient_that_is_memory_of_a_parameter(several: int) -> None:
    start = np.random.default_rng(3).normal(size=600_001).astype(np.float32)
    for own in (True, False):
        flat, other = mg.tensor(start), mg.tensor(start[:-1], requires_grad=True)
        p = flat[:-1].requires_grad_() if own else mg.tensor(start[:-1], requires_grad=True)
        p.grad = flat.detach()[1:] if own else other.detach()
        other.grad = mg.ones(600_000)
        mg.optim.SGD([p] if own else [other, p], lr=0.5).step()
        read = start[1:] if own else start[:-1] - np.float32(0.5)  # other comes first, and p's gradient is its memory
        np.testing.assert_array_equal(p.detach().numpy(), start[:-1] - np.float32(0.5) * read)


# ---------------------------------------------------------------------------------------------------- the user's own threads

def test_threads_of_the_user_share_the_helpers(several: int) -> None:
    """Each gets the bits that it would get alone."""
    rng, end = np.random.default_rng(4), time.monotonic() + SECONDS
    inputs = [mg.tensor(rng.normal(size=3 * LARGE + 7).astype(np.float32)) for _ in range(4)]

    def program(x: Any) -> Any:
        return (mg.exp(mg.sin(x)) * x).sum().item(), mg.softmax(x.reshape(-1, 1), 0).amax().item(), x.clone().mul_(x).add_(1).tanh().mean().item()

    expected, wrong = [program(x) for x in inputs], []

    def run(x: Any, answer: Any) -> None:
        while time.monotonic() < end:
            if program(x) != answer:
                wrong.append(answer)

    workers = [threading.Thread(target=run, args=pair) for pair in zip(inputs, expected)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not wrong and not any(worker.is_alive() for worker in workers)


def test_spans_inside_spans(several: int) -> None:
    found = threads.in_spans(20, lambda part: sum(sum(threads.in_spans(100, lambda inner: inner.stop - inner.start)) for _ in range(part.start, part.stop)))
    assert sum(found) == 2000 and len(found) == several


def test_an_error_on_a_helper_is_raised_once_all_are_done(several: int) -> None:
    done: list[int] = []

    def work(part: slice) -> None:
        if part.start:
            time.sleep(0.01)
            raise KeyError(part.start)
        time.sleep(0.02)
        done.append(part.start)

    for _ in range(5):
        done.clear()
        with pytest.raises(KeyError):
            threads.in_spans(100, work)
        assert done == [0]
    assert sum(threads.in_spans(100, lambda part: part.stop - part.start)) == 100


def test_all_threads_compute_silently(several: int) -> None:
    """Whether an error state is in force must not depend on who does the work."""
    here, met = threading.get_ident(), threading.Barrier(several, timeout=60)

    def work(part: slice) -> tuple[bool, str]:
        met.wait()
        return threading.get_ident() == here, np.geterr()["over"]

    with np.errstate(over="raise"):
        found = threads.in_spans(100, work)
    assert sorted(found, reverse=True) == [(True, "ignore"), *[(False, "ignore")] * (several - 1)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_has_helpers_of_its_own() -> None:
    program = """
import mutagrad as mg, os
mg.set_num_threads(3)
x = mg.ones(1_000_000)
first = mg.exp(x).sum().item()
if (child := os.fork()) == 0:
    os._exit(0 if mg.exp(x).sum().item() == first else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_program(program) == "0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_is_not_held_up_by_locks_of_threads_that_it_does_not_have() -> None:
    program = """
import mutagrad as mg, os, sys, threading
def busy():
    x = mg.ones(100, requires_grad=True)
    while True:
        y = x * 2
        z = (y * y).sum()
        y.zero_()
        z.backward()
sys.setswitchinterval(1e-6)
threading.Thread(target=busy, daemon=True).start()
for _ in range(12):
    if (child := os.fork()) == 0:
        x = mg.ones(100, requires_grad=True)
        sum((y * y).sum() for y in [x * i for i in range(100)]).backward()
        os._exit(0)
    os.waitpid(child, 0)
print("done", flush=True)
os._exit(0)
"""
    assert run_program(program, 30) == "done\n"


def test_work_while_the_interpreter_ends() -> None:
    program = """
import atexit, mutagrad as mg
mg.set_num_threads(3)
x = mg.ones(1_000_000)
x.sum()  # NumPy 2.0 imports something when it first casts, which it could not do at the end
class Late:
    def __del__(self):
        print(mg.full((1_000_000,), 2.0).mul_(x).sum().item())
atexit.register(lambda: print(mg.sin(x).shape[0]))
late = Late()
"""
    assert run_program(program) == "1000000\n2000000.0\n"


def run_program(program: str, seconds: float = 120) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(mg.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=environment, check=True, capture_output=True, text=True, timeout=seconds).stdout


# -------------------------------------------------------------------------------------------------------------- interrupts

class Interrupt(Exception):
    """What the signal handler raises."""


class Interrupts:
    """A timer whose signal raises somewhere in the work that `run` is given."""

    def __init__(self, seed: int) -> None:
        self.source, self.count, self.armed = random.Random(seed), 0, False

    def ring(self, _: int, frame: Any) -> None:
        if self.armed and frame.f_code is not Interrupts.run.__code__:  # else the signal was under way when the work had ended
            raise Interrupt

    def run(self, work: Callable[[], Any], longest: float) -> bool:
        """Whether the work was interrupted."""
        try:
            try:
                self.armed = True
                signal.setitimer(signal.ITIMER_REAL, self.source.uniform(1e-6, longest), self.source.choice([0, 2e-4]))
                work()
            finally:
                self.armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupt:
            self.count += 1
            return True
        return False


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interrupts]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread of a POSIX system")

    # What is raised while an object is destroyed is only reported, and the next interrupt may come while it is being reported.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    made = Interrupts(7)
    before = signal.signal(signal.SIGALRM, made.ring)
    yield made
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def fill(out: Any, value: float) -> Callable[[slice], None]:
    """Work that takes a while and lets others run meanwhile."""
    def work(part: slice) -> None:
        for start in range(part.start, part.stop, 20_000):
            out[start:min(start + 20_000, part.stop)] = value

    return work


def test_nobody_writes_any_more_once_an_interrupt_is_raised(several: int, interrupts: Interrupts) -> None:
    size, end, done = LARGE, time.monotonic() + SECONDS, 0
    x = mg.tensor(np.random.default_rng(5).normal(size=size).astype(np.float32))
    expected = mg.exp(mg.sin(x)).numpy().copy()
    while time.monotonic() < end or interrupts.count < 20:
        out = np.zeros(size)
        if interrupts.run(lambda out=out: threads.in_spans(size, fill(out, 1)), 1e-3):  # type: ignore[misc]
            out[:] = 7
            time.sleep(0)
            assert out.min() == 7
        else:
            done += 1
            assert out.min() == 1
        np.testing.assert_array_equal(mg.exp(mg.sin(x)).numpy(), expected)
    assert done or interrupts.count > 100
    assert threads._helpers is not None and threads._helpers.started < 20


def test_interrupts_while_the_caller_waits(interrupts: Interrupts) -> None:
    """Several of them, while a helper is at work and the caller has nothing left to do: it waits all the same."""
    before = mg.get_num_threads()
    mg.set_num_threads(2)
    begun, over = threading.Event(), threading.Event()

    def work(part: slice) -> None:
        if not part.start:
            assert begun.wait(60)
            return
        begun.set()
        for _ in range(20):
            time.sleep(0.002)
            os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(0.02)
        over.set()

    try:
        for _ in range(5):
            begun.clear()
            over.clear()
            with pytest.raises(Interrupt):
                try:
                    interrupts.armed = True
                    threads.in_spans(2, work)
                finally:
                    interrupts.armed = False
                    assert over.is_set()
    finally:
        mg.set_num_threads(before)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "exp(sin)": lambda x: mg.exp(mg.sin(x)), "in place": lambda x: x.clone().mul_(x).add_(1), "overlap": lambda x: x.clone()[:-1].mul_(x[1:]),
    "sum": lambda x: x.sum(), "softmax": lambda x: x.reshape(-1, 1024).softmax(1), "layer_norm": lambda x: mg.nn.functional.layer_norm(x.reshape(-1, 1024), (1024,)),
    "conv": lambda x: mg.nn.functional.conv1d(x.reshape(-1, 4, 1024), mg.ones(4, 4, 3)), "small in place": lambda x: x[:9].clone().mul_(2).exp_().log_(),
    "attention": lambda x: mg.nn.functional.scaled_dot_product_attention(*[x.reshape(-1, 4, 128, 16)] * 3),
    "cross_entropy": lambda x: mg.nn.functional.cross_entropy(x.reshape(-1, 64), mg.zeros(x.numel() // 64, dtype=mg.int64), weight=mg.ones(64)),
    "transpose": lambda x: x.reshape(-1, 1024).t().contiguous(), "histogram": lambda x: mg.histogram(x[:1000], 5, density=True).hist,
}


def test_operations_after_interrupts_are_right(several: int, interrupts: Interrupts) -> None:
    source, end = random.Random(several), time.monotonic() + SECONDS
    x = mg.tensor(np.random.default_rng(6).normal(size=1024 * 768).astype(np.float32))
    expected = {name: operation(x).numpy().copy() for name, operation in OPERATIONS.items()}
    state, version, openblas = np.geterr(), x._version, blas._library() and blas._library()[0]()
    while time.monotonic() < end or interrupts.count < 20:
        name, operation = source.choice([*OPERATIONS.items()])
        interrupts.run(lambda operation=operation: operation(x), 2e-3)  # type: ignore[misc]
        assert np.geterr() == state and x._version == version
        assert not blas._library() or blas._library()[0]() == openblas
        np.testing.assert_array_equal(operation(x).numpy(), expected[name], err_msg=name)


def test_the_error_state_survives_interrupts(interrupts: Interrupts) -> None:
    """Of small operations, which spend most of their time near where it is set."""
    x, end = mg.ones(10), time.monotonic() + SECONDS
    np_state = np.geterr()
    while time.monotonic() < end or interrupts.count < 100:
        def work() -> None:
            for _ in range(300):
                x.mul_(1)
                x.clamp_(0, 1)
                mg.tensor([1.0, 2.0]).int()
                x.sum()

        interrupts.run(work, 1e-3)
        assert np.geterr() == np_state


SENT = """
import ctypes, random, threading, time
import numpy as np
import mutagrad as mg
from mutagrad.arrays import threads

class Interrupt(Exception):
    pass

def fill(out):
    def work(part):
        for start in range(part.start, part.stop, 20_000):
            out[start:min(start + 20_000, part.stop)] = 1
    return work

def victim():  # ends when time is up, or when the exception comes to this function itself; then there will be another
    global interrupts
    while time.monotonic() < end or interrupts < 20:
        out = np.zeros(SIZE)
        try:
            threads.in_spans(SIZE, fill(out))
            if out.min() != 1:
                problems.append("came back before all was done")
        except Interrupt:
            interrupts += 1
            out[:] = 7
            time.sleep(0)
            if out.min() != 7:
                problems.append("written after it was interrupted")

mg.set_num_threads(THREADS)
problems, interrupts, end, source = [], 0, time.monotonic() + SECONDS, random.Random(1)
threading.excepthook = lambda *_: None
while time.monotonic() < end or interrupts < 20:
    thread = threading.Thread(target=victim)
    thread.start()
    while thread.is_alive() and (time.monotonic() < end or interrupts < 20):
        time.sleep(source.uniform(0, 2e-3))
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupt))
    thread.join(60)
    assert not thread.is_alive()
print(set(problems) or "right", interrupts >= 20)
"""


def test_exceptions_sent_from_another_thread(several: int) -> None:
    """The harsher kind: they come to any thread, also to one that no signal handler runs on."""
    program = SENT.replace("SIZE", str(LARGE)).replace("THREADS", str(several)).replace("SECONDS", str(SECONDS))
    assert run_program(program, SECONDS + 120) == "right True\n"
