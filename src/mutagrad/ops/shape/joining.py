"""Putting tensors side by side, into grids and into pieces, and the copies of views that PyTorch has a name for."""
from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Sequence
from itertools import accumulate, combinations as _pick, combinations_with_replacement as _pick_again
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.kinds import extremes
from ...base.device import device
from ...base.docstrings import with_example
from ...base.errors import (
    BadArgument,
    BadData,
    BadValue,
    DTypeError,
    GradientError,
    ShapeError,
    bad_choice,
    may_need_much,
)
from ...base.layout import check_format, check_layout, layout, memory_format
from ...base.modes import OTHER_KIND, mode
from ...base.operands import kind_name
from ...core.dtypes import as_dtype, dtype, get_default_dtype, of_array
from ...core.factory import become, detached, make, view
from ...core.indexing import copy_, fill_, getitem, read
from ...core.number import number, whole_number
from ...core.op import RECORDED
from ...core.out_arg import write_out
from ...core.size import Size, sizes
from ...core.storage import TensorBase, check_inside
from ...core.window import dense_strides
from ..create.create import finish
from ..math.elementwise import cast
from .moving import flip
from .shape import (
    RANKS,
    as_strided,
    cat,
    chunk,
    clone,
    diagonal,
    expand,
    narrow,
    permute,
    reshape,
    select,
    split,
    squeeze,
    stack,
    t,
    tensor_argument,
    transpose,
    unbind,
    unfold,
    unsqueeze,
    view_as_shape,
    whole_dim,
)

FUNCTIONS = """
    alias_copy as_strided_copy atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes cartesian_prod
    column_stack combinations detach diagonal_copy dsplit dstack empty_permuted empty_strided expand_copy fill
    fliplr flipud hsplit hstack meshgrid narrow_copy permute_copy ravel repeat_interleave rot90 row_stack
    scalar_tensor select_copy slice slice_copy split_copy split_with_sizes split_with_sizes_copy squeeze_copy
    t_copy tensor_split transpose_copy unbind_copy unfold_copy unsafe_chunk unsafe_split unsqueeze_copy
    view_copy vsplit vstack
"""
METHODS = """
    as_strided_ dsplit fliplr flipud hsplit narrow_copy new_empty_strided repeat_interleave resize resize_
    resize_as_ rot90 set_ split_with_sizes tensor_split unsafe_chunk unsafe_split vsplit
"""


def _given(tensors: tuple[Any, ...], name: str) -> list[TensorBase]:
    """Tensors one by one or as one list."""
    found = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return [tensor_argument(x, name) for x in found]


def _listed(tensors: Any, name: str) -> list[TensorBase]:
    """Tensors as one list; a tensor is not taken for the list of its rows."""
    if not isinstance(tensors, (list, tuple)):
        raise BadArgument(f"{name}: the argument must be tuple of Tensors, not {type(tensors).__name__}",
                          fix=f"mutagrad.{name}([x, y])")
    return [tensor_argument(x, name) for x in tensors]


# ---------------------------------------------------------------------------------------------------------------- grids

