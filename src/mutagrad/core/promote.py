"""Operands of different types: what PyTorch computes them in, decided before NumPy sees them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import np
from ..arrays.bfloat16 import SHORT
from ..arrays.numpy import constant
from ..base.errors import BadArgument, DTypeError, MutagradError, OutOfMemory, ShapeError
from ..base.operands import Array, kind_name
from ..base.sockets import socket
from .dtypes import COMPLEX, FLOAT, dtype, get_default_dtype, of_array, result_dtype, scalar_dtype
from .factory import CODEGEN_GLOBALS
from .op import RECORDED, Op
from .storage import TensorBase, ndarray, new_storage
from .window import Shape


class _Nothing(TensorBase):
    """Stands where a Python number was given for a tensor, so that the generated code needs no branch for it."""

    __slots__ = ()


SCALAR_OPERAND = _Nothing()
SCALAR_OPERAND._storage = new_storage(np.zeros(0))
SCALAR_OPERAND._offset = None


def as_operand(value: Any, op_name: str) -> Any:
    """Return a tensor or Python number out of what can stand beside a tensor in an expression."""
    if isinstance(value, (TensorBase, bool, int, float, complex)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, ndarray):
        return CODEGEN_GLOBALS["Tensor"]._from_array(value)
    raise BadArgument(f"{op_name}: {kind_name(value)} is neither a tensor nor a number",
                      why=f"got {value!r}", fix=f"mutagrad.{op_name}(mutagrad.tensor(...), ...)")


# Which method of its second operand Python asks when an operator's first one has no answer.
_REFLECTED = {"add": "__radd__", "sub": "__rsub__", "mul": "__rmul__", "div": "__rtruediv__",
              "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "pow": "__rpow__", "matmul": "__rmatmul__",
              "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
              "bitwise_left_shift": "__rlshift__", "bitwise_right_shift": "__rrshift__",
              "lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__"}


def call_reflected(op: Op, operands: tuple[Any, ...], error: Exception) -> Any:
    """Return what an operand of a foreign class makes of the operation, or raise the error.

    It is asked by `__torch_function__`, or as Python asks it.
    """
    for value in operands:
        if not isinstance(value, TensorBase) and hasattr(type(value), "__torch_function__"):
            return socket("torch_function").late_dispatch(op.function, operands, error)
    kind, name = type(operands[-1]), _REFLECTED.get(op.name, "")
    if (len(operands) == 2 and isinstance(operands[0], TensorBase) and kind.__module__ != "builtins"
            and any(name in vars(base) for base in kind.__mro__)):
        answer = getattr(kind, name)(operands[1], operands[0])
        if answer is not NotImplemented:
            return answer
    raise error from None


def operand_dtype(operands: Sequence[TensorBase | complex]) -> dtype:
    """Return the type that PyTorch computes these operands in."""
    groups: tuple[list[dtype], list[dtype], list[dtype]] = ([], [], [])
    for v in operands:
        if isinstance(v, TensorBase):
            groups[0 if v._array.ndim else 1].append(of_array(v._array.dtype))
        else:
            groups[2].append(scalar_dtype(v))
    return result_dtype(*groups)


def _numpy_dtype(operands: Sequence[TensorBase | complex]) -> dtype:
    """Return the type of tensors and NumPy's arrays together: NumPy's, as in PyTorch, which has NumPy compute them."""
    kinds = [v._array.dtype for v in operands if isinstance(v, TensorBase)]
    if any(kind.kind not in "biufc" for kind in kinds):
        return operand_dtype(operands)
    return of_array(np.result_type(*kinds, *(v for v in operands if not isinstance(v, TensorBase))))


def promote(op: Op, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors (or SCALAR_OPERAND) and then arrays of one type, for the arguments of an elementwise operation."""
    operands = [as_operand(v, op.name) for v in arguments]
    free = 1 if op.promotes == "mask" else 0
    arrays_too = any(v.__class__ is ndarray for v in arguments)
    common = _numpy_dtype(operands[free:]) if arrays_too else operand_dtype(operands[free:])
    if op.promotes == "float" and common.category < FLOAT:
        common = of_array(np.dtype(np.float64)) if arrays_too else get_default_dtype()
    if op.promotes == "real" and common.category == COMPLEX:
        raise DTypeError(f"{op.name}: not defined for {common.name}", why="complex numbers have no order",
                         fix="x.abs() or x.real first")
    wide = common.array_type.char in SHORT and op.forward in EXACT
    tensors, arrays = [], []
    for k, v in enumerate(operands):
        if isinstance(v, TensorBase):
            if k >= free and v._array.dtype is not common.array_type:
                v = RECORDED.cast(v, common.array_type)
            tensors.append(v)
            arrays.append(v._array)
        else:
            tensors.append(SCALAR_OPERAND)
            number = constant(v, common.array_type if k >= free else np.dtype(bool))
            arrays.append(constant(v, _SINGLE) if wide and float(number) != v else number)
    return (*tensors, *arrays)


# Of a short tensor and a number these take the number as it is, as in PyTorch, and round the result: in float16 1e-8
# is 0 and 1e5 infinite.
EXACT = {np.multiply, np.true_divide}
_SINGLE = np.dtype(np.float32)


def dtype_error(op: Op, arrays: Sequence[Array], error: TypeError) -> Exception:
    """Return what NumPy's TypeError means: it has no such operation for these types. One of ours stands as it is."""
    if isinstance(error, MutagradError):
        return error
    names = " and ".join(of_array(a.dtype).name for a in arrays)
    instead = {"sub": "x ^ y, or x.int() - y.int()", "neg": "~x"}.get(op.name, "convert first: x.float(), x.long()")
    return DTypeError(f"{op.name}: not defined for {names}", fix=instead)


def shape_error(op: Op, arrays: Sequence[Array], error: ValueError) -> Exception:
    if isinstance(error, MutagradError):
        return error
    shapes = " and ".join(str(a.shape) for a in arrays)
    try:
        np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        return ShapeError(f"{op.name}: shapes {shapes} do not broadcast",
                          why=where_sizes_differ([a.shape for a in arrays]), fix=_broadcast_fix(arrays))
    # "... allowed size", "... possible size": NumPy raises this where not even the count of bytes is a number.
    if "maximum" in str(error).lower():
        return OutOfMemory.found_by(op.name, error)
    return ShapeError(f"{op.name}: shapes {shapes} do not fit", why=str(error))


def where_sizes_differ(shapes: Sequence[Shape]) -> str:
    """Say which sizes do not fit, in the words that programs written for PyTorch look for."""
    common = shapes[0]
    for shape in shapes[1:]:
        ndim = max(len(common), len(shape))
        for back in range(1, min(len(common), len(shape)) + 1):
            m, n = common[-back], shape[-back]
            if m != n and 1 not in (m, n):
                return (f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                        f"{ndim - back}")
        common = np.broadcast_shapes(common, shape)
    return "counted from the right, sizes must be equal or one of them 1"


def _broadcast_fix(arrays: Sequence[Array]) -> str:
    first, last = arrays[0].shape, arrays[-1].shape
    if first and last and first[0] == last[0] and len(first) != len(last):
        shorter = min(first, last, key=len)
        return f"add a dimension to the operand of shape {shorter}: y[:, None]"
    return "reshape or slice one operand so that the sizes agree, for example x[:n]"
