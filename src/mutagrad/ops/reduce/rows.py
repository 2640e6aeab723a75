"""Work on large arrays row by row, in blocks that stay in the cache, on several threads."""
from __future__ import annotations

from collections.abc import Callable
from math import prod as product
from typing import Any

from ...arrays import np, parallel as large, sums
from ...arrays.compiled import library
from ...arrays.copies import copy_in_order, in_order
from ...arrays.kinds import is_frozen
from ...base.operands import Array
from ...core.op import RAW

COMPILED: dict[Callable[..., Any], Callable[..., Any]] = {}  # loops for the same work, by what does it with NumPy
SHORT = 48  # elements up to which rows are worked on column by column: NumPy starts anew for each row


def kept_shape(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with the reduced dimensions kept, of size one."""
    return tuple(1 if i in dims else n for i, n in enumerate(shape))


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """Return how many elements are reduced into one."""
    n = 1
    for d in dims:
        n *= shape[d]
    return n


def back(xp: Any, g: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Return a reduced adjoint at every position that was reduced into it."""
    return xp.spread(g, kept_shape(shape, dims), shape)


def is_large(xp: Any, x: Any) -> bool:
    """Return whether a rule meets an array that is worth working on row by row."""
    return is_real(xp, x) and x.size >= large.LARGE


def is_real(xp: Any, x: Any) -> bool:
    """Return whether a rule meets an array of real numbers, whose rows a compiled loop may go over."""
    return xp is RAW and x.dtype.char in "fd" and not is_frozen(x)


def one_dim(dims: tuple[int, ...]) -> int | None:
    """Return the first of dimensions that lie next to each other, so that they are as good as one; else None."""
    ordered = sorted(dims)
    return ordered[0] if ordered and ordered[-1] - ordered[0] + 1 == len(ordered) else None


def by_rows(work: Callable[..., Any], arrays: tuple[Array, ...], dim: int, dims: int = 1, kept: bool = False) -> Array:
    """Return what `work(axis, *arrays, out)` writes into `out`: shaped as the first, with ones at `dims` if `kept`.

    Rows along these dimensions, `dims` from `dim` on, are independent: large arrays are cut between them, into blocks
    that stay in the cache from the first step to the last, on several threads.
    """
    if (found := _in_loop(work, arrays, dim, dims, kept)) is not None:
        return found
    shape, end = arrays[0].shape, dim + dims
    out: Array = np.empty(shape[:dim] + (1,) * dims + shape[end:] if kept else shape, arrays[0].dtype)
    if arrays[0].size < large.LARGE:
        work(dim if dims == 1 else tuple(range(dim, end)), *arrays, out)
        return out
    outer, n, inner = product(shape[:dim]), product(shape[dim:end]), product(shape[end:])
    arrays = tuple([a if a.flags.c_contiguous else copy_in_order(a) for a in arrays])
    cubes = [a.reshape(outer, product(a.shape[dim:end]), *((inner,) if inner > 1 else ())) for a in (*arrays, out)]
    if inner == 1 and n <= SHORT:
        large.in_turn(outer, n, lambda rows: _by_columns(work, [c[rows] for c in cubes]), fixed=True)
    else:  # rows side by side are not cut apart: NumPy takes twice as long over pieces of a row of memory
        large.in_turn(outer, n * inner, lambda rows: work(1, *(c[rows] for c in cubes)), fixed=True)
    return out


def _in_loop(work: Callable[..., Any], arrays: tuple[Array, ...], dim: int, dims: int, kept: bool) -> Array | None:
    """The same by a compiled loop, if there is one and rows lie in memory one after the other; else None."""
    first, end = arrays[0], dim + dims
    loop = COMPILED.get(work)
    if loop is None or not first.size or end < first.ndim and product(first.shape[end:]) > 1:
        return None
    kind, are_matrices = first.dtype, first.ndim == 2 and dim == 1
    for a in arrays:
        if type(a) is not np.ndarray or a.dtype is not kind:
            return None
        are_matrices &= a.flags.c_contiguous
    if (found := library.find_for(loop, first)) is None:
        return None
    out: Array = np.empty(first.shape[:dim] + (1,) * (first.ndim - dim) if kept else first.shape, kind)
    if are_matrices:  # of small ones looking and reshaping would be half of the time
        found.share(len(first), first.size, *arrays, out)
        return out
    rows = first.size // (first.shape[dim] if dims == 1 else product(first.shape[dim:end]))
    found.share(rows, first.size, *[in_order(a).reshape(rows, -1) for a in arrays], out.reshape(rows, -1))
    return out


def _is_matrix(a: Array, axis: int | tuple[int, ...]) -> bool:
    return bool(axis == 1 and a.ndim == 2 and a.size >= 1 << 14)


def row_extreme(ufunc: Any, a: Array, axis: int | tuple[int, ...]) -> Any:
    """Return the largest (or smallest) of each row, kept as a dimension; in a matrix searching its place is faster."""
    if _is_matrix(a, axis):
        places = a.argmax(1) if ufunc is np.maximum else a.argmin(1)
        return a[np.arange(len(a)), places][:, None]
    return ufunc.reduce(a, axis, keepdims=True)


def row_sum(a: Array, axis: int | tuple[int, ...]) -> Any:
    """Sum each row, kept as a dimension; in a matrix of short rows, in any order, by the faster einsum."""
    if _is_matrix(a, axis) and a.shape[1] <= 4096:
        return np.einsum("ij->i", a)[:, None]
    return sums.add(a, axis if isinstance(axis, tuple) else (axis,), True)


def _by_columns(work: Callable[..., Any], matrices: list[Array]) -> None:
    """The same on transposed copies."""
    *given, out = matrices
    turned = np.empty(out.shape[::-1], out.dtype)
    work(0, *(m.T.copy() for m in given), turned)
    out[...] = turned.T
