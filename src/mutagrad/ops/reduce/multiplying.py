"""Products along dimensions."""
from __future__ import annotations

from typing import Any

from ...arrays import np
from ...arrays.compiled import reductions as compiled
from ...arrays.kinds import is_frozen, is_plain
from ...base.operands import Array
from .rows import back, count, is_large, kept_shape

_MANY = 4096  # elements from which a faster way is worth looking for


def product(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Multiplies halves of rows with each other until little is left: NumPy goes from element to element.

    Many are multiplied in double: products of numbers on either side of 1 are often cut off, and that adds up.
    """
    dtype = a.dtype
    if dtype.char in "fdl" and (found := compiled.reduce("product", a, dims, keepdim)) is not None:
        return found.astype(dtype, copy=False)
    first = a.ndim - len(dims)
    if dtype.kind == "f" and a.size >= _MANY and not is_frozen(a) and sorted(dims) == list(range(first, a.ndim)):
        found = _row_products(a.reshape(*a.shape[:first], -1)).astype(dtype, copy=False)
        return found.reshape(kept_shape(a.shape, dims)) if keepdim else found
    return np.multiply.reduce(a, dims, a.dtype, keepdims=keepdim)


def _row_products(a: Array) -> Any:
    wide = np.float64 if a.shape[-1] >= _MANY else a.dtype
    while (n := a.shape[-1]) >= 16:
        half = np.multiply(a[..., : n // 2], a[..., n // 2 : n // 2 * 2], dtype=wide)
        if n % 2:
            half[..., 0] *= a[..., -1]
        a = half
    return np.asarray(np.multiply.reduce(a, -1, a.dtype))


def product_rule(xp: Any, g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    """The product of all the others; of many, what is left of theirs without one, if there is neither zero nor inf."""
    if is_large(xp, x) and is_plain(x, g, out) and np.isfinite(out).all() and out.all():
        return back(xp, g * out, x.shape, dims) / x
    return back(xp, g, x.shape, dims) * _product_of_others(xp, x, dims)


def _product_of_others(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """For each element the product of all the others it is multiplied with: right where some are zero, too."""
    rest = tuple(d for d in range(len(x.shape)) if d not in dims)
    order = rest + dims
    moved = xp.permute(x, order)
    rows = xp.reshape(moved, (*(x.shape[d] for d in rest), count(x.shape, dims)))
    last = len(rest)
    n = rows.shape[last]
    ones = xp.narrow(rows, last, 0, 1) * 0 + 1 if n else rows
    before = xp.cumprod(xp.join([ones, xp.narrow(rows, last, 0, n - 1)], last), last) if n else rows
    mirrored = xp.flip(rows, (last,))
    after = xp.cumprod(xp.join([ones, xp.narrow(mirrored, last, 0, n - 1)], last), last) if n else rows
    others = xp.reshape(before * xp.flip(after, (last,)), moved.shape)
    return xp.permute(others, tuple(order.index(d) for d in range(len(order))))
