"""Reading and writing by index.

A view needs no node. Picked elements are copied when they are read, and the copy's node reads through a window with the
index in it; writing them is a write through such a window. Either way a sweep touches only the elements picked.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from sys import _getframe, getrefcount
from typing import Any, NoReturn

from ..arrays import np, places as at_places
from ..arrays.compiled.library import WORTH
from ..arrays.kinds import IN_USE, device_of, is_plain, pick, share_memory, unknown
from ..arrays.numpy import silent
from ..arrays.parallel import assign
from ..base.errors import BadArgument, BadValue, DTypeError, OutOfMemory, ShapeError
from ..base.modes import NOT_RECORDING, OTHER_KIND, UNRECORDED, call_with, mode
from ..base.operands import Array, kind_name
from .dtypes import of_array
from .factory import CODEGEN_GLOBALS, AnyTensor, detached, make, over, view, view_of, window_or_none
from .graph import next_order, window_of
from .index import index_parts, index_shape, is_traced_number, picks, plain_slice, split_index
from .masked import as_everywhere, read_masked
from .op import RECORDED, Op, same
from .ownership import ASSIGNS, NOBODYS, UNNAMED, is_nobodys
from .promote import operand_dtype
from .storage import (
    Places,
    Taken,
    TensorBase,
    aliased,
    check_inside,
    enter_alias,
    has_aliases,
    ledger_of,
    memory_of,
    move_aside,
)
from .window import Index, Shape, Window, overlaps_itself
from .write import (
    begin_write,
    check_cast,
    check_writable,
    compute_into,
    end_write,
    new_node,
    set_write,
    taken_again,
)

ndarray, new_object = np.ndarray, object.__new__

# The operations of this file. Both pass adjoints through unchanged: what they mean is in the windows.
_read = Op("index", None, ("x",), (), {"x": same})
_put = Op("copy", None, ("value",), (), {"value": same})
_put.adds = False
_accumulate = Op("accumulate", None, ("x", "value"), (), {"x": same, "value": same})


def read(x: TensorBase, index: Index, found: Array | None = None) -> Any:
    """Return a copy of the elements that `index` picks, which may have been `found` already."""
    try:
        result = make(picked(x._array, index) if found is None else found)
    except MemoryError as error:
        raise OutOfMemory.found_by("index", error) from None
    node = x._storage.writer
    if mode.grad and node is not None:
        result._storage.writer = new_node(_read, (node,), (window_of(x, index),))
    return result


def picked(array: Array, index: Index) -> Any:
    """Return `array[index]`; of a larger array, along one dimension, there is a faster way than NumPy's."""
    if array.size < WORTH:
        return pick(array, index)
    dim, *others = (d for d, part in enumerate(index) if isinstance(part, ndarray))
    return pick(array, index) if others else at_places.take(array, index[dim], dim)  # type: ignore[arg-type]


def getitem(x: TensorBase, key: Any) -> Any:
    """Return `x[key]`."""
    array = x._array
    if key.__class__ is int and array.ndim and -(n := len(array)) <= key < n:  # the commonest, in loops: no calls
        offset = (x._offset or 0) + (key if key >= 0 else key + n) * array.strides[0]
        if NOT_RECORDING and not mode.now.recorded:
            return view_of(x, array[key, ...], offset)
        found = new_object(CODEGEN_GLOBALS["Tensor"])
        found._array = array[key, ...]
        found._storage = x._storage
        found._offset = offset
        found._grad = None
        return found
    elif key.__class__ is slice and array.ndim and (key.step is None or key.step.__class__ is int and key.step > 0):
        key = plain_slice(key)
        start, stop, _ = key.indices(array.shape[0])
        return view_of(x, array[key], (x._offset or 0) + (start * array.strides[0] if start < stop else 0))
    if IN_USE:
        if _is_unknown_mask(x, key):
            return read_masked(x, key)
        if (numbers := traced_numbers(key)) is not None:
            first, rest = numbers
            return getitem(getitem(x, first), rest) if rest else taken(x, key)
    try:
        view, index = split_index(x, key)
    except MemoryError as error:
        raise OutOfMemory.found_by("index", error) from None
    return view if index is None else read(view, index)


