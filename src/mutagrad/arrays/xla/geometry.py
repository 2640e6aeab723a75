"""Reading and writing windows of immutable arrays: what strides mean in XLA's terms.

A window on memory is a shape, strides and an offset. XLA knows no strides, but nearly every window is what a reshape, a
slice, a transpose and a broadcast make of the memory: its `Cut`. What is none (an overlapping unfold) is gathered.
"""
from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax import lax

Shape = tuple[int, ...]


class Geometry(NamedTuple):
    """A window on `total` elements, in elements."""

    total: int
    offset: int
    shape: Shape
    strides: Shape


class Cut(NamedTuple):
    """How a window is cut out of a memory, reshaped to `dims`, by slices, flips and a transpose.

    `order` says which of the window's dimensions lie where among the cut ones, `back` the reverse; `picked` are their
    sizes in the window's order, `ones` the same with size 1 for the dimensions that are none.
    """

    dims: Shape
    starts: Shape
    limits: Shape
    steps: Shape
    order: Shape
    back: Shape
    flips: Shape
    picked: Shape
    ones: Shape


@lru_cache(maxsize=1 << 16)
def indexed(window: Geometry, whole: Shape) -> Cut | None:
    """Return how to cut out a window that is a slice of each dimension of a memory of this shape, or how else.

    Dimensions that stay what they are can be spread over devices.
    """
    _, offset, shape, strides = window
    at = numpy.unravel_index(offset, whole) if 0 not in whole and 0 not in shape else ()
    kept = [d for d, (n, s) in enumerate(zip(shape, strides)) if n != 1 and s != 0]
    rows = [(n, int(k), int(k) + 1, 1) for n, k in zip(whole, at)]
    found: list[int] = []
    for d in kept:
        unit = 1
        for dim in reversed(range(len(rows))):
            if unit <= strides[d] < unit * whole[dim]:
                break
            unit *= whole[dim]
        else:
            return cut(window)
        n, start, _, _ = rows[dim]
        step = strides[d] // unit
        limit = start + (shape[d] - 1) * step + 1
        if strides[d] % unit or limit > n or dim in found:
            return cut(window)
        rows[dim] = n, start, limit, step
        found.append(dim)
    if not rows:
        return cut(window)
    dims, starts, limits, steps = zip(*rows)
    order = tuple(sorted(range(len(kept)), key=found.__getitem__))
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return Cut(dims, starts, limits, steps, order, back, (), tuple(shape[d] for d in kept),
               tuple(n if d in kept else 1 for d, n in enumerate(shape)))


