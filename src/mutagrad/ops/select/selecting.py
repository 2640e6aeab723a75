"""Reading and writing under a name: `gather`, `scatter`, `index_add`, `masked_fill`, `take`, `put` and the like.

They are all the two operations of indexing.py with differently made indices.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np
from ...arrays.compiled.library import WORTH
from ...arrays.kinds import anywhere, is_plain, unknown
from ...arrays.places import add_at, beside, combine, nonzero as nonzero_places, take as take_places, take_beside
from ...base.errors import BadArgument, BadIndex, BadIndexType, NotSupported, ShapeError, bad_choice, may_need_much
from ...base.operands import Array, kind_name
from ...core.codegen import primitive
from ...core.evidence import cut
from ...core.factory import make
from ...core.index import ALL, as_vector, basic_view, index_shape, positions, split_index, vector_of
from ...core.indexing import as_value, copy_, put, put_where, read
from ...core.number import number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase
from ...core.window import Index
from ...core.write import check_cast
from ..math.elementwise import cast, where_values
from ..shape.shape import broadcast_tensors, clone, expand, flatten, reshape, tensor_argument, whole_dim

ndarray = np.ndarray


def _tuple_index(x: TensorBase, indices: Sequence[TensorBase | None], name: str) -> tuple[TensorBase, Any]:
    if isinstance(indices, TensorBase) or not isinstance(indices, (tuple, list)):
        raise BadArgument(f"{name}: indices must be a tuple of tensors", fix=f"x.{name}((indices,), values)")
    found = (ALL if i is None else i if isinstance(i, TensorBase) else RECORDED.as_tensor(i) for i in indices)
    view, index = split_index(x, tuple(found))
    return view, index


def index_put_(x: TensorBase, indices: Sequence[TensorBase | None], values: TensorBase | complex,
               accumulate: bool = False) -> Any:
    """Do `x[indices] = values`, or, accumulating, `x[indices] += values` with every duplicate counted.

    >>> import mutagrad as mg
    >>> x = mg.zeros(3)
    >>> x.index_put_((mg.tensor([0, 0]),), mg.tensor(1.), accumulate=True)
    tensor([2., 0., 0.])
    """
    view, index = _tuple_index(tensor_argument(x, "index_put_"), indices, "index_put_")
    put(view, index, values, "index_put_", accumulate)
    return x


def index_put(input: TensorBase, indices: Sequence[TensorBase | None], values: TensorBase | complex,
              accumulate: bool = False) -> Any:
    """Do `index_put_` on a copy.

    >>> import mutagrad as mg
    >>> mg.index_put(mg.zeros(3), (mg.tensor([0, 2]),), mg.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    return index_put_(clone(tensor_argument(input, "index_put")), indices, values, accumulate)


def _along(x: TensorBase, dim: int, index: TensorBase, name: str, from_end: bool = False) -> tuple[Any, ...]:
    """The index that picks whole slices along a dimension."""
    dim = whole_dim(dim, x._array.ndim, name)
    if not isinstance(index, TensorBase):
        raise BadArgument(f"{name}: the index must be a tensor, not {kind_name(index)}",
                          fix="mutagrad.tensor([0, 2])")
    array = index._array
    if array.dtype.kind not in "iu":
        raise BadIndex(f"{name}: the index must be of integers, not {array.dtype.name}", fix="index.long()")
    if array.ndim > 1:
        raise BadIndex(f"{name}: the index must be a vector, not of shape {array.shape}", fix="index.flatten()")
    return (ALL,) * dim + (positions(array.reshape(-1), x._array.shape[dim] if x._array.ndim else 1, dim, from_end),)


def _lifted(x: TensorBase) -> TensorBase:
    return x if x._array.ndim else reshape(x, 1)


def index_select(input: TensorBase, dim: int, index: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the slices at `index` along a dimension.

    >>> import mutagrad as mg
    >>> mg.index_select(mg.tensor([[1, 2], [3, 4]]), 1, mg.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    lifted = _lifted(tensor_argument(input, "index_select"))
    result = read(lifted, _along(lifted, dim, index, "index_select"))
    return write_out("index_select", result if input._array.ndim else reshape(result, ()), out)


def index_add_(x: TensorBase, dim: int, index: TensorBase, source: TensorBase, *, alpha: float = 1) -> Any:
    """Add slices of `source` to those at `index` along a dimension; duplicates add up.

    >>> import mutagrad as mg
    >>> x = mg.zeros(3)
    >>> x.index_add_(0, mg.tensor([0, 2, 2]), mg.tensor([1., 2., 3.]))
    tensor([1., 0., 5.])
    """
    alpha = number(alpha)
    whole = _along(_lifted(x), dim, index, "index_add_")
    _check_slices(_lifted(x), whole, source, "index_add_")
    put(_lifted(x), whole, source if alpha == 1 else source * alpha, "index_add_", accumulate=True)
    return x


def index_copy_(x: TensorBase, dim: int, index: TensorBase, source: TensorBase) -> Any:
    """Overwrite the slices at `index` along a dimension with those of `source`.

    >>> import mutagrad as mg
    >>> mg.zeros(3).index_copy_(0, mg.tensor([0, 2]), mg.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    whole = _along(_lifted(x), dim, index, "index_copy_")
    _check_slices(_lifted(x), whole, source, "index_copy_")
    put(_lifted(x), whole, source, "index_copy_")
    return x


def _check_slices(x: TensorBase, index: tuple[Any, ...], source: Any, name: str) -> None:
    """A source must have a slice for each index; unlike a written value it is not broadcast."""
    wanted = index_shape(x._array.shape, index)
    if isinstance(source, TensorBase) and source._array.shape != wanted and (source._array.ndim or wanted != (1,)):
        raise BadIndex(f"{name}: a source of shape {source._array.shape} has not a slice of shape {wanted} "
                       "for the index", fix="source.expand(...)")


def index_fill_(x: TensorBase, dim: int, index: TensorBase, value: TensorBase | complex) -> Any:
    """Overwrite the slices at `index` along a dimension with one value.

    >>> import mutagrad as mg
    >>> mg.zeros(3).index_fill_(0, mg.tensor([0, 2]), 5.)
    tensor([5., 0., 5.])
    """
    put(_lifted(x), _along(_lifted(x), dim, index, "index_fill_", from_end=True), value, "index_fill_")
    return x


def index_add(input: TensorBase, dim: int, index: TensorBase, source: TensorBase, *, alpha: float = 1,
              out: TensorBase | None = None) -> Any:
    """Do `index_add_` on a copy.

    >>> import mutagrad as mg
    >>> mg.index_add(mg.zeros(3), 0, mg.tensor([0, 2, 2]), mg.tensor([1., 2., 3.]))
    tensor([1., 0., 5.])
    """
    found = index_add_(clone(tensor_argument(input, "index_add")), dim, index, source, alpha=alpha)
    return write_out("index_add", found, out)


def index_copy(input: TensorBase, dim: int, index: TensorBase, source: TensorBase, *,
               out: TensorBase | None = None) -> Any:
    """Do `index_copy_` on a copy.

    >>> import mutagrad as mg
    >>> mg.index_copy(mg.zeros(3), 0, mg.tensor([0, 2]), mg.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    return write_out("index_copy", index_copy_(clone(tensor_argument(input, "index_copy")), dim, index, source), out)


def index_fill(input: TensorBase, dim: int, index: TensorBase, value: TensorBase | complex) -> Any:
    """Do `index_fill_` on a copy.

    >>> import mutagrad as mg
    >>> mg.index_fill(mg.zeros(3), 0, mg.tensor([0, 2]), 5.)
    tensor([5., 0., 5.])
    """
    return index_fill_(clone(tensor_argument(input, "index_fill")), dim, index, value)


# ------------------------------------------------------------------------------------------------------ gather, scatter

def _grid(x: TensorBase, dim: int, index: TensorBase, name: str) -> tuple[Array, ...]:
    """The index of gather and scatter: `index` along `dim`, each position itself along the others."""
    if not isinstance(index, TensorBase) or index._array.dtype.kind not in "iu":
        raise BadIndexType(f"{name}: the index must be a tensor of integers",
                           fix="index.long(); mutagrad.relax.gather and scatter_ are differentiable in the index")
    shape, array = x._array.shape, index._array
    dim = whole_dim(dim, len(shape), name)
    if array.ndim != len(shape):
        raise ShapeError(f"{name}: Index tensor must have the same number of dimensions as the input tensor, "
                         f"got {array.ndim} and {len(shape)}", fix="index.unsqueeze(-1), or x[index]")
    for d, n in enumerate(array.shape):
        if d != dim and n > shape[d]:
            raise ShapeError(f"{name}: index of shape {array.shape} exceeds the tensor's shape {shape} "
                             f"in dimension {d}", fix="index[:n]")
    index_arrays = [np.arange(n).reshape((-1,) + (1,) * (array.ndim - 1 - d)) for d, n in enumerate(array.shape)]
    index_arrays[dim] = positions(array, shape[dim], dim, from_end=False)
    return tuple(index_arrays)


def _spots(x: TensorBase, dim: int, index: TensorBase, name: str) -> tuple[TensorBase, Index]:
    """The same as an index into a vector, where that can be."""
    if _are_many(x, index):
        found = beside(index._array, x._array.shape, whole_dim(dim, x._array.ndim, name))
        if found is not None:
            return vector_of(x), (found,)
    return as_vector(x, _grid(x, dim, index, name))


def _are_many(x: TensorBase, index: TensorBase) -> bool:
    """Whether an index is worth a compiled loop, which a tensor is laid out for."""
    return (isinstance(index, TensorBase) and index._array.ndim == x._array.ndim and index._array.size >= WORTH
            and x._array.flags.c_contiguous and is_plain(x._array))


@may_need_much
def gather(input: TensorBase, dim: int, index: TensorBase, *, sparse_grad: bool = False,
           out: TensorBase | None = None) -> Any:
    """Return `out[i][j] = x[index[i][j]][j]` for dim 0, and so on.

    >>> import mutagrad as mg
    >>> mg.gather(mg.tensor([[1, 2], [3, 4]]), 1, mg.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    return _gather(input, dim, index) if out is None else write_out("gather", _gather(input, dim, index), out)


def _gather(input: TensorBase, dim: int, index: TensorBase) -> Any:
    if not tensor_argument(input, "gather")._array.ndim:
        whole_dim(dim, 0, "gather")
        return reshape(_gather(reshape(input, 1), 0, reshape(index, -1)), *index._array.shape)
    if isinstance(index, TensorBase) and not index._array.ndim and input._array.ndim == 1:
        return reshape(_gather(input, dim, reshape(index, 1)), ())
    if isinstance(index, TensorBase) and not index._array.size:  # in PyTorch it may have any number of dimensions
        return reshape(basic_view(flatten(input), (slice(0, 0),)), *index._array.shape)
    if _are_many(input, index):
        found = take_beside(input._array, index._array, whole_dim(dim, input._array.ndim, "gather"))
        if found is not None:
            return read(vector_of(input), found[:1], found[1])
    return read(*_spots(input, dim, index, "gather"))


def take_along_dim(input: TensorBase, indices: TensorBase, dim: int | None = None, *,
                   out: TensorBase | None = None) -> Any:
    """Do as gather, with the index broadcast against the tensor in the other dimensions.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[3, 1], [2, 4]])
    >>> mg.take_along_dim(x, x.argsort(dim=1), dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    for x in (input, indices):
        tensor_argument(x, "take_along_dim")
    if dim is None:
        return take_along_dim(flatten(input), flatten(indices), 0, out=out)
    dim = whole_dim(dim, input._array.ndim, "take_along_dim")
    if indices._array.ndim != input._array.ndim:
        raise ShapeError(f"take_along_dim: the tensor has {input._array.ndim} dimensions "
                         f"and the index {indices._array.ndim}",
                         why="they must have equally many", fix="indices as x.argsort(dim) gives them")
    shape, wanted = list(input._array.shape), list(indices._array.shape)
    if indices._array.dtype.kind in "iu":
        indices = make(positions(indices._array, shape[dim] if shape else 1, dim))
    try:
        common = list(np.broadcast_shapes((*shape[:dim], 1, *shape[dim + 1:]), (*wanted[:dim], 1, *wanted[dim + 1:])))
    except ValueError:
        raise ShapeError(f"take_along_dim: shapes {tuple(shape)} and {tuple(wanted)} do not broadcast "
                         f"outside dimension {dim}", fix="indices as x.argsort(dim) gives them") from None
    source, picks = common.copy(), common.copy()
    source[dim], picks[dim] = shape[dim], wanted[dim]
    return gather(expand(input, *source), dim, expand(indices, *picks), out=out)


def _scatter_source(x: TensorBase, index: TensorBase, src: Any, name: str) -> Any:
    """The part of `src` that the index covers."""
    if not isinstance(src, TensorBase):
        return src
    shape = index._array.shape
    if src._array.shape == shape:
        return src
    if src._array.ndim != len(shape) or any(a > b for a, b in zip(shape, src._array.shape)):
        raise ShapeError(f"{name}: index of shape {shape} exceeds the source's shape {src._array.shape}",
                         fix="a source of at least the index's shape, or a number")
    return basic_view(src, tuple(slice(n) for n in shape))


def scatter_(x: TensorBase, dim: int, index: TensorBase, src: TensorBase | complex | None = None, *,
             value: complex | None = None, reduce: str | None = None) -> Any:
    """Do `x[index[i][j]][j] = src[i][j]` for dim 0, and so on; the reverse of gather.

    >>> import mutagrad as mg
    >>> mg.zeros(3).scatter_(0, mg.tensor([2, 0]), mg.tensor([1., 5.]))
    tensor([5., 0., 1.])
    """
    src = number(value) if src is None else src
    if not isinstance(src, (TensorBase, bool, int, float, complex, np.generic)):
        raise BadArgument(f"scatter_: src must be a tensor or a number, not {kind_name(src)}",
                          fix="x.scatter_(dim, index, mutagrad.tensor(src))")
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise bad_choice(reduce, str, f"scatter_: reduce argument must be 'add' or 'multiply', not {reduce!r}",
                             fix="x.scatter_reduce_(dim, index, src, 'amax')")
        src = src if isinstance(src, TensorBase) else expand(make(np.array(src, x._array.dtype)), *index._array.shape)
        return scatter_reduce_(x, dim, index, src, "sum" if reduce == "add" else "prod")
    if not x._array.ndim:
        return scatter_one(x, index, src, "scatter_", False)
    put(*_spots(x, dim, index, "scatter_"), _scatter_source(x, index, src, "scatter_"), "scatter_")
    return x


def scatter_one(x: TensorBase, index: TensorBase, src: Any, name: str, accumulate: bool) -> Any:
    """Scatter into a 0-d tensor, seen as a vector of one."""
    flat = reshape(index, -1)
    source = reshape(src, -1) if isinstance(src, TensorBase) else src
    put(reshape(x, 1), _grid(reshape(x, 1), 0, flat, name), source, name, accumulate)
    return x


def scatter_add_(x: TensorBase, dim: int, index: TensorBase, src: TensorBase) -> Any:
    """Do as scatter_, adding; duplicates add up.

    >>> import mutagrad as mg
    >>> mg.zeros(3).scatter_add_(0, mg.tensor([2, 2]), mg.tensor([1., 5.]))
    tensor([0., 0., 6.])
    """
    if not x._array.ndim:
        return scatter_one(x, index, src, "scatter_add_", True)
    target, places = _spots(x, dim, index, "scatter_add_")
    put(target, places, _scatter_source(x, index, src, "scatter_add_"), "scatter_add_", accumulate=True)
    return x


def scatter(input: TensorBase, dim: int, index: TensorBase, src: TensorBase | complex | None = None, *,
            value: complex | None = None, reduce: str | None = None, out: TensorBase | None = None) -> Any:
    """Do `scatter_` on a copy.

    >>> import mutagrad as mg
    >>> mg.scatter(mg.zeros(3), 0, mg.tensor([2, 0]), mg.tensor([1., 5.]))
    tensor([5., 0., 1.])
    """
    found = scatter_(clone(tensor_argument(input, "scatter")), dim, index, src, value=value, reduce=reduce)
    return write_out("scatter", found, out)


def scatter_add(input: TensorBase, dim: int, index: TensorBase, src: TensorBase, *,
                out: TensorBase | None = None) -> Any:
    """Do `scatter_add_` on a copy.

    >>> import mutagrad as mg
    >>> mg.scatter_add(mg.zeros(3), 0, mg.tensor([2, 2]), mg.tensor([1., 5.]))
    tensor([0., 0., 6.])
    """
    return write_out("scatter_add", scatter_add_(clone(tensor_argument(input, "scatter_add")), dim, index, src), out)


_REDUCE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
_START = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


def _start(kind: str, dtype: Any) -> Any:
    if kind in ("amax", "amin") and dtype.kind == "b":
        return kind == "amin"
    if kind in ("amax", "amin") and dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if kind == "amax" else info.max
    return _START[kind]


def _scatter_reduce_forward(a: Array, b: Array, index: tuple[Array, ...], kind: str, include_self: bool) -> Array:
    out = a.copy()
    if not include_self:
        out[index] = _start(kind, a.dtype)
    if kind in ("sum", "mean"):
        add_at(out, index, b)
    else:
        combine(_REDUCE[kind], out, index, b)
    if kind == "mean":
        count = _counts(a, index, include_self)
        out = (out / count if a.dtype.kind == "f" else out // count).astype(a.dtype)
    return out


def _counts(a: Array, index: tuple[Array, ...], include_self: bool) -> Any:
    count = np.full(a.shape, 1 if include_self else 0, a.dtype)
    add_at(count, index, np.ones(np.broadcast_shapes(*(part.shape for part in index)), a.dtype))
    return np.maximum(count, 1)


def _share_of(xp: Any, g: Any, x: Any, y: Any, out: Any, index: Any, kind: str, include_self: bool) -> tuple[Any, Any]:
    """The adjoints of both inputs of scatter_reduce, each as a function of the local derivative."""
    def own(v: Any) -> Any:
        return v if include_self else v * xp.untouched(g, index)

    if kind == "sum":
        return own(g), xp.pick(g, index)
    if kind == "mean":
        scaled = g / xp.counts(x, index, include_self)
        return own(scaled), xp.pick(scaled, index)
    if kind == "prod":
        others_x, others_y = xp.product_without(x, y, out, index, include_self)
        return own(g * others_x), xp.pick(g, index) * others_y
    hit_x, hit_y = own(xp.as_float(x == out, g)), xp.as_float(y == xp.pick(out, index), g)
    winners = xp.put_add(hit_x, index, hit_y)
    share = g / xp.where(winners == 0, 1.0, winners)
    return share * hit_x, xp.pick(share, index) * hit_y


_scatter_reduce = primitive(
    "scatter_reduce", _scatter_reduce_forward, settings=("index", "kind", "include_self"),
    x=lambda xp, g, x, y, out, index, kind, include_self: _share_of(xp, g, x, y, out, index, kind, include_self)[0],
    y=lambda xp, g, x, y, out, index, kind, include_self: _share_of(xp, g, x, y, out, index, kind, include_self)[1])


def _untouched(g: Array, index: tuple[Array, ...]) -> Any:
    """0 where the old value of x does not count in the result, else 1."""
    mask = np.ones(g.shape, g.dtype)
    mask[index] = 0
    return mask


def _put_add(a: Array, index: tuple[Array, ...], b: Array) -> Array:
    out = a.copy()
    add_at(out, index, b)
    return out


def _product_without(x: Array, y: Array, out: Array, index: tuple[Array, ...],
                     include_self: bool) -> tuple[Array, Array]:
    """For each factor the product of all the others that meet it in the same place; right at zeros."""
    counts = np.ones(x.shape, bool) if include_self else _untouched(x, index) != 0
    zeros = (counts & (x == 0)).astype(np.int64)
    add_at(zeros, index, (y == 0).astype(np.int64))
    nonzero = np.where(counts & (x != 0), x, 1).astype(x.dtype)
    combine(np.multiply, nonzero, index, np.where(y == 0, 1, y).astype(y.dtype))

    def without(factor: Array, total: Array, how_many: Array) -> Any:
        rest = np.where(how_many == 0, total / np.where(factor == 0, 1, factor), 0)
        return np.where(factor == 0, np.where(how_many == 1, total, 0), rest).astype(total.dtype)

    return without(x, nonzero, zeros), without(y, nonzero[index], zeros[index])


def _product_recorded(x: TensorBase, y: TensorBase, out: TensorBase, index: tuple[Array, ...],
                      include_self: bool) -> tuple[TensorBase, TensorBase]:
    if anywhere(x._array == 0) or anywhere(y._array == 0):
        raise NotSupported("scatter_reduce: no second derivative of 'prod' where a factor is zero",
                           fix="add a small number to the zeros")
    return out / x, read(out, index) / y


RAW.untouched, RECORDED.untouched = _untouched, lambda g, index: make(_untouched(g._array, index))
RAW.counts, RECORDED.counts = _counts, lambda x, index, s: make(_counts(x._array, index, s))
RAW.pick, RECORDED.pick = lambda a, index: take_places(a, index[0]) if len(index) == 1 else a[index], read
RAW.put_add, RECORDED.put_add = _put_add, lambda x, index, y: make(_put_add(x._array, index, y._array))
RAW.as_float, RECORDED.as_float = lambda mask, g: mask.astype(g.dtype), lambda mask, g: cast(mask, g._array.dtype)
RAW.product_without, RECORDED.product_without = _product_without, _product_recorded


def scatter_reduce(input: TensorBase, dim: int, index: TensorBase, src: TensorBase, reduce: str, *,
                   include_self: bool = True) -> Any:
    """Combine sources that meet in one place: "sum", "prod", "mean", "amax" or "amin".

    >>> import mutagrad as mg
    >>> mg.scatter_reduce(mg.zeros(3), 0, mg.tensor([2, 2]), mg.tensor([1., 5.]), "amax")
    tensor([0., 0., 5.])
    """
    tensor_argument(input, "scatter_reduce")
    if reduce not in _REDUCE:
        raise bad_choice(reduce, str, f"scatter_reduce: reduce={reduce!r} is none of {', '.join(_REDUCE)}",
                         fix="reduce='sum'")
    if not input._array.ndim:
        x, index, src = reshape(input, 1), reshape(index, -1), reshape(src, -1)
        return reshape(scatter_reduce(x, 0, index, src, reduce, include_self=include_self), ())
    target, places = _spots(input, dim, index, "scatter_reduce")
    src = as_value(_scatter_source(input, index, src, "scatter_reduce"), input, "scatter_reduce")
    found = _scatter_reduce(target, src, places, reduce, include_self)
    return found if target is input else reshape(found, *input._array.shape)


def scatter_reduce_(x: TensorBase, dim: int, index: TensorBase, src: TensorBase, reduce: str, *,
                    include_self: bool = True) -> Any:
    """Write `scatter_reduce` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.zeros(3).scatter_reduce_(0, mg.tensor([2, 2]), mg.tensor([1., 5.]), "amax")
    tensor([0., 0., 5.])
    """
    return copy_(x, scatter_reduce(x, dim, index, src, reduce, include_self=include_self))


# ---------------------------------------------------------------------------------------------------------------- masks

def _mask_index(x: TensorBase, mask: TensorBase, name: str) -> tuple[TensorBase, tuple[Array, ...]]:
    """The elements where the mask holds, as a window and an index into it."""
    if not isinstance(mask, TensorBase) or mask._array.dtype.kind != "b":
        raise BadIndexType(f"{name}: the mask must be a boolean tensor", fix="mask.bool() or x > 0")
    try:
        full = np.broadcast_to(mask._array, x._array.shape)
    except ValueError:
        raise ShapeError(f"{name}: a mask of shape {mask._array.shape} does not broadcast to shape {x._array.shape}",
                         fix="mask[:, None] where it is for rows") from None
    return (vector_of(x), (np.flatnonzero(full),)) if x._array.flags.c_contiguous else (x, nonzero_places(full))


def masked_fill_(x: TensorBase, mask: TensorBase, value: TensorBase | complex) -> Any:
    """Overwrite the elements where the mask holds with one value.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2., 3.]).masked_fill_(mg.tensor([True, False, True]), 0.)
    tensor([0., 2., 0.])
    """
    _check_filling(x, value, "masked_fill_")
    if isinstance(mask, TensorBase) and not is_plain(mask._array):
        put_where(x, mask, value, "masked_fill_")
        return x
    lifted, where = _lifted(x), mask if x._array.ndim else _lifted(mask)
    put(*_mask_index(lifted, where, "masked_fill_"), value, "masked_fill_")
    return x


def masked_fill(input: TensorBase, mask: TensorBase, value: TensorBase | complex) -> Any:
    """Return `value` where the mask holds, else x.

    >>> import mutagrad as mg
    >>> mg.masked_fill(mg.tensor([1., 2., 3.]), mg.tensor([True, False, True]), 0.)
    tensor([0., 2., 0.])
    """
    tensor_argument(input, "masked_fill")
    if not isinstance(mask, TensorBase) or mask._array.dtype.kind != "b":
        raise BadIndexType("masked_fill: the mask must be a boolean tensor", fix="mask.bool() or x > 0")
    _check_filling(input, value, "masked_fill")
    return where_values(mask, as_value(value, input, "masked_fill"), input)


def _check_filling(x: TensorBase, value: TensorBase | complex, name: str) -> None:
    if isinstance(value, TensorBase):
        if value._array.dtype.kind == "c":
            check_cast(name, value._array.dtype, x._array.dtype)
        if value._array.ndim:
            raise ShapeError(f"{name}: the value must be a number or a 0-d tensor, not of shape {value._array.shape}",
                             fix="x[mask] = value")


@may_need_much
def masked_select(input: TensorBase, mask: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the elements where the mask holds, as a vector; both broadcast.

    >>> import mutagrad as mg
    >>> mg.masked_select(mg.tensor([1., 2., 3.]), mg.tensor([True, False, True]))
    tensor([1., 3.])
    """
    wide, where = map(_lifted, broadcast_tensors(input, mask))
    return write_out("masked_select", read(*_mask_index(wide, where, "masked_select")), out)


def masked_scatter_(x: TensorBase, mask: TensorBase, source: TensorBase) -> Any:
    """Overwrite the elements where the mask holds with those of `source`, in order.

    >>> import mutagrad as mg
    >>> mg.zeros(3).masked_scatter_(mg.tensor([True, False, True]), mg.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    if isinstance(mask, TensorBase) and unknown(mask._array):
        return _scattered_by(x, mask, flatten(tensor_argument(source, "masked_scatter_")))
    lifted, where = _lifted(x), mask if x._array.ndim else _lifted(mask)
    target, index = _mask_index(lifted, where, "masked_scatter_")
    n = index[0].size
    if tensor_argument(source, "masked_scatter_")._array.size < n:
        raise ShapeError(f"masked_scatter_: the mask picks {n} elements, but the source has {source._array.size}",
                         fix="a source of at least as many")
    put(target, index, basic_view(flatten(source), (slice(n),)), "masked_scatter_")
    return x


def _scattered_by(x: TensorBase, mask: TensorBase, source: TensorBase) -> Any:
    """The same for a mask that is not known yet: each place has its number among those where the mask holds."""
    if source._array.size:
        numbers = np.cumsum(np.broadcast_to(mask._array, x._array.shape).reshape(-1)) - 1
        picked = read(source, (np.clip(numbers, 0, source._array.size - 1),))
        put_where(x, mask, reshape(picked, *x._array.shape), "masked_scatter_")
    return x


def masked_scatter(input: TensorBase, mask: TensorBase, source: TensorBase) -> Any:
    """Return a copy into which the values of `source` are written, in order, where `mask` is true.

    >>> import mutagrad as mg
    >>> mg.masked_scatter(mg.zeros(3), mg.tensor([True, False, True]), mg.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    return masked_scatter_(clone(broadcast_tensors(input, mask)[0]), mask, source)


# ----------------------------------------------------------------------------------------------- the tensor as a vector

def _flat_index(x: TensorBase, index: TensorBase, name: str) -> tuple[Array, ...]:
    if not isinstance(index, TensorBase) or index._array.dtype.kind not in "iu":
        raise BadIndexType(f"{name}: the index must be a tensor of integers", fix="index.long()")
    places = positions(index._array, x._array.size, 0)
    return (places,) if x._array.ndim == 1 else tuple(np.asarray(i) for i in np.unravel_index(places, x._array.shape))


def take(input: TensorBase, index: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return elements by their number, as if the tensor were a vector.

    >>> import mutagrad as mg
    >>> mg.take(mg.tensor([[1, 2], [3, 4]]), mg.tensor([0, 3]))
    tensor([1, 4])
    """
    lifted = _lifted(tensor_argument(input, "take"))
    if lifted._array.flags.c_contiguous:
        lifted = vector_of(lifted)
    return write_out("take", read(lifted, _flat_index(lifted, index, "take")), out)


def put_(x: TensorBase, index: TensorBase, source: TensorBase, accumulate: bool = False) -> Any:
    """Write elements by their number, as if the tensor were a vector.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 2).put_(mg.tensor([0, 3]), mg.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    lifted = _lifted(x)
    if isinstance(index, TensorBase) and tensor_argument(source, "put_")._array.size != index._array.size:
        raise BadIndex(f"put_: {index._array.size} places for {source._array.size} elements",
                       why="there must be as many", fix="source.expand_as(index)")
    put(lifted, _flat_index(lifted, index, "put_"), reshape(source, *index._array.shape), "put_", accumulate)
    return x


def put_copy(input: TensorBase, index: TensorBase, source: TensorBase, accumulate: bool = False) -> Any:
    """Return a copy into which values are written at places counted through the whole tensor.

    >>> import mutagrad as mg
    >>> mg.put(mg.zeros(2, 2), mg.tensor([0, 3]), mg.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return put_(clone(tensor_argument(input, "put")), index, source, accumulate)


@may_need_much
def nonzero(input: TensorBase, *, as_tuple: bool = False, out: TensorBase | None = None) -> Any:
    """Return where elements are not zero: a row for each, or a tuple of index tensors.

    >>> import mutagrad as mg
    >>> mg.nonzero(mg.tensor([0, 1, 1]))
    tensor([[1],
            [2]])
    >>> mg.nonzero(mg.tensor([0, 1, 1]), as_tuple=True)
    (tensor([1, 2]),)
    """
    cut("nonzero", tensor_argument(input, "nonzero"))
    array = input._array
    if as_tuple:
        return tuple(make(i) for i in nonzero_places(array if array.ndim else array.reshape(1)))
    found = nonzero_places(array, True) if array.ndim else np.zeros((int(bool(array)), 0), np.int64)
    return write_out("nonzero", make(found), out)


def argwhere(input: TensorBase) -> Any:
    """Return where elements are not zero, a row for each.

    >>> import mutagrad as mg
    >>> mg.argwhere(mg.tensor([[0, 1], [1, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)
