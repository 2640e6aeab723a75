"""Loops and branches of a compiled step are those of Python, values and gradients; one round is traced, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn

jax = pytest.importorskip("jax")

from mutagrad.xla import program  # noqa: E402


def both(function: Callable[..., Any], *arrays: Any) -> None:
    """Value and gradients of a function, eagerly and compiled with its backward inside."""
    def step(*leaves: Any) -> Any:
        leaves = tuple(x.detach().clone().requires_grad_(x.dtype.is_floating_point) for x in leaves)
        loss = function(*leaves)
        wanted = [x for x in leaves if x.requires_grad]
        grads = mg.autograd.grad(loss, wanted, allow_unused=True)
        return loss.detach(), [mg.zeros_like(x) if g is None else g for g, x in zip(grads, wanted)]

    given = [mg.tensor(a) for a in arrays]
    expected, got = step(*given), mg.compile(step)(*given)
    for e, g in zip((expected[0], *expected[1]), (got[0], *got[1]), strict=True):
        np.testing.assert_allclose(g.numpy(), e.numpy(), 1e-10, 1e-12)


RNG = np.random.default_rng(0)
X, W = RNG.standard_normal(6), RNG.standard_normal((3, 3))


def in_place(checkpoint: Any) -> Callable[..., Any]:
    def function(x: Any, w: Any) -> Any:
        y, record = mg.zeros(6, dtype=x.dtype), mg.zeros(7, dtype=x.dtype)
        y[0] = x.sum()
        view = y[1:4]

        def body(i: Any) -> None:
            y[1:] += y[:-1] * x[0]
            view.mul_(w[i % 3, 0] + 1)
            y[0] = mg.sin(y[0]) * x[i % 6]
            y[y > 2] *= 0.5
            record[i] = (y * y).sum()

        mg.loop(7, body, checkpoint=checkpoint)
        return (record * record).sum() + y.sum()

    return function


@pytest.mark.parametrize("checkpoint", [False, True, 1, 2, 3, 7, 100])
def test_a_loop_with_mutation(checkpoint: Any) -> None:
    both(in_place(checkpoint), X, W)


def test_loops_in_loops_and_branches() -> None:
    def function(x: Any, w: Any) -> Any:
        h, total = x.clone(), mg.zeros((), dtype=x.dtype)

        def outer(i: Any) -> None:
            def inner(j: Any) -> None:
                h.add_(0.1 * (w[j] * h[:3]).sum())

            mg.loop(3, inner)
            total.add_(mg.cond(h.sum() > 0, lambda: (h * h).sum(), lambda: h.sin().sum()))
            h.mul_(mg.cond(h[0] > i * 0.1, lambda v: v * 0.5, lambda v: v * v, (h,)).detach() * 0 + 0.9)

        mg.loop(4, outer)
        return total

    both(function, X, W)


def test_a_loop_of_no_rounds_and_of_one() -> None:
    for n in (0, 1):
        def function(x: Any, w: Any, n: int = n) -> Any:
            y = x.clone()
            mg.loop(n, lambda i: y.mul_(w[0, 0]))
            return (y * y).sum()

        both(function, X, W)


def test_branches_that_write() -> None:
    for sign in (1.0, -1.0):
        def function(x: Any, w: Any) -> Any:
            y = x.clone()

            def first() -> Any:
                y[0] = w.sum()
                return y * 2

            def second() -> Any:
                y[1:].mul_(w[0, 1])
                return y.exp()

            z = mg.cond(x.sum() > 0, first, second)
            return (y * y).sum() + (z * y).sum()

        both(function, sign * np.abs(X), W)


def test_a_branch_that_is_known_is_python() -> None:
    step = mg.compile(lambda x: mg.cond(True, lambda: x * 2, lambda: x.nonzero()))
    assert step(mg.ones(2)).tolist() == [2, 2]


def test_layers_in_a_loop() -> None:
    """A recurrent network, whose weights every round reads: their gradients are sums over the rounds."""
    def make(rounds: Callable[..., Any]) -> Any:
        mg.manual_seed(0)
        cell, out = nn.Linear(5, 4), nn.Linear(4, 1)
        parameters = [*cell.parameters(), *out.parameters()]
        optimizer = mg.optim.Adam(parameters, lr=0.05)

        def step(x: Any) -> Any:
            h, seen = mg.zeros(3, 4), mg.zeros(10, 3)

            def one(t: Any) -> None:
                h.copy_(mg.tanh(cell(mg.cat([h, x[t].reshape(3, 1)], 1))))
                seen[t] = out(h).squeeze(1)

            rounds(10, one)
            optimizer.zero_grad()
            loss = (seen - x.roll(-1, 0)).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, parameters

    def plain(n: int, body: Callable[[int], None]) -> None:
        for i in range(n):
            body(i)

    eager, expected = make(plain)
    step, parameters = make(mg.loop)
    compiled = mg.compile(step)
    for _ in range(3):
        x = mg.randn(10, 3)
        np.testing.assert_allclose(compiled(x).item(), eager(x).item(), 1e-5)
    for p, e in zip(parameters, expected):
        np.testing.assert_allclose(p.detach().numpy(), e.detach().numpy(), 1e-4, 1e-6)
        np.testing.assert_allclose(p.grad.numpy(), e.grad.numpy(), 1e-4, 1e-6)


def traced(function: Callable[..., Any], *arguments: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = []
    inputs = program.Program.inputs
    monkeypatch.setattr(program.Program, "inputs", lambda self, now, closed: (found.append(closed), inputs(self, now, closed))[1])
    mg.compile(function)(*arguments)
    return found[-1].jaxpr


def variables(jaxpr: Any) -> list[Any]:
    found = []
    for equation in jaxpr.eqns:
        found += equation.outvars
        for value in equation.params.values():
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    found += variables(inner)
    return found


def simulator(n: int, checkpoint: Any = False) -> Callable[..., Any]:
    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x.clone()
        mg.loop(n, lambda i: y.mul_(1 - 0.1 * y / n), checkpoint=checkpoint)
        return mg.autograd.grad(y.sum(), x)[0]

    return step


def test_the_program_does_not_grow_with_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (len(variables(traced(simulator(n), mg.ones(3), monkeypatch=monkeypatch))) for n in (5, 100_000))
    assert few == many


def test_checkpoints_bound_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def largest(checkpoint: Any) -> int:
        return max(int(v.aval.size) for v in variables(traced(simulator(10_000, checkpoint), mg.ones(50), monkeypatch=monkeypatch)))

    assert largest(False) == 50 * 10_000 and largest(True) <= 10_000 and largest(50) <= 10_000


def test_a_million_rounds() -> None:
    expected = 1 / (1 + 0.1) ** 2  # y' = -0.1 y^2, from 1 for a time of 1
    assert abs(mg.compile(simulator(1_000_000, True))(mg.ones(1, dtype=mg.float64)).item() - expected) < 1e-6


def test_random_numbers_differ_from_round_to_round() -> None:
    @mg.compile
    def step() -> Any:
        drawn, dropped = mg.zeros(4, 100), mg.zeros(4, 100)
        x = mg.ones(100, requires_grad=True)
        y = x.clone()

        def body(i: Any) -> None:
            drawn[i] = mg.rand(100)
            dropped[i] = nn.functional.dropout(mg.ones(100))
            y.mul_(nn.functional.dropout(mg.ones(100), 0.5) + 1)

        mg.loop(4, body)
        g, = mg.autograd.grad(y.sum(), x)
        return drawn, dropped, y.detach(), g

    mg.manual_seed(0)
    drawn, dropped, y, g = step()
    assert len({tuple(row) for row in drawn.tolist()}) == 4 and len({tuple(row) for row in dropped.tolist()}) == 4
    assert mg.equal(y, g)  # the backward saw the same numbers
    again = step()
    assert not mg.equal(again[0], drawn)


def test_while() -> None:
    @mg.compile
    def step(x: Any) -> Any:
        return mg.while_loop(lambda i, y: y.sum() < 100, lambda i, y: (i + 1, y * 2), (mg.tensor(0), x))

    i, y = step(mg.ones(3))
    assert i.item() == 6 and y.tolist() == [64, 64, 64]
    with pytest.raises(NotImplementedError, match="no derivative"):
        mg.compile(lambda x: mg.while_loop(lambda y: y.sum() < 100, lambda y: (y * 2,), (x,)))(mg.ones(3, requires_grad=True))


def test_what_a_round_makes_cannot_be_kept() -> None:
    def rebinding(x: Any) -> Any:
        state = {"h": x}

        def body(i: Any) -> None:
            state["h"] = state["h"] * 2

        mg.loop(3, body)
        return state["h"]

    assert rebinding(mg.ones(1)).item() == 8
    with pytest.raises(NotImplementedError, match="kept outside"):
        mg.compile(rebinding)(mg.ones(1))


def test_errors() -> None:
    with pytest.raises(TypeError, match="integer"):
        mg.loop(mg.tensor(3), lambda i: None)
    with pytest.raises(NotImplementedError, match="different shapes"):
        mg.compile(lambda x: mg.cond(x.sum() > 0, lambda: x * 1, lambda: x[:1] * 1))(mg.ones(3))
    with pytest.raises(NotImplementedError, match="second derivative"):
        def second(x: Any) -> Any:
            y = x.clone()
            mg.loop(2, lambda i: y.mul_(y))
            return mg.autograd.grad(y.sum(), x, create_graph=True)

        mg.compile(second)(mg.ones(3, requires_grad=True))


def test_overlapping_updates_are_right() -> None:
    """XLA on the CPU may do an update in place while it still reads what it overwrites; see arrays/xla/geometry.py."""
    def step(x: Any) -> Any:
        y = x.clone()
        for _ in range(3):
            y[1:] += y[:-1] * 0.5
            y[:-1] -= y[1:] * 0.25
            y[::2] = y[1::2] + y[::2].flip(0)
        return y

    for size in (6, 64, 1000, 4096):
        x = mg.randn(size)
        np.testing.assert_allclose(mg.compile(step)(x).numpy(), step(x).numpy(), 1e-4, 1e-5)


def test_overlapping_updates_are_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    def primitives(function: Callable[..., Any]) -> set[str]:
        return {e.primitive.name for e in traced(function, mg.ones(8), monkeypatch=monkeypatch).eqns}

    def shifted(x: Any) -> Any:
        y = x * 2
        y[1:] += y[:-1]
        return y

    def apart(x: Any) -> Any:
        y = x * 2
        y[1:3] = x[:2]
        return y

    assert "select_n" in primitives(shifted) and "dynamic_update_slice" not in primitives(shifted)
    assert "dynamic_update_slice" in primitives(apart)


def _record_of_sums(x: Any, w: Any) -> Any:
    """Records of all shapes: read before they are written, from the end, in parts, twice, and beyond the rounds."""
    h, row, total = x.clone(), mg.zeros(9, 6, dtype=x.dtype), mg.zeros((), dtype=x.dtype)
    old, cube, flat, once = w.repeat(3, 1).sin(), mg.zeros(7, 2, 3, dtype=x.dtype), mg.zeros(7, dtype=x.dtype), mg.ones(7, 1)
    back, twice, early, part = mg.zeros(7, dtype=x.dtype), x.repeat(7, 1), mg.ones(7, dtype=x.dtype), mg.zeros(7, 4, dtype=x.dtype)

    def body(i: Any) -> None:
        h.mul_(old[i].sum() * 0.3 + 1)
        row[i] = h * h
        old[i] = old[i] * h[:3] + w[i % 3]      # what is there is read first
        cube[i] = h.view(2, 3)
        flat[i] = h.sum()
        once[i] = 2.0
        back[-1 - i] = h[0]                     # from the end: another row than the number's
        twice[i] *= h
        twice[i] += x
        early[i] = early[i - 1] + h[1]          # the row of another round
        part[i, 1:3] = h[:2]
        total.add_(twice[i].sum() + row[i][2])  # a row of this round, read after it was written

    mg.loop(7, body)
    return sum((r * r).sum() for r in (row, old, cube, flat, once, back, twice, early, part, total))


def test_rows_that_each_round_writes() -> None:
    both(_record_of_sums, X, W)


@pytest.mark.parametrize("checkpoint", [False, 3])
def test_records_that_are_written_again_and_overlap(checkpoint: Any) -> None:
    def function(x: Any, w: Any) -> Any:
        record = mg.zeros(6, 6, dtype=x.dtype)
        leaf = record + x

        def first(i: Any) -> None:
            leaf[i] = leaf[i].sin() * w[0, 0]

        def second(i: Any) -> None:
            leaf[i] = leaf[i].exp() + leaf.detach()[3]

        mg.loop(6, first, checkpoint=checkpoint)
        mg.loop(3, first, checkpoint=checkpoint)  # fewer rounds than rows
        mg.loop(6, second, checkpoint=checkpoint)
        return (leaf * leaf).mean()

    both(function, X, W)


def test_a_record_is_not_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        h, record = x.detach().clone(), mg.zeros(50, 8)
        h = (h * x).clone()

        def body(i: Any) -> None:
            h.mul_(x)
            record[i] = h

        mg.loop(50, body)
        (record * record).sum().backward()
        return x.grad

    scans = [e for e in traced(function, mg.ones(8, requires_grad=True), monkeypatch=monkeypatch).eqns
             if e.primitive.name == "scan"]
    assert len(scans) == 2  # there and back
    for equation in scans:
        inner = equation.params["jaxpr"].jaxpr
        first = equation.params["num_consts"]
        carried = inner.invars[first:first + equation.params["num_carry"]]
        assert (50, 8) not in [v.aval.shape for v in carried]
