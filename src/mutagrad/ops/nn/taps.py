"""Resampling along one dimension: what each new position is made of, and how that is computed."""
from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from ...arrays import np
from ...arrays.compiled import images
from ...arrays.kinds import is_plain
from ...arrays.parallel import MIDDLE, assign, in_turn, is_finite
from ...arrays.products import multiply
from ...base.modes import call_with
from ...base.operands import Array
from . import planes

_FEW = 32  # positions of a border that are copied one by one
_APART = 4  # positions after which what a new one is made of may repeat itself, a step further
_DENSE = 32  # how many times as much work the products may be that a matrix of weights makes


class _Border(NamedTuple):
    """Of a dimension that is an old one with something around it: where that part begins, in the new and in the old
    one, how long it is, and of the other positions which one of the old ones they are copies of."""

    start: int
    first: int
    length: int
    others: tuple[tuple[int, int], ...]


def _border_of(at: Array) -> _Border | None:
    """What positions are, if they are that, and the others are few and copies of what is in the middle."""
    ends = [0, *(np.flatnonzero(np.diff(at) != 1) + 1), len(at)]
    length, start = max((stop - start, -start) for start, stop in pairwise(ends))
    start = -start
    first = int(at[start]) if length else 0
    others = tuple((j, int(at[j])) for j in (*range(start), *range(start + length, len(at))))
    if len(others) > min(_FEW, length) or not all(first <= j < first + length for _, j in others):
        return None
    return _Border(int(start), first, int(length), others)


class Taps:
    """What each position along a new dimension is made of: positions of the old one, and weights (None for a copy).

    Rows of taps, not a matrix: what a result is not made of must not reach it, even if that is nan. `counts` says how
    many of them a row has; what stands after these has weight zero.
    """

    def __init__(self, size: int, positions: Array, weights: Array | None, counts: Array | None = None) -> None:
        self.size, self.positions, self.weights = size, positions, weights
        self.counts = np.full(len(positions), positions.shape[1]) if counts is None else counts
        self._transposed: Taps | None = None
        self.border = call_with({"kind": None}, _border_of, positions[:, 0]) if weights is None else None
        self.back_from: _Border | None = None  # what its adjoint is
        self._matrices: dict[Any, Array] = {}

    def matrix(self, dtype: Any) -> Array:
        """The weights as a matrix, of which most are zero: a product with it is the same for finite numbers."""
        if dtype not in self._matrices:
            self._matrices[dtype] = call_with({"kind": None}, self._matrix).astype(dtype)
        return self._matrices[dtype]

    def _matrix(self) -> Array:
        n = len(self.positions)
        found: Array = np.zeros((self.size, n))
        np.add.at(found, (self.positions, np.arange(n)[:, None]), self.weights)
        return found

    @cached_property
    def phases(self) -> tuple[list[_Phase], Array] | None:
        """How every second position, or third, is made of slices with one weight each, and which are made otherwise."""
        return call_with({"kind": None}, _phases_of, self.positions, self.weights)

    @cached_property
    def columns(self) -> list[Any]:
        """The first positions of all rows, the second ones, and so on: a slice each, where they are that."""
        return [_as_slice(column) for column in np.ascontiguousarray(self.positions.T)]

    @cached_property
    def are_sums(self) -> bool:
        """Whether all weights are one."""
        return self.weights is None or bool((self.weights == 1).all())

    @property
    def transposed(self) -> Taps:
        """The taps of the adjoint: which results an old position went into, and how much of it."""
        if self._transposed is None:
            self._transposed = call_with({"kind": None}, self._transpose)
            self._transposed._transposed = self
            self._transposed.back_from = self.border
        return self._transposed

    def _transpose(self) -> Taps:
        n, each = self.positions.shape
        sources, results = self.positions.reshape(-1), np.repeat(np.arange(n), each)
        weights = np.ones(sources.size) if self.weights is None else self.weights.reshape(-1)
        real = weights != 0
        sources, results, weights = sources[real], results[real], weights[real]
        order = np.argsort(sources, kind="stable")
        sources, results, weights = sources[order], results[order], weights[order]
        counts = np.bincount(sources, minlength=self.size)
        column = np.arange(sources.size) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = self.size, max(int(counts.max(initial=0)), 1)
        places, parts = np.zeros(shape, np.int64), np.zeros(shape)
        places[sources, column], parts[sources, column] = results, weights
        unused = np.arange(shape[1]) >= counts[:, None]
        first = np.where(counts > 0, places[:, 0], np.arange(self.size).clip(0, max(n - 1, 0)))
        places = np.where(unused, first[:, None], places)
        return Taps(n, places, parts, counts)


