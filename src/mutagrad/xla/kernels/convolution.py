"""Convolutions, their transposes, the columns of windows, and interpolation."""
from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from ...arrays.xla.rules import precision
from ...ops.nn.sliding import Sizes
from ...ops.nn.taps import Taps
from .lowering import lowered, transposed


def _convolved(x: Any, weight: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    return lax.conv_general_dilated(x, weight, stride, [(p, p) for p in padding], rhs_dilation=dilation,
                                    feature_group_count=groups, precision=precision())


@lowered("conv")
def conv(x: Any, weight: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    if not x.size or not weight.size:
        return NotImplemented
    return _convolved(x, weight, stride, padding, dilation, groups)


@lowered("conv_bias")
def conv_bias(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    return _biased(conv(x, weight, *settings), bias)


def _biased(out: Any, bias: Any) -> Any:
    return out if out is NotImplemented else out + bias.reshape(-1, *(1,) * (out.ndim - 2))


def _first(found: Any, size: Sizes) -> Any:
    """As many positions as there are: a stride that does not divide the image may find more."""
    return lax.slice(found, (0,) * found.ndim, found.shape[:2] + size) if found.shape[2:] != size else found


@lowered("conv_transpose")
def conv_transpose(g: Any, weight: Any, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                   groups: int) -> Any:
    if not g.size or not weight.size:
        return NotImplemented
    shape = g.shape[0], weight.shape[1] * groups, *size

    def forward(x: Any) -> Any:
        return _first(_convolved(x, weight, stride, padding, dilation, groups), g.shape[2:])

    return transposed(forward, shape, g.dtype, g)


@lowered("conv_transpose_bias")
def conv_transpose_bias(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    return _biased(conv_transpose(x, weight, *settings), bias)


@lowered("conv_weight")
def conv_weight(g: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    if not g.size or not x.size:
        return NotImplemented
    shape = g.shape[1], x.shape[1] // groups, *kernel

    def forward(weight: Any) -> Any:
        return _first(_convolved(x, weight, stride, padding, dilation, groups), g.shape[2:])

    return transposed(forward, shape, x.dtype, g)


# -------------------------------------------------------------------------------------------------------------- columns

@lru_cache(64)
def _places(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    """Where in the padded image each kernel element of each window lies: (elements, windows)."""
    places = numpy.zeros((1, 1), numpy.int64)
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        out = (n + 2 * p - d * (k - 1) - 1) // s + 1
        along = numpy.arange(k)[:, None] * d + numpy.arange(out) * s
        places = (places[:, None, :, None] * (n + 2 * p) + along[None, :, None, :]).reshape(
            places.shape[0] * k, places.shape[1] * out)
    return places


def _columns(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    places = _places(x.shape[2:], kernel, stride, padding, dilation)
    image = jnp.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)]).reshape(*x.shape[:2], -1)
    found = image.at[:, :, places].get(mode="promise_in_bounds")
    return found.reshape(x.shape[0], x.shape[1] * places.shape[0], places.shape[1])


@lowered("columns")
def columns(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    return _columns(x, kernel, stride, padding, dilation) if x.size else NotImplemented


@lowered("sum_columns")
def sum_columns(g: Any, size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    if not g.size:
        return NotImplemented
    shape = g.shape[0], g.shape[1] // int(numpy.prod(kernel)), *size
    return transposed(lambda x: _columns(x, kernel, stride, padding, dilation), shape, g.dtype, g)


# -------------------------------------------------------------------------------------------------------- interpolation

@lowered("resample")
def resample(a: Any, maps: tuple[tuple[int, Taps], ...]) -> Any:
    if not a.size:
        return NotImplemented
    for dim, taps in maps:
        a = _along(a, dim, taps)
    return a


def _along(a: Any, dim: int, taps: Taps) -> Any:
    """Taps that weigh nothing are left out of the sum: what they read may be nan."""
    positions: Any = taps.positions
    if taps.weights is None:
        return jnp.take(a, positions[:, 0], dim, mode="clip")
    weights = taps.weights.astype(a.dtype).reshape(*taps.weights.shape, *(1,) * (a.ndim - dim - 1))
    picked = jnp.take(a, positions, dim, mode="clip")
    return (picked * weights).sum(dim + 1)


# ------------------------------------------------------------------------------------------------- neighbours of points

def _picked(a: Any, places: Any) -> Any:
    """(n, channels, points, neighbours) of the flat images; zero of neighbours that do not exist, whose place is -1."""
    rows = jnp.reshape(places, (places.shape[0], 1, -1))
    found = jnp.take_along_axis(a, rows, 2, mode="clip").reshape(*a.shape[:2], *places.shape[1:])
    return jnp.where(places[:, None] < 0, 0, found)


@lowered("read_corners")
def read_corners(a: Any, w: Any, places: Any) -> Any:
    return (_picked(a, places) * w[:, None]).sum(3) if a.size else NotImplemented


@lowered("write_corners")
def write_corners(g: Any, w: Any, places: Any, size: int) -> Any:
    if not g.size:
        return NotImplemented
    n, c = g.shape[:2]
    each, channel = numpy.arange(n)[:, None, None], numpy.arange(c)[:, None]
    values = jnp.where(places[:, None] < 0, 0, g[..., None] * w[:, None]).reshape(n, c, -1)
    rows = jnp.maximum(jnp.reshape(places, (n, 1, -1)), 0)
    return jnp.zeros((n, c, size), g.dtype).at[each, channel, rows].add(values, mode="promise_in_bounds")


@lowered("weigh_corners")
def weigh_corners(g: Any, a: Any, places: Any) -> Any:
    if not g.size:
        return NotImplemented
    return jnp.where(places < 0, 0, (g[..., None] * _picked(a, places)).sum(1))
