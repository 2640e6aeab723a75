"""Reductions along dimensions, running sums and products, norms."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arrays import np, parallel as large, sums
from ...arrays.bfloat16 import DIRECT, SHORT
from ...arrays.compiled import reductions as compiled, rows as row_loops
from ...arrays.counting import count_true, first_extremes
from ...arrays.kinds import is_frozen, is_plain, is_spread, perhaps
from ...arrays.running import accumulate
from ...base import return_types
from ...base.errors import BadArgument, BadIndex, DTypeError, NotSupported, may_need_much
from ...base.modes import mode
from ...base.operands import Array
from ...base.sockets import socket
from ...core.codegen import primitive
from ...core.dtypes import FLOAT, as_dtype, complex128, dtype, float64, of_array
from ...core.evidence import cut
from ...core.factory import make
from ...core.number import number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import abs as abs_, cast, pow_values
from ..select.selecting import gather
from ..shape.shape import Dims, one_by_one, reshape, tensor_argument, whole_dim, whole_dims
from .multiplying import product, product_rule
from .rows import COMPILED, back, by_rows, count, is_real, kept_shape, one_dim, row_extreme

SETTINGS = ("dims", "keepdim")

sum_dims = primitive("sum", lambda a, dims, keepdim: _sum(a, dims, keepdim), settings=SETTINGS,
                     x=lambda xp, g, x_shape, dims: back(xp, g, x_shape, dims))
mean_dims = primitive("mean", lambda a, dims, keepdim: _mean(a, dims, keepdim), settings=SETTINGS,
                      x=lambda xp, g, x_shape, dims: back(xp, g / count(x_shape, dims), x_shape, dims))
prod_dims = primitive("prod", product, settings=SETTINGS,
                      x=product_rule)
amax_dims = primitive("amax", lambda a, dims, keepdim: _reduced(np.maximum, a, dims, keepdim), settings=SETTINGS,
                      x=lambda xp, g, x, out, dims: to_extremes(xp, g, x, out, dims))
amin_dims = primitive("amin", lambda a, dims, keepdim: _reduced(np.minimum, a, dims, keepdim), settings=SETTINGS,
                      x=lambda xp, g, x, out, dims: to_extremes(xp, g, x, out, dims))
var_dims = primitive("var", lambda a, dims, keepdim, correction: _variance(a, dims, keepdim, correction),
                     settings=(*SETTINGS, "correction"),
                     x=lambda xp, g, x, dims, correction: _times_distance(
                         xp, g, x, dims, 2 * _per_degree(count(x.shape, dims), correction)))
std_dims = primitive("std", lambda a, dims, keepdim, correction: np.sqrt(_variance(a, dims, keepdim, correction)),
                     settings=(*SETTINGS, "correction"),
                     x=lambda xp, g, x, out, dims, correction: _times_distance(
                         xp, xp.where(out == 0, 0.0, g / out), x, dims,
                         _per_degree(count(x.shape, dims), correction)))
cumsum_dim = primitive("cumsum", lambda a, dim: accumulate(np.add, a, dim), settings=("dim",),
                       x=lambda xp, g, dim: xp.sums_from_end(g, dim))
cumprod_dim = primitive("cumprod", lambda a, dim: accumulate(np.multiply, a, dim), settings=("dim",),
                        x=lambda xp, g, x, out, dim: xp.cumprod_rule(g, x, out, dim))


_add = np.add.reduce


def _sum(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if a.dtype.kind in "fc":
        if a.size >= sums.MANY or not (len(dims) in (0, a.ndim) or dims[0] == a.ndim - 1 or a.shape[dims[0]] <= 64):
            return sums.add(a, dims, keepdim)
    elif a.dtype.char == "l" and (found := compiled.reduce("sum", a, dims, keepdim)) is not None:
        return found
    return _add(a, dims, a.dtype, None, keepdim)


def _wide_sum(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The sum of many in double, for what is computed of it: that is then rounded once."""
    if count(a.shape, dims) <= 64:
        return _sum(a, dims, keepdim)
    return sums.add(a, dims, keepdim, np.complex128 if a.dtype.kind == "c" else np.float64)


