"""Reading, writing and adding at positions: by compiled loops where there are any, else by NumPy and SciPy.

Positions that come here have been checked: they are int64, and in range. Several threads share what cannot meet: rows
of what is read, columns of what is added to, or spans of positions that lie apart. So the order in which elements are
added, and with it the bits of a sum, is the same with any number of threads.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Any
from weakref import ref

from ..base.operands import Array
from . import parallel as large
from .compiled import library, places as kernels
from .compiled.written import cuts
from .copies import in_order
from .kinds import is_plain, pick, raw
from .numpy import np

SHORT = 32  # elements up to which the first ones of a row are kept in order while it is gone over
FEW = 1 << 10  # elements of a matrix up to which its triangles are kept in mind
MANY = 1 << 14  # elements from which adding is worth SciPy, which takes a tenth of a second to import
_MOVED = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}  # as what elements of this size are moved


def _loop(kernel: Callable[..., Any], size: int, dtype: Any, *arrays: Any) -> Any:
    """A kernel for work of this size on contiguous arrays of NumPy's; None if it is not worth it or there is none."""
    if size < library.WORTH or not all(type(a) is raw.ndarray and a.flags.carray for a in arrays):
        return None
    return library.find(kernel, dtype)


def _as_moved(kernel: Callable[..., Any], size: int, *arrays: Array) -> tuple[Any, ...] | None:
    """A kernel that moves elements, and the arrays as it sees them; None as above."""
    dtype = _MOVED.get(arrays[0].dtype.itemsize)
    if dtype is None or arrays[0].dtype.kind in "OV" or (loop := _loop(kernel, size, dtype, *arrays)) is None:
        return None
    return loop, *(a.view(dtype) for a in arrays)


_TAKE = {1: kernels.take, 2: kernels.take_columns, 3: kernels.take_slices}
_ADD: dict[int, Any] = {1: kernels.add, 2: kernels.add_columns, 3: kernels.add_slices}


