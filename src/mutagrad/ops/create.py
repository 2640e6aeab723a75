"""New tensors: from data, filled, counted, random."""
from __future__ import annotations

import math
from functools import reduce
from typing import Any

from ..backends import np
from ..construct import make, view
from ..device import check_device
from ..dtypes import FLOAT, as_dtype, get_default_dtype, of_array, promote_types, scalar_dtype
from ..dtypes import dtype as DType
from ..errors import BadArgument, BadData, BadValue, DTypeError, ShapeError
from ..op import RECORDED
from ..random import source
from ..storage import TensorBase, export_for_good
from .elementwise import cast, cast_array
from .shape import sizes

MAX_BYTES = 1 << 46


def finish(array: Any, requires_grad: bool, device: Any = None) -> Any:
    check_device(device)
    return make(array).requires_grad_(requires_grad)


def _shape(arguments: tuple[Any, ...], name: str) -> tuple[int, ...]:
    shape = sizes(arguments)
    if min(shape, default=0) < 0:
        raise ShapeError(f"{name}: negative size in {shape}", fix=f"mutagrad.{name}(3, 4)")
    return shape


def _allocate(maker: Any, shape: tuple[int, ...], to: DType, name: str) -> Any:
    """Huge shapes get an error that says how much they would need."""
    need = math.prod(shape) * to.itemsize
    try:
        if need > MAX_BYTES:
            raise MemoryError
        return maker(shape, to.array_type)
    except (MemoryError, ValueError, OverflowError):
        raise ShapeError(f"{name}: a tensor of shape {shape} and type {to.name} needs {need / 2**30:,.1f} GiB",
                         why="that much memory cannot be allocated", fix="smaller sizes, or a smaller type: dtype=mutagrad.float16") from None


# -------------------------------------------------------------------------------------------------------------- from data

def as_array(data: Any, to: DType | None, name: str = "tensor") -> Any:
    """A fresh array of `data`: numbers, nested sequences, arrays, tensors, or sequences of these."""
    if isinstance(data, TensorBase):
        return data._array.astype(to.array_type if to else data._array.dtype, copy=True, order="C")
    if isinstance(data, (np.ndarray, np.generic)):
        found = np.array(data, order="C")
        return found.astype((to or of_array(found.dtype)).array_type, copy=False)
    try:
        found = np.array(_unwrapped(data))
    except ValueError as error:
        raise BadData(f"{name}: nested sequences must have equal lengths", why=str(error), fix="pad the rows to one length") from None
    if found.dtype.kind not in "biufc":
        raise BadData(f"{name}: cannot make a tensor of {type(data).__name__} with elements of type {found.dtype}",
                      why="elements must be numbers or booleans of at most 64 bits", fix=f"mutagrad.{name}([1.0, 2.0])")
    to = to or inferred(data)
    _check_range_of(found, to, name)
    return cast_array(found, to.array_type)


def _unwrapped(data: Any) -> Any:
    if isinstance(data, TensorBase):
        return data._array
    return [_unwrapped(v) for v in data] if isinstance(data, (list, tuple, range)) else data


def inferred(data: Any) -> DType:
    """The type that numbers, arrays, tensors and sequences of them promote to; Python's numbers count as default types."""
    kinds = _kinds(data)
    return reduce(promote_types, kinds) if kinds else get_default_dtype()


def _kinds(data: Any) -> set[DType]:
    if isinstance(data, TensorBase):
        return {of_array(data._array.dtype)}
    if isinstance(data, (np.ndarray, np.generic)):
        return {of_array(data.dtype)}
    if isinstance(data, (bool, int, float, complex)):
        return {scalar_dtype(data)}
    if not isinstance(data, (list, tuple, range)):
        raise BadData(f"tensor: cannot make a tensor of {type(data).__name__}", why="elements must be numbers or booleans", fix="mutagrad.tensor([1.0, 2.0])")
    numbers = set(map(type, data)) & {bool, int, float, complex}  # a long list of numbers is looked at in one pass
    return {scalar_dtype(kind()) for kind in numbers}.union(*(_kinds(v) for v in data if type(v) not in numbers))


