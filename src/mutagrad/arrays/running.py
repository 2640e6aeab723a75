"""Running sums, products and extremes along a dimension. Those of float32 are kept in double, as in PyTorch."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, log2, prod
from typing import Any

from ..base.operands import Array
from .compiled import library, scans
from .copies import in_order
from .kinds import is_frozen, is_plain, raw
from .numpy import np

BLOCK = 1 << 15  # elements whose running sums are computed at a time: two of double lie in the cache of a core
WIDE = 128  # elements side by side from which a step of all of them is a call: NumPy goes down each column by itself
FEW = 32  # so few are added in their own type
_COMPILED = {np.add: False, np.multiply: True}  # whether it is a product
_LARGEST = 1000  # of exponents: what float64 has, less some to spare


def accumulate(ufunc: Any, a: Array, dim: int, back: bool = False) -> Any:
    """Return running sums or products along a dimension, in the array's type; `back`: from the last element on.

    NumPy holds its lock meanwhile, so threads have nothing to share.
    """
    if a.size >= library.WORTH and is_plain(a):
        return _of_many(ufunc, a, dim, back)
    if not back:
        return ufunc.accumulate(a, dim, _wide(a, dim)).astype(a.dtype, copy=False)
    return np.flip(accumulate(ufunc, np.flip(a, dim), dim), (dim,)).copy()


def extremes(a: Array, dim: int, least: bool) -> tuple[Array, Array] | None:
    """Return the largest (or smallest) so far and where it is, fast; None for what there is no such way."""
    if a.size < library.WORTH or not is_plain(a):
        return None
    out, places = raw.empty(a.shape, a.dtype), raw.empty(a.shape, np.int64)
    if _by_kernel(scans.extreme_along, scans.extreme_down, a, dim, (out, places), least):
        return out, places
    return _extremes_of_many(a, dim, least) if a.dtype.kind == "f" else None


def log_sum_exp(a: Array, dim: int) -> Any:
    """Return running log(sum(exp(a))) of real numbers."""
    if a.size >= library.WORTH and is_plain(a) and (loop := library.find(scans.log_sum_exp, a.dtype)) is not None:
        rows = in_order(np.moveaxis(a, dim, -1))
        out = raw.empty(rows.shape, a.dtype)
        matrix, found = (v.reshape(-1, a.shape[dim]) for v in (rows, out))
        loop.share(len(matrix), a.size, matrix, found)
        return in_order(np.moveaxis(out, -1, dim))
    return accumulate(np.logaddexp, a, dim)


def differences(a: Array, dim: int) -> Any:
    """Return each element less the one before it."""
    if (found := _by_lag(scans.differences, a, dim, -1)) is not None:
        return found
    return _cut(a, dim, 1, None) - _cut(a, dim, 0, -1)


def differences_back(g: Array, dim: int) -> Any:
    """Return what an adjoint of differences means to the elements; there is one more of these."""
    if (found := _by_lag(scans.differences_back, g, dim, 1)) is not None:
        return found
    inner = _cut(g, dim, 0, -1) - _cut(g, dim, 1, None)
    return np.concatenate([-_cut(g, dim, 0, 1), inner, _cut(g, dim, -1, None)], dim)


def _cut(a: Array, dim: int, start: int, stop: int | None) -> Array:
    return a[(slice(None),) * dim + (slice(start, stop),)]


def _by_lag(kernel: Callable[..., Any], a: Array, dim: int, more: int) -> Array | None:
    if a.size < library.WORTH or not is_plain(a) or (loop := library.find(kernel, a.dtype)) is None:
        return None
    n, lag = a.shape[dim], prod(a.shape[dim + 1:])
    out: Array = raw.empty((*a.shape[:dim], n + more, *a.shape[dim + 1:]), a.dtype)
    source, target = in_order(a).reshape(-1, n * lag), out.reshape(-1, (n + more) * lag)
    loop.share(len(source), a.size, source, target, lag)
    return out


def _wide(a: Array, dim: int) -> Any:
    return np.float64 if a.dtype.char == "f" and a.shape[dim] > FEW and not is_frozen(a) else a.dtype


def _by_kernel(along: Callable[..., Any], down: Callable[..., Any], a: Array, dim: int, outs: tuple[Array, ...],
               *settings: bool) -> bool:
    """Go over the rows of an array, or over columns side by side; False, with nothing done, if there is no kernel."""
    inner = prod(a.shape[dim + 1:])
    if (loop := library.find(along if inner == 1 else down, a.dtype)) is None:
        return False
    shape = (-1, a.shape[dim]) if inner == 1 else (-1, a.shape[dim], inner)
    arrays = [v.reshape(shape) for v in (in_order(a), *outs)]
    count = len(arrays[0]) * (1 if inner == 1 else -(-inner // scans.WIDE))
    loop.share(count, a.size, *arrays, *settings)
    return True


def _of_many(ufunc: Any, a: Array, dim: int, back: bool) -> Any:
    a, out = in_order(a), raw.empty(a.shape, a.dtype)
    if ufunc in _COMPILED and not (back and _COMPILED[ufunc]) and _by_kernel(
            scans.along, scans.down, a, dim, (out,), _COMPILED[ufunc], back):
        return out
    wide = _wide(a, dim)
    source, target = _rows(a, dim, back), _rows(out, dim, back)
    if wide is a.dtype and not _any_order(ufunc, a):
        ufunc.accumulate(source, 1, out=target)
        return out
    scan = _scanned if _any_order(ufunc, a) else lambda ufunc, block: ufunc.accumulate(block, 1, out=block)
    carry: Any = None
    for rows, columns in _blocks(source.shape):
        block = source[rows, columns].astype(wide)
        if columns.start:
            block[:, 0] = ufunc(carry, block[:, 0])
        block = scan(ufunc, block)
        carry = block[:, -1]
        target[rows, columns] = block
    return out


def _rows(a: Array, dim: int, back: bool = False) -> Array:
    """What is before a dimension, the dimension, and what is behind it."""
    return a.reshape(-1, a.shape[dim], prod(a.shape[dim + 1:]))[:, ::-1 if back else 1]


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Parts of the first two dimensions that fit the cache; those of one row follow each other."""
    count, n, inner = shape
    rows, step = max(BLOCK // (n * inner), 1), max(BLOCK // inner, FEW)
    for first in range(0, count, rows):
        for start in range(0, n, step):
            yield slice(first, first + rows), slice(start, start + step)


def _any_order(ufunc: Any, a: Array) -> bool:
    """Whether the order does not matter: parts of a product may overflow where the whole does not."""
    if a.dtype.kind != "f" or ufunc is not np.multiply:
        return a.dtype.kind == "f" and ufunc in (np.add, np.maximum, np.minimum)
    size = np.abs(a)
    least, most = float(size.min()), float(size.max())
    return least > 0 and most < inf and BLOCK * max(-log2(least), log2(most)) < _LARGEST


def _scanned(ufunc: Any, block: Array) -> Array:
    """Running results along the second dimension: side by side, or of two elements each, then of four, and so on.

    That is ten passes for a thousand elements, in a fraction of the time of one in which each step waits for the one
    before it.
    """
    _, n, inner = block.shape
    if inner >= WIDE:
        for k in range(1, n):
            ufunc(block[:, k - 1], block[:, k], out=block[:, k])
        return block
    spare, step = np.empty_like(block), 1
    while step < n:
        before, after, lag = block.reshape(-1), spare.reshape(-1), step * inner
        ufunc(before[:-lag], before[lag:], out=after[lag:])
        spare[:, :step] = block[:, :step]  # which have met the row before
        block, spare, step = spare, block, 2 * step
    return block


def _extremes_of_many(a: Array, dim: int, least: bool) -> tuple[Array, Array]:
    """Do as the kernel: of equal ones the latest, and nan is beyond all others."""
    extreme, out = np.minimum if least else np.maximum, raw.empty(a.shape, a.dtype)
    places = raw.empty(a.shape, np.int64)
    source, target, found = _rows(in_order(a), dim), _rows(out, dim), _rows(places, dim)
    n = a.shape[dim]
    kind = np.int16 if n < 1 << 15 else np.int32 if n < 1 << 31 else np.int64
    steps = np.arange(n, dtype=kind)[:, None]
    carry: Any = None
    for rows, columns in _blocks(source.shape):
        part = source[rows, columns]
        block = part.copy()
        if columns.start:
            block[:, 0] = extreme(carry[0], block[:, 0])
        block = _scanned(extreme, block)
        new = np.negative(((part == block) | (part != part)).view(np.int8)).astype(kind)
        new &= steps[columns]
        if columns.start:
            np.maximum(carry[1], new[:, 0], out=new[:, 0])
        new = _scanned(np.maximum, new)
        carry = block[:, -1], new[:, -1]
        target[rows, columns], found[rows, columns] = block, new
    return out, places
