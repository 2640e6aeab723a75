"""Parts of matrices, and matrices out of parts: triangles, diagonals, powers of a vector."""
from __future__ import annotations

from builtins import sum as total
from operator import index
from typing import Any

from ...arrays import np
from ...arrays.kinds import is_plain
from ...arrays.places import triangle
from ...base.device import device
from ...base.errors import BadArgument, BadIndex, BadValue, DTypeError, ShapeError, may_need_much
from ...base.layout import check_layout, layout
from ...base.operands import Array
from ...base.sockets import socket
from ...core.codegen import primitive
from ...core.dtypes import as_dtype, dtype
from ...core.factory import make
from ...core.indexing import copy_into, fill_
from ...core.number import whole_number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor, memory_offset
from ..create.create import finish
from ..math.elementwise import conj
from ..reduce.reductions import cumprod, sum
from ..shape.shape import (
    as_strided,
    broadcast_to,
    cat,
    clone,
    diagonal,
    reshape,
    tensor_argument,
    transpose,
    unsqueeze,
    whole_dim,
)

FUNCTIONS = "adjoint diag diag_embed diagflat trace tril tril_indices triu triu_indices vander"
METHODS = "H adjoint diag diag_embed diagflat fill_diagonal_ mH trace tril tril_ triu triu_"

# ------------------------------------------------------------------------------------------------------------ triangles

tril_values = primitive("tril", lambda a, diagonal: triangle(a, diagonal, True), settings=("diagonal",),
                        numbers=("diagonal",), x=lambda xp, g, diagonal: xp.tril(g, diagonal))
triu_values = primitive("triu", lambda a, diagonal: triangle(a, diagonal, False), settings=("diagonal",),
                        numbers=("diagonal",), x=lambda xp, g, diagonal: xp.triu(g, diagonal))


def _matrix(x: Tensor, name: str) -> Tensor:
    if tensor_argument(x, name)._array.ndim < 2:
        raise ShapeError(f"{name}: expects a matrix or a batch of them, got shape {x._array.shape}",
                         fix=f"mutagrad.{name}(x[None])")
    return x


def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Any:
    """Return the matrix with zeros above a diagonal: 0 is the main one, 1 the one above it.

    >>> import mutagrad as mg
    >>> mg.tril(mg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return write_out("tril", tril_values(_matrix(input, "tril"), whole_number(diagonal, "tril", "diagonal")), out)


def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Any:
    """Return the matrix with zeros below a diagonal: 0 is the main one, 1 the one above it.

    >>> import mutagrad as mg
    >>> mg.triu(mg.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return write_out("triu", triu_values(_matrix(input, "triu"), whole_number(diagonal, "triu", "diagonal")), out)


def tril_(x: Tensor, diagonal: int = 0) -> Any:
    """Write zeros above a diagonal of the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.ones(2, 2).tril_()
    tensor([[1., 0.],
            [1., 1.]])
    """
    return copy_into(x, tril(x, diagonal))


def triu_(x: Tensor, diagonal: int = 0) -> Any:
    """Write zeros below a diagonal of the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.ones(2, 2).triu_()
    tensor([[1., 1.],
            [0., 1.]])
    """
    return copy_into(x, triu(x, diagonal))


def _in_triangle(row: int, col: int, offset: int, lower: bool) -> Any:
    """The rows and the columns of the elements of a triangle, row by row."""
    edge = np.clip(np.arange(row) + offset + (1 if lower else 0), 0, col)
    counts = edge if lower else col - edge
    starts = np.cumsum(counts) - counts
    found = np.empty((2, counts.sum()), np.int64)
    found[0] = np.repeat(np.arange(row), counts)
    np.subtract(np.arange(found.shape[1]), np.repeat(starts if lower else starts - edge, counts), out=found[1])
    return found


def _indices(name: str, row: int, col: int, offset: int, dtype: dtype | None, device: device | str | None,
             layout: layout | None, pin_memory: bool) -> Any:
    check_layout(name, layout, pin_memory)
    row, col, offset = index(row), index(col), index(offset)
    if row < 0 or col < 0:
        raise BadValue(f"{name}: sizes must not be negative, got {row} and {col}", fix=f"mutagrad.{name}(3, 3)")
    to = np.dtype("int64") if dtype is None else as_dtype(dtype).array_type
    return finish(_in_triangle(row, col, offset, name == "tril_indices").astype(to, copy=False), False, device, name)


@may_need_much
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype | None = None, device: device | str | None = None,
                 layout: layout | None = None, pin_memory: bool = False) -> Any:
    """Return the rows and the columns of the elements on and below a diagonal.

    >>> import mutagrad as mg
    >>> mg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _indices("tril_indices", row, col, offset, dtype, device, layout, pin_memory)


@may_need_much
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype | None = None, device: device | str | None = None,
                 layout: layout | None = None, pin_memory: bool = False) -> Any:
    """Return the rows and the columns of the elements on and above a diagonal.

    >>> import mutagrad as mg
    >>> mg.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _indices("triu_indices", row, col, offset, dtype, device, layout, pin_memory)


