"""Programs on several threads at once: each gives what it gives alone, and a write on one does not disturb a sweep on another."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import mutagrad as mg

from .generator import generate
from .judge import first_order

WORKERS = 4


@pytest.fixture(autouse=True)
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def on_threads(works):
    """What each of these gives or raises, begun at the same moment."""
    found, barrier = {}, threading.Barrier(len(works))

    def run(i):
        barrier.wait()
        try:
            found[i] = works[i]()
        except BaseException as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [found[i] for i in range(len(works))]


def answers(programs):
    """Gradients, or the errors of those that have none."""
    found = []
    for program in programs:
        try:
            found.append(first_order(program, mg, program.point))
        except Exception as error:
            found.append(type(error))
    return found


def same(a, b):
    return a is b if isinstance(a, type) or isinstance(b, type) else a[0] == b[0] and np.array_equal(a[1], b[1], equal_nan=True)


def check_programs(seed, families, count=12):
    programs = [generate(seed * count + i, families=families) for i in range(count)]
    programs = [p for p in programs if "tensor_of_list" not in p.kinds]  # which sets filters of warnings, for all threads
    alone = answers(programs)
    for found in on_threads([lambda: answers(programs)] * WORKERS):
        assert not isinstance(found, BaseException), found
        for program, expected, got in zip(programs, alone, found):
            assert same(expected, got), f"{program.source}\n{expected} alone\n{got} with others"


@pytest.mark.parametrize("families", [(), ("rooms",), ("aliases",), ("hooks",), ("regions",)], ids=lambda f: f[0] if f else "core")
def test_programs_give_the_same_beside_others(families):
    check_programs(3, families)


def zeroed_under_no_grad(y):
    with mg.no_grad():
        y.zero_()


WRITES = {
    "recorded": lambda y: y.mul_(3.0), "a part": lambda y: y[:5].fill_(1.0), "an element": lambda y: y.__setitem__(7, 0.5),
    "no_grad": zeroed_under_no_grad, "data": lambda y: y.data.zero_(), "indexed": lambda y: y.__setitem__([1, 3], 0.0)}


def check_write(write, size=40):
    """One thread differentiates what was computed of y, another writes to y: the gradient is of what y was."""
    x = mg.arange(1.0, size + 1).requires_grad_()
    y = x * 2
    other = y.detach().requires_grad_()  # over the same memory: what is saved of it must be moved aside, too
    first, second = (y * y).sum(), (other.sin() * other).sum()
    found = on_threads([first.backward, lambda: write(y)])
    assert [e for e in found if isinstance(e, BaseException)] == []
    values = 2 * np.arange(1.0, size + 1)
    np.testing.assert_allclose(x.grad.numpy(), 4 * values, 1e-6)
    second.backward()
    np.testing.assert_allclose(other.grad.numpy(), np.cos(values) * values + np.sin(values), 1e-4, 1e-4)


@pytest.mark.parametrize("write", WRITES)
def test_a_sweep_on_one_thread_while_another_writes(write):
    for _ in range(60):
        check_write(WRITES[write])


def test_sweeps_of_one_graph_on_several_threads():
    x = mg.arange(1.0, 41.0).requires_grad_()
    y = x * 2
    y[::2] *= y[1::2]
    loss = (y.sin() * y).sum()
    expected, = mg.autograd.grad(loss, x, retain_graph=True)
    for found in on_threads([lambda: [mg.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(20)]] * WORKERS):
        assert not isinstance(found, BaseException), found
        assert all(bool((g == expected).all()) for g in found)
