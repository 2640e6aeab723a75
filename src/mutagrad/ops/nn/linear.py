"""Affine maps of rows, and one-hot vectors."""
from __future__ import annotations

import math
from typing import Any

from ...arrays import np, parallel as large
from ...arrays.kinds import extremes, is_spread, unknown
from ...arrays.products import multiply
from ...base.errors import BadValue, DTypeError, ShapeError, may_need_much
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.number import whole_number
from ...core.op import RAW
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..linalg.products import einsum, matmul
from ..shape.shape import tensor_argument

FUNCTIONS = "bilinear"

__all__ = ["bilinear", "linear", "one_hot"]


# ------------------------------------------------------------------------------------------------------------- products

def _rows(xp: Any, x: Any) -> Any:
    """x as a matrix whose rows are its last dimension: one product of matrices instead of many.

    Over a mesh it stays as it is: dimensions that become one cannot all be spread.
    """
    if len(x.shape) == 2 or xp is RAW and is_spread(x) and len(x.shape) > 2:
        return x
    return xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _product(a: Array, w: Array) -> Any:
    return multiply(_rows(RAW, a), w.T).reshape(*a.shape[:-1], w.shape[0])


def _product_and_bias(a: Array, w: Array, b: Array) -> Any:
    found = _product(a, w)
    if found.size < large.SHARED or not large.apply(np.add, (found, b), (), found):
        found += b
    return found


def _to_rows(xp: Any, g: Any, weight: Any, shape: tuple[int, ...]) -> Any:
    return xp.reshape(xp.matmul(_rows(xp, g), weight), shape)


def _to_weight(xp: Any, g: Any, x: Any) -> Any:
    g, x = _rows(xp, g), _rows(xp, x)
    if len(g.shape) == 2 == len(x.shape):
        return xp.matmul(xp.transpose(g, 0, 1), x)
    lead = tuple(range(len(g.shape) - 1))
    return np.tensordot(g.reshape(*x.shape[:-1], -1), x, (lead, lead))


def _to_bias(xp: Any, g: Any) -> Any:
    g = _rows(xp, g)
    return xp.sum(g, tuple(range(len(g.shape) - 1)), False)


linear_values = primitive("linear", _product, inputs=("x", "weight"),
                          x=lambda xp, g, weight, x_shape: _to_rows(xp, g, weight, x_shape),
                          weight=lambda xp, g, x: _to_weight(xp, g, x))
linear_bias_values = primitive("linear_bias", _product_and_bias, inputs=("x", "weight", "bias"),
                               x=lambda xp, g, weight, x_shape: _to_rows(xp, g, weight, x_shape),
                               weight=lambda xp, g, x: _to_weight(xp, g, x),
                               bias=lambda xp, g: _to_bias(xp, g))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Any:
    """`x @ weight.T + bias`, for x of any number of dimensions.

    >>> import mutagrad as mg
    >>> mg.nn.functional.linear(mg.tensor([1., 2.]), mg.eye(2), mg.ones(2))
    tensor([2., 3.])
    """
    a, w = tensor_argument(input, "linear")._array, tensor_argument(weight, "linear")._array
    b = None if bias is None else tensor_argument(bias, "linear")._array
    _check_linear(a, w, b)
    if w.ndim == 1:
        result = matmul(input, weight) if bias is None else matmul(input, weight) + bias
    elif b is None:
        result = linear_values(input, weight)
    elif b.shape == w.shape[:1]:
        result = linear_bias_values(input, weight, bias)
    else:
        result = (linear_values(input, weight) + bias).reshape(*a.shape[:-1], -1)
    return write_out("linear", result, out)


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) <= len(target) and all(size in (1, whole) for size, whole in zip(shape[::-1], target[::-1]))