def meshgrid(*tensors: TensorBase | Sequence[TensorBase], indexing: str | None = None) -> tuple[Any, ...]:
    """Return the coordinates of the points of a grid, given those of its axes: views, one for each axis.

    >>> import mutagrad as mg
    >>> mg.meshgrid(mg.tensor([1, 2]), mg.tensor([3, 4, 5]), indexing="ij")[0]
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    axes = _given(tensors, "meshgrid")
    if indexing not in (None, "ij", "xy"):
        raise bad_choice(indexing, str, f"meshgrid: indexing={indexing!r} is unknown", fix='indexing="ij" or "xy"')
    if not axes or any(x._array.ndim > 1 for x in axes):
        raise ShapeError(f"meshgrid: expects vectors, got shapes {[x._array.shape for x in axes]}", fix="x.flatten()")
    if len({x._array.dtype for x in axes}) > 1:
        raise DTypeError(f"meshgrid: all axes must be of one type, got {sorted({x._array.dtype.name for x in axes})}",
                         fix="x.to(y.dtype)")
    axes = [reshape(x, -1) for x in axes]
    shape = [x._array.size for x in axes]
    grids = [expand(reshape(x, *(1,) * i, -1, *(1,) * (len(axes) - i - 1)), *shape) for i, x in enumerate(axes)]
    return tuple(transpose(g, 0, 1) for g in grids) if indexing == "xy" and len(axes) > 1 else tuple(grids)


@may_need_much
def cartesian_prod(*tensors: TensorBase | Sequence[TensorBase]) -> Any:
    """Return every way to pick one element of each vector, a row each.

    >>> import mutagrad as mg
    >>> mg.cartesian_prod(mg.tensor([1, 2]), mg.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    axes = _given(tensors, "cartesian_prod")
    if any(x._array.ndim != 1 for x in axes):
        raise ShapeError(f"cartesian_prod: expects vectors, got shapes {[x._array.shape for x in axes]}",
                         fix="x.flatten()")
    return axes[0] if len(axes) == 1 else stack([reshape(g, -1) for g in meshgrid(*axes)], 1)


@may_need_much
def combinations(input: TensorBase, r: int = 2, with_replacement: bool = False) -> Any:
    """Return every way to pick r elements of a vector, a row each.

    >>> import mutagrad as mg
    >>> mg.combinations(mg.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if tensor_argument(input, "combinations")._array.ndim != 1:
        raise ShapeError(f"combinations: expects a vector, got shape {input._array.shape}", fix="x.flatten()")
    if (r := whole_number(r, "combinations", "r")) < 0:
        raise BadValue(f"combinations: r must not be negative, got {r}", fix="r=2")
    if not r:
        return make(np.empty(0, input._array.dtype))
    n = input._array.size
    if r == 2:
        places = np.stack(np.triu_indices(n, 0 if with_replacement else 1), -1)
    else:
        places = np.array(list((_pick_again if with_replacement else _pick)(range(n), r)), np.int64).reshape(-1, r)
    return read(input, (places,))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape that tensors of these shapes broadcast to.

    >>> import mutagrad as mg
    >>> mg.broadcast_shapes((3, 1), (2,))
    mutagrad.Size([3, 2])
    """
    plain = [(s,) if isinstance(s, int) else s for s in shapes]
    if not all(isinstance(s, (tuple, list)) for s in plain):
        raise BadData(f"broadcast_shapes: expects integers and sequences of integers, got {plain}",
                      fix="mutagrad.broadcast_shapes((2, 1), 3)")
    if any(n < 0 for s in plain for n in s):
        raise BadValue(f"broadcast_shapes: negative size in {plain}", fix="sizes of 0 or more")
    try:
        return Size(np.broadcast_shapes(*map(tuple, plain)))
    except ValueError:
        raise ShapeError("broadcast_shapes: Shape mismatch: objects cannot be broadcast to a single shape: "
                         f"{', '.join(str(tuple(s)) for s in plain)}",
                         fix="sizes that are equal or 1, counted from the last") from None


def block_diag(*tensors: TensorBase | Sequence[TensorBase]) -> Any:
    """Return a matrix with these matrices (vectors count as rows) along its diagonal, and zeros elsewhere.

    >>> import mutagrad as mg
    >>> mg.block_diag(mg.ones(1, 2), mg.tensor([[5.]]))
    tensor([[1., 1., 0.],
            [0., 0., 5.]])
    """
    blocks = [_matrix(x) for x in _given(tensors, "block_diag")]
    blocks = blocks or [make(np.empty((1, 0), get_default_dtype().array_type))]
    ends = list(accumulate((x._array.shape for x in blocks), lambda a, b: (a[0] + b[0], a[1] + b[1])))
    found = make(np.zeros(ends[-1], RECORDED.common_dtype(blocks)))
    for x, (row, column) in zip(blocks, ends):
        height, width = x._array.shape
        copy_(narrow(narrow(found, 0, row - height, height), 1, column - width, width), x)
    return found


def _matrix(x: TensorBase) -> Any:
    if x._array.ndim > 2:
        raise ShapeError(f"block_diag: expects matrices, got shape {x._array.shape}", fix="x.flatten(1)")
    return atleast_2d(x)


@may_need_much
def repeat_interleave(input: TensorBase, repeats: TensorBase | Sequence[int] | int | None = None,
                      dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Repeat every element so many times in a row; of one argument alone, its positions as often as it says.

    >>> import mutagrad as mg
    >>> mg.repeat_interleave(mg.tensor([1., 2.]), 2)
    tensor([1., 1., 2., 2.])
    """
    tensor_argument(input, "repeat_interleave")
    if repeats is None:
        return make(np.repeat(np.arange(input._array.size), _counts(input, input._array.size)))
    x = reshape(input, -1) if dim is None else input
    dim = 0 if dim is None else whole_dim(dim, x._array.ndim, "repeat_interleave")
    x = x if x._array.ndim else reshape(x, 1)
    n = x._array.shape[dim]
    counts = _counts(repeats, n)
    if output_size is not None and whole_number(output_size, "repeat_interleave", "output_size") != counts.sum():
        raise ShapeError(f"repeat_interleave: {counts.sum()} results, where output_size={output_size}",
                         fix="leave output_size out")
    found = read(x, (builtins.slice(None),) * dim + (np.repeat(np.arange(n), counts),))
    return found if input._array.ndim or counts.size > 1 else reshape(found, -1)


def _counts(repeats: TensorBase | Sequence[int] | int, n: int) -> Any:
    """How often each of n elements is repeated."""
    counts = repeats._array if isinstance(repeats, TensorBase) else np.array(repeats)
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat_interleave: repeats must be integers, not {counts.dtype.name}", fix="repeats.long()")
    if counts.ndim > 1 or counts.size not in (1, n):
        raise ShapeError(f"repeat_interleave: repeats of shape {counts.shape} for {n} elements",
                         why="there must be one, or one for each", fix="repeats=2")
    if counts.size and (least := extremes(counts)[0]) < 0:
        raise BadValue(f"repeat_interleave: repeats can not be negative, got {least}", fix="repeats=2")
    return np.broadcast_to(counts.reshape(-1), (n,))


# ----------------------------------------------------------------------------------------------------- at least so many

def _each(lift: Callable[[TensorBase], TensorBase], tensors: tuple[Any, ...], name: str) -> Any:
    found = tuple(lift(x) for x in _given(tensors, name))
    return found[0] if len(tensors) == 1 and isinstance(tensors[0], TensorBase) else found


def atleast_1d(*tensors: TensorBase | Sequence[TensorBase]) -> Any:
    """Return numbers as vectors, and everything else as it is.

    >>> import mutagrad as mg
    >>> mg.atleast_1d(mg.tensor(3.))
    tensor([3.])
    """
    return _each(lambda x: x if x._array.ndim else reshape(x, 1), tensors, "atleast_1d")


def _lifted_2d(x: TensorBase) -> Any:
    if x._array.ndim > 1:
        return x
    return unsqueeze(x, 0) if x._array.ndim else reshape(x, 1, -1)


def atleast_2d(*tensors: TensorBase | Sequence[TensorBase]) -> Any:
    """Return numbers and vectors as matrices of one row.

    >>> import mutagrad as mg
    >>> mg.atleast_2d(mg.tensor([1., 2.]))
    tensor([[1., 2.]])
    """
    return _each(_lifted_2d, tensors, "atleast_2d")


def _lifted_3d(x: TensorBase) -> Any:
    if x._array.ndim > 2:
        return x
    if x._array.ndim == 2:
        return unsqueeze(x, -1)
    return unsqueeze(unsqueeze(x, 0), -1) if x._array.ndim else reshape(x, 1, 1, 1)


def atleast_3d(*tensors: TensorBase | Sequence[TensorBase]) -> Any:
    """Return numbers, vectors and matrices with dimensions of size one around them.

    >>> import mutagrad as mg
    >>> mg.atleast_3d(mg.tensor([1., 2.])).shape
    mutagrad.Size([1, 2, 1])
    """
    return _each(_lifted_3d, tensors, "atleast_3d")


# ------------------------------------------------------------------------------------------------------------- stacking

def hstack(tensors: Sequence[TensorBase], *, out: TensorBase | None = None) -> Any:
    """Join tensors side by side: along the second dimension, vectors along their only one.

    >>> import mutagrad as mg
    >>> mg.hstack((mg.tensor([1, 2]), mg.tensor([3])))
    tensor([1, 2, 3])
    """
    found = [atleast_1d(x) for x in _listed(tensors, "hstack")]
    return cat(found, 0 if found and found[0]._array.ndim == 1 else 1, out=out)


def vstack(tensors: Sequence[TensorBase], *, out: TensorBase | None = None) -> Any:
    """Join tensors on top of each other: along the first dimension, vectors as rows.

    >>> import mutagrad as mg
    >>> mg.row_stack((mg.tensor([1, 2]), mg.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([atleast_2d(x) for x in _listed(tensors, "vstack")], 0, out=out)


row_stack = vstack


def dstack(tensors: Sequence[TensorBase], *, out: TensorBase | None = None) -> Any:
    """Join tensors behind each other: along the third dimension.

    >>> import mutagrad as mg
    >>> mg.dstack((mg.tensor([1, 2]), mg.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([atleast_3d(x) for x in _listed(tensors, "dstack")], 2, out=out)


def column_stack(tensors: Sequence[TensorBase], *, out: TensorBase | None = None) -> Any:
    """Join tensors side by side, with vectors as columns.

    >>> import mutagrad as mg
    >>> mg.column_stack((mg.tensor([1, 2]), mg.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    found = [x if x._array.ndim > 1 else reshape(x, -1, 1) for x in _listed(tensors, "column_stack")]
    return cat(found, 1, out=out)


# ------------------------------------------------------------------------------------------------------------ splitting

def tensor_split(input: TensorBase, indices_or_sections: TensorBase | Sequence[int] | int | None = None, dim: int = 0,
                 *, indices: TensorBase | Sequence[int] | None = None, sections: int | None = None) -> tuple[Any, ...]:
    """Split into so many views of nearly equal size, or between the positions given.

    >>> import mutagrad as mg
    >>> mg.tensor_split(mg.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    array = tensor_argument(input, "tensor_split")._array
    if not array.ndim:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
                         fix="x.reshape(1)")
    dim = whole_dim(dim, array.ndim, "tensor_split")
    where = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    n = array.shape[dim]
    if isinstance(where, TensorBase):
        if where._array.ndim > 1 or where._array.dtype != np.int64:
            raise BadValue("tensor_split: positions must be an integer or a vector of int64, "
                           f"not {where._array.dtype.name} of shape {where._array.shape}", fix="indices.long()")
        where = where._array.tolist()
    if isinstance(where, int):
        if where <= 0:
            raise BadValue(f"tensor_split: number of sections must be larger than 0, got {where}",
                           fix="x.tensor_split(2)")
        size, longer = divmod(n, where)
        where = list(accumulate([size + 1] * longer + [size] * (where - longer)))[:-1]
    if where is None:
        raise BadArgument("tensor_split: needs a number of parts or positions", fix="x.tensor_split(2)")
    ends = [_clipped(v, n) for v in sizes((where,))] + [n]
    starts = [0, *ends[:-1]]
    return tuple(narrow(input, dim, min(a, n), max(b - a, 0)) for a, b in zip(starts, ends))


def _clipped(position: int, n: int) -> int:
    return min(max(position + n if position < 0 else position, 0), n)


def _split_along(name: str, x: TensorBase, where: TensorBase | Sequence[int] | int, dim: int,
                 least: int) -> tuple[TensorBase, ...]:
    shape = tensor_argument(x, name)._array.shape
    if len(shape) < least:
        raise ShapeError(f"{name}: expects at least {least} dimensions, got shape {shape}", fix="x.tensor_split(2)")
    if isinstance(where, int) and (where <= 0 or shape[dim] % where):
        raise ShapeError(f"{name}: dimension {dim} of size {shape[dim]} has no {where} equal parts",
                         fix=f"x.tensor_split({where}, {dim})")
    return tensor_split(x, where, dim)


def hsplit(input: TensorBase, indices_or_sections: TensorBase | Sequence[int] | int) -> tuple[Any, ...]:
    """Split into equal parts (or between positions) along the second dimension, vectors along their only one.

    >>> import mutagrad as mg
    >>> mg.hsplit(mg.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1],
            [3]]), tensor([[2],
            [4]]))
    """
    dim = 0 if tensor_argument(input, "hsplit")._array.ndim == 1 else 1
    return _split_along("hsplit", input, indices_or_sections, dim, 1)


def vsplit(input: TensorBase, indices_or_sections: TensorBase | Sequence[int] | int) -> tuple[Any, ...]:
    """Split into equal parts (or between positions) along the first dimension.

    >>> import mutagrad as mg
    >>> mg.vsplit(mg.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: TensorBase, indices_or_sections: TensorBase | Sequence[int] | int) -> tuple[Any, ...]:
    """Split into equal parts (or between positions) along the third dimension.

    >>> import mutagrad as mg
    >>> [part.shape for part in mg.dsplit(mg.zeros(1, 1, 4), 2)]
    [mutagrad.Size([1, 1, 2]), mutagrad.Size([1, 1, 2])]
    """
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


def split_with_sizes(input: TensorBase, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """Split into views of the sizes given.

    >>> import mutagrad as mg
    >>> mg.split_with_sizes(mg.arange(5), (1, 4))
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return split(input, sizes((split_sizes,), "split_with_sizes"), dim)


def unsafe_split(input: TensorBase, split_size: int | Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """Do as `split`, which is safe.

    >>> import mutagrad as mg
    >>> mg.unsafe_split(mg.arange(4), 3)
    (tensor([0, 1, 2]), tensor([3]))
    """
    return split(input, split_size, dim)


def unsafe_chunk(input: TensorBase, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Do as `chunk`, which is safe.

    >>> import mutagrad as mg
    >>> mg.unsafe_chunk(mg.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return chunk(input, chunks, dim)


def slice(input: TensorBase, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Return `x[start:end:step]` along a dimension.

    >>> import mutagrad as mg
    >>> mg.slice(mg.arange(5), 0, 1, 4, 2)
    tensor([1, 3])
    """
    array = tensor_argument(input, "slice")._array
    if not array.ndim:
        raise ShapeError("slice: a 0-d tensor has nothing to slice", fix="x.reshape(1)")
    if step <= 0:
        raise BadValue(f"slice: the step must be positive, got {step}", fix="x.flip(dim) reverses")
    before = (builtins.slice(None),) * whole_dim(dim, array.ndim, "slice")
    return getitem(input, (*before, builtins.slice(start, end, step)))


# --------------------------------------------------------------------------------------------------------------- turned

def rot90(input: TensorBase, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Return a copy turned by k quarters in the plane of two dimensions, from the first towards the second.

    >>> import mutagrad as mg
    >>> mg.rot90(mg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    n = tensor_argument(input, "rot90")._array.ndim
    k, dims = whole_number(k, "rot90", "k"), sizes((dims,), "rot90")
    if len(dims) != 2 or n < 2:
        raise ShapeError(f"rot90: expected total rotation dims == 2, but got dims={dims} of shape {input._array.shape}",
                         fix="dims=(0, 1)")
    a, b = (whole_dim(d, n, "rot90") for d in dims)
    if a == b:
        raise ShapeError(f"rot90: expected rotation dims to be different, but both are dimension {a}",
                         fix="dims=(0, 1)")
    turned: dict[int, Callable[[], TensorBase]] = {
        0: lambda: clone(input), 1: lambda: transpose(flip(input, b), a, b),
        2: lambda: flip(input, a, b), 3: lambda: flip(transpose(input, a, b), b)}
    return turned[whole_number(k, "rot90", "k") % 4]()


def fliplr(input: TensorBase) -> Any:
    """Return a copy with its columns in reverse.

    >>> import mutagrad as mg
    >>> mg.fliplr(mg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if tensor_argument(input, "fliplr")._array.ndim < 2:
        raise ShapeError(f"fliplr: expects at least 2 dimensions, got shape {input._array.shape}", fix="x.flip(0)")
    return flip(input, 1)


def flipud(input: TensorBase) -> Any:
    """Return a copy with its rows in reverse.

    >>> import mutagrad as mg
    >>> mg.flipud(mg.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if not tensor_argument(input, "flipud")._array.ndim:
        raise ShapeError("flipud: expects at least 1 dimension, got a 0-d tensor", fix="x.reshape(1)")
    return flip(input, 0)


def ravel(input: TensorBase) -> Any:
    """Return all elements as one dimension: a view where that can be.

    >>> import mutagrad as mg
    >>> mg.ravel(mg.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return reshape(tensor_argument(input, "ravel"), -1)


def detach(input: TensorBase) -> Any:
    """Return the same memory without the history.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> mg.detach(x * 2).requires_grad
    False
    """
    return detached(tensor_argument(input, "detach"))


# ------------------------------------------------------------------------------------------------------ copies of views

def _copying(look: Any, example: str, shown: str) -> Callable[..., Any]:
    """The form of a view that copies; what the docstring's example gives it, and what shape that has."""
    def copied(input: TensorBase, *arguments: Any, out: TensorBase | None = None, **settings: Any) -> Any:
        found = look(tensor_argument(input, copied.__name__), *arguments, **settings)
        return write_out(copied.__name__, tuple(map(clone, found)) if isinstance(found, tuple) else clone(found), out)

    copied.__name__ = copied.__qualname__ = look.__name__.replace("view_as_shape", "view") + "_copy"
    first = "[0]" if look in (split, split_with_sizes, unbind) else ""
    copied.__doc__ = with_example(f"As `{look.__name__}`, but a copy.", ">>> x = mg.zeros(2, 3)",
                                  f">>> mg.{copied.__name__}({example}){first}.shape", f"mutagrad.Size({shown})")
    return copied


def alias(input: TensorBase) -> Any:
    """Return the tensor itself."""
    return input


alias_copy = _copying(alias, "x", "[2, 3]")
as_strided_copy = _copying(as_strided, "x, (2, 2), (1, 1)", "[2, 2]")
diagonal_copy = _copying(diagonal, "x", "[2]")
expand_copy = _copying(expand, "x, (4, 2, 3)", "[4, 2, 3]")
narrow_copy = _copying(narrow, "x, 1, 0, 2", "[2, 2]")
permute_copy = _copying(permute, "x, (1, 0)", "[3, 2]")
select_copy = _copying(select, "x, 0, 1", "[3]")
slice_copy = _copying(slice, "x, 1, 0, 2", "[2, 2]")
squeeze_copy = _copying(squeeze, "x[:1]", "[3]")
t_copy = _copying(t, "x", "[3, 2]")
transpose_copy = _copying(transpose, "x, 0, 1", "[3, 2]")
unfold_copy = _copying(unfold, "x, 1, 2, 1", "[2, 2, 2]")
unsqueeze_copy = _copying(unsqueeze, "x, 0", "[1, 2, 3]")
view_copy = _copying(view_as_shape, "x, (3, 2)", "[3, 2]")
split_copy = _copying(split, "x, 2, 1", "[2, 2]")
split_with_sizes_copy = _copying(split_with_sizes, "x, (1, 2), 1", "[2, 1]")
unbind_copy = _copying(unbind, "x", "[3]")


# ------------------------------------------------------------------------------------------------------------- new ones

def fill(input: TensorBase, value: TensorBase | complex) -> Any:
    """Return a copy in which every element is the value.

    >>> import mutagrad as mg
    >>> mg.fill(mg.zeros(2), 3.)
    tensor([3., 3.])
    """
    return fill_(clone(tensor_argument(input, "fill")), value)


def scalar_tensor(s: TensorBase | complex, *, dtype: dtype | None = None, layout: layout | None = None,
                  device: device | str | None = None, pin_memory: bool = False, requires_grad: bool = False) -> Any:
    """Return a number as a 0-d tensor, of the default type unless told otherwise.

    >>> import mutagrad as mg
    >>> mg.scalar_tensor(2)
    tensor(2.)
    """
    check_layout("scalar_tensor", layout, pin_memory)
    s = number(s) if isinstance(s, TensorBase) else s
    if not isinstance(s, (bool, int, float, complex)):
        raise BadArgument(f"scalar_tensor: expects a number, got {type(s).__name__}", fix="mutagrad.tensor(data)")
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return finish(cast(make(np.array(s)), to.array_type)._array, requires_grad, device)


@may_need_much
def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: dtype | None = None,
                  layout: layout | None = None, device: device | str | None = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Any:
    """Return a tensor of whatever the memory held, with these strides.

    >>> import mutagrad as mg
    >>> mg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_layout("empty_strided", layout, pin_memory)
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    shape, steps = sizes((size,)), sizes((stride,))
    if len(shape) != len(steps) or min((*shape, *steps), default=0) < 0:
        raise ShapeError(f"empty_strided: size {shape} and stride {steps} do not make a window",
                         fix="sizes and strides of 0 or more, one for each dimension")
    room = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps))
    memory = finish(np.empty(room, to.array_type), False, device)
    return view(memory, shape, tuple(s * to.itemsize for s in steps), 0).requires_grad_(requires_grad)


@may_need_much
def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: dtype | None = None,
                   layout: layout | None = None, device: device | str | None = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Any:
    """Return a tensor of whatever the memory held, its dimensions in memory in this order, outermost first.

    >>> import mutagrad as mg
    >>> mg.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    shape, order = sizes((size,)), sizes((physical_layout,))
    if sorted(order) != list(range(len(shape))):
        raise ShapeError(f"empty_permuted: {order} is not an order of {len(shape)} dimensions",
                         fix=f"physical_layout={tuple(range(len(shape)))}")
    steps = dict(zip(order, dense_strides(tuple(shape[d] for d in order), 1)))
    strides = tuple(steps[d] for d in range(len(shape)))
    return empty_strided(shape, strides, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                         requires_grad=requires_grad)


def new_empty_strided(x: TensorBase, size: Sequence[int], stride: Sequence[int], *, dtype: dtype | None = None,
                      layout: layout | None = None, device: device | str | None = None, pin_memory: bool = False,
                      requires_grad: bool = False) -> Any:
    """Return `empty_strided` of the type of x.

    >>> import mutagrad as mg
    >>> mg.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    dtype = of_array(x._array.dtype) if dtype is None else dtype
    device = x.device if device is None else device
    return empty_strided(size, stride, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                         requires_grad=requires_grad)


# ---------------------------------------------------------------------------------------------- another window in place

def _without_history(x: TensorBase, name: str) -> None:
    if x._storage.writer is not None:
        raise GradientError(f"{name}: this tensor requires a gradient, which has no meaning for another shape",
                            fix="y = x.detach().clone(), then y." + name)


@may_need_much
def resize_(x: TensorBase, *shape: int | Sequence[int], size: Sequence[int] | None = None,
            memory_format: memory_format | None = None) -> Any:
    """Resize the tensor: in its own memory where that is enough, else in new memory that begins with its elements.

    >>> import mutagrad as mg
    >>> mg.arange(4).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    wanted = sizes(shape if size is None else (size,))
    steps = _steps(wanted, x._array.itemsize, memory_format)
    if wanted == x._array.shape and memory_format not in RANKS:
        return x
    _without_history(x, "resize_")
    offset, item = x._offset or 0, x._array.itemsize
    if offset + prod(wanted) * item > x._storage.buffer.nbytes:
        kept = x._storage.buffer.reshape(-1).view(x._array.dtype)[offset // item:]
        grown = np.zeros(prod(wanted), x._array.dtype)
        grown[:kept.size] = kept
        x._storage, offset = make(grown)._storage, 0
    return become(x, lambda x: view(x, wanted, steps, offset))


def _steps(shape: tuple[int, ...], item: int, memory_format: memory_format | None) -> tuple[int, ...]:
    """The strides of memory without gaps: row by row, or with the channels last."""
    if prod(shape) * item >= 2**63:
        raise BadValue(f"resize_: a size of {shape} overflows what memory can be addressed", fix="fewer elements")
    if memory_format not in RANKS:
        check_format("resize_", memory_format)
        return dense_strides(shape, item)
    if len(shape) != RANKS[memory_format]:
        raise ShapeError(f"resize_: {memory_format} is for {RANKS[memory_format]} dimensions, got {shape}",
                         fix="leave memory_format out")
    batch, *rest, channel = dense_strides((shape[0], *shape[2:], shape[1]), item)
    return batch, channel, *rest


def resize(x: TensorBase, *shape: int | Sequence[int]) -> Any:
    """Reshape, keeping the number of elements: PyTorch's old name for that."""
    warnings.warn("non-inplace resize is deprecated: x.reshape(...) is the same", stacklevel=2)
    return reshape(x, *shape)


def resize_as_(x: TensorBase, the_template: TensorBase, *, memory_format: memory_format | None = None) -> Any:
    """Give the tensor the size of another.

    >>> import mutagrad as mg
    >>> mg.arange(4).resize_as_(mg.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    shape = tensor_argument(the_template, "resize_as_")._array.shape
    return resize_(tensor_argument(x, "resize_as_"), *shape, memory_format=memory_format)


def set_(x: Any, source: Any = None, storage_offset: int = 0, size: Sequence[int] | None = None,
         stride: Sequence[int] | None = None) -> Any:
    """Make the tensor a window on the memory of another, all of it or as described. Its history stays under no_grad.

    >>> import mutagrad as mg
    >>> x = mg.zeros(3)
    >>> y = mg.empty(0).set_(x)
    >>> y[0] = 5.
    >>> x
    tensor([5., 0., 0.])
    """
    if OTHER_KIND:
        check_inside(x)
    unrecorded = x.requires_grad and not mode.grad
    if not unrecorded:
        _without_history(x, "set_")
    if source is None:
        source = make(np.empty(0, x._array.dtype))
    if hasattr(source, "as_tensor"):  # the storage of another
        source = source.as_tensor(x._array.dtype)
    if not isinstance(source, TensorBase):
        raise BadArgument(f"set_: the source must be a tensor or a storage, not {kind_name(source)}",
                          fix="x.set_(y)")
    if source._array.dtype != x._array.dtype:
        raise DTypeError(f"set_: a tensor of {x._array.dtype.name} cannot show memory of {source._array.dtype.name}",
                         fix="y.to(x.dtype)")
    if size is not None:
        shape = sizes((size,))
        source = as_strided(source, shape, dense_strides(shape, 1) if stride is None else stride, storage_offset)
    if unrecorded:
        x.data = source
        return x
    x._storage = source._storage
    return become(x, lambda _: source)


def as_strided_(x: TensorBase, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """Make the tensor another window on its own memory.

    >>> import mutagrad as mg
    >>> mg.arange(4).as_strided_((2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    return become(x, lambda x: as_strided(x, size, stride, storage_offset))
