"""Reductions that few programs use: without what is nan, medians, quantiles, covariance."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arrays import np
from ...arrays.compiled import reductions as compiled
from ...arrays.counting import count_true
from ...arrays.kinds import anywhere, extremes, is_plain
from ...arrays.numpy import choose
from ...base import return_types
from ...base.errors import BadArgument, BadIndex, BadValue, DTypeError, ShapeError, bad_choice, may_need_much
from ...base.operands import Array, kind_name
from ...core.codegen import primitive
from ...core.dtypes import dtype, of_array
from ...core.factory import make
from ...core.number import whole_number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.size import sizes
from ...core.storage import TensorBase
from ..linalg.products import matmul
from ..math.elementwise import cast, lerp, where
from ..select.selecting import gather
from ..select.sorting import order, place_in_order, sort
from ..shape.shape import (
    Dims,
    expand,
    flatten,
    movedim,
    reshape,
    squeeze,
    tensor_argument,
    unsqueeze,
    whole_dim,
    whole_dims,
)
from .reductions import (
    floating,
    in_single,
    mean,
    not_empty,
    numpy_names,
    ordered,
    pick,
    sum as total,
    sum_dims,
    summable,
    to_extremes,
)
from .rows import back

FUNCTIONS = "nansum nanmean median nanmedian mode quantile nanquantile kthvalue cov corrcoef"
METHODS = "nansum nanmean median nanmedian mode quantile nanquantile kthvalue cov corrcoef sum_to_size"

# -------------------------------------------------------------------------------------------------- without what is nan

def _nansum(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if a.dtype.char in "fd" and (found := compiled.reduce("not nan", a, dims, keepdim)) is not None:
        return found.astype(a.dtype, copy=False)
    return RAW.sum(choose(a == a, a, a.dtype.type(0)), dims, keepdim)


nansum_dims = primitive("nansum", _nansum, settings=("dims", "keepdim"),
                        x=lambda xp, g, x, dims: xp.where(x == x, back(xp, g, x.shape, dims), 0.0))


def nansum(input: TensorBase, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None, axis: Dims = None,
           keepdims: bool | None = None, out: TensorBase | None = None) -> Any:
    """Return the sum of what is not nan.

    >>> import mutagrad as mg
    >>> mg.tensor([1., float("nan"), 2.]).nansum()
    tensor(3.)
    """
    dim, keepdim = numpy_names("nansum", dim, keepdim, axis, keepdims)
    if tensor_argument(input, "nansum")._array.dtype.kind == "c":
        raise DTypeError("nansum: not defined for complex numbers", fix="x.sum()")
    input = summable(input, dtype, "nansum")
    dims = whole_dims(dim, input._array.ndim, "nansum")
    operation = nansum_dims if input._array.dtype.kind in "fV" else sum_dims
    return write_out("nansum", operation(input, dims, keepdim), out)


def nanmean(input: TensorBase, dim: Dims = None, keepdim: bool = False, *, dtype: dtype | None = None,
            axis: Dims = None, keepdims: bool | None = None, out: TensorBase | None = None) -> Any:
    """Return the average of what is not nan.

    >>> import mutagrad as mg
    >>> mg.nanmean(mg.tensor([1., float("nan"), 3.]))
    tensor(2.)
    """
    floating(input, None, "nanmean")
    dim, keepdim = numpy_names("nanmean", dim, keepdim, axis, keepdims)
    dims = whole_dims(dim, input._array.ndim, "nanmean")
    return write_out("nanmean", _nanmean(summable(input, dtype, "nanmean"), dims, keepdim), out)


@may_need_much
@in_single
def _nanmean(x: TensorBase, dims: tuple[int, ...], keepdim: bool) -> Any:
    count = compiled.reduce("numbers", x._array, dims, keepdim)
    if count is None:
        present = ~np.isnan(x._array)
        count = count_true(present, dims, keepdim)
        count = np.add.reduce(present, dims, np.int64, keepdims=keepdim) if count is None else count
    return nansum(x, dims, keepdim) / make(np.asarray(count))


# -------------------------------------------------------------------------------------------- medians, modes, quantiles

median_all = primitive("median", lambda a, dims: a.reshape(-1)[_median_place(a.reshape(1, -1), False)[0, 0]],
                       settings=("dims",),
                       x=lambda xp, g, x, out, dims: to_extremes(xp, g, x, out, dims))
nanmedian_all = primitive("nanmedian", lambda a, dims: a.reshape(-1)[_median_place(a.reshape(1, -1), True)[0, 0]],
                          settings=("dims",),
                          x=lambda xp, g, x, out, dims: to_extremes(xp, g, x, out, dims))


def _median_place(rows: Array, ignore_nan: bool) -> Any:
    """Where in each row the lower median is: nan counts as the largest and, unless ignored, is the median."""
    n = rows.shape[-1]
    middle = np.full((*rows.shape[:-1], 1), (n - 1) // 2)
    if rows.dtype.kind in "fV":
        missing = np.isnan(rows).sum(-1, keepdims=True)
        if is_plain(rows) and not missing.any():
            return _places_in_rows(rows, (n - 1) // 2)
        if is_plain(rows) and len(rows) == 1 and (not ignore_nan or missing.item() < n):
            if not ignore_nan:
                return np.isnan(rows).argmax(-1, keepdims=True)
            numbers = np.flatnonzero(rows[0] == rows[0])
            return numbers[_places_in_rows(rows[:, numbers], (numbers.size - 1) // 2)]
        middle = np.maximum(n - missing - 1, 0) // 2 if ignore_nan else np.where(missing > 0, n - missing, middle)
    return np.take_along_axis(order(rows, -1), middle, -1)


def _places_in_rows(rows: Array, k: int) -> Any:
    return place_in_order(rows.reshape(-1, rows.shape[-1]), k).reshape((*rows.shape[:-1], 1))


def _median(name: str, whole: Callable[..., TensorBase], ignore_nan: bool, x: TensorBase, dim: int | None,
            keepdim: bool, axis: int | None, keepdims: bool | None,
            out: TensorBase | Sequence[TensorBase] | None) -> Any:
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    array = ordered(x, name)
    if dim is None and not array.size:  # what PyTorch gives for the median of nothing
        nothing = np.nan if array.dtype.kind in "fV" else np.iinfo(array.dtype).min
        return write_out(name, make(np.array(nothing, array.dtype)), out)
    if dim is None:
        return write_out(name, whole(x, tuple(range(array.ndim))), out)
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        return write_out(name, pick(getattr(return_types, name), x, dim, np.zeros((), np.int64), keepdim), out)
    not_empty(x, (dim,), name)
    where_ = np.moveaxis(_median_place(np.moveaxis(array, dim, -1), ignore_nan), -1, dim)
    return write_out(name, pick(getattr(return_types, name), x, dim, where_, keepdim), out)


def median(input: TensorBase, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None,
           keepdims: bool | None = None, out: TensorBase | Sequence[TensorBase] | None = None) -> Any:
    """Return the middle element, the lower of two; `median(dim)` gives values and indices.

    >>> import mutagrad as mg
    >>> mg.tensor([3., 1., 2., 4.]).median()
    tensor(2.)
    """
    return _median("median", median_all, False, input, dim, keepdim, axis, keepdims, out)


def nanmedian(input: TensorBase, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None,
              keepdims: bool | None = None, out: TensorBase | Sequence[TensorBase] | None = None) -> Any:
    """Return the median of what is not nan.

    >>> import mutagrad as mg
    >>> mg.nanmedian(mg.tensor([1., float("nan"), 3.]))
    tensor(1.)
    """
    return _median("nanmedian", nanmedian_all, True, input, dim, keepdim, axis, keepdims, out)


@may_need_much
def _row_places(name: str, x: TensorBase, dim: int, keepdim: bool, axis: int | None, keepdims: bool | None,
                find: Callable[[Array], Array]) -> Any:
    """The values at one place of each row, which `find` names for the rows of a matrix."""
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    array = ordered(x, name)
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        return pick(getattr(return_types, name), x, dim, find(array.reshape(1, 1)).reshape(()), keepdim)
    not_empty(x, (dim,), name)
    rows = np.moveaxis(array, dim, -1)
    places = find(rows.reshape(-1, rows.shape[-1])).reshape((*rows.shape[:-1], 1))
    return pick(getattr(return_types, name), x, dim, np.moveaxis(places, -1, dim), keepdim)


def mode(input: TensorBase, dim: int = -1, keepdim: bool = False, *, axis: int | None = None,
         keepdims: bool | None = None, out: Sequence[TensorBase] | None = None) -> Any:
    """Return the most frequent value along a dimension, the smallest of several, and where it is last.

    >>> import mutagrad as mg
    >>> values, indices = mg.mode(mg.tensor([1, 2, 2, 3]))
    >>> values, indices
    (tensor(2), tensor(2))
    """
    return write_out("mode", _row_places("mode", input, dim, keepdim, axis, keepdims, _most_frequent), out)


def _most_frequent(rows: Array) -> Any:
    places = order(rows, -1)
    ordered = np.take_along_axis(rows, places, -1)
    n = rows.shape[-1]
    new = np.concatenate([np.ones((len(rows), 1), bool), ordered[:, 1:] != ordered[:, :-1]], -1)
    start = np.maximum.accumulate(np.where(new, np.arange(n), 0), -1)
    last = np.argmax(np.arange(n) - start, -1)  # the longest run, counted at its end; argmax takes the first of several
    return np.take_along_axis(places, last[:, None], -1)


def kthvalue(input: TensorBase, k: int, dim: int = -1, keepdim: bool = False, *, axis: int | None = None,
             keepdims: bool | None = None, out: Sequence[TensorBase] | None = None) -> Any:
    """Return the k-th smallest along a dimension, counted from one, and where it is.

    >>> import mutagrad as mg
    >>> value, index = mg.kthvalue(mg.tensor([3., 1., 2.]), 2)
    >>> value, index
    (tensor(2.), tensor(2))
    """
    k = whole_number(k, "kthvalue", "k")
    shape = tensor_argument(input, "kthvalue")._array.shape
    n = shape[whole_dim(dim if axis is None else axis, len(shape), "kthvalue")] if shape else 1
    if not 1 <= k <= n:
        raise BadIndex(f"kthvalue: k={k} is out of range for a dimension of size {n}", fix=f"k from 1 to {n}")
    found = _row_places("kthvalue", input, dim, keepdim, axis, keepdims, lambda rows: place_in_order(rows, k - 1))
    return write_out("kthvalue", found, out)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, x: TensorBase, q: TensorBase | float, dim: int | None, keepdim: bool, interpolation: str,
              ignore_nan: bool) -> Any:
    q = _check_quantile(name, x, q, interpolation)
    ndim = x._array.ndim
    whole = dim is None
    place = 0 if whole else whole_dim(dim, ndim, name)
    rows = flatten(x) if whole or not ndim else movedim(x, place, -1)
    ordered = sort(rows, -1).values
    n = ordered._array.shape[-1]
    ranks = expand(reshape(q, -1), *ordered._array.shape[:-1], q._array.size)
    missing = np.isnan(ordered._array).sum(-1, keepdims=True)
    if ignore_nan:
        ranks = ranks * make(np.maximum(n - 1 - missing, 0).astype(q._array.dtype))
    else:
        has_nan = make(np.broadcast_to(missing > 0, ranks._array.shape).copy())
        ranks = where(has_nan, float(n - 1), ranks * (n - 1))  # where nan is
    result = _between(ordered, ranks, interpolation)
    kept = (1,) * ndim if whole else tuple(1 if d == place else size for d, size in enumerate(x._array.shape))
    shape = kept if keepdim else () if whole else tuple(size for d, size in enumerate(x._array.shape) if d != place)
    if not q._array.ndim:
        return reshape(result, shape)
    return reshape(movedim(result, -1, 0), q._array.size, *shape)


def _between(ordered: TensorBase, ranks: TensorBase, interpolation: str) -> Any:
    """Elements of sorted rows at places that may lie between two."""
    r = ranks._array
    low = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}.get(interpolation, np.floor)(r)
    below = gather(ordered, -1, make(low.astype(np.int64)))
    if interpolation not in ("linear", "midpoint"):
        return below
    weight = ranks - make(low) if interpolation == "linear" else make(np.full(r.shape, 0.5, r.dtype))
    return lerp(below, gather(ordered, -1, make(np.ceil(r).astype(np.int64))), weight)


def _check_quantile(name: str, x: TensorBase, q: TensorBase | float, interpolation: str) -> TensorBase:
    if interpolation not in _INTERPOLATIONS:
        raise bad_choice(interpolation, str,
                         f"{name}: interpolation={interpolation!r} is none of {', '.join(_INTERPOLATIONS)}",
                         fix="interpolation='linear'")
    array = tensor_argument(x, name)._array
    if array.dtype.char not in "fd":
        raise BadValue(f"{name}() input tensor must be either float or double dtype, got {of_array(array.dtype).name}",
                       fix=f"x.float().{name}(q)")
    if not array.size:
        raise BadValue(f"{name}: nothing to choose from in shape {array.shape}", fix=f"if x.numel(): x.{name}(q)")
    if isinstance(q, bool) or not isinstance(q, (int, float, TensorBase)):
        raise BadArgument(f"{name}: q must be a number or a tensor, not {kind_name(q)}",
                          fix=f"x.{name}(mutagrad.tensor([0.25, 0.75]))")
    q = q if isinstance(q, TensorBase) else make(np.array(q, array.dtype))
    if q._array.ndim > 1 or q._array.dtype != array.dtype:
        raise BadValue(f"{name}: q must be a number or a vector of x's type, "
                       f"not {of_array(q._array.dtype).name} of shape {q._array.shape}", fix="q.flatten().to(x.dtype)")
    if anywhere(~((q._array >= 0) & (q._array <= 1))):
        raise BadValue(f"{name}() q values must be in the range [0, 1]", why=f"got {q._array.tolist()}",
                       fix=f"x.{name}(0.5)")
    return q


def quantile(input: TensorBase, q: TensorBase | float, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear", axis: int | None = None, keepdims: bool | None = None,
             out: TensorBase | None = None) -> Any:
    """Return what a fraction q of the elements lies below; a vector q gives a first dimension with a result for each.

    >>> import mutagrad as mg
    >>> mg.tensor([0., 1., 2., 3., 4.]).quantile(0.25)
    tensor(1.)
    """
    dim, keepdim = numpy_names("quantile", dim, keepdim, axis, keepdims)
    return write_out("quantile", _quantile("quantile", input, q, dim, keepdim, interpolation, False), out)


def nanquantile(input: TensorBase, q: TensorBase | float, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear", axis: int | None = None, keepdims: bool | None = None,
                out: TensorBase | None = None) -> Any:
    """Return the quantile of what is not nan.

    >>> import mutagrad as mg
    >>> mg.nanquantile(mg.tensor([1., float("nan"), 3.]), 0.5)
    tensor(2.)
    """
    dim, keepdim = numpy_names("nanquantile", dim, keepdim, axis, keepdims)
    return write_out("nanquantile", _quantile("nanquantile", input, q, dim, keepdim, interpolation, True), out)


# ----------------------------------------------------------------------------------------------------------- covariance

def cov(input: TensorBase, *, correction: int = 1, fweights: TensorBase | None = None,
        aweights: TensorBase | None = None) -> Any:
    """Return the covariance of variables in rows, with an observation in each column.

    >>> import mutagrad as mg
    >>> mg.cov(mg.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    correction = whole_number(correction, "cov", "correction")
    shape = tensor_argument(input, "cov")._array.shape
    if len(shape) > 2:
        raise ShapeError(f"cov: expects at most 2 dimensions, got shape {shape}", fix="x.flatten(1)")
    if input._array.dtype.kind == "b":
        raise DTypeError("cov: booleans have no covariance", fix="mutagrad.cov(x.float())")
    x = reshape(input, 1, -1) if len(shape) < 2 else input
    n = x._array.shape[1]
    frequency, importance = _weights("fweights", fweights, "iu", n), _weights("aweights", aweights, "fV", n)
    return _covariance(x if x._array.dtype.kind in "fcV" else x * 1.0, frequency, importance, correction)


@in_single
def _covariance(x: TensorBase, frequency: TensorBase | None, importance: TensorBase | None, correction: int) -> Any:
    n = x._array.shape[1]
    w = frequency if importance is None else importance if frequency is None else frequency * importance
    if w is None:
        centred, degrees = x - (mean(x, 1, True) if n else 0), make(np.array(n - correction, x._array.real.dtype))
    else:
        weight = total(w)
        if n and anywhere(weight._array == 0):
            raise BadValue("cov: the weights sum to zero, so that nothing is left to average",
                           fix="weights that are not all zero")
        centred = x - total(x * w, 1, True) / weight
        if importance is not None and correction:
            degrees = weight - correction * (total(w * importance) / weight)
        else:
            degrees = weight - correction
    other = centred if w is None else centred * w
    products = matmul(other, RECORDED.conj(centred).T)
    degrees = RECORDED.where(degrees > 0, degrees, 0.0)
    return squeeze(products / degrees)


def _weights(name: str, weights: TensorBase | None, kind: str, n: int) -> Any:
    if weights is None:
        return None
    array = tensor_argument(weights, "cov")._array
    if array.ndim > 1 or array.dtype.kind not in kind or array.size != n:
        raise BadValue(f"cov: {name} must be a vector of {n} {'integers' if kind == 'iu' else 'floats'}, "
                       f"not {array.dtype.name} of shape {array.shape}",
                       fix=f"a weight for each of the {n} observations")
    if array.size and (smallest := extremes(array)[0]) < 0:
        raise BadValue(f"cov: {name} must not be negative", why=f"the smallest is {smallest}", fix=f"{name}.abs()")
    return reshape(weights, -1)


def corrcoef(input: TensorBase) -> Any:
    """Return the correlation of variables in rows, with an observation in each column.

    >>> import mutagrad as mg
    >>> mg.corrcoef(mg.tensor([[1., 2., 3.], [3., 2., 1.]])).round()
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if tensor_argument(input, "corrcoef")._array.ndim > 2:
        raise ShapeError(f"corrcoef: expects at most 2 dimensions, got shape {input._array.shape}", fix="x.flatten(1)")
    c = cov(input)
    if not c._array.ndim:
        return c / c
    variance = c.diagonal()
    spread = RECORDED.sqrt(cast(variance, c._array.real.dtype))
    c = c / unsqueeze(spread, 1) / spread
    return c.clamp(-1, 1) if c._array.dtype.kind in "fV" else c


def sum_to_size(input: TensorBase, *size: int | Sequence[int]) -> Any:
    """Sum over the dimensions that broadcasting to the tensor's shape would have repeated.

    >>> import mutagrad as mg
    >>> mg.ones(2, 3).sum_to_size(2, 1)
    tensor([[3.],
            [3.]])
    """
    shape, wanted = tensor_argument(input, "sum_to_size")._array.shape, sizes(size)
    lead = len(shape) - len(wanted)
    if lead < 0 or any(n not in (m, 1) for m, n in zip(shape[lead:], wanted)):
        raise ShapeError(f"sum_to_size: shape {shape} cannot be summed to {wanted}",
                         why="each size must be equal or 1, counted from the right", fix="x.sum(dim)")
    dims = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(wanted) if n == 1 != shape[i + lead])
    return reshape(total(input, dims, True), *wanted) if dims or not wanted else input
