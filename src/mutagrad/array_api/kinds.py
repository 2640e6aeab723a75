"""Element types by the standard's rules: what operands are computed in, what can be converted, and limits.

The standard has no 0-d exception: a 0-d tensor promotes as any other does, and only Python's numbers give way.
PyTorch's own rule, which the operators of tensors follow, lets a 0-d tensor give way, too.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import np
from ..base.device import check_device, device
from ..base.errors import BadArgument, BadValue, DTypeError
from ..core.dtypes import (
    FLOAT,
    INTEGER,
    as_dtype,
    bool_,
    complex64,
    complex128,
    dtype,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    of_array,
    result_dtype,
    scalar_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..core.promote import as_operand
from ..core.storage import TensorBase
from ..ops.math.elementwise import cast
from ..ops.shape.shape import broadcast_tensors, clone, expand, tensor_argument
from ..tensors.tensor import Tensor

KINDS: dict[str, tuple[dtype, ...]] = {
    "bool": (bool_,), "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "real floating": (float32, float64), "complex floating": (complex64, complex128)}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


def type_of(value: Any) -> dtype:
    """Return the element type that a tensor has, or that is given itself."""
    return value if isinstance(value, dtype) else of_array(tensor_argument(value, "dtype")._array.dtype)


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """Return the type in which the standard computes these tensors, types and numbers together.

    >>> import mutagrad as mg
    >>> xp = mg.ones(1).__array_namespace__()
    >>> xp.result_type(mg.ones(3, dtype=mg.int8), mg.tensor(1, dtype=mg.uint8))
    mutagrad.int16
    """
    operands = [v if isinstance(v, dtype) else as_operand(v, "result_type") for v in arrays_and_dtypes]
    kinds = [type_of(v) for v in operands if isinstance(v, (dtype, TensorBase))]
    if not kinds:
        raise BadArgument("result_type: at least one argument must be a tensor or an element type",
                          fix="result_type(x, 1.0)")
    found = result_dtype(kinds, [], [scalar_dtype(v) for v in operands if not isinstance(v, (dtype, TensorBase))])
    if found.category == INTEGER and uint64 in kinds and any(kind.is_signed for kind in kinds):
        raise DTypeError(f"result_type: no integer type holds all of {' and '.join(kind.name for kind in kinds)}",
                         fix="astype(x, int64)")
    return found


def common(name: str, *operands: Any) -> list[Any]:
    """Return the operands, with tensors in the type in which the standard computes them; numbers stay as they are."""
    given = [as_operand(v, name) for v in operands]
    to = result_type(*given)
    return [as_type(v, to) if isinstance(v, TensorBase) else v for v in given]


def as_type(x: TensorBase, to: dtype) -> Any:
    """Return the tensor in this type: itself where it has it."""
    return x if x._array.dtype is to.array_type else cast(x, to.array_type)


def as_floating(x: Tensor, name: str) -> Tensor:
    """Return the tensor with integers and booleans as floats."""
    return as_type(x, get_default_dtype()) if of_array(tensor_argument(x, name)._array.dtype).category < FLOAT else x


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: device | str | None = None) -> Tensor:
    """Return a copy with elements of another type; with copy=False the tensor itself where it has that type.

    >>> import mutagrad as mg
    >>> mg.array_api.astype(mg.tensor([1, 2]), mg.float64)
    tensor([1., 2.], dtype=mutagrad.float64)
    """
    check_device(device)
    x, to = tensor_argument(x, "astype"), as_dtype(dtype).array_type
    if x._array.dtype.kind == "c" and to.kind not in "cb":
        raise DTypeError(f"astype: complex numbers cannot become {to}", why="their imaginary parts would be lost",
                         fix="real(x)")
    return cast(x, to) if x._array.dtype != to else clone(x) if copy else x


def can_cast(from_: Tensor | dtype, to: dtype, /) -> bool:
    """Return whether a type can become another by promotion: without loss, and of the same kind of number.

    >>> import mutagrad as mg
    >>> mg.array_api.can_cast(mg.float32, mg.float64)
    True
    """
    source = type_of(from_)
    if source.category != to.category and not (source.category == FLOAT and to.is_complex):
        return False
    return bool(np.can_cast(source.array_type, to.array_type, "safe"))


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """Return whether a type is of a kind ("real floating", "integral", ...), is a type, or is any of several.

    >>> import mutagrad as mg
    >>> mg.array_api.isdtype(mg.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise BadValue(f"isdtype: {kind!r} is no kind of type", why="known are " + ", ".join(KINDS),
                           fix='isdtype(x.dtype, "real floating")')
        return dtype in KINDS[kind]
    return dtype is kind


class FloatLimits(NamedTuple):
    """What `finfo` tells."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IntegerLimits(NamedTuple):
    """What `iinfo` tells."""

    bits: int
    max: int
    min: int
    dtype: dtype


def finfo(type: Tensor | dtype, /) -> FloatLimits:
    """Return the limits of a floating point type, or of the parts of a complex one.

    >>> import mutagrad as mg
    >>> mg.array_api.finfo(mg.float32).eps
    1.1920928955078125e-07
    """
    kind = type_of(type).to_real()
    if not kind.is_floating_point:
        raise BadArgument(f"finfo: {kind} is not a floating point type", fix="iinfo(dtype)")
    limits = np.finfo(kind.array_type)
    return FloatLimits(limits.bits, float(limits.eps), float(limits.max), float(limits.min),
                       float(limits.smallest_normal), kind)


def iinfo(type: Tensor | dtype, /) -> IntegerLimits:
    """Return the limits of an integer type.

    >>> import mutagrad as mg
    >>> mg.array_api.iinfo(mg.int8).max
    127
    """
    kind = type_of(type)
    if kind.category != INTEGER:
        raise BadArgument(f"iinfo: {kind} is not an integer type", fix="finfo(dtype)")
    limits = np.iinfo(kind.array_type)
    return IntegerLimits(limits.bits, int(limits.max), int(limits.min), kind)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return views of all tensors with the shape that they have together.

    >>> import mutagrad as mg
    >>> [x.shape for x in mg.array_api.broadcast_arrays(mg.ones(2, 1), mg.ones(3))]
    [mutagrad.Size([2, 3]), mutagrad.Size([2, 3])]
    """
    return list(broadcast_tensors(*arrays)) if arrays else []


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes have together.

    >>> import mutagrad as mg
    >>> mg.array_api.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        raise BadValue(f"broadcast_shapes: {' and '.join(map(str, shapes))} do not broadcast",
                       why="counted from the right, sizes must be equal or one of them 1") from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Return a view of this shape, along which elements repeat.

    >>> import mutagrad as mg
    >>> mg.array_api.broadcast_to(mg.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(tensor_argument(x, "broadcast_to"), *shape)