def _check_linear(a: Array, w: Array, b: Array | None) -> None:
    if w.dtype is not a.dtype or b is not None and b.dtype is not a.dtype:
        types = ", ".join(of_array(v.dtype).name for v in (a, w, b) if v is not None)
        raise DTypeError(f"linear: x, weight and bias have types {types}",
                         why="products do not promote", fix=f"weight.to({of_array(a.dtype)})")
    if a.ndim < 1:
        raise ShapeError(f"linear: both arguments need to be at least 1D, got x of shape {a.shape}", fix="x.reshape(1)")
    if w.ndim not in (1, 2) or a.shape[-1] != w.shape[-1]:
        raise ShapeError(f"linear: x of shape {a.shape} and weight of shape {w.shape} cannot be multiplied",
                         why="weight must be (outputs, inputs), and x end with as many inputs", fix="weight.T")
    rows = a.shape if a.ndim > 1 or w.ndim == 1 else (1, *a.shape)
    if b is not None and not _broadcasts(b.shape, (*rows[:-1], *w.shape[:-1])):
        raise ShapeError(f"linear: bias of shape {b.shape} for {w.shape[0] if w.ndim == 2 else 'one'} outputs",
                         fix=f"a bias of shape {w.shape[:-1]}")


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """`x1 @ weight[k] @ x2 + bias[k]` for each output k.

    >>> import mutagrad as mg
    >>> mg.bilinear(mg.ones(1, 2), mg.ones(1, 3), mg.ones(1, 2, 3), mg.tensor([0.5]))
    tensor([[6.5000]])
    """
    a, b, w = (tensor_argument(v, "bilinear")._array for v in (input1, input2, weight))
    if (a.ndim != b.ndim or not a.ndim or a.shape[:-1] != b.shape[:-1]
            or w.ndim != 3 or w.shape[1:] != (a.shape[-1], b.shape[-1])):
        raise ShapeError(f"bilinear: shapes {a.shape}, {b.shape} and weight {w.shape} do not fit",
                         why="the inputs must agree in all but the last dimension, and weight be (outputs, inputs1, "
                             "inputs2)", fix="bilinear(x1, x2, weight)")
    if bias is not None and tensor_argument(bias, "bilinear")._array.shape != w.shape[:1]:
        raise ShapeError(f"bilinear: bias of shape {bias._array.shape} for {w.shape[0]} outputs",
                         fix=f"a bias of shape {w.shape[:1]}")
    if not a.dtype == b.dtype == w.dtype:
        raise DTypeError(f"bilinear: the operands have types {a.dtype.name}, {b.dtype.name} and {w.dtype.name}",
                         why="products do not promote", fix="x2.to(x1.dtype)")
    result = einsum("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias


@may_need_much
def one_hot(tensor: Tensor, num_classes: int = -1) -> Any:
    """Return a row for each class index: 1 at the index, 0 elsewhere; by default as long as the largest index needs.

    >>> import mutagrad as mg
    >>> mg.nn.functional.one_hot(mg.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    array = tensor_argument(tensor, "one_hot")._array
    if array.dtype != np.int64:
        raise DTypeError(f"one_hot: the indices must be int64, not {of_array(array.dtype).name}",
                         fix="one_hot(x.long())")
    num_classes = whole_number(num_classes, "one_hot", "num_classes")
    if not array.size and num_classes <= 0:
        raise BadValue("one_hot: no indices to count the classes of", fix="one_hot(x, num_classes=3)")
    if num_classes == -1 and unknown(array):
        raise array.level.refuse("one_hot: how many classes there are depends on values")  # type: ignore[attr-defined]
    bounds: tuple[Any, Any] = extremes(array) if array.size else (0, "")
    least, most = bounds
    if least < 0:
        raise BadValue(f"one_hot: index {least} is negative", fix="one_hot(x.clamp(min=0))")
    count = int(most) + 1 if num_classes == -1 else num_classes
    if array.size and most >= count or count < 1:
        raise BadValue(f"one_hot: index {most} is out of range for {count} classes",
                       fix=f"num_classes={array.max(initial=0) + 1}")
    found = np.zeros((*array.shape, count), np.int64)
    np.put_along_axis(found, array[..., None], 1, -1)
    return make(found)
