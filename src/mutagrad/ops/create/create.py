"""New tensors: from data, filled, counted.

What all of them take besides (`layout`, `pin_memory`, `out` and the like) goes through `finish`, which knows what of it
has a meaning here.
"""
from __future__ import annotations

import math
import warnings
from array import array as packed
from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ...arrays import np
from ...arrays.allocator import allocator, keep_memory
from ...arrays.compiled.moves import move
from ...arrays.dlpack import borrow
from ...arrays.kinds import IN_USE, is_plain, moved
from ...arrays.numpy import constant, silenced, silent, silently
from ...arrays.parallel import LARGE, in_steps, in_turn
from ...base.device import CPU, device as Device, names_meta, place_named
from ...base.errors import (
    BadArgument,
    BadData,
    BadValue,
    DTypeError,
    MutagradError,
    OutOfMemory,
    ShapeError,
    may_need_much,
)
from ...base.layout import (
    SPARSE,
    check_format,
    check_layout,
    layout as Layout,
    memory_format as MemoryFormat,
    preserve_format,
    strided,
)
from ...base.modes import OTHER_KIND, call_with, mode
from ...base.operands import Array
from ...base.provenance import to_user
from ...base.sockets import socket
from ...core.dtypes import (
    COMPLEX,
    FLOAT,
    as_dtype,
    dtype as DType,
    get_default_dtype,
    int64,
    of_array,
    promote_types,
    scalar_dtype,
)
from ...core.evidence import cut
from ...core.factory import laid_out_alike, make, view
from ...core.number import number
from ...core.op import RECORDED
from ...core.out_arg import write_out
from ...core.size import sizes
from ...core.storage import TensorBase as Tensor, export_for_good
from ..math.elementwise import Value, cast, cast_array
from ..shape.places import on
from ..shape.shape import RANKS, copied, tensor_argument

MAX_BYTES = 1 << 46
_FAR = 1 << 62  # no sum of two such numbers leaves their type
SEQUENCES = (list, tuple, range, deque, packed)  # whose items are elements
ElementType = DType | type  # bool, int, float and complex name types, too


def finish(array: Array, requires_grad: bool, device: Device | str | int | None = None, name: str = "tensor",
           *, layout: Layout | None = None, pin_memory: bool = False, memory_format: MemoryFormat | None = None,
           out: Tensor | None = None, **unknown: Any) -> Any:
    """Return the array as the tensor that was asked for."""
    place = mode.now.device if device is None else device
    if place is not None and (place is not CPU or IN_USE):
        if names_meta(place) and out is None:
            blank = np.zeros(array.shape, array.dtype)
            here = finish(blank, requires_grad, CPU, name, layout=layout, pin_memory=pin_memory,
                          memory_format=memory_format, **unknown)
            return socket("meta").emptied(here)
        if out is None and (device is not None or type(array) is np.ndarray):
            return _finish_there(array, requires_grad, place_named(place), name, layout=layout,
                                 memory_format=memory_format, **unknown)
    if layout is not None or pin_memory or memory_format is not None or unknown:
        check_layout(name, layout, pin_memory)
        if unknown:
            raise BadArgument(f"{name}: unexpected argument {next(iter(unknown))!r}",
                              fix=f"leave out {', '.join(unknown)}")
        if memory_format in RANKS and out is None:
            return copied(make(array), memory_format=memory_format).requires_grad_(requires_grad)
        check_format(name, memory_format)
    result = write_out(name, make(array), out)
    return result if requires_grad is False or requires_grad is None else result.requires_grad_(requires_grad)


def _finish_there(array: Array, requires_grad: bool, place: Any, name: str, **settings: Any) -> Any:
    """The same on a device, which is where all that is made meanwhile belongs."""
    array = moved(array, place)
    if type(array) is np.ndarray and OTHER_KIND and mode.now.kind is not None and mode.now.kind.on_device:
        return call_with({"kind": None, "device": None}, finish, array, requires_grad, None, name, **settings)
    return call_with({"device": None}, finish, array, requires_grad, None, name, **settings)


