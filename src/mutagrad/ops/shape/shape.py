"""Views: other windows on the same storage, which need no node; and the few operations that rearrange by copying."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.copies import copy_in_order
from ...arrays.kinds import IN_USE, window
from ...arrays.parallel import join
from ...base.errors import BadArgument, BadIndex, BadValue, OutOfMemory, ShapeError
from ...base.layout import channels_last, channels_last_3d, check_format, contiguous_format, memory_format
from ...base.modes import NOT_RECORDING, mode
from ...base.operands import Array, kind_name
from ...core.codegen import primitive
from ...core.factory import back_in_order, laid_out_alike, make, order_in_memory, view, view_of
from ...core.index import is_traced_number
from ...core.indexing import getitem, taken
from ...core.op import RAW, RECORDED, Op, same
from ...core.out_arg import write_out
from ...core.promote import where_sizes_differ
from ...core.size import as_int, sizes
from ...core.storage import TensorBase, memory_of
from ...core.window import dense_strides, infer_size
from ...core.write import linked, memory_around, new_node
from .arguments import (  # which others have from here, too
    Dims as Dims,
    no_tensor as no_tensor,
    tensor_argument as tensor_argument,
    whole_dim as whole_dim,
    whole_dims as whole_dims,
)

ndarray = np.ndarray

clone = primitive("clone", copy_in_order, warns=False, x=same)

_all_sizes = sizes  # for functions with an argument of that name


# -------------------------------------------------------------------------------------------------------------- reshape

def _fit(array: Array, shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    found = infer_size(shape, array.size)
    if found is None:
        raise ShapeError(f"{name}: shape '{list(shape)}' is invalid for input of size {array.size}, "
                         f"a tensor of shape {array.shape}",
                         why=_why_no_fit(shape), fix=f"x.{name}(-1) makes it one-dimensional")
    return found


def _why_no_fit(shape: tuple[int, ...]) -> str:
    if shape.count(-1) > 1:
        return "only one dimension can be inferred"
    if -1 in shape and 0 in shape:
        return "the unspecified dimension size -1 can be any value"
    return f"the sizes multiply to {'a number that does not divide it' if -1 in shape else prod(shape)}"


def _try_view(x: TensorBase, shape: tuple[int, ...], name: str) -> Any:
    """A view of this shape, where one may be left to be inferred; None where only a copy could have it."""
    try:
        array = x._array
    except AttributeError:
        raise no_tensor(x, name) from None
    if type(array) is ndarray and array.flags.c_contiguous and not (shape and min(shape) < -1):
        try:
            reshaped = array.reshape(shape)
            return view_of(x, reshaped, 0) if x._offset is None else _seen_as(x, reshaped)
        except (ValueError, OverflowError):  # it does not fit
            pass
    shape = _fit(array, shape, name)
    try:
        reshaped = array.reshape(shape, **(_NO_COPY if type(array) is ndarray else {}))
    except (MemoryError, ValueError):  # no view: a copy, for which there may be no room
        return None
    if array.size and not np.may_share_memory(array, reshaped):
        return None
    return view_of(x, reshaped, 0) if x._offset is None else _seen_as(x, reshaped)


def _seen_as(x: TensorBase, reshaped: Array) -> Any:
    """A view of a view, in another shape. It notes of what: its geometry may be that of a single view."""
    found = view_of(x, reshaped, x._offset or 0)
    found._seen = x._array
    return found


def _no_copy() -> dict[str, Any]:
    try:
        np.zeros(1).reshape(1, copy=False)
    except TypeError:  # NumPy 2.0 makes a copy where there is no view
        return {}
    return {"copy": False}


_NO_COPY = _no_copy()


def reshape(input: Any, *lengths: int | Sequence[int], shape: Sequence[int] | None = None) -> Any:
    """Return a view of another shape where the memory allows it, else a copy.

    >>> import mutagrad as mg
    >>> mg.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    wanted = sizes(lengths if shape is None else (shape,))
    found = _try_view(input, wanted, "reshape")
    return found if found is not None else _try_view(clone(input), wanted, "reshape")


