"""Reductions along dimensions, running sums and products, softmax."""
from __future__ import annotations

from typing import Any, NamedTuple

from ..backends import large, np
from ..call import primitive
from ..construct import make
from ..dtypes import FLOAT, as_dtype, of_array
from ..errors import BadIndex, DTypeError, NotSupported
from ..op import RAW, RECORDED
from .elementwise import abs as abs_
from .elementwise import cast, pow_values
from .selecting import gather
from .shape import reshape, whole_dim, whole_dims


def kept_shape(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in dims else n for i, n in enumerate(shape))


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    n = 1
    for d in dims:
        n *= shape[d]
    return n


def back(xp: Any, g: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """A reduced adjoint at every position that was reduced into it."""
    return xp.spread(g, kept_shape(shape, dims), shape)


def as_reduced(xp: Any, value: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """A reduced value with its dimensions kept, to compute with against what was reduced."""
    return xp.reshape(value, kept_shape(shape, dims))


def _in_single(forward: Any) -> Any:
    """Half precision is reduced in single, as in PyTorch: in half 2048 + 1 is 2048, and sums of 65520 are infinite."""
    def wide(a: Any, *settings: Any) -> Any:
        return forward(a, *settings) if a.dtype.char != "e" else forward(a.astype(np.float32), *settings).astype(a.dtype)

    return wide


_SETTINGS = ("dims", "keepdim")

sum_dims = primitive("sum", lambda a, dims, keepdim: _sum(a, dims, keepdim), settings=_SETTINGS,
                     x=lambda xp, g, x_shape, dims: back(xp, g, x_shape, dims))
mean_dims = primitive("mean", _in_single(lambda a, dims, keepdim: np.add.reduce(a, dims, keepdims=keepdim) / count(a.shape, dims)),
                      settings=_SETTINGS, x=lambda xp, g, x_shape, dims: back(xp, g / count(x_shape, dims), x_shape, dims))
prod_dims = primitive("prod", _in_single(lambda a, dims, keepdim: np.multiply.reduce(a, dims, a.dtype, keepdims=keepdim)), settings=_SETTINGS,
                      x=lambda xp, g, x, dims: back(xp, g, x.shape, dims) * _product_of_others(xp, x, dims))
amax_dims = primitive("amax", lambda a, dims, keepdim: np.maximum.reduce(a, dims, keepdims=keepdim), settings=_SETTINGS,
                      x=lambda xp, g, x, out, dims: _to_extremes(xp, g, x, out, dims))
amin_dims = primitive("amin", lambda a, dims, keepdim: np.minimum.reduce(a, dims, keepdims=keepdim), settings=_SETTINGS,
                      x=lambda xp, g, x, out, dims: _to_extremes(xp, g, x, out, dims))
var_dims = primitive("var", _in_single(lambda a, dims, keepdim, correction: _variance(a, dims, keepdim, correction)),
                     settings=(*_SETTINGS, "correction"),
                     x=lambda xp, g, x, dims, correction: back(xp, g, x.shape, dims) * (x - xp.mean(x, dims, True))
                     * (2 * _per_degree(count(x.shape, dims), correction)))
std_dims = primitive("std", _in_single(lambda a, dims, keepdim, correction: np.sqrt(_variance(a, dims, keepdim, correction))),
                     settings=(*_SETTINGS, "correction"),
                     x=lambda xp, g, x, out, dims, correction: back(xp, xp.where(out == 0, 0.0, g / out), x.shape, dims)
                     * (x - xp.mean(x, dims, True)) * _per_degree(count(x.shape, dims), correction))
logsumexp_dims = primitive("logsumexp", _in_single(lambda a, dims, keepdim: _log_sum_exp(a, dims, keepdim)), settings=_SETTINGS,
                           x=lambda xp, g, x, out, dims: back(xp, g, x.shape, dims) * xp.exp(x - as_reduced(xp, out, x.shape, dims)))
softmax_dim = primitive("softmax", _in_single(lambda a, dim: _softmax(a, dim)), settings=("dim",),
                        x=lambda xp, g, out, dim: out * (g - xp.sum(g * out, (dim,), True)))
log_softmax_dim = primitive("log_softmax", _in_single(lambda a, dim: _log_softmax(a, dim)), settings=("dim",),
                            x=lambda xp, g, out, dim: g - xp.exp(out) * xp.sum(g, (dim,), True))
cumsum_dim = primitive("cumsum", _in_single(lambda a, dim: np.add.accumulate(a, dim, a.dtype)), settings=("dim",),
                       x=lambda xp, g, dim: xp.flip(xp.cumsum(xp.flip(g, (dim,)), dim), (dim,)))
cumprod_dim = primitive("cumprod", _in_single(lambda a, dim: np.multiply.accumulate(a, dim, a.dtype)), settings=("dim",),
                        x=lambda xp, g, x, out, dim: _cumprod_rule(xp, g, x, out, dim))


def _sum(a: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    if a.dtype.char == "e":
        return np.add.reduce(a, dims, np.float32, keepdims=keepdim).astype(a.dtype)
    if a.size >= large.LARGE and len(dims) == a.ndim and not keepdim and a.flags.c_contiguous:
        return large.total(a)
    return np.add.reduce(a, dims, a.dtype, keepdims=keepdim)


def _product_of_others(xp: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """For each element the product of all the others it is multiplied with: right where some are zero, too."""
    rest = tuple(d for d in range(len(x.shape)) if d not in dims)
    order = rest + dims
    moved = xp.permute(x, order)
    rows = xp.reshape(moved, (*(x.shape[d] for d in rest), count(x.shape, dims)))
    last = len(rest)
    n = rows.shape[last]
    ones = xp.narrow(rows, last, 0, 1) * 0 + 1 if n else rows
    before = xp.cumprod(xp.join([ones, xp.narrow(rows, last, 0, n - 1)], last), last) if n else rows
    mirrored = xp.flip(rows, (last,))
    after = xp.flip(xp.cumprod(xp.join([ones, xp.narrow(mirrored, last, 0, n - 1)], last), last), (last,)) if n else rows
    others = xp.reshape(before * after, moved.shape)
    return xp.permute(others, tuple(order.index(d) for d in range(len(order))))


def _to_extremes(xp: Any, g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    """To the largest (or smallest) elements, in equal shares where several are."""
    chosen = (x == as_reduced(xp, out, x.shape, dims)) | (x != x)  # one nan, and the result is nan
    share = xp.where(chosen, 1.0, xp.zeros_like(x))
    return back(xp, g, x.shape, dims) * (share / xp.sum(share, dims, True))


def _per_degree(n: int, correction: float) -> float:
    """One divided by the degrees of freedom: infinite where there are none, so that 0 of them give nan."""
    return 1 / (n - correction) if n > correction else float("inf")


def _variance(a: Any, dims: tuple[int, ...], keepdim: bool, correction: float) -> Any:
    n = count(a.shape, dims)
    centred = a - np.add.reduce(a, dims, keepdims=True) / n if n else a
    squares = (centred * centred.conj()).real if a.dtype.kind == "c" else centred * centred
    return np.add.reduce(squares, dims, keepdims=keepdim) / a.dtype.type(n - correction if n > correction else 0).real


def _log_sum_exp(a: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    if not a.size:
        return np.log(np.add.reduce(np.exp(a), dims, keepdims=keepdim))
    top = np.maximum.reduce(a.real, dims, keepdims=True)
    top = np.where(np.isfinite(top), top, np.zeros_like(top))
    out = np.log(np.add.reduce(np.exp(a - top), dims, keepdims=True)) + top
    return out if keepdim else out.reshape(tuple(n for i, n in enumerate(a.shape) if i not in dims))


def _softmax(a: Any, dim: int) -> Any:
    e = np.exp(a - np.maximum.reduce(a, dim, keepdims=True)) if a.size else a
    return e / np.add.reduce(e, dim, keepdims=True)


def _log_softmax(a: Any, dim: int) -> Any:
    if not a.size:
        return a.copy()
    shifted = a - np.maximum.reduce(a, dim, keepdims=True)
    return shifted - np.log(np.add.reduce(np.exp(shifted), dim, keepdims=True))


def _cumprod_rule(xp: Any, g: Any, x: Any, out: Any, dim: int) -> Any:
    """sum over k >= i of g[k] * out[k] / x[i]; where x has zeros, each term's product is made without x[i]."""
    if not xp.has_zero(x):
        return xp.flip(xp.cumsum(xp.flip(g * out, (dim,)), dim), (dim,)) / x
    columns = []
    n = x.shape[dim]
    for i in range(n):
        left, mine, right = xp.narrow(x, dim, 0, i), xp.narrow(x, dim, i, 1), xp.narrow(x, dim, i + 1, n - i - 1)
        others = xp.cumprod(xp.join([left, mine * 0 + 1, right], dim), dim)
        columns.append(xp.sum(xp.narrow(g * others, dim, i, n - i), (dim,), True))
    return xp.join(columns, dim)


RAW.has_zero, RECORDED.has_zero = lambda a: not a.all(), lambda x: not x._array.all()
RAW.join, RECORDED.join = lambda parts, dim: np.concatenate(parts, dim), lambda parts, dim: RECORDED.cat(parts, dim)


# ------------------------------------------------------------------------------------------------------------- functions

def _floating(x: Any, dtype: Any, name: str) -> Any:
    if dtype is not None:
        x = to_dtype(x, dtype)
    if of_array(x._array.dtype).category < FLOAT:
        raise DTypeError(f"{name}: expects a floating point tensor, got {of_array(x._array.dtype).name}", fix=f"x.float().{name}()")
    return x


def to_dtype(x: Any, dtype: Any) -> Any:
    to = as_dtype(dtype).array_type
    return x if x._array.dtype is to else cast(x, to)


def _summable(x: Any, dtype: Any) -> Any:
    if dtype is not None:
        return to_dtype(x, dtype)
    return cast(x, np.dtype("int64")) if x._array.dtype.kind in "iub" and x._array.dtype != np.dtype("int64") else x


def _named(dim: Any, keepdim: bool, axis: Any, keepdims: Any) -> tuple[Any, bool]:
    """PyTorch takes NumPy's names, too."""
    return (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The sum over all elements, or along dimensions.

    >>> import mutagrad as mg
    >>> mg.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    dim, keepdim = _named(dim, keepdim, axis, keepdims)
    input = _summable(input, dtype)
    return _out(sum_dims(input, whole_dims(dim, input._array.ndim, "sum"), keepdim), out)


def _out(result: Any, out: Any) -> Any:
    return result if out is None else RECORDED.copy_into(out, result)


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The average over all elements, or along dimensions."""
    dim, keepdim = _named(dim, keepdim, axis, keepdims)
    input = _floating(input, dtype, "mean")
    return _out(mean_dims(input, whole_dims(dim, input._array.ndim, "mean"), keepdim), out)


def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or along a dimension; its gradient is right at zeros."""
    input = _summable(input, dtype)
    return prod_dims(input, whole_dims(dim, input._array.ndim, "prod"), keepdim)


def _spread_arguments(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    if isinstance(dim, bool):  # x.var(False): unbiased, by position
        dim, unbiased = None, dim
    return dim, correction if correction is not None else (1 if unbiased is None else int(unbiased))


def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The variance; `correction` 1 (the default) divides by n - 1."""
    dim, correction = _spread_arguments(dim, unbiased, correction)
    input = _floating(input, None, "var")
    return var_dims(input, whole_dims(dim, input._array.ndim, "var"), keepdim, correction)


def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The square root of the variance; where that is zero, so is the gradient."""
    dim, correction = _spread_arguments(dim, unbiased, correction)
    input = _floating(input, None, "std")
    return std_dims(input, whole_dims(dim, input._array.ndim, "std"), keepdim, correction)


def var_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> tuple[Any, Any]:
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, None if isinstance(dim, bool) else dim, keepdim)


def std_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> tuple[Any, Any]:
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, None if isinstance(dim, bool) else dim, keepdim)


def _not_empty(x: Any, dims: tuple[int, ...], name: str) -> None:
    if not count(x._array.shape, dims):
        raise BadIndex(f"{name}: nothing to choose from in dimensions {dims} of shape {x._array.shape}", why="a size is zero",
                       fix=f"if x.numel(): x.{name}(...)")


def amax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest along dimensions; where several are, they share the gradient equally."""
    dims = whole_dims(dim, input._array.ndim, "amax")
    _not_empty(input, dims, "amax")
    return amax_dims(input, dims, keepdim)


def amin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest along dimensions; where several are, they share the gradient equally."""
    dims = whole_dims(dim, input._array.ndim, "amin")
    _not_empty(input, dims, "amin")
    return amin_dims(input, dims, keepdim)


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    return MinMax(amin(input, dim, keepdim), amax(input, dim, keepdim))


class MinMax(NamedTuple):
    min: Any
    max: Any


class Extremes(NamedTuple):
    """What `max`, `min`, `sort` and `topk` along a dimension return."""

    values: Any
    indices: Any


def _position(name: str, x: Any, dim: int | None, keepdim: bool) -> Any:
    array = x._array
    find = np.argmax if name in ("argmax", "max") else np.argmin
    if dim is None:
        _not_empty(x, tuple(range(array.ndim)), name)
        return np.asarray(find(array)).reshape((1,) * array.ndim if keepdim else ())
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        return np.zeros((), np.int64)
    _not_empty(x, (dim,), name)
    return np.asarray(find(array, dim, keepdims=keepdim))


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Where the largest is (the first of several). Integers, so without gradient, and fine as an index."""
    return make(_position("argmax", input, dim, keepdim))


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Where the smallest is (the first of several)."""
    return make(_position("argmin", input, dim, keepdim))


def _chosen(name: str, x: Any, dim: int, keepdim: bool) -> Extremes:
    where = make(_position(name, x, dim, True))
    if not x._array.ndim:
        return Extremes(RECORDED.clone(x), where)
    dim = whole_dim(dim, x._array.ndim, name)
    values = gather(x, dim, where)
    if not keepdim:
        shape = tuple(n for i, n in enumerate(x._array.shape) if i != dim)
        values, where = reshape(values, shape), reshape(where, shape)
    return Extremes(values, where)


def _extreme(name: str, whole: Any, pairwise: Any, x: Any, arguments: tuple[Any, ...], dim: Any, keepdim: bool) -> Any:
    if arguments and not isinstance(arguments[0], int):
        return pairwise(x, *arguments)
    if arguments:
        dim, keepdim = arguments[0], (arguments[1] if len(arguments) > 1 else keepdim)
    return whole(x) if dim is None else _chosen(name, x, dim, keepdim)


def max(input: Any, *arguments: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """The largest of all; `max(dim)` gives values and indices; `max(other)` is `maximum`.

    >>> import mutagrad as mg
    >>> mg.tensor([[1., 4.], [3., 2.]]).max(dim=1).indices
    tensor([1, 0])
    """
    return _extreme("max", amax, RECORDED.maximum, input, arguments if other is None else (other,), dim, keepdim)


def min(input: Any, *arguments: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """The smallest of all; `min(dim)` gives values and indices; `min(other)` is `minimum`."""
    return _extreme("min", amin, RECORDED.minimum, input, arguments if other is None else (other,), dim, keepdim)


def _truth(function: Any, name: str, x: Any, dim: Any, keepdim: bool) -> Any:
    """Booleans; bytes for bytes, which were PyTorch's booleans once."""
    found = np.asarray(function(x._array, whole_dims(dim, x._array.ndim, name), keepdims=keepdim))
    return make(found.astype(np.uint8) if x._array.dtype == np.uint8 else found)


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element is nonzero."""
    return _truth(np.any, "any", input, dim, keepdim)


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether every element is nonzero."""
    return _truth(np.all, "all", input, dim, keepdim)


def count_nonzero(input: Any, dim: Any = None) -> Any:
    return make(np.asarray(np.count_nonzero(input._array, axis=whole_dims(dim, input._array.ndim, "count_nonzero"))))


def _running(operation: Any, name: str, x: Any, dim: int, dtype: Any) -> Any:
    x = _summable(x, dtype)
    dim = whole_dim(dim, x._array.ndim, name)
    return operation(x, dim) if x._array.ndim else RECORDED.clone(x)


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sums along a dimension."""
    return _running(cumsum_dim, "cumsum", input, dim, dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running products along a dimension; their gradient is right at zeros."""
    return _running(cumprod_dim, "cumprod", input, dim, dtype)


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(x))) along dimensions, without overflow."""
    input = input if input._array.dtype.kind in "fc" else RECORDED.add(input, 0.0)
    return logsumexp_dims(input, whole_dims(dim, input._array.ndim, "logsumexp"), keepdim)


def _normalised(operation: Any, name: str, x: Any, dim: int, dtype: Any) -> Any:
    x = _floating(x, dtype, name)
    dim = whole_dim(dim, x._array.ndim, name)
    return operation(x, dim) if x._array.ndim else reshape(operation(reshape(x, 1), dim), ())


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """exp(x) normalised to sum to one along a dimension."""
    return _normalised(softmax_dim, "softmax", input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax, without underflow."""
    return _normalised(log_softmax_dim, "log_softmax", input, dim, dtype)


norm2_dims = primitive("norm2", _in_single(lambda a, dims, keepdim: np.sqrt(np.add.reduce((a * a.conj()).real, dims, keepdims=keepdim))),
                       settings=_SETTINGS, x=lambda xp, g, x, out, dims: x * back(xp, xp.where(out == 0, 0.0, g / out), x.shape, dims))


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The p-norm of all elements, or along dimensions; at zero its gradient is zero."""
    input = _floating(input, dtype, "norm")
    dims = whole_dims(dim, input._array.ndim, "norm")
    if p in ("fro", None) or p == 2:
        return norm2_dims(input, dims, keepdim)
    if isinstance(p, str):
        raise NotSupported(f"norm: p={p!r} is not supported", why="known are 'fro' and numbers, inf included", fix="x.norm(p=2)")
    size = abs_(input)
    if p == float("inf"):
        return amax_dims(size, dims, keepdim)
    if p == float("-inf"):
        return amin_dims(size, dims, keepdim)
    if p == 0:
        return sum_dims(RECORDED.sign(size), dims, keepdim)
    if p == 1:
        return sum_dims(size, dims, keepdim)
    total = sum_dims(pow_values(size, float(p)), dims, keepdim)
    safe = RECORDED.where(total == 0, 1.0, total)  # at zero the root has no slope to follow
    return RECORDED.where(total == 0, 0.0, pow_values(safe, 1 / float(p)))


def dist(input: Any, other: Any, p: float = 2) -> Any:
    return norm(input - other, p)