def wanted_type(dtype: ElementType | None, settings: dict[str, Any]) -> DType:
    """The element type asked for, else that of `out`, else the default."""
    out = settings.get("out")
    if dtype is None:
        return get_default_dtype() if out is None else of_array(out._array.dtype)
    if out is not None and out._array.dtype != as_dtype(dtype).array_type:
        raise DTypeError(f"out: dtype={as_dtype(dtype).name} does not match that of out, {out._array.dtype.name}",
                         fix="leave dtype out")
    return as_dtype(dtype)


def shape_of(arguments: tuple[Any, ...], name: str) -> tuple[int, ...]:
    shape = sizes(arguments, name)
    if shape and min(shape) < 0:
        raise ShapeError(f"{name}: negative size in {shape}", fix=f"mutagrad.{name}(3, 4)")
    return shape


def allocate(maker: Callable[..., Array], shape: tuple[int, ...], to: DType, name: str) -> Any:
    """Return `maker(shape, type)`; huge shapes get an error that says how much they would need."""
    need = (shape[0] if len(shape) == 1 else math.prod(shape)) * to.itemsize
    try:
        if need > MAX_BYTES:
            raise MemoryError
        if need >= allocator.least:
            keep_memory()
        return maker(shape, to.array_type)
    except (MemoryError, OverflowError):
        raise OutOfMemory(f"{name}: a tensor of shape {shape} and type {to.name} needs {need / 2**30:,.1f} GiB",
                          why="that much memory cannot be allocated",
                          fix="smaller sizes, or a smaller type: dtype=mutagrad.float16") from None
    except MutagradError:  # vmap's, of what draws random numbers
        raise
    except ValueError as error:
        raise ShapeError(f"{name}: no tensor has the shape {shape}",
                         why=str(error), fix=f"mutagrad.{name}(3, 4)") from None


# ------------------------------------------------------------------------------------------------------------ from data

def as_array(data: Any, to: DType | None, name: str = "tensor") -> Any:
    """Return a fresh array of `data`: numbers, nested sequences, arrays, tensors, or sequences of these."""
    if isinstance(data, Tensor):
        return silent().run(_values(data).astype, to.array_type if to else data._array.dtype, copy=True, order="C")
    if isinstance(data, (np.ndarray, np.generic)):
        if data.nbytes >= allocator.least:
            keep_memory()
        found = np.array(data, order="C")
        return _of_one_type(silent().run(found.astype, (to or of_array(found.dtype)).array_type, copy=False))
    if hasattr(data, "__dlpack__"):  # another library's tensor
        return as_array(borrow(data), to, name)
    try:
        if (found := _plain_numbers(data, to)) is not None:
            return found
        found = np.array(_unwrapped(data))
    except ValueError as error:
        raise BadData(f"{name}: nested sequences must have equal lengths",
                      why=str(error), fix="pad the rows to one length") from None
    except RecursionError:
        raise BadData(f"{name}: self-referential lists are incompatible with tensors",
                      fix=f"mutagrad.{name}([1.0, 2.0])") from None
    if (found.dtype.kind == "O" and to is not None and to.array_type.kind in "bf"
            and all(isinstance(v, (int, float)) for v in found.flat)):
        found = found.astype(bool if to.array_type.kind == "b" else np.float64)  # integers that no integer type holds
    if found.dtype.kind not in "biufcV" or found.dtype.names:
        raise BadData(f"{name}: invalid data type: cannot make a tensor of {type(data).__name__} with elements "
                      f"of type {found.dtype}",
                      why="elements must be numbers or booleans of at most 64 bits", fix=f"mutagrad.{name}([1.0, 2.0])")
    to = to or inferred(data)
    _check_range_of(found, to, name)
    return cast_array(found, to.array_type)


def _of_one_type(array: Array) -> Array:
    """An array with the type object that all have. Unpickled arrays have others, and types are compared by identity."""
    wanted = of_array(array.dtype).array_type
    return array if array.dtype is wanted else array.view(wanted)


