"""Leaves whose elements share memory: each has a gradient of its own, and what is written to that memory is seen."""
from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

WINDOWS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "expanded": ((2, 1), lambda x: x.expand(2, 3), lambda a: np.broadcast_to(a, (2, 3))),
    "all": ((1,), lambda x: x.expand(4), lambda a: np.broadcast_to(a, (4,))),
    "unfolded": ((4,), lambda x: x.unfold(0, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2)),
    "part": ((3, 2), lambda x: x[1:, :1].expand(2, 2), lambda a: np.broadcast_to(a[1:, :1], (2, 2))),
}


def leaf_of(kind: str) -> tuple[Any, Any]:
    shape, window, _ = WINDOWS[kind]
    x = mg.arange(1.0, 1 + np.prod(shape), dtype=mg.float64).reshape(shape).clone() / 4
    return x, window(x).requires_grad_()


@pytest.mark.parametrize("kind", WINDOWS)
def test_every_repeated_element_has_a_gradient(kind: str) -> None:
    _, y = leaf_of(kind)
    weights = mg.arange(float(y.numel()), dtype=mg.float64).reshape(y.shape)
    seen: list[Any] = []
    y.register_hook(seen.append)
    (y * weights).sum().backward()
    assert y.is_leaf and mg.equal(y.grad, weights) and mg.equal(seen[0], weights)
    g, = mg.autograd.grad((y[0] * y[0]).sum() / 2 + y.sum(), y, create_graph=True)
    expected = mg.ones_like(y).detach()
    expected[0] += y[0].detach()
    assert mg.equal(g, expected) and mg.autograd.grad(g.sum(), y)[0].sum() == y[0].numel()


@pytest.mark.parametrize("make", [mg.nn.Parameter, lambda x: x.detach().requires_grad_(), lambda x: mg.nn.Parameter(mg.zeros(1))])
def test_as_a_parameter_or_as_the_data_of_one(make: Callable[[Any], Any]) -> None:
    x = mg.ones(2, 1)
    p = make(x.expand(2, 3))
    p.data = x.expand(2, 3)
    (p[1] * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert p.grad.tolist() == [[0, 0, 0], [1, 2, 3]]
    x.mul_(5)
    assert p.is_leaf and p.tolist() == [[5.0] * 3] * 2 and copy.deepcopy(p).tolist() == p.tolist()


def statement(draw: random.Random, shape: tuple[int, ...], last: str) -> str:
    i, j = (", ".join(str(draw.randrange(n)) for n in s) for s in (shape, last_shape(last)))
    k = draw.randint(-3, 3)
    return draw.choice([f"x[{i}] = y[{j}] * {k}", f"x[{i}] = x[{i}] * y.sum()", f"x *= y[{j}]", f"x[0] = y[{j}] * 0 + {k}", f"x += y[{j}] * 0 + {k}",
                        f"out = out + (y * y * w).sum() * {k}", f"out = out + y[{j}] ** 3", f"out = out + (x * x).sum() * {k}",
                        f"out = out + y[1:].sum() * x[{i}]", f"x[...] = x * x + y[{j}] * 0"])


def last_shape(kind: str) -> tuple[int, ...]:
    return leaf_of(kind)[1].shape  # type: ignore[no-any-return]


class Mirror:
    """The same on NumPy's arrays: the leaf is an array of its own, into which writes to the base are copied."""

    def __init__(self, kind: str, nudge: Any) -> None:
        self.window = WINDOWS[kind][2]
        self.x = leaf_of(kind)[0].numpy().copy()
        self.y = self.window(self.x) + nudge

    def run(self, source: list[str], w: Any) -> float:
        names: dict[str, Any] = {"out": 0.0, "w": w}
        for line in source:
            # Which elements a statement writes, whatever their values: those of the base that it changes if it adds 1.
            names.update(x=self.x, y=self.y.copy())
            marked = written(line, self.x.shape)
            exec(line, names)
            self.x = names["x"]
            touched = self.window(marked)
            self.y = np.where(touched, self.window(self.x), self.y)
        return float(names["out"])


class Marks(np.ndarray[Any, Any]):
    """Notes which elements are assigned."""

    def __setitem__(self, key: Any, value: Any) -> None:
        np.asarray(self)[key] = True

    def __imul__(self, other: Any) -> Any:
        np.asarray(self)[...] = True
        return self

    __iadd__ = __imul__


def written(line: str, shape: tuple[int, ...]) -> Any:
    marks = np.zeros(shape, bool).view(Marks)
    target = re.split(" [*+]?= ", line)[0]
    if target != "out":
        exec(f"{target} {'*=' if target == 'x' else '='} True", {"x": marks})
    return np.asarray(marks)


@pytest.mark.parametrize("seed", range(60))
def test_random_writes_to_the_base_are_part_of_the_function(seed: int) -> None:
    draw = random.Random(seed)
    kind = draw.choice(list(WINDOWS))
    x, y = leaf_of(kind)
    source = [statement(draw, tuple(x.shape), kind) for _ in range(draw.randint(2, 7))] + ["out = out + (y * w).sum() + (y * y).sum() + (x * 2).sum()"]
    w = np.arange(1.0, 1 + y.numel()).reshape(y.shape) / 3
    names: dict[str, Any] = {"x": x, "y": y, "w": mg.tensor(w), "out": 0.0}
    for line in source:
        exec(line, names)
    expected = np.zeros(y.shape)
    for place in np.ndindex(*y.shape):
        nudge = np.zeros(y.shape)
        nudge[place] = step = 1e-5
        above, below = (Mirror(kind, sign * nudge).run(source, w) for sign in (1, -1))
        expected[place] = (above - below) / (2 * step)
    assert np.isclose(float(names["out"]), Mirror(kind, 0.0).run(source, w), rtol=1e-9), source
    names["out"].backward()
    found = np.zeros(y.shape) if y.grad is None else y.grad.numpy()
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4 * max(1.0, abs(expected).max())), source


