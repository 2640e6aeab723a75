"""What is taken to be nobody else's, by its reference count: always if nobody holds it, on every interpreter; never if somebody does."""

from __future__ import annotations

import asyncio
import functools
import itertools
import operator
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.core.arithmetic import SMALL, Arithmetic, RecordedArithmetic
from tools import same

# ------------------------------------------------------------------------------------------------------- unnamed results

N = 20


def unnamed_elements(x: Any, y: Any) -> None:
    for i in range(N):
        y[i] = x[i] * 2


def unnamed_pairs(x: Any, y: Any) -> None:
    for i in range(0, N, 2):
        y[i:i + 2] = x[i:i + 2] * 2


def swapped(x: Any, y: Any) -> None:
    for i in range(0, N, 2):
        y[i], y[i + 1] = x[i] * 2, x[i + 1] * 2


def by_closure(x: Any, y: Any) -> None:
    def fill(i: int) -> None:
        y[i] = x[i] * 2

    for i in range(N):
        fill(i)


def by_exec(x: Any, y: Any) -> None:
    exec(f"for i in range({N}): y[i] = x[i] * 2", {"x": x, "y": y})


def by_generator(x: Any, y: Any) -> None:
    def fill() -> Iterator[int]:
        for i in range(N):
            y[i] = x[i] * 2
            yield i

    list(fill())


def by_coroutine(x: Any, y: Any) -> None:
    async def fill() -> None:
        for i in range(N):
            y[i] = x[i] * 2
            await asyncio.sleep(0)

    asyncio.run(fill())


def named_elements(x: Any, y: Any) -> None:
    for i in range(N):
        value = x[i] * 2
        y[i] = value


@contextmanager
def followed(follow: Callable[[Any], None]) -> Iterator[None]:
    """Every event goes to a function that looks at the frame, as a debugger would."""
    def look(frame: Any, event: str, argument: Any) -> Any:
        frame.f_locals  # noqa: B018
        return look

    follow(look)
    try:
        yield
    finally:
        follow(None)


def nodes(fill: Callable[[Any, Any], None]) -> int:
    """How many nodes a sweep visits, after the gradient has been checked."""
    x = mg.arange(1.0, N + 1).requires_grad_()
    y = mg.zeros(N)
    fill(x, y)
    before = mg.stats().nodes
    (y * y).sum().backward()
    same(x.grad, 8 * np.arange(1, N + 1))
    return mg.stats().nodes - before


