"""Parts of a tensor at a place that is known only when the step runs: views, as they are where the place is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

pytest.importorskip("jax")

STEPS: list[Callable[[Any, Any], Any]] = []
ROUNDS: list[Callable[[Any, Any], Any]] = []


def step(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a matrix and of a number that it is compiled without knowing."""
    STEPS.append(function)
    return function


def rounds(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a matrix to write to and of one to read, differentiated by both."""
    ROUNDS.append(function)
    return function


@pytest.mark.parametrize("function", STEPS, ids=lambda f: f.__name__)
def test_in_a_step(function: Callable[[Any, Any], Any]) -> None:
    found = []
    for call in (function, mg.compile(function)):
        x = mg.arange(12.0).reshape(4, 3)
        result = [call(x, mg.tensor(i)) for i in (2, 1, -1)]
        found.append([x.tolist(), *(r.tolist() for r in result)])
    assert found[0] == found[1]


@pytest.mark.parametrize("function", ROUNDS, ids=lambda f: f.__name__)
def test_in_a_loop_with_its_gradients(function: Callable[[Any, Any], Any]) -> None:
    def whole(*leaves: Any) -> Any:
        leaves = tuple(x.detach().clone().requires_grad_() for x in leaves)
        loss = function(leaves[0].clone(), leaves[1])
        return loss.detach(), mg.autograd.grad(loss, leaves)

    rng = np.random.default_rng(0)
    given = [mg.tensor(rng.random((5, 3)) + 0.1) for _ in range(2)]
    expected, got = whole(*given), mg.compile(whole)(*given)
    for e, g in zip((expected[0], *expected[1]), (got[0], *got[1])):
        np.testing.assert_allclose(g.numpy(), e.numpy(), 1e-10, 1e-12)


def test_on_a_device() -> None:
    x, i = mg.arange(8.0).reshape(4, 2).to("xla"), mg.tensor(1).to("xla")
    x[i].add_(1)
    x[i, 0] += 2
    x.select(1, i)[i] = 7
    row = x[i]
    x.mul_(2)
    assert x.tolist() == [[0, 2], [10, 14], [8, 10], [12, 14]] and row.tolist() == [10, 14]


@step
def written(x: Any, i: Any) -> Any:
    x[i].add_(1)
    x[i, 1:].mul_(2)
    x[1:, i][0] = 5.0
    x[..., i].neg_()
    x[i].copy_(x[0] + 1)
    x[i][i] = 3.0
    x[i][0] += 2
    return x[i] * 1


@step
def written_by_functions(x: Any, i: Any) -> Any:
    x.select(0, i).add_(1)
    x.narrow(0, i.abs(), 2)[1].mul_(3)
    x.view(-1)[i].sub_(4)
    mg.add(x[0], 1, out=x[i])
    return x.select(1, i) * 1


@step
def read_after_a_write(x: Any, i: Any) -> Any:
    row, same = x[i], x[i]
    x.mul_(2)
    row.add_(1)
    seen = same.clone()
    x[i] = 0.5
    return mg.stack([row, same, seen])


@step
def exchanged(x: Any, i: Any) -> Any:
    a, b = x[i], x[0]
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)
    return a * 1


@step
def without_a_history(x: Any, i: Any) -> Any:
    x.detach()[i].add_(1)
    x[i].detach().add_(2)
    x.data[i].mul_(3)
    return x[i] * 1


@step
def a_place_that_changes(x: Any, i: Any) -> Any:
    row = x[i]
    i.abs_().add_(1).remainder_(4)
    row.mul_(0)
    x[i] += 10

    def changes() -> float:
        i.sub_(1)
        return 5.0

    x[i] += changes()
    return row * 1


@step
def a_number_comes_before_what_picks(x: Any, i: Any) -> Any:
    y = x.reshape(2, 2, 3)
    y[i.abs() % 2, :, mg.tensor([0, 2])] = mg.arange(4.0).reshape(2, 2)
    return y[i.abs() % 2, :, mg.tensor([2, 0, 1])]


@step
def a_number_that_is_known(x: Any, i: Any) -> Any:
    x[mg.tensor(1)].add_(i)
    return x[mg.tensor(1)] * 1


@rounds
def rows_that_are_filled(y: Any, x: Any) -> Any:
    h = mg.zeros(3, dtype=x.dtype)

    def body(i: Any) -> None:
        h.copy_((h * x[0] + x[i]).tanh())
        y[i].copy_(h)
        y[i].mul_(x[1])
        y[i][0].add_(x[i, 1])

    mg.loop(5, body, checkpoint=2)
    return (y * x).sum()


@rounds
def elements(y: Any, x: Any) -> Any:
    def body(i: Any) -> None:
        y[i + 1] += y[i] * x[i]
        y[i] *= y[i + 1]
        y[i, 0].sin_()
        y.narrow(0, i, 2).mul_(x.narrow(1, i // 2, 1)[:2])

    mg.loop(4, body)
    return y.sum()


@rounds
def rows_that_are_read_late(y: Any, x: Any) -> Any:
    seen, last = mg.zeros(5, dtype=x.dtype), y[mg.zeros_like(x[0, 0]).long() + 2]

    def body(i: Any) -> None:
        row = y[i]
        y.mul_(x)
        seen[i] = row.sum()
        row.add_(row.detach())
        y[0].mul_(row[1])
        last.add_(1)

    mg.loop(5, body)
    return (y * y).sum() + seen.sum() + last.prod()


@rounds
def rows_in_branches_and_loops(y: Any, x: Any) -> Any:
    def body(i: Any) -> None:
        row = y[i]
        mg.loop(3, lambda j: row[j].mul_(x[j, 0]))
        mg.cond(row.sum() > 0.5, lambda: [row.mul_(2)].clear(), lambda: [y[i].sub_(row * x[0])].clear())

    mg.loop(5, body)
    return (y * y).sum()


@rounds
def rows_written_without_a_gradient(y: Any, x: Any) -> Any:
    def body(i: Any) -> None:
        with mg.no_grad():
            y[i].mul_(2)
            y[i].detach().add_(1)
        y[i].mul_(x[0])

    mg.loop(5, body)
    return y.sum()
