"""Sums of many floats that round little: as exact as PyTorch's, in the time of NumPy's or less.

NumPy adds in pairs only along the memory: down a column it adds one element after the other, and the sum of n of them
is off by about the square root of n roundings, or by n where all are alike. Here at most some hundred are added one
after the other, as a product with ones, which BLAS computes as fast as it reads; what that leaves is little, and is
added in double.
"""
from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

from ..base.operands import Array
from . import parallel as large, sizes
from .blas import times_vector
from .compiled import reductions
from .kinds import is_frozen, is_plain, raw
from .numpy import np
from .sizes import LARGE

GROUP = 128  # elements that are added one after the other: then rounding shows in the last bit or two
FEW = 32  # so few are added in any order
MANY = 4096  # elements from which a faster way than NumPy's is worth looking for
PLENTIFUL = sizes.MANY  # elements from which sums of rows are worth several threads


def add(a: Array, dims: tuple[int, ...], keepdims: bool = False, dtype: Any = None) -> Any:
    """Sum a float32, float64 or complex array along dimensions, counted from the first; in its own type unless told."""
    dtype, shape = dtype or a.dtype, a.shape
    if not dims or not a.size or is_frozen(a):
        return np.add.reduce(a, dims, dtype, keepdims=keepdims)
    if len(dims) == len(shape) and a.dtype.kind == "f" and a.flags.c_contiguous:
        return large.total(a).astype(dtype, copy=False).reshape((1,) * len(shape) if keepdims else ())
    start, end = (dims[0], dims[0] + 1) if len(dims) == 1 else (min(dims), max(dims) + 1)
    if a.dtype.kind == "c" and end - start == len(dims) and (found := _complex_rows(a, start, end)) is not None:
        found = found.astype(dtype, copy=False)
    elif a.dtype.kind == "c":
        parts = np.ascontiguousarray(a).view(a.real.dtype).reshape(*shape, 2)
        found = _add(parts, sorted(dims)).reshape(-1, 2).astype(np.empty(0, dtype).real.dtype, copy=False).view(dtype)
    elif end - start == len(dims) and a.flags.c_contiguous:
        found = _neighbours(a, start, end, dtype).astype(dtype, copy=False)
        if not keepdims:
            return found.reshape(shape[:start] + shape[end:])
    else:
        found = _add(a, sorted(dims)).astype(dtype, copy=False)
    if keepdims:
        return found.reshape([1 if d in dims else n for d, n in enumerate(shape)])
    return found.reshape([n for d, n in enumerate(shape) if d not in dims])


def _complex_rows(a: Array, start: int, end: int) -> Any:
    """Sum rows of complex numbers; None where that is no product: multiplied by one, inf becomes inf and nan."""
    n = prod(a.shape[start:])
    if end != a.ndim or start == 0 or not FEW < n <= 2 * PIECE or not a.flags.c_contiguous or not is_plain(a):
        return None
    found = times_vector(a.reshape(-1, n), raw.ones(n, a.dtype))
    return found if np.isfinite(found).all() else None


def _neighbours(a: Array, start: int, end: int, dtype: Any = np.float64) -> Any:
    """Sum a contiguous array along dimensions that lie next to each other; `dtype` says how exact sums should be."""
    shape = a.shape
    if end == a.ndim:
        return _along(a.reshape(prod(shape[:start]), -1) if start != 1 or end != 2 else a)
    inner = prod(shape[end:])
    if inner > 1:
        return _down(a.reshape(-1, prod(shape[start:end]), inner), dtype)
    return _along(a.reshape(prod(shape[:start]), -1))


def _add(a: Array, dims: list[int]) -> Any:
    """The sums in a shape of as many elements, perhaps in double."""
    if not a.flags.c_contiguous:
        order = sorted(range(a.ndim), key=lambda d: -abs(a.strides[d]))
        turned = a.transpose(order)
        if not turned.flags.c_contiguous:
            if (found := reductions.reduce("sum", a, tuple(dims))) is not None:
                return found
            a = _without_gaps(a, dims)
        elif order != list(range(a.ndim)):
            found = _add(turned, sorted(order.index(d) for d in dims))
            rest = [d for d in order if d not in dims]
            return found.reshape([a.shape[d] for d in rest]).transpose([rest.index(d) for d in sorted(rest)])
    while dims:  # neighbours together, the last first: they are along the memory
        end = dims.pop() + 1
        start = end - 1
        while dims and dims[-1] == start - 1:
            start = dims.pop()
        shape = a.shape
        a = _neighbours(a, start, end)
        if dims:
            a = a.reshape(*shape[:start], *(1,) * (end - start), *shape[end:]).astype(np.float64, copy=False)
    return a


def _without_gaps(a: Array, dims: list[int]) -> Any:
    """Return a contiguous array with the same sums, smaller where the array can be cut.

    NumPy adds along the memory, or `FEW` rows at a time.
    """
    inner = min(range(a.ndim), key=lambda d: (a.shape[d] == 1, abs(a.strides[d])))
    if inner in dims:
        if a.strides[inner] == a.itemsize and FEW < a.shape[inner] <= 2 * PIECE and is_plain(a):
            rows = np.moveaxis(a, inner, -1)
            found = np.vecdot(rows, raw.ones(rows.shape[-1], a.dtype)).astype(np.float64)
            return np.ascontiguousarray(np.expand_dims(found, inner))
        return np.add.reduce(a, inner, a.dtype, keepdims=True).astype(np.float64, "C")
    d = max(dims, key=lambda d: a.shape[d])
    groups, before = a.shape[d] // FEW, (slice(None),) * d
    if groups < 2:
        return np.ascontiguousarray(a)
    each = a.shape[d] // groups
    head, rest = a[before + (slice(groups * each),)], a[before + (slice(groups * each, None),)]
    cut = head.reshape(*a.shape[:d], groups, each, *a.shape[d + 1:])
    found = np.add.reduce(cut, d + 1, a.dtype).astype(np.float64, "C")
    if rest.shape[d]:
        found[before + (slice(rest.shape[d]),)] += rest
    return found


