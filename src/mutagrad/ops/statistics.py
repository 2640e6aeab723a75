"""Reductions that few programs use: medians, quantiles, running extremes, covariance."""
from __future__ import annotations

from typing import Any

from .. import return_types
from ..backends import np
from ..call import primitive
from ..construct import make
from ..dtypes import get_default_dtype, of_array
from ..errors import BadArgument, BadIndex, BadValue, DTypeError, ShapeError
from ..op import RAW, RECORDED
from ..promote import operand_dtype
from ..storage import TensorBase
from .elementwise import cast, lerp, logical_xor, where
from .indexing import copy_
from .linalg import matmul
from .outs import write_out
from .reduce import back, cumsum, mean, norm, not_empty, numpy_names, pick, sum_dims, summable, to_extremes
from .reduce import sum as total
from .selecting import gather
from .shape import cat, clone, expand, flatten, movedim, narrow, reshape, sizes, squeeze, tensor_argument, unsqueeze, whole_dim, whole_dims
from .sorting import order, sort, whole_number

# --------------------------------------------------------------------------------------------------- without what is nan

nansum_dims = primitive("nansum", lambda a, dims, keepdim: np.add.reduce(np.where(np.isnan(a), a.dtype.type(0), a), dims, a.dtype, keepdims=keepdim),
                        settings=("dims", "keepdim"), x=lambda xp, g, x, dims: xp.where(x == x, back(xp, g, x.shape, dims), 0.0))


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The sum of what is not nan.

    >>> import mutagrad as mg
    >>> mg.tensor([1., float("nan"), 2.]).nansum()
    tensor(3.)
    """
    dim, keepdim = numpy_names("nansum", dim, keepdim, axis, keepdims)
    if tensor_argument(input, "nansum")._array.dtype.kind == "c":
        raise DTypeError("nansum: not defined for complex numbers", fix="x.sum()")
    input = summable(input, dtype, "nansum")
    dims = whole_dims(dim, input._array.ndim, "nansum")
    return write_out("nansum", (nansum_dims if input._array.dtype.kind in "fV" else sum_dims)(input, dims, keepdim), out)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The average of what is not nan."""
    _needs_float(input, "nanmean")
    dim, keepdim = numpy_names("nanmean", dim, keepdim, axis, keepdims)
    total = nansum(input, dim, keepdim, dtype=dtype)
    dims = whole_dims(dim, input._array.ndim, "nanmean")
    count = np.add.reduce(~np.isnan(input._array), dims, np.int64, keepdims=keepdim)
    return write_out("nanmean", total / make(np.asarray(count)), out)


def _needs_float(x: Any, name: str) -> Any:
    if tensor_argument(x, name)._array.dtype.kind not in "fcV":
        raise DTypeError(f"{name}: expects a floating point tensor, got {of_array(x._array.dtype).name}", fix=f"x.float().{name}()")
    return x


# ---------------------------------------------------------------------------------------------- medians, modes, quantiles

median_all = primitive("median", lambda a, dims: a.reshape(-1)[_median_place(a.reshape(1, -1), False)[0, 0]], settings=("dims",),
                       x=lambda xp, g, x, out, dims: to_extremes(xp, g, x, out, dims))
nanmedian_all = primitive("nanmedian", lambda a, dims: a.reshape(-1)[_median_place(a.reshape(1, -1), True)[0, 0]], settings=("dims",),
                          x=lambda xp, g, x, out, dims: to_extremes(xp, g, x, out, dims))


