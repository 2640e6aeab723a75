"""Matrices that are mostly zero, as the places and the values of the rest.

A `SparseTensor` is not a tensor: it is indices, and values that are a tensor with derivatives like any other. What it
can do is be made, be multiplied with a dense matrix, and be turned into a dense tensor.

>>> import mutagrad as mg
>>> a = mg.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3))
>>> a.to_dense()
tensor([[0., 0., 3.],
        [4., 0., 5.]])
>>> a @ mg.ones(3, 1)
tensor([[3.],
        [9.]])
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import np
from ..arrays.numpy import silenced
from ..arrays.scipy import has_scipy, scipy
from ..autograd.function import Function
from ..base.device import CPU, check_device, device
from ..base.errors import BadArgument, BadIndex, GradientError, NotSupported, ShapeError
from ..base.layout import layout, sparse_coo
from ..base.operands import Array
from ..core import dtypes
from ..core.factory import make
from ..core.size import Size, sizes
from ..ops.create.create import as_tensor, zeros
from ..ops.select.selecting import index_add
from ..ops.shape.shape import cat, flatten
from ..tensors.tensor import Tensor

FUNCTIONS = "sparse_coo_tensor spmm"
METHODS = "to_dense to_sparse"

__all__ = ["SparseTensor", "sparse_coo_tensor", "sparse_mm", "spmm", "to_dense", "to_sparse"]


class SparseTensor:
    """Values at places: `indices` has a row for each sparse dimension, a column for each value. Equal places add up."""

    is_sparse = True
    is_cuda = is_quantized = is_meta = False
    layout: layout = sparse_coo
    device = CPU

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False) -> None:
        self._places, self._numbers, self.shape, self._coalesced = indices, values, Size(size), coalesced

    # ---------------------------------------------------------------------------------------------------- what it holds

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._numbers

    def indices(self) -> Tensor:
        return self._only_coalesced("indices")._places

    def values(self) -> Tensor:
        return self._only_coalesced("values")._numbers

    def _only_coalesced(self, name: str) -> SparseTensor:
        if not self._coalesced:
            raise BadIndex(f"{name}: the sparse tensor is not coalesced", why="a place may be there several times",
                           fix=f"x.coalesce().{name}()")
        return self

    def is_coalesced(self) -> bool:
        return self._coalesced

    def _nnz(self) -> int:
        return int(self._places.shape[1])

    def sparse_dim(self) -> int:
        return int(self._places.shape[0])

    def dense_dim(self) -> int:
        return int(self._numbers.ndim) - 1

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    @property
    def dtype(self) -> dtypes.dtype:
        return self._numbers.dtype

    @property
    def requires_grad(self) -> bool:
        return bool(self._numbers.requires_grad)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Accept what its values are, or detach them: it has no `.grad` of its own."""
        if requires_grad and not self.requires_grad:
            raise GradientError("requires_grad_: a sparse tensor has no gradient of its own, its values have",
                                fix="values.requires_grad_() before sparse_coo_tensor(indices, values, size)")
        return self if requires_grad == self.requires_grad else self.detach()

    # --------------------------------------------------------------------------------------------------- made of others

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._places, values, self.shape, self._coalesced)

    def to(self, *targets: Any, **settings: Any) -> SparseTensor:
        """Convert the values to another type; the device can only be the CPU."""
        return self._with(self._numbers.to(*targets, **settings))

    def float(self) -> SparseTensor:
        return self._with(self._numbers.float())

    def double(self) -> SparseTensor:
        return self._with(self._numbers.double())

    def cpu(self) -> SparseTensor:
        return self

    def detach(self) -> SparseTensor:
        return self._with(self._numbers.detach())

    def clone(self) -> SparseTensor:
        return SparseTensor(self._places.clone(), self._numbers.clone(), self.shape, self._coalesced)

    def coalesce(self) -> SparseTensor:
        """Return the same with places in order, each once."""
        if self._coalesced:
            return self
        dims = tuple(self.shape[:self.sparse_dim()])
        flat = np.ravel_multi_index(tuple(self._places._array), dims) if dims else np.zeros(self._nnz(), np.int64)
        once, which = np.unique(flat, return_inverse=True)
        values = zeros((len(once), *self._numbers.shape[1:]), dtype=self.dtype)
        places = np.array(np.unravel_index(once, dims), np.int64).reshape(len(dims), len(once))
        summed = index_add(values, 0, make(which.reshape(-1).astype(np.int64)), self._numbers)
        return SparseTensor(make(places), summed, self.shape, True)

    def to_dense(self, dtype: dtypes.dtype | type | None = None, *, masked_grad: bool | None = None) -> Tensor:
        """Return all elements, zeros included, as an ordinary tensor."""
        values = self._numbers if dtype is None else self._numbers.to(dtype)
        dense = zeros(tuple(self.shape), dtype=values.dtype)
        return dense.index_put(tuple(self._places.unbind(0)), values, accumulate=True)

    def to_sparse(self, sparse_dim: int | None = None) -> SparseTensor:
        return self

    def t(self) -> SparseTensor:
        if len(self.shape) != 2 or self.sparse_dim() != 2:
            raise ShapeError(f"t: expects a sparse matrix, got shape {tuple(self.shape)} "
                             f"with {self.sparse_dim()} sparse dimensions")
        return SparseTensor(self._places.flip(0), self._numbers, self.shape[::-1])

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        return self if dim0 % 2 == dim1 % 2 else self.t()

    # ------------------------------------------------------------------------------------------------------- arithmetic

    def __matmul__(self, other: Tensor) -> Tensor:
        return sparse_mm(self, other)

    matmul = mm = __matmul__

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, (int, float)) or isinstance(other, Tensor) and not other.ndim:
            return self._with(self._numbers * other)
        raise NotSupported("mul: a sparse tensor can be multiplied with a number",
                           fix="x.to_dense() * y, or x @ y for the matrix product")

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.__mul__(1 / other)

    div = __truediv__

    def __neg__(self) -> SparseTensor:
        return self._with(-self._numbers)

    def __add__(self, other: SparseTensor) -> SparseTensor:
        if not isinstance(other, SparseTensor) or other.shape != self.shape:
            raise NotSupported("add: a sparse tensor can be added to one of the same shape", fix="x.to_dense() + y")
        return SparseTensor(cat([self._places, other._places], 1), cat([self._numbers, other._numbers]), self.shape)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"a sparse tensor has no {name!r}: it can be made, multiplied with a dense matrix and "
                             "turned dense; x.to_dense() is a tensor, with everything that tensors have")

    def __repr__(self) -> str:
        inner = (f"indices={self._places},\nvalues={self._numbers},\n"
                 f"size={tuple(self.shape)}, nnz={self._nnz()}, layout={sparse_coo}")
        return "tensor(" + inner.replace("\n", "\n       ") + ")"


