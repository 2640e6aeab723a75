"""Reductions and normalisations over the elements for which a mask holds, under PyTorch's names.

>>> import mutagrad as mg
>>> mg.masked.mean(mg.tensor([1., 2., 6.]), mask=mg.tensor([True, False, True]))
tensor(3.5000)

What is masked out is replaced by what changes nothing: 0 for a sum, 1 for a product, -inf for a largest.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

from ..arrays import np
from ..arrays.kinds import device_of, moved
from ..base.errors import BadIndex, BadValue, DTypeError, ShapeError, may_need_much
from ..core import dtypes
from ..core.dtypes import dtype, of_array
from ..core.factory import make
from ..core.storage import TensorBase
from ..ops.math import elementwise
from ..ops.reduce import reductions as reduce, softmax as softmaxes
from ..ops.reduce.reductions import to_dtype
from ..ops.reduce.statistics import nanmedian
from ..ops.shape.shape import expand, tensor_argument, whole_dim, whole_dims
from ..tensors.tensor import Tensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
           "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]

Dims = Union[int, Sequence[int], None]  # None: all of them


def _as_mask(x: TensorBase, mask: TensorBase, name: str) -> Any:
    """Return the mask as booleans of the input's shape."""
    mask = to_dtype(tensor_argument(mask, name), dtypes.bool_)
    shape = x._array.shape
    if mask._array.ndim > len(shape):
        raise BadIndex(f"{name}: a mask of shape {mask._array.shape} has more dimensions than the input "
                       f"of shape {shape}", fix="mask of the input's shape")
    try:
        return expand(mask, *shape)
    except ShapeError:
        raise ShapeError(f"{name}: a mask of shape {mask._array.shape} does not broadcast to shape {shape}",
                         fix="mask[:, None] where it is for rows") from None


def _filled(x: TensorBase, mask: TensorBase | None, value: float, name: str) -> Any:
    """Return the input with `value` where the mask does not hold."""
    tensor_argument(x, name)
    return x if mask is None else elementwise.where(_as_mask(x, mask, name), x, make(np.array(value, x._array.dtype)))


def _lowest(x: TensorBase, name: str) -> Any:
    kind = tensor_argument(x, name)._array.dtype.kind
    if kind not in "fiuV":
        raise DTypeError(f"masked.{name}: {of_array(x._array.dtype).name} has no smallest number", fix="x.int()")
    return -np.inf if kind in "fV" else np.iinfo(x._array.dtype).min


def _filled_low(x: TensorBase, mask: TensorBase | None, name: str) -> Any:
    """Return the input with the lowest number where the mask does not hold."""
    return _filled(x, mask, 0 if mask is None else _lowest(x, name), name)


def _highest(x: TensorBase, name: str) -> Any:
    _lowest(x, name)
    return np.inf if x._array.dtype.kind in "fV" else np.iinfo(x._array.dtype).max


def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False,
        dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the sum of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.sum(x, 1, mask=mask)
    tensor([3.])
    """
    return reduce.sum(_filled(input, mask, 0, "sum"), dim, keepdim, dtype=dtype)


def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False,
         dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the product of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.prod(x, 1, mask=mask)
    tensor([2.])
    """
    return reduce.prod(_filled(input, mask, 1, "prod"), dim, keepdim, dtype=dtype)


def _running(operation: Callable[..., Any], name: str, x: TensorBase, dim: int, dtype: dtype | None,
             mask: TensorBase | None, neutral: int) -> Any:
    dtype = tensor_argument(x, name).dtype if dtype is None else dtype
    return to_dtype(operation(_filled(x, mask, neutral, name), dim, dtype=dtype), dtype)


def cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return running sums of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.cumsum(x, 1, mask=mask)
    tensor([[1., 3., 3.]])
    """
    return _running(reduce.cumsum, "cumsum", input, dim, dtype, mask, 0)


def cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return running products of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.cumprod(x, 1, mask=mask)
    tensor([[1., 2., 2.]])
    """
    return _running(reduce.cumprod, "cumprod", input, dim, dtype, mask, 1)


def _chosen(operation: Callable[..., Any], name: str, neutral: Callable[[TensorBase, str], Any], x: TensorBase,
            dim: Dims, keepdim: bool, dtype: dtype | None, mask: TensorBase | None) -> Any:
    """Return what is chosen; PyTorch gives positions, too, in the input's type unless told otherwise."""
    filled = _filled(x, mask, 0 if mask is None else neutral(x, name), name)
    return to_dtype(operation(filled, dim, keepdim), x.dtype if dtype is None else dtype)


def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False,
         dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the largest of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.amax(x, 1, mask=mask)
    tensor([2.])
    """
    return _chosen(reduce.amax, "amax", _lowest, input, dim, keepdim, dtype, mask)


def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False,
         dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the smallest of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.amin(x, 1, mask=mask)
    tensor([1.])
    """
    return _chosen(reduce.amin, "amin", _highest, input, dim, keepdim, dtype, mask)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False,
           dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return where the largest is of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.argmax(x, 1, mask=mask)
    tensor([1.])
    """
    return _chosen(reduce.argmax, "argmax", _lowest, input, dim, keepdim, dtype, mask)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False,
           dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return where the smallest is of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.argmin(x, 1, mask=mask)
    tensor([0.])
    """
    return _chosen(reduce.argmin, "argmin", _highest, input, dim, keepdim, dtype, mask)


@may_need_much
def _count(x: TensorBase, dim: Dims, keepdim: bool, mask: TensorBase | None, name: str) -> Any:
    """Return how many elements the mask holds for."""
    dims = whole_dims(dim, x._array.ndim, name)
    held = np.ones(x._array.shape, bool) if mask is None else _as_mask(x, mask, name)._array
    return make(moved(np.asarray(np.add.reduce(held, dims, np.int64, keepdims=keepdim)), device_of(x._array)))


