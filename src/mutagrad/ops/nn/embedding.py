"""Rows of a table looked up by number, and sums of such rows.

Looking up is reading by index: the node has no arithmetic of its own, and its window says which rows an adjoint is
added to.
"""
from __future__ import annotations

from typing import Any

from ...arrays import np
from ...arrays.kinds import anywhere, extremes, is_frozen, is_plain, pick, unknown
from ...arrays.numpy import silently
from ...arrays.places import add_at, sum_bags, take
from ...base.errors import BadArgument, BadIndex, BadIndexType, BadValue, DTypeError, NotSupported, ShapeError
from ...base.modes import UNRECORDED, call_with, mode
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import make
from ...core.graph import window_of
from ...core.index import positions
from ...core.indexing import put, read
from ...core.number import number, whole_number
from ...core.op import RECORDED, Op
from ...core.storage import TensorBase as Tensor
from ...core.window import Rows
from ...core.write import new_node
from ..shape.shape import narrow, reshape, tensor_argument, unsqueeze

__all__ = ["embedding", "embedding_bag"]

# An adjoint goes to the rows that were read: to some of them in part (`share` of it), or not at all.
_look_up = Op("embedding", None, ("x",), ("share",), {"x": lambda g, share: g if share is None else g * share})


def _rows(weight: Tensor, index: Array, share: Array | None, sparse: bool = False, padding: int | None = None) -> Any:
    """The rows with these numbers. If `sparse`, a leaf that is read in no other way gets a gradient of these alone."""
    result = make(take(weight._array, index))
    writer = weight._storage.writer
    if mode.grad and writer is not None:
        picked: tuple[Array] = (index,)
        if sparse and is_plain(weight._array, index):
            picked = Rows(picked)
            picked.left_out = padding
        node = new_node(_look_up, (writer,), (window_of(weight, picked),))
        node.saved = (share,)
        result._storage.writer = node
    return result


def _share(index: Array, weight: Tensor, padding: int | None, by_frequency: bool) -> Any:
    """What part of its adjoint each row gets: none for padding, and equal parts of one where it was read repeatedly."""
    share = None
    if by_frequency:
        share = 1 / pick(_counted(index.reshape(-1), weight._array.shape[0]), (index,))
    if padding is not None:
        share = (index != padding) * (1.0 if share is None else share)
    return None if share is None else share.astype(weight._array.dtype)[..., None]


def _counted(numbers: Array, count: int) -> Any:
    """How often each number below `count` occurs."""
    if is_plain(numbers):
        return np.bincount(numbers, minlength=count)
    found = np.zeros(count, np.int64)
    np.add.at(found, (numbers,), np.ones(numbers.shape, np.int64))
    return found


def _numbers(name: str, input: Tensor, weight: Tensor) -> Any:
    """The row numbers, checked."""
    tensor_argument(input, name)
    tensor_argument(weight, name)
    if input._array.dtype.kind not in "iu":
        raise BadIndexType(f"{name}: the numbers of rows must be integers, not {input._array.dtype.name}",
                           fix=f"{name}(index.long(), weight): the index comes first")
    if weight._array.ndim != 2:
        raise ShapeError(f"{name}: 'weight' must be 2-D, with rows and columns, not of shape {weight._array.shape}",
                         fix="weight.reshape(rows, columns)")
    index = input._array
    if index.size and (lowest := extremes(index)[0]) < 0:
        raise BadIndex(f"{name}: row {lowest} does not exist",
                       why="rows are counted from 0", fix="index % len(weight)")
    return positions(index, weight._array.shape[0], 0, from_end=not unknown(index))


