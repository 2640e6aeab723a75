"""Compiled loops over planes: images, or volumes, of all samples and channels.

Each of the functions that need one returns None where there is no such loop for an array, and NumPy has to do the work.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.compiled import library, pools
from ...arrays.compiled.compiler import choice
from ...arrays.copies import in_order
from ...arrays.kinds import remembered
from ...base.operands import Array
from .sliding import Sizes, Windows


def loop_for(function: Callable[..., Any], a: Array) -> Any:
    """A compiled loop for this array; None if there is none, or it is not worth it."""
    if not choice.on or type(a) is not np.ndarray or a.size < library.WORTH or not a.flags.carray:
        return None
    return library.find(function, a.dtype)


def ordered(a: Array) -> Array:
    """An array that loops take, whose planes may have had their channels last; small ones, and others, as they are."""
    return in_order(a) if choice.on and type(a) is np.ndarray and a.size >= library.WORTH else a


def usable(a: Array) -> Any:
    """An array as loops take it: contiguous, and such that it could be written."""
    return np.require(a, requirements=("C", "A", "W"))


def seen(a: Array) -> Any:
    """An array seen as planes: the last three dimensions, or fewer, and all others as one."""
    first = max(a.ndim - 3, 0)
    return a.reshape(prod(a.shape[:first]), *(1,) * (3 - a.ndim + first), *a.shape[first:])


def images(a: Array) -> Any:
    """The same with as many planes as there are samples and channels, whatever the number of dimensions is."""
    return a.reshape(prod(a.shape[:2]), *(1,) * (5 - a.ndim), *a.shape[2:])


def fill(function: Callable[..., Any], a: Array, shape: tuple[int, ...], *settings: Any) -> Any | None:
    """An array of this shape that a loop over planes fills."""
    if a.shape[:-3] != shape[:-3] or not prod(shape) or (loop := loop_for(function, a := ordered(a))) is None:
        return None
    out = np.empty(shape, a.dtype)
    given = seen(a), *settings, seen(out)
    loop.share(len(given[0]), out.size, *given)
    return out


# -------------------------------------------------------------------------------------------------------------- windows

def _is_dense(w: Windows) -> bool:
    """Whether the elements of a window lie side by side."""
    return all(shift == prod(w.padded[d + 1:]) for d, shift in enumerate(w.shifts))


def _form(w: Windows) -> Any:
    """Of windows in three dimensions: their sizes, strides and borders."""
    strides = tuple(step // prod(w.padded[d + 1:]) for d, step in enumerate(w.steps))
    three = ((fill,) * (3 - len(strides)) + sizes for fill, sizes in ((1, w.kernel), (1, strides), (0, w.padding)))
    return np.array([v for sizes in three for v in sizes], np.intp)


def _run(loop: Any, size: int, *given: Any) -> None:
    loop.share(len(given[0]), size, *given)


def largest(a: Array, w: Windows) -> tuple[Any, Any] | None:
    """The largest in each window, and its number in there."""
    if not _is_dense(w) or len(w.places) > 256 or (loop := loop_for(pools.largest, a := ordered(a))) is None:
        return None
    best, where = (np.empty((*a.shape[:2], *w.out), dtype) for dtype in (a.dtype, np.uint8))
    _run(loop, a.size, images(a), _form(w), images(best), images(where))
    return best, where


def largest_alone(a: Array, w: Windows) -> Any | None:
    """The largest in each window."""
    if not _is_dense(w) or (loop := loop_for(pools.largest_alone, a := ordered(a))) is None:
        return None
    best = np.empty((*a.shape[:2], *w.out), a.dtype)
    _run(loop, a.size, images(a), _form(w), images(best))
    return best


def largest_between(a: Array, positions: Sequence[Array]) -> Any | None:
    """Where the largest is, of windows by the positions that they hold along each dimension: places in flat images."""
    if (loop := loop_for(pools.largest_between, a := ordered(a))) is None:
        return None
    where = np.empty((*a.shape[:2], *map(len, positions)), np.int64)
    every = [*[np.zeros((1, 1), np.int64)] * (3 - len(positions)), *positions]
    ends = (end for at in every for end in (at.min(1), at.max(1) + 1))
    _run(loop, a.size, images(a), *ends, images(where))
    return where


def put_back(a: Array, where: Array, size: Sizes, origins: tuple[Array, Array]) -> Any | None:
    """Images of this size, with each element added to where `largest` has found it."""
    if where.dtype != np.uint8 or (loop := loop_for(pools.put_back, a := ordered(a))) is None:
        return None
    out = np.empty((*a.shape[:2], *size), a.dtype)
    rows = prod(a.shape[:2]), -1
    _run(loop, out.size, a.reshape(rows), where.reshape(rows), *origins, out.reshape(rows))
    return out


def averages(a: Array, w: Windows, divisor: Any) -> Any | None:
    return _windows(pools.averages, a, w.out, w, divisor)


def shares(a: Array, size: Sizes, w: Windows, divisor: Any) -> Any | None:
    return _windows(pools.shares, a, size, w, divisor)


def _windows(function: Callable[..., Any], a: Array, size: Sizes, w: Windows, divisor: Any) -> Any | None:
    if not _is_dense(w) or (loop := loop_for(function, a := ordered(a))) is None:
        return None
    out = np.empty((*a.shape[:2], *size), a.dtype)
    each = np.empty((1,) * (3 - len(w.out)) + w.out, a.dtype)
    each[...] = divisor
    _run(loop, max(a.size, out.size), images(a), _form(w), each, images(out))
    return out


# ------------------------------------------------------------------------------------------------------------- divisors

@remembered(256)
def counts(size: Sizes, settings: tuple[Sizes, Sizes, Sizes, Sizes], out: Sizes, include_pad: bool) -> Any:
    """How many positions each window is divided by: one number if it is the same everywhere."""
    counts = np.ones((1,) * len(size), np.int64)
    for d, (n, k, s, p, o) in enumerate(zip(size, *settings[:3], out)):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        inside = end - start if include_pad else np.minimum(end, n) - np.maximum(start, 0)
        counts = counts * inside.reshape(-1, *(1,) * (len(size) - d - 1))
    return int(counts.flat[0]) if (counts == counts.flat[0]).all() else counts


def over(a: Array, divisor: Any) -> Any:
    """In the type of a; integers are cut, as PyTorch does."""
    if a.dtype.kind in "iu":
        return np.trunc(a / divisor).astype(a.dtype)
    return a / (divisor if isinstance(divisor, int) else divisor.astype(a.dtype))
