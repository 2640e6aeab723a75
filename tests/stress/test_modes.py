"""Modes abused: left twice, on another thread, in the wrong order, by their own callbacks, or never. Nothing is left behind."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.autograd import forward_ad
from mutagrad.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
from mutagrad.torch_api.overrides import TorchFunctionMode
from mutagrad.torch_api.profiler import profile

from .isolation import isolated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each case runs in a fork")

Log = list[str]


class Watching(TorchFunctionMode):
    """Does `then` once, in the midst of a call, and lets the call go on."""

    def __init__(self, log: Log, then: Callable[[Any], None] | None = None) -> None:
        self.log, self.then = log, then

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.log.append("function mode")
        then, self.then = self.then, None
        if then is not None:
            then(self)
        return func(*args, **(kwargs or {}))


def packing(log: Log, on_pack: Callable[[], None] | None = None, on_unpack: Callable[[], None] | None = None) -> saved_tensors_hooks:
    def pack(t: mg.Tensor) -> Any:
        log.append("packed")
        if on_pack is not None:
            on_pack()
        return t.numpy().copy()

    def unpack(a: Any) -> mg.Tensor:
        if on_unpack is not None:
            on_unpack()
        return mg.from_numpy(a)

    return saved_tensors_hooks(pack, unpack)


class Made:
    """A mode that acts from when it is made, or can be entered once only: made when it is entered."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.open, self.last = make, [], None  # type: ignore[var-annotated]

    def __enter__(self) -> None:
        made = self.make()
        made.__enter__()
        self.open.append((threading.get_ident(), made))

    def __exit__(self, *error: Any) -> None:
        """Leaves what this thread has made last, else what another has, else what was left before."""
        here = [entry for entry in self.open if entry[0] == threading.get_ident()]
        if self.open:
            entry = (here or self.open)[-1]
            self.open.remove(entry)
            self.last = entry[1]
        self.last = self.last or self.make()
        self.last.__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Any:
        return self.make()(function)


# Each is made anew; the log hears of callbacks.
MODES: dict[str, Callable[[Log], Any]] = {
    "no_grad": lambda log: mg.no_grad(),
    "enable_grad": lambda log: mg.enable_grad(),
    "set_grad_enabled": lambda log: Made(lambda: mg.set_grad_enabled(False)),
    "inference_mode": lambda log: mg.inference_mode(),
    "strong_zeros": lambda log: Made(lambda: mg.autograd.strong_zeros(False)),
    "detect_anomaly": lambda log: mg.autograd.detect_anomaly(),
    "set_detect_anomaly": lambda log: Made(lambda: mg.autograd.set_detect_anomaly(True)),
    "saved_tensors_hooks": packing,
    "disable_saved_tensors_hooks": lambda log: disable_saved_tensors_hooks("not here"),
    "TorchFunctionMode": Watching,
    "autocast": lambda log: mg.autocast("cpu", dtype=mg.bfloat16),
    "no autocast": lambda log: mg.autocast("cpu", enabled=False),
    "profile": lambda log: profile(on_trace_ready=lambda p: log.append("profiled")),
    "dual_level": lambda log: forward_ad.dual_level(),
    "device": lambda log: mg.device("meta"),
    "fork_rng": lambda log: Made(lambda: mg.random.fork_rng()),
}


# What may be done with a mode. A RuntimeError is an answer; anything else that is raised is not.


def leave(mode: Any) -> None:
    with suppress(RuntimeError):
        mode.__exit__(None, None, None)


def enter(mode: Any) -> bool:
    with suppress(RuntimeError):
        mode.__enter__()
        return True
    return False


def on_a_thread(work: Callable[[], Any]) -> None:
    """Does the work on a thread that then ends; what it raises is raised here."""
    raised: list[BaseException] = []

    def target() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def compute() -> None:
    """Something with calls, saved values, and a sweep; it may be refused in the midst of abuse."""
    with suppress(RuntimeError, ValueError):
        x = mg.ones(40, requires_grad=True)
        y = (x * x).sin().sum()
        if y.requires_grad:
            y.backward()
        mg.ones(2, 2) @ mg.ones(2, 2)


def check_clean(log: Log) -> None:
    """Here and on a new thread: everything is recorded, computed and differentiated as if nothing had been."""
    check_thread(log)
    on_a_thread(lambda: check_thread(log))


def check_thread(log: Log) -> None:
    heard = len(log)
    assert mg.is_grad_enabled() and not mg.is_inference_mode_enabled() and not mg.is_anomaly_enabled()
    assert not mg.is_autocast_enabled("cpu") and mg.get_default_dtype() is mg.float32
    x = mg.tensor([0.0, 4.0], requires_grad=True)
    assert x.device.type == "cpu" and x.dtype is mg.float32 and (x * 2).requires_grad
    mg.where(x > 0, x.sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]
    g, = mg.autograd.grad((x**3).sum(), x, create_graph=True)
    assert mg.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 24.0]
    assert (mg.ones(2, 2) @ mg.ones(2, 2)).dtype is mg.float32
    with pytest.raises(RuntimeError):
        forward_ad.make_dual(mg.ones(1), mg.ones(1))
    with pytest.raises(RuntimeError):
        mg.autograd.Variable._execution_engine.queue_callback(lambda: None)
    assert len(log) == heard, f"{log[heard]} although its block has ended"
    check_modes_work()