@lru_cache(maxsize=1 << 16)
def cut(window: Geometry) -> Cut | None:
    """Return how to cut out a window; None where it must be gathered."""
    total, offset, shape, strides = window
    kept = [d for d, (n, s) in enumerate(zip(shape, strides)) if n != 1 and s != 0]
    low = offset + sum((shape[d] - 1) * strides[d] for d in kept if strides[d] < 0)
    order = sorted(range(len(kept)), key=lambda i: -abs(strides[kept[i]]))
    rows: list[tuple[int, int, int, int]] = []
    length, at = total, low
    for k, i in enumerate(order):
        step = abs(strides[kept[i]])
        inner = sum((shape[kept[j]] - 1) * abs(strides[kept[j]]) for j in order[k + 1:])
        unit = gcd(step, length)
        start, every = at // unit, step // unit
        if at % unit + inner >= unit:
            return None
        rows.append((length // unit, start, start + (shape[kept[i]] - 1) * every + 1, every))
        length, at = unit, at % unit
    if length > 1 or not rows:
        rows.append((length, at, at + 1, 1))
    dims, starts, limits, steps = zip(*rows)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    flips = tuple(i for i, d in enumerate(kept) if strides[d] < 0)
    picked = tuple(shape[d] for d in kept)
    ones = tuple(n if d in kept else 1 for d, n in enumerate(shape))
    return Cut(dims, starts, limits, steps, tuple(order), back, flips, picked, ones)


@lru_cache(maxsize=1024)
def places(window: Geometry) -> Any:
    """Return the position in memory of each element of a window."""
    found = numpy.full(window.shape, window.offset, numpy.int64)
    for d, (n, s) in enumerate(zip(window.shape, window.strides)):
        found += (numpy.arange(n) * s).reshape((-1,) + (1,) * (len(window.shape) - 1 - d))
    return found


def read(value: Any, window: Geometry, eager: bool) -> Any:
    """Return the elements of a window on a memory with this value.

    `eager`: where it lies is no part of the compiled code, or each element of a loop would be compiled anew.
    """
    found = cut(window) if eager else indexed(window, value.shape)
    if 0 in window.shape:
        return jnp.zeros(window.shape, value.dtype)
    if found is None or eager and any(s != 1 for s in found.steps):
        return value.reshape(-1)[places(window)]
    whole = _as(value, found.dims)
    if eager:
        sizes = tuple(b - a for a, b in zip(found.starts, found.limits))
        part = whole if sizes == found.dims else lax.dynamic_slice(whole, found.starts, sizes)
    else:
        part = lax.slice(whole, found.starts, found.limits, found.steps)
    if len(found.dims) > len(found.back):
        part = _as(part, tuple([found.picked[i] for i in found.order]))
    if found.back != tuple(range(len(found.back))):
        part = lax.transpose(part, found.back)
    if found.flips:
        part = lax.rev(part, found.flips)
    part = _as(part, found.ones)
    return part if found.ones == window.shape else jnp.broadcast_to(part, window.shape)


def written(value: Any, window: Geometry, new: Any, eager: bool, apart: bool) -> Any:
    """Return a memory's value with other elements in a window. `apart`: none is computed from another one's place.

    XLA may fuse an update with what computes it and do both in place, on the CPU even where that reads elements which
    have been updated already. Where an overlapping window has been read, each element is chosen instead.
    """
    found = cut(window) if eager else indexed(window, value.shape)
    if 0 in window.shape:
        return value
    if found is None or eager and any(s != 1 for s in found.steps):
        return _as(value.reshape(-1).at[places(window)].set(new), value.shape)
    new, whole = _laid(new, found), _as(value, found.dims)
    if eager or apart and all(s == 1 for s in found.steps):
        whole = lax.dynamic_update_slice(whole, new, [numpy.int32(s) for s in found.starts])
    else:
        whole = lax.select(_inside(found), _padded(new, found), whole)
    return _as(whole, value.shape)


def written_in_place(held: Any, window: Geometry, new: Any) -> Any:
    """Return the same for an array that nobody else holds: XLA changes it."""
    found = cut(window)
    if found is None or any(s != 1 for s in found.steps) or 0 in window.shape:
        return written(held, window, new, True, True)
    still = window._replace(offset=0)
    return _moved(held, new, numpy.array(found.starts, numpy.int32), still, found._replace(starts=(), limits=()))


def _moved_update(held: Any, new: Any, starts: Any, window: Geometry, found: Any) -> Any:
    new = new.reshape(found.picked)
    new = lax.rev(new, found.flips) if found.flips else new
    new = lax.transpose(new, found.order)
    new = new.reshape(*new.shape, 1) if len(found.dims) > len(found.back) else new
    whole = lax.dynamic_update_slice(held.reshape(found.dims), new, [*starts])
    return whole.reshape(held.shape)


_moved = jax.jit(_moved_update, static_argnums=(3, 4), donate_argnums=0)


def added(value: Any, window: Geometry, new: Any) -> Any:
    """Return a memory's value with something added to the elements in a window."""
    found = indexed(window, value.shape)
    if 0 in window.shape:
        return value
    if found is None or any(s == 0 and n > 1 for n, s in zip(window.shape, window.strides)):
        return _as(value.reshape(-1).at[places(window)].add(new), value.shape)
    return _as(_as(value, found.dims) + _padded(_laid(new, found), found), value.shape)


def _laid(new: Any, found: Cut) -> Any:
    """What is to be written, as it lies in the memory."""
    new = _as(new, found.picked)
    if found.flips:
        new = lax.rev(new, found.flips)
    if found.order != tuple(range(len(found.order))):
        new = lax.transpose(new, found.order)
    if len(found.dims) == len(found.back):
        return new
    return _as(new, tuple([-(-(b - a) // s) for a, b, s in zip(found.starts, found.limits, found.steps)]))


def _padded(new: Any, found: Cut) -> Any:
    """The same, with zeros everywhere else."""
    spread = [(a, n - b, s - 1) for a, b, s, n in zip(found.starts, found.limits, found.steps, found.dims)]
    return lax.pad(new, numpy.zeros((), new.dtype), spread)


def _inside(found: Cut) -> Any:
    """A mask of the elements that a cut picks: computed, because a constant of that size takes XLA seconds to fold."""
    mask: Any = None
    for d, (n, start, limit, step) in enumerate(zip(found.dims, found.starts, found.limits, found.steps)):
        if (start, step) == (0, 1) and limit == n:
            continue
        at = lax.broadcasted_iota(numpy.int32, found.dims, d)
        near = lax.bitwise_and(lax.ge(at, numpy.int32(start)), lax.lt(at, numpy.int32(limit)))
        if step > 1:
            near = lax.bitwise_and(near, lax.eq(lax.rem(at, numpy.int32(step)), numpy.int32(start % step)))
        mask = near if mask is None else lax.bitwise_and(mask, near)
    return jnp.ones(found.dims, bool) if mask is None else mask


def _as(value: Any, shape: Shape) -> Any:
    return value if value.shape == shape else lax.reshape(value, shape)


def retyped(value: Any, dtype: Any) -> Any:
    """Return a vector's memory as one of another element type."""
    old = value.dtype
    if old == dtype:
        return value
    if old.kind == "b":
        return retyped(value.astype(numpy.uint8), dtype)
    if dtype.kind == "b":
        return retyped(value, numpy.dtype(numpy.uint8)).astype(bool)
    if old.kind == "c":
        parts = jnp.stack([value.real, value.imag], -1).reshape(-1)
        return retyped(parts, dtype)
    if dtype.kind == "c":
        parts = retyped(value, numpy.dtype(f"f{dtype.itemsize // 2}")).reshape(-1, 2)
        return lax.complex(parts[:, 0], parts[:, 1])
    if old.itemsize < dtype.itemsize:
        value = value.reshape(-1, dtype.itemsize // old.itemsize)
    return lax.bitcast_convert_type(value, dtype).reshape(-1)
