"""Loops and branches inside a compiled step: one round is traced, and XLA repeats it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from ..arrays.xla.memory import Cell, NotTraced, wrap
from ..base.errors import NotSupported
from ..base.modes import mode
from ..core.factory import make
from .regions import History, Region, Reverse, differentiable, finish
from .rows import Round, scan

INDEX = jax.ShapeDtypeStruct((), numpy.dtype(numpy.int64))


def traced_loop(n: int, body: Callable[[Any], Any], checkpoint: bool | int) -> None:
    """One round of a loop, traced; its rounds are a scan of XLA's, and so is its reverse."""
    def one(i: Any) -> None:
        body(make(wrap(i, region_place())))

    region = Region(one, [INDEX], n)
    histories = list(region.histories(set(region.written)).values())
    rounds = Rounds(region, histories, n)
    start = [c.value for c in region.written]
    if not (mode.grad and any(s.writer is not None for s, _ in histories)):
        return finish("loop", [region], region.written, rounds.forward(start, 0, n), histories, set(), None)
    length = 0 if not checkpoint else min(isqrt(n) if checkpoint is True else int(checkpoint), n)
    whole = n - n % length if length else 0
    middle, back_whole = rounds.segments(start, whole, length) if whole else (start, lambda adjoints: adjoints)
    end, back_rest = rounds.kept(middle, whole, n - whole) if whole < n else (middle, lambda adjoints: adjoints)
    return finish("loop", [region], region.written, end, histories, differentiable(rounds.reverse.reached, histories),
                  lambda adjoints: back_whole(back_rest(adjoints)))


def region_place() -> Any:
    level = mode.now.kind
    return level.place


class Rounds:
    """Rounds of a region, forwards and backwards. What is carried are the values of the cells that it writes."""

    def __init__(self, region: Region, histories: Sequence[History], count: int) -> None:
        self.region, self.histories, self.count = region, histories, count
        self.cells: list[Cell] = [*region.written, *region.fixed]
        self.fixed = [c.value for c in region.fixed]
        self._reverse: Reverse | None = None

    @property
    def reverse(self) -> Reverse:
        if self._reverse is None:
            self._reverse = Reverse(self.region, self.cells, self.histories, [INDEX])
        return self._reverse

    def once(self, carry: Sequence[Any], i: Any) -> list[Any]:
        return self.region.forward(dict(zip(self.cells, (*carry, *self.fixed))), [i], self.region.written)

    def forward(self, start: Sequence[Any], first: Any, count: int) -> list[Any]:
        found: list[Any] = self.scan(lambda carry, i, _: (self.once(carry, i), None), start, None, first, count)[0]
        return found

    def scan(self, once: Round, start: Sequence[Any], xs: Any, first: Any, count: int, reverse: bool = False) -> Any:
        return scan(once, start, xs, first, count, self.count, reverse)

    def kept(self, start: Sequence[Any], first: Any, count: int) -> tuple[list[Any], Callable[[Any], list[Any]]]:
        """The same, keeping of each round what its reverse needs; and the reverse."""
        used = self.reverse.used[:len(self.region.written)]

        def once(carry: Any, i: Any, _: Any) -> Any:
            return self.once(carry, i), [v for v, u in zip(carry, used) if u]

        end, kept = self.scan(once, start, None, first, count)

        def back(adjoints: Any) -> list[Any]:
            def once(adjoints: Any, i: Any, kept: Any) -> Any:
                some = iter(kept)
                carry = [next(some) if u else jnp.zeros(c.twin.shape, c.twin.dtype)
                         for c, u in zip(self.region.written, used)]
                return self.reverse([*carry, *self.fixed], [i], adjoints), None

            found: list[Any] = self.scan(once, adjoints, kept, first, count, reverse=True)[0]
            return found

        return end, back

    def segments(self, start: Sequence[Any], count: int, length: int) -> tuple[list[Any], Callable[[Any], list[Any]]]:
        """The same, keeping what is carried before every so many rounds, which are computed again in reverse."""
        starts = jnp.arange(0, count, length)
        end, kept = lax.scan(lambda carry, first: (self.forward(carry, first, length), carry), list(start), starts)

        def back(adjoints: Any) -> list[Any]:
            def once(adjoints: Any, given: Any) -> Any:
                carry, first = given
                return self.kept(carry, first, length)[1](adjoints), None

            return lax.scan(once, list(adjoints), (kept, starts), reverse=True)[0]

        return end, back


def traced_cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Both branches, traced, of which XLA runs one."""
    regions = [Region(lambda f=f: f(*operands)) for f in (true_fn, false_fn)]
    if regions[0].spec != regions[1].spec or [_kind(r) for r in regions[0].results] != [
            _kind(r) for r in regions[1].results]:
        raise NotTraced("cond: the branches give results of different shapes or types",
                        why="they become one program, whose results have one shape",
                        fix="the same shapes and types in both")
    chosen = pred._array.values().reshape(()).astype(bool)
    written = list(dict.fromkeys(c for r in regions for c in r.written))
    cells = list(dict.fromkeys(written + [c for r in regions for c in r.fixed]))
    histories = list({k: h for r in regions for k, h in r.histories(set(written)).items()}.values())
    start = [c.value for c in cells]

    def branch(region: Region) -> Callable[[Any], list[Any]]:
        return lambda values: region.forward(dict(zip(cells, values)), [], written)

    values = lax.cond(chosen, *(branch(r) for r in regions), start)
    if not (mode.grad and any(s.writer is not None for s, _ in histories)):
        return finish("cond", regions, written, values, histories, set(), None)
    back = [Reverse(r, cells, histories, []) for r in regions]

    def reverse(adjoints: list[Any]) -> list[Any]:
        return lax.cond(chosen, *((lambda v, g, b=b: b(v, [], g)) for b in back), start, adjoints)

    changed = differentiable(back[0].reached, histories) | differentiable(back[1].reached, histories)
    return finish("cond", regions, written, values, histories, changed, reverse)


def _kind(result: Any) -> Any:
    return (result.shape, result.dtype) if isinstance(result, jax.ShapeDtypeStruct) else result


def traced_while(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried: Sequence[Any]) -> Any:
    """A loop of which it is not known how often it runs. It has no reverse."""
    state = [x.detach().clone() for x in carried]
    if mode.grad and any(x.requires_grad for x in carried):
        raise NotSupported("while_loop: has no derivative inside a compiled step",
                           why="how many rounds there are is not known, and so not what has to be kept for backward",
                           fix="mutagrad.loop(n, body) with as many rounds as there may be, and mutagrad.where inside")

    def body() -> None:
        news = [new.clone() for new in body_fn(*state)]
        for x, new in zip(state, news, strict=True):
            x.copy_(new)

    region, test = Region(body), Region(lambda: cond_fn(*state))
    doubted = region.outer.session.doubts.cell
    if any(cell is not doubted for cell in test.written):
        raise NotTraced("while_loop: the condition writes to memory", fix="write in the body")
    cells = list(dict.fromkeys([*region.written, *region.fixed, *test.fixed, *test.written]))
    rest = [c.value for c in cells[len(region.written):]]

    def given(values: Any) -> dict[Cell, Any]:
        return dict(zip(cells, (*values, *rest)))

    values = lax.while_loop(lambda v: test.forward(given(v), [], [])[0].reshape(()).astype(bool),
                            lambda v: region.forward(given(v), [], region.written),
                            [c.value for c in region.written])
    finish("while_loop", [region], region.written, values, [], set(), None)
    return tuple(state)