@pytest.mark.parametrize("fill, made", [(unnamed_elements, N), (unnamed_pairs, N // 2), (swapped, N), (by_closure, N), (by_exec, N), (by_generator, N), (by_coroutine, N),
                                        (named_elements, 2 * N)])
def test_an_unnamed_result_is_one_node_with_its_write(fill: Callable[[Any, Any], None], made: int) -> None:
    assert nodes(fill) == made + 3  # the square, the sum, the leaf


@pytest.mark.parametrize("follow", [sys.settrace, sys.setprofile])
def test_under_a_debugger(follow: Any) -> None:
    before = sys.gettrace(), sys.getprofile()
    try:
        with followed(follow):
            assert N + 3 <= nodes(unnamed_elements) <= 2 * N + 3 and nodes(named_elements) == 2 * N + 3
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def kept_by_a_name(y: Any, key: Any, make: Any) -> Any:
    value = make()
    y[key] = value
    return lambda: value


def given_by_a_name(y: Any, key: Any, make: Any) -> Any:
    value = make()
    y.__setitem__(key, value)
    return lambda: value


def given_by_the_class(y: Any, key: Any, make: Any) -> Any:
    values = [make()]
    mg.Tensor.__setitem__(y, key, values[0])
    return lambda: values[0]


def given_by_a_tuple(y: Any, key: Any, make: Any) -> Any:
    arguments = key, make()
    y.__setitem__(*arguments)
    return lambda: arguments[1]


def given_by_an_operator(y: Any, key: Any, make: Any) -> Any:
    arguments = y, key, make()
    operator.setitem(*arguments)
    return lambda: arguments[2]


def given_by_a_dict(y: Any, key: Any, make: Any) -> Any:
    arguments = {"value": make()}
    y.__setitem__(key, **arguments)
    return lambda: arguments["value"]


def given_by_a_partial(y: Any, key: Any, make: Any) -> Any:
    call = functools.partial(y.__setitem__, key, make())
    call()
    return lambda: call.args[1]


def given_by_a_caller(y: Any, key: Any, make: Any) -> Any:
    call = operator.methodcaller("__setitem__", key, make())
    call(y)
    return lambda: call.__reduce__()[1][2]


def given_by_an_iterator(y: Any, key: Any, make: Any) -> Any:
    arguments = [(key, make())]
    list(itertools.starmap(y.__setitem__, arguments))
    return lambda: arguments[0][1]


def given_by_a_map(y: Any, key: Any, make: Any) -> Any:
    values = [make()]
    list(map(y.__setitem__, [key], values))
    return lambda: values[0]


def given_twice(y: Any, key: Any, make: Any) -> Any:
    other = mg.zeros_like(y)
    other[key] = y[key] = make()
    return lambda: other[key]


def given_by_another_thread(y: Any, key: Any, make: Any) -> Any:
    values = [make()]
    thread = threading.Thread(target=y.__setitem__, args=(key, values[0]))
    thread.start()
    thread.join()
    return lambda: values[0]


def seen_by_its_history(y: Any, key: Any, make: Any) -> Any:
    nodes = []

    def value() -> Any:
        value = make()
        nodes.append(value.grad_fn)
        return value

    y[key] = value()
    assert nodes[0].next_functions[0][0] is not None and len(nodes[0].next_functions) == 2  # it has not become the write
    copied = y[key].clone()
    return lambda: copied


def seen_by_an_alias(y: Any, key: Any, make: Any) -> Any:
    views = []

    def value() -> Any:
        value = make()
        views.append(value[...])
        return value

    y[key] = value()
    return lambda: views[0]


class Remembering(mg.Tensor):
    def __setitem__(self, key: Any, value: Any) -> None:
        self.last = value
        super().__setitem__(key, value)


def given_by_a_subclass(y: Any, key: Any, make: Any) -> Any:
    own = y.as_subclass(Remembering)
    own[key] = make()
    return lambda: own.last


HOLDERS = [f for f in list(globals().values()) if getattr(f, "__name__", "").startswith(("kept_by", "given_", "seen_by"))]


@pytest.mark.parametrize("key, part", [(1, 0), (slice(1, 3), slice(0, 2))], ids=["element", "part"])
@pytest.mark.parametrize("hold", HOLDERS)
def test_a_value_that_somebody_holds_keeps_its_own_history(hold: Any, key: Any, part: Any) -> None:
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = mg.zeros(4)
    y[0] = x[2] * 5
    held = hold(y, key, lambda: x[part] * 2)
    y[key] = 7.0
    value = held()
    same(value, 2 * x.detach()[part])
    value.mul_(3)
    ((value * value).sum() + y.sum()).backward()
    expected = np.zeros(3)
    expected[part] = 72 * np.array([1.0, 2.0])[part]
    expected[2] += 5
    same(x.grad, expected)


FROM_NOWHERE = """
import _thread, itertools, sys, time
import mutagrad as mg

def call(function, *arguments):
    results, unraised = [], []
    sys.unraisablehook = unraised.append
    _thread.start_new_thread(results.extend, (itertools.starmap(function, [arguments]),))
    deadline = time.monotonic() + 20
    while not results and not unraised and time.monotonic() < deadline:
        time.sleep(0.001)
    assert results, unraised and unraised[0].exc_value

for _ in range(2):  # what is called for the first time is generated then
    x = mg.ones(3, requires_grad=True)
    y = x.exp()
    value = x[0] * 2
    for function, *arguments in ((mg.exp, x), (mg.Tensor.sum, x), (y.exp_,), (y.mul_, x), (x.__getitem__, 0), (y.__setitem__, 0, value), (mg.no_grad().__enter__,)):
        call(function, *arguments)
    y[0] = 7.0
    call((value * 3 + y.sum() * 0).backward)
    assert x.grad.tolist() == [6, 0, 0], x.grad
"""


def test_operations_need_no_python_that_calls_them() -> None:
    """A program in C that embeds Python calls functions with no frame below; so does a bare thread."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", FROM_NOWHERE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_leaf_without_a_name() -> None:
    y = mg.zeros(2)
    y[0] = mg.ones((), requires_grad=True)
    (y * y).sum().backward()
    assert y.requires_grad and y.tolist() == [1, 0]


# -------------------------------------------------------------------------------------------------------------- adjoints

def by_name(a: Any) -> Any:
    return a


HANDLES: dict[str, Callable[[Any], Any]] = {
    "a name": by_name, "a list": lambda a: [a], "a tuple": lambda a: (a,), "a dict": lambda a: {0: a}, "a closure": lambda a: lambda: a, "a view": lambda a: a[1:],
    "a generator": lambda a: (v for v in a), "a partial": lambda a: functools.partial(len, a), "a memoryview": memoryview}


@pytest.mark.parametrize("handle", HANDLES)
def test_an_adjoint_that_somebody_holds_is_copied(handle: str) -> None:
    arithmetic = Arithmetic()
    for act in (lambda holder: arithmetic.own(holder, np.dtype(float)), lambda holder: arithmetic.add(holder, np.ones(SMALL * 2))):
        holder = [np.zeros(SMALL * 2)]
        address = holder[0].ctypes.data
        assert act(holder).ctypes.data == address, "a fresh one should be used as it is"
        holder = [np.zeros(SMALL * 2)]
        address, held = holder[0].ctypes.data, HANDLES[handle](holder[0])
        assert act(holder).ctypes.data != address
        del held
        holder = [np.zeros((2, SMALL)).reshape(-1)]
        address = holder[0].ctypes.data
        assert act(holder).ctypes.data == address, "nor has anybody else a fresh one that was reshaped"
        for seen in (lambda v: v, lambda v: v.base):  # the view, and what it is a view of
            holder = [np.zeros((2, SMALL)).reshape(-1)]
            address, held = holder[0].ctypes.data, HANDLES[handle](seen(holder[0]))
            assert act(holder).ctypes.data != address
            del held
        for part in (slice(1, None), slice(None, None, -1)):
            holder = [np.zeros(SMALL * 2)[part]]
            address = holder[0].ctypes.data
            assert arithmetic.own(holder, np.dtype(float)).ctypes.data != address, "one that is a part keeps the rest alive"
        holder = [np.frombuffer(bytearray(16 * SMALL)).reshape(2, SMALL).reshape(-1)]
        address = holder[0].ctypes.data
        assert act(holder).ctypes.data != address, "memory that comes from elsewhere"


@pytest.mark.parametrize("handle", [h for h in HANDLES if h != "a memoryview"])
def test_a_recorded_adjoint_that_somebody_holds_is_copied(handle: str) -> None:
    holder = [mg.zeros(9)]
    address = holder[0].data_ptr()
    assert RecordedArithmetic().own(holder, np.dtype("float32")).data_ptr() == address
    holder = [mg.zeros(9)]
    address, held = holder[0].data_ptr(), HANDLES[handle](holder[0])
    if handle == "a generator":
        next(held)
    assert RecordedArithmetic().own(holder, np.dtype("float32")).data_ptr() != address
    del held


def as_it_is(t: Any) -> Any:
    return t, t


def as_an_array(t: Any) -> Any:
    return t, t.detach().numpy()


def as_a_view(t: Any) -> Any:
    return t, t[:]


def as_an_alias(t: Any) -> Any:
    return t.detach(), t


def as_data(t: Any) -> Any:
    return t, t.data


def as_an_array_of_its_own(t: Any) -> Any:
    array = np.full(t.shape, 2.0, np.float32)
    return mg.from_numpy(array), array


def as_history(t: Any) -> Any:
    return t, (t * 1 if t.requires_grad else t)


@pytest.mark.parametrize("hooked", [False, True], ids=["function", "hook"])
@pytest.mark.parametrize("recorded", [False, True], ids=["raw", "recorded"])
@pytest.mark.parametrize("keep", [as_it_is, as_an_array, as_a_view, as_an_alias, as_data, as_an_array_of_its_own, as_history])
def test_gradients_that_a_program_keeps_stay_as_they_were(keep: Any, recorded: bool, hooked: bool) -> None:
    """To what it gives as a gradient more is added through windows; not in the memory that it still holds."""
    kept: list[Any] = []

    def double(g: Any) -> Any:
        given, held = keep(g * 2)
        kept.append(held)
        return given

    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return double(g)

    def doubled(y: Any) -> Any:
        if not hooked:
            return Double.apply(y)
        y = y * 1
        y.register_hook(double)
        return y

    x = mg.ones(SMALL * 2, requires_grad=True)
    y = x * 3
    early = y[0] * 7
    middle = doubled(y)
    middle[2] = 0.0
    (middle.sum() + early + y[1] * 9).backward(create_graph=recorded)
    expected = np.full(SMALL * 2, 6.0)
    expected[0] += 21
    expected[1] += 27
    expected[2] -= 6
    for g in kept:
        values = np.array(g if isinstance(g, np.ndarray) else g.detach())
        assert set(values.tolist()) <= {0.0, 2.0} and values[0] == values[1] == 2
    if keep is not as_an_array_of_its_own:
        same(x.grad, expected)
    assert len(kept) == 1
