"""Sparse tensors of other shapes, and parts of them: their indices are moved, picked and counted anew."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..arrays import np
from ..base.errors import BadArgument, BadIndex, NotSupported, ShapeError
from ..base.layout import sparse_coo, strided
from ..base.operands import Array
from ..core import dtypes
from ..core.size import sizes
from ..ops.create.create import zeros
from ..ops.random.draws import randn
from ..ops.select.selecting import index_select
from ..ops.shape.shape import cat, whole_dim, whole_dims
from ..tensors.tensor import Tensor
from .compressed import IN_BLOCKS, Compressed
from .construct import empty_compressed, empty_coo
from .convert import in_layout_of, to_dense, transposed_layout
from .coordinates import Coordinates, coordinates, keeping
from .elementwise import _at_places
from .table import answers, refused
from .tensor import SparseTensor, index_of

METHODS = "sparse_mask sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_"

# ---------------------------------------------------------------------------------------------------- other orders

@answers("permute")
def permute(input: Any, *dims: Any, **named: Any) -> Any:
    """Put the dimensions in another order; sparse ones stay before dense ones."""
    given = sizes(dims) if dims else sizes((named["dims"],))
    order = whole_dims(given, input.dim(), "permute")
    if len(order) != input.dim():
        raise ShapeError(f"permute: {given} is not an order of {input.dim()} dimensions")
    if isinstance(input, Compressed):
        return _permuted_batches(input, tuple(order))
    first = input.sparse_dim()
    if any((d < first) != (at < first) for at, d in enumerate(order)):
        raise ShapeError(f"permute: {tuple(given)} mixes the {first} sparse dimensions with the dense ones",
                         why="a dimension stays what it is", fix="x.to_dense().permute(...)")
    numbers = input._numbers.permute(0, *(d - first + 1 for d in order[first:]))
    coalesced = input._coalesced and list(order[:first]) == list(range(first))
    return Coordinates.of(index_of(input._places._array[list(order[:first])]), numbers,
                          [input.shape[d] for d in order], coalesced or input._nnz() < 2)


def _permuted_batches(x: Compressed, order: tuple[int, ...]) -> Any:
    batch = x.batch_dim()
    matrix, same = (batch, batch + 1), tuple(range(x.dim()))
    if order == same:
        return x._with(x._numbers)
    swapped = (*same[:batch], batch + 1, batch, *same[batch + 2:])
    if order == swapped:
        numbers = x._numbers.transpose(batch + 1, batch + 2) if x.layout in IN_BLOCKS else x._numbers
        return Compressed.of(x._starts, x._others, numbers, [x.shape[d] for d in order], transposed_layout(x))
    if order[batch:] == same[batch:]:
        across = (*order[:batch], *range(batch, x._numbers.ndim))
        return Compressed.of(x._starts.permute(*order[:batch], batch), x._others.permute(*order[:batch], batch),
                             x._numbers.permute(*across), [x.shape[d] for d in order], x.layout)
    raise ShapeError(f"permute: {order} mixes the dimensions of matrices, {matrix}, with others",
                     fix="x.to_sparse() is in coordinates")


@answers("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Exchange two dimensions; of compressed layouts rows become columns."""
    dims = list(range(input.dim()))
    a, b = whole_dim(dim0, input.dim(), "transpose"), whole_dim(dim1, input.dim(), "transpose")
    dims[a], dims[b] = dims[b], dims[a]
    return permute(input, dims)


@answers("t")
def t(input: Any) -> Any:
    """Return the matrix transposed."""
    if input.dim() > 2 or input.dense_dim():
        raise ShapeError(f"t: t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
                         f"{input.sparse_dim()} sparse and {input.dense_dim()} dense dimensions")
    return transpose(input, 0, 1) if input.dim() == 2 else input


@answers("adjoint")
def adjoint(input: Any) -> Any:
    return transpose(input._with(input._numbers.conj()), -2, -1)


@answers("t_", "transpose_", "swapaxes_", "swapdims_")
def _transpose_in_place(input: Any, *dims: int) -> Any:
    input._become(transpose(input, *dims) if dims else t(input))
    return input


