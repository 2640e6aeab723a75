"""Products of matrices of which one or both are sparse. SciPy computes them.

Three operations on the values, of which each is made of the three when it is reversed: a sparse matrix times a dense
one, the product of two dense ones at some places, and that of two sparse ones at some places.

>>> import mutagrad as mg
>>> a = mg.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3))
>>> a @ mg.ones(3, 1)
tensor([[3.],
        [9.]])
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..arrays import np
from ..arrays.numpy import silenced
from ..arrays.scipy import has_scipy, scipy
from ..autograd.function import Function
from ..base.errors import BadArgument, BadValue, NotSupported, ShapeError
from ..base.layout import sparse_csr
from ..base.operands import Array
from ..core.factory import make
from ..core.out_arg import write_out
from ..ops.create.create import zeros
from ..ops.linalg import products as dense
from ..ops.select.selecting import index_select, scatter_reduce
from ..tensors.tensor import Tensor
from .compressed import Compressed, compress
from .coordinates import Coordinates
from .elementwise import _written, add, mul
from .shapes import transpose
from .table import answers, refused
from .tensor import SparseTensor, index_of

FUNCTIONS = "spmm smm dsmm hsmm hspmm sspaddmm"
METHODS = "smm sspaddmm"

# ---------------------------------------------------------------------------------------------- on values, with rules


def _wide(array: Array) -> Array:
    """Return an array in a type that SciPy computes with."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.char == "e" else array


@silenced
def _times(rows: Array, columns: Array, values: Array, matrix: Array, count: int) -> Array:
    kind = matrix.dtype
    values, matrix = _wide(values), _wide(matrix)
    if has_scipy():
        sparse = scipy("sparse", "sparse.mm").coo_array((values, (rows, columns)), shape=(count, len(matrix)))
        return np.ascontiguousarray(sparse.tocsr() @ matrix).astype(kind, copy=False)
    out = np.zeros((count, matrix.shape[1]), matrix.dtype)
    np.add.at(out, rows, values[:, None] * matrix[columns])
    return out.astype(kind, copy=False)


class _SparseProduct(Function):
    """A sparse matrix, given by rows, columns, values and the count of rows, times a dense matrix."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, values: Tensor, matrix: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(rows, columns, values, matrix)
        return make(_times(rows._array, columns._array, values._array, matrix._array, count))  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, values, matrix = ctx.saved_tensors
        by_values = by_matrix = None
        if ctx.needs_input_grad[2]:
            by_values = _Sampled.apply(rows, columns, g, matrix.conj())
        if ctx.needs_input_grad[3]:
            by_matrix = _SparseProduct.apply(columns, rows, values.conj(), g, matrix.shape[0])
        return None, None, by_values, by_matrix, None


@silenced
def _sample(rows: Array, columns: Array, x: Array, y: Array) -> Array:
    kind, step = x.dtype, max(1, (1 << 20) // max(x.shape[1], 1))
    x, y = _wide(x), _wide(y)
    out = np.empty(len(rows), x.dtype)
    for i in range(0, len(rows), step):  # as many at once as fit the cache
        out[i:i + step] = np.einsum("ij,ij->i", x[rows[i:i + step]], y[columns[i:i + step]])
    return out.astype(kind, copy=False)


class _Sampled(Function):
    """The elements of `x @ y.T` at some places."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(rows, columns, x, y)
        return make(_sample(rows._array, columns._array, x._array, y._array))  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, x, y = ctx.saved_tensors
        by_x = _SparseProduct.apply(rows, columns, g, y.conj(), x.shape[0]) if ctx.needs_input_grad[2] else None
        by_y = _SparseProduct.apply(columns, rows, g, x.conj(), y.shape[0]) if ctx.needs_input_grad[3] else None
        return None, None, by_x, by_y


class _Sparse:
    """A sparse matrix without its values: places and size."""

    def __init__(self, rows: Tensor, columns: Tensor, size: tuple[int, int]) -> None:
        self.rows, self.columns, self.size = rows, columns, size

    def transposed(self) -> _Sparse:
        return _Sparse(self.columns, self.rows, self.size[::-1])

    def filled(self, values: Array) -> Any:
        """Return the matrix as SciPy's."""
        places = self.rows._array, self.columns._array
        return scipy("sparse", "sparse.mm").coo_array((values, places), shape=self.size).tocsr()

    def product(self, other: _Sparse) -> _Sparse:
        """Return the places at which the product of two matrices can be other than zero."""
        ones = [m.filled(np.ones(len(m.rows), np.int64)) for m in (self, other)]
        found = (ones[0] @ ones[1]).tocsr()
        found.sort_indices()
        rows = np.repeat(np.arange(self.size[0]), np.diff(found.indptr))
        return _Sparse(index_of(rows), index_of(found.indices), (self.size[0], other.size[1]))


