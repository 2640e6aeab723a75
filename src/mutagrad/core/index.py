"""Making an index: which part of a tensor is meant by what stands in the brackets.

Integers, slices, `...` and None make a view; integer arrays and masks pick elements of it. An index is split as PyTorch
does (not as NumPy does, which lets integers and arrays interact): first the view, then the picking. Index tensors are
copied, so changing one later does not change a recorded operation.
"""
from __future__ import annotations

from functools import partial
from typing import Any

from ..arrays import np
from ..arrays.compiled.library import WORTH
from ..arrays.kinds import IN_USE, all_values, check_range, is_plain, unknown
from ..arrays.places import checked, nonzero
from ..base.errors import BadIndex, BadIndexType, BadValue, OutOfMemory
from ..base.operands import Array, kind_name
from .factory import view_of
from .storage import TensorBase
from .window import Index, Shape

ndarray = np.ndarray
ALL = slice(None)
_INT64 = np.dtype(np.int64).char
_UNSIGNED = np.dtype(np.uint64)
BASIC = frozenset((int, slice, type(None), type(...)))
_NUMBERS = frozenset((int, bool))
_NOT_PLACES = BASIC - _NUMBERS


def split_index(x: TensorBase, key: Any) -> tuple[TensorBase, Index | None]:
    """Return the view that the plain parts of `key` make, and the index of the picking parts into it (or None)."""
    if isinstance(key, TensorBase) and _are_places(x, key._array):  # the commonest that picks: no looking for others
        array = x._array
        return view_of(x, array, x._offset or 0), (positions(key._array, array.shape[0], 0), *(ALL,) * (array.ndim - 1))
    parts = index_parts(key)
    if IN_USE:
        parts = tuple([_known(p) for p in parts])
    if BASIC.issuperset(map(type, parts)) or not any(picks(p) for p in parts):
        return basic_view(x, parts), None
    parts = tuple(_as_pick(p) for p in parts)
    used = sum(p.ndim if isinstance(p, ndarray) and p.dtype == bool
               else p is not None and p is not Ellipsis and p is not True and p is not False for p in parts)
    parts = _fill(x, parts, used)
    plain: list[Any] = []
    index: list[Any] = []
    for p in parts:
        if p is True or p is False:
            plain.append(None)
            index.append(np.nonzero(np.array([p]))[0])
        elif isinstance(p, ndarray):
            plain += [ALL] * (p.ndim if p.dtype == bool else 1)
            index += [(p, d) for d in range(p.ndim)] if p.dtype == bool else [p]
        else:
            plain.append(p)
            if not isinstance(p, int):
                index.append(ALL)
    view = basic_view(x, tuple(plain))
    first = index[0]
    if (isinstance(first, tuple) and first[0].shape == view._array.shape
            and view._array.flags.c_contiguous):  # one mask for all elements
        return vector_of(view), (np.flatnonzero(first[0]),)
    return as_vector(view, _resolve(view._array.shape, index))


def index_parts(key: Any) -> tuple[Any, ...]:
    """Return what stands between the brackets: a list that cannot be one of positions counts as a tuple, as in PyTorch.

    That is one with slices, None, `...` or whole tensors in it, or with lists beside numbers. (A list of lists is
    positions here, as PyTorch has announced that it will be there.)
    """
    if key.__class__ is tuple:
        return key  # type: ignore[no-any-return]
    if key.__class__ is not list or _NUMBERS.issuperset(kinds := {type(p) for p in key}):
        return (key,)
    lists = sum(isinstance(p, (list, tuple, range)) for p in key)
    if not kinds.isdisjoint(_NOT_PLACES) or 0 < lists < len(key) or any(getattr(p, "ndim", 0) for p in key):
        return tuple(key)
    return (key,)


def is_traced_number(part: Any) -> bool:
    """Whether a part of an index is a number that nobody knows yet."""
    return (isinstance(part, TensorBase) and not part._array.ndim and part._array.dtype.kind in "iu"
            and not is_plain(part._array) and unknown(part._array))


def _known(part: Any) -> Any:
    """A part of an index; a number that is another kind's array, as a number of Python's where it is known."""
    if isinstance(part, TensorBase) and not part._array.ndim and part._array.dtype.kind in "iu":
        values = all_values(part._array)
        return part if values.ndim else int(values)
    return part


def _are_places(x: TensorBase, array: Array) -> bool:
    """Whether an array, by itself an index, is of positions along the first dimension."""
    return (type(array) is ndarray and array.dtype.char == _INT64 and array.ndim > 0 and array.flags.c_contiguous
            and type(x._array) is ndarray and x._array.ndim > 0)