def traced_numbers(key: Any) -> tuple[Any, Any] | None:
    """Where some numbers in a key are not known yet: the key with these alone, and what picks of that; else None.

    As in PyTorch, numbers come before what picks elements. The second is empty where nothing does.
    """
    parts = index_parts(key)
    numbers = [is_traced_number(p) for p in parts]
    if not any(numbers):
        return None
    rest = tuple([p for p, number in zip(parts, numbers) if not number])
    if not any(picks(p) for p in rest):
        return key, ()
    first: list[Any] = []
    for p, number in zip(parts, numbers):
        if number or p is Ellipsis:
            first.append(p)
        elif p is not None and not isinstance(p, bool):
            array = p._array if isinstance(p, TensorBase) else p
            first += [slice(None)] * (array.ndim if isinstance(array, ndarray) and array.dtype.kind == "b" else 1)
    return tuple(first), rest


def taken(x: TensorBase, key: Any) -> Any:
    """Return the elements at a place that is not known yet, as a tensor that follows those of `x`."""
    window, index = split_index(x, key)
    assert index is not None
    numbers = [p for p in index_parts(key) if isinstance(p, TensorBase)]
    result, memory = read(window, index), memory_of(window)
    before = result._storage
    storage = result._storage = Taken()
    storage.buffer, storage.writer, storage.version = before.buffer, before.writer, 0
    storage.root = storage.leaf = storage.ledger = None
    ledger_of(storage).aliases = Places()  # so that it is told of writes
    enter_alias(memory, storage, window)
    versions, written_at = [memory_of(p).version for p in numbers], [memory.version]

    def again(storage: Taken, node: Any) -> None:
        array = over(storage)._array
        if storage.ledger is not None and storage.ledger.high >= 0:
            move_aside(storage, None)
        storage.version += 1
        array[...] = picked(window._array, index)
        writer = window._storage.writer
        if storage.leaf is None and (writer is None or storage.writer is not None or node is not None):
            storage.writer = None if writer is None else new_node(_read, (writer,), (window_of(window, index),))
        taken_again(storage, node)

    def give(storage: Taken, written: Any, node: Any) -> None:
        mine = written is storage
        target, value = (window, over(storage)) if mine else (detached(window), detached(over(storage)))
        call_with(UNRECORDED if node is None else {}, put, target, index, value, "setitem")
        written_at[:] = [memory.version]

    def is_at(other: TensorBase, k: Any) -> bool:
        return (other is x and k is key and written_at == [memory.version]
                and versions == [memory_of(p).version for p in numbers])

    storage.again, storage.give, storage.is_at = again, give, is_at
    return result


def _is_unknown_mask(x: TensorBase, key: Any) -> bool:
    """Whether a key is a mask that is being traced, and fits."""
    return (isinstance(key, TensorBase) and key._array.dtype.kind == "b" and unknown(key._array)
            and 0 < key._array.ndim <= x._array.ndim and key._array.shape == x._array.shape[:key._array.ndim])


def as_value(value: Any, target: TensorBase, name: str) -> Any:
    """Return what is to be written as a tensor of the target's type."""
    if not isinstance(value, TensorBase):
        if isinstance(value, (list, tuple)):
            value = (_joined(value, target._array.dtype) if mode.grad and _has_history(value)
                     else RECORDED.as_tensor(value, of_array(target._array.dtype)))
        elif isinstance(value, (bool, int, float, complex, np.generic)):
            dtype = target._array.dtype
            if dtype.kind == "u" and isinstance(value, int) and -np.iinfo(dtype).max <= value < 0:
                value = value % (int(np.iinfo(dtype).max) + 1)  # as in C, and so in PyTorch
            try:
                return make(silent().run(np.array, value, dtype))  # one too large for the type becomes inf silently
            except (TypeError, OverflowError) as error:
                raise DTypeError(f"{name}: {value!r} cannot be stored as {target._array.dtype.name}",
                                 why=str(error)) from None
        else:
            value = make(np.array(value)) if isinstance(value, ndarray) else _no_value(name, value)
    return value if value._array.dtype is target._array.dtype else RECORDED.cast(value, target._array.dtype)