WRITES: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x.fill_(3.0), lambda x, y: x.data.fill_(3.0), lambda x, y: x.detach().__setitem__(0, 3.0), lambda x, y: x.__setitem__(..., mg.tensor(3.0)),
    lambda x, y: x.view(-1).__setitem__(0, 3.0), lambda x, y: x.copy_(mg.tensor([3.0])), lambda x, y: x.__setitem__(slice(0, 1), mg.tensor([3.0]))]


@pytest.mark.parametrize("write", WRITES)
def test_an_unrecorded_write_to_the_base_makes_it_a_leaf_with_the_new_values(write: Callable[[Any, Any], Any]) -> None:
    x = mg.ones(1)
    y = x.expand(40).requires_grad_()
    view, twin = y[2:], y.detach().expand(2, 40).requires_grad_()
    kept = (y * y).sum()
    with mg.no_grad():
        write(x, y)
    assert y.tolist() == [3.0] * 40 and view.tolist() == [3.0] * 38 and twin.tolist() == [[3.0] * 40] * 2 and y.is_leaf
    ((y * y).sum() + (twin * twin).sum()).backward()
    assert y.grad.tolist() == [6.0] * 40 and twin.grad.tolist() == [[6.0] * 40] * 2  # type: ignore[union-attr]
    y.grad = None
    kept.backward()
    assert y.grad.tolist() == [2.0] * 40  # type: ignore[union-attr]  # what was saved is as it was


def test_a_step_of_an_optimizer_reaches_what_repeats_a_parameter() -> None:
    p = mg.nn.Parameter(mg.ones(1))
    y = p.detach().expand(3).requires_grad_()
    p.grad = mg.ones(1)
    mg.optim.SGD([p], 0.25).step()
    assert y.tolist() == [0.75] * 3


REFUSED: list[Callable[[Any], Any]] = [
    lambda y: y.add_(1), lambda y: y.__setitem__(0, 1.0), lambda y: y.data.fill_(0), lambda y: y.detach()[0].fill_(1), lambda y: y.copy_(mg.ones(3)),
    lambda y: y.__setitem__(slice(0, 2), mg.ones(2)), lambda y: mg.optim.Adam([y]).step(), lambda y: y.data.normal_(), lambda y: mg.add(y, y, out=y.detach()),
    lambda y: y.data.masked_fill_(y > 0, 1.0), lambda y: mg.nn.init.zeros_(y)]


@pytest.mark.parametrize("write", REFUSED)
def test_it_is_not_written_itself(write: Callable[[Any], Any]) -> None:
    y = mg.ones(1).expand(3).requires_grad_()
    y.grad = mg.ones(3)
    with mg.no_grad(), pytest.raises(RuntimeError, match="same memory"):
        write(y)
    assert y.tolist() == [1.0] * 3 and not y.detach().numpy().flags.writeable
