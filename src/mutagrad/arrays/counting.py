"""How many elements are true, and where the first of the largest lie: what NumPy finds one element at a time."""
from __future__ import annotations

from math import prod
from typing import Any

from ..base.operands import Array
from .kinds import is_frozen, is_plain
from .numpy import np

MANY = 4096  # elements from which another way than NumPy's is worth it
SIDE = 16  # elements that lie side by side, from which work on whole columns is
AT_ONCE = 255  # bytes that may be added in one byte, as each is 0 or 1
_ALTERNATE, _FOURFOLD = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0001000100010001)


def count_true(mask: Array, dims: tuple[int, ...], keepdim: bool = False) -> Any:
    """Return how many elements are true along dimensions, as int64; None where NumPy's sum is as good."""
    if not is_plain(mask) or is_frozen(mask) or mask.size < MANY:
        return None
    if len(dims) == mask.ndim:
        found = np.asarray(np.count_nonzero(mask))
    else:
        start, end = min(dims, default=0), max(dims, default=-1) + 1
        if end - start != len(dims) or not dims or not mask.flags.c_contiguous:
            return None
        outer, n, inner = prod(mask.shape[:start]), prod(mask.shape[start:end]), prod(mask.shape[end:])
        mask = mask.view(np.uint8) != 0  # of memory that was seen as another type, other bytes than 1 are true, too
        if inner == 1 and n % 8 == 0:
            found = _count_rows(mask.reshape(outer, n).view(np.uint64))
        elif inner >= SIDE:
            found = _count_columns(mask.view(np.uint8).reshape(outer, n, inner))
        else:
            return None
    return found.reshape([1 if d in dims else n for d, n in enumerate(mask.shape) if keepdim or d not in dims])


def _count_rows(words: Array) -> Array:
    """Eight elements are a word: each byte of a sum of words is a sum of its own."""
    counts = np.zeros(len(words), np.int64)
    for start in range(0, words.shape[1], AT_ONCE):
        sums = np.add.reduce(words[:, start:start + AT_ONCE], 1)
        pairs = (sums & _ALTERNATE) + ((sums >> np.uint64(8)) & _ALTERNATE)
        counts += (pairs * _FOURFOLD >> np.uint64(48)).astype(np.int64)
    return counts


def _count_columns(bytes_: Array) -> Array:
    counts = np.zeros((len(bytes_), bytes_.shape[2]), np.int64)
    for start in range(0, bytes_.shape[1], AT_ONCE):
        counts += np.add.reduce(bytes_[:, start:start + AT_ONCE], 1, np.uint8)
    return counts


def first_extremes(ufunc: Any, array: Array, dim: int) -> Any:
    """Return where along a dimension the first of the largest (or smallest) are; None where NumPy's way is as good.

    NumPy copies what does not lie along the memory, and looks at one element after the other. To find the extremes of
    all columns side by side, and then who is equal to them, takes a tenth of that, unless too many are.
    """
    if array.dtype.char not in "fdbBhilq" or array.size < MANY or not is_plain(array):
        return None
    order = sorted(range(array.ndim), key=lambda d: -abs(array.strides[d]))
    place = order.index(dim)
    turned = array.transpose(order)
    outer, n, inner = prod(turned.shape[:place]), turned.shape[place], prod(turned.shape[place + 1:])
    if inner < SIDE or not turned.flags.c_contiguous:
        return None
    cube = turned.reshape(outer, n, inner)
    top = ufunc.reduce(cube, 1, keepdims=True)
    hits = cube == top
    if array.dtype.kind == "f" and np.isnan(top).any():
        hits |= cube != cube
    if np.count_nonzero(hits) > cube.size // 8:
        return None
    where = np.flatnonzero(hits)[::-1]  # of several in a column the first is written last
    rows, columns = np.divmod(where, inner)
    block, rows = np.divmod(rows, n) if outer > 1 else (0, rows)
    places = np.empty((outer, inner), np.int64)
    places[block, columns] = rows
    rest = [d for d in order if d != dim]
    found = places.reshape([array.shape[d] for d in rest])
    return np.ascontiguousarray(found.transpose([rest.index(d) for d in sorted(rest)]))