def _has_history(values: Sequence[Any]) -> bool:
    """Whether a list, which may hold others, has tensors in it that were computed."""
    return any(v._storage.writer is not None if isinstance(v, TensorBase)
               else isinstance(v, (list, tuple)) and _has_history(v) for v in values)


def _joined(values: Sequence[Any], dtype: Any) -> Any:
    """A list of tensors, numbers and lists of these as one tensor, through which gradients reach them."""
    def joined(v: Any) -> Any:
        if isinstance(v, TensorBase):
            return RECORDED.cast(v, dtype)
        return _joined(v, dtype) if isinstance(v, (list, tuple)) else make(np.array(v, dtype))

    return RECORDED.stack([joined(v) for v in values])


def _no_value(name: str, value: Any) -> NoReturn:
    raise BadArgument(f"{name}: can't assign a {kind_name(value)} to a tensor", fix="assign a tensor or a number")


def put(target: AnyTensor, index: Index | None, value: Any, name: str, accumulate: bool = False) -> AnyTensor:
    """Write `value` through the window of `target`, at `index` if not None; add it there if `accumulate`."""
    check_writable(target, name)
    array = target._array
    value = as_value(value, target, name)
    if IN_USE and value._storage.writer is not None and type(value._array) is not type(array):
        value = RECORDED.joined(value, target)
    v = value._array
    shape = array.shape if index is None else index_shape(array.shape, index)
    if v.ndim > len(shape) and v.shape[: v.ndim - len(shape)] == (1,) * (v.ndim - len(shape)):
        value = RECORDED.reshape(value, v.shape[v.ndim - len(shape):])  # NumPy and PyTorch both drop leading ones
        v = value._array
    if v.ndim and v.shape != shape and not _fits(v.shape, shape):
        raise ShapeError(f"{name}: a value of shape {v.shape} cannot be written into shape {shape}",
                         why="it must have that shape or broadcast to it",
                         fix="value.reshape(...), or index the part that has its shape")
    if aliased(value, target) and share_memory(v, array):  # a statement reads before it writes
        v = v.copy()
    if accumulate:
        return _put_accumulate(target, index, value, v, shape)
    if index is not None:
        return _put_at(target, index, value, v, shape)
    node = begin_write(_put, target, (value,), (v,), ())
    assign(array, v)
    return end_write(target, node)


def _fits(shape: Shape, target: Shape) -> bool:
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(target)))


def _put_at(target: AnyTensor, index: Index, value: TensorBase, v: Array, shape: Shape) -> AnyTensor:
    array = target._array
    if mode.grad and value._storage.writer is not None:
        losers = _overwritten(array.shape, index)
        if losers is not None:  # of several writes to one place the last wins, and only its value has influence
            value = RECORDED.where(make(losers), 0.0, RECORDED.expand(value, shape))
    node = begin_write(_put, target, (value,), (v,), (), index, shape)
    at_places.put(array, index, v)
    return end_write(target, node)


def _overwritten(shape: Shape, index: Index) -> Any | None:
    """Which picks are overwritten by a later pick of the same place; None if no place is picked twice."""
    arrays = np.broadcast_arrays(*(p for p in index if isinstance(p, ndarray)))
    if not arrays or arrays[0].size < 2:
        return None
    dims = tuple(shape[d] for d, p in enumerate(index) if isinstance(p, ndarray))
    vectors = tuple(a.reshape(-1) for a in arrays)
    places = np.ravel_multi_index(vectors, dims) if len(arrays) > 1 else vectors[0]
    if unknown(places):
        numbers, newest = np.arange(places.size), np.full(prod(dims), -1)
        np.maximum.at(newest, places, numbers)
        return _spread_losers(newest[places] != numbers, shape, index, arrays)
    if (places[1:] > places[:-1]).all():  # in order, as from a mask: none can be twice
        return None
    losers = at_places.overwritten(places, prod(dims))
    return _spread_losers(losers, shape, index, arrays) if losers.any() else None