class _Phase(NamedTuple):
    """Of every so many positions: where they are, and of which slices they are made with which weights."""

    places: slice
    sources: list[tuple[slice, float]]


def _phases_of(positions: Array, weights: Array) -> tuple[list[_Phase], Array] | None:
    n = len(positions)
    for apart in range(1, _APART + 1):
        found, rest = [], []
        for first in range(min(apart, n)):
            low, high, phase = _phase_of(positions[first::apart], weights[first::apart], first, apart)
            places = np.arange(first, n, apart)
            rest += [*places[:low], *places[high:]]
            found += [] if phase is None else [phase]
        if len(rest) <= n // 8:
            return found, np.array(sorted(rest), np.intp)
    return None


def _phase_of(at: Array, weights: Array, first: int, apart: int) -> tuple[int, int, _Phase | None]:
    """From which on, and up to which, rows are like the middle one, each a step further."""
    middle = len(at) // 2
    steps = np.diff(at, axis=0)
    if not middle or steps[middle - 1].min() <= 0 or steps[middle - 1].min() != steps[middle - 1].max():
        return 0, 0, None
    step = int(steps[middle - 1, 0])
    like = (np.abs(weights - weights[middle]) < 1e-12).all(1)
    like[1:] &= (steps == step).all(1)
    like[0] &= bool((steps[0] == step).all())
    unlike = np.flatnonzero(~like)
    before, after = unlike[unlike <= middle], unlike[unlike > middle]
    low, high = int(before[-1]) if before.size else 0, int(after[0]) if after.size else len(at)
    if low == middle or before.size and not (np.abs(weights[low] - weights[middle]) < 1e-12).all():
        low += 1
    sources = [(slice(int(start), int(start) + (high - low - 1) * step + 1, step), float(weight))
               for start, weight in zip(at[low], weights[middle])]
    return low, high, _Phase(slice(first + low * apart, first + (high - 1) * apart + 1, apart), sources)


def _as_slice(at: Array) -> Any:
    steps = np.diff(at)
    if not steps.size or steps[0] <= 0 or (steps != steps[0]).any():
        return at
    return slice(int(at[0]), int(at[-1]) + 1, int(steps[0]))


def _surrounded(a: Array, dim: int, shape: tuple[int, ...], border: _Border) -> Array:
    """Copies of what stands in the middle put around it: all of that at once, the others one by one."""
    out: Array = np.empty(shape, a.dtype)
    start, first, length, others = border
    assign(_part(out, dim, start, length), _part(a, dim, first, length))
    for new, old in others:
        _part(out, dim, new, 1)[...] = _part(a, dim, old, 1)
    return out


def _gathered(g: Array, dim: int, shape: tuple[int, ...], border: _Border) -> Array:
    """The adjoint of that."""
    out: Array = np.empty(shape, g.dtype)
    start, first, length, others = border
    assign(_part(out, dim, first, length), _part(g, dim, start, length))
    for low, high in ((0, first), (first + length, shape[dim])):
        _part(out, dim, low, high - low)[...] = 0
    for new, old in others:
        part = _part(out, dim, old, 1)
        np.add(part, _part(g, dim, new, 1), out=part)
    return out


def _part(a: Array, dim: int, start: int, length: int) -> Any:
    return a[(slice(None),) * dim + (slice(start, start + length),)]