def as_vector(x: TensorBase, index: tuple[Any, ...]) -> tuple[TensorBase, Index]:
    """Pick the same elements from a vector where that can be: NumPy is several times as fast over one index."""
    shape = x._array.shape
    if (len(shape) < 2 or len(index) != len(shape) or not x._array.flags.c_contiguous
            or not all(isinstance(part, ndarray) for part in index)):
        return x, index
    places = index[0]
    for part, size in zip(index[1:], shape[1:]):
        places = places * size + part
    return vector_of(x), (places,)


def vector_of(x: TensorBase) -> Any:
    """Return a tensor whose memory is in order as a vector."""
    return view_of(x, x._array.reshape(-1), x._offset or 0)


def picks(part: Any) -> bool:
    """Whether a part of an index picks elements (integers, slices, None and ... do not)."""
    if part is None or part is Ellipsis or part.__class__ is int or part.__class__ is slice:
        return False
    if isinstance(part, TensorBase):
        part = part._array
    if isinstance(part, ndarray):
        return part.ndim > 0 or part.dtype.kind not in "iu" or not is_plain(part)
    return isinstance(part, (list, tuple, range, bool, np.bool_))


def _as_pick(part: Any) -> Any:
    """A picking part as an integer or boolean array; True and False stay as they are."""
    if isinstance(part, TensorBase):
        part = part._array
    elif isinstance(part, (list, tuple, range)):
        try:
            part = np.array([v._array if isinstance(v, TensorBase) else v for v in part])
        except ValueError as error:
            raise BadIndex("index: the rows of a nested list must have equal lengths", why=str(error)) from None
        part = part.astype(np.int64) if part.size == 0 else part
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if not isinstance(part, ndarray):
        return part
    if part.dtype.kind == "b":
        return bool(part) if not part.ndim else part
    if part.dtype.kind not in "iu":
        raise BadIndexType(f"index: tensors used as indices must be integers or booleans, not {part.dtype.name}",
                           fix="x[index.long()]; mutagrad.relax.read(x, index) is differentiable in the index")
    if part.dtype == np.uint8 and part.ndim:
        raise BadIndex("index: uint8 is ambiguous", why="PyTorch takes it for a mask, NumPy for positions",
                       fix="x[index.bool()] or x[index.long()]")
    return part.astype(np.int64) if part.ndim or not is_plain(part) else int(part)


def _fill(x: TensorBase, parts: tuple[Any, ...], used: int) -> tuple[Any, ...]:
    """The index with `...` spelled out."""
    ndim = x._array.ndim
    if used > ndim:
        raise BadIndex(f"index: too many indices ({used}) for a tensor of shape {x._array.shape}",
                       why=f"it has {ndim} dimensions", fix=f"at most {ndim} indices")
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(dots) > 1:
        raise BadIndex("index: `...` may appear only once", fix="x[..., 0]")
    at = dots[0] if dots else len(parts)
    return (*parts[:at], *[ALL] * (ndim - used), *parts[at + 1:])


def _resolve(shape: Shape, index: list[Any]) -> Index:
    """Masks as positions, negative positions counted from the front, ranges checked: one array or full slice each."""
    found: list[Any] = []
    masks: dict[int, tuple[Array, ...]] = {}
    for d, part in enumerate(index):
        if isinstance(part, tuple):
            mask, axis = part
            if mask.shape != shape[d - axis:d - axis + mask.ndim]:
                raise BadIndex(f"index: a mask of shape {mask.shape} does not match shape {shape} "
                               f"from dimension {d - axis}",
                               why="a mask must have the sizes of the dimensions it covers",
                               fix=f"a mask of shape {shape}")
            if id(mask) not in masks:
                masks[id(mask)] = nonzero(mask)
            found.append(masks[id(mask)][axis])
        elif isinstance(part, ndarray):
            found.append(positions(part, shape[d], d))
        else:
            found.append(part)
    try:
        if len(found) > 1:
            np.broadcast_shapes(*(p.shape for p in found if isinstance(p, ndarray)))
    except ValueError:
        raise BadIndex(f"index: index shapes {[p.shape for p in found if isinstance(p, ndarray)]} do not broadcast",
                       fix="x[rows[:, None], columns] picks every pair") from None
    return tuple(found)