def _spread_losers(losers: Array, shape: Shape, index: Index, arrays: Sequence[Array]) -> Array:
    picked = losers.reshape(arrays[0].shape)
    spread = [d for d, p in enumerate(index) if isinstance(p, ndarray)]
    together = spread[-1] - spread[0] + 1 == len(spread)
    result = index_shape(shape, index)
    lead = spread[0] if together else 0
    expanded = picked.reshape((1,) * lead + picked.shape + (1,) * (len(result) - lead - picked.ndim))
    return np.broadcast_to(expanded, result).copy()  # type: ignore[no-any-return]


def _put_accumulate(target: AnyTensor, index: Index | None, value: TensorBase, v: Array, shape: Shape) -> AnyTensor:
    array = target._array
    node = begin_write(_accumulate, target, (target, value), (array, v), (), index, shape)
    if index is None:
        silent().run(np.add, array, v, array)
    else:
        silent().run(at_places.add_at, array, index, v)
    return end_write(target, node)


def _check_places(x: TensorBase, key: Any) -> None:
    """Raise where an index is on a device and the tensor is not. (A compiled step brings all to one.)"""
    if device_of(x._array) is not None or mode.now.kind is not None:
        return
    for part in index_parts(key):
        if isinstance(part, TensorBase) and part._array.ndim and device_of(part._array) is not None:
            raise BadValue("setitem: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
                           why=f"an index is on {part.device}", fix="x[index.cpu()] = value")  # type: ignore[attr-defined]


def setitem(x: TensorBase, key: Any, value: Any) -> None:
    """Do `x[key] = value`."""
    unnamed = getrefcount(value) <= UNNAMED
    if unnamed:
        try:
            frame = _getframe(1)
            unnamed = frame.f_code.co_code[frame.f_lasti] in ASSIGNS
        except ValueError:  # called by no Python at all
            unnamed = False
    if IN_USE:
        _check_places(x, key)
        if isinstance(value, TensorBase) and value._storage.__class__ is Taken and value._offset is None \
                and value._storage.is_at(x, key):
            return  # the last step of `x[i] += v`, which has already been written
        if (numbers := traced_numbers(key)) is not None and numbers[1]:
            x, key = getitem(x, numbers[0]), numbers[1]
    if IN_USE and isinstance(value, TensorBase) and type(value._array) is not type(x._array):
        value = RECORDED.joined(value, x)
    if isinstance(value, TensorBase) and not value._array.ndim:
        array = x._array
        if key.__class__ is int and array.ndim == 1 and -(n := len(array)) <= key < n:
            offset: int | None = (x._offset or 0) + (key if key >= 0 else key + n) * array.strides[0]
        else:
            offset = _element_offset(x, key)
        if offset is not None and value._array.dtype is array.dtype:
            return _set_element(x, key, offset, value, unnamed)
    elif (key.__class__ is slice and isinstance(value, TensorBase) and value._storage is x._storage
            and _is_slice(value, x, plain_slice(key))):
        return  # the last step of `x[i:j] += v`, found without a view
    if IN_USE and (not _ndim(value) or _is_unknown_mask(x, key)) and (found := _masked(x, key)) is not None:
        put_where(*found, as_everywhere(x, key, value) if _ndim(value) else value, "setitem")
        return
    view, index = (getitem(x, key), None) if key.__class__ in (int, slice) else split_index(x, key)
    if index is None and isinstance(value, TensorBase):
        array, v = view._array, value._array
        if value._storage is view._storage and _is_same_window(view, value):
            return  # the last step of `x[key] += v`, which has already been written through the view
        if (v.dtype is array.dtype and v.shape == array.shape
                and not overlaps_itself(v.shape, array.strides, v.itemsize)):
            if (unnamed and array.dtype.kind in "fcV" and (not NOT_RECORDING or mode.now.recorded) and is_nobodys(value)
                    and view._storage.root is None and not has_aliases(memory_of(view), view._storage)):
                begin_write(_put, view, (), (), (), record=False)
                compute_into(view._storage, value._storage.writer, window_or_none(view))
                array[()] = v
            else:
                node = begin_write(_put, view, (value,), (), ())
                array[()] = v.copy() if aliased(value, view) else v  # NumPy's own care for overlaps has gaps
                end_write(view, node)
            return
    put(view, index, value, "setitem")