def _median_place(rows: Any, ignore_nan: bool) -> Any:
    """Where in each row the lower median is: nan counts as the largest, and unless ignored one of them is the median."""
    n = rows.shape[-1]
    middle = np.full((*rows.shape[:-1], 1), (n - 1) // 2)
    if rows.dtype.kind in "fV":
        missing = np.isnan(rows).sum(-1, keepdims=True)
        middle = np.maximum(n - missing - 1, 0) // 2 if ignore_nan else np.where(missing > 0, n - missing, middle)
    return np.take_along_axis(order(rows, -1), middle, -1)


def _median(name: str, whole: Any, ignore_nan: bool, x: Any, dim: Any, keepdim: bool, axis: Any, keepdims: Any, out: Any) -> Any:
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    array = _real(x, name)._array
    if dim is None and not array.size:  # what PyTorch gives for the median of nothing
        return write_out(name, make(np.array(np.nan if array.dtype.kind in "fV" else np.iinfo(array.dtype).min, array.dtype)), out)
    if dim is None:
        return write_out(name, whole(x, tuple(range(array.ndim))), out)
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        return write_out(name, pick(getattr(return_types, name), x, dim, np.zeros((), np.int64), keepdim), out)
    not_empty(x, (dim,), name)
    where_ = np.moveaxis(_median_place(np.moveaxis(array, dim, -1), ignore_nan), -1, dim)
    return write_out(name, pick(getattr(return_types, name), x, dim, where_, keepdim), out)


def _real(x: Any, name: str) -> Any:
    if tensor_argument(x, name)._array.dtype.kind == "c":
        raise DTypeError(f"{name}: complex numbers have no order", fix=f"x.abs().{name}()")
    return x


def median(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The middle element, the lower of two; `median(dim)` gives values and indices.

    >>> import mutagrad as mg
    >>> mg.tensor([3., 1., 2., 4.]).median()
    tensor(2.)
    """
    return _median("median", median_all, False, input, dim, keepdim, axis, keepdims, out)


def nanmedian(input: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The median of what is not nan."""
    return _median("nanmedian", nanmedian_all, True, input, dim, keepdim, axis, keepdims, out)


def _row_places(name: str, x: Any, dim: Any, keepdim: bool, axis: Any, keepdims: Any, find: Any) -> Any:
    """The values at one place of each row, which `find` names for the rows of a matrix."""
    dim, keepdim = numpy_names(name, dim, keepdim, axis, keepdims)
    array = _real(x, name)._array
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        return pick(getattr(return_types, name), x, dim, find(array.reshape(1, 1)).reshape(()), keepdim)
    not_empty(x, (dim,), name)
    rows = np.moveaxis(array, dim, -1)
    places = find(rows.reshape(-1, rows.shape[-1])).reshape((*rows.shape[:-1], 1))
    return pick(getattr(return_types, name), x, dim, np.moveaxis(places, -1, dim), keepdim)


def mode(input: Any, dim: Any = -1, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The most frequent value along a dimension, the smallest of several, and where it is last."""
    return write_out("mode", _row_places("mode", input, dim, keepdim, axis, keepdims, _most_frequent), out)


def _most_frequent(rows: Any) -> Any:
    places = order(rows, -1)
    ordered = np.take_along_axis(rows, places, -1)
    n = rows.shape[-1]
    new = np.concatenate([np.ones((len(rows), 1), bool), ordered[:, 1:] != ordered[:, :-1]], -1)
    start = np.maximum.accumulate(np.where(new, np.arange(n), 0), -1)
    last = np.argmax(np.arange(n) - start, -1)  # the longest run, counted at its end; argmax takes the first of several
    return np.take_along_axis(places, last[:, None], -1)


def kthvalue(input: Any, k: int, dim: Any = -1, keepdim: bool = False, *, axis: Any = None, keepdims: Any = None, out: Any = None) -> Any:
    """The k-th smallest along a dimension, counted from one, and where it is."""
    k = whole_number(k, "kthvalue", "k")
    shape = tensor_argument(input, "kthvalue")._array.shape
    n = shape[whole_dim(dim if axis is None else axis, len(shape), "kthvalue")] if shape else 1
    if not 1 <= k <= n:
        raise BadIndex(f"kthvalue: k={k} is out of range for a dimension of size {n}", fix=f"k from 1 to {n}")
    return write_out("kthvalue", _row_places("kthvalue", input, dim, keepdim, axis, keepdims, lambda rows: order(rows, -1)[:, k - 1]), out)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, x: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool) -> Any:
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
        ranks = where(make(np.broadcast_to(missing > 0, ranks._array.shape).copy()), float(n - 1), ranks * (n - 1))  # where nan is
    result = _between(ordered, ranks, interpolation)
    kept = (1,) * ndim if whole else tuple(1 if d == place else size for d, size in enumerate(x._array.shape))
    shape = kept if keepdim else () if whole else tuple(size for d, size in enumerate(x._array.shape) if d != place)
    if not q._array.ndim:
        return reshape(result, shape)
    return reshape(movedim(result, -1, 0), q._array.size, *shape)


def _between(ordered: Any, ranks: Any, interpolation: str) -> Any:
    """Elements of sorted rows at places that may lie between two."""
    r = ranks._array
    low = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}.get(interpolation, np.floor)(r)
    below = gather(ordered, -1, make(low.astype(np.int64)))
    if interpolation not in ("linear", "midpoint"):
        return below
    weight = ranks - make(low) if interpolation == "linear" else make(np.full_like(r, 0.5))
    return lerp(below, gather(ordered, -1, make(np.ceil(r).astype(np.int64))), weight)


def _check_quantile(name: str, x: Any, q: Any, interpolation: str) -> Any:
    if interpolation not in _INTERPOLATIONS:
        raise BadValue(f"{name}: interpolation={interpolation!r} is none of {', '.join(_INTERPOLATIONS)}", fix="interpolation='linear'")
    array = tensor_argument(x, name)._array
    if array.dtype.char not in "fd":
        raise BadValue(f"{name}: expects a float32 or float64 tensor, got {of_array(array.dtype).name}", fix=f"x.float().{name}(q)")
    if not array.size:
        raise BadValue(f"{name}: nothing to choose from in shape {array.shape}", fix=f"if x.numel(): x.{name}(q)")
    if isinstance(q, bool) or not isinstance(q, (int, float, TensorBase)):
        raise BadArgument(f"{name}: q must be a number or a tensor, not {type(q).__name__}", fix=f"x.{name}(mutagrad.tensor([0.25, 0.75]))")
    q = q if isinstance(q, TensorBase) else make(np.array(q, array.dtype))
    if q._array.ndim > 1 or q._array.dtype != array.dtype:
        raise BadValue(f"{name}: q must be a number or a vector of x's type, not {of_array(q._array.dtype).name} of shape {q._array.shape}",
                       fix="q.flatten().to(x.dtype)")
    if not ((q._array >= 0) & (q._array <= 1)).all():
        raise BadValue(f"{name}: q must be between 0 and 1", why=f"got {q._array.tolist()}", fix=f"x.{name}(0.5)")
    return q


def quantile(input: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear", axis: Any = None, keepdims: Any = None,
             out: Any = None) -> Any:
    """What a fraction q of the elements lies below; a vector q gives a first dimension with a result for each.

    >>> import mutagrad as mg
    >>> mg.tensor([0., 1., 2., 3., 4.]).quantile(0.25)
    tensor(1.)
    """
    dim, keepdim = numpy_names("quantile", dim, keepdim, axis, keepdims)
    return write_out("quantile", _quantile("quantile", input, q, dim, keepdim, interpolation, False), out)


def nanquantile(input: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear", axis: Any = None,
                keepdims: Any = None, out: Any = None) -> Any:
    """The quantile of what is not nan."""
    dim, keepdim = numpy_names("nanquantile", dim, keepdim, axis, keepdims)
    return write_out("nanquantile", _quantile("nanquantile", input, q, dim, keepdim, interpolation, True), out)


# --------------------------------------------------------------------------------------------------- running along a dimension

def _running_extreme(name: str, extreme: Any, x: Any, dim: Any, out: Any) -> Any:
    """The largest (or smallest) so far and where it is; of equal ones the latest, and nan is larger and smaller than all."""
    array, kind = _real(x, name)._array, getattr(return_types, name)
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        found = kind(clone(x), make(np.zeros((), np.int64)))
    else:
        n = array.shape[dim]
        steps = np.arange(n).reshape((-1,) + (1,) * (array.ndim - 1 - dim))
        new = (array == extreme.accumulate(array, dim)) | (array != array)
        indices = make(np.maximum.accumulate(np.where(new, steps, 0), dim) if array.size else np.zeros(array.shape, np.int64))
        found = kind(gather(x, dim, indices) if array.size else clone(x), indices)
    return write_out(name, found, out)


def cummax(input: Any, dim: Any = None, *, axis: Any = None, out: Any = None) -> Any:
    """The largest so far along a dimension, and where it is."""
    return _running_extreme("cummax", np.maximum, input, dim if axis is None else axis, out)


def cummin(input: Any, dim: Any = None, *, axis: Any = None, out: Any = None) -> Any:
    """The smallest so far along a dimension, and where it is."""
    return _running_extreme("cummin", np.minimum, input, dim if axis is None else axis, out)


def _logcumsumexp(a: Any, dim: int) -> Any:
    if a.dtype.kind == "f":
        return np.logaddexp.accumulate(a.astype(np.float32) if a.dtype.char == "e" else a, dim).astype(a.dtype)
    out = np.moveaxis(a, dim, 0).copy()
    for i in range(1, len(out)):
        swap = out[i].real > out[i - 1].real
        high, low = np.where(swap, out[i], out[i - 1]), np.where(swap, out[i - 1], out[i])
        out[i] = high + np.log1p(np.exp(low - high))
    return np.moveaxis(out, 0, dim)


def _reversed(xp: Any, operation: Any, x: Any, dim: int) -> Any:
    return xp.flip(operation(xp.flip(x, (dim,)), dim), (dim,))


def _logcumsumexp_rule(xp: Any, g: Any, x: Any, out: Any, dim: int) -> Any:
    """sum over k >= i of g[k] * exp(x[i] - out[k]).

    Relative to the row's largest where that cannot overflow; else in logarithms, separately for g above and below zero.
    """
    top = xp.top_in_range(out, dim)
    if top is not None:
        return xp.exp(x - top) * _reversed(xp, xp.cumsum, g * xp.exp(top - out), dim)

    def part(positive: Any, size: Any) -> Any:
        logarithm = xp.where(positive, xp.log(xp.where(positive, size, 1.0)), -1e30)
        return xp.exp(_reversed(xp, xp.logcumsumexp, logarithm - out, dim) + x)

    return part(g > 0, g) - part(g < 0, -g)


def _top_in_range(a: Any, dim: int) -> Any | None:
    """The largest of each row; None if exp of the distance to the smallest would overflow."""
    if not a.size:
        return a
    top = np.maximum.reduce(a.real, dim, keepdims=True)
    most = np.log(np.finfo(a.dtype).max) / 2
    return top if a.dtype.kind == "c" or np.max(top - np.minimum.reduce(a, dim, keepdims=True)) < most else None


def _constant_top(x: Any, dim: int) -> Any | None:
    top = _top_in_range(x._array, dim)
    return None if top is None else make(top)


RAW.top_in_range, RECORDED.top_in_range = _top_in_range, _constant_top

logcumsumexp_dim = primitive("logcumsumexp", _logcumsumexp, settings=("dim",),
                             x=lambda xp, g, x, out, dim: _logcumsumexp_rule(xp, g, x, out, dim))


def logcumsumexp(input: Any, dim: Any = None, *, axis: Any = None, out: Any = None) -> Any:
    """Running log(sum(exp(x))) along a dimension, without overflow."""
    _needs_float(input, "logcumsumexp")
    dim = whole_dim(dim if axis is None else axis, input._array.ndim, "logcumsumexp")
    return write_out("logcumsumexp", logcumsumexp_dim(input, dim) if input._array.ndim else clone(input), out)


def diff(input: Any, n: int = 1, dim: Any = -1, prepend: Any = None, append: Any = None, *, axis: Any = None, out: Any = None) -> Any:
    """Differences of neighbours along a dimension, n times over."""
    ndim = tensor_argument(input, "diff")._array.ndim
    if not ndim:
        raise ShapeError("diff: expects a tensor with at least one dimension", fix="x.reshape(1)")
    dim = whole_dim(dim if axis is None else axis, ndim, "diff")
    n = whole_number(n, "diff", "n")
    if n < 0:
        raise BadValue(f"diff: n={n} must not be negative", fix="n=1")
    ends = [_same_rank(x, ndim) for x in (prepend, input, append) if x is not None]
    x = clone(input) if not n else cat(ends, dim) if len(ends) > 1 else input
    for _ in range(n):
        x = _neighbours(x, dim)
    return write_out("diff", x, out)


def _same_rank(part: Any, ndim: int) -> Any:
    if tensor_argument(part, "diff")._array.ndim != ndim:
        raise ShapeError(f"diff: prepend and append must have {ndim} dimensions, as the input, not {part._array.ndim}", fix="prepend.unsqueeze(0)")
    return part


def _neighbours(x: Any, dim: int) -> Any:
    size = x._array.shape[dim]
    if not size:
        return x
    right, left = narrow(x, dim, 1, size - 1), narrow(x, dim, 0, size - 1)
    return logical_xor(right, left) if x._array.dtype.kind == "b" else right - left


# ----------------------------------------------------------------------------------------------------- areas, slopes

def _areas(name: str, y: Any, x: Any, dx: Any, dim: Any) -> tuple[Any, int]:
    """Twice the area between neighbours."""
    ndim = tensor_argument(y, name)._array.ndim
    if x is not None and dx is not None:
        raise BadArgument(f"{name}: x and dx cannot both be given", fix=f"mutagrad.{name}(y, x)")
    if not ndim:
        raise BadIndex(f"{name}: a 0-d tensor has no dimension to integrate along", fix="y.reshape(1)")
    dim = whole_dim(dim, ndim, name)
    size = y._array.shape[dim]
    if size and y._array.dtype.kind == "b":
        raise DTypeError(f"{name}: booleans have no areas", fix=f"mutagrad.{name}(y.float())")
    if not size:
        return y, dim
    pairs = narrow(y, dim, 1, size - 1) + narrow(y, dim, 0, size - 1)
    if x is None:
        return pairs * (1 if dx is None else dx), dim
    along = 0 if tensor_argument(x, name)._array.ndim == 1 else dim - ndim
    if not x._array.ndim or x._array.shape[along] != size:
        raise BadValue(f"{name}: x of shape {x._array.shape} has not a place for each of the {size} values along dimension {dim}", fix="x of the shape of y")
    steps = _neighbours(x, whole_dim(along, x._array.ndim, name))
    return pairs * (reshape(steps, -1, *(1,) * (ndim - 1 - dim)) if x._array.ndim == 1 else steps), dim


def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: Any = -1) -> Any:
    """The area under straight lines between points: with places x, or steps of dx."""
    areas, dim = _areas("trapezoid", y, x, dx, dim)
    return total(areas, dim) / 2


def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: Any = -1) -> Any:
    """The older name of `trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: Any = -1) -> Any:
    """The areas under straight lines between points, up to each."""
    areas, dim = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, dim) / 2


def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """Slopes along dimensions by differences of neighbours: a tensor for each dimension.

    >>> import mutagrad as mg
    >>> mg.gradient(mg.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    ndim = tensor_argument(input, "gradient")._array.ndim
    dims = whole_dims(dim, ndim, "gradient")
    if edge_order not in (1, 2):
        raise BadValue(f"gradient: edge_order={edge_order!r} is neither 1 nor 2", fix="edge_order=1")
    places = _spacings(spacing, dims)
    for d in dims:
        if input._array.shape[d] <= edge_order:
            raise BadValue(f"gradient: dimension {d} of size {input._array.shape[d]} is too short",
                           why=f"it takes at least {edge_order + 1} values", fix="fewer dimensions: dim=...")
    return tuple(_slope(input, d, step, edge_order) for d, step in zip(dims, places))


def _spacings(spacing: Any, dims: tuple[int, ...]) -> list[Any]:
    """For each dimension the distance between neighbours, or the tensor of places."""
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (int, float, complex)) and not isinstance(spacing, bool):
        return [spacing] * len(dims)
    if not isinstance(spacing, (tuple, list)):
        raise BadArgument(f"gradient: spacing must be a number, or numbers or tensors of places for each dimension, not {type(spacing).__name__}",
                          fix="spacing=0.5, or spacing=(x, y)")
    if len(spacing) != len(dims):
        raise BadValue(f"gradient: {len(spacing)} spacings for {len(dims)} dimensions", fix="one for each, or a number for all")
    return list(spacing)


def _slope(x: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    n, rest = x._array.shape[dim], x._array.ndim - 1 - dim
    if isinstance(spacing, TensorBase):
        if spacing._array.shape != (n,):
            raise BadValue(f"gradient: {spacing._array.shape} places for dimension {dim} of size {n}", fix=f"a vector of {n} places")
        steps = reshape(_neighbours(spacing, 0), -1, *(1,) * rest)
    else:
        dtype = x._array.dtype if x._array.dtype.kind in "fcV" else get_default_dtype().array_type
        steps = expand(make(np.array(spacing, dtype)), n - 1, *(1,) * rest)

    def values(start: int, length: int) -> Any:
        return narrow(x, dim, start, length)

    def step(i: int) -> Any:
        return narrow(steps, 0, i % (n - 1), 1)

    before, after = narrow(steps, 0, 0, n - 2), narrow(steps, 0, 1, n - 2)
    inner = (values(2, n - 2) * (before / (after * (before + after))) + values(1, n - 2) * ((after - before) / (before * after))
             - values(0, n - 2) * (after / (before * (before + after))))
    if edge_order == 1:
        first, last = (values(1, 1) - values(0, 1)) / step(0), (values(n - 1, 1) - values(n - 2, 1)) / step(-1)
    else:
        first = _edge(step(0), step(1), values(0, 1), values(1, 1), values(2, 1))
        last = -_edge(step(-1), step(-2), values(n - 1, 1), values(n - 2, 1), values(n - 3, 1))
    return cat([first, inner, last], dim)


def _edge(near: Any, far: Any, a: Any, b: Any, c: Any) -> Any:
    """The slope at a of the parabola through a, b and c."""
    return b * ((near + far) / (near * far)) - a * ((2 * near + far) / (near * (near + far))) - c * (near / (far * (near + far)))


# ------------------------------------------------------------------------------------------------------------- covariance

def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance of variables in rows, with an observation in each column.

    >>> import mutagrad as mg
    >>> mg.cov(mg.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    shape = tensor_argument(input, "cov")._array.shape
    if len(shape) > 2:
        raise ShapeError(f"cov: expects at most 2 dimensions, got shape {shape}", fix="x.flatten(1)")
    if input._array.dtype.kind == "b":
        raise DTypeError("cov: booleans have no covariance", fix="mutagrad.cov(x.float())")
    x = reshape(input, 1, -1) if len(shape) < 2 else input
    n = x._array.shape[1]
    frequency, importance = _weights("fweights", fweights, "iu", n), _weights("aweights", aweights, "fV", n)
    w = frequency if importance is None else importance if frequency is None else frequency * importance
    x = x if x._array.dtype.kind in "fcV" else x * 1.0
    if w is None:
        centred, degrees = x - (mean(x, 1, True) if n else 0), make(np.array(n - correction, x._array.real.dtype))
    else:
        weight = total(w)
        if n and not weight._array:
            raise BadValue("cov: the weights sum to zero, so that nothing is left to average", fix="weights that are not all zero")
        centred = x - total(x * w, 1, True) / weight
        degrees = weight - (correction * (total(w * importance) / weight) if importance is not None and correction else correction)
    other = centred if w is None else centred * w
    products = matmul(other, RECORDED.conj(centred).T)
    degrees = degrees if degrees._array > 0 else make(np.zeros_like(degrees._array))
    return squeeze(products / degrees)


def _weights(name: str, weights: Any, kind: str, n: int) -> Any:
    if weights is None:
        return None
    array = tensor_argument(weights, "cov")._array
    if array.ndim > 1 or array.dtype.kind not in kind or array.size != n:
        raise BadValue(f"cov: {name} must be a vector of {n} {'integers' if kind == 'iu' else 'floats'}, not {array.dtype.name} of shape {array.shape}",
                       fix=f"a weight for each of the {n} observations")
    if array.size and array.min() < 0:
        raise BadValue(f"cov: {name} must not be negative", why=f"the smallest is {array.min()}", fix=f"{name}.abs()")
    return reshape(weights, -1)


def corrcoef(input: Any) -> Any:
    """The correlation of variables in rows, with an observation in each column."""
    if tensor_argument(input, "corrcoef")._array.ndim > 2:
        raise ShapeError(f"corrcoef: expects at most 2 dimensions, got shape {input._array.shape}", fix="x.flatten(1)")
    c = cov(input)
    if not c._array.ndim:
        return c / c
    variance = c.diagonal()
    spread = RECORDED.sqrt(cast(variance, c._array.real.dtype))
    c = c / unsqueeze(spread, 1) / spread
    return c.clamp(-1, 1) if c._array.dtype.kind in "fV" else c


# -------------------------------------------------------------------------------------------------------------- distances

def renorm(input: Any, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Any:
    """Slices along a dimension, those with a p-norm above `maxnorm` scaled down to it."""
    ndim = _needs_float(input, "renorm")._array.ndim
    for what, value in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadArgument(f"renorm: {what} must be a number, not {type(value).__name__}", fix=f"{what}=2")
    if not p > 0 or not maxnorm >= 0:
        raise BadValue(f"renorm: p={p} must be positive, and maxnorm={maxnorm} not negative", fix="x.renorm(2, 0, 1.0)")
    if ndim < 2:
        raise ShapeError(f"renorm: expects at least 2 dimensions, got shape {input._array.shape}", fix="x.unsqueeze(1)")
    dim = whole_dim(dim, ndim, "renorm")
    length = norm(input, p, tuple(d for d in range(ndim) if d != dim), True)
    return write_out("renorm", input * where(length > maxnorm, maxnorm / (length + 1e-7), 1.0), out)


def renorm_(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    return copy_(x, renorm(x, p, dim, maxnorm))


def _euclidean(a: Any, b: Any, fast: bool) -> Any:
    if not fast:
        apart = a[..., :, None, :] - b[..., None, :, :]
        return np.sqrt(np.add.reduce(apart * apart, -1))
    squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :]
    squares -= 2 * np.matmul(a, b.swapaxes(-1, -2))
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


def _distances(a: Any, b: Any, p: float, fast: bool) -> Any:
    if p == 2:
        return _euclidean(a, b, fast)
    apart = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if p == 0:
        return np.add.reduce(apart != 0, -1, a.dtype)
    if p == float("inf"):
        return np.maximum.reduce(apart, -1, initial=0)
    return np.add.reduce(apart, -1) if p == 1 else np.power(np.add.reduce(np.power(apart, p), -1), 1 / p)


def _distance_rule(xp: Any, g: Any, x: Any, y: Any, out: Any, p: float) -> Any:
    """The adjoint of x; y's is the same with the distances transposed. Where a distance is zero, its slope is taken as zero."""
    if p == 2:
        w = xp.where(out == 0, 0.0, g / xp.where(out == 0, 1.0, out))
        return x * xp.sum(w, (len(w.shape) - 1,), True) - xp.matmul(w, y)
    if p == 0:
        return xp.zeros_like(x)
    apart = xp.unsqueeze(x, -2) - xp.unsqueeze(y, -3)
    wide, size = xp.unsqueeze(out, -1), xp.abs(apart)
    slope = xp.sgn(apart)
    if p == float("inf"):
        slope = slope * (size == wide)
    elif p != 1:
        near = size == 0
        ratio = xp.where(near, 1.0, size) / xp.where(wide == 0, 1.0, wide)
        slope = xp.where(near, 0.0, slope * xp.pow_number(ratio, p - 1))
    return xp.sum(xp.unsqueeze(g, -1) * slope, (len(g.shape) - 1,), False)


def _turned(xp: Any, x: Any) -> Any:
    n = len(x.shape)
    return xp.transpose(x, n - 2, n - 1)


cdist_values = primitive("cdist", _distances, settings=("p", "fast"), x=lambda xp, g, x, y, out, p: _distance_rule(xp, g, x, y, out, p),
                         y=lambda xp, g, x, y, out, p: _distance_rule(xp, _turned(xp, g), y, x, _turned(xp, out), p))

RAW.pow_number, RECORDED.pow_number = lambda a, p: np.power(a, a.dtype.type(p)), lambda x, p: x ** p

_COMPUTE_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": True, "donot_use_mm_for_euclid_dist": False}
_FEW_ROWS = 25  # up to so many, differences are as fast as a product of matrices, and more exact


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = None) -> Any:
    """The p-norm distance of each row of x1 to each row of x2; leading dimensions are batches.

    >>> import mutagrad as mg
    >>> mg.cdist(mg.zeros(1, 2), mg.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    a, b = (_needs_float(x, "cdist")._array for x in (x1, x2))
    if "V" in (a.dtype.kind, b.dtype.kind):
        raise DTypeError("cdist: not defined for bfloat16", why="which differences are the largest is lost when they are rounded", fix="x.float()")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: shapes {a.shape} and {b.shape} are not rows of one length", why="both need 2 dimensions, the last of one size",
                         fix="x.unsqueeze(0) for a single row")
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not p >= 0:
        raise BadValue(f"cdist: p={p!r} must be a number that is not negative", fix="p=2")
    fast = _COMPUTE_MODES.get(compute_mode or "use_mm_for_euclid_dist_if_necessary", compute_mode)
    if isinstance(fast, str):
        raise BadValue(f"cdist: compute_mode={compute_mode!r} is none of {', '.join(_COMPUTE_MODES)}", fix="leave it out")
    if fast is None:
        fast = a.shape[-2] > _FEW_ROWS or b.shape[-2] > _FEW_ROWS
    common = operand_dtype([x1, x2]).array_type
    x1, x2 = (x if x._array.dtype is common else cast(x, common) for x in (x1, x2))
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"cdist: the batches of shapes {a.shape} and {b.shape} do not broadcast", fix="x.unsqueeze(1)") from None
    x1, x2 = (x if x._array.shape[:-2] == batch else expand(x, *batch, *x._array.shape[-2:]) for x in (x1, x2))
    return cdist_values(x1, x2, float(p), bool(fast))


def sum_to_size(input: Any, *size: Any) -> Any:
    """Summed over the dimensions that broadcasting to the tensor's shape would have repeated."""
    shape, wanted = tensor_argument(input, "sum_to_size")._array.shape, sizes(size)
    lead = len(shape) - len(wanted)
    if lead < 0 or any(n not in (m, 1) for m, n in zip(shape[lead:], wanted)):
        raise ShapeError(f"sum_to_size: shape {shape} cannot be summed to {wanted}", why="each size must be equal or 1, counted from the right",
                         fix="x.sum(dim)")
    dims = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(wanted) if n == 1 != shape[i + lead])
    return reshape(total(input, dims, True), *wanted) if dims or not wanted else input