# ------------------------------------------------------------------------------------------------------------ diagonals

def _embed(a: Array, offset: int, dim1: int, dim2: int) -> Any:
    n = a.shape[-1] + abs(offset)
    shape = list(a.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, n)
    out = np.zeros(shape, a.dtype)
    k, down, across = a.shape[-1], max(-offset, 0), max(offset, 0)
    square = np.moveaxis(out, (dim1, dim2), (-2, -1))[..., down:down + k, across:across + k]
    if is_plain(out, a):
        np.einsum("...ii->...i", square)[...] = a  # a view: an index would go element by element
    else:
        square[..., np.arange(k), np.arange(k)] = a
    return out


diag_embed_values = primitive("diag_embed", _embed, settings=("offset", "dim1", "dim2"), numbers=("offset",),
                              x=lambda xp, g, offset, dim1, dim2: xp.diagonal(g, offset, dim1, dim2))
RAW.diagonal, RECORDED.diagonal = np.diagonal, diagonal


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices with the last dimension of `x` on their diagonals and zeros elsewhere.

    >>> import mutagrad as mg
    >>> mg.diag_embed(mg.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    n = tensor_argument(input, "diag_embed")._array.ndim + 1
    if n == 1:
        raise BadIndex("diag_embed: a 0-d tensor has no dimension to put on a diagonal", fix="x.reshape(1)")
    a, b = whole_dim(dim1, n, "diag_embed"), whole_dim(dim2, n, "diag_embed")
    if a == b:
        raise BadValue(f"diag_embed: dim1 and dim2 are both {a}", fix="mutagrad.diag_embed(x, offset, -2, -1)")
    return diag_embed_values(input, offset, a, b)


def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Any:
    """Return a vector as the diagonal of a matrix, or the diagonal of a matrix as a vector (a copy).

    >>> import mutagrad as mg
    >>> mg.diag(mg.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    >>> mg.diag(mg.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    n = tensor_argument(input, "diag")._array.ndim
    if n not in (1, 2):
        raise ShapeError(f"diag: expects a vector or a matrix, got shape {input._array.shape}",
                         fix="mutagrad.diagonal(x, 0, -2, -1)")
    found = diag_embed(input, diagonal) if n == 1 else clone(linalg_diagonal(input, offset=diagonal))
    return write_out("diag", found, out)


def diagflat(input: Tensor, offset: int = 0) -> Any:
    """Return a matrix with all elements of `x` on a diagonal.

    >>> import mutagrad as mg
    >>> mg.diagflat(mg.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(tensor_argument(input, "diagflat"), -1), offset)


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return the diagonals of matrices, as a view that can be written through.

    >>> import mutagrad as mg
    >>> mg.linalg.diagonal(mg.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    return diagonal(tensor_argument(A, "linalg.diagonal"), offset, dim1, dim2)


def trace(input: Tensor | None = None, *, out: Tensor | None = None, **recording: Any) -> Any:
    """Return the sum of the diagonal of a matrix; without one, a block that records: `with mutagrad.trace() as t:`.

    >>> import mutagrad as mg
    >>> mg.trace(mg.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    if input is None and out is None:
        return socket("trace").Trace(**recording)
    if recording:
        raise BadArgument(f"trace: got an unexpected keyword argument {next(iter(recording))!r}",
                          why="of a matrix there is nothing to set", fix="mutagrad.trace(x)")
    matrix = tensor_argument(input, "trace")
    if matrix._array.ndim != 2:
        raise ShapeError(f"trace: expects a matrix, got shape {matrix._array.shape}",
                         fix="x.diagonal(0, -2, -1).sum(-1)")
    if matrix._array.dtype.kind == "b":
        raise DTypeError("trace: not defined for booleans", fix="x.int().trace()")
    if matrix._storage.writer is None and matrix._array.dtype.char in "fd" and is_plain(matrix._array):
        return write_out("trace", make(np.asarray(matrix._array.trace())), out)
    return write_out("trace", sum(diagonal(matrix)), out)


def fill_diagonal_(x: Tensor, fill_value: Tensor | complex, wrap: bool = False) -> Any:
    """Write one value to the main diagonal; `wrap` begins again below the square of a tall matrix.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 2).fill_diagonal_(3.)
    tensor([[3., 0.],
            [0., 3.]])
    """
    shape = tensor_argument(x, "fill_diagonal_")._array.shape
    if len(shape) < 2 or len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal_: shape {shape} has no main diagonal", why="all sizes must be equal, or two",
                         fix="x.diagonal().fill_(value)")
    item = x._array.itemsize
    steps = [s // item for s in x._array.strides]
    places = [(0, min(shape))]
    if wrap and len(shape) == 2:
        period = shape[1] + 1
        places = [(start, min(shape[1], shape[0] - start)) for start in range(0, shape[0], period)]
    first = memory_offset(x) // item
    for start, length in places:
        fill_(as_strided(x, (length,), (total(steps),), first + start * steps[0]), fill_value)
    return x


# ----------------------------------------------------------------------------------------------------------- transposes

def adjoint(input: Tensor) -> Any:
    """Swap the last two dimensions, and conjugate complex numbers.

    >>> import mutagrad as mg
    >>> mg.adjoint(mg.tensor([[1 + 2j, 3j]]))
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    n = tensor_argument(input, "adjoint")._array.ndim
    if n == 1:
        raise ShapeError(f"adjoint: expects a matrix or a batch of them, got shape {input._array.shape}",
                         fix="x[None].mH")
    swapped = transpose(input, -2, -1) if n else input
    return conj(swapped) if input._array.dtype.kind == "c" else swapped


def _H(x: Tensor) -> Any:
    if x._array.ndim not in (0, 2):
        raise ShapeError(f"H: expects a matrix, got shape {x._array.shape}", fix="x.mH")
    return adjoint(x)


mH = property(adjoint)
H = property(_H)

# --------------------------------------------------------------------------------------------------- powers of a vector


def linalg_vander(x: Tensor, *, N: int | None = None) -> Any:
    """Return the powers 0 to N - 1 of the elements of a vector, a row for each.

    >>> import mutagrad as mg
    >>> mg.linalg.vander(mg.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    shape = tensor_argument(x, "vander")._array.shape
    if not shape and N is None:
        raise ShapeError("vander: a 0-d tensor does not say how many powers to take",
                         fix="mutagrad.linalg.vander(x, N=3)")
    n = shape[-1] if N is None else N
    if n < 2:
        raise BadValue(f"vander: N must be greater than 1, not {n}", fix="mutagrad.linalg.vander(x, N=3)")
    return _powers(x if shape else reshape(x, 1), n)


@may_need_much
def _powers(x: Tensor, n: int) -> Any:
    """The powers 0 to n - 1 as a new last dimension."""
    x = x if x._array.dtype.kind in "fcV" else make(x._array.astype(np.int64))
    shape = x._array.shape
    ones = make(np.ones((*shape, min(n, 1)), x._array.dtype))
    if n < 2:
        return ones
    return cat([ones, cumprod(broadcast_to(unsqueeze(x, -1), (*shape, n - 1)), -1)], -1)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers N - 1 to 0 of the elements of a vector, a row for each; rising if `increasing`.

    >>> import mutagrad as mg
    >>> mg.vander(mg.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if tensor_argument(x, "vander")._array.ndim != 1:
        raise ShapeError(f"vander: expects a vector, got shape {x._array.shape}",
                         fix="mutagrad.linalg.vander(x) takes batches")
    n = x._array.shape[0] if N is None else N
    if n < 0:
        raise BadValue(f"vander: N must not be negative, got {n}", fix="mutagrad.vander(x, 3)")
    found = _powers(x, n)
    return found if increasing else RECORDED.flip(found, (1,))