def view_as_shape(x: TensorBase, *shape: int | Sequence[int]) -> Any:
    """Return a view of another shape, `Tensor.view`; raise where only a copy could have it."""
    wanted = sizes(shape)
    found = _try_view(x, wanted, "view")
    if found is None:
        wanted = _fit(x._array, wanted, "view")
        raise ShapeError(f"view: view size {wanted} is not compatible with shape {x._array.shape} "
                         f"and strides {stride(x)}",
                         why="at least one dimension spans two separate pieces of memory", fix=f"x.reshape{wanted}")
    return found


def flatten(input: TensorBase, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Return dimensions from start to end (included) as one.

    >>> import mutagrad as mg
    >>> mg.flatten(mg.zeros(2, 3, 4), start_dim=1).shape
    mutagrad.Size([2, 12])
    """
    shape = tensor_argument(input, "flatten")._array.shape
    if not shape:
        return reshape(input, 1)
    start, end = whole_dim(start_dim, len(shape), "flatten"), whole_dim(end_dim, len(shape), "flatten")
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}", fix="x.flatten(1)")
    if start == end:
        return input
    return reshape(input, (*shape[:start], prod(shape[start:end + 1]), *shape[end + 1:]))


def unflatten(input: TensorBase, dim: int, sizes: Sequence[int]) -> Any:
    """Return one dimension as several: the reverse of flatten.

    >>> import mutagrad as mg
    >>> mg.unflatten(mg.zeros(6), 0, (2, 3)).shape
    mutagrad.Size([2, 3])
    """
    shape = tensor_argument(input, "unflatten")._array.shape
    dim = whole_dim(dim, len(shape), "unflatten")
    if not shape:
        raise BadIndex("unflatten: a 0-d tensor has no dimension to split up", fix="x.reshape(1)")
    parts = _all_sizes((sizes,), "unflatten")
    found = infer_size(parts, shape[dim])
    if found is None:
        raise ShapeError(f"unflatten: dimension {dim} of size {shape[dim]} has no sizes {parts}",
                         fix=f"sizes that multiply to {shape[dim]}, or -1 for one of them")
    return reshape(input, *shape[:dim], *found, *shape[dim + 1:])


def stride(x: TensorBase, dim: int | None = None) -> int | tuple[int, ...]:
    """Return the strides, counted in elements.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 3).stride(), mg.zeros(2, 3).t().stride()
    ((3, 1), (1, 3))
    """
    array = x._array
    strides = tuple(s // array.itemsize for s in array.strides) if array.size else dense_strides(array.shape, 1)
    return strides if dim is None else strides[whole_dim(dim, array.ndim, "stride")]


# ------------------------------------------------------------------------------------------------------ several results

def pack(parts: Sequence[Array]) -> Any:
    """Lay arrays of one type end to end: an operation with several results writes them into one storage."""
    return np.concatenate([part.reshape(-1) for part in parts])


def unpack(packed: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
    """Return the windows on it that are the results; for arrays and tensors alike."""
    places = accumulate((prod(s) for s in shapes), initial=0)
    found = tuple(packed[at:at + prod(s)].reshape(s) for at, s in zip(places, shapes))
    for result in found if isinstance(packed, TensorBase) else ():
        result._seen = result._array
    return found


RAW.unpack = RECORDED.unpack = unpack

# -------------------------------------------------------------------------------------------------- order of dimensions

def permute(input: TensorBase, *axes: int | Sequence[int], dims: Sequence[int] | None = None) -> Any:
    """Return the dimensions in another order: `permute(x, 1, 0)` or `permute(x, dims=(1, 0))`.

    >>> import mutagrad as mg
    >>> mg.permute(mg.zeros(2, 3, 4), (2, 0, 1)).shape
    mutagrad.Size([4, 2, 3])
    """
    try:
        array = input._array
    except AttributeError:
        raise no_tensor(input, "permute") from None
    order = sizes(axes if dims is None else (dims,))
    if type(array) is ndarray:
        try:
            return view_of(input, array.transpose(order), input._offset or 0)
        except ValueError:  # it is none
            pass
    order = tuple(whole_dim(d, array.ndim, "permute") for d in order)
    if len(set(order)) != array.ndim or len(order) != array.ndim:
        raise ShapeError(f"permute: {order} is not an order of the {array.ndim} dimensions of shape {array.shape}",
                         why="each dimension must appear once", fix=f"x.permute{tuple(reversed(range(array.ndim)))}")
    return view_of(input, array.transpose(order), input._offset or 0)


def transpose(input: TensorBase, dim0: int | None = None, dim1: int | None = None, *, axis0: int | None = None,
              axis1: int | None = None) -> Any:
    """Swap two dimensions. (`swapaxes` calls them axes.)

    >>> import mutagrad as mg
    >>> mg.swapaxes(mg.zeros(2, 3), 0, 1).shape
    mutagrad.Size([3, 2])
    """
    try:
        array = input._array
    except AttributeError:
        raise no_tensor(input, "transpose") from None
    if dim1 is None:
        dim0, dim1 = axis0 if dim0 is None else dim0, axis1
    a, b = whole_dim(dim0, array.ndim, "transpose"), whole_dim(dim1, array.ndim, "transpose")
    if not array.ndim:
        return view_of(input, array, input._offset or 0)
    return view_of(input, array.swapaxes(a, b), input._offset or 0)


def t(input: TensorBase) -> Any:
    """Transpose a matrix; return vectors and 0-d tensors as they are.

    >>> import mutagrad as mg
    >>> mg.t(mg.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    if tensor_argument(input, "t")._array.ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, got shape {input._array.shape}",
                         fix="x.mT or x.transpose(-2, -1)")
    return view_of(input, input._array.T, input._offset or 0)