def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False,
         dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the average of what the mask holds for; nan where it holds for nothing.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.mean(x, 1, mask=mask)
    tensor([1.5000])
    """
    dtype = tensor_argument(input, "mean").dtype if dtype is None else dtypes.as_dtype(dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise BadValue(f"mean: expects a floating point or complex type, got {dtype.name}",
                       fix="mutagrad.masked.mean(x.float(), mask=mask)")
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dim, keepdim, mask, "mean")


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False,
           dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the median along a dimension of what the mask holds for; nan where it holds for nothing.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.median(x, 1, mask=mask)
    tensor([1.])
    """
    floating = tensor_argument(input, "median")._array.dtype.kind in "fV"
    x = input if floating else to_dtype(input, dtypes.float32)
    found = nanmedian(_filled(x, mask, np.nan, "median"), whole_dim(dim, x._array.ndim, "median"), keepdim).values
    if floating:
        return found
    if np.isnan(found._array).any():
        raise BadValue("median: a row is masked out, and integers have no nan to say so",
                       fix="mutagrad.masked.median(x.float(), mask=mask)")
    return to_dtype(found, input.dtype if dtype is None else dtype)


def logsumexp(input: Tensor, dim: Dims = None, *, keepdim: bool = False,
              dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return log(sum(exp(x))) of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.logsumexp(x, 1, mask=mask)
    tensor([2.3133])
    """
    tensor_argument(input, "logsumexp")
    neutral = 0 if mask is None else -np.inf if input._array.dtype.kind == "c" else _lowest(input, "logsumexp")
    found = softmaxes.logsumexp(_filled(input, mask, neutral, "logsumexp"), () if dim is None else dim, keepdim)
    return to_dtype(found, input.dtype if dtype is None else dtype)


def logaddexp(input: Tensor, other: Tensor, *, dtype: dtype | None = None, input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Any:
    """Return log(exp(x) + exp(y)), with a mask for each: what it does not hold for adds nothing.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.logaddexp(x, x, input_mask=mask)
    tensor([[1.6931, 2.6931, 3.0000]])
    """
    x, y = _filled_low(input, input_mask, "logaddexp"), _filled_low(other, other_mask, "logaddexp")
    return to_dtype(elementwise.logaddexp(x, y), input.dtype if dtype is None else dtype)


def norm(input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None,
         mask: Any = None) -> Any:
    """Return the norm, as of a vector, of what the mask holds for.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.norm(x, 2, 1, mask=mask)
    tensor([2.2361])
    """
    x = _filled(input, mask, np.inf if ord == -np.inf else 0, "norm")
    return reduce.norm(x, 2 if ord is None else ord, dim, keepdim, dtype)


def _variance(x: Tensor, dim: Dims, unbiased: bool | None, correction: float | None, keepdim: bool,
              dtype: dtype | None, mask: Tensor | None, name: str) -> Any:
    """Return the variance, computed in the type of the result; by default, integers in float32."""
    if unbiased is not None and correction is not None:
        raise BadValue(f"{name}: unbiased and correction say the same thing, and cannot both be given",
                       fix="correction=1")
    correction = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    given = tensor_argument(x, name).dtype if dtype is None else dtypes.as_dtype(dtype)
    floating = given if given.is_floating_point or given.is_complex else dtypes.float32
    count = _count(x, dim, True, mask, name)
    centred = x - sum(x, dim, keepdim=True, dtype=floating, mask=mask) / count
    total = sum(centred * elementwise.conj(centred), dim, keepdim=keepdim, dtype=floating, mask=mask)
    degrees = np.maximum(count._array - correction, 0).astype(floating.to_real().array_type).reshape(total._array.shape)
    return to_dtype(total / make(degrees), floating if dtype is None else given)


def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
        keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the variance of what the mask holds for; nan where it holds for too little.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.var(x, 1, mask=mask)
    tensor([0.5000])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, "var")


def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
        keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the standard deviation of what the mask holds for; nan where it holds for too little.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.std(x, 1, mask=mask)
    tensor([0.7071])
    """
    return elementwise.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask, "std"))


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return exp(x), normalised to sum to one over what the mask holds for, and 0 elsewhere.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.softmax(x, 1, mask=mask)
    tensor([[0.2689, 0.7311, 0.0000]])
    """
    return softmaxes.softmax(_filled_low(input, mask, "softmax"), dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the logarithm of softmax over what the mask holds for, and -inf elsewhere.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.log_softmax(x, 1, mask=mask)
    tensor([[-1.3133, -0.3133,    -inf]])
    """
    return softmaxes.log_softmax(_filled_low(input, mask, "log_softmax"), dim, dtype)


def softmin(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return the softmax of -x over what the mask holds for, and 0 elsewhere.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.softmin(x, 1, mask=mask)
    tensor([[0.7311, 0.2689, 0.0000]])
    """
    filled = _filled(input, mask, 0 if mask is None else _highest(input, "softmin"), "softmin")
    return softmaxes.softmax(-filled, dim, dtype)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12,
              dtype: dtype | None = None, mask: Tensor | None = None) -> Any:
    """Return rows divided by the norm of what the mask holds for in them, and 0 elsewhere.

    >>> import mutagrad as mg
    >>> x, mask = mg.tensor([[1., 2., 3.]]), mg.tensor([[True, True, False]])
    >>> mg.masked.normalize(x, 2, 1, mask=mask)
    tensor([[0.4472, 0.8944, 0.0000]])
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0, "normalize") / elementwise.clamp(length, eps)