def check_modes_work() -> None:
    log: Log = []
    x = mg.ones(3, requires_grad=True)
    with mg.no_grad():
        assert not (x * 2).requires_grad
    with packing(log):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0] and "packed" in log
    with Watching(log):
        x * 2
    assert "function mode" in log
    with mg.autocast("cpu", dtype=mg.bfloat16):
        assert (mg.ones(2, 2) @ mg.ones(2, 2)).dtype is mg.bfloat16
    with profile() as p:
        mg.ones(2) + 1
    assert len(p.key_averages()) > 0
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(forward_ad.make_dual(mg.tensor(3.0), mg.tensor(1.0)) ** 2).tangent.item() == 6.0


@cache
def prepare() -> None:
    """What is loaded when first used would be loaded in every fork."""
    check_modes_work()


# One mode, one abuse.


def left_twice(mode: Any, log: Log) -> None:
    enter(mode)
    compute()
    leave(mode)
    leave(mode)


def left_without_having_been_entered(mode: Any, log: Log) -> None:
    leave(mode)
    compute()


def left_on_another_thread(mode: Any, log: Log) -> None:
    enter(mode)
    on_a_thread(lambda: leave(mode))
    compute()
    leave(mode)


def left_on_another_thread_that_uses_it(mode: Any, log: Log) -> None:
    enter(mode)

    def other() -> None:
        inside = enter(mode)
        compute()
        leave(mode)
        if inside:
            leave(mode)
        check_thread(log)

    on_a_thread(other)
    leave(mode)
    leave(mode)


def entered_on_a_thread_that_ends(mode: Any, log: Log) -> None:
    def other() -> None:
        enter(mode)
        compute()

    on_a_thread(other)
    check_clean(log)
    leave(mode)


def entered_on_many_threads_that_end(mode: Any, log: Log) -> None:
    for name in ("no_grad", "autocast", "TorchFunctionMode", "saved_tensors_hooks"):
        on_a_thread(lambda: enter(MODES[name](log)))
    on_a_thread(lambda: enter(mode))
    leave(mode)


def left_in_the_wrong_order(mode: Any, log: Log) -> None:
    for make in MODES.values():
        other = make(log)
        inside = enter(mode), enter(other)
        compute()
        for entered, each in zip(inside, (mode, other)):
            if entered:
                leave(each)
            compute()


def entered_twice(mode: Any, log: Log) -> None:
    inside = enter(mode), enter(mode)
    compute()
    for entered in inside:
        if entered:
            leave(mode)
    leave(mode)


def left_in_a_hook(mode: Any, log: Log) -> None:
    """While a sweep is running."""
    x = mg.ones(3, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: leave(mode))
    enter(mode)
    with suppress(RuntimeError):
        y.sum().backward()
    leave(mode)


def entered_in_a_hook(mode: Any, log: Log) -> None:
    x = mg.ones(3, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: enter(mode) and None)
    with suppress(RuntimeError):
        y.sum().backward()
    compute()
    leave(mode)
    leave(mode)


def entered_forwards_and_left_backwards(mode: Any, log: Log) -> None:
    """In a Function."""

    class Careless(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: mg.Tensor) -> mg.Tensor:
            enter(mode)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: mg.Tensor) -> mg.Tensor:
            leave(mode)
            return g * 2

    with suppress(RuntimeError):
        y = Careless.apply(mg.ones(3, requires_grad=True))
        compute()
        y.sum().backward()
    leave(mode)


def entered_in_transforms(mode: Any, log: Log) -> None:
    """Which call a function and give it no chance to leave."""
    def careless(x: mg.Tensor) -> mg.Tensor:
        enter(mode)
        return (x * x).sum()

    for transform in (mg.func.grad, mg.func.vmap, mg.func.jacrev, lambda f: lambda x: mg.func.jvp(f, (x,), (x,)), lambda f: lambda x: mg.func.vjp(f, x)):
        with suppress(RuntimeError, ValueError):
            transform(careless)(mg.ones(3))
        for _ in range(4):
            leave(mode)
    with suppress(RuntimeError):
        mg.utils.checkpoint.checkpoint(careless, mg.ones(3, requires_grad=True), use_reentrant=False).backward()
    leave(mode)
    leave(mode)


def around_a_generator_that_is_abandoned(mode: Any, log: Log) -> None:
    def steps() -> Iterator[int]:
        compute()
        yield 1
        compute()
        yield 2

    if not callable(mode):
        return
    decorated = mode(steps)
    abandoned, closed, kept, raising = (decorated() for _ in range(4))
    for generator in (abandoned, closed, kept, raising):
        next(generator)
    check_clean(log)
    del abandoned
    on_a_thread(getattr(closed, "close", lambda: None))
    with suppress(ZeroDivisionError, AttributeError):
        raising.throw(ZeroDivisionError())
    check_clean(log)
    list(kept)