@answers("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:
    """Insert a dimension of size one: a sparse one, unless it comes after a dense one."""
    x = coordinates(input)
    at = whole_dim(dim, x.dim() + 1, "unsqueeze")
    first, size = x.sparse_dim(), [*x.shape[:at], 1, *x.shape[at:]]
    if at > first:
        return Coordinates.of(x._places, x._numbers.unsqueeze(at - first + 1), size, x._coalesced)
    return Coordinates.of(index_of(np.insert(x._places._array, at, 0, axis=0)), x._numbers, size, x._coalesced)


@answers("squeeze")
def squeeze(input: Any, dim: Any = None) -> Any:
    """Drop dimensions of size one."""
    x = coordinates(input)
    wanted = range(x.dim()) if dim is None else whole_dims(dim, x.dim(), "squeeze")
    gone = {d for d in wanted if x.shape[d] == 1}
    first = x.sparse_dim()
    places = x._places._array[[d for d in range(first) if d not in gone]]
    dense = [d - first + 1 for d in gone if d >= first]
    numbers = x._numbers.squeeze(tuple(dense)) if dense else x._numbers
    return Coordinates.of(index_of(places), numbers, [n for d, n in enumerate(x.shape) if d not in gone], x._coalesced)


@answers("unsqueeze_", "squeeze_")
def _reshaped_in_place(input: Any, *dim: int) -> NoReturn:
    raise refused("unsqueeze_ and squeeze_", "other tensors share its values", "x = x.unsqueeze(dim)")


@answers("reshape", "view", "flatten", "ravel", "view_as", "reshape_as", "unflatten")
def _reshape(input: Any, *shape: Any, **settings: Any) -> NoReturn:
    raise refused("reshape", "reshape is not implemented for sparse tensors, as in PyTorch",
                  "x.to_dense().reshape(...)")


@answers("expand", "expand_as", "broadcast_to")
def _expand(input: Any, *shape: Any, **settings: Any) -> Any:
    wanted = sizes(shape) if not isinstance(shape[0], Tensor) else tuple(shape[0].shape)
    if isinstance(input, SparseTensor) and tuple(input.shape) == tuple(wanted):
        return input
    raise refused("expand", "expand is unsupported for Sparse tensors, as in PyTorch", "x.to_dense().expand(...)")


@answers("contiguous")
def _contiguous(input: Any, memory_format: Any = None) -> Any:
    return input.coalesce() if isinstance(input, Coordinates) else input


# -------------------------------------------------------------------------------------------------------------- parts

@answers("index_select")
def select_indices(input: Any, dim: int, index: Tensor, *, out: Any = None) -> Any:
    """Return the slices along a dimension that an index names, each as often as it is named."""
    x = coordinates(input)
    at = whole_dim(dim, x.dim(), "index_select")
    wanted = np.asarray(index._array).reshape(-1)
    size = [*x.shape[:at], len(wanted), *x.shape[at + 1:]]
    if len(wanted) and (wanted.min() < 0 or wanted.max() >= x.shape[at]):
        raise BadIndex(f"index_select: index out of range in self, of size {x.shape[at]} in dimension {at}")
    if at >= x.sparse_dim():
        numbers = index_select(x._numbers, at - x.sparse_dim() + 1, index)
        return in_layout_of(Coordinates.of(x._places, numbers, size, x._coalesced), input)
    # Entries in the order of this dimension; of each wanted slice, those from its beginning to its end.
    row = x._places._array[at]
    order = np.argsort(row, kind="stable")
    begin, end = (np.searchsorted(row[order], wanted, side) for side in ("left", "right"))
    counts = end - begin
    taken = order[np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
    places = x._places._array[:, taken]
    places[at] = np.repeat(np.arange(len(wanted)), counts)
    return in_layout_of(keeping(x, taken, places, size), input)


@answers("select")
def select(input: Any, dim: int, index: int) -> Any:
    """Return one slice along a dimension: dense, if that was the only sparse one."""
    x = coordinates(input)
    at, number = whole_dim(dim, x.dim(), "select"), int(index)
    n = x.shape[at]
    if not -n <= number < n:
        raise BadIndex(f"select: index {index} is out of range for dimension {at} of size {n}")
    size, first = [*x.shape[:at], *x.shape[at + 1:]], x.sparse_dim()
    if at >= first:
        return Coordinates.of(x._places, x._numbers.select(at - first + 1, number), size, x._coalesced)
    kept = x._places._array[at] == number % n
    found = keeping(x, kept, np.delete(x._places._array[:, kept], at, axis=0), size, x._coalesced)
    return to_dense(found) if first == 1 else found


@answers("narrow", "narrow_copy")
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """Return some slices along a dimension that follow each other: a copy, which has the gradient."""
    x = coordinates(input)
    at, begin = whole_dim(dim, x.dim(), "narrow"), int(start)
    n = x.shape[at]
    begin = begin + n if begin < 0 else begin
    if not 0 <= begin <= begin + length <= n:
        raise BadIndex(f"narrow: start {start} and length {length} lie outside of dimension {at} of size {n}")
    return in_layout_of(_stepped(x, at, begin, begin + length, 1), input)


def _stepped(x: Coordinates, at: int, start: int, stop: int, step: int) -> Coordinates:
    """Return `x[start:stop:step]` of one dimension."""
    length = max(0, -(-(stop - start) // step))
    size, first = [*x.shape[:at], length, *x.shape[at + 1:]], x.sparse_dim()
    if at >= first:
        part = (slice(None),) * (at - first + 1) + (slice(start, stop, step),)
        return Coordinates.of(x._places, x._numbers[part], size, x._coalesced)
    row = x._places._array[at]
    kept = (row >= start) & (row < stop) & ((row - start) % step == 0)
    places = x._places._array[:, kept]
    places[at] = (places[at] - start) // step
    return keeping(x, kept, places, size, x._coalesced)


@answers("__getitem__", "getitem")
def getitem(input: Any, key: Any) -> Any:
    """Index by integers, slices, `...`, None, and one index of several elements or a mask for a dimension."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if isinstance(input, Compressed) and any(not isinstance(k, int) for k in keys):
        return in_layout_of(getitem(coordinates(input), key), input) if input.batch_dim() == 0 else _no_index(key)
    taken = sum(_dims_of(k) for k in keys if k is not None and k is not Ellipsis)
    if keys.count(Ellipsis) > 1 or taken > input.dim():
        raise BadIndex(f"too many indices for a tensor of {input.dim()} dimensions")
    if Ellipsis in [k for k in keys if not isinstance(k, Tensor)]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at:at + 1] = [slice(None)] * (input.dim() - taken)
    x, at = input, 0
    for i, k in enumerate(keys):
        if k is None:
            x, at = unsqueeze(x, at), at + 1
        elif isinstance(k, slice):
            start, stop, step = k.indices(x.shape[at])
            if step < 1:
                raise BadIndex("a slice of a tensor has a positive step")
            x = x if (start, stop, step) == (0, x.shape[at], 1) else _stepped(coordinates(x), at, start, stop, step)
            at += 1
        elif _dims_of(k) == 1 and not isinstance(k, (list, Tensor, np.ndarray)) or _is_one(k):
            x = select(x, at, int(k))
            if not isinstance(x, SparseTensor):
                return x[(slice(None),) * at + tuple(keys[i + 1:])]
        else:
            x, at = select_indices(x, at, _as_index(k, x.shape[at])), at + 1
    return x


def _dims_of(key: Any) -> int:
    return key.dim() if isinstance(key, Tensor) and key.dtype is dtypes.bool_ else 1


def _is_one(key: Any) -> bool:
    return isinstance(key, Tensor) and not key.dim() and key.dtype is not dtypes.bool_


def _as_index(key: Any, n: int) -> Tensor:
    found = np.asarray(key._array if isinstance(key, Tensor) else key)
    if found.ndim != 1 or found.dtype == bool and len(found) != n or found.dtype.kind not in "iub":
        _no_index(key)
    found = np.flatnonzero(found) if found.dtype == bool else found
    if len(found) and (found.min() < -n or found.max() >= n):
        raise BadIndex(f"index {int(found.max())} is out of bounds for a dimension of size {n}")
    return index_of(np.where(found < 0, found + n, found))


def _no_index(key: Any) -> NoReturn:
    raise NotSupported(f"indexing: {key!r} is not supported for sparse tensors",
                       why="integers, slices, None, ..., and vectors of indices are", fix="x.to_dense()[...]")


@answers("unbind")
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return all slices along a dimension."""
    return tuple(select(input, dim, i) for i in range(input.size(dim)))


# ------------------------------------------------------------------------------------------------------ put together

def _all_sparse(name: str, tensors: Sequence[Any]) -> list[Coordinates]:
    for i, x in enumerate(tensors):
        if not isinstance(x, SparseTensor):
            raise NotSupported(f"{name}: Concatenating sparse tensors, but a dense tensor was found at position {i}.",
                               fix=f"tensors[{i}].to_sparse()")
    return [coordinates(x) for x in tensors]


@answers("cat", "concat", "concatenate")
def concatenated(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None, out: Any = None) -> Any:
    """Put sparse tensors one behind the other along a dimension."""
    xs = _all_sparse("cat", tensors)
    at = whole_dim(dim if axis is None else axis, xs[0].dim(), "cat")
    first = xs[0].sparse_dim()
    for x in xs:
        rest = [(n, m) for d, (n, m) in enumerate(zip(x.shape, xs[0].shape)) if d != at]
        if x.sparse_dim() != first or x.dim() != xs[0].dim() or any(n != m for n, m in rest):
            raise ShapeError(f"cat: shapes {tuple(xs[0].shape)} and {tuple(x.shape)} differ beyond dimension {at}",
                             why=f"or in sparse dimensions: {first} and {x.sparse_dim()}")
    lengths = [x.shape[at] for x in xs]
    size = [*xs[0].shape[:at], sum(lengths), *xs[0].shape[at + 1:]]
    begins = np.cumsum([0, *lengths])
    if at < first:
        moved = [x._places._array + (np.arange(first) == at)[:, None] * b for x, b in zip(xs, begins)]
        made = Coordinates.of(index_of(np.concatenate(moved, 1)), cat([x._numbers for x in xs]), size,
                              at == 0 and all(x._coalesced for x in xs))
    else:
        made = Coordinates.of(index_of(np.concatenate([x._places._array for x in xs], 1)),
                              cat([_padded(x._numbers, at - first + 1, b, size[at]) for x, b in zip(xs, begins)]), size)
    return in_layout_of(made, tensors[0])


def _padded(numbers: Tensor, dim: int, begin: int, length: int) -> Tensor:
    """Return values that are zero outside of their part of a dense dimension."""
    shape = [*numbers.shape]
    before, behind = [*shape], [*shape]
    before[dim], behind[dim] = begin, length - begin - shape[dim]
    ends = [zeros(tuple(s), dtype=numbers.dtype) for s in (before, behind)]
    return cat([ends[0], numbers, ends[1]], dim)  # type: ignore[no-any-return]


@answers("stack")
def stacked(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """Put sparse tensors of one shape along a new dimension."""
    at = whole_dim(dim, tensors[0].dim() + 1, "stack")
    return concatenated([unsqueeze(x, at) for x in _all_sparse("stack", tensors)], at)


# ------------------------------------------------------------------------------------------- of the same form, or none

@answers("zeros_like", "empty_like", "new_zeros", "new_empty")
def _blank(input: Any, *size: Any, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
           device: Any = None, **settings: Any) -> Any:
    """Return a sparse tensor that is zero everywhere; of compressed layouts, with the same places."""
    shape = sizes(size) if size else tuple(input.shape)
    wanted = dtype or input.dtype
    if layout is strided:
        made = zeros(shape, dtype=wanted)
    elif isinstance(input, Coordinates) and layout in (None, sparse_coo):
        made = empty_coo(shape, input.dense_dim() if not size else 0, wanted)
    elif not size and layout in (None, input.layout):
        made = input._with(zeros(tuple(input._numbers.shape), dtype=wanted))
    else:
        made = empty_compressed(shape, layout or input.layout, dtype=wanted)
    return made.requires_grad_() if requires_grad else made


@answers("randn_like")
def _random(input: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return a tensor with other values, drawn from the normal distribution, at the same places."""
    wanted = dtype or input.dtype
    if layout is strided:
        return randn(*input.shape, dtype=wanted, requires_grad=requires_grad)
    if isinstance(input, Coordinates):
        raise refused("randn_like", "there are normal numbers at no place of an empty tensor, as in PyTorch")
    made = input._with(randn(*input._numbers.shape, dtype=wanted))
    return made.requires_grad_() if requires_grad else made


@answers("zero_")
def _zero(input: Any) -> Any:
    """Make all elements zero: no place is left of coordinates, all places of compressed layouts."""
    if isinstance(input, Compressed):
        input._numbers.zero_()
        return input
    input._become(empty_coo(tuple(input.shape), input.dense_dim(), input.dtype))
    return input


@answers("new")
def _new(input: Any, *given: Any) -> Any:
    if len(given) >= 2 and isinstance(given[0], Tensor):
        return Coordinates.of(given[0].to(dtypes.int64), given[1], sizes((given[2],)))
    return empty_coo(sizes(given) if given else (0,), dtype=input.dtype)


@answers("is_same_size")
def _is_same_size(input: Any, other: Any) -> bool:
    return tuple(input.shape) == tuple(other.shape)


def sparse_mask(self: Tensor, mask: Any) -> Any:
    """Return the elements at the places of a sparse tensor, in its layout.

    >>> import mutagrad as mg
    >>> mg.ones(2, 2).sparse_mask(mg.eye(2).to_sparse()).values()
    tensor([1., 1.])
    """
    if not isinstance(mask, SparseTensor):
        raise BadArgument("sparse_mask: the mask must be sparse", fix="x.sparse_mask(mask.to_sparse())")
    if tuple(self.shape) != tuple(mask.shape):
        raise ShapeError(f"sparse_mask(): operands have incompatible sizes; self has size {tuple(self.shape)} "
                         f"but mask has size {tuple(mask.shape)}")
    if isinstance(mask, Coordinates):
        mask = mask.coalesce()
    if isinstance(self, SparseTensor):
        return mask._with(_looked_up(coordinates(self), mask).reshape(mask._numbers.shape))
    return mask._with(_at_places(mask, self, "sparse_mask").reshape(mask._numbers.shape))


def _looked_up(x: Coordinates, mask: Any) -> Tensor:
    """Return the elements of a sparse tensor at the places of another one, zero where it has none."""
    from_mask = mask._places_of_values()[0]
    x = x.coalesce()
    both = np.concatenate([x._places._array, from_mask], 1)
    flat = _numbered(both, tuple(x.shape))
    have, want = flat[:x._nnz()], flat[x._nnz():]
    at = np.searchsorted(have, want)
    there = at < len(have)
    there[there] = have[at[there]] == want[there]
    made = zeros((len(want), *x._numbers.shape[1:]), dtype=x.dtype)
    return made.index_put((index_of(np.flatnonzero(there)),), index_select(x._numbers, 0, index_of(at[there])))


def _numbered(places: Array, size: Sequence[int]) -> Array:
    """Return a number for each place, in the order of the places."""
    return np.unique(places, axis=1, return_inverse=True)[1].reshape(-1)


def sparse_resize_(self: Any, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Any:
    """Change the size of a sparse tensor, which keeps its entries.

    >>> import mutagrad as mg
    >>> mg.eye(2).to_sparse().sparse_resize_((3, 3), 2, 0).shape
    mutagrad.Size([3, 3])
    """
    x = self if isinstance(self, Coordinates) else coordinates(self)
    if sparse_dim + dense_dim != len(size):
        raise ShapeError(f"sparse_resize_: {sparse_dim} sparse and {dense_dim} dense dimensions are not {len(size)}")
    if x._nnz() and (sparse_dim != x.sparse_dim() or tuple(size[sparse_dim:]) != tuple(x._numbers.shape[1:])
                     or (x._places._array >= np.array(size[:sparse_dim]).reshape(-1, 1)).any()):
        raise ShapeError(f"sparse_resize_: the entries do not fit into {tuple(size)}",
                         fix="x.sparse_resize_and_clear_(...)")
    self._become(Coordinates.of(x._places, x._numbers, size, x._coalesced) if x._nnz() else
                 empty_coo(size, dense_dim, x.dtype))
    return self


def sparse_resize_and_clear_(self: Any, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Any:
    """Change the size of a sparse tensor, which loses its entries.

    >>> import mutagrad as mg
    >>> mg.eye(2).to_sparse().sparse_resize_and_clear_((3, 3), 2, 0).to_dense().sum()
    tensor(0.)
    """
    self._become(empty_coo(size, dense_dim, self.dtype))
    return self


def resize_as_sparse_(self: Any, the_template: Any) -> Any:
    """Change the size of a sparse tensor to that of another one.

    >>> import mutagrad as mg
    >>> mg.eye(2).to_sparse().resize_as_sparse_(mg.eye(3).to_sparse()).shape
    mutagrad.Size([3, 3])
    """
    return sparse_resize_(self, tuple(the_template.shape), the_template.sparse_dim(), the_template.dense_dim())