# --------------------------------------------------------------------------------------------------------------- making

def _dense_places(indices: Any) -> Tensor:
    found = indices if isinstance(indices, Tensor) else as_tensor(indices)
    if found._array.dtype.kind not in "iu" and found._array.size:
        raise BadArgument(f"sparse_coo_tensor: indices must be integers, not {found.dtype}", fix="indices.long()")
    if found.ndim != 2:
        raise ShapeError("sparse_coo_tensor: indices must be a matrix with a row for each dimension, "
                         f"not of shape {tuple(found.shape)}",
                         fix="[[row, row], [column, column]]")
    return found.detach().to(dtypes.int64)


def sparse_coo_tensor(indices: Any, values: Any = None, size: Sequence[int] | None = None, *,
                      dtype: dtypes.dtype | type | None = None, device: device | str | None = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> SparseTensor:
    """Make a sparse tensor from places (a column for each value) and values."""
    check_device(device)
    places = _dense_places(indices)
    numbers = values if isinstance(values, Tensor) and dtype is None else as_tensor(values, dtype=dtype)
    numbers = numbers.requires_grad_() if requires_grad and not numbers.requires_grad else numbers
    if numbers.ndim < 1 or numbers.shape[0] != places.shape[1]:
        raise ShapeError(f"sparse_coo_tensor: {places.shape[1]} places but values of shape {tuple(numbers.shape)}",
                         why="each value has a place")
    array = places._array
    found = (*(n + 1 for n in array.max(1, initial=-1).tolist()), *numbers.shape[1:])
    wanted = found if size is None else sizes((size,))
    if len(wanted) != len(found) or wanted[len(array):] != found[len(array):]:
        raise ShapeError(f"sparse_coo_tensor: size {wanted} does not fit {len(array)} sparse dimensions "
                         f"and values of shape {tuple(numbers.shape)}")
    if (array < 0).any() or any(n > m for n, m in zip(found[:len(array)], wanted)):
        raise BadIndex(f"sparse_coo_tensor: a place lies outside of size {wanted}", fix=f"size={found}")
    return SparseTensor(places, numbers, wanted, bool(is_coalesced))


def to_sparse(x: Tensor, sparse_dim: int | None = None, *, layout: layout | None = None,
              blocksize: Sequence[int] | None = None, dense_dim: int | None = None) -> SparseTensor:
    """Return the elements that are not zero, and where they are."""
    if layout not in (None, sparse_coo) or blocksize is not None or dense_dim:
        raise NotSupported("to_sparse: only places and values (COO) are supported", fix="x.to_sparse()")
    dims = x.ndim if sparse_dim is None else sparse_dim
    array = x._array if dims == x.ndim else (x._array != 0).any(tuple(range(dims, x.ndim)))
    places = np.array(np.nonzero(array), np.int64).reshape(dims, -1)
    return SparseTensor(make(places), x[tuple(make(row) for row in places)], tuple(x.shape), True)


def to_dense(x: Tensor, dtype: dtypes.dtype | type | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor itself: all its elements are there already."""
    return x if dtype is None else x.to(dtype)


# ---------------------------------------------------------------------------------------------------------- the product

@silenced
def _product(rows: Array, columns: Array, values: Array, dense: Array, count: int) -> Array:
    """On arrays: SciPy's where it is installed."""
    if has_scipy() and values.dtype.kind in "fc" and values.dtype.itemsize >= 4:
        matrix = scipy("sparse", "sparse.mm").coo_matrix((values, (rows, columns)), shape=(count, len(dense)))
        return np.ascontiguousarray(matrix.tocsr() @ dense)
    out = np.zeros((count, dense.shape[1]), dense.dtype)
    np.add.at(out, rows, values[:, None] * dense[columns])
    return out


class _SparseProduct(Function):
    """rows, columns and values of a sparse matrix of so many rows, times a dense matrix."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, values: Tensor, dense: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(rows, columns, values, dense)
        return make(_product(rows._array, columns._array, values._array, dense._array, count))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, values, dense = ctx.saved_tensors
        by_values = (g[rows] * dense[columns].conj()).sum(-1) if ctx.needs_input_grad[2] else None
        by_dense = None
        if ctx.needs_input_grad[3]:
            by_dense = _SparseProduct.apply(columns, rows, values.conj(), g, dense.shape[0])
        return None, None, by_values, by_dense, None


def sparse_mm(sparse: SparseTensor | Tensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """Multiply a sparse matrix with a dense one; gradients reach both."""
    if reduce != "sum":
        raise NotSupported(f"sparse.mm: reduce={reduce!r} is not supported", fix="reduce='sum'")
    if isinstance(dense, SparseTensor):
        raise NotSupported("sparse.mm: the second matrix must be dense", fix="a @ b.to_dense()")
    if not isinstance(sparse, SparseTensor):
        return sparse @ dense
    if not isinstance(dense, Tensor):
        raise BadArgument(f"sparse.mm: expects a tensor, got {type(dense).__name__}")
    if sparse.sparse_dim() != 2 or sparse.dense_dim() or dense.ndim not in (1, 2) or sparse.shape[1] != dense.shape[0]:
        raise ShapeError(f"sparse.mm: shapes {tuple(sparse.shape)} and {tuple(dense.shape)} do not fit",
                         why="(n, m) times (m, k) is (n, k)")
    if sparse.dtype != dense.dtype:
        raise BadArgument(f"sparse.mm: {sparse.dtype} times {dense.dtype}", why="the two do not promote",
                          fix="sparse.to(dense.dtype)")
    rows, columns = sparse._places.unbind(0)
    matrix = dense if dense.ndim == 2 else dense.unsqueeze(1)
    out = _SparseProduct.apply(rows, columns, sparse._numbers, matrix, sparse.shape[0])
    return out if dense.ndim == 2 else flatten(out)


spmm = sparse_mm