def positions(part: Array, size: int, dim: int, from_end: bool = True) -> Array:
    """Return a copy with negatives counted from the front, all in range; unless `from_end`, none may be negative."""
    if part.size >= WORTH and (found := checked(part, size, -size if from_end else 0)) is not None:
        return found
    if part.size and not (part.dtype.char == _INT64 and type(part) is ndarray
                          and np.maximum.reduce(part.view(_UNSIGNED), None) < size):  # negatives are the largest of all
        low, _ = check_range(part, -size if from_end else 0, size - 1, partial(_beyond, dim, size, from_end))
        if low < 0 or from_end and unknown(part):
            return np.where(part < 0, part + size, part)  # type: ignore[no-any-return]
    try:
        return part.astype(np.int64)
    except MemoryError as error:
        raise OutOfMemory.found_by("index", error) from None


def _beyond(dim: int, size: int, from_end: bool, index: int, where: Any) -> BadIndex:
    return BadIndex(f"index {index} is out of bounds for dimension {dim} with size {size}",
                    fix=f"indices from {-size if from_end else 0} to {size - 1}", where=where)


def basic_view(x: TensorBase, parts: tuple[Any, ...]) -> Any:
    """Return the view that integers, slices, `...` and None make."""
    array = x._array
    if not BASIC.issuperset(map(type, parts)):
        parts = tuple([_as_number(p) for p in parts])
    dim, offset = 0, x._offset or 0
    key: list[Any] = []
    for i, p in enumerate(parts):
        if p.__class__ is int:
            if dim >= array.ndim:
                raise _too_many(array, parts)
            n = array.shape[dim]
            if not -n <= p < n:
                raise BadIndex(f"index {p} is out of bounds for dimension {dim} with size {n}",
                               fix=f"an index from {-n} to {n - 1}" if n else "")
            offset += (p + n if p < 0 else p) * array.strides[dim]
            dim += 1
        elif p.__class__ is slice:
            if dim >= array.ndim:
                raise _too_many(array, parts)
            p = plain_slice(p)
            start, stop, step = p.indices(array.shape[dim])
            if (stop - start) * step > 0:
                offset += start * array.strides[dim]
            dim += 1
        elif p is Ellipsis:
            rest = parts[i + 1:]
            if Ellipsis not in rest:
                dim += array.ndim - dim - sum(q is not None for q in rest)
        elif p is not None:
            raise BadIndexType(f"index: {kind_name(p)} cannot be an index", why=f"got {p!r}",
                               fix="integers, slices, ..., None, integer or boolean tensors")
        key.append(p)
    if Ellipsis not in key:
        key.append(Ellipsis)  # so that NumPy gives an array, not a scalar
    try:
        return view_of(x, array[tuple(key)], offset)
    except IndexError as error:
        raise BadIndex(f"index: {error}") from None


def _as_number(part: Any) -> Any:
    """A part of an index, as a number if it is one."""
    try:
        return part.__index__() if hasattr(part, "__index__") else part
    except TypeError:  # another library's array, of several elements
        return part


def _too_many(array: Array, parts: tuple[Any, ...]) -> BadIndex:
    used = sum(p is not None and p is not Ellipsis for p in parts)
    return BadIndex(f"index: too many indices ({used}) for a tensor of shape {array.shape}",
                    why=f"it has {array.ndim} dimensions",
                    fix=f"at most {array.ndim} indices" if array.ndim else "x.item()")


def plain_slice(p: slice) -> slice:
    """Return a slice by Python's integers: its bounds may be 0-d tensors or anything else with __index__."""
    if BASIC.issuperset((p.start.__class__, p.stop.__class__, p.step.__class__)) and p.step != 0:
        return p
    try:
        found = slice(*(None if v is None else v.__index__() for v in (p.start, p.stop, p.step)))
    except (TypeError, AttributeError):
        raise BadIndexType(f"index: slice bounds must be integers, got {p}", fix="x[int(i):]") from None
    if found.step == 0:
        raise BadValue("index: the step of a slice cannot be zero", fix="x[::1]")
    return found


def index_shape(shape: Shape, index: Index) -> Shape:
    """Return the shape of `array[index]`, found without reading it."""
    if len(index) == 1 and isinstance(index[0], ndarray):
        return (*index[0].shape, *shape[1:])
    arrays = [p for p in index if isinstance(p, ndarray)]
    picked = np.broadcast_shapes(*(p.shape for p in arrays))
    places = [d for d, p in enumerate(index) if isinstance(p, ndarray)]
    together = places[-1] - places[0] + 1 == len(places)
    rest = shape[len(index):]
    if not together:
        return (*picked, *(shape[d] for d, p in enumerate(index) if not isinstance(p, ndarray)), *rest)
    return (*shape[: places[0]], *picked, *shape[places[-1] + 1: len(index)], *rest)
