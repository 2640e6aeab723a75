"""Sums over the neighbours of points in an image, weighted. Each is the adjoint of the others by one of its inputs.

The place of a neighbour that does not exist is -1, and its weight zero. Nothing is read there, and nothing written:
products with that zero are made only where they are zero, too, which those of finite numbers are.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays import np
from ...arrays.kinds import take_rows
from ...arrays.parallel import is_finite
from ...arrays.places import add_at
from ...base.operands import Array
from ...core.codegen import primitive


def _numbers(shape: tuple[int, ...], places: Array, k: int) -> Any:
    """The places of the k-th neighbours in an array of this shape, as a vector's; 0 of one that does not exist."""
    n, c, size = shape
    return places[:, None, :, k].clip(0, None) + (np.arange(n * c) * size).reshape(n, c, 1)


def _existing(values: Array, places: Array, k: int) -> Any:
    """What comes of the k-th neighbours, or goes to them: zero where they do not exist."""
    return np.where(places[:, None, :, k] < 0, values.dtype.type(0), values)


def _as_it_is(values: Array, places: Array, k: int) -> Any:
    """The same for products of finite numbers: weights of neighbours that do not exist are zero."""
    return values


def _filter(*arrays: Array) -> Callable[[Array, Array, int], Any]:
    return _as_it_is if all(map(is_finite, arrays)) else _existing


def _read_corners(a: Array, w: Array, places: Array) -> Any:
    """The sum over k of a[n, c, places[n, p, k]] * w[n, p, k]."""
    flat, existing = a.reshape(-1), _filter(a)
    out = existing(take_rows(flat, _numbers(a.shape, places, 0)), places, 0) * w[:, None, :, 0]
    for k in range(1, places.shape[2]):
        out += existing(take_rows(flat, _numbers(a.shape, places, k)), places, k) * w[:, None, :, k]
    return out


def _write_corners(g: Array, w: Array, places: Array, size: int) -> Any:
    """g[n, c, p] * w[n, p, k] added up at places[n, p, k]."""
    out, existing = np.zeros((*g.shape[:2], size), g.dtype), _filter(g, w)
    for k in range(places.shape[2]):
        numbers, values = _numbers(out.shape, places, k), existing(g * w[:, None, :, k], places, k)
        add_at(out.reshape(-1), (numbers.reshape(-1),), values.reshape(-1))
    return out


def _weigh_corners(g: Array, a: Array, places: Array) -> Any:
    """The sum over channels of g[n, c, p] * a[n, c, places[n, p, k]]."""
    flat, existing = a.reshape(-1), _filter(g, a)
    return np.stack([
        np.add.reduce(existing(g * take_rows(flat, _numbers(a.shape, places, k)), places, k), 1)
        for k in range(places.shape[2])], -1)


read_corners = primitive(
    "read_corners", _read_corners, settings=("places",), inputs=("x", "y"),
    x=lambda xp, g, y, x_shape, places: xp.write_corners(g, y, places, x_shape[2]),
    y=lambda xp, g, x, places: xp.weigh_corners(g, x, places))
write_corners = primitive(
    "write_corners", _write_corners, settings=("places", "size"), inputs=("x", "y"),
    x=lambda xp, g, y, places: xp.read_corners(g, y, places),
    y=lambda xp, g, x, places: xp.weigh_corners(x, g, places))
weigh_corners = primitive(
    "weigh_corners", _weigh_corners, settings=("places",), inputs=("x", "y"),
    x=lambda xp, g, y, places: xp.read_corners(y, g, places),
    y=lambda xp, g, x, y_shape, places: xp.write_corners(x, g, places, y_shape[2]))