def reverse_dims(x: TensorBase) -> Any:
    return view_of(x, x._array.T, x._offset or 0)


def movedim(input: TensorBase, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Move dimensions to other places, the rest in their order.

    >>> import mutagrad as mg
    >>> mg.moveaxis(mg.zeros(2, 3, 4), 0, -1).shape
    mutagrad.Size([3, 4, 2])
    """
    n = tensor_argument(input, "movedim")._array.ndim
    if source is None or destination is None:
        raise BadArgument("movedim: needs to be told which dimensions to move, and where to", fix="x.movedim(0, 1)")
    if source.__class__ is int and destination.__class__ is int:
        order = list(range(n))
        order.insert(whole_dim(destination, n, "movedim"), order.pop(whole_dim(source, n, "movedim")) if n else 0)
        return permute(input, order) if n else input
    a, b = whole_dims(source, n, "movedim"), whole_dims(destination, n, "movedim")
    if len(a) != len(b):
        raise BadValue(f"movedim: Invalid source or destination dims: {len(a)} sources but {len(b)} destinations",
                       fix="x.movedim((0, 1), (1, 0))")
    order = [d for d in range(n) if d not in a]
    for to, d in sorted(zip(b, a)):
        order.insert(to, d)
    return permute(input, order) if n else input


# ------------------------------------------------------------------------------------------------- number of dimensions

def unsqueeze(input: TensorBase, dim: int | None = None, *, axis: int | None = None) -> Any:
    """Put in a dimension of size one at `dim`.

    >>> import mutagrad as mg
    >>> mg.unsqueeze(mg.zeros(2), 0).shape
    mutagrad.Size([1, 2])
    """
    try:
        array = input._array
    except AttributeError:
        raise no_tensor(input, "unsqueeze") from None
    dim = whole_dim(axis if dim is None else dim, array.ndim + 1, "unsqueeze")
    shape, strides = array.shape, array.strides
    step = shape[dim] * strides[dim] if dim < len(shape) else array.itemsize  # PyTorch's, where any would do
    return view(input, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]), input._offset or 0)


def squeeze(input: TensorBase, *dims: Dims, dim: Dims = None, axis: Dims = None) -> Any:
    """Leave out dimensions of size one: all, or those named that are of size one, one by one or as a sequence.

    >>> import mutagrad as mg
    >>> mg.squeeze(mg.zeros(1, 2, 1)).shape
    mutagrad.Size([2])
    """
    array = tensor_argument(input, "squeeze")._array
    dim = one_by_one(dims, axis if dim is None else dim)
    named = range(array.ndim) if dim is None else whole_dims(dim, array.ndim, "squeeze") if dim != () else ()
    gone = tuple([d for d in named if array.shape[d] == 1])
    return view_of(input, array.squeeze(gone), input._offset or 0)


def one_by_one(given: Sequence[Any], named: Any) -> Any:
    """Return dimensions that are given one by one, as one sequence, or by name."""
    return named if not given else given[0] if len(given) == 1 else tuple(given)


def expand(x: TensorBase, *shape: int | Sequence[int], size: Sequence[int] | None = None) -> Any:
    """Repeat dimensions of size one without copying; -1 keeps a size. Read only: clone before writing.

    >>> import mutagrad as mg
    >>> mg.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    try:
        array = x._array
    except AttributeError:
        raise no_tensor(x, "expand") from None
    wanted = sizes(shape if size is None else (size,))
    lead = len(wanted) - array.ndim
    if lead < 0:
        raise ShapeError(f"expand: shape {array.shape} has more dimensions than {wanted}", fix="x.reshape(...) first")
    new_shape, strides = [], []
    for i, n in enumerate(wanted):
        have = array.shape[i - lead] if i >= lead else 1
        n = have if n == -1 and i >= lead else n
        if n != have and have != 1 or n < 0:
            raise ShapeError(f"expand: shape {array.shape} cannot be expanded to {wanted}",
                             why=f"The expanded size of the tensor ({n}) must match the existing size ({have}) "
                                 f"at dimension {i}, unless that is 1", fix="x.repeat(...) copies")
        new_shape.append(n)
        strides.append(array.strides[i - lead] if i >= lead and n == have else 0)
    if array.size == 0:
        return view_of(x, np.broadcast_to(array, tuple(new_shape)), x._offset or 0)
    return view(x, tuple(new_shape), tuple(strides), x._offset or 0)


def expand_as(input: TensorBase, other: TensorBase) -> Any:
    """Expand to the shape of another tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1, 2]).expand_as(mg.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(tensor_argument(input, "expand_as"), *tensor_argument(other, "expand_as")._array.shape)


def broadcast_to(input: TensorBase, *shape: int | Sequence[int], size: Sequence[int] | None = None) -> Any:
    """Expand to a shape, given as a sequence or one by one.

    >>> import mutagrad as mg
    >>> mg.broadcast_to(mg.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(tensor_argument(input, "broadcast_to"), *shape, size=size)


def broadcast_tensors(*tensors: TensorBase) -> tuple[Any, ...]:
    """Expand all to their common shape.

    >>> import mutagrad as mg
    >>> a, b = mg.broadcast_tensors(mg.ones(2, 1), mg.ones(3))
    >>> a.shape, b.shape
    (mutagrad.Size([2, 3]), mutagrad.Size([2, 3]))
    """
    shapes = [tensor_argument(x, "broadcast_tensors")._array.shape for x in tensors]
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(f"broadcast_tensors: shapes {shapes} do not broadcast", why=where_sizes_differ(shapes),
                         fix="reshape or slice until sizes are equal or 1") from None
    return tuple(x if x._array.shape == common else expand(x, *common) for x in tensors)


# ---------------------------------------------------------------------------------------------------------- parts of it

def select(input: TensorBase, dim: int, index: int) -> Any:
    """Return one position along a dimension, which goes away.

    >>> import mutagrad as mg
    >>> mg.select(mg.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    try:
        array = input._array
    except AttributeError:
        raise no_tensor(input, "select") from None
    if not array.ndim:
        raise BadIndex("select: a 0-d tensor has no dimension to select from", fix="x.item()")
    dim = whole_dim(dim, array.ndim, "select")
    n = array.shape[dim]
    if index.__class__ is not int:
        if IN_USE and is_traced_number(index):
            return getitem(input, (slice(None),) * dim + (index,))
        index = as_int(index, "select")
    if not -n <= index < n:
        raise BadIndex(f"select: index {index} is out of bounds for dimension {dim} with size {n}",
                       fix=f"an index from {-n} to {n - 1}")
    index %= n
    picked = array[(slice(None),) * dim + (index, ...)]
    return view_of(input, picked, (input._offset or 0) + index * array.strides[dim])


def narrow(input: TensorBase, dim: int, start: TensorBase | int, length: int) -> Any:
    """Return `length` positions from `start` along a dimension.

    >>> import mutagrad as mg
    >>> mg.narrow(mg.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    array = tensor_argument(input, "narrow")._array
    dim = whole_dim(dim, array.ndim, "narrow")
    n = array.shape[dim] if array.ndim else 0
    if isinstance(start, TensorBase) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise BadIndex("narrow: start must be an integer or a 0-d tensor of one, "
                       f"not {start._array.dtype.name} of shape {start._array.shape}", fix="int(start)")
    if IN_USE and isinstance(start, TensorBase) and is_traced_number(start) and array.ndim and 0 <= length <= n:
        return taken(input, (slice(None),) * dim + (make(start._array + np.arange(length)),))
    start = as_int(start, "narrow")
    start = start + n if start < 0 else start
    if not (array.ndim and 0 <= start <= n and 0 <= length <= n - start):
        raise BadIndex(f"narrow: start ({start}) + length ({length}) exceeds dimension size ({n}) of dimension {dim}",
                       fix=f"start + length at most {n}")
    return _slices(input, dim, (length,), start)[0]


def _slices(x: TensorBase, dim: int, lengths: Sequence[int], start: int = 0) -> tuple[Any, ...]:
    """Views of so many positions each, one after the other."""
    array, offset, found = x._array, x._offset or 0, []
    step, before = array.strides[dim], (slice(None),) * dim
    for length in lengths:
        part = array[before + (slice(start, start + length),)]
        # An empty one must not begin beyond the memory.
        found.append(view_of(x, part, offset + start * step if length else offset))
        start += length
    return tuple(found)


def split(input: TensorBase, split_size_or_sections: int | Sequence[int] | None = None, dim: int = 0, *,
          split_size: int | Sequence[int] | None = None) -> tuple[Any, ...]:
    """Split into views of so many positions (the last may be shorter), or of these sizes; the method's `split_size`.

    >>> import mutagrad as mg
    >>> mg.split(mg.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    array = tensor_argument(input, "split")._array
    split_size = split_size_or_sections if split_size is None else split_size
    dim = whole_dim(dim, array.ndim, "split")
    if not array.ndim:
        raise ShapeError("split: a 0-d tensor has no dimension to split", fix="x.reshape(1)")
    n = array.shape[dim]
    if isinstance(split_size, (tuple, list)):
        lengths = sizes((split_size,))
        if sum(lengths) != n or min(lengths, default=0) < 0:
            raise ShapeError(f"split_with_sizes expects split_sizes to sum exactly to {n}, "
                             f"the size of dimension {dim}, got {lengths}", fix=f"sizes that sum to {n}")
    else:
        step = split_size if split_size.__class__ is int else as_int(split_size, "split")
        if step <= 0 and n:
            raise BadValue(f"split expects split_size be non-negative, and 0 only for a size of 0, got {step}",
                           fix="x.split(1)")
        lengths = (step,) * (n // step) + ((n % step,) if n % step else ()) if n else (0,)
    return _slices(input, dim, lengths)


def chunk(input: TensorBase, chunks: int, dim: int = 0, *, axis: int | None = None) -> tuple[Any, ...]:
    """Split into at most so many views of equal size (the last may be shorter).

    >>> import mutagrad as mg
    >>> mg.chunk(mg.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    dim = dim if axis is None else axis
    if as_int(chunks, "chunk") <= 0:
        raise BadValue(f"chunk expects a number of chunks greater than 0, got {chunks}", fix="x.chunk(2)")
    shape = tensor_argument(input, "chunk")._array.shape
    if not shape:
        raise ShapeError("chunk: a 0-d tensor has no dimension to split", fix="x.reshape(1)")
    n = shape[whole_dim(dim, len(shape), "chunk")]
    return split(input, -(-n // chunks) if n else [0] * chunks, dim)


def unbind(input: TensorBase, dim: int = 0, *, axis: int | None = None) -> tuple[Any, ...]:
    """Return a view for each position along a dimension.

    >>> import mutagrad as mg
    >>> mg.unbind(mg.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    dim = dim if axis is None else axis
    if not tensor_argument(input, "unbind")._array.ndim:
        raise BadIndex("unbind: a 0-d tensor has no dimension to unbind", fix="x.item()")
    array, offset = input._array, input._offset or 0
    dim = whole_dim(dim, array.ndim, "unbind")
    step, before = array.strides[dim], (slice(None),) * dim
    return tuple([view_of(input, array[before + (i, ...)], offset + i * step) for i in range(array.shape[dim])])


def diagonal(input: TensorBase, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonal of two dimensions as a new last dimension: a view that can be written through.

    >>> import mutagrad as mg
    >>> mg.diagonal(mg.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    array = tensor_argument(input, "diagonal")._array
    a, b = whole_dim(dim1, array.ndim, "diagonal"), whole_dim(dim2, array.ndim, "diagonal")
    if a == b:
        raise BadValue(f"diagonal: dim1 and dim2 are both {dim1}", fix="x.diagonal(offset, 0, 1)")
    shape, strides = list(array.shape), list(array.strides)
    start = offset * strides[b] if offset >= 0 else -offset * strides[a]
    length = max(min(shape[a] + min(offset, 0), shape[b] - max(offset, 0)), 0)
    shape.append(length)
    strides.append(strides[a] + strides[b])
    for d in (a, b) if a > b else (b, a):
        del shape[d], strides[d]
    return view(input, tuple(shape), tuple(strides), (input._offset or 0) + (start if length else 0))


def unfold(input: TensorBase, dimension: int, size: int, step: int) -> Any:
    """Return all windows of `size` along a dimension, `step` apart, as a new last dimension.

    >>> import mutagrad as mg
    >>> mg.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    array = tensor_argument(input, "unfold")._array
    dim = whole_dim(dimension, array.ndim, "unfold")
    n = array.shape[dim] if array.ndim else 1
    if size > n or step <= 0 or size < 0:
        raise BadValue(f"unfold: size {size} and step {step} do not fit dimension {dimension} of size {n}",
                       fix=f"a size of at most {n} and a step of at least 1")
    if not array.ndim:
        return reshape(input, size)
    shape, strides = list(array.shape), list(array.strides)
    shape[dim], strides[dim] = (n - size) // step + 1, array.strides[dim] * step
    return view(input, (*shape, size), (*strides, array.strides[dim]), input._offset or 0)


def as_strided(input: TensorBase, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """Return any window on the storage: shape, strides and offset counted in elements.

    >>> import mutagrad as mg
    >>> x = mg.arange(4)
    >>> mg.as_strided(x, (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    item = tensor_argument(input, "as_strided")._array.itemsize
    shape, steps = sizes((size,)), sizes((stride,))
    begin = input._storage.start
    if storage_offset is not None and (kind := mode.now.kind) is not None:
        kind.before_offset(input._array)
    offset = (input._offset or 0) if storage_offset is None else storage_offset * item - begin
    end = offset + sum((n - 1) * s * item for n, s in zip(shape, steps)) + item
    within, around = input._storage.buffer.nbytes, memory_of(input).buffer.nbytes
    if within < around and (offset < 0 <= offset + begin or end > within):  # beyond the part that has a history
        return as_strided(memory_around(input), size, stride, (offset + begin) // item)
    if len(shape) != len(steps) or min(steps, default=0) < 0 or min(shape, default=0) < 0 or offset + begin < 0:
        raise BadValue(f"as_strided: size {shape}, stride {steps} and offset {offset // item} do not make a window",
                       fix="sizes, strides and an offset of 0 or more, one size and stride for each dimension")
    if 0 not in shape and (offset < 0 or end > input._storage.buffer.nbytes):
        raise ShapeError(f"as_strided: size {shape}, stride {steps} and offset {offset // item} "
                         f"need {end // item} elements", why=f"the storage has {input._storage.buffer.size}",
                         fix="x.view(...) and x.transpose(...) cannot leave the storage")
    return view(input, shape, tuple(s * item for s in steps), offset)


# -------------------------------------------------------------------------------------------------------------- joining

def _join_reverse(xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
    dim, starts = saved
    return [None if k is None else xp.narrow(g, dim, a, b - a) for k, a, b in zip(links, starts, starts[1:])]


def variadic(name: str, forward: Callable[..., Array] | None, reverse: Callable[..., list[Any]], frees: bool) -> Op:
    """Declare an operation on a list of tensors; `reverse(xp, g, saved, links)` gives all adjoints at once."""
    op = Op(name, forward, (), (), {})
    op.reverse, op.frees = reverse, frees
    return op


def _stack_reverse(xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
    dim, count = saved
    return [None if k is None else xp.select(g, dim, i) for i, k in zip(range(count), links)]


_cat = variadic("cat", None, _join_reverse, False)
_stack = variadic("stack", None, _stack_reverse, False)


_CHANNELS_LAST = (0, 2, 3, 1), (0, 2, 3, 4, 1)  # orders in which joined images, or volumes, stay, as in PyTorch


def cat(tensors: Sequence[TensorBase], dim: int = 0, *, axis: int | None = None, out: TensorBase | None = None) -> Any:
    """Join tensors along a dimension.

    >>> import mutagrad as mg
    >>> mg.cat([mg.zeros(1, 2), mg.ones(1, 2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    tensors = _same_types("cat", tensors)
    joined = [x for x in tensors if x._array.shape != (0,)]  # PyTorch ignores empty vectors
    if not joined:
        joined, dim, axis = tensors[:1], 0, None
    arrays = [x._array for x in joined]
    if not arrays[0].ndim:
        raise ShapeError("cat: 0-d tensors cannot be concatenated", fix="mutagrad.stack(tensors)")
    dim = whole_dim(dim if axis is None else axis, arrays[0].ndim, "cat")
    order = order_in_memory(joined[0])
    if order in _CHANNELS_LAST and out is None and all(order_in_memory(x) == order for x in joined):
        return back_in_order(cat([permute(x, order) for x in joined], order.index(dim)), order)
    result = _joined("cat", arrays, dim)
    if _are_recorded(joined):
        node = new_node(_cat, *linked(joined))
        node.saved = (dim, list(accumulate([a.shape[dim] for a in arrays], initial=0)))
        result._storage.writer = node
    return result if out is None else write_out("cat", result, out)


def _are_recorded(tensors: list[Any]) -> bool:
    writers = [x._storage.writer for x in tensors]
    return writers.count(None) < len(writers) and (not NOT_RECORDING or mode.now.recorded)


def _joined(name: str, arrays: Sequence[Array], dim: int) -> Any:
    try:
        return make(join(arrays, dim))
    except ValueError:
        raise ShapeError(f"cat: Sizes of tensors must match except in dimension {dim}, "
                         f"got shapes {[a.shape for a in arrays]}",
                         fix="another dim, or x.reshape(...) first") from None
    except MemoryError as error:
        raise OutOfMemory.found_by(name, error) from None


def _same_types(name: str, given: Any) -> list[TensorBase]:
    if not isinstance(given, (list, tuple)) and not hasattr(given, "__next__"):
        raise BadArgument(f"{name}: the argument must be tuple of Tensors, not {type(given).__name__}",
                          fix=f"mutagrad.{name}([x, y])")
    tensors: list[Any] = list(given)
    if not tensors:
        raise BadValue(f"{name}: expects a non-empty list of tensors", fix=f"mutagrad.{name}([x, y])")
    for x in tensors:
        if not isinstance(x, TensorBase):
            raise BadArgument(f"{name}: expects a list of tensors, but it holds {kind_name(x)}",
                              fix=f"mutagrad.{name}([x, y])")
    kinds = [x._array.dtype for x in tensors]
    if kinds.count(kinds[0]) < len(kinds):
        common = RECORDED.common_dtype(tensors)
        tensors = [x if x._array.dtype is common else RECORDED.cast(x, common) for x in tensors]
    return tensors


def stack(tensors: Sequence[TensorBase], dim: int = 0, *, axis: int | None = None,
          out: TensorBase | None = None) -> Any:
    """Join tensors of one shape along a new dimension.

    >>> import mutagrad as mg
    >>> mg.stack((mg.tensor([1, 2]), mg.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    dim = dim if axis is None else axis
    tensors = _same_types("stack", tensors)
    shapes = [x._array.shape for x in tensors]
    shape = shapes[0]
    if shapes.count(shape) < len(shapes):
        raise ShapeError(f"stack expects each tensor to be equal size, got {sorted(set(shapes))}",
                         fix="mutagrad.cat joins different sizes")
    dim = whole_dim(dim, len(shape) + 1, "stack")
    longer = shape[:dim] + (1,) + shape[dim:]
    result = _joined("stack", [x._array.reshape(longer) for x in tensors], dim)
    if _are_recorded(tensors):
        node = new_node(_stack, *linked(tensors))
        node.saved = (dim, len(shapes))
        result._storage.writer = node
    return result if out is None else write_out("stack", result, out)


RANKS = {channels_last: 4, channels_last_3d: 5}  # the dimensions that a tensor with channels has


def copied(input: TensorBase, *, memory_format: memory_format | None = None) -> Any:
    """Clone: a copy with history, so that gradients pass; with `channels_last`, a view of one in that order.

    >>> import mutagrad as mg
    >>> x = mg.ones(2)
    >>> y = mg.clone(x)
    >>> y[0] = 5.
    >>> x
    tensor([1., 1.])
    """
    tensor_argument(input, "clone")
    if memory_format not in RANKS:
        check_format("clone", memory_format)
        return clone(input) if memory_format is contiguous_format else laid_out_alike(clone, input)
    if input._array.ndim != RANKS[memory_format]:
        raise ShapeError(f"clone: {memory_format} is for {RANKS[memory_format]} dimensions, "
                         f"got shape {input._array.shape}", fix="leave memory_format out")
    return movedim(clone(movedim(input, 1, -1)), -1, 1)


def has_format(x: TensorBase, memory_format: memory_format | None) -> bool:
    """Return whether the elements lie in memory row by row, or with the channels last."""
    if memory_format in RANKS:
        return x._array.ndim == RANKS[memory_format] and bool(np.moveaxis(x._array, 1, -1).flags.c_contiguous)
    check_format("is_contiguous", memory_format)
    return bool(x._array.flags.c_contiguous)


_FORMATS = {rank: memory_format for memory_format, rank in RANKS.items()}
MANY_CHANNELS = 12  # from which loops along them take less time than bringing them to the front and back


def has_channels_last(x: TensorBase) -> bool:
    """Return whether these are images, or volumes, whose channels lie last in memory."""
    if x._offset is None or x._array.flags.c_contiguous:  # a whole storage is in C order
        return False
    kept = _FORMATS.get(x._array.ndim)
    return kept is not None and has_format(x, kept)


def goes_along_channels(x: TensorBase) -> bool:
    """Return whether loops go over images as they lie: channels last, and not so few that a row of them is short."""
    return has_channels_last(x) and x._array.shape[1] >= MANY_CHANNELS


def in_format_of(x: TensorBase, result: TensorBase) -> Any:
    """Return a result of images or volumes with the channels last, if they have them so, as PyTorch does."""
    ndim = x._array.ndim
    if result._array.ndim != ndim or not has_channels_last(x) or has_format(result, _FORMATS[ndim]):
        return result
    return copied(result, memory_format=_FORMATS[ndim])


def contiguous(x: TensorBase, memory_format: memory_format | None = None) -> Any:
    """Return the tensor itself where its memory is in order, else a copy that is.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if memory_format is not None:
        return x if has_format(x, memory_format) else copied(x, memory_format=memory_format)
    return x if x._array.flags.c_contiguous else clone(x)


# What rules may call on raw arrays and on tensors alike.
RAW.reshape, RECORDED.reshape = lambda a, shape: a.reshape(shape), lambda x, shape: reshape(x, *shape)
RAW.permute, RECORDED.permute = lambda a, dims: a.transpose(dims), lambda x, dims: permute(x, *dims)
RAW.transpose, RECORDED.transpose = lambda a, i, j: a.swapaxes(i, j), transpose
RAW.unsqueeze, RECORDED.unsqueeze = np.expand_dims, unsqueeze
RECORDED.cat, RECORDED.stack, RECORDED.expand = cat, stack, lambda x, shape: expand(x, *shape)
RAW.narrow = lambda a, dim, start, length: a[(slice(None),) * dim + (slice(start, start + length),)]
RECORDED.narrow = narrow
RAW.select, RECORDED.select = lambda a, dim, i: a[(slice(None),) * dim + (i,)], select


def _spread(a: Array, kept: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """`a`, reshaped to `kept`, seen at every position of `shape` (np.broadcast_to takes ten times as long)."""
    if a.size == 1 and type(a) is ndarray:
        return window(a, shape, a.dtype, 0, (0,) * len(shape))
    a = a.reshape(kept) if a.shape != kept else a
    if kept == shape:
        return a
    a = np.ascontiguousarray(a).reshape(kept)
    strides = tuple(0 if n == 1 else s for n, s in zip(kept, dense_strides(kept, a.itemsize)))
    return window(a, shape, a.dtype, 0, strides)


RAW.spread, RECORDED.spread = _spread, lambda x, kept, shape: expand(reshape(x, *kept), *shape)
