"""Reading images at any coordinates, and the derivatives of that, on plain arrays of finite numbers with NumPy alone.

A few samples at a time: their channels are laid one after the other, so that one list of places serves all of them.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...arrays import np, parallel as large
from ...arrays.numpy import clip
from ...arrays.places import add_at
from ...base.operands import Array

EXACT = 1 << 23  # up to here floats of four bytes count positions


class Axis(NamedTuple):
    """Along one dimension, for every point: its neighbours there, their weights, and how these change with it."""

    places: list[Array]
    weights: list[Array]
    slopes: list[Array]


def turns(distance: Array, span: float) -> tuple[Any, Any]:
    """Of positions reflected at the ends of a span: the sign that they get, and from where they are counted then."""
    count = np.floor(np.abs(distance) / span)
    even = count % 2 == 0
    return np.where(distance < 0, -1, 1) * np.where(even, 1, -1), np.where(even, -count * span, (count + 1) * span)


def _bounded(at: Array, n: int, border: str, align: bool) -> tuple[Any, Any]:
    """Positions brought inside, as the border asks for, and their slopes: zero at the very border."""
    slope: Any = 1.0
    if border == "zeros":
        return at, slope
    if border == "reflection":
        low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
        if span <= 0:
            return np.zeros_like(at), 0.0
        slope, start = turns(at - low, span)
        at = ((at - low) * slope + (start + low)).astype(at.dtype)
    return clip(at, at.dtype.type(0), at.dtype.type(n - 1)), slope * ((at > 0) & (at < n - 1))


def _axis(coordinate: Array, n: int, nearest: bool, border: str, align: bool, slopes: bool) -> Axis:
    kind = coordinate.dtype.type
    per_unit = (n - 1) / 2 if align else n / 2
    at, slope = _bounded((coordinate + 1) * kind(per_unit) - kind(0 if align else 0.5), n, border, align)
    low = np.rint(at) if nearest else np.floor(at)
    part = at - low
    steep = np.asarray(slope * per_unit, kind) if slopes else None
    axis = Axis([], [], [])
    for place, weight, sign in ((low, 1 - part, -1),) if nearest else ((low, 1 - part, -1), (low + 1, part, 1)):
        inside = clip(place, kind(0), kind(n - 1))
        there = (inside == place).astype(kind)
        number = inside.astype(np.int64)
        if n > EXACT:  # in single precision the last of many positions is rounded up
            number = number.clip(0, n - 1)
        axis.places.append(number)
        axis.weights.append(there if nearest else weight * there)
        if steep is not None:
            axis.slopes.append(there * (kind(sign) * steep))
    return axis


class _Block:
    """A few samples: what each of their points is made of."""

    def __init__(self, axes: list[Axis], sizes: tuple[int, ...], samples: int) -> None:
        self.axes = axes
        self.corners = list(product(*(range(len(axis.places)) for axis in axes)))
        first = (np.arange(samples) * prod(sizes))[:, None]
        for axis, inner in zip(axes, (prod(sizes[d + 1:]) for d in range(len(sizes)))):
            axis.places[:] = [place * inner for place in axis.places] if inner > 1 else axis.places
        self.places = [reduce(np.add, (axis.places[k] for k, axis in zip(at, axes)), first).reshape(-1)
                       for at in self.corners]

    def weights(self, turned: int = -1) -> list[Any]:
        """The weights of the neighbours of all points, or how they change along a dimension."""
        return [reduce(np.multiply, ((axis.slopes if d == turned else axis.weights)[k]
                                     for d, (k, axis) in enumerate(zip(at, self.axes)))).reshape(-1)
                for at in self.corners]


def _in_blocks(grid: Array, sizes: tuple[int, ...], channels: int, work: Callable[[slice, _Block], None],
               *settings: Any) -> None:
    points = grid.reshape(len(grid), -1, len(sizes))

    def block(part: slice) -> None:
        given = points[part]
        axes = [_axis(np.ascontiguousarray(given[..., len(sizes) - 1 - d]), n, *settings)
                for d, n in enumerate(sizes)]
        work(part, _Block(axes, sizes, len(given)))

    large.in_turn(len(grid), points.shape[1] * max(channels, 4), block)


def _by_channel(a: Array) -> Any:
    """(channels, all elements of all samples)"""
    return np.ascontiguousarray(a.swapaxes(0, 1)).reshape(a.shape[1], -1)


def sample(a: Array, grid: Array, nearest: bool, border: str, align: bool) -> Any:
    out = np.empty((*a.shape[:2], *grid.shape[1:-1]), a.dtype)

    def work(part: slice, block: _Block) -> None:
        source = _by_channel(a[part])
        total = np.zeros((len(source), block.axes[0].weights[0].size), a.dtype)
        scratch = np.empty(total.shape[1], a.dtype)
        for places, weight in zip(block.places, block.weights()):
            for channel, row in zip(source, total):
                np.take(channel, places, out=scratch, mode="clip")
                np.multiply(scratch, weight, out=scratch)
                np.add(row, scratch, out=row)
        seen = out[part]
        seen[...] = total.reshape(seen.shape[1], len(seen), *seen.shape[2:]).swapaxes(0, 1)

    _in_blocks(grid, a.shape[2:], a.shape[1], work, nearest, border, align, False)
    return out


def sample_images(g: Array, grid: Array, shape: tuple[int, ...], nearest: bool, border: str, align: bool) -> Any:
    """The gradient by the images."""
    out = np.empty(shape, g.dtype)

    def work(part: slice, block: _Block) -> None:
        slopes, seen = _by_channel(g[part]), out[part]
        target = np.zeros((shape[1], prod(seen.shape[2:]) * len(seen)), g.dtype)
        for places, weight in zip(block.places, block.weights()):
            for row, channel in zip(slopes, target):
                add_at(channel, (places,), row * weight)
        seen[...] = target.reshape(shape[1], len(seen), *shape[2:]).swapaxes(0, 1)

    _in_blocks(grid, shape[2:], shape[1], work, nearest, border, align, False)
    return out


def sample_grid(g: Array, a: Array, grid: Array, border: str, align: bool) -> Any:
    """The gradient by the grid."""
    out = np.zeros(grid.shape, g.dtype)
    dims, points = a.ndim - 2, out.reshape(len(grid), -1, a.ndim - 2)

    def work(part: slice, block: _Block) -> None:
        source, slopes = _by_channel(a[part]), _by_channel(g[part])
        scratch = np.empty(slopes.shape[1], g.dtype)
        turned = [block.weights(d) for d in range(dims)]
        for corner, places in enumerate(block.places):
            total = np.zeros(slopes.shape[1], g.dtype)
            for channel, row in zip(source, slopes):
                np.take(channel, places, out=scratch, mode="clip")
                np.multiply(scratch, row, out=scratch)
                np.add(total, scratch, out=total)
            for d, weights in enumerate(turned):
                target = points[part][..., dims - 1 - d]
                np.add(target, (total * weights[corner]).reshape(target.shape), out=target)

    _in_blocks(grid, a.shape[2:], a.shape[1], work, False, border, align, True)
    return out