class _Inner(Function):
    """The elements of the product of two sparse matrices at some places."""

    @staticmethod
    @silenced
    def forward(ctx: Any, at: _Sparse, left: _Sparse, right: _Sparse, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.matrices = at, left, right
        product = (left.filled(_wide(x._array)) @ right.filled(_wide(y._array))).tocsr()
        found = np.asarray(product[at.rows._array, at.columns._array]).reshape(-1) if len(at.rows) else np.zeros(0)
        return make(found.astype(x._array.dtype, copy=False))  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        (x, y), (at, left, right) = ctx.saved_tensors, ctx.matrices
        by_x = by_y = None
        if ctx.needs_input_grad[3]:
            by_x = _Inner.apply(left, at, right.transposed(), g, y.conj())
        if ctx.needs_input_grad[4]:
            by_y = _Inner.apply(right, left.transposed(), at, x.conj(), g)
        return None, None, None, by_x, by_y


# --------------------------------------------------------------------------------------------------- of two matrices

def _checked(name: str, x: Any, y: Any) -> None:
    for matrix in (x, y):
        if not isinstance(matrix, Tensor):
            raise BadArgument(f"{name}: expects a tensor, got {type(matrix).__name__}")
        if isinstance(matrix, SparseTensor) and (matrix.dense_dim() or matrix.sparse_dim() + getattr(
                matrix, "batch_dim", int)() != matrix.dim() or matrix.dim() < 2):
            raise ShapeError(f"{name}: matrices expected, got a sparse tensor of shape {tuple(matrix.shape)} with "
                             f"{matrix.dense_dim()} dense dimensions")
    inner = y.shape[-2] if y.dim() > 1 else y.shape[0] if y.dim() else None
    if not x.dim() or x.shape[-1] != inner:
        raise ShapeError(f"{name}: mat1 and mat2 shapes cannot be multiplied: {tuple(x.shape)} and {tuple(y.shape)} "
                         "do not fit", why="(n, m) times (m, k) is (n, k)")
    if x.dtype != y.dtype:
        raise BadArgument(f"{name}: {x.dtype} times {y.dtype}", why="the two do not promote",
                          fix="sparse.to(dense.dtype)")


def _rows_and_columns(x: Any) -> tuple[Tensor, Tensor, Tensor]:
    places, numbers = x._places_of_values()
    return index_of(places[0]), index_of(places[1]), numbers


def _by_dense(x: Any, y: Tensor) -> Any:
    """Multiply a sparse matrix by a dense one, by a vector, or by a batch of matrices."""
    rows, columns, values = _rows_and_columns(x)
    if y.dim() == 1:
        return _SparseProduct.apply(rows, columns, values, y.unsqueeze(1), x.shape[0]).squeeze(1)
    if y.dim() == 2:
        return _SparseProduct.apply(rows, columns, values, y, x.shape[0])
    side_by_side = y.movedim(-2, 0)
    found = _SparseProduct.apply(rows, columns, values, side_by_side.reshape(y.shape[-2], -1), x.shape[0])
    return found.reshape(x.shape[0], *side_by_side.shape[1:]).movedim(0, -2)


def _dense_by(x: Tensor, y: Any) -> Any:
    """Multiply something dense by a sparse matrix."""
    if x.dim() == 1:
        return _by_dense(transpose(y, 0, 1), x)
    return _by_dense(transpose(y, 0, 1), x.transpose(-2, -1)).transpose(-2, -1)


def _both_sparse(x: Any, y: Any) -> Any:
    rows_x, columns_x, values_x = _rows_and_columns(x)
    rows_y, columns_y, values_y = _rows_and_columns(y)
    left, right = _Sparse(rows_x, columns_x, tuple(x.shape)), _Sparse(rows_y, columns_y, tuple(y.shape))
    at = left.product(right)
    values = _Inner.apply(at, left, right, values_x, values_y)
    made = Coordinates.of(index_of(np.stack([at.rows._array, at.columns._array])), values, at.size, True)
    return compress(made, sparse_csr) if isinstance(x, Compressed) or isinstance(y, Compressed) else made


def _batched(x: Any, y: Any) -> Any:
    """Multiply batches of matrices: those that are sparse are blocks along the diagonal of one."""
    if isinstance(x, SparseTensor) and isinstance(y, SparseTensor):
        raise NotSupported("bmm: batches of which both are sparse are not supported", fix="y.to_dense()")
    if not isinstance(x, SparseTensor):
        return _batched(transpose(y, -2, -1), x.transpose(-2, -1)).transpose(-2, -1)
    batch = tuple(x.shape[:-2])
    y = y.expand(*batch, *y.shape) if y.dim() == 2 else y
    if tuple(y.shape[:-2]) != batch:
        raise ShapeError(f"bmm: batches of shapes {batch} and {tuple(y.shape[:-2])} differ",
                         why="batches of sparse matrices do not broadcast")
    (n, m), k, count = x.shape[-2:], y.shape[-1], prod(batch)
    places, values = x._places_of_values()
    block = np.ravel_multi_index(tuple(places[:-2]), batch) if len(places[0]) else places[0]
    rows, columns = index_of(block * n + places[-2]), index_of(block * m + places[-1])
    found = _SparseProduct.apply(rows, columns, values, y.reshape(count * m, k), count * n)
    return found.reshape(*batch, n, k)


def _product(name: str, x: Any, y: Any) -> Any:
    if not isinstance(x, SparseTensor) and not isinstance(y, SparseTensor):
        return dense.matmul(x, y)
    _checked(name, x, y)
    if x.dim() > 2 and isinstance(x, SparseTensor) or y.dim() > 2 and isinstance(y, SparseTensor):
        return _batched(x, y)
    if isinstance(x, SparseTensor):
        return _both_sparse(x, y) if isinstance(y, SparseTensor) else _by_dense(x, y)
    return _dense_by(x, y)


def _given_out(name: str, result: Any, out: Any) -> Any:
    if out is None or isinstance(out, SparseTensor) or isinstance(result, SparseTensor):
        return result if out is None else _written(out, result)
    return write_out(name, result, out)


def _named(name: str, dims: tuple[int, int] | None) -> Callable[..., Any]:
    def product(input: Any, other: Any = None, *, mat2: Any = None, vec: Any = None, out: Any = None) -> Any:
        y = next((v for v in (other, mat2, vec) if v is not None), None)
        if isinstance(y, Tensor) and isinstance(input, Tensor) and dims not in (None, (input.dim(), y.dim())):
            raise ShapeError(f"{name}: takes {dims} dimensions, not {input.dim()} and {y.dim()}")
        return _given_out(name, _product(name, input, y), out)

    product.__name__ = product.__qualname__ = name
    product.__doc__ = "Multiply matrices of which at least one is sparse."
    return product


for _name, _dims in {"matmul": None, "__matmul__": None, "mm": (2, 2), "bmm": (3, 3), "mv": (2, 1)}.items():
    answers(_name)(_named(_name, _dims))


@answers("__rmatmul__")
def _reflected(input: Any, other: Any) -> Any:
    return _product("matmul", other, input)


@answers("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    found = _product("linear", input, transpose(weight, 0, 1) if isinstance(weight, SparseTensor) else weight.t())
    return found if bias is None else found + bias


@answers("addmm", "addmv")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return `beta * input + alpha * (mat1 @ mat2)`, where one of the matrices is sparse.

    >>> import mutagrad as mg
    >>> mg.sparse.addmm(mg.ones(2, 2), mg.eye(2).to_sparse(), mg.ones(2, 2), beta=10)
    tensor([[11., 11.],
            [11., 11.]])
    """
    product = _product("addmm", mat1, mat2)
    if isinstance(product, SparseTensor):
        found = add(mul(input, beta), product, alpha=alpha) if isinstance(input, SparseTensor) \
            else add(input * beta, product, alpha=alpha)
    elif isinstance(input, SparseTensor):
        raise NotSupported("addmm: addmm_sparse_dense: expected strided result tensor, got tensor with layout Sparse",
                           why="the product is dense", fix="input.to_dense()")
    else:
        found = beta * input + (product if alpha == 1 else alpha * product)
    return _given_out("addmm", found, out)


@answers("addmm_", "addmv_")
def _addmm_in_place(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    found = addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return _written(input, found) if isinstance(input, SparseTensor) else input.copy_(found)


def mm(sparse: Any, dense: Any, reduce: str = "sum") -> Any:
    """Multiply matrices of which at least one is sparse; `reduce` says how the products of a row are put together.

    >>> import mutagrad as mg
    >>> mg.sparse.mm(mg.eye(2).to_sparse(), mg.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    if reduce == "sum":
        return _product("sparse.mm", sparse, dense)
    if reduce not in ("mean", "amax", "amin", "max", "min"):
        raise BadValue(f"sparse.mm: reduce={reduce!r} is none of sum, mean, amax and amin", fix="reduce='sum'")
    _checked("sparse.mm", sparse, dense)
    if not isinstance(sparse, SparseTensor) or isinstance(dense, SparseTensor) or dense.dim() != 2:
        raise refused("sparse.mm(reduce=)", "it takes a sparse and a dense matrix, in this order", "y.to_dense()")
    rows, columns, values = _rows_and_columns(sparse)
    products = values.unsqueeze(1) * index_select(dense, 0, columns)
    start = zeros((sparse.shape[0], dense.shape[1]), dtype=products.dtype)
    how = reduce if reduce in ("mean", "amax", "amin") else f"a{reduce}"
    index = rows.unsqueeze(1).expand(*products.shape)
    return scatter_reduce(start, 0, index, products, how, include_self=False)


def spmm(sparse: Any, dense: Any) -> Any:
    """Do `sparse.mm`, under its older name.

    >>> import mutagrad as mg
    >>> mg.dsmm(mg.ones(1, 2), mg.eye(2).to_sparse())
    tensor([[1., 1.]])
    """
    return mm(sparse, dense)


dsmm = spmm


def _occupied(x: Any, product: Tensor) -> tuple[Array, Tensor]:
    rows = np.unique(x._places_of_values()[0][0])
    return rows, index_select(product, 0, index_of(rows))


def hspmm(mat1: Any, mat2: Tensor, *, out: Any = None) -> Any:
    """Multiply a sparse matrix by a dense one: those rows that are not empty, as a tensor with a dense dimension.

    >>> import mutagrad as mg
    >>> mg.hsmm(mg.eye(2).to_sparse(), mg.ones(2, 1))
    tensor(indices=tensor([[0, 1]]),
           values=tensor([[1.],
                          [1.]]),
           size=(2, 1), nnz=2, layout=mutagrad.sparse_coo)
    """
    rows, values = _occupied(mat1, _product("hspmm", mat1, mat2))
    return _given_out("hspmm", Coordinates.of(index_of(rows[None]), values, (mat1.shape[0], mat2.shape[1]), True), out)


hsmm = hspmm


def smm(input: Any, mat: Tensor) -> Any:
    """Multiply a sparse matrix by a dense one: a sparse matrix of those rows that are not empty.

    >>> import mutagrad as mg
    >>> mg.smm(mg.eye(2).to_sparse(), mg.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    if not isinstance(input, SparseTensor):
        raise NotSupported("smm: expects a sparse matrix", fix="x.to_sparse()")
    rows, values = _occupied(input, _product("smm", input, mat))
    columns = mat.shape[1]
    places = np.stack([np.repeat(rows, columns), np.tile(np.arange(columns), len(rows))])
    return Coordinates.of(index_of(places), values.reshape(-1), (input.shape[0], columns), True)


def sspaddmm(input: Any, mat1: Any, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return `beta * input + alpha * (mat1 @ mat2)`, of sparse `input` and `mat1`, as a sparse matrix.

    >>> import mutagrad as mg
    >>> x = mg.eye(2).to_sparse()
    >>> mg.sspaddmm(x, x, mg.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    if not isinstance(input, SparseTensor):
        raise NotSupported("sspaddmm: expects a sparse matrix", fix="x.to_sparse()")
    return _given_out("sspaddmm", add(mul(input, beta), smm(mat1, mat2), alpha=alpha), out)


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return `beta * input + alpha * (mat1 @ mat2)` at the places of a sparse `input`.

    >>> import mutagrad as mg
    >>> mg.sparse.sampled_addmm(mg.eye(2).to_sparse_csr(), mg.ones(2, 3), mg.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not isinstance(input, SparseTensor):
        raise BadArgument("sampled_addmm: Expected self to have sparse csr layout", fix="input.to_sparse_csr()")
    shapes = [*input.shape[:-1], mat1.shape[-1]], [*input.shape[:-2], mat1.shape[-1], input.shape[-1]]
    if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor) \
            or [list(mat1.shape), list(mat2.shape)] != [*shapes]:
        raise ShapeError(f"sampled_addmm: dense matrices of shapes {tuple(mat1.shape)} and {tuple(mat2.shape)} do not "
                         f"fit a sparse one of {tuple(input.shape)}")
    places, _ = input._places_of_values()
    (n, m), k, batch = input.shape[-2:], mat1.shape[-1], tuple(input.shape[:-2])
    block = np.ravel_multi_index(tuple(places[:-2]), batch) if batch else 0
    found = _Sampled.apply(index_of(places[-2] + block * n), index_of(places[-1] + block * m),
                           mat1.reshape(-1, k), mat2.transpose(-2, -1).reshape(-1, k))
    found = input._with((alpha * found).reshape(input._numbers.shape) + beta * input._numbers)
    return found if out is None else _written(out, found)


