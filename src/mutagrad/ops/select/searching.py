"""Sorting and searching: distinct values, places in sorted sequences, histograms."""
from __future__ import annotations

from builtins import range as builtin_range
from collections.abc import Sequence
from typing import Any

from ...arrays import np
from ...arrays.bfloat16 import widened
from ...arrays.kinds import anywhere, extremes, unknown
from ...arrays.places import add_at, insert, nonzero, take
from ...base import return_types
from ...base.errors import BadArgument, BadData, BadIndex, BadValue, DTypeError, ShapeError, bad_choice, may_need_much
from ...base.modes import mode
from ...base.operands import Array
from ...core.dtypes import of_array
from ...core.evidence import cut
from ...core.factory import make
from ...core.indexing import copy_, read
from ...core.number import whole_number
from ...core.out_arg import write_out
from ...core.promote import as_operand, operand_dtype
from ...core.storage import TensorBase
from ..math.elementwise import cast
from ..shape.shape import clone, expand, reshape, tensor_argument, whole_dim
from .selecting import index_add, scatter_reduce
from .sorting import sort

FUNCTIONS = """
    msort unique unique_consecutive isin searchsorted bucketize histc histogram histogramdd bincount
    nonzero_static unravel_index index_reduce
"""
METHODS = "msort unique unique_consecutive histc histogram bincount nonzero_static index_reduce index_reduce_"