def _down(a: Array, dtype: Any) -> Any:
    """The sums of a contiguous array along the second of three dimensions."""
    outer, n, inner = a.shape
    if outer > 1 and inner < FEW and a.size >= LARGE and (found := reductions.reduce("sum", a, (1,))) is not None:
        return found  # BLAS is called for each of them, on one thread
    if n <= 2 * GROUP:
        return _one_by_one(a)
    each = _divisor(n)
    each = each if each > GROUP // 2 else n // (n // GROUP)
    groups = n // each
    found = _one_by_one(a[:, :groups * each].reshape(outer, each, groups * inner)).reshape(outer, groups, inner)
    if rest := n - groups * each:
        found[:, :rest] += a[:, groups * each:]
    if groups > GROUP:
        return _down(found.astype(np.float64, copy=False), dtype)
    return np.add.reduce(found, 1, dtype if groups <= FEW // 2 else np.float64)


def _one_by_one(a: Array) -> Any:
    """Sum the same for so few that their order does not matter: by BLAS, unless calling it takes longer than adding."""
    outer, n, inner = a.shape
    if outer == 1 or n * inner >= 1024:
        return times_vector(np.ones(n, a.dtype), a)
    return np.add.reduce(a if n <= 2 * FEW else _without_gaps(a, [1]), 1, a.dtype)


def _along(a: Array) -> Any:
    """The sums of the rows of a contiguous matrix."""
    rows, n = a.shape
    if rows == 1:
        return large.total(a)
    if a.size >= PLENTIFUL and n >= 2 * FEW and (found := reductions.reduce("sum", a, (1,))) is not None:
        return found  # of fewer BLAS is as quick on one thread as two threads are
    if n <= 2 * PIECE:  # in several sums side by side, as along a row BLAS and einsum both do
        return times_vector(a, np.ones(n, a.dtype))
    each = _divisor(n)
    if each < FEW:
        return row_sums(a)
    groups = a.reshape(-1, each)
    return _along(times_vector(groups, np.ones(each, a.dtype)).reshape(rows, -1).astype(np.float64, copy=False))


@cache
def _divisor(n: int) -> int:
    """The largest divisor that is no more than a group."""
    return next(d for d in range(GROUP, 0, -1) if n % d == 0)


# ----------------------------------------------------- of blocks in the cache, on a thread that BLAS should not spread

PIECE = 512  # what NumPy's einsum adds in one go: in several sums side by side, so along a row it may be more


def row_sums(a: Array, b: Array | None = None) -> Any:
    """Sum along the last dimension; of products with another array, if given."""
    n = a.shape[-1]
    by_blas = type(a) is np.ndarray and n > FEW  # which adds in more sums side by side than einsum
    if n <= PIECE or by_blas and n <= 2 * PIECE:
        if by_blas:
            return np.vecdot(a, raw.ones(n, a.dtype) if b is None else b)
        return np.einsum("...i->...", a) if b is None else np.einsum("...i,...i->...", a, b)
    head = n // PIECE * PIECE
    parts: list[Any] = [v if v is None else v[..., :head].reshape(*v.shape[:-1], -1, PIECE) for v in (a, b)]
    found = np.add.reduce(row_sums(*parts), -1, np.float64)
    return found if head == n else found + row_sums(a[..., head:], None if b is None else b[..., head:])


def column_sums(a: Array, factors: Array | None = None) -> Any:
    """Sum the rows of a matrix, each times its factor, if given, in double."""
    n = len(a)
    factors = raw.ones(n, a.dtype) if factors is None else factors.astype(a.dtype, copy=False)
    groups = n // GROUP
    if groups < 2 or a.dtype.char == "d":
        return np.matmul(factors, a).astype(np.float64)
    head = groups * GROUP
    found = np.matmul(factors[:head].reshape(groups, 1, GROUP), a[:head].reshape(groups, GROUP, -1))
    total = np.add.reduce(found[:, 0], 0, np.float64)
    return total if head == n else total + np.matmul(factors[head:], a[head:])


def channel_sums(a: Array, b: Array | None = None) -> Any:
    """Sum over all but the second of two or three dimensions, in double; of products with another array, if given."""
    if a.ndim == 3:
        if a.shape[2] > 1:
            return channel_sums(row_sums(a, b).astype(np.float64))
        return channel_sums(a[..., 0], None if b is None else b[..., 0])
    n = len(a)
    groups = n // FEW
    if groups < 2 or a.dtype.char == "d":
        return (np.einsum("nc->c", a) if b is None else np.einsum("nc,nc->c", a, b)).astype(np.float64)
    each = n // groups
    parts = [v[:groups * each].reshape(groups, each, -1) for v in (a, b) if v is not None]
    found = np.add.reduce(np.einsum("gnc->gc" if b is None else "gnc,gnc->gc", *parts), 0, np.float64)
    if groups * each == n:
        return found
    return found + channel_sums(a[groups * each:], None if b is None else b[groups * each:])