def _form(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """As what an array is seen whose slices along a dimension are picked: a vector, columns, or the second of three."""
    outer, inner = prod(shape[:dim]), prod(shape[dim + 1:])
    return (outer, -1, inner) if inner != 1 else (outer, -1) if outer != 1 else (-1,)


# ----------------------------------------------------------------------------------------------------------- positions

def checked(part: Array, size: int, least: int) -> Array | None:
    """Return a copy of positions with negative ones counted from the front.

    None where there is no kernel, or one of them is less than `least` or not less than `size`.
    """
    if part.dtype != np.int64 or (loop := _loop(kernels.checked, part.size, part.dtype, part)) is None:
        return None
    found: Array = raw.empty(part.shape, np.int64)
    vector, out, wrong = part.reshape(-1), found.reshape(-1), raw.zeros(1, bool)
    loop.share(part.size, part.size, vector, size, least, out, wrong)
    return None if wrong[0] else found


def beside(index: Array, shape: tuple[int, ...], dim: int) -> Array | None:
    """Return the positions in a vector of what `index` picks along a dimension, each where it is along the others.

    None where they are of another type or shape, or one of them is out of range.
    """
    inner = prod(shape[dim + 1:])
    kernel = kernels.beside_rows if inner == 1 else kernels.beside
    if index.dtype != np.int64 or index.shape[:dim] != shape[:dim] or index.shape[dim + 1:] != shape[dim + 1:]:
        return None
    if (loop := _loop(kernel, index.size, index.dtype, index)) is None:
        return _beside_by_numpy(index, shape[dim], dim, inner) if type(index) is raw.ndarray else None
    found, wrong, m = raw.empty(index.shape, np.int64), raw.zeros(1, bool), index.shape[dim]
    given, out = (v.reshape((-1, m) if inner == 1 else (-1, m, inner)) for v in (index, found))
    loop.share(len(given) if inner == 1 else len(given) * m, index.size, given, shape[dim], out, wrong)
    return None if wrong[0] else _kept_in_rows(found) if inner == 1 else found


def _beside_by_numpy(index: Array, size: int, dim: int, inner: int) -> Array | None:
    """The same, checked and counted while a few rows of them are in the cache."""
    found: Array = raw.empty(index.shape, np.int64)
    m, wrong = index.shape[dim], []
    given, out = (v.reshape(-1, m if inner == 1 else inner) for v in (in_order(index), found))
    columns = raw.arange(0 if inner == 1 else inner)

    def work(part: slice) -> None:
        rows = given[part]
        if np.maximum.reduce(rows.view(np.uint64), None) >= size:  # negatives are the largest of all
            wrong.append(True)
        first = (raw.arange(part.start, part.stop) // (m if inner > 1 else 1) * (size * inner))[:, None]
        if inner > 1:
            rows = np.multiply(rows, inner, out=out[part])
            rows = np.add(rows, columns, out=rows)
        np.add(rows, first, out=out[part])

    if found.size:
        large.in_turn(len(given), given.shape[1], work)
    return None if wrong else found


def take_beside(array: Array, index: Array, dim: int) -> tuple[Array, Array] | None:
    """Return the same positions, and what is there; None also where they are along another dimension than the last."""
    shape = array.shape
    if (dim != len(shape) - 1 or index.dtype != np.int64 or index.shape[:dim] != shape[:dim] or not array.size
            or not type(index) is raw.ndarray is type(array) or not index.flags.carray):
        return None
    if (found := _as_moved(kernels.take_beside, index.size, array)) is None:
        return None
    loop, x = found
    values: Array = raw.empty(index.shape, array.dtype)
    places, wrong, m = raw.empty(index.shape, np.int64), raw.zeros(1, bool), index.shape[dim]
    rows, out = index.reshape(-1, m), values.view(x.dtype).reshape(-1, m)
    loop.share(len(rows), index.size, x.reshape(-1, shape[dim]), rows, places.reshape(-1, m), wrong, out)
    return None if wrong[0] else (_kept_in_rows(places), values)


# Positions of which no row has one that lies among another row's, by the number that Python knows them by.
_in_rows: dict[int, Any] = {}


def _kept_in_rows(places: Array) -> Array:
    if places.ndim > 1:
        number = id(places)
        _in_rows[number] = ref(places, lambda _: _in_rows.pop(number, None))
    return places


def overwritten(places: Array, size: int) -> Array:
    """Return which of these positions below `size` come again later."""
    numbers = np.arange(places.size)
    if size <= 8 * places.size:
        last = raw.empty(size, np.int64)
        put(last, (places,), numbers)
        return take(last, places) != numbers  # type: ignore[no-any-return]
    _, last = np.unique(places[::-1], return_index=True)
    losers = raw.ones(places.size, bool)
    losers[places.size - 1 - last] = False
    return losers


_WIDTH = 16  # values of one sequence that are taken together where it can be
BLOCK = 1 << 12  # truth values that are counted, and looked for, at a time


def nonzero(array: Array, in_rows: bool = False) -> Any:
    """Return where elements are not zero: positions for each dimension, or, `in_rows`, a row of them for each one."""
    if not is_plain(array) or array.size < library.WORTH:
        found = np.nonzero(array)
        return np.stack(found, 1) if in_rows else found
    mask = in_order(array if array.dtype.kind == "b" else array != 0)
    integer = np.dtype(np.int64)
    each, loop = library.find(kernels.count, integer), library.find(kernels.nonzero, integer)
    if each is None or loop is None:
        found = _nonzero_by_numpy(mask)
        return np.stack(found, 1) if in_rows else found
    vector, blocks = mask.reshape(-1).view(np.uint8), -(-mask.size // BLOCK)
    counts, sizes = raw.empty(blocks, np.int64), raw.array(mask.shape)
    each.share(blocks, mask.size, vector, BLOCK, counts)
    offsets = np.cumsum(counts)
    total = int(offsets[-1])
    out = raw.empty((total, mask.ndim) if in_rows else (mask.ndim, total), np.int64)
    offsets -= counts
    steps = (mask.ndim, 1) if in_rows else (1, total)
    loop.share(blocks, mask.size, vector, BLOCK, offsets, sizes, *steps, out.reshape(-1))
    return out if in_rows else tuple(out)


def _nonzero_by_numpy(mask: Array) -> tuple[Any, ...]:
    """Positions along the last dimension are what is left of those in a vector: NumPy divides for each element."""
    flat, n = np.flatnonzero(mask), mask.shape[-1]
    if mask.ndim == 1:
        return (flat,)
    counts = np.count_nonzero(mask.reshape(-1, n), 1)
    rows = np.arange(counts.size)
    leading = (rows,) if mask.ndim == 2 else np.unravel_index(rows, mask.shape[:-1])
    return *(np.repeat(d, counts) for d in leading), flat - np.repeat(rows * n, counts)


def insert(sequence: Array, values: Array, right: bool) -> Array | None:
    """Return where values fit into a sorted vector, or into their row of a matrix; None where there is no kernel."""
    if values.dtype is not sequence.dtype or not is_plain(sequence, values) or not sequence.size:
        return None
    rows, given = in_order(sequence).reshape(-1, sequence.shape[-1]), in_order(values)
    if (loop := _loop(kernels.insert, values.size, values.dtype, rows, given)) is None:
        return None
    out: Array = raw.empty(values.shape, np.int64)
    width = values.shape[-1] if sequence.ndim > 1 else _WIDTH if values.size % _WIDTH == 0 else 1
    v, found = given.reshape(-1, width), out.reshape(-1, width)
    loop.share(len(v), 4 * values.size, rows, v, right, found)
    return out


# ------------------------------------------------------------------------------------------------------------- reading

def take(array: Array, places: Array, dim: int = 0) -> Any:
    """Return `array[:, places]`, with as many full slices as `dim` says."""
    if not is_plain(array, places) or places.dtype != np.int64:
        return pick(array, (slice(None),) * dim + (places,))
    shape, rows, form = array.shape, in_order(places).reshape(-1), _form(array.shape, dim)
    out: Array = raw.empty((*shape[:dim], *places.shape, *shape[dim + 1:]), array.dtype)
    found = _as_moved(_TAKE[len(form)], out.size, array, out)
    if found is None:
        _take_by_numpy(array, rows, dim, out.reshape(*shape[:dim], rows.size, *shape[dim + 1:]))
        return out
    loop, x, y = found[0], found[1].reshape(form), found[2].reshape(form)
    count = len(y) * rows.size if len(form) == 3 else len(y)
    loop.share(count, out.size, x, rows, y)
    return out


def _take_by_numpy(array: Array, rows: Array, dim: int, out: Array) -> None:
    """Into `out`, without another check of the positions: NumPy's way to have none is to clip them."""
    if out.size < large.LARGE or not out.shape[0]:
        np.take(array, rows, dim, out, "clip")
    elif dim:
        each = out.size // len(array)
        large.in_turn(len(array), each, lambda part: np.take(array[part], rows, dim, out[part], "clip"), True)
    else:
        each = out.size // rows.size
        large.in_turn(rows.size, each, lambda part: np.take(array, rows[part], 0, out[part], "clip"), True)


# ------------------------------------------------------------------------------------------------------------- writing

def _each(loop: Any, x: Array, places: Array, values: Array, *settings: bool) -> None:
    """Do something with elements of a vector: on several threads where rows of the positions lie apart."""
    at, width = places.reshape(-1), places.shape[-1] if places.ndim > 1 else 1
    known = _in_rows.get(id(places))
    if known is not None and known() is places:
        parts = cuts(at.size // width, at.size) * width
    else:
        parts = _apart(at, width)
    loop.share(parts.size - 1, at.size, parts, x, at, values.reshape(-1), *settings)


def _apart(places: Array, width: int) -> Any:
    """Return where parts, in steps of `width`, begin and end, such that no position of one lies among another's."""
    rows = cuts(places.size // width, places.size)
    if rows.size > 2 and (loop := library.find(kernels.bounds, places.dtype)) is not None:
        found: Array = raw.empty((rows.size - 1, 2), np.int64)
        loop.share(len(found), places.size, rows, width, places, found)
        if all(a[1] < b[0] for a, b in pairwise(sorted(found.tolist()))):
            return rows * width
    return raw.array([0, places.size])


def put(array: Array, index: tuple[Any, ...], values: Array) -> None:
    """Do `array[index] = values`; of several values for one place the last is written."""
    if len(index) == array.ndim == 1 and values.shape == index[0].shape and values.dtype is array.dtype and (
            is_plain(*index)):
        values, places = in_order(values), in_order(index[0])
        if (found := _as_moved(kernels.put, values.size, array, values)) is not None:
            loop, x, v = found
            return _each(loop, x, places, v)
    # In C order, which is then the order in which NumPy writes.
    array[tuple(np.ascontiguousarray(p) if isinstance(p, np.ndarray) and p.ndim else p for p in index)] = values


def combine(ufunc: Any, array: Array, index: tuple[Any, ...], values: Array) -> None:
    """Do `ufunc.at(array, index, values)`, for multiply, maximum or minimum."""
    if array.ndim == len(index) == 1 and values.shape == index[0].shape and values.dtype is array.dtype:
        kernel, settings = (kernels.multiply, ()) if ufunc is np.multiply else (kernels.extreme, (ufunc is np.minimum,))
        given = in_order(values)
        if (loop := _loop(kernel, values.size, array.dtype, array, index[0], given)) is not None:
            return _each(loop, array, index[0], given, *settings)
        index, values = (index[0].reshape(-1),), values.reshape(-1)  # of vectors alone NumPy is ten times as fast
    ufunc.at(array, index, values)


def add_at(array: Array, index: tuple[Any, ...], values: Array) -> None:
    """Do `array[index] += values` with every duplicate counted; `index` has an array or a full slice a dimension."""
    if is_plain(array, values, *index):
        _add_at(array, index, values)
    elif array.dtype.char in "eE":  # a running sum of short floats would stick
        wide = array.astype(np.float32)
        np.add.at(wide, index, values)
        array[...] = wide
    else:
        np.add.at(array, index, values)


def _add_at(array: Array, index: tuple[Any, ...], values: Array) -> None:
    """The same for NumPy's arrays.

    NumPy is ten times as fast over positions in a vector as over several indices or over rows, so it is given those;
    SciPy adds rows ten times as fast again, and elements twice as fast. They read the values while they add; NumPy's
    own check for shared memory is none of theirs.
    """
    if np.may_share_memory(array, values):
        values = values.copy()
    if array.dtype.char in "eE" and values.size > 1:
        return _add_short(array, index, values)
    if values.size >= library.WORTH and values.dtype is array.dtype and _add_compiled(array, index, values):
        return
    if array.flags.c_contiguous and array.ndim > 1 and (len(index) == array.ndim or values.size > 256):
        if values.size >= MANY and _picks_rows(index) and _add_rows(array, index[0], values):
            return
        places = _places(array.shape, index)
        values = np.broadcast_to(values, places.shape).reshape(-1)
        array, index = array.reshape(-1), (places.reshape(-1),)
    if (values.size < MANY or array.ndim > 1 or not array.flags.c_contiguous
            or not _add_elements(array, index[0], values)):
        np.add.at(array, index, values)


def _add_compiled(array: Array, index: tuple[Any, ...], values: Array) -> bool:
    """Slices along one dimension, or elements; False, with nothing done, where there is no kernel for that."""
    dims = [d for d, part in enumerate(index) if isinstance(part, np.ndarray)]
    form = (-1,) if len(dims) == array.ndim else _form(array.shape, dims[0]) if len(dims) == 1 else ()
    if not form or any(index[d].dtype != np.int64 for d in dims):
        return False
    if (loop := _loop(_ADD[len(form)], values.size, array.dtype, array)) is None:
        return False
    rows = in_order(_places(array.shape, index) if len(dims) > 1 else index[dims[0]])
    shape = rows.shape if len(dims) > 1 else (*array.shape[:dims[0]], *rows.shape, *array.shape[dims[0] + 1:])
    given = in_order(values if values.shape == shape else np.broadcast_to(values, shape))
    if len(form) == 1:
        _each(loop, array.reshape(-1), rows, given.reshape(rows.shape))
        return True
    x, v, at = array.reshape(form), given.reshape(form), rows.reshape(-1)
    count = x.shape[2] if len(form) == 3 and len(x) == 1 else len(x)
    loop.share(count, v.size, x, at, v)
    return True


def _add_short(array: Array, index: tuple[Any, ...], values: Array) -> None:
    """Do `array[index] += values` for floats of two bytes: what goes to one place is added in double and rounded once.

    In float16 2048 + 1 is 2048, and in bfloat16 256 + 1 is 256: one after the other, a sum would stick.
    """
    places = _places(array.shape, index)
    unique, numbers = np.unique(places, return_inverse=True)
    total = np.bincount(numbers.reshape(-1), np.broadcast_to(values, places.shape).astype(np.float64).reshape(-1))
    at = np.unravel_index(unique, array.shape)
    array[at] = (array[at].astype(np.float64) + total).astype(array.dtype)


def _add_elements(array: Array, places: Array, values: Array) -> bool:
    """Do `array[places] += values` for a vector, as the product of a sparse column of the values with 1.

    Return False where that cannot be.
    """
    if array.dtype.char not in "fd" or values.dtype is not array.dtype or (add := _sparse_product()) is None:
        return False
    values = np.ascontiguousarray(np.broadcast_to(values, places.shape))
    add(array.size, 1, 1, raw.array([0, places.size]), np.ascontiguousarray(places).reshape(-1), values.reshape(-1),
        raw.ones(1, array.dtype), array)
    return True


def _picks_rows(index: tuple[Any, ...]) -> bool:
    return isinstance(index[0], np.ndarray) and not any(isinstance(part, np.ndarray) for part in index[1:])


def _places(shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """The positions in a vector of what `index` picks of an array of this shape."""
    arrays = [d for d, part in enumerate(index) if isinstance(part, np.ndarray)]
    picked = np.broadcast_shapes(*(index[d].shape for d in arrays)) if len(arrays) > 1 else index[arrays[0]].shape
    # Where NumPy puts the dimensions that were picked.
    lead = arrays[0] if arrays[-1] - arrays[0] + 1 == len(arrays) else 0
    ndim, axis = len(shape) - len(arrays) + len(picked), 0
    places: Any = 0
    for d, size in enumerate(shape):
        if d in arrays:
            after = ndim - lead - len(picked)
            part = index[d] if after == 0 else index[d].reshape(index[d].shape + (1,) * after)
        else:
            axis += len(picked) if axis == lead else 0
            part = np.arange(size).reshape((-1,) + (1,) * (ndim - 1 - axis))
            axis += 1
        places = places * size + part if d else part
    return places


def _add_rows(array: Array, rows: Array, values: Array) -> bool:
    """Do `array[rows] += values` by SciPy's product with a sparse matrix of ones.

    Return False, with nothing done, where that cannot be.
    """
    if array.dtype.char not in "fd" or values.dtype is not array.dtype or (add := _sparse_product()) is None:
        return False
    values = np.ascontiguousarray(np.broadcast_to(values, (*rows.shape, *array.shape[1:])))
    rows = np.ascontiguousarray(rows).reshape(-1)
    add(array.shape[0], rows.size, array[0].size, np.arange(rows.size + 1), rows, raw.ones(rows.size, array.dtype),
        values.reshape(-1), array.reshape(-1))
    return True


@cache
def _sparse_product() -> Any:
    """SciPy's `y += matrix @ x` for a matrix in columns; None where there is none that works as expected.

    Its public product makes a whole new array instead of adding to ours.
    """
    try:
        found = import_module("scipy.sparse._sparsetools").csc_matvecs
        total = raw.ones(2)
        found(2, 2, 1, np.arange(3), raw.array([1, 1]), raw.ones(2), raw.array([2.0, 3.0]), total)
    except Exception:  # no SciPy, or one that keeps it elsewhere
        return None
    return found if total.tolist() == [1, 6] else None


# ------------------------------------------------------------------------------------------------------ parts of arrays

@lru_cache(256)
def _lower(n: int, m: int, diagonal: int) -> Any:
    """Where a small matrix is below a diagonal, or on it."""
    return raw.tri(n, m, diagonal, dtype=bool)


def first_of(a: Array, k: int, largest: bool) -> Any:
    """Return where the first few of each row are in its order; None where there is no loop for it."""
    if not 0 < k <= SHORT or not a.size or type(a) is not raw.ndarray or (
            loop := library.find_for(kernels.first_of, a)) is None:
        return None
    n = a.shape[-1]
    found = np.empty((*a.shape[:-1], k), np.int64)
    loop.share(a.size // n, a.size, in_order(a).reshape(-1, n), largest, found.reshape(-1, k))
    return found


def triangle(a: Array, diagonal: int, lower: bool) -> Any:
    """Return matrices with zeros above a diagonal, or below it."""
    if a.size <= FEW and is_plain(a):
        return np.where(_lower(*a.shape[-2:], diagonal if lower else diagonal - 1) == lower, a, np.zeros((), a.dtype))
    if a.ndim < 2 or (found := _as_moved(kernels.triangle, a.size, a)) is None:
        return _triangle_by_strips(a, diagonal, lower)
    loop, moved = found
    out = np.empty(a.shape, a.dtype)
    n, m = a.shape[-2:]
    loop.share(a.size // m, a.size, moved.reshape(-1, n, m), diagonal, lower, out.view(moved.dtype).reshape(-1, n, m))
    return out


STRIP = 64  # rows of which all but a square is copied, or is zero: NumPy would choose for each element


def _triangle_by_strips(a: Array, diagonal: int, lower: bool) -> Any:
    n, m = a.shape[-2:]
    out = np.zeros(a.shape, a.dtype)
    shift = diagonal if lower else diagonal - 1  # row i of the lower triangle has the columns up to i + shift
    for start in range(0, n, STRIP):
        rows = slice(start, min(start + STRIP, n))
        low, high = (min(max(row + shift + 1, 0), m) for row in (rows.start, rows.stop - 1))
        whole, part = slice(0, low) if lower else slice(high, m), slice(low, high)
        out[..., rows, whole] = a[..., rows, whole]
        square = a[..., rows, part]
        kept = _lower(rows.stop - start, high - low, start + shift - low) == lower
        out[..., rows, part] = np.where(kept, square, np.zeros((), a.dtype))
    return out


def sum_bags(a: Array, rows: Array, ends: Array) -> Any:
    """Return the sums of rows in bags, each of which begins where the one before ends; None where there is no loop."""
    if a.ndim != 2 or (loop := _loop(kernels.add_bags, rows.size * a.shape[1], a.dtype, a, rows, ends)) is None:
        return None
    out = np.empty((ends.size, a.shape[1]), a.dtype)
    loop.share(ends.size, rows.size * a.shape[1], a, rows, ends, out)
    return out