def _masked(x: TensorBase, key: Any) -> tuple[TensorBase, TensorBase] | None:
    """The view and the mask that a key means: with one mask, not NumPy's, behind slices and numbers; else None."""
    parts = index_parts(key)
    masks = [i for i, p in enumerate(parts) if isinstance(p, TensorBase) and p._array.dtype.kind == "b"]
    if len(masks) != 1 or is_plain(parts[masks[0]]._array) or not parts[masks[0]]._array.ndim:
        return None
    at, = masks
    mask, before, after = parts[at], parts[:at], parts[at + 1:]
    if not all(p is None or p.__class__ in (int, slice) for p in (*before, *after)):
        return None
    view = getitem(x, (*before, *(slice(None),) * mask._array.ndim, *after)) if len(parts) > 1 else x
    lead = sum(p.__class__ is not int for p in before)
    missing = view._array.ndim - lead - mask._array.ndim
    if missing < 0 or view._array.shape[lead:lead + mask._array.ndim] != mask._array.shape:
        return None  # it does not fit, and whoever reads the index says so
    return view, RECORDED.reshape(mask, mask._array.shape + (1,) * missing) if missing else mask


def _ndim(value: Any) -> int:
    if isinstance(value, TensorBase):
        return value._array.ndim
    return 0 if isinstance(value, (bool, int, float, complex, np.generic)) else 1


def put_where(x: TensorBase, mask: TensorBase, value: Any, name: str) -> None:
    """Write one value where a mask holds, which may hold elsewhere in every slice, so that there is no index for it."""
    put(x, None, RECORDED.where(mask, as_value(value, x, name), x), name)


def _element_offset(x: TensorBase, key: Any) -> int | None:
    """Return where in the storage the one element lies that numbers for all dimensions mean; None for other keys."""
    if key.__class__ is not tuple or len(key) != x._array.ndim:
        return None
    offset: int = x._offset or 0
    for k, n, stride in zip(key, x._array.shape, x._array.strides):
        if k.__class__ is not int or not -n <= k < n:
            return None
        offset += (k if k >= 0 else k + n) * stride
    return offset


def _set_element(x: TensorBase, key: int | tuple[int, ...], offset: int, value: TensorBase, unnamed: bool) -> None:
    """Write one element from a 0-d tensor: the step of every loop over elements, so without a view and few calls."""
    array, storage, source = x._array, x._storage, value._storage
    if source is storage and value._offset == offset:
        return  # the last step of `x[i] += v`
    if OTHER_KIND:
        check_inside(x)
    memory = storage.root or storage
    if memory.ledger is not None:
        if memory.ledger.aliases is not None:
            put(getitem(x, key), None, value, "setitem")
            return
        if memory.ledger.high >= 0:
            move_aside(memory, getitem(x, key))
    memory.version += 1
    writer, before = source.writer, storage.writer
    if (not NOT_RECORDING or mode.now.recorded) and (writer is not None or before is not None):
        window: Window = offset
        if before is None or before.whole[1] is not array.dtype:
            window = window_of(getitem(x, key))  # not yet seen in parts; or the real part of a complex number
        if (unnamed and getrefcount(source) + getrefcount(writer) <= NOBODYS and value._offset is None
                and source.root is None and writer.hooks is None
                and writer.written is None):  # is_nobodys(value), without the call
            node = writer
            node.order = next_order()
        else:
            node = new_node(_put, (writer,), (None if writer is None or value._offset is None else window_of(value),))
        if before is None or storage.buffer.size == 1:
            set_write(node, storage, window)
        else:  # the same without the call
            node.whole = before.whole
            node.written = window
            node.append(before)
        storage.writer = node
    else:
        end_write(x, None)
    if IN_USE and type(array) is ndarray is not type(value._array):
        raise value._array.level.refuse("a value of each slice is written to memory that they share")
    array[key] = value._array


