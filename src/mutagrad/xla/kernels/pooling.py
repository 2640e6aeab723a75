"""Pooling: reductions over windows."""
from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from ...ops.nn.pool import window_origins
from ...ops.nn.sliding import Sizes, Windows
from .lowering import lowered, transposed


def _strides(w: Windows) -> tuple[Sizes, Sizes]:
    """Of a plan of windows, along each dimension: from one window to the next, from one kernel element to the next."""
    memory = [prod(w.padded[d + 1:]) for d in range(len(w.padded))]
    return (tuple(s // m for s, m in zip(w.steps, memory)), tuple(s // m for s, m in zip(w.shifts, memory)))


def _reduced(operands: Any, initial: Any, reducer: Any, w: Windows, size: Sizes) -> Any:
    stride, dilation = _strides(w)
    border = [(p, (o - 1) * s + d * (k - 1) + 1 - n - p)
              for p, o, s, d, k, n in zip(w.padding, w.out, stride, dilation, w.kernel, size)]
    return lax.reduce_window(operands, initial, reducer, (1, 1, *w.kernel), (1, 1, *stride),
                             ((0, 0), (0, 0), *border), window_dilation=(1, 1, *dilation))


@lowered("largest_in_windows")
def largest_in_windows(a: Any, w: Windows) -> Any:
    """The largest, and under which kernel element: the first of several, the last nan, never of the border."""
    if not a.size:
        return NotImplemented
    floats = a.dtype.kind in "fV"
    size = a.shape[2:]
    lowest = numpy.array(-numpy.inf if floats else numpy.iinfo(a.dtype).min, a.dtype)
    places = lax.broadcasted_iota(numpy.int32, (prod(a.shape[:2]), prod(size)), 1).reshape(a.shape)

    def later(one: Any, other: Any) -> Any:
        (x, i), (y, j) = one, other
        second = (y > x) | (y == x) & (j < i)
        if floats:
            second = jnp.where((x != x) | (y != y), (y != y) & ((x == x) | (j > i)), second)
        return jnp.where(second, y, x), jnp.where(second, j, i)

    best, found = _reduced((a, places), (lowest, numpy.int32(2**31 - 1)), later, w, size)
    return best, _elements(found, w, size)


def _elements(found: Any, w: Windows, size: Sizes) -> Any:
    """The numbers of kernel elements out of positions in the image."""
    stride, dilation = _strides(w)
    numbers: Any = numpy.int32(0)
    for d, n in enumerate(size):
        at = found // numpy.int32(prod(size[d + 1:])) % numpy.int32(n)
        start = numpy.arange(w.out[d], dtype=numpy.int32) * stride[d] - w.padding[d]
        inside = (at - start.reshape(-1, *(1,) * (len(size) - d - 1))) // numpy.int32(dilation[d])
        numbers = numbers * numpy.int32(w.kernel[d]) + inside
    return numbers.astype(numpy.uint8 if len(w.places) <= 256 else numpy.int32)


@lowered("max_pool")
def max_pool(a: Any, where: Any, settings: tuple[Sizes, Sizes, Sizes, Sizes], size: Sizes | None, found: Any) -> Any:
    if found is not None:
        return found
    if not a.size:
        return NotImplemented
    images = size or a.shape[2:]
    starts, distances = window_origins(images, settings, where.shape[2:])
    at = jnp.asarray(distances.astype(numpy.int32))[where] + starts.astype(numpy.int32).reshape(where.shape[2:])
    rows = at.reshape(prod(a.shape[:2]), -1)
    if size is None:
        return jnp.take_along_axis(a.reshape(len(rows), -1), rows, 1, mode="clip").reshape(where.shape)
    apart = all(s > d * (k - 1) for k, s, d in zip(settings[0], settings[1], settings[3]))

    def image(at: Any, values: Any) -> Any:
        return jnp.zeros(prod(size), a.dtype).at[at].add(values, unique_indices=apart, mode="promise_in_bounds")

    put = jax.vmap(image)(rows, a.reshape(len(rows), -1))  # so that images may be on different devices
    return put.reshape(*a.shape[:2], *size)


def _total(a: Any, w: Windows, size: Sizes) -> Any:
    return _reduced(a, numpy.zeros((), a.dtype), lax.add, w, size)


def _over(a: Any, divisor: Any) -> Any:
    if a.dtype.kind in "iu":
        return jnp.trunc(a / divisor).astype(a.dtype)
    return a / numpy.asarray(divisor).astype(a.dtype)


@lowered("avg_pool")
def avg_pool(a: Any, w: Windows, divisor: Any, size: Sizes | None) -> Any:
    if not a.size:
        return NotImplemented
    if size is None:
        return _over(_total(a, w, a.shape[2:]), divisor)
    return transposed(lambda x: _total(x, w, size), (*a.shape[:2], *size), a.dtype, _over(a, divisor))