def msort(input: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Sort the values along the first dimension.

    >>> import mutagrad as mg
    >>> mg.msort(mg.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return write_out("msort", sort(input, 0).values, out)


# ------------------------------------------------------------------------------------------------------ distinct values

def _rows(array: Array, dim: int) -> Any:
    """Slices along a dimension as the rows of a matrix."""
    moved = np.moveaxis(array, dim, 0)
    return moved.reshape(moved.shape[0], int(np.prod(moved.shape[1:])))


def _elements(vector: Array, consecutive: bool, inverse: bool, sizes: bool) -> tuple[Array, Any, Any]:
    """The distinct elements of a vector, the number of each one's group and the groups' sizes, if asked for."""
    if not consecutive and vector.dtype.kind in "iu" and (found := _counted_up(vector, inverse)) is not None:
        return found
    order = np.argsort(widened(vector), kind="stable") if inverse and not consecutive else None
    lined = vector if consecutive else np.sort(widened(vector)).astype(vector.dtype) if order is None else vector[order]
    new = np.concatenate([np.ones(min(lined.size, 1), bool), lined[1:] != lined[:-1]])
    starts = nonzero(new)[0]
    groups = np.cumsum(new) - 1 if inverse else None
    if order is not None:
        groups, numbers = np.empty(lined.size, np.int64), groups
        groups[order] = numbers
    return take(lined, starts), groups, np.diff(starts, append=lined.size) if sizes else None


def _counted_up(vector: Array, inverse: bool) -> tuple[Array, Any, Any] | None:
    """The same for whole numbers that lie close together, by counting; None for others."""
    low, high = (int(v) for v in extremes(vector))
    if not vector.size or unknown(vector) or high - low > vector.size:
        return None
    places = np.subtract(vector, vector.dtype.type(low), dtype=np.int64, casting="unsafe")
    counts = np.bincount(places, minlength=high - low + 1)
    found = np.flatnonzero(counts)
    groups = (np.cumsum(counts > 0) - 1)[places] if inverse else None
    return (found + low).astype(vector.dtype), groups, counts[found]


def _groups(array: Array, dim: int, consecutive: bool) -> tuple[Array, Array, Array]:
    """Where each distinct slice is found first, the number of each one's group, and the groups' sizes."""
    rows = _rows(widened(array), dim)
    n = len(rows)
    places = np.arange(n)
    if not consecutive:
        places = _lexicographic(rows)
    lined = rows[places]
    new = np.concatenate([np.ones(min(n, 1), bool), (lined[1:] != lined[:-1]).any(1)])
    number = np.cumsum(new) - 1
    groups = np.empty(n, np.int64)
    groups[places] = number
    return places[new], groups, np.bincount(groups, minlength=int(new.sum()))


def _lexicographic(rows: Array) -> Any:
    """The order of rows, as np.lexsort's of their columns: each column orders those that are alike before it."""
    n, width = rows.shape
    order = np.argsort(rows[:, 0], kind="stable") if width else np.arange(n)
    first = rows[order, 0] if width else order
    starts = np.concatenate([np.ones(min(n, 1), bool), first[1:] != first[:-1]])
    for column in range(1, width):
        alike = ~starts
        alike[:-1] |= alike[1:]  # those that a run of equals begins with, too
        places = np.flatnonzero(alike)
        if not places.size:
            break
        values, runs = rows[order[places], column], np.cumsum(starts)[places]
        if (values[1:] == values[:-1])[runs[1:] == runs[:-1]].all():
            continue
        sorted_ = np.lexsort((values, runs))
        order[places], values = order[places[sorted_]], values[sorted_]
        starts[places[1:]] |= (values[1:] != values[:-1])
    return order


def _distinct(name: str, x: TensorBase, dim: int | None, consecutive: bool, return_inverse: bool,
              return_counts: bool) -> Any:
    array = tensor_argument(x, name)._array
    if array.dtype.kind == "c":
        raise DTypeError(f"{name}: complex numbers have no order",
                         fix="mutagrad.unique(mutagrad.stack([x.real, x.imag]), dim=1)")
    if dim is not None:
        dim = whole_dim(dim, array.ndim, name)
        if 0 in array.shape and array.shape[dim]:
            raise ShapeError(f"{name}: slices along dimension {dim} of shape {array.shape} are empty",
                             why="they cannot be told apart", fix="dim=None")
    lifted = array if array.ndim else array.reshape(1)
    if dim is None:
        values, groups, counts = _elements(lifted.reshape(-1), consecutive, return_inverse, return_counts)
    else:
        first, groups, counts = _groups(lifted, dim, consecutive)
        values = np.take(lifted, first, dim)
    found = [make(values)]
    if return_inverse:
        found.append(make(groups.reshape(array.shape) if dim is None else groups))
    if return_counts:
        found.append(make(counts))
    return found[0] if len(found) == 1 else tuple(found)


@may_need_much
def unique(input: TensorBase, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """Return the distinct elements in order, or the distinct slices along a dimension.

    >>> import mutagrad as mg
    >>> mg.unique(mg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _distinct("unique", input, dim, False, return_inverse, return_counts)


def unique_consecutive(input: TensorBase, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """Return the first of each run of equal elements, or of equal slices along a dimension.

    >>> import mutagrad as mg
    >>> mg.unique_consecutive(mg.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    return _distinct("unique_consecutive", input, dim, True, return_inverse, return_counts)


@may_need_much
def isin(elements: TensorBase | float, test_elements: TensorBase | float, *, assume_unique: bool = False,
         invert: bool = False, out: TensorBase | None = None) -> Any:
    """Return whether each element is one of the others.

    >>> import mutagrad as mg
    >>> mg.isin(mg.tensor([1, 2, 3]), mg.tensor([2, 4]))
    tensor([False,  True, False])
    """
    given = [as_operand(v, "isin") for v in (elements, test_elements)]
    if not any(isinstance(v, TensorBase) for v in given):
        raise BadArgument("isin: at least one of elements and test_elements must be a tensor",
                          fix="mutagrad.isin(x, 2)")
    common = operand_dtype(given)
    if common.is_complex or common.array_type.kind == "b" and all(isinstance(v, TensorBase) for v in given):
        raise DTypeError(f"isin: not defined for {common.name}", fix="x.int()")
    a, b = (np.asarray(v._array if isinstance(v, TensorBase) else v).astype(common.array_type) for v in given)
    return write_out("isin", make(np.isin(a, b, assume_unique=assume_unique, invert=invert)), out)


# ------------------------------------------------------------------------------------------- places in sorted sequences

def _insert(sequence: Array, values: Array, right: bool) -> Any:
    """Where each value fits into the sorted sequence, or into that of its row."""
    side, sequence, values = "right" if right else "left", widened(sequence), widened(values)
    if (found := insert(sequence, values, right)) is not None:
        return found
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    found = np.empty(values.shape, np.int64)
    for row in np.ndindex(*values.shape[:-1]):
        found[row] = np.searchsorted(sequence[row], values[row], side)
    return found


@may_need_much
def searchsorted(sorted_sequence: TensorBase, input: TensorBase | float | None = None, *, out_int32: bool = False,
                 right: bool = False, side: str | None = None, sorter: TensorBase | None = None,
                 out: TensorBase | None = None, self: TensorBase | float | None = None) -> Any:
    """Return where values fit into a sorted sequence so that it stays sorted; rows have sequences of their own.

    >>> import mutagrad as mg
    >>> mg.searchsorted(mg.tensor([1., 3., 5.]), mg.tensor([3., 4.]))
    tensor([1, 2])
    """
    input = self if input is None else input
    sequence = tensor_argument(sorted_sequence, "searchsorted")._array
    right = _side(right, side)
    given = as_operand(input, "searchsorted")
    values = given._array if isinstance(given, TensorBase) else np.array(given)
    for searched in (sorted_sequence, given):
        if isinstance(searched, TensorBase):
            cut("searchsorted", searched)
    _check_sequence(sequence, values)
    if sorter is not None:
        sequence = np.take_along_axis(sequence, _sorter(sorter, sequence), -1)
    found = _insert(sequence, values, right).astype(np.int32 if out_int32 else np.int64)
    return write_out("searchsorted", make(np.asarray(found)), out)


def _side(right: bool, side: str | None) -> bool:
    if side not in (None, "left", "right"):
        raise BadValue(f"searchsorted: side={side!r} is neither 'left' nor 'right'", fix="side='right'")
    if right and side == "left":
        raise BadValue("searchsorted: right=True and side='left' contradict each other", fix="side='right'")
    return right or side == "right"


def _check_sequence(sequence: Array, values: Array) -> None:
    if not sequence.ndim:
        raise BadValue("searchsorted: a 0-d tensor is no sequence", fix="sequence.reshape(1)")
    if sequence.ndim > 1 and (not values.ndim or sequence.shape[:-1] != values.shape[:-1]):
        raise ShapeError(f"searchsorted: sequences of shape {sequence.shape} do not fit values of shape {values.shape}",
                         why="all sizes but the last must be equal, or the sequence a vector",
                         fix="values of a row for each sequence")


def _sorter(sorter: TensorBase, sequence: Array) -> Array:
    places = tensor_argument(sorter, "searchsorted")._array
    if places.shape != sequence.shape or places.dtype != np.int64:
        raise BadValue(f"searchsorted: the sorter must be int64 of shape {sequence.shape}, "
                       f"not {places.dtype.name} of shape {places.shape}", fix="sorter=sequence.argsort()")
    if anywhere((places < 0) | (places >= sequence.shape[-1])):
        raise BadIndex("searchsorted: the sorter has positions that the sequence has not",
                       fix="sorter=sequence.argsort()")
    return places


@may_need_much
def bucketize(input: TensorBase | float, boundaries: TensorBase, *, out_int32: bool = False, right: bool = False,
              out: TensorBase | None = None) -> Any:
    """Return between which boundaries each value lies, counted from 0.

    >>> import mutagrad as mg
    >>> mg.bucketize(mg.tensor([1., 3., 6.]), mg.tensor([2., 4.]))
    tensor([0, 1, 2])
    """
    if tensor_argument(boundaries, "bucketize")._array.ndim != 1:
        raise BadValue(f"bucketize: boundaries tensor must be 1 dimension, not of shape {boundaries._array.shape}",
                       fix="boundaries.flatten()")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


# ----------------------------------------------------------------------------------------------------------- histograms

def _limits(name: str, low: float, high: float, values: Array) -> tuple[float, float]:
    """The range that is counted: that of the values if none is given, and one wide around a single value."""
    if low == high and values.size:
        if unknown(values):
            return _apart(values.min(), values.max(), 1)
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise BadValue(f"{name}: the range from {low} to {high} is not finite", fix=f"x.{name}(..., min=0, max=1)")
    if low > high:
        raise BadValue(f"{name}: min={low} is above max={high}", fix=f"min={high}, max={low}")
    return low, high


def _apart(low: Array, high: Array, margin: float) -> tuple[Any, Any]:
    """Limits that are not known yet, so far apart around a single value."""
    same = low == high
    return np.where(same, low - low.dtype.type(margin), low), np.where(same, high + low.dtype.type(margin), high)


def _counted(places: Array, weights: Array, count: int) -> Any:
    """The sum of the weights at each place."""
    found = np.zeros(count, weights.dtype)
    add_at(found, (places,), weights)
    return found


@may_need_much
def histc(input: TensorBase, bins: int = 100, min: float = 0, max: float = 0, *, out: TensorBase | None = None) -> Any:
    """Return how many elements fall into each of equally wide bins between min and max.

    >>> import mutagrad as mg
    >>> mg.histc(mg.tensor([1., 2., 1., 4.]), bins=3, min=1, max=4)
    tensor([2., 1., 1.])
    """
    array = _countable(input, "histc")
    cut("histc", input)
    bins = whole_number(bins, "histc", "bins")
    if bins <= 0:
        raise BadValue(f"histc: bins={bins} must be positive", fix="bins=100")
    low, high = _limits("histc", min, max, array)
    if unknown(array):
        places = np.clip(((array - low) * bins / (high - low)).astype(np.int64), 0, bins - 1)
        found = _counted(places, ((array >= low) & (array <= high)).astype(array.dtype), bins)
        return write_out("histc", make(found), out)
    inside = array[(array >= low) & (array <= high)]
    places = np.minimum(((inside - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return write_out("histc", make(np.bincount(places, minlength=bins).astype(array.dtype)), out)


@may_need_much
def _countable(x: TensorBase, name: str) -> Array:
    array = tensor_argument(x, name)._array
    if array.dtype.kind not in "fV":
        raise DTypeError(f"{name}: expects a floating point tensor, got {of_array(array.dtype).name}",
                         fix=f"x.float().{name}()")
    return array.reshape(-1)


def _edges(name: str, bins: TensorBase | int, column: Array, limits: Sequence[float] | None) -> Any:
    if isinstance(bins, TensorBase) and (bins._array.ndim or bins._array.dtype.kind not in "iu"):
        if bins._array.ndim != 1 or bins._array.size < 2 or bins._array.dtype != column.dtype:
            raise BadValue(f"{name}: bin edges must be a vector of at least 2 of type {column.dtype.name}, not "
                           f"{bins._array.dtype.name} of shape {bins._array.shape}", fix="mutagrad.linspace(0, 1, 11)")
        return bins._array
    count = whole_number(bins, name, "bins")
    if count <= 0:
        raise BadValue(f"{name}: bins={count} must be positive", fix="bins=10")
    if limits is None and unknown(column):
        return _line(*_apart(column.min(), column.max(), 0.5), count)
    if limits is None:
        low, high = (float(column.min()), float(column.max())) if column.size else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
    else:
        low, high = limits
        if low == high:
            low, high = low - 0.5, high + 0.5
    if not (np.isfinite(low) and np.isfinite(high)) or low > high:
        raise BadValue(f"{name}: the range from {low} to {high} is empty or not finite", fix="range=(0.0, 1.0)")
    return _line(column.dtype.type(low), column.dtype.type(high), count)


def _line(low: Any, high: Any, count: int) -> Any:
    """Equally spaced edges, counted from the nearer end, as in PyTorch: rounding decides on which side a value lies."""
    step, places = (high - low) / low.dtype.type(count), np.arange(count + 1)
    rising, falling = low + step * places.astype(low.dtype), high - step * places[::-1].astype(low.dtype)
    return np.where(places < (count + 1) // 2, rising, falling)


def _count(columns: list[Array], edges: list[Array], weight: TensorBase | None, density: bool, dtype: Any) -> Any:
    """The weights that fall between the edges of every dimension; the last bin of each is closed on both sides."""
    shape = tuple(len(e) - 1 for e in edges)
    inside, place = np.ones(len(columns[0]), bool), np.zeros(len(columns[0]), np.int64)
    for column, e in zip(columns, edges):
        at = np.searchsorted(e, column, "right") - 1
        inside &= (column >= e[0]) & (column <= e[-1])
        place = place * (len(e) - 1) + np.clip(at, 0, len(e) - 2)
    if weight is not None and weight._storage.writer is not None and mode.grad:
        at = np.flatnonzero(inside)
        empty = make(np.zeros(int(np.prod(shape)), dtype))
        total = index_add(empty, 0, make(place[at]), read(reshape(weight, -1), (at,)))
        counted = reshape(total, *shape)
    elif unknown(inside):
        weights = np.ones(len(inside), dtype) if weight is None else weight._array.reshape(-1)
        counted = make(_counted(place, weights * inside, int(np.prod(shape))).reshape(shape))
    else:
        weights = None if weight is None else weight._array.reshape(-1)[inside]
        counted = make(np.bincount(place[inside], weights, int(np.prod(shape))).astype(dtype).reshape(shape))
    if density:
        volume = np.ones((), dtype)
        for e in edges:
            volume = np.multiply.outer(volume, np.diff(e))
        counted = counted / (counted.sum() * make(volume))
    return counted


def _weight(name: str, weight: TensorBase | None, shape: tuple[int, ...], dtype: Any) -> TensorBase | None:
    if weight is None:
        return None
    if tensor_argument(weight, name)._array.shape != shape or weight._array.dtype != dtype:
        raise BadValue(f"{name}: the weight must be {dtype.name} of shape {shape}, "
                       f"not {weight._array.dtype.name} of shape {weight._array.shape}",
                       fix="weight.to(x.dtype).expand_as(x)")
    return weight


def histogram(input: TensorBase, bins: TensorBase | int, *, range: Sequence[float] | None = None,
              weight: TensorBase | None = None, density: bool = False, out: Sequence[TensorBase] | None = None) -> Any:
    """Count elements, or weight, between edges: a tensor, or a number of equally wide bins.

    >>> import mutagrad as mg
    >>> counts, edges = mg.histogram(mg.tensor([1., 2., 1., 4.]), bins=3)
    >>> counts, edges
    (tensor([2., 1., 1.]), tensor([1., 2., 3., 4.]))
    """
    column = _countable(input, "histogram")
    edges = _edges("histogram", bins, column, range)
    weights = _weight("histogram", weight, input._array.shape, column.dtype)
    counted = _count([column], [edges], weights, density, column.dtype)
    return write_out("histogram", return_types.histogram(counted, make(edges.copy())), out)


def histogramdd(input: TensorBase, bins: TensorBase | int | Sequence[TensorBase] | Sequence[int], *,
                range: Sequence[float] | None = None, weight: TensorBase | None = None, density: bool = False) -> Any:
    """Return the histogram of points, whose coordinates are the last dimension.

    >>> import mutagrad as mg
    >>> counts, edges = mg.histogramdd(mg.tensor([[0., 0.], [1., 1.], [1., 1.]]), (2, 2))
    >>> counts
    tensor([[1., 0.],
            [0., 2.]])
    """
    shape = tensor_argument(input, "histogramdd")._array.shape
    if len(shape) < 2:
        raise ShapeError(f"histogramdd: expects points in rows, got shape {shape}", fix="x.unsqueeze(1)")
    _countable(input, "histogramdd")
    points = input._array.reshape(-1, shape[-1]) if shape[-1] else input._array.reshape(int(np.prod(shape[:-1])), 0)
    several: list[Any] = list(bins) if isinstance(bins, (tuple, list)) else [bins] * shape[-1]
    if len(several) != shape[-1] or range is not None and len(range) != 2 * shape[-1]:
        raise BadValue(f"histogramdd: {len(several)} bins and {len(range or ())} limits "
                       f"for points of {shape[-1]} coordinates",
                       fix="bins for each coordinate, and range=(low, high, low, high, ...)")
    limits = [None] * shape[-1] if range is None else list(zip(range[::2], range[1::2]))
    edges = [_edges("histogramdd", b, points[:, d], limits[d]) for d, b in enumerate(several)]
    weights = _weight("histogramdd", weight, shape[:-1], points.dtype)
    counted = _count([points[:, d] for d in builtin_range(shape[-1])], edges, weights, density, points.dtype)
    return return_types.histogramdd(counted, tuple(make(e.copy()) for e in edges))


@may_need_much
def bincount(input: TensorBase, weights: TensorBase | None = None, minlength: int = 0) -> Any:
    """Count how often each number from 0 on occurs, or sum its weights.

    >>> import mutagrad as mg
    >>> mg.bincount(mg.tensor([0, 2, 2, 1]))
    tensor([1, 1, 2])
    """
    array = tensor_argument(input, "bincount")._array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadValue(f"bincount: expects a vector of integers, got {array.dtype.name} of shape {array.shape}",
                       fix="x.flatten().long()")
    if array.size and (least := extremes(array)[0]) < 0:
        raise BadValue(f"bincount only supports 1-d non-negative integral inputs, but the smallest is {least}",
                       fix="x - x.min()")
    minlength = whole_number(minlength, "bincount", "minlength")
    if minlength < 0:
        raise BadValue(f"bincount: minlength={minlength} must not be negative", fix="minlength=0")
    if weights is None:
        return make(np.bincount(array.astype(np.int64), minlength=minlength))
    w = tensor_argument(weights, "bincount")._array
    if w.shape != array.shape:
        raise BadValue(f"bincount: weights of shape {w.shape} for numbers of shape {array.shape}",
                       fix="a weight for each number")
    dtype = w.dtype if w.dtype.char == "f" else np.float64
    found = make(np.bincount(array.astype(np.int64), w, minlength).astype(dtype))
    if weights._storage.writer is None or not mode.grad:
        return found
    return index_add(make(np.zeros_like(found._array)), 0, input, cast(weights, found._array.dtype))


# ------------------------------------------------------------------------------------------------------------ positions

def nonzero_static(input: TensorBase, *, size: int, fill_value: int = -1, out: TensorBase | None = None) -> Any:
    """Return where elements are not zero, a row for each, cut or filled to so many rows.

    >>> import mutagrad as mg
    >>> mg.nonzero_static(mg.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    array = tensor_argument(input, "nonzero_static")._array
    size = whole_number(size, "nonzero_static", "size")
    if size < 0:
        raise BadValue(f"nonzero_static: size={size} must not be negative", fix="size=10")
    rows = np.full((size, array.ndim), fill_value, np.int64)
    if array.ndim:
        found = nonzero(array, True)[:size]
        rows[:len(found)] = found
    return write_out("nonzero_static", make(rows), out)


def unravel_index(indices: TensorBase, shape: int | Sequence[int]) -> tuple[Any, ...]:
    """Return positions in a flattened tensor as one index tensor for each dimension.

    >>> import mutagrad as mg
    >>> mg.unravel_index(mg.tensor([0, 5]), (2, 3))
    (tensor([0, 1]), tensor([0, 2]))
    """
    array = tensor_argument(indices, "unravel_index")._array
    if array.dtype.kind not in "iu":
        raise BadData(f"unravel_index: expected 'indices' to be integers, not {array.dtype.name}", fix="indices.long()")
    sizes = _shape_of(shape)
    total = int(np.prod(sizes, dtype=np.int64))
    if anywhere((array < -total) | (array >= total)):
        raise BadValue(f"unravel_index: indices must be from {-total} to {total - 1} for shape {sizes}",
                       fix="indices % total")
    found, rest = [], array.astype(np.int64)
    for n in reversed(sizes):
        found.append(make(np.asarray(rest % n) if n else np.zeros_like(rest)))
        rest = rest // n if n else rest
    return tuple(reversed(found))


def _shape_of(shape: Any) -> tuple[int, ...]:
    given = shape._array.tolist() if isinstance(shape, TensorBase) else shape
    given = given if isinstance(given, (tuple, list)) else (given,)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in given):
        raise BadArgument(f"unravel_index: a shape is of integers, got {shape!r}",
                          fix="mutagrad.unravel_index(i, (2, 3))")
    if any(n < 0 for n in given):
        raise BadValue(f"unravel_index: sizes must not be negative, got {tuple(given)}", fix="x.shape")
    return tuple(given)


# --------------------------------------------------------------------------------------------------------- index_reduce

_KINDS = ("prod", "mean", "amax", "amin")


def index_reduce(input: TensorBase, dim: int, index: TensorBase, source: TensorBase, reduce: str, *,
                 include_self: bool = True, out: TensorBase | None = None) -> Any:
    """Combine slices of the source that meet at one index: "prod", "mean", "amax" or "amin".

    >>> import mutagrad as mg
    >>> mg.index_reduce(mg.ones(2), 0, mg.tensor([0, 0, 1]), mg.tensor([2., 3., 4.]), "prod")
    tensor([6., 4.])
    """
    if reduce not in _KINDS:
        raise bad_choice(reduce, str, f"index_reduce: reduce={reduce!r} is none of {', '.join(_KINDS)}",
                         fix="reduce='amax'; index_add sums")
    shape, given = tensor_argument(input, "index_reduce")._array.shape, tensor_argument(source, "index_reduce")._array
    dim = whole_dim(dim, len(shape), "index_reduce")
    places = tensor_argument(index, "index_reduce")._array
    if places.ndim > 1 or places.dtype.kind not in "iu":
        raise BadIndex("index_reduce: the index must be a vector of integers, "
                       f"not {places.dtype.name} of shape {places.shape}", fix="index.flatten().long()")
    if given.dtype is not input._array.dtype:
        raise BadValue(f"index_reduce: the source has type {of_array(given.dtype).name} "
                       f"and x {of_array(input._array.dtype).name}", fix="source.to(x.dtype)")
    fits = given.shape[:dim] + given.shape[dim + 1:] == shape[:dim] + shape[dim + 1:]
    if given.size and not fits and shape:
        raise BadIndex(f"index_reduce: a source of shape {given.shape} does not fit x of shape {shape}",
                       fix="a slice of x's shape for each index")
    if (given.shape[dim] if given.ndim else 1) != places.size:
        raise BadIndex(f"index_reduce: {places.size} places for {given.shape[dim] if given.ndim else 1} slices",
                       fix="a slice for each index")
    if not given.size:
        return write_out("index_reduce", clone(input), out)
    grid = index
    if given.ndim:
        grid = expand(reshape(index, *(-1 if d == dim else 1 for d in builtin_range(given.ndim))), *given.shape)
    return write_out("index_reduce", scatter_reduce(input, dim, grid, source, reduce, include_self=include_self), out)


def index_reduce_(x: TensorBase, dim: int, index: TensorBase, source: TensorBase, reduce: str, *,
                  include_self: bool = True) -> Any:
    """Write `index_reduce` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.ones(2).index_reduce_(0, mg.tensor([0, 0, 1]), mg.tensor([2., 3., 4.]), "prod")
    tensor([6., 4.])
    """
    return copy_(x, index_reduce(x, dim, index, source, reduce, include_self=include_self))