def _is_slice(value: TensorBase, x: TensorBase, key: slice) -> bool:
    """Whether `value` is `x[key]`: the same window on the same storage."""
    v, array = value._array, x._array
    if value._offset is None or not array.ndim or v.ndim != array.ndim:
        return False
    start, stop, step = key.indices(len(array))
    return (start < stop and step > 0 and value._offset == (x._offset or 0) + start * array.strides[0]
            and v.dtype is array.dtype and len(v) == (stop - start + step - 1) // step
            and v.shape[1:] == array.shape[1:] and v.strides == (array.strides[0] * step, *array.strides[1:]))


def _is_same_window(a: TensorBase, b: TensorBase) -> bool:
    return ((a._offset or 0) == (b._offset or 0) and a._array.shape == b._array.shape
            and a._array.strides == b._array.strides and a._array.dtype is b._array.dtype)


def copy_(x: AnyTensor, src: Any, non_blocking: bool = False) -> AnyTensor:
    """Overwrite `x` with `src`, which is broadcast and cast to fit.

    >>> import mutagrad as mg
    >>> mg.zeros(2).copy_(mg.tensor([1, 2]))
    tensor([1., 2.])
    """
    return put(x, None, src, "copy_")


def fill_(x: AnyTensor, value: Any) -> AnyTensor:
    """Overwrite every element with one value.

    >>> import mutagrad as mg
    >>> mg.zeros(2).fill_(3.)
    tensor([3., 3.])
    """
    if isinstance(value, TensorBase) and value._array.ndim:
        raise ShapeError(f"fill_: the value must be a number or a 0-d tensor, not of shape {value._array.shape}",
                         fix="x.copy_(value)")
    put(_not_repeated(x), None, value, "fill_")
    return x


def zero_(x: AnyTensor) -> AnyTensor:
    """Write zeros into the tensor; return it. Its history ends there.

    >>> import mutagrad as mg
    >>> mg.ones(2).zero_()
    tensor([0., 0.])
    """
    put(_not_repeated(x), None, 0, "zero_")
    return x


def _not_repeated(x: Any) -> Any:
    """The part of a tensor that `expand` repeated: what is the same for all elements can be written into that."""
    if not isinstance(x, TensorBase) or x._offset is None or 0 not in x._array.strides:
        return x
    array = x._array
    shape = tuple(n if t else min(n, 1) for n, t in zip(array.shape, array.strides))
    return view(x, shape, array.strides, x._offset, array.dtype)


def copy_into(out: AnyTensor, result: TensorBase) -> AnyTensor:
    """Write a result into `out`, for operations that have no in-place form of their own."""
    check_writable(out, "out")
    if out._array.shape != result._array.shape:
        raise ShapeError(f"out: a result of shape {result._array.shape} cannot be written "
                         f"into shape {out._array.shape}",
                         fix="out=mutagrad.empty_like(...) of the result's shape")
    check_cast("out", result._array.dtype, out._array.dtype)
    return put(out, None, result, "out")


RECORDED.copy_into = copy_into
RECORDED.common_dtype = lambda tensors: operand_dtype(tensors).array_type
