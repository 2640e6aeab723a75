"""From dense to sparse, from one sparse layout to another, and back: by reads and writes that are differentiable.

Of an element that was left out because it is zero the gradient is left out, too, as PyTorch does by default.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import np
from ..base.errors import BadArgument, BadValue, NotSupported, ShapeError
from ..base.layout import layout as Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..core import dtypes
from ..ops.create.create import zeros
from ..ops.shape.shape import tensor_argument
from ..tensors.tensor import Tensor
from .compressed import IN_BLOCKS, TRANSPOSED, Compressed, compress
from .coordinates import Coordinates, coordinates
from .table import answers, refused
from .tensor import SparseTensor, index_of

METHODS = "to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc"

Blocks = Sequence[int] | int | None


def to_dense(self: Tensor, dtype: dtypes.dtype | type | None = None, *, masked_grad: bool | None = None) -> Any:
    """Return all elements, zeros included, as an ordinary tensor.

    >>> import mutagrad as mg
    >>> mg.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not isinstance(self, SparseTensor):
        return self if dtype is None else self.to(dtype)
    if masked_grad is False and self.requires_grad:
        raise NotSupported("to_dense: masked_grad=False is not supported for a tensor that requires a gradient",
                           why="the gradient of a sparse tensor is sparse, at the same places",
                           fix="x.to_sparse(sparse_dim) of all places, zeros among them")
    places, numbers = self._places_of_values()
    numbers = numbers if dtype is None else numbers.to(dtype)
    if not len(places):
        return numbers.sum(0).to(numbers.dtype)
    flag = numbers.dtype is dtypes.bool_
    dense = zeros(tuple(self.shape), dtype=dtypes.uint8 if flag else numbers.dtype)
    dense = dense.index_put(tuple(map(index_of, places)), numbers.byte() if flag else numbers, accumulate=True)
    return dense.bool() if flag else dense


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None, blocksize: Blocks = None,
              dense_dim: int | None = None) -> Any:
    """Return the elements that are not zero, and where they are, in one of the sparse layouts.

    >>> import mutagrad as mg
    >>> mg.tensor([[0., 1.], [2., 0.]]).to_sparse().values()
    tensor([1., 2.])
    """
    tensor_argument(self, "to_sparse")
    if sparse_dim is not None and (layout is not None or blocksize is not None or dense_dim is not None):
        raise BadArgument("to_sparse: sparse_dim goes with no other setting", fix="x.to_sparse(layout=...)")
    if layout in (None, sparse_coo):
        return _to_coo(self, sparse_dim, dense_dim)
    if layout is strided or not isinstance(layout, Layout):
        raise BadValue(f"to_sparse: {layout} is no sparse layout", fix="layout=mutagrad.sparse_csr")
    return _to_compressed(self, layout, blocksize, dense_dim)


def _to_coo(x: Tensor, sparse_dim: int | None, dense_dim: int | None = None) -> Any:
    if dense_dim is not None:
        sparse_dim = x.dim() - dense_dim
    if isinstance(x, SparseTensor):
        if sparse_dim is not None and sparse_dim != coordinates(x).sparse_dim():
            raise ShapeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument != "
                             "self.sparse_dim() is not supported", fix="x.to_dense().to_sparse(sparse_dim)")
        return coordinates(x)
    dims = x.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= x.ndim or not dims and x.ndim:
        raise BadValue(f"to_sparse: sparse_dim={dims} is not among the {x.ndim} dimensions", fix="x.to_sparse()")
    array = x._array
    there = array if dims == x.ndim else (array != 0).any(tuple(range(dims, x.ndim)))
    places = np.array(np.nonzero(there), np.int64).reshape(dims, -1) if dims else np.zeros((0, int(bool(array))))
    return _read(x, places)


def _read(x: Tensor, places: Any) -> Coordinates:
    """Return the elements of a dense tensor at these places, which are in order."""
    values = x[tuple(index_of(row) for row in places)] if len(places) else x.reshape(1)[:places.shape[1]]
    return Coordinates.of(index_of(places), values, tuple(x.shape), True)