def _values(tensor: Tensor) -> Array:
    """The array of a tensor that is copied as data; a warning says, as PyTorch's does, that its history is lost."""
    if tensor._storage.writer is not None and mode.grad:
        warnings.warn("tensor: a tensor that requires a gradient is copied as data, without its history, so no "
                      "gradient will reach it. x.clone() and mutagrad.stack([x, y]) keep it; x.detach() says that it "
                      "is meant", UserWarning, stacklevel=to_user())
        cut("tensor", tensor)
    return tensor._array


def _plain_numbers(data: Any, to: DType | None) -> Any:
    """The array of nested lists of floats alone, or of whole numbers alone, as most data is; else None."""
    kind = _only_type(data) if data.__class__ is list else data.__class__
    if kind is float and (wanted := (to or get_default_dtype()).array_type).char in "fd":
        return silent().run(np.array, data, wanted)
    if kind is int and (to is None or to is int64):
        try:
            return np.array(data, np.int64)
        except OverflowError:
            return None
    return None


def _only_type(data: Any) -> Any:
    """The type of all numbers in nested lists; None where there are several, or none."""
    kinds = set(map(type, data))
    if kinds == {list}:
        kinds = set(map(_only_type, data))
    return kinds.pop() if len(kinds) == 1 else None


def _unwrapped(data: Any) -> Any:
    """Nested sequences, with arrays for tensors; one of a single element is a number where no row is beside it.

    Lists are rows, and so are NumPy's arrays, of one element too, as they are for PyTorch.
    """
    if isinstance(data, Tensor):
        return _values(data)
    if not isinstance(data, SEQUENCES):
        return data
    items = [_unwrapped(v) for v in data]
    if any(isinstance(item, list) or isinstance(v, np.ndarray) and v.ndim for item, v in zip(items, data)):
        return items
    return [v.reshape(()) if isinstance(v, np.ndarray) and v.size == 1 else v for v in items]


def inferred(data: Any) -> DType:
    """Return the type that numbers, arrays, tensors and sequences of them promote to; numbers are of the defaults."""
    kinds = _kinds(data)
    return reduce(promote_types, kinds) if kinds else get_default_dtype()


def _kinds(data: Any) -> set[DType]:
    if isinstance(data, Tensor):
        return {of_array(data._array.dtype)}
    if isinstance(data, (np.ndarray, np.generic)):
        return {of_array(data.dtype)}
    if isinstance(data, (bool, int, float, complex)):
        return {scalar_dtype(data)}
    if not isinstance(data, SEQUENCES):
        raise BadData(f"tensor: cannot make a tensor of {type(data).__name__}",
                      why="elements must be numbers or booleans", fix="mutagrad.tensor([1.0, 2.0])")
    numbers = set(map(type, data)) & {bool, int, float, complex}  # a long list of numbers is looked at in one pass
    return {scalar_dtype(kind()) for kind in numbers}.union(*(_kinds(v) for v in data if type(v) not in numbers))


def _check_range_of(found: Array, to: DType, name: str) -> None:
    """Python numbers must fit their type; only arrays and tensors are cut to fit."""
    kind, wanted = found.dtype.kind, to.array_type
    if kind == "c" and wanted.kind not in "cb":
        raise BadData(f"{name}: complex numbers cannot be stored as {to.name}", fix="dtype=mutagrad.complex64")
    if wanted.kind in "iu" and kind != "b" and found.size:
        limits = np.iinfo(wanted)
        # PyTorch lets -1 stand for the largest of a type without a sign.
        least = limits.min if wanted.kind == "i" or kind not in "iu" else -int(limits.max)
        if not (least <= found.min() and found.max() <= limits.max):
            raise BadData(f"{name}: {found.min()} to {found.max()} cannot be stored as {to.name}",
                          why=f"it holds {limits.min} to {limits.max}", fix="dtype=mutagrad.int64")


