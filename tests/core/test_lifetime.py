"""How long things live: values that NumPy may overwrite, graphs, and nothing once its tensors are gone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import ref

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.dlpack import borrow
from mutagrad.core.evidence import SWEEPS
from test_function import Multiply, Several, in_place_function
from tools import N, ramp, same

# ------------------------------------------------------------------------------------------------------------ NumPy's writes

HANDED_OUT = {"numpy": lambda y: y.detach().numpy(), "asarray": lambda y: np.asarray(y.detach()), "a view of numpy": lambda y: y.data.numpy()[...],
              "reshaped": lambda y: y.detach().numpy().reshape(5, 8)[:, ::1], "dlpack": lambda y: borrow(y.detach())}


@pytest.mark.parametrize("hand_out", HANDED_OUT.values(), ids=HANDED_OUT)
@pytest.mark.parametrize("when", ["before", "after"])
def test_writes_through_arrays_do_not_reach_saved_values(hand_out: Any, when: str) -> None:
    x = ramp(N)
    y = x * 1
    array = hand_out(y) if when == "before" else None
    z = y * y
    if array is None:
        array = hand_out(y)
    array[:] = 0
    assert y.sum() == 0
    z.sum().backward()
    same(x.grad, 2 * np.arange(1, N + 1))


def test_values_over_foreign_memory_are_saved_by_copy() -> None:
    array = np.arange(1.0, N + 1)
    y, x = mg.from_numpy(array), ramp(N)
    z = x * y
    array[:] = 0
    z.sum().backward()
    same(x.grad, np.arange(1, N + 1))


def test_saving_is_by_reference_again_once_the_array_is_gone() -> None:
    x = ramp(N)
    y = x * 1
    array = y.detach().numpy()
    before = mg.stats()
    y * y
    assert (mg.stats() - before).protected > 0
    del array
    before = mg.stats()
    y * y
    assert (mg.stats() - before).protected == 0


# ------------------------------------------------------------------------------------------------------------------- memory

def test_where_saved_values_are_overwritten_small_ones_are_copied_at_once() -> None:
    y, x = mg.zeros(100), mg.ones(10, requires_grad=True)
    y[40:80] = 2 * mg.ones(40, requires_grad=True)
    part, large = y[40:80], mg.ones(5000, requires_grad=True) * 1

    def saved_and_looked_at(tensor: mg.Tensor) -> tuple[int, int]:
        before = mg.stats()
        z = tensor * tensor
        saved = (mg.stats() - before).protected
        before = mg.stats()
        tensor[:10] += x
        looked = (mg.stats() - before).examined
        z.sum().backward(retain_graph=True)
        return saved, looked

    assert saved_and_looked_at(part)[0] == 0  # nothing of it has been overwritten before
    saved, looked = saved_and_looked_at(part)
    assert saved == 2 * part.numpy(force=True).nbytes and looked == 0
    assert saved_and_looked_at(large)[0] == saved_and_looked_at(large)[0] == 0  # copies of large ones may never be needed


def test_a_chain_of_a_million_nodes() -> None:
    x = mg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1.0
    y.backward()
    assert x.grad.item() == 1 and y.item() == pytest.approx(1_000_001)
    node = ref(y.grad_fn)
    del y
    assert node() is None


def test_a_chain_of_writes_is_freed_without_recursion() -> None:
    x = mg.ones(3, requires_grad=True)
    y = x * 1
    for _ in range(100_000):
        y[0] = y[1]
    y.sum().backward()
    same(x.grad, [0, 2, 1])
    del y


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


LIVES = {
    "an expression": lambda x: (x * x).exp().sum(), "a view": lambda x: (x * 2)[1:], "a write": lambda x: write(x * 2),
    "a leaf written": lambda x: write(x), "a function": lambda x: Multiply.apply(x, x, 2.0),
    "several outputs": lambda x: Several.apply(x[:2].float(), x[:2].float())[0],
    "an in-place function": lambda x: in_place_function(False, True).apply(x * 1), "indexing": lambda x: x[[0, 1]].sort().values,
    "cat and einsum": lambda x: mg.einsum("i,i->i", mg.cat([x, x]), mg.cat([x, x])), "retain_grad": lambda x: retained(x * 2),
    "a swept graph": lambda x: swept((x * x).sum()), "create_graph": lambda x: mg.autograd.grad((x**3).sum(), x, create_graph=True)[0],
    "create_graph in .grad": lambda x: swept((x**3).sum(), create_graph=True), "a hook": lambda x: hooked(x * 2),
    "no_grad": lambda x: unrecorded(x * 2), "an exported array": lambda x: exported(x * 2), "matmul": lambda x: x @ x,
    "split": lambda x: x.split(2)[0],
}


def write(y: Any) -> Any:
    y[0] = y[1] * 2
    y += 1
    return y


def retained(y: Any) -> Any:
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    return y


def swept(y: Any, **options: Any) -> Any:
    y.backward(retain_graph=True, **options)
    return y


def hooked(y: Any) -> Any:
    y.register_hook(lambda g: g * 2)
    return y


def unrecorded(y: Any) -> Any:
    z = y * y
    with mg.no_grad():
        y.zero_()
    return z


def exported(y: Any) -> Any:
    y.detach().numpy()[0] = 1
    return y * y


@pytest.mark.parametrize("size", [4, N])
@pytest.mark.parametrize("build", LIVES.values(), ids=LIVES)
def test_nothing_outlives_its_tensors(build: Any, size: int) -> None:
    """Without the cycle collector: tensors, nodes, leaves and storages die with the last reference from outside."""
    with without_collector():
        x = ramp(size)
        y = build(x)
        if x.grad is not None:
            x.grad = None
        watched = [ref(v) for v in (x, y, y.grad_fn) if v is not None]
        stack, seen = [y.grad_fn], set()
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                watched.append(ref(node))
                stack += [n for n, _ in node.next_functions]
        node = None
        seen.clear()
        del x, y
        SWEEPS.clear()  # the latest few, if small, are remembered for `why`
        assert [w() for w in watched] == [None] * len(watched)


def test_an_exception_keeps_nothing_alive() -> None:
    with without_collector():
        x = ramp(N)
        y = (x * x).sum()
        y.backward()
        watched = [ref(x), ref(y)]
        with suppress(RuntimeError):
            y.backward()
        del x, y
        assert [w() for w in watched] == [None, None]


def test_overwritten_buffers_forget_their_past() -> None:
    x = ramp(N)
    b = x * 1
    old = ref(b.grad_fn)
    b.copy_(x)
    assert old() is None
    b[...] = x * 2
    b.view(5, 8).zero_()
    same(mg.autograd.grad(b.sum(), x, allow_unused=True, materialize_grads=True)[0], [0] * N)