def _padding(name: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    padding_idx = whole_number(padding_idx, name, "padding_idx")
    if not -rows <= padding_idx < rows:
        raise BadValue(f"{name}: padding_idx must be within the number of embeddings, {rows}; got {padding_idx}",
                       fix=f"a row from {-rows} to {rows - 1}")
    return padding_idx % rows


def _limit_rows(weight: Tensor, index: Array, max_norm: float, norm_type: float) -> None:
    """Scale down the rows about to be read that are longer than `max_norm`: a write that is no part of the program."""
    max_norm, norm_type = number(max_norm), number(norm_type)
    if unknown(index):
        return _limit_unknown_rows(weight, index, max_norm, norm_type)
    rows = np.unique(index)
    values = weight._array[rows]
    length = silently(np.linalg.norm, values, norm_type, 1)
    long = length > max_norm
    if not long.any():
        return
    scaled = silently(np.multiply, values[long], (max_norm / (length[long] + 1e-7)).astype(values.dtype)[:, None])
    call_with(UNRECORDED, put, weight, (rows[long],), make(scaled), "embedding")


def _limit_unknown_rows(weight: Tensor, index: Array, max_norm: float, norm_type: float) -> None:
    """The same where it is not known which rows those are: all are scaled, the others by one."""
    values = weight._array
    read = np.zeros(len(values), bool)
    read[index.reshape(-1)] = True
    length = silently(np.linalg.norm, values, norm_type, 1)
    factor = np.where(read & (length > max_norm), max_norm / (length + 1e-7), 1.0).astype(values.dtype)
    call_with(UNRECORDED, put, weight, None, make(values * factor[:, None]), "embedding")


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Return the rows of a table with these numbers.

    >>> import mutagrad as mg
    >>> mg.nn.functional.embedding(mg.tensor([1, 0]), mg.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])

    The row `padding_idx` gets no gradient; rows longer than `max_norm` are first scaled down, in the table itself.
    If `sparse`, `backward()` gives a leaf that is read in no other way a sparse gradient, of the rows that were read.
    """
    index = _numbers("embedding", input, weight)
    padding = _padding("embedding", padding_idx, weight._array.shape[0])
    if max_norm is not None:
        _limit_rows(weight, index, max_norm, norm_type)
    return _rows(weight, index, _share(index, weight, padding, scale_grad_by_freq), sparse, padding)


# ----------------------------------------------------------------------------------------------------------------- bags

bag_sum = primitive("bag_sum", lambda a, bag, count: _sum_bags(a, bag, count), settings=("bag", "count"),
                    x=lambda xp, g, bag: xp.pick(g, (bag,)))


def _starts(bag: Array) -> Array:
    """Where in the sorted numbers of bags a new one starts."""
    return np.flatnonzero(np.concatenate(([True], bag[1:] != bag[:-1]))) if bag.size else bag


def _sum_bags(rows: Array, bag: Array, count: int) -> Any:
    out = np.zeros((count, *rows.shape[1:]), rows.dtype)
    if is_frozen(rows):
        add_at(out, (bag,), rows)
        return out
    starts = _starts(bag)
    if starts.size:
        each = len(bag) // starts.size
        alike = each * starts.size == len(bag) and bool((starts == np.arange(0, len(bag), each)).all())
        out[bag[starts]] = (np.add.reduce(rows.reshape(starts.size, each, *rows.shape[1:]), 1) if alike
                            else np.add.reduceat(rows, starts, 0))
    return out


def _largest(rows: Tensor, bag: Array, count: int) -> Any:
    """The largest of each column of a bag, the first where several are; zero for empty bags."""
    if is_frozen(rows._array):
        return _largest_at_once(rows, bag, count)
    values, starts = rows._array, _starts(bag)
    out = make(np.zeros((count, values.shape[1]), values.dtype))
    if not starts.size:
        return out
    top = np.repeat(np.maximum.reduceat(values, starts, 0), np.diff(np.append(starts, len(bag))), 0)
    numbers = np.where(values == top, np.arange(len(bag))[:, None], len(bag) - 1)
    chosen = read(rows, (np.minimum.reduceat(numbers, starts, 0), np.arange(values.shape[1])))
    return chosen if starts.size == count else put(out, (bag[starts],), chosen, "embedding_bag")


def _largest_at_once(rows: Tensor, bag: Array, count: int) -> Any:
    """The same without looking at where bags begin."""
    values = rows._array
    if not values.size:
        return make(np.zeros((count, values.shape[1]), values.dtype))
    shape = count, values.shape[1]
    top, numbers = np.full(shape, -np.inf, values.dtype), np.full(shape, len(values))
    np.maximum.at(top, (bag,), values)
    mine = np.where(values == pick(top, (bag,)), np.arange(len(values))[:, None], len(values))
    np.minimum.at(numbers, (bag,), mine)
    chosen = read(rows, (np.minimum(numbers, len(values) - 1), np.arange(values.shape[1])))
    return RECORDED.where(make(numbers < len(values)), chosen, 0.0)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Any:
    """Return the sum, mean or largest of the rows in each bag: a row of `input`, or what lies between two offsets.

    >>> import mutagrad as mg
    >>> table = mg.tensor([[1., 2.], [3., 4.], [5., 6.]])
    >>> mg.nn.functional.embedding_bag(mg.tensor([[0, 2]]), table)
    tensor([[3., 4.]])
    """
    name = "embedding_bag"
    if (isinstance(weight, Tensor) and isinstance(input, Tensor)
            and weight._array.dtype.kind in "iu" and input._array.dtype.kind == "f"):
        raise BadArgument(f"{name}: the numbers of rows come first, then the table",
                          why="the order of the arguments changed once in PyTorch", fix=f"{name}(index, weight)")
    index = _numbers(name, input, weight)
    if mode not in ("sum", "mean", "max"):
        raise BadValue(f"{name}: mode {mode!r} is not 'sum', 'mean' or 'max'", fix="mode='sum'")
    weights = _sample_weights(name, per_sample_weights, input, weight, mode)
    for setting, given in (("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse)):
        if given and mode == "max":
            raise BadValue(f"{name}: {setting} has no meaning for mode='max'", fix=f"{setting}=False")
    bag, count = _bags(name, index, offsets, include_last_offset)
    padding = _padding(name, padding_idx, weight._array.shape[0])
    index = index.reshape(-1)
    if max_norm is not None:
        _limit_rows(weight, index, max_norm, norm_type)
    if padding is not None and unknown(index):  # a bag beyond the last is for what is left out
        bag, count = np.where(index == padding, count, bag), count + 1
        found = embedding_bags(weight, index, bag, count, weights, mode, scale_grad_by_freq)
        return narrow(found, 0, 0, count - 1)
    if padding is not None:
        counted = np.flatnonzero(index != padding)
        index, bag, weights = index[counted], bag[counted], None if weights is None else read(weights, (counted,))
    return embedding_bags(weight, index, bag, count, weights, mode, scale_grad_by_freq, sparse)


def embedding_bags(weight: Tensor, index: Array, bag: Array, count: int, weights: Any, mode: str,
                   by_frequency: bool, sparse: bool = False) -> Any:
    """The sum, mean or largest of the rows in each bag, by the number of the bag that each is in."""
    total = None
    if mode != "max" and weights is None and weight._storage.writer is None and is_plain(weight._array, index, bag):
        total = sum_bags(weight._array, index, np.searchsorted(bag, np.arange(count), "right"))
    if total is not None:
        total = make(total)
    else:
        rows = _rows(weight, index, _share(index, weight, None, by_frequency), sparse)
        if mode == "max":
            return _largest(rows, bag, count)
        total = bag_sum(rows if weights is None else rows * unsqueeze(weights, 1), bag, count)
    if mode == "sum":
        return total
    sizes = np.maximum(_counted(bag, count), 1).astype(weight._array.dtype)
    return total / make(sizes[:, None])


def _sample_weights(name: str, given: Tensor | None, input: Tensor, weight: Tensor, mode: str) -> Any:
    if given is None:
        return None
    tensor_argument(given, name)
    if mode != "sum":
        raise NotSupported(f"{name}: per_sample_weights are for mode='sum' alone, not {mode!r}", fix="mode='sum'")
    if given._array.shape != input._array.shape:
        raise BadValue(f"{name}: per_sample_weights of shape {given._array.shape} for an input "
                       f"of shape {input._array.shape}", fix="a weight for each number")
    if given._array.dtype is not weight._array.dtype:
        raise DTypeError(f"{name}: per_sample_weights have type {given._array.dtype.name} "
                         f"and the table {weight._array.dtype.name}", fix="w.to(x.dtype)")
    return reshape(given, -1)


def _bags(name: str, index: Array, offsets: Tensor | None, include_last_offset: bool) -> tuple[Any, int]:
    """For each number the bag that it is in, and how many bags there are."""
    if index.ndim == 2:
        if offsets is not None:
            raise BadValue(f"{name}: an input of two dimensions has a bag in each row, and takes no offsets",
                           fix="offsets=None")
        return np.repeat(np.arange(index.shape[0]), index.shape[1]), index.shape[0]
    if index.ndim != 1:
        raise BadValue(f"{name}: the input has {index.ndim} dimensions",
                       why="it may have one or two", fix="input.flatten(1)")
    if offsets is None:
        raise BadValue(f"{name}: an input of one dimension needs offsets",
                       why="they say where bags begin", fix="offsets=mutagrad.tensor([0, 3])")
    tensor_argument(offsets, name)
    starts = offsets._array
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise BadValue(f"{name}: offsets must be a vector of integers", fix="offsets=mutagrad.tensor([0, 3])")
    if anywhere(starts[:1] != 0):
        raise BadValue(f"{name}: offsets[0] must be 0, not {starts[0]}",
                       why="the first bag begins with the first number", fix="offsets - offsets[0]")
    if anywhere(starts > index.size) or anywhere(starts[1:] < starts[:-1]):
        raise BadValue(f"{name}: offsets must grow and not exceed the {index.size} numbers of the input",
                       fix="offsets from sizes.cumsum(0)")
    if include_last_offset and not starts.size:
        raise BadValue(f"{name}: with include_last_offset there must be one offset at least, the end of the input",
                       fix="include_last_offset=False")
    starts = starts[:-1] if include_last_offset else starts
    if unknown(starts):
        return np.searchsorted(starts, np.arange(index.size), "right") - 1, starts.size
    return np.repeat(np.arange(starts.size), np.diff(starts, append=index.size)), starts.size
