"""Hooks and gradients of computed tensors whose elements share memory: those that a clone would have."""
from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import mutagrad as mg
from tools import same

SHAPES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "expanded": ((2, 1), lambda x: x.expand(2, 3)), "all": ((), lambda x: x.expand(4)), "more": ((3,), lambda x: x.expand(2, 2, 3)),
    "unfolded": ((4,), lambda x: x.unfold(0, 2, 1)), "part": ((3, 2), lambda x: x[1:, :1].expand(2, 2)), "one": ((1, 3), lambda x: x[None].expand(1, 2, 3)),
}


def program(kind: str, computed: bool) -> tuple[Any, Any, Any]:
    shape, window = SHAPES[kind]
    x = (mg.arange(1.0, 1 + mg.zeros(shape).numel(), dtype=mg.float64).reshape(shape) / 3).requires_grad_()
    memory = x * 2 if computed else x
    return x, window(memory), mg.arange(1.0, 1 + window(memory).numel(), dtype=mg.float64).reshape(window(memory).shape) / 5


READS: list[Callable[[Any, Any], Any]] = [
    lambda y, w: (y * w).sum(), lambda y, w: (y * y * w).sum(), lambda y, w: (mg.ones(2, *[1] * y.dim()) * y * w).exp().mean(),
    lambda y, w: (y.reshape(-1) * w.reshape(-1)).sum(), lambda y, w: mg.stack([y, y * w]).sin().sum(), lambda y, w: (y.clone()[0] * y.clone()[-1]).sum(),
    lambda y, w: (y[..., 0] * w[..., 0]).sum(), lambda y, w: (y[1:] ** 3).sum() + y.t().sum() if y.dim() == 2 else y[1:].sum()]
WHOLE = READS[:6]  # the others read views of it


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_gradient_is_that_of_a_clone(kind: str, computed: bool) -> None:
    for read in WHOLE:
        x, y, w = program(kind, computed)
        found = mg.autograd.grad(read(y, w), [y, x])
        x, y, w = program(kind, computed)
        z = y.clone()
        expected = mg.autograd.grad(read(z, w), [z, x])
        for g, wanted in zip(found, expected):
            assert g.shape == wanted.shape and mg.allclose(g, wanted, rtol=1e-12)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("kind", SHAPES)
def test_hooks_and_kept_gradients_are_those_of_a_clone(kind: str, computed: bool) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        reads = [draw.choice(READS) for _ in range(3)]
        before = [draw.choice(WHOLE) for _ in range(draw.randint(0, 1))]
        answers = []
        for clones in (False, True):
            x, y, w = program(kind, computed)
            y = y.clone() if clones else y
            seen: list[Any] = []
            early = [read(y, w) for read in before]
            y.register_hook(lambda g, seen=seen: seen.append(g.clone()))
            y.register_hook(lambda g: 3 * g)
            y.retain_grad()
            assert y.retains_grad and not y.is_leaf and y.requires_grad
            loss = sum([read(y, w) for read in reads], sum(early)) + (x * x).sum()
            g, = mg.autograd.grad(loss, x, create_graph=True)
            second, = mg.autograd.grad((g * g).sum(), x, retain_graph=True, allow_unused=True)
            loss.backward()
            answers.append([*seen, y.grad, x.grad, g, second])
        for found, wanted in zip(*answers):
            assert found is wanted is None or found.shape == wanted.shape and mg.allclose(found, wanted, rtol=1e-12), seed
        assert len(answers[0]) == len(answers[1])


def test_writes_to_the_memory_are_followed() -> None:
    answers = []
    for clones in (False, True):
        x = mg.tensor([1.0, 2.0], requires_grad=True)
        base = x * 3
        y = base.clone().expand(3, 2) if clones else base.expand(3, 2)
        if not clones:
            y.retain_grad()
        first = (y ** 2).sum()
        base[0] = base[0] * x[1]
        y = base.expand(3, 2).clone() if clones else y
        answers.append(mg.autograd.grad(first + (y * y * y).sum(), x)[0])
        with mg.no_grad():
            base.mul_(2)
        if not clones:
            assert y.requires_grad and y.tolist() == [base.tolist()] * 3
    same(answers[0], answers[1].tolist())


def test_what_cannot_be_told_apart_is_an_error() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x.expand(3, 2)
    for read in (lambda: (y * y).sum() + y[0].sum(), lambda: (y * y).sum() + x.sum(), lambda: y[:2].sum(), lambda: y[0]):
        loss = read()
        with pytest.raises(RuntimeError, match="cannot be told from that of the memory"):
            mg.autograd.grad(loss, y, mg.ones_like(loss))
    loss = (y * y).sum() + y[1].sum()
    y.retain_grad()
    with pytest.raises(RuntimeError, match="cannot be told from that of the memory"):
        loss.backward()
    ((y * y).sum() + y[1].sum() + x.sum()).backward()  # used after it has asked: all is known
    same(y.grad, [[2, 4], [3, 5], [2, 4]])
    same(x.grad, [8, 14])
    with pytest.raises(mg.errors.OverlapError):
        y[0] = 1.0


def test_nothing_is_kept_alive() -> None:
    x = mg.ones(2, requires_grad=True)
    y = (x * 2).expand(3, 2)
    y.retain_grad()
    loss = (y * y).sum()
    loss.backward()
    dead = weakref.ref(y), weakref.ref(y.grad_fn)
    del y, loss
    assert [r() for r in dead] == [None, None]
    gc.collect()
    (x * x).sum().backward()
    assert not mg.core.spread.ASKED