def _to_compressed(x: Tensor, layout: Layout, blocksize: Blocks, dense_dim: int | None) -> Any:
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    if isinstance(x, Compressed):
        same = x.layout is layout and (layout not in IN_BLOCKS or tuple(blocksize or ()) in ((), x.blocksize()))
        if same:
            return x
        blocksize = (x.blocksize() if layout in IN_BLOCKS and blocksize is None and x.layout in IN_BLOCKS
                     else blocksize)
        return compress(coordinates(x), layout, blocksize)
    if isinstance(x, SparseTensor):
        return compress(coordinates(x), layout, blocksize)
    dense = dense_dim or 0
    if x.ndim - dense < 2:
        raise ShapeError(f"to_sparse: {layout} needs two dimensions beside the dense ones, not {x.ndim - dense}")
    if layout in IN_BLOCKS and blocksize is not None:
        return compress(_whole_blocks(x, dense, blocksize), layout, blocksize)
    return compress(_to_coo(x, x.ndim - dense), layout, blocksize)


def _whole_blocks(x: Tensor, dense: int, blocksize: Sequence[int]) -> Coordinates:
    """Return all elements of the blocks that are not zero: of zeros among them, the gradient is wanted, too."""
    first = x.ndim - dense - 2
    rows, columns = blocksize
    if min(rows, columns) < 1 or x.shape[first] % rows or x.shape[first + 1] % columns:
        return _to_coo(x, first + 2)  # type: ignore[no-any-return]  # which compress refuses
    there = (x._array != 0).any(tuple(range(first + 2, x.ndim))) if dense else x._array != 0
    shape = there.shape
    blocks = there.reshape(*shape[:first], shape[first] // rows, rows, shape[first + 1] // columns, columns)
    whole = np.broadcast_to(blocks.any((-3, -1), keepdims=True), blocks.shape).reshape(shape)
    return _read(x, np.array(np.nonzero(whole), np.int64).reshape(len(shape), -1))


def to_sparse_coo(self: Tensor) -> Any:
    """Return the tensor in coordinates.

    >>> import mutagrad as mg
    >>> mg.tensor([[0., 3.], [4., 0.]]).to_sparse_coo().indices()
    tensor([[0, 1],
            [1, 0]])
    """
    return _to_coo(tensor_argument(self, "to_sparse_coo"), None)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """Return the tensor with its rows compressed.

    >>> import mutagrad as mg
    >>> mg.tensor([[0., 3.], [4., 0.]]).to_sparse_csr().values()
    tensor([3., 4.])
    """
    return _to_compressed(tensor_argument(self, "to_sparse_csr"), sparse_csr, None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Any:
    """Return the tensor with its columns compressed.

    >>> import mutagrad as mg
    >>> mg.tensor([[0., 3.], [4., 0.]]).to_sparse_csc().values()
    tensor([4., 3.])
    """
    return _to_compressed(tensor_argument(self, "to_sparse_csc"), sparse_csc, None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Sequence[int] | int, dense_dim: int | None = None) -> Any:
    """Return the tensor as blocks, with their rows compressed.

    >>> import mutagrad as mg
    >>> mg.eye(4).to_sparse_bsr((2, 2)).values().shape
    mutagrad.Size([2, 2, 2])
    """
    return _to_compressed(tensor_argument(self, "to_sparse_bsr"), sparse_bsr, blocksize, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Sequence[int] | int, dense_dim: int | None = None) -> Any:
    """Return the tensor as blocks, with their columns compressed.

    >>> import mutagrad as mg
    >>> mg.eye(4).to_sparse_bsc((2, 2)).values().shape
    mutagrad.Size([2, 2, 2])
    """
    return _to_compressed(tensor_argument(self, "to_sparse_bsc"), sparse_bsc, blocksize, dense_dim)


def in_layout_of(made: Coordinates, like: SparseTensor) -> Any:
    """Return a tensor in coordinates in the layout of another one."""
    if isinstance(like, Compressed):
        return compress(made, like.layout, like.blocksize() if like.layout in IN_BLOCKS else None)
    return made


@answers("as_tensor", "asarray")
def _as_tensor(data: Any, dtype: Any = None, device: Any = None, **settings: Any) -> Any:
    if not isinstance(data, SparseTensor):
        raise refused("as_tensor", "a list of sparse tensors is no data", "mutagrad.stack(xs)")
    return data.to(dtype=dtype, device=device)


@answers("tensor", "new_tensor")
def _copied(data: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
            **settings: Any) -> Any:
    if not isinstance(data, SparseTensor):
        raise refused("tensor", "a list of sparse tensors is no data", "mutagrad.stack(xs)")
    return data.detach().to(dtype=dtype, device=device, copy=True).requires_grad_(requires_grad)


def transposed_layout(x: Compressed) -> Layout:
    return TRANSPOSED[x.layout]