def with_an_exception_inside(mode: Any, log: Log) -> None:
    with suppress(ZeroDivisionError, RuntimeError), mode:
        compute()
        raise ZeroDivisionError


def inside_others_that_raise(mode: Any, log: Log) -> None:
    with suppress(ZeroDivisionError, RuntimeError), ExitStack() as stack:
        for make in MODES.values():
            with suppress(RuntimeError):
                stack.enter_context(make(log))
        stack.enter_context(mode)
        compute()
        raise ZeroDivisionError
    leave(mode)


ABUSES = [
    left_twice, left_without_having_been_entered, left_on_another_thread, left_on_another_thread_that_uses_it, entered_on_a_thread_that_ends,
    entered_on_many_threads_that_end, left_in_the_wrong_order, entered_twice, left_in_a_hook, entered_in_a_hook, entered_forwards_and_left_backwards,
    entered_in_transforms, around_a_generator_that_is_abandoned, with_an_exception_inside, inside_others_that_raise]


def abused(name: str, abuse: Callable[[Any, Log], None]) -> None:
    log: Log = []
    mode = MODES[name](log)
    abuse(mode, log)
    leave(mode)
    check_clean(log)


@pytest.mark.parametrize("abuse", ABUSES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", MODES)
def test_abuse(name: str, abuse: Callable[[Any, Log], None]) -> None:
    prepare()
    isolated(lambda: abused(name, abuse))


# Callbacks of a mode that leave it, or that raise.


def callback_cases(log: Log) -> dict[str, Callable[[], None]]:
    def function_mode_left_by_its_callback() -> None:
        mode = Watching(log, leave)
        enter(mode)
        compute()
        leave(mode)

    def function_mode_entered_by_its_callback() -> None:
        mode = Watching(log, enter)
        enter(mode)
        compute()
        leave(mode)
        leave(mode)

    def function_mode_that_raises() -> None:
        def fail(mode: Any) -> None:
            raise ZeroDivisionError

        with suppress(ZeroDivisionError), Watching(log, fail):
            mg.ones(2)

    def hooks_left_when_packing() -> None:
        mode = packing(log, on_pack=lambda: leave(mode))
        enter(mode)
        compute()
        leave(mode)

    def hooks_left_when_unpacking() -> None:
        mode = packing(log, on_unpack=lambda: leave(mode))
        enter(mode)
        compute()
        leave(mode)

    def hooks_entered_when_packing() -> None:
        entered: list[bool] = []
        mode = packing(log, on_pack=lambda: entered or entered.append(enter(mode)))  # type: ignore[func-returns-value]
        enter(mode)
        compute()
        leave(mode)
        leave(mode)

    def hooks_that_raise() -> None:
        def fail() -> None:
            raise ZeroDivisionError

        for mode in (packing(log, on_pack=fail), packing(log, on_unpack=fail)):
            with suppress(ZeroDivisionError), mode:
                compute()

    def profile_left_when_ready() -> None:
        mode = profile(on_trace_ready=lambda p: leave(p))
        enter(mode)
        compute()
        leave(mode)
        leave(mode)

    def profile_that_raises_when_ready() -> None:
        def fail(p: Any) -> None:
            raise ZeroDivisionError

        with suppress(ZeroDivisionError), profile(on_trace_ready=fail):
            compute()

    def profile_started_and_stopped_at_will() -> None:
        mode = profile()
        for step in (mode.stop, mode.start, mode.start, compute, mode.stop, mode.stop, mode.step, compute, mode.stop):
            with suppress(RuntimeError):
                step()

    return {name: f for name, f in locals().items() if callable(f)}


@pytest.mark.parametrize("name", callback_cases([]))
def test_callbacks(name: str) -> None:
    def abuse() -> None:
        log: Log = []
        callback_cases(log)[name]()
        check_clean(log)

    prepare()
    isolated(abuse)


# Random sequences.


def sequence(seed: int) -> None:
    """A few modes, entered and left at random, on this thread and on others; each as often left as entered, or more often."""
    r, log = random.Random(seed), []  # type: ignore[var-annotated]
    modes = [MODES[r.choice(list(MODES))](log) for _ in range(r.randint(1, 4))]
    open_ones: list[Any] = []
    for _ in range(r.randint(4, 16)):
        mode, roll = r.choice(modes), r.random()
        if roll < 0.35:
            open_ones += [mode] if enter(mode) else []
        elif roll < 0.6 and open_ones:
            leave(open_ones.pop(r.randrange(len(open_ones))))
        elif roll < 0.7:
            leave(mode)
        elif roll < 0.8:
            on_a_thread(lambda: leave(mode))
        elif roll < 0.87:
            on_a_thread(lambda: (enter(mode), compute()))
        else:
            compute()
    for mode in r.sample(open_ones, len(open_ones)):
        leave(mode)
    for mode in modes:
        leave(mode)
    check_clean(log)


def run(seed: int) -> None:
    prepare()
    isolated(lambda: sequence(seed))


@pytest.mark.parametrize("block", range(10))
def test_random_sequences(block: int) -> None:
    for seed in range(block * 15, (block + 1) * 15):
        try:
            run(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None