def _check_range_of(found: Any, to: DType, name: str) -> None:
    """Python numbers must fit their type; only arrays and tensors are cut to fit."""
    kind, wanted = found.dtype.kind, to.array_type
    if kind == "c" and wanted.kind not in "cb":
        raise BadData(f"{name}: complex numbers cannot be stored as {to.name}", fix="dtype=mutagrad.complex64")
    if wanted.kind in "iu" and kind != "b" and found.size and not (np.iinfo(wanted).min <= found.min() and found.max() <= np.iinfo(wanted).max):
        raise BadData(f"{name}: {found.min()} to {found.max()} cannot be stored as {to.name}", why=f"it holds {np.iinfo(wanted).min} to {np.iinfo(wanted).max}",
                      fix="dtype=mutagrad.int64")


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """A tensor of data, always copied.

    >>> import mutagrad as mg
    >>> mg.tensor([[1, 2], [3, 4]]) * 0.5
    tensor([[0.5000, 1.0000],
            [1.5000, 2.0000]])
    """
    return finish(as_array(data, as_dtype(dtype) if dtype is not None else None), requires_grad, device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of data, without copying where that can be: tensors stay themselves, arrays share their memory."""
    check_device(device)
    if isinstance(data, TensorBase):
        return data if dtype is None or data._array.dtype is as_dtype(dtype).array_type else cast(data, as_dtype(dtype).array_type)
    if isinstance(data, np.ndarray):
        shared = from_numpy(data)
        return shared if dtype is None else as_tensor(shared, dtype)
    return tensor(data, dtype=dtype)


def from_numpy(array: Any) -> Any:
    """A tensor over the memory of a NumPy array: writes on either side are seen on the other."""
    if not isinstance(array, np.ndarray):
        raise BadArgument(f"from_numpy: expected a NumPy array, got {type(array).__name__}", fix="mutagrad.tensor(data)")
    of_array(array.dtype)
    if not array.dtype.isnative:
        raise BadArgument("from_numpy: the array's byte order is not this machine's", fix="array.astype(array.dtype.newbyteorder('='))")
    if not array.flags.writeable:
        array = array.copy()  # a tensor can be written, and must not reach read-only memory
    if array.flags.c_contiguous:
        shared = make(array)
    elif any(s % array.itemsize for s in array.strides):
        return make(array.copy())
    else:
        low = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if s < 0)
        high = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if s > 0)
        corner = array[tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in zip(array.shape, array.strides))]
        span = np.lib.stride_tricks.as_strided(corner, ((high - low) // array.itemsize + 1,), (array.itemsize,))
        shared = view(make(span), array.shape, array.strides, -low)
    export_for_good(shared)
    return shared


# ----------------------------------------------------------------------------------------------------------------- filled

def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    """A tensor whose values are whatever the memory held."""
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return finish(_allocate(np.empty, _shape(_size(size, ignored), "empty"), to, "empty"), requires_grad, device)


def _size(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """`size=` by keyword, and the layout settings that have one meaning here."""
    size = keywords.pop("size", None)
    for name in keywords:
        if name not in ("layout", "memory_format", "pin_memory", "out"):
            raise BadArgument(f"unexpected argument {name!r}")
    return arguments if size is None else (tuple(size),)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    """Zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return finish(_allocate(np.zeros, _shape(_size(size, ignored), "zeros"), to, "zeros"), requires_grad, device)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    """Ones: `ones(2, 3)` or `ones((2, 3))`."""
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return finish(_allocate(np.ones, _shape(_size(size, ignored), "ones"), to, "ones"), requires_grad, device)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """One value everywhere; the type is that of the value."""
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    to = as_dtype(dtype) if dtype is not None else inferred(value)
    shape = _shape((size,), "full")
    array = _allocate(np.empty, shape, to, "full")
    array.fill(value)
    return finish(array, requires_grad, device)


def _like(x: Any, dtype: Any) -> DType:
    if not isinstance(x, TensorBase):
        raise BadArgument(f"expected a tensor, got {type(x).__name__}", fix="mutagrad.zeros_like(mutagrad.tensor(data))")
    return as_dtype(dtype) if dtype is not None else of_array(x._array.dtype)


def empty_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Any:
    return empty(input._array.shape, dtype=_like(input, dtype), device=device, requires_grad=requires_grad)


def zeros_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Any:
    to = _like(input, dtype)
    return zeros(input._array.shape, dtype=to, device=device, requires_grad=requires_grad)


def ones_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Any:
    to = _like(input, dtype)
    return ones(input._array.shape, dtype=to, device=device, requires_grad=requires_grad)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    to = _like(input, dtype)
    return full(input._array.shape, fill_value, dtype=to, device=device, requires_grad=requires_grad)


RECORDED.zeros_like = zeros_like
RECORDED.as_tensor = as_tensor


def new_tensor(x: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    return tensor(data, dtype=_like(x, dtype), device=device, requires_grad=requires_grad)


def new_zeros(x: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    return zeros(*size, dtype=_like(x, dtype), device=device, requires_grad=requires_grad, **ignored)


def new_ones(x: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    return ones(*size, dtype=_like(x, dtype), device=device, requires_grad=requires_grad, **ignored)


def new_empty(x: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    return empty(*size, dtype=_like(x, dtype), device=device, requires_grad=requires_grad, **ignored)


def new_full(x: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    return full(size, fill_value, dtype=_like(x, dtype), device=device, requires_grad=requires_grad)


# ---------------------------------------------------------------------------------------------------------------- counted

def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Numbers from start (0 if left out) up to, not including, end."""
    first, last = (0, start) if end is None else (start, end)
    first, last, step = _number(first), _number(last), _number(step)
    _check_range(first, last, step)
    if dtype is None:
        dtype = get_default_dtype() if any(isinstance(v, float) for v in (first, last, step)) else as_dtype("int64")
    to = as_dtype(dtype)
    if to.name == "int64":  # where PyTorch drops the fractions first; for other integers it counts with them
        first, last, step = int(first), int(last), int(step)
        _check_range(first, last, step)
    count = math.ceil((last - first) / step)
    if to.category < FLOAT:
        first, step = int(first), int(step)
    wide = np.arange(count, dtype=np.float64 if to.category >= FLOAT else np.int64)
    return finish((first + wide * step).astype(to.array_type), requires_grad, device)


def _check_range(first: Any, last: Any, step: Any) -> None:
    if not (step and math.isfinite(first) and math.isfinite(last)) or (last - first) * step < 0:
        raise BadValue(f"arange: from {first} to {last} in steps of {step} leads nowhere", why="the step must be nonzero and point from start to end",
                       fix=f"mutagrad.arange({first}, {last})")


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """So many numbers from start to end, both included."""
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    first, last = _ends("linspace", start, end, steps, to)
    return finish(np.linspace(first, last, int(steps)).astype(to.array_type), requires_grad, device)


def _ends(name: str, start: Any, end: Any, steps: int, to: DType) -> tuple[Any, Any]:
    """Bounds of a range, whole numbers where its elements are."""
    if steps < 0:
        raise BadValue(f"{name}: the number of steps must not be negative, got {steps}", fix=f"mutagrad.{name}(0, 1, 5)")
    first, last = _number(start), _number(end)
    return (first, last) if to.category >= FLOAT else (int(first), int(last))


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """So many powers of `base`, with exponents from start to end."""
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    first, last = _ends("logspace", start, end, steps, to)
    return finish(np.logspace(first, last, int(steps), base=base).astype(to.array_type), requires_grad, device)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Ones on the diagonal, zeros elsewhere."""
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return finish(np.eye(*_shape((n, n if m is None else m), "eye"), dtype=to.array_type), requires_grad, device)


# ----------------------------------------------------------------------------------------------------------------- random

def _float_type(dtype: Any, name: str) -> DType:
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    if to.category < FLOAT:
        raise DTypeError(f"{name}: needs a floating point type, not {to.name}", fix="mutagrad.randint(low, high, size)")
    return to


def _draw(method: str, generator: Any, shape: tuple[int, ...], to: DType) -> Any:
    draw = getattr(source(generator), method)
    if to.is_complex:
        parts = draw((2, *shape)) / (math.sqrt(2) if method == "standard_normal" else 1)
        return (parts[0] + 1j * parts[1]).astype(to.array_type)
    if to.name in ("float32", "float64"):
        return np.asarray(draw(shape, dtype=to.array_type))
    return np.asarray(draw(shape)).astype(to.array_type)


def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    """Uniform in [0, 1)."""
    return finish(_draw("random", generator, _shape(_size(size, ignored), "rand"), _float_type(dtype, "rand")), requires_grad, device)


def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **ignored: Any) -> Any:
    """Normal with mean 0 and variance 1."""
    array = _draw("standard_normal", generator, _shape(_size(size, ignored), "randn"), _float_type(dtype, "randn"))
    return finish(array, requires_grad, device)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
            requires_grad: bool = False) -> Any:
    """Integers from low (0 if left out) up to, not including, high: `randint(10, (2, 3))`."""
    if size is None and isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None or not low < high:
        raise BadValue(f"randint: needs low < high and a size, got low={low}, high={high}, size={size}", fix="mutagrad.randint(0, 10, (2, 3))")
    to = as_dtype(dtype) if dtype is not None else as_dtype("int64")
    return finish(source(generator).integers(low, high, _shape((size,), "randint")).astype(to.array_type), requires_grad, device)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The numbers from 0 to n - 1 in random order."""
    to = as_dtype(dtype) if dtype is not None else as_dtype("int64")
    return finish(source(generator).permutation(*_shape((n,), "randperm")).astype(to.array_type), requires_grad, device)


def rand_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Any = None) -> Any:
    return rand(input._array.shape, dtype=_like(input, dtype), device=device, requires_grad=requires_grad, generator=generator)


def randn_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Any = None) -> Any:
    return randn(input._array.shape, dtype=_like(input, dtype), device=device, requires_grad=requires_grad, generator=generator)


def randint_like(input: Any, low: int, high: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input._array.shape, dtype=_like(input, dtype), device=device, requires_grad=requires_grad)


def uniform_(x: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Any:
    """Overwrites with numbers uniform between two bounds."""
    return x.copy_(make((source(generator).random(x._array.shape) * (to - from_) + from_).astype(x._array.dtype)))


def normal_(x: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Overwrites with normal numbers."""
    if std < 0:
        raise BadValue(f"normal_: the standard deviation must not be negative, got {std}", fix=f"x.normal_({mean}, {-std})")
    return x.copy_(make((source(generator).standard_normal(x._array.shape) * std + mean).astype(x._array.dtype)))