@may_need_much
def tensor(data: Any, *, dtype: ElementType | None = None, device: Device | str | int | None = None,
           requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """Return a tensor of data, always copied.

    >>> import mutagrad as mg
    >>> mg.tensor([[1, 2], [3, 4]]) * 0.5
    tensor([[0.5000, 1.0000],
            [1.5000, 2.0000]])
    """
    array = as_array(data, as_dtype(dtype) if dtype is not None else None)
    return finish(array, requires_grad, device, pin_memory=pin_memory)


def as_tensor(data: Any, dtype: ElementType | None = None, device: Device | str | int | None = None) -> Any:
    """Return a tensor of data, where possible without a copy: tensors stay themselves, arrays share their memory.

    >>> import mutagrad as mg
    >>> mg.as_tensor([1, 2])
    tensor([1, 2])
    """
    if isinstance(data, Tensor):
        if dtype is not None and data._array.dtype is not as_dtype(dtype).array_type:
            data = cast(data, as_dtype(dtype).array_type)
        return on(data, device)
    if isinstance(data, np.ndarray):
        return as_tensor(from_numpy(data), dtype, mode.now.device if device is None else device)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: Array) -> Any:
    """Return a tensor over the memory of a NumPy array: writes on either side are seen on the other.

    >>> import mutagrad as mg
    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> x = mg.from_numpy(a)
    >>> a[0] = 1.
    >>> x
    tensor([1., 0.], dtype=mutagrad.float64)
    """
    if not isinstance(array, np.ndarray):
        raise BadArgument(f"from_numpy: expected a NumPy array, got {type(array).__name__}",
                          fix="mutagrad.tensor(data)")
    kind = array.dtype
    if not kind.isnative and of_array(kind):
        raise BadData("from_numpy: the array's byte order is not this machine's",
                      fix="array.astype(array.dtype.newbyteorder('='))")
    array = array if kind is of_array(kind).array_type else _of_one_type(array)
    flags = array.flags
    if not flags.writeable:
        array = array.copy()  # a tensor can be written, and must not reach read-only memory
    if flags.c_contiguous:
        shared = make(array)
    elif any(s % array.itemsize for s in array.strides):
        raise BadData(f"from_numpy: strides of {array.strides} bytes are no multiples "
                      f"of the {array.itemsize} bytes of an element",
                      why="its memory cannot be shared", fix="array.copy()")
    else:
        low = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if s < 0)
        high = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if s > 0)
        corner = array[tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in zip(array.shape, array.strides))]
        span = np.lib.stride_tricks.as_strided(corner, ((high - low) // array.itemsize + 1,), (array.itemsize,))
        shared = view(make(span), array.shape, array.strides, -low)
    export_for_good(shared)
    if array.nbytes >= allocator.least:
        keep_memory()
    return shared


# --------------------------------------------------------------------------------------------------------------- filled

def empty(*size: int | Sequence[int], dtype: ElementType | None = None, device: Device | str | int | None = None,
          requires_grad: bool = False, **settings: Any) -> Any:
    """Return a tensor whose values are whatever the memory held.

    >>> import mutagrad as mg
    >>> mg.empty(2, 3).shape
    mutagrad.Size([2, 3])
    """
    return _filled(np.empty, "empty", size, dtype, device, requires_grad, settings)


def _filled(maker: Callable[..., Array], name: str, size: tuple[Any, ...], dtype: ElementType | None, device: Any,
            requires_grad: bool, settings: dict[str, Any]) -> Any:
    if settings:
        to = wanted_type(dtype, settings)
        if settings.get("layout", strided) in SPARSE and settings.get("out") is None and name in ("zeros", "empty"):
            made = socket("sparse").empty_of(shape_of(size_of(size, settings), name), settings["layout"], to)
            return made.requires_grad_(requires_grad)
        array = allocate(maker, shape_of(size_of(size, settings), name), to, name)
        return finish(array, requires_grad, device, name, **settings)
    to = get_default_dtype() if dtype is None else as_dtype(dtype)
    return finish(allocate(maker, shape_of(size, name), to, name), requires_grad, device, name)


def size_of(arguments: tuple[Any, ...], settings: dict[str, Any]) -> tuple[Any, ...]:
    """Sizes by position, or as `size=`."""
    size = settings.pop("size", None)
    return arguments if size is None else (size,)


def zeros(*size: int | Sequence[int], dtype: ElementType | None = None, device: Device | str | None = None,
          requires_grad: bool = False, **settings: Any) -> Any:
    """Return zeros: `zeros(2, 3)` or `zeros((2, 3))`.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _filled(np.zeros, "zeros", size, dtype, device, requires_grad, settings)


def _fill(array: Array, value: Any) -> None:
    if array.size < LARGE or not is_plain(array):
        array.fill(value)
    elif not move(array, np.asarray(value, array.dtype)):
        vector = array.reshape(-1)
        in_turn(vector.size, 1, lambda part: vector[part].fill(value), True)


def _ones(shape: tuple[int, ...], dtype: Any) -> Any:
    array = np.empty(shape, dtype)
    _fill(array, 1)
    return array


def ones(*size: int | Sequence[int], dtype: ElementType | None = None, device: Device | str | None = None,
         requires_grad: bool = False, **settings: Any) -> Any:
    """Return ones: `ones(2, 3)` or `ones((2, 3))`.

    >>> import mutagrad as mg
    >>> mg.ones(2, 2)
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _filled(_ones, "ones", size, dtype, device, requires_grad, settings)


def full(size: int | Sequence[int], fill_value: Value, *, dtype: ElementType | None = None,
         device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return one value everywhere; the type is that of the value.

    >>> import mutagrad as mg
    >>> mg.full((2, 2), 5.)
    tensor([[5., 5.],
            [5., 5.]])
    """
    value = _number(fill_value, "full")
    to = wanted_type(dtype, settings) if dtype is not None or settings.get("out") is not None else scalar_dtype(value)
    array = allocate(np.empty, shape_of((size,), "full"), to, "full")
    plain = value.__class__ is float and to.array_type.char in "fd"
    _fill(array, constant(value, to.array_type) if plain else as_array(value, to, "full"))
    return finish(array, requires_grad, device, "full", **settings)


def type_like(x: Tensor, dtype: ElementType | None, name: str) -> DType:
    """The element type asked for, else that of x."""
    own = tensor_argument(x, name)._array.dtype
    return of_array(own) if dtype is None else as_dtype(dtype)


def _place(x: Tensor, device: Device | str | None) -> Any:
    """The device asked for, else that of x."""
    return x.device if device is None else device


def _made_like(maker: Callable[..., Any], x: Tensor, name: str, dtype: ElementType | None, device: Any,
               requires_grad: bool, settings: dict[str, Any]) -> Any:
    """Return what `maker` makes of a shape, laid out in memory as x is unless settings say how."""
    to, place = type_like(x, dtype, name), x.device if device is None else device
    if settings and (settings.get("memory_format", preserve_format) is not preserve_format or "out" in settings):
        return maker(x._array.shape, dtype=to, device=place, requires_grad=requires_grad, **settings)
    made = laid_out_alike(lambda x: maker(x._array.shape, dtype=to, device=place, **settings), x)
    return made.requires_grad_() if requires_grad else made


def empty_like(input: Tensor, *, dtype: ElementType | None = None, device: Device | str | None = None,
               requires_grad: bool = False, **settings: Any) -> Any:
    """Return whatever the memory held, in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> mg.empty_like(mg.zeros(2, dtype=mg.int64)).dtype
    mutagrad.int64
    """
    return _made_like(empty, input, "empty_like", dtype, device, requires_grad, settings)


def zeros_like(input: Tensor, *, dtype: ElementType | None = None, device: Device | str | None = None,
               requires_grad: bool = False, **settings: Any) -> Any:
    """Return zeros in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> mg.zeros_like(mg.tensor([3, 4]))
    tensor([0, 0])
    """
    return _made_like(zeros, input, "zeros_like", dtype, device, requires_grad, settings)


def ones_like(input: Tensor, *, dtype: ElementType | None = None, device: Device | str | None = None,
              requires_grad: bool = False, **settings: Any) -> Any:
    """Return ones in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> mg.ones_like(mg.tensor([3, 4]))
    tensor([1, 1])
    """
    return _made_like(ones, input, "ones_like", dtype, device, requires_grad, settings)


def full_like(input: Tensor, fill_value: Value, *, dtype: ElementType | None = None, device: Device | str | None = None,
              requires_grad: bool = False, **settings: Any) -> Any:
    """Return one value everywhere, in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> mg.full_like(mg.zeros(2), 5)
    tensor([5., 5.])
    """
    return _made_like(lambda shape, **settings: full(shape, fill_value, **settings), input, "full_like", dtype, device,
                      requires_grad, settings)


RECORDED.zeros_like = zeros_like
RECORDED.as_tensor = as_tensor


def new_tensor(x: Tensor, data: Any, *, dtype: ElementType | None = None, device: Device | str | None = None,
               requires_grad: bool = False, **settings: Any) -> Any:
    """Return a tensor of data, of the type of x.

    >>> import mutagrad as mg
    >>> mg.zeros(1, dtype=mg.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=mutagrad.float64)
    """
    array = as_array(data, type_like(x, dtype, "new_tensor"))
    return finish(array, requires_grad, _place(x, device), "new_tensor", **settings)


def new_zeros(x: Tensor, *size: int | Sequence[int], dtype: ElementType | None = None,
              device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return zeros, of the type of x.

    >>> import mutagrad as mg
    >>> mg.ones(1, dtype=mg.int64).new_zeros(2)
    tensor([0, 0])
    """
    to = type_like(x, dtype, "new_zeros")
    return zeros(*size, dtype=to, device=_place(x, device), requires_grad=requires_grad, **settings)


def new_ones(x: Tensor, *size: int | Sequence[int], dtype: ElementType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return ones, of the type of x.

    >>> import mutagrad as mg
    >>> mg.zeros(1, dtype=mg.int64).new_ones(2)
    tensor([1, 1])
    """
    to = type_like(x, dtype, "new_ones")
    return ones(*size, dtype=to, device=_place(x, device), requires_grad=requires_grad, **settings)


def new_empty(x: Tensor, *size: int | Sequence[int], dtype: ElementType | None = None,
              device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return whatever the memory held, of the type of x.

    >>> import mutagrad as mg
    >>> mg.zeros(1, dtype=mg.int64).new_empty((2, 3)).dtype
    mutagrad.int64
    """
    to = type_like(x, dtype, "new_empty")
    return empty(*size, dtype=to, device=_place(x, device), requires_grad=requires_grad, **settings)


def new_full(x: Tensor, size: int | Sequence[int], fill_value: Value, *, dtype: ElementType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return one value everywhere, of the type of x.

    >>> import mutagrad as mg
    >>> mg.zeros(1, dtype=mg.int64).new_full((2,), 5)
    tensor([5, 5])
    """
    to = type_like(x, dtype, "new_full")
    return full(size, fill_value, dtype=to, device=_place(x, device), requires_grad=requires_grad, **settings)


# -------------------------------------------------------------------------------------------------------------- counted

def _number(value: Any, name: str) -> Any:
    """A Python number, NumPy's, or that of a tensor of one element."""
    value = number(value)
    if not isinstance(value, (bool, int, float, complex)):
        raise BadArgument(f"{name}: expects a number, got {type(value).__name__}",
                          why=f"it was {value!r}", fix="float(value)")
    return value


@silenced
def _counted(count: int, wide: Any, step: Any, start: Any, dtype: Any) -> Any:
    """0, 1, 2 and so on, times `step` and from `start` on."""
    if count >= 2 * _MANY and dtype.char == "f" and not OTHER_KIND:
        return _in_single(count, step, start)
    found = np.arange(count, dtype=wide)
    if step != 1:
        found *= step
    if start != 0:
        found += start
    return found.astype(dtype, copy=False)


_MANY = 1 << 16  # numbers that are made at a time, so that what lies between two steps stays in the cache


def _in_single(count: int, step: float, start: float) -> Any:
    """The same in float32, counted in double: in runs of numbers that differ in where they begin."""
    out, run = np.empty(count, np.float32), np.arange(_MANY, dtype=np.float64)
    run *= step

    def work(part: slice) -> None:
        np.add(run[:part.stop - part.start], start + part.start * step, out=out[part], casting="unsafe")

    in_steps(count, _MANY, work)
    return out


@silenced
def _evenly(first: Any, last: Any, steps: int, dtype: Any) -> Any:
    """Numbers from first to last. Floats are PyTorch's to the bit: ends and step are of their type, and each is counted
    from the nearer end and rounded once."""
    exact = dtype.char in "fd" and steps > 1
    begin, end = (dtype.type(first), dtype.type(last)) if exact else (first, last)
    step = (end - begin) / dtype.type(steps - 1) if exact else 0
    if not (step and np.isfinite(step)):
        return cast_array(np.linspace(first, last, steps), dtype)
    wide = np.float64 if dtype.char == "f" or mode.now.kind is not None else np.longdouble
    begin, end, step, half = wide(begin), wide(end), wide(step), steps // 2
    rising, falling = _counted(half, wide, step, begin, dtype), _counted(steps - half, wide, -step, end, dtype)
    return np.concatenate((rising, falling[::-1]))


def arange(start: Value | None = None, end: Value | None = None, step: Value = 1, *, dtype: ElementType | None = None,
           device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return numbers from start (0 if left out) up to, not including, end.

    >>> import mutagrad as mg
    >>> mg.arange(3)
    tensor([0, 1, 2])
    >>> mg.arange(1, 2, 0.5)
    tensor([1.0000, 1.5000])
    """
    first: Any = 0 if end is None or start is None else start
    last: Any = start if end is None else end
    by: Any = step
    if dtype is None and not settings and _are_whole(first, last, by):
        array = allocate(lambda _, kind: np.arange(first, last, by, kind), (len(range(first, last, by)),), int64,
                         "arange")
        return finish(array, requires_grad, device, "arange")
    first, last, by = _number(first, "arange"), _number(last, "arange"), _number(by, "arange")
    _check_range(first, last, by)
    if dtype is None and settings.get("out") is None:
        dtype = get_default_dtype() if any(isinstance(v, float) for v in (first, last, by)) else int64
    to = wanted_type(dtype, settings)
    if to.name == "int64":  # where PyTorch drops the fractions first; for other integers it counts with them
        first, last, by = int(first), int(last), int(by)
        _check_range(first, last, by)
    count = math.ceil((last - first) / by)
    if to.category < FLOAT:
        first, by = int(first), int(by)
    wide = np.float64 if to.category >= FLOAT else np.int64
    array = allocate(lambda shape, kind: _counted(*shape, wide, by, first, kind), (count,), to, "arange")
    return in_order(array, requires_grad, device, "arange", **settings)


def _are_whole(first: Any, last: Any, step: Any) -> bool:
    """Whether these are whole numbers that make a range."""
    return (first.__class__ is int and last.__class__ is int and step.__class__ is int and bool(step)
            and -_FAR < first < _FAR and -_FAR < last < _FAR and (last - first) * step >= 0)


def in_order(array: Array, requires_grad: bool, device: Device | str | None, name: str, **settings: Any) -> Any:
    """Return numbers in a row as a tensor; an `out` of as many elements takes them in its own shape, row by row."""
    out = settings.get("out")
    if out is not None and out._array.size == array.size:
        array = array.reshape(out._array.shape)
    return finish(array, requires_grad, device, name, **settings)


def _check_range(first: Any, last: Any, step: Any) -> None:
    if not (step and math.isfinite(first) and math.isfinite(last)) or (last - first) * step < 0:
        raise BadValue(f"arange: from {first} to {last} in steps of {step}: "
                       "upper bound and lower bound inconsistent with step sign",
                       why="the step must be nonzero and point from start to end",
                       fix=f"mutagrad.arange({first}, {last})")


def linspace(start: Value, end: Value, steps: int, *, dtype: ElementType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return so many numbers from start to end, both included; differentiable with respect to both.

    >>> import mutagrad as mg
    >>> mg.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if _has_history(start) or _has_history(end):
        return _between(start, end, steps, wanted_type(dtype, settings), requires_grad, "linspace", settings.get("out"))
    first, last, to = _ends("linspace", start, end, steps, dtype, settings)
    array = allocate(lambda shape, kind: _evenly(first, last, shape[0], kind), (int(steps),), to, "linspace")
    return in_order(array, requires_grad, device, "linspace", **settings)


def _has_history(bound: Value) -> bool:
    return isinstance(bound, Tensor) and bound._storage.writer is not None and mode.grad


def _between(start: Value, end: Value, steps: int, to: DType, requires_grad: bool, name: str,
             out: Tensor | None) -> Any:
    """The same as a recorded operation, where an end of the range is a tensor that requires a gradient."""
    _check_bounds(name, start, end)
    if to.category < FLOAT:
        start, end = number(start), number(end)  # raises: whole numbers have no derivative
    weights = linspace(0, 1, steps, dtype=to)
    result = weights * end + (1 - weights) * start if steps != 1 else weights + start
    return write_out(name, result.requires_grad_() if requires_grad else result, out)


def _check_bounds(name: str, *bounds: Any) -> None:
    for bound in bounds:
        if isinstance(bound, Tensor) and bound._array.ndim:
            raise BadValue(f"{name}: a bound of shape {bound._array.shape} is no number",
                           fix=f"mutagrad.{name}(x[0], x[1], 5)")


def _ends(name: str, start: Value, end: Value, steps: int, dtype: ElementType | None,
          settings: dict[str, Any]) -> tuple[Any, Any, DType]:
    """Bounds of a range, whole numbers where its elements are, and the type of these."""
    if sizes((steps,), name)[0] < 0:
        raise BadValue(f"{name}: number of steps must be non-negative, got {steps}", fix=f"mutagrad.{name}(0, 1, 5)")
    _check_bounds(name, start, end)
    first, last = _number(start, name), _number(end, name)
    to = wanted_type(dtype, settings)
    if isinstance(first, complex) or isinstance(last, complex):
        if dtype is None and settings.get("out") is None:
            to = to.to_complex()
        if to.category < COMPLEX:
            raise DTypeError(f"{name}: from {first} to {last} are complex numbers, not {to.name}",
                             fix="dtype=mutagrad.complex64")
    if to.category >= FLOAT:
        return first, last, to
    ends = np.array([first, last], object)
    if not all(math.isfinite(v) for v in ends):
        raise BadData(f"{name}: from {first} to {last} cannot be stored as {to.name}", fix="dtype=mutagrad.float32")
    _check_range_of(ends, to, name)
    return int(first), int(last), to


def logspace(start: Value, end: Value, steps: int, base: float = 10.0, *, dtype: ElementType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return so many powers of `base`, with exponents from start to end; differentiable with respect to both.

    >>> import mutagrad as mg
    >>> mg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if _has_history(start) or _has_history(end):
        exponents = _between(start, end, steps, wanted_type(dtype, settings), False, "logspace", None)
        powers = RECORDED.pow(_number(base, "logspace"), exponents)
        return write_out("logspace", powers.requires_grad_() if requires_grad else powers, settings.get("out"))
    first, last, to = _ends("logspace", start, end, steps, dtype, settings)
    base = _number(base, "logspace")
    if isinstance(base, complex):
        raise BadArgument(f"logspace: the base must be a real number, got {base}", fix="base=10.0")
    array = allocate(lambda shape, kind: cast_array(silently(np.logspace, first, last, *shape, base=base), kind),
                     (int(steps),), to, "logspace")
    return in_order(array, requires_grad, device, "logspace", **settings)


def eye(n: int, m: int | None = None, *, dtype: ElementType | None = None, device: Device | str | None = None,
        requires_grad: bool = False, **settings: Any) -> Any:
    """Return ones on the diagonal, zeros elsewhere.

    >>> import mutagrad as mg
    >>> mg.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    to = wanted_type(dtype, settings)
    shape = shape_of((n, n if m is None else m), "eye")
    array = allocate(np.zeros, shape, to, "eye")
    array.reshape(-1)[:min(shape) * shape[1]:shape[1] + 1] = 1
    return finish(array, requires_grad, device, "eye", **settings)
