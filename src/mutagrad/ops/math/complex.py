"""Complex numbers: their parts, angles and views.

`real`, `imag`, `view_as_real` and `view_as_complex` are windows of another element type on the same storage. They need
no node: the gradient by z is dL/dRe + i dL/dIm, whose real parts are the gradient by the real parts.
"""
from __future__ import annotations

from builtins import complex as complex_number
from math import pi
from typing import Any

from ...arrays import np
from ...arrays.allocator import keep_memory
from ...arrays.kinds import is_plain
from ...arrays.parallel import LARGE, in_turn
from ...base.errors import DTypeError, NotSupported, ShapeError
from ...base.operands import Array
from ...core.codegen import elementwise, in_place, primitive
from ...core.dtypes import dtype as DType, of_array
from ...core.factory import detached, view, view_of
from ...core.op import RAW, RECORDED, Op
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ...core.window import dense_strides
from ..shape.shape import broadcast_tensors, tensor_argument
from .elementwise import conj_physical

FUNCTIONS = """
    angle complex conj_physical imag is_conj is_neg polar real resolve_conj resolve_neg view_as_complex
    view_as_real
"""
METHODS = "angle chalf conj_physical conj_physical_ is_conj is_neg resolve_conj resolve_neg"

_PARTS = {np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64")}
_WHOLES = {part: whole for whole, part in _PARTS.items()}

# ---------------------------------------------------------------------------------------------------------------- views


def _complex_argument(input: Tensor, name: str) -> Array:
    if tensor_argument(input, name)._array.dtype.kind != "c":
        raise DTypeError(f"{name}: expects a complex tensor, got {of_array(input._array.dtype).name}",
                         fix="mutagrad.complex(x, mutagrad.zeros_like(x))")
    return input._array


def real(input: Tensor) -> Any:
    """Return the real parts: a view that can be written through; real tensors are their own.

    >>> import mutagrad as mg
    >>> z = mg.tensor([1 + 2j])
    >>> z.real[0] = 5.
    >>> z
    tensor([5.+2.j])
    """
    if tensor_argument(input, "real")._array.dtype.kind != "c":
        return input
    return view_of(input, input._array.real, input._offset or 0)


def imag(input: Tensor) -> Any:
    """Return the imaginary parts: a view that can be written through.

    >>> import mutagrad as mg
    >>> mg.imag(mg.tensor([1 + 2j]))
    tensor([2.])
    """
    array = _complex_argument(input, "imag")
    return view_of(input, array.imag, (input._offset or 0) + (array.itemsize // 2 if array.size else 0))


def view_as_real(input: Tensor) -> Any:
    """Return a view with a new last dimension that holds real and imaginary part.

    >>> import mutagrad as mg
    >>> mg.view_as_real(mg.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    array = _complex_argument(input, "view_as_real")
    part = _PARTS[array.dtype]
    return view(input, (*array.shape, 2), (*array.strides, part.itemsize), input._offset or 0, part)


def view_as_complex(input: Tensor) -> Any:
    """Return a view in which the last dimension, of size two, is real and imaginary part of a number.

    >>> import mutagrad as mg
    >>> mg.view_as_complex(mg.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    array = tensor_argument(input, "view_as_complex")._array
    if array.dtype not in _WHOLES:
        raise DTypeError(f"view_as_complex: expects a float32 or float64 tensor, got {of_array(array.dtype).name}",
                         fix="mutagrad.view_as_complex(x.float())")
    if not array.ndim or array.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last dimension must have size 2, but the shape is {array.shape}",
                         fix="mutagrad.complex(x, y)")
    item = array.itemsize
    offset = input._offset or 0
    if array.strides[-1] != item or offset % (2 * item) or any(s % (2 * item) for s in array.strides[:-1]):
        raise ShapeError("view_as_complex: the pairs do not lie side by side, "
                         f"with strides {tuple(s // item for s in array.strides)} "
                         f"and storage offset {offset // item}",
                         why="the last stride must be 1, and the others and the offset even",
                         fix="mutagrad.view_as_complex(x.contiguous().clone())")
    return view(input, array.shape[:-1], array.strides[:-1], offset, _WHOLES[array.dtype])


# ---------------------------------------------------------------------------------------------------------- making them

# For a complex result a rule is given the conjugate of the adjoint, which takes a pass over it.
complex_values = primitive("complex", lambda a, b: _joined(a, b), inputs=("x", "y"),
                           x=lambda xp, g: xp.real_part(g), y=lambda xp, g: -xp.imaginary_part(g))
complex_values.op.conjugate = Op("complex", complex_values.op.forward, ("x", "y"), (), complex_values.op.rules)
complex_values.op.conjugate.reverse = lambda xp, g, s, i: (
    None if i[0] is None else xp.real_part(g), None if i[1] is None else xp.imaginary_part(g))
polar_values = primitive("polar", lambda a, b: _joined(a * np.cos(b), a * np.sin(b)), inputs=("x", "angle"),
                         x=lambda xp, g, angle: xp.real_part(g * xp.complex(xp.cos(angle), xp.sin(angle))),
                         angle=lambda xp, g, out: -xp.imaginary_part(g * out))
RAW.real_part, RECORDED.real_part = lambda a: a.real, real
RAW.imaginary_part, RECORDED.imaginary_part = lambda a: a.imag, imag


def _joined(a: Array, b: Array) -> Any:
    out = np.empty(a.shape, _WHOLES[a.dtype])
    if out.size < LARGE or not is_plain(out, a, b) or not (a.flags.c_contiguous and b.flags.c_contiguous):
        out.real, out.imag = a, b
        return out
    keep_memory()
    vector, parts = out.reshape(-1), (a.reshape(-1), b.reshape(-1))

    def work(part: slice) -> None:
        vector[part].real, vector[part].imag = (p[part] for p in parts)

    in_turn(out.size, 1, work, True)
    return out


def _pair(name: str, x: Tensor, y: Tensor) -> tuple[Any, ...]:
    """Two float tensors of one type, expanded to one shape."""
    a, b = tensor_argument(x, name)._array, tensor_argument(y, name)._array
    if a.dtype not in _WHOLES or b.dtype not in _WHOLES or a.dtype != b.dtype:
        raise DTypeError(f"{name}: expects two float32 or two float64 tensors, "
                         f"got {of_array(a.dtype).name} and {of_array(b.dtype).name}",
                         fix=f"mutagrad.{name}(x.float(), y.float())")
    return broadcast_tensors(x, y)


def _out(result: Tensor, out: Tensor | None) -> Any:
    if out is None:
        return result
    if out._array.dtype != result._array.dtype:
        raise DTypeError(f"out: a result of {of_array(result._array.dtype).name} is "
                         f"not written into {of_array(out._array.dtype).name}",
                         fix="out=mutagrad.empty_like(...) of the result")
    return write_out("out", result, out)


def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Any:
    """Return complex numbers of these real and imaginary parts.

    >>> import mutagrad as mg
    >>> mg.complex(mg.tensor([1.]), mg.tensor([2.]))
    tensor([1.+2.j])
    """
    return _out(complex_values(*_pair("complex", real, imag)), out)


def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Any:
    """Return complex numbers of this size and angle.

    >>> import mutagrad as mg
    >>> mg.polar(mg.tensor([2.]), mg.tensor([0.]))
    tensor([2.+0.j])
    """
    return _out(polar_values(*_pair("polar", abs, angle)), out)


# ------------------------------------------------------------------------------------------------ angles and conjugates

angle = elementwise("angle", lambda a: _angle(a), promotes="float", x=lambda xp, g, x: _angle_rule(xp, g, x))


def _angle(a: Array) -> Any:
    if a.dtype.kind == "c":
        return np.angle(a)
    return np.where(a == a, np.where(a < 0, a.dtype.type(pi), a.dtype.type(0)), a)


def _angle_rule(xp: Any, g: Any, x: Any) -> Any:
    """A complex number turns when it moves at right angles to itself; a real one does not."""
    if not xp.is_complex(x):
        return xp.zeros_like(g)
    size = xp.abs(x)
    return xp.where(size == 0, 0.0, g / xp.where(size == 0, 1.0, size * size)) * (x * complex_number(0, 1))


conj_physical_ = in_place(conj_physical)


def resolve_conj(input: Tensor) -> Any:
    """Itself: conjugates are computed when they are asked for, never only marked.

    >>> import mutagrad as mg
    >>> mg.resolve_conj(mg.tensor([1 + 2j]).conj()).is_conj()
    False
    """
    return tensor_argument(input, "resolve_conj")


def resolve_neg(input: Tensor) -> Any:
    """Itself: negatives are computed when they are asked for, never only marked.

    >>> import mutagrad as mg
    >>> mg.resolve_neg(mg.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return tensor_argument(input, "resolve_neg")


def is_conj(input: Tensor) -> bool:
    """Return whether it is only marked as a conjugate: never.

    >>> import mutagrad as mg
    >>> mg.is_conj(mg.tensor([1j]).conj())
    False
    """
    tensor_argument(input, "is_conj")
    return False


def is_neg(input: Tensor) -> bool:
    """Return whether it is only marked as a negative: never.

    >>> import mutagrad as mg
    >>> mg.is_neg(mg.ones(2))
    False
    """
    tensor_argument(input, "is_neg")
    return False


def chalf(x: Tensor, *, memory_format: Any = None) -> Any:
    """Raise: there are no complex numbers of half precision."""
    raise NotSupported("chalf: there are no complex numbers of half precision", why="NumPy has none", fix="x.cfloat()")


# --------------------------------------------------------------------------------------- the same bytes as another type

def view_as_dtype(x: Tensor, dtype: DType) -> Any:
    """`Tensor.view(dtype)`: the same bytes as elements of another type; the last dimension is scaled if sizes differ.

    Between floats and complex numbers of one precision it is differentiable. Any other reading has no derivative, and
    is a tensor with a history of its own, as after `detach()`.
    """
    array, to = x._array, dtype.array_type
    differentiable = _PARTS.get(array.dtype) == to or _WHOLES.get(array.dtype) == to
    if x._storage.writer is not None and not differentiable:
        raise NotSupported(f"view: {of_array(array.dtype).name} read as {dtype.name} has no derivative, "
                           "and this tensor requires a gradient",
                           fix="x.detach().view(dtype) for the bytes, x.to(dtype) for the values")
    shape, strides = array.shape, array.strides
    if to.itemsize != array.itemsize:
        shape, strides = _scaled(x, dtype)
    return view(x if differentiable else detached(x), shape, strides, x._offset or 0, to)


def _scaled(x: Tensor, dtype: DType) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides for elements of another size."""
    array, old, new = x._array, x._array.itemsize, dtype.itemsize
    strides = array.strides if array.size else dense_strides(array.shape, old)  # those of no elements mean nothing
    reading = f"view: {of_array(array.dtype).name} of shape {array.shape} cannot be read as {dtype.name}"
    if not array.ndim:
        raise ShapeError(reading, why="sizes of elements differ, and a 0-d tensor has no last dimension to scale",
                         fix="x.reshape(1).view(dtype)")
    if strides[-1] != old and array.shape[-1] != 1:
        raise ShapeError(reading, why="elements of the last dimension do not lie side by side",
                         fix="x.contiguous().view(dtype)")
    if array.shape[-1] * old % new or (x._offset or 0) % new or any(s % new for s in strides[:-1]):
        raise ShapeError(reading,
                         why=f"the last dimension, the offset and the other strides must be multiples of {new} bytes",
                         fix="x.contiguous().clone()")
    return (*array.shape[:-1], array.shape[-1] * old // new), (*strides[:-1], new)