def along(a: Array, dim: int, taps: Taps) -> Any:
    shape = (*a.shape[:dim], len(taps.positions), *a.shape[dim + 1:])
    if taps.border is not None and is_plain(a):
        return _surrounded(a, dim, shape, taps.border)
    if taps.back_from is not None and is_plain(a):
        return _gathered(a, dim, shape, taps.back_from)
    if taps.weights is None:
        return a.take(taps.positions[:, 0], dim)
    if not taps.size:
        return np.zeros(shape, a.dtype)
    weights = taps.weights.astype(a.dtype)
    inner, each = prod(a.shape[dim + 1:]), weights.shape[1]
    two = inner == 1 and each == 2
    if (taps.counts < each).any() and not is_finite(a):
        return _along_each(a, dim, taps, weights)
    if (loop := planes.loop_for(images.weigh_two if two else images.weigh, a := planes.ordered(a))) is not None:
        out = np.empty(shape, a.dtype)
        sides = prod(a.shape[:dim]), -1, *(() if two else (inner,))
        given = a.reshape(sides), taps.positions, weights, out.reshape(sides)
        loop.share(sides[0], out.size * each, *given)
        return out
    return _weighed(a, dim, taps, weights)


def _weighed(a: Array, dim: int, taps: Taps, weights: Array) -> Any:
    """Sums of what the taps pick, weighed: as one product where that is less work than to pick."""
    shape, inner, (m, each) = (*a.shape[:dim], len(weights), *a.shape[dim + 1:]), prod(a.shape[dim + 1:]), weights.shape
    if inner == 1 and a.dtype.char in "fd" and taps.size <= _DENSE * each and is_plain(a) and is_finite(a):
        return multiply(a.reshape(-1, taps.size), taps.matrix(a.dtype)).reshape(shape)
    if inner == 1 and a.size >= MIDDLE and is_plain(a) and taps.phases is not None:
        return by_phases(a.reshape(-1, taps.size), taps, weights).reshape(shape)
    out: Any = None
    for k, column in enumerate(taps.columns):
        is_view = isinstance(column, slice)
        part = a[(slice(None),) * dim + (column,)] if is_view else a.take(column, dim)
        if not taps.are_sums:
            factors = np.repeat(weights[:, k], inner) if inner > 1 else weights[:, k]
            rows = part.reshape(-1, m * inner)
            part = np.multiply(rows, factors, out=None if is_view else rows).reshape(shape)
        elif is_view and out is None:
            part = part.copy()
        if out is None:
            out = part
        else:
            np.add(out, part, out=out)
    return out


def by_phases(a: Array, taps: Taps, weights: Array) -> Any:
    """The same along the rows of a matrix, of which most positions are made of slices."""
    phases, rest = taps.phases or ([], np.arange(len(weights)))
    out: Array = np.empty((len(a), len(weights)), a.dtype)

    def work(part: slice) -> None:
        given, found = a[part], out[part]
        for places, sources in phases:
            total: Any = 0
            for source, weight in sources:
                piece = given[:, source] * a.dtype.type(weight)
                total = np.add(total, piece, out=piece)
            found[:, places] = total
        if rest.size:
            found[:, rest] = np.add.reduce(given[:, taps.positions[rest]] * weights[rest], 2)

    in_turn(len(a), len(weights), work)
    return out


def _along_each(a: Array, dim: int, taps: Taps, weights: Array) -> Any:
    """The same with no more taps than there are: zero times what is not finite would be nan."""
    out = np.zeros((*a.shape[:dim], len(weights), *a.shape[dim + 1:]), a.dtype)
    for k in range(weights.shape[1]):
        there, = np.nonzero(taps.counts > k)
        factors = weights[there, k].reshape(-1, *(1,) * (a.ndim - dim - 1))
        out[(slice(None),) * dim + (there,)] += a.take(taps.positions[there, k], dim) * factors
    return out
