"""Running sums, products and extremes along a dimension. Those of float32 are kept in double, as in PyTorch."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..base.operands import Array
from .compiled import library, scans
from .copies import in_order
from .kinds import is_frozen, is_plain, raw
from .numpy import np

BLOCK = 1 << 14  # elements whose running sums are kept in double at a time
WIDE = 128  # elements side by side from which a step of all of them is a call: NumPy goes down each column by itself
FEW = 32  # so few are added in their own type
_COMPILED = {np.add: False, np.multiply: True}  # whether it is a product


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
    """Return the largest (or smallest) so far and where it is, by a kernel; None while there is none."""
    if a.size < library.WORTH or not is_plain(a):
        return None
    out, places = raw.empty(a.shape, a.dtype), raw.empty(a.shape, np.int64)
    return (out, places) if _by_kernel(scans.extreme_along, scans.extreme_down, a, dim, (out, places), least) else None


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
    n, inner, wide = a.shape[dim], prod(a.shape[dim + 1:]), _wide(a, dim)
    shape = (-1, n, inner) if inner > 1 else (-1, n)
    source, target = (v.reshape(shape)[:, ::-1 if back else 1] for v in (a, out))
    if wide is a.dtype:
        ufunc.accumulate(source, 1, out=target)
        return out
    if inner >= WIDE:
        carry = source[:, 0].astype(wide)
        target[:, 0] = carry
        for k in range(1, n):
            ufunc(carry, source[:, k], out=carry)
            target[:, k] = carry
        return out
    rows, step = max(BLOCK // (n * inner), 1), max(BLOCK // inner, FEW)
    for first in range(0, len(source), rows):
        part, into, carry = source[first:first + rows], target[first:first + rows], None
        for start in range(0, n, step):
            block = part[:, start:start + step].astype(wide)
            if carry is not None:
                block[:, 0] = ufunc(block[:, 0], carry)
            ufunc.accumulate(block, 1, out=block)
            carry = block[:, -1]
            into[:, start:start + step] = block
    return out