def _mean(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Beside values far from zero an error in their mean is large.

    Over a mesh each device sums its part, and sums of one type, those of gradients too, are exchanged together.
    """
    if is_spread(a):
        return _add(a, dims, a.dtype, None, keepdim) / a.dtype.type(count(a.shape, dims))
    return (_wide_sum(a, dims, keepdim) / count(a.shape, dims)).astype(a.dtype, copy=False)


_MANY = 4096  # elements from which a faster way is worth looking for
_EXTREMES = {np.maximum: "largest", np.minimum: "smallest"}


def _reduced(ufunc: Any, a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if a.dtype.char != "?" and (found := compiled.reduce(_EXTREMES[ufunc], a, dims, keepdim)) is not None:
        return found
    if a.size < large.LARGE or (dim := one_dim(dims)) is None or is_frozen(a):
        return ufunc.reduce(a, dims, keepdims=keepdim)

    def work(axis: int, part: Array, out: Array) -> None:
        out[...] = row_extreme(ufunc, part, axis)

    out = by_rows(work, (a,), dim, len(dims), kept=True)
    return out if keepdim else out.reshape(tuple(n for i, n in enumerate(a.shape) if i not in dims))


def to_extremes(xp: Any, g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    """Give g to the largest (or smallest) elements, in equal shares where several are; to all nans if that is nan."""
    kept = kept_shape(x.shape, dims)
    if is_real(xp, x) and (dim := one_dim(dims)) is not None:
        return by_rows(_extremes_back, (x, g.reshape(kept), out.reshape(kept)), dim, len(dims))
    top = xp.reshape(out, kept)
    share = xp.where((x == top) | (x != x) & (top != top), 1.0, xp.zeros_like(x))
    return back(xp, g, x.shape, dims) * (share / xp.sum(share, dims, True))


def _extremes_back(axis: int, a: Array, g: Array, top: Array, out: Array) -> None:
    chosen = a == top
    missing = top != top
    if missing.any():
        chosen |= (a != a) & missing
    np.multiply(chosen, g / np.add.reduce(chosen, axis, a.dtype, keepdims=True), out)


def _times_distance(xp: Any, g: Any, x: Any, dims: tuple[int, ...], factor: float) -> Any:
    """Each element's distance from the mean, times g and a factor."""
    mean = xp.mean(x, dims, True)
    if is_real(xp, x) and (dim := one_dim(dims)) is not None:
        steep = g.reshape(kept_shape(x.shape, dims)) * x.dtype.type(factor)
        return by_rows(_centred_times, (x, steep, mean), dim, len(dims))
    return back(xp, g, x.shape, dims) * (x - mean) * factor


def _centred_times(axis: int, a: Array, factor: Array, mean: Array, out: Array) -> None:
    np.subtract(a, mean, out)
    np.multiply(out, factor, out)


COMPILED.update({_extremes_back: row_loops.extremes_back, _centred_times: row_loops.centred_times})


def _per_degree(n: int, correction: float) -> float:
    """One divided by the degrees of freedom: infinite where there are none, so that 0 of them give nan."""
    return 1 / (n - correction) if n > correction else float("inf")


def _variance(a: Array, dims: tuple[int, ...], keepdim: bool, correction: float) -> Any:
    n = count(a.shape, dims)
    if (found := _spread_in_rows(a, dims, n, correction)) is not None:
        kept = kept_shape(a.shape, dims)
        return found.reshape(kept if keepdim else tuple(m for d, m in enumerate(a.shape) if d not in dims))
    centred = a - _mean(a, dims, True) if n else a
    left = _wide_sum(centred, dims, keepdim)  # not zero: the mean was rounded, and far from zero that shows
    squares = _wide_sum(_squared_size(centred), dims, keepdim) - _squared_size(left) / (n or 1)
    return (squares / left.dtype.type(n - correction if n > correction else 0).real).astype(a.real.dtype, copy=False)


def _spread_in_rows(a: Array, dims: tuple[int, ...], n: int, correction: float) -> Any:
    """The variances of what lies along the memory, by a compiled loop; None where that cannot be."""
    if a.dtype.char not in "fd" or n < 2 or a.size < _MANY or not a.flags.c_contiguous or (
            sorted(dims) != list(range(a.ndim - len(dims), a.ndim))):
        return None
    rows = a.reshape(-1, n)
    middle = np.asarray(sums.add(rows, (1,), dtype=np.float64)).reshape(-1) / n
    pieces = rows if len(rows) > 1 or n % 1024 else a.reshape(-1, 1024)
    found = compiled.spread(pieces, np.repeat(middle, len(pieces) // len(rows)))
    if found is None:
        return None
    squares, left = (np.add.reduce(part.reshape(len(rows), -1), 1) for part in found)
    return ((squares - left * left / n) / (n - correction if n > correction else 0.0)).astype(a.dtype)


def _squared_size(a: Array) -> Array:
    return a.real * a.real + a.imag * a.imag if a.dtype.kind == "c" else a * a


def _cumprod_rule(xp: Any, g: Any, x: Any, out: Any, dim: int) -> Any:
    """sum over k >= i of g[k] * out[k] / x[i]; where x has zeros, each term's product is made without x[i]."""
    if not xp.has_zero(x):
        return xp.sums_from_end(g * out, dim) / x
    columns = []
    n = x.shape[dim]
    for i in range(n):
        left, mine, right = xp.narrow(x, dim, 0, i), xp.narrow(x, dim, i, 1), xp.narrow(x, dim, i + 1, n - i - 1)
        others = xp.cumprod(xp.join([left, mine * 0 + 1, right], dim), dim)
        columns.append(xp.sum(xp.narrow(g * others, dim, i, n - i), (dim,), True))
    return xp.join(columns, dim)


def _cumprod_slope(g: Array, x: Array, out: Array, dim: int) -> Any:
    """The same in linear time: products without the first zero of a row are its slope, and none is behind it.

    (This is no rule for tensors: it does not say how the slope changes where x is zero.)
    """
    zero = x == 0
    if not perhaps(zero):
        return _cumprod_rule(RAW, g, x, out, dim)
    first = zero & (accumulate(np.add, zero.astype(np.int64), dim) == 1)
    ones = x.dtype.type(1)
    before = RAW.sums_from_end(g * out, dim) / np.where(zero, ones, x)
    return np.where(first, RAW.sums_from_end(g * RAW.cumprod(np.where(first, ones, x), dim), dim), before)


RAW.sums_from_end = lambda a, dim: accumulate(np.add, a, dim, back=True)
RECORDED.sums_from_end = lambda x, dim: RECORDED.flip(RECORDED.cumsum(RECORDED.flip(x, (dim,)), dim), (dim,))
RAW.cumprod_rule = lambda *arguments: _cumprod_slope(*arguments)
RECORDED.cumprod_rule = lambda *arguments: _cumprod_rule(RECORDED, *arguments)
RAW.has_zero, RECORDED.has_zero = lambda a: perhaps(a == 0), lambda x: perhaps(x._array == 0)
RAW.join, RECORDED.join = lambda parts, dim: np.concatenate(parts, dim), lambda parts, dim: RECORDED.cat(parts, dim)


# ------------------------------------------------------------------------------------------------------------ functions

def floating(x: Tensor, dtype: dtype | None, name: str) -> Any:
    """Return the tensor, in this type if one is given, whose elements must be floats or complex."""
    x = tensor_argument(x, name)
    if dtype is not None:
        x = to_dtype(x, dtype)
    if of_array(x._array.dtype).category < FLOAT:
        raise DTypeError(f"{name}: expects a floating point tensor, got {of_array(x._array.dtype).name}",
                         fix=f"x.float().{name}()")
    return x


def in_single(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return `function` of a tensor in float32 where that is short, with a result of its type."""
    def wide(x: Tensor, *arguments: Any) -> Any:
        kind = x._array.dtype
        if kind.char not in SHORT:
            return function(x, *arguments)
        return cast(function(cast(x, np.dtype(np.float32)), *arguments), kind)

    return wide


def to_dtype(x: Tensor, dtype: dtype) -> Any:
    """Return the tensor in an element type; itself where it has that."""
    to = as_dtype(dtype).array_type
    return x if x._array.dtype is to else cast(x, to)


def summable(x: Tensor, dtype: dtype | None, name: str) -> Any:
    """Return the tensor in the type that its sum has: integers and booleans are summed in 64 bits."""
    x = tensor_argument(x, name)
    if dtype is not None:
        return to_dtype(x, dtype)
    return cast(x, np.dtype("int64")) if x._array.dtype.kind in "iub" and x._array.dtype != np.dtype("int64") else x


def numpy_names(name: str, dim: Any, keepdim: bool, axis: Any, keepdims: bool | None) -> tuple[Any, bool]:
    """Take NumPy's names, too, as PyTorch does."""
    if keepdims is not None:
        keepdim = keepdims
    if keepdim.__class__ is not bool:
        raise BadArgument(f"{name}: keepdim must be True or False, not {type(keepdim).__name__}",
                          why=f"got {keepdim!r}", fix="keepdim=True")
    return dim if axis is None else axis, keepdim


def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None, axis: Dims = None,
        keepdims: bool | None = None, out: Tensor | None = None) -> Any:
    """Return the sum over all elements, or along dimensions.

    >>> import mutagrad as mg
    >>> mg.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    dim, keepdim = numpy_names("sum", dim, keepdim, axis, keepdims)
    array = tensor_argument(input, "sum")._array
    dims = whole_dims(dim, array.ndim, "sum")
    if dtype is None and array.dtype.char in "?bBhi" and (
            found := compiled.reduce("sum", array, dims, keepdim)) is not None:
        return write_out("sum", make(found), out)
    if dtype is None and array.dtype.char == "?" and (found := count_true(array, dims, keepdim)) is not None:
        return write_out("sum", make(found), out)
    result = sum_dims(summable(input, dtype, "sum"), dims, keepdim)
    return result if out is None else write_out("sum", result, out)


def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None, axis: Dims = None,
         keepdims: bool | None = None, out: Tensor | None = None) -> Any:
    """Return the average over all elements, or along dimensions.

    >>> import mutagrad as mg
    >>> mg.mean(mg.tensor([[1., 3.], [5., 7.]]), dim=1)
    tensor([2., 6.])
    """
    dim, keepdim = numpy_names("mean", dim, keepdim, axis, keepdims)
    input = floating(input, dtype, "mean")
    result = mean_dims(input, whole_dims(dim, input._array.ndim, "mean"), keepdim)
    return result if out is None else write_out("mean", result, out)


def prod(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None, axis: Dims = None,
         keepdims: bool | None = None, out: Tensor | None = None) -> Any:
    """Return the product of all elements, or along a dimension; its gradient is right at zeros.

    >>> import mutagrad as mg
    >>> mg.prod(mg.tensor([[1., 2.], [3., 4.]]), dim=1)
    tensor([ 2., 12.])
    """
    dim, keepdim = numpy_names("prod", dim, keepdim, axis, keepdims)
    input = summable(input, dtype, "prod")
    return write_out("prod", prod_dims(input, whole_dims(dim, input._array.ndim, "prod"), keepdim), out)


def _degrees(name: str, dim: Dims, unbiased: bool | None, correction: float | None) -> tuple[Dims, float]:
    if isinstance(dim, bool):  # x.var(False): unbiased, by position
        dim, unbiased = None, dim
    if correction is not None and unbiased is not None:
        raise BadArgument(f"{name}: unbiased and correction cannot both be given", fix=f"correction={correction!r}")
    if unbiased is not None and unbiased.__class__ is not bool:
        raise BadArgument(f"{name}: unbiased must be True or False, not {type(unbiased).__name__}",
                          why=f"got {unbiased!r}", fix="unbiased=False")
    if correction is None:
        return dim, 1 if unbiased is None else int(unbiased)
    correction = number(correction)
    if isinstance(correction, (bool, complex)):
        raise BadArgument(f"{name}: correction must be a number, not {type(correction).__name__}",
                          why=f"got {correction!r}", fix="correction=1")
    return dim, correction


def _spread(name: str, operation: Callable[..., Tensor], x: Tensor, dim: Dims, unbiased: bool | None, keepdim: bool,
            correction: float | None, axis: Dims, keepdims: bool | None) -> Tensor:
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    dim, correction = _degrees(name, dim, unbiased, correction)
    x = floating(x, None, name)
    return operation(x, whole_dims(dim, x._array.ndim, name), keepdim, correction)


def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None, axis: Dims = None, keepdims: bool | None = None,
        out: Tensor | None = None) -> Any:
    """Return the variance; `correction` 1 (the default) divides by n - 1.

    >>> import mutagrad as mg
    >>> mg.var(mg.tensor([1., 3.]))
    tensor(2.)
    """
    return write_out("var", _spread("var", var_dims, input, dim, unbiased, keepdim, correction, axis, keepdims), out)


def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None, axis: Dims = None, keepdims: bool | None = None,
        out: Tensor | None = None) -> Any:
    """Return the square root of the variance; where that is zero, so is the gradient.

    >>> import mutagrad as mg
    >>> mg.std(mg.tensor([1., 3.]))
    tensor(1.4142)
    """
    return write_out("std", _spread("std", std_dims, input, dim, unbiased, keepdim, correction, axis, keepdims), out)


def _with_mean(spread: Tensor, x: Tensor, dim: Dims, keepdim: bool, axis: Dims,
               keepdims: bool | None) -> tuple[Tensor, Tensor]:
    """PyTorch finds both in double."""
    dim = axis if axis is not None else None if isinstance(dim, bool) else dim
    own = of_array(x._array.dtype)
    double = complex128 if own.is_complex else float64
    return spread, to_dtype(mean(x, dim, keepdim, keepdims=keepdims, dtype=double), own)


def var_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None, axis: Dims = None, keepdims: bool | None = None,
             out: Sequence[Tensor] | None = None) -> tuple[Any, Any]:
    """Return the variance and the mean.

    >>> import mutagrad as mg
    >>> mg.var_mean(mg.tensor([1., 3.]), correction=0)
    (tensor(1.), tensor(2.))
    """
    spread = _spread("var_mean", var_dims, input, dim, unbiased, keepdim, correction, axis, keepdims)
    found: tuple[Any, Any] = write_out("var_mean", _with_mean(spread, input, dim, keepdim, axis, keepdims), out)
    return found


def std_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None, axis: Dims = None, keepdims: bool | None = None,
             out: Sequence[Tensor] | None = None) -> tuple[Any, Any]:
    """Return the standard deviation and the mean.

    >>> import mutagrad as mg
    >>> mg.std_mean(mg.tensor([1., 3.]), correction=0)
    (tensor(1.), tensor(2.))
    """
    spread = _spread("std_mean", std_dims, input, dim, unbiased, keepdim, correction, axis, keepdims)
    found: tuple[Any, Any] = write_out("std_mean", _with_mean(spread, input, dim, keepdim, axis, keepdims), out)
    return found


def not_empty(x: Tensor, dims: tuple[int, ...], name: str) -> None:
    """Raise where there is nothing to choose from."""
    if not count(x._array.shape, dims):
        raise BadIndex(f"{name}: Expected reduction dim {dims} of shape {x._array.shape} to have non-zero size",
                       why="there is nothing to choose from", fix=f"if x.numel(): x.{name}(...)")


def ordered(x: Tensor, name: str) -> Array:
    """Return the array of a tensor whose elements have an order."""
    array = tensor_argument(x, name)._array
    if array.dtype.kind == "c":
        raise DTypeError(f"{name}: not defined for {array.dtype.name}", why="complex numbers have no order",
                         fix="x.abs() or x.real first")
    return array


def _bound(name: str, operation: Callable[..., Tensor], x: Tensor, dim: Dims, keepdim: bool, axis: Dims = None,
           keepdims: bool | None = None) -> Tensor:
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    dims = whole_dims(dim, ordered(x, name).ndim, name)
    not_empty(x, dims, name)
    return operation(x, dims, keepdim)


def amax(input: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None,
         out: Tensor | None = None) -> Any:
    """Return the largest along dimensions; where several are, they share the gradient equally.

    >>> import mutagrad as mg
    >>> mg.amax(mg.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([5., 3.])
    """
    return write_out("amax", _bound("amax", amax_dims, input, dim, keepdim, axis, keepdims), out)


def amin(input: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None,
         out: Tensor | None = None) -> Any:
    """Return the smallest along dimensions; where several are, they share the gradient equally.

    >>> import mutagrad as mg
    >>> mg.amin(mg.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([1., 2.])
    """
    return write_out("amin", _bound("amin", amin_dims, input, dim, keepdim, axis, keepdims), out)


def aminmax(input: Tensor, *, dim: Dims = None, keepdim: bool = False, axis: Dims = None, keepdims: bool | None = None,
            out: Sequence[Tensor] | None = None) -> Any:
    """Return the smallest and the largest.

    >>> import mutagrad as mg
    >>> low, high = mg.aminmax(mg.tensor([3., 1., 2.]))
    >>> low, high
    (tensor(1.), tensor(3.))
    """
    low, high = (_bound("aminmax", f, input, dim, keepdim, axis, keepdims) for f in (amin_dims, amax_dims))
    return write_out("aminmax", return_types.aminmax(low, high), out)


@may_need_much
def _position(name: str, x: Tensor, dim: int | None, keepdim: bool) -> Any:
    array = ordered(x, name)
    cut(name, x)
    find = np.argmax if name in ("argmax", "max") else np.argmin
    if dim is None:
        not_empty(x, tuple(range(array.ndim)), name)
        return np.asarray(find(array)).reshape((1,) * array.ndim if keepdim else ())
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        return np.zeros((), np.int64)
    not_empty(x, (dim,), name)
    extreme = "largest" if find is np.argmax else "smallest"
    if (dim < array.ndim - 1 or not array.flags.c_contiguous) and (
            found := compiled.place(extreme, array, dim)) is not None:
        return found.reshape(kept_shape(array.shape, (dim,))) if keepdim else found
    if (found := first_extremes(np.maximum if find is np.argmax else np.minimum, array, dim)) is not None:
        return np.expand_dims(found, dim) if keepdim else found
    return np.asarray(find(array, dim, keepdims=keepdim))


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None,
           keepdims: bool | None = None, out: Tensor | None = None) -> Any:
    """Return where the largest is (the first of several): integers, so without gradient, and fine as an index.

    >>> import mutagrad as mg
    >>> mg.argmax(mg.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([1, 0])
    """
    dim, keepdim = numpy_names("argmax", dim, keepdim, axis, keepdims)
    return write_out("argmax", make(_position("argmax", input, dim, keepdim)), out)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None,
           keepdims: bool | None = None, out: Tensor | None = None) -> Any:
    """Return where the smallest is (the first of several).

    >>> import mutagrad as mg
    >>> mg.argmin(mg.tensor([[1., 5.], [3., 2.]]), dim=1)
    tensor([0, 1])
    """
    dim, keepdim = numpy_names("argmin", dim, keepdim, axis, keepdims)
    return write_out("argmin", make(_position("argmin", input, dim, keepdim)), out)


def pick(kind: type[return_types.Results], x: Tensor, dim: int, where: Array, keepdim: bool) -> Any:
    """Return the values at these positions along a dimension, one for each row, and the positions."""
    if not x._array.ndim:
        return kind(RECORDED.clone(x), make(where.reshape(())))
    array = x._array
    if (x._storage.writer is None or not mode.grad) and where.size < large.MIDDLE and is_plain(array, where):
        index = [np.arange(n).reshape((-1,) + (1,) * (array.ndim - 1 - d)) for d, n in enumerate(where.shape)]
        index[dim] = where
        values = array[tuple(index)]  # without history: what gather does, but for looking at all it may be given
        kept = where.shape if keepdim else where.shape[:dim] + where.shape[dim + 1:]
        return kind(make(values.reshape(kept)), make(where.reshape(kept)))
    values, indices = gather(x, dim, make(where)), make(where)
    if not keepdim:
        shape = tuple(n for i, n in enumerate(x._array.shape) if i != dim)
        values, indices = reshape(values, shape), reshape(indices, shape)
    return kind(values, indices)


def _extreme(name: str, operation: Callable[..., Tensor], pairwise: Callable[..., Tensor], x: Tensor,
             arguments: tuple[Any, ...], dim: int | None, keepdim: bool, axis: int | None, keepdims: bool | None,
             out: Tensor | Sequence[Tensor] | None) -> Any:
    if len(arguments) == 1 and not isinstance(arguments[0], int):
        return pairwise(x, *arguments, out=out)
    if arguments:
        dim, keepdim = arguments[0], (arguments[1] if len(arguments) > 1 else keepdim)
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    if dim is None:
        return write_out(name, _bound(name, operation, x, None, False), out)
    where = _position(name, x, dim, True)
    found = pick(getattr(return_types, name), x, whole_dim(dim, x._array.ndim, name), where, keepdim)
    return write_out(name, found, out)


def max(input: Tensor, *arguments: Any, dim: int | None = None, keepdim: bool = False, other: Tensor | None = None,
        axis: int | None = None, keepdims: bool | None = None, out: Tensor | Sequence[Tensor] | None = None) -> Any:
    """Return the largest of all; `max(dim)` gives values and indices; `max(other)` is `maximum`.

    >>> import mutagrad as mg
    >>> mg.tensor([[1., 4.], [3., 2.]]).max(dim=1).indices
    tensor([1, 0])
    """
    arguments = arguments if other is None else (other,)
    return _extreme("max", amax_dims, RECORDED.maximum, input, arguments, dim, keepdim, axis, keepdims, out)


def min(input: Tensor, *arguments: Any, dim: int | None = None, keepdim: bool = False, other: Tensor | None = None,
        axis: int | None = None, keepdims: bool | None = None, out: Tensor | Sequence[Tensor] | None = None) -> Any:
    """Return the smallest of all; `min(dim)` gives values and indices; `min(other)` is `minimum`.

    >>> import mutagrad as mg
    >>> mg.min(mg.tensor([3., 1.]))
    tensor(1.)
    >>> values, indices = mg.min(mg.tensor([[3., 1.], [2., 5.]]), dim=1)
    >>> values, indices
    (tensor([1., 2.]), tensor([1, 0]))
    """
    arguments = arguments if other is None else (other,)
    return _extreme("min", amin_dims, RECORDED.minimum, input, arguments, dim, keepdim, axis, keepdims, out)


def _truth(function: Callable[..., Array], name: str, x: Tensor, dim: Dims, keepdim: bool, axis: Dims,
           keepdims: bool | None, out: Tensor | None) -> Any:
    """Booleans; bytes for bytes, which were PyTorch's booleans once."""
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    array = tensor_argument(x, name)._array
    cut(name, x)
    one_by_one = isinstance(dim, (tuple, list)) and not dim  # of no dimensions: element by element
    dims = () if one_by_one else whole_dims(dim, array.ndim, name)
    found = np.asarray(function(array, dims, keepdims=keepdim))
    return write_out(name, make(found.astype(np.uint8) if array.dtype == np.uint8 else found), out)


def any(input: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None,
        out: Tensor | None = None) -> Any:
    """Return whether any element is nonzero.

    >>> import mutagrad as mg
    >>> mg.any(mg.tensor([True, False]))
    tensor(True)
    >>> mg.any(mg.tensor([[0, 0], [1, 0]]), dim=1)
    tensor([False,  True])
    """
    return _truth(np.any, "any", input, dim, keepdim, axis, keepdims, out)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None,
        out: Tensor | None = None) -> Any:
    """Return whether every element is nonzero.

    >>> import mutagrad as mg
    >>> mg.all(mg.tensor([True, False]))
    tensor(False)
    >>> mg.all(mg.tensor([[1, 1], [1, 0]]), dim=1)
    tensor([ True, False])
    """
    return _truth(np.all, "all", input, dim, keepdim, axis, keepdims, out)


@may_need_much
def count_nonzero(input: Tensor, *dims: Dims, dim: Dims = None, axis: Dims = None) -> Any:
    """Return how many elements are not zero, along all dimensions or those named, one by one or as a sequence.

    >>> import mutagrad as mg
    >>> mg.count_nonzero(mg.tensor([[0, 1], [2, 3]]), dim=1)
    tensor([1, 2])
    """
    array = tensor_argument(input, "count_nonzero")._array
    cut("count_nonzero", input)
    counted = whole_dims(one_by_one(dims, dim if axis is None else axis), array.ndim, "count_nonzero")
    found = compiled.reduce("nonzero", array, counted)
    if found is None and array.size >= _MANY:
        array = array if array.dtype.char == "?" else array != 0
        found = count_true(array, counted)
    return make(np.asarray(np.count_nonzero(array, axis=counted) if found is None else found))


def _running(operation: Callable[..., Tensor], name: str, x: Tensor, dim: int | None, dtype: dtype | None,
             axis: int | None, out: Tensor | None) -> Any:
    x = summable(x, dtype, name)
    dim = whole_dim(dim if axis is None else axis, x._array.ndim, name)
    return write_out(name, operation(x, dim) if x._array.ndim else RECORDED.clone(x), out)


def cumsum(input: Tensor, dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None,
           out: Tensor | None = None) -> Any:
    """Return running sums along a dimension.

    >>> import mutagrad as mg
    >>> mg.cumsum(mg.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    return _running(cumsum_dim, "cumsum", input, dim, dtype, axis, out)


def cumprod(input: Tensor, dim: int | None = None, *, dtype: dtype | None = None, axis: int | None = None,
            out: Tensor | None = None) -> Any:
    """Return running products along a dimension; their gradient is right at zeros.

    >>> import mutagrad as mg
    >>> mg.cumprod(mg.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
    return _running(cumprod_dim, "cumprod", input, dim, dtype, axis, out)


def _norm2(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if a.dtype.char in "fd" and (found := compiled.reduce("squares", a, dims, keepdim)) is not None:
        return np.sqrt(found).astype(a.dtype, copy=False)
    first = a.ndim - len(dims)
    if (a.dtype.char in "fd" and a.size >= _MANY and a.flags.c_contiguous and is_plain(a)
            and sorted(dims) == list(range(first, a.ndim))):
        rows = a.reshape(*a.shape[:first], -1)
        found = np.sqrt(sums.row_sums(rows, rows)).astype(a.dtype, copy=False)
        return found.reshape(kept_shape(a.shape, dims)) if keepdim else found
    return np.sqrt(_wide_sum(_squared_size(a), dims, keepdim)).astype(a.real.dtype, copy=False)


norm2_dims = primitive("norm2", _norm2, settings=SETTINGS,
                       x=lambda xp, g, x, out, dims: x * back(xp, xp.where(out == 0, 0.0, g / out), x.shape, dims))


def _read_as_short(function: Any, name: str, then: Callable[..., Any] = lambda found, a, dims: found) -> None:
    """Have a reduction read short floats as they are, instead of in copies of a wider type."""
    def direct(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        found = compiled.reduce(name, a, dims, keepdim)
        return None if found is None else then(found, a, dims)

    DIRECT[function.op.forward] = direct


_read_as_short(sum_dims, "sum")
_read_as_short(mean_dims, "sum", lambda found, a, dims: found / count(a.shape, dims))
_read_as_short(prod_dims, "product")
_read_as_short(amax_dims, "largest")
_read_as_short(amin_dims, "smallest")
_read_as_short(norm2_dims, "squares", lambda found, a, dims: np.sqrt(found))


norm_dims = primitive("norm", lambda a, dims, keepdim, p: _norm_of(np.abs(a), dims, keepdim, p),
                      settings=(*SETTINGS, "p"),
                      x=lambda xp, g, x, out, dims, p: _norm_rule(xp, g, x, out, dims, p))


def _norm_of(a: Array, dims: tuple[int, ...], keepdim: bool, p: float) -> Any:
    return RAW.power(_wide_sum(RAW.power(a, p), dims, keepdim), 1 / p).astype(a.dtype, copy=False)


def _norm_rule(xp: Any, g: Any, x: Any, out: Any, dims: tuple[int, ...], p: float) -> Any:
    """Each element's share of the norm, to the power p - 1, which cannot overflow; at zero, without a slope, zero."""
    whole = back(xp, out, x.shape, dims)
    flat = (x == 0) | (whole == 0)
    share = xp.power(xp.where(flat, 1.0, xp.abs(x)) / xp.where(flat, 1.0, whole), p - 1)
    return back(xp, g, x.shape, dims) * xp.where(flat, 0.0, xp.sgn(x) * share)


RAW.power, RECORDED.power = lambda a, p: RAW.pow(a, np.array(p, a.dtype)), lambda x, p: pow_values(x, p)


def norm(input: Tensor, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False,
         dtype: dtype | None = None, *, out: Tensor | None = None) -> Any:
    """Return the p-norm of all elements, or along dimensions; at zero its gradient is zero.

    >>> import mutagrad as mg
    >>> mg.norm(mg.tensor([3., 4.]))
    tensor(5.)
    >>> mg.norm(mg.tensor([[3., 4.], [0., 1.]]), p=1, dim=1)
    tensor([7., 1.])
    """
    input = floating(input, dtype, "norm")
    keepdim = numpy_names("norm", dim, keepdim, None, None)[1]
    return write_out("norm", _norm(input, p, whole_dims(dim, input._array.ndim, "norm"), keepdim), out)


def _norm(x: Tensor, p: float | str | None, dims: tuple[int, ...], keepdim: bool) -> Any:
    p = p if p.__class__ is str else number(p)
    if p in ("fro", None) or p == 2:
        return norm2_dims(x, dims, keepdim)
    if p == "nuc":
        return socket("norms").matrix_norm(x, "nuc", dims, keepdim)
    if isinstance(p, (str, bool, complex)):
        raise NotSupported(f"norm: p={p!r} is not supported", why="known are 'fro', 'nuc' and numbers, inf included",
                           fix="x.norm(p=2)")
    size = abs_(x)
    if p == float("inf"):
        return amax_dims(size, dims, keepdim)
    if p == float("-inf"):
        return amin_dims(size, dims, keepdim)
    if p == 0:
        return sum_dims(RECORDED.sign(size), dims, keepdim)
    if p == 1:
        return sum_dims(size, dims, keepdim)
    return norm_dims(x, dims, keepdim, float(p))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Any:
    """Return the p-norm of the difference.

    >>> import mutagrad as mg
    >>> mg.dist(mg.tensor([0., 0.]), mg.tensor([3., 4.]))
    tensor(5.)
    """
    return norm(tensor_argument(input, "dist") - tensor_argument(other, "dist"), p)
