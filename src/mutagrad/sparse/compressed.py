"""Sparse matrices of which one index is compressed to where rows or columns begin: CSR, CSC, and BSR, BSC of blocks.

Batches of matrices have dimensions before these two, values with dimensions of their own behind them.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..arrays import np
from ..base.errors import NotSupported, ShapeError
from ..base.layout import layout as Layout, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..base.operands import Array
from ..ops.create.create import zeros
from ..tensors.tensor import Tensor
from .coordinates import Coordinates
from .tensor import SparseTensor, bare, index_of

BY_ROWS, IN_BLOCKS = (sparse_csr, sparse_bsr), (sparse_bsr, sparse_bsc)
TRANSPOSED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


class Compressed(SparseTensor):
    """`_starts` says where each row (or column) begins in `_others`, which has the other index of each value."""

    __slots__ = ()
    is_sparse = False
    _starts: Tensor
    _others: Tensor
    _kind: Layout

    @classmethod
    def of(cls, starts: Tensor, others: Tensor, numbers: Tensor, size: Sequence[int], layout: Layout) -> Compressed:
        made = cls._made(bare(numbers), size)
        made._starts, made._others, made._kind = starts, others, layout
        return made

    @property  # type: ignore[override,unused-ignore]
    def layout(self) -> Layout:
        return self._kind

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self.layout is sparse_csr

    def _with(self, numbers: Tensor) -> Compressed:
        made = type(self)._made(numbers, self._size)
        made._starts, made._others, made._kind = self._starts, self._others, self.layout
        return made

    def _become(self, other: Any) -> None:
        self._keep_leaf()
        self._starts, self._others, self._numbers = other._starts, other._others, other._numbers
        self._size, self._kind = other._size, other.layout

    def batch_dim(self) -> int:
        return self._starts.ndim - 1

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self.ndim - 2 - self.batch_dim()

    def _nnz(self) -> int:
        return int(self._others.shape[-1])

    def blocksize(self) -> tuple[int, int]:
        if self.layout not in IN_BLOCKS:
            return 1, 1
        first = self.batch_dim() + 1
        return self._numbers.shape[first], self._numbers.shape[first + 1]

    def values(self) -> Tensor:
        """Return the values: what is written to them is written to the sparse tensor."""
        return bare(self._numbers)

    _values = values

    def crow_indices(self) -> Tensor:
        return self._only(BY_ROWS, "crow_indices", "row compressed")._starts.detach()

    def col_indices(self) -> Tensor:
        return self._only(BY_ROWS, "col_indices", "row compressed")._others.detach()

    def ccol_indices(self) -> Tensor:
        return self._only((sparse_csc, sparse_bsc), "ccol_indices", "column compressed")._starts.detach()

    def row_indices(self) -> Tensor:
        return self._only((sparse_csc, sparse_bsc), "row_indices", "column compressed")._others.detach()

    def _only(self, layouts: tuple[Layout, ...], name: str, kind: str) -> Compressed:
        if self.layout not in layouts:
            raise NotSupported(f"{name} expected sparse {kind} tensor layout but got {self.layout}",
                               fix="x.crow_indices() and x.col_indices() of rows, "
                                   "x.ccol_indices() and x.row_indices() of columns")
        return self

    def _blocks(self) -> Array:
        """Return batch dimensions, row and column of each block (of one element, where there are no blocks)."""
        starts, others = self._starts._array, self._others._array
        count, lines = others.shape[-1], starts.shape[-1] - 1
        flat_starts, flat_others = starts.reshape(-1, lines + 1), others.reshape(prod(others.shape[:-1]), count)
        long = [np.repeat(np.arange(lines), np.diff(row)) for row in np.asarray(flat_starts)]
        line = np.concatenate(long) if long else np.zeros(0, np.int64)
        batch = np.unravel_index(np.repeat(np.arange(len(flat_starts)), count), self.shape[:self.batch_dim()]) \
            if self.batch_dim() else ()
        other = flat_others.reshape(-1)
        rows = (line, other) if self.layout in BY_ROWS else (other, line)
        return np.array([*batch, *rows], np.int64).reshape(self.batch_dim() + 2, len(line))

    def _places_of_values(self) -> tuple[Array, Tensor]:
        first = self.batch_dim() + 1
        places, numbers = self._blocks(), self._numbers
        dense = numbers.shape[first + 2 * (self.layout in IN_BLOCKS):]
        if self.layout in IN_BLOCKS:
            rows, columns = self.blocksize()
            down, across = np.divmod(np.arange(rows * columns), columns)
            within = np.zeros((len(places), 1, rows * columns), np.int64)
            within[-2, 0], within[-1, 0] = down, across
            scale = np.ones((len(places), 1, 1), np.int64)
            scale[-2], scale[-1] = rows, columns
            places = (places[:, :, None] * scale + within).reshape(len(places), places.shape[1] * rows * columns)
        return places, numbers.reshape(places.shape[1], *dense)

    def clone(self, *, memory_format: Any = None) -> Compressed:
        made = self._with(self._numbers.clone())
        made._starts, made._others = self._starts.clone(), self._others.clone()
        return made

    def _shown(self) -> list[tuple[str, Tensor]]:
        names = ("crow_indices", "col_indices") if self.layout in BY_ROWS else ("ccol_indices", "row_indices")
        return [(names[0], self._starts), (names[1], self._others), ("values", self._numbers.detach())]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (self._starts, self._others, self._numbers.detach(), tuple(self._size), self.layout,
                         self.requires_grad)


def rebuilt(starts: Tensor, others: Tensor, numbers: Tensor, size: Sequence[int], layout: Layout,
            requires_grad: bool) -> Compressed:
    """Return what a pickle holds."""
    return Compressed.of(starts, others, numbers, size, layout).requires_grad_(requires_grad)


def compress(x: Coordinates, wanted: Layout, blocksize: Sequence[int] | None = None) -> Compressed:
    """Return a tensor in coordinates, whose last two sparse dimensions are those of matrices, as a compressed one."""
    x = x.coalesce()
    batch, dims = x.sparse_dim() - 2, tuple(x.shape)
    if batch < 0:
        raise ShapeError(f"to_sparse: a matrix has two sparse dimensions, not {x.sparse_dim()}")
    rows, columns = _checked_blocks(wanted, blocksize, dims[batch:batch + 2])
    places = x._places._array
    block = places.copy()
    block[-2] //= rows
    block[-1] //= columns
    lines, across = (dims[batch] // rows, dims[batch + 1] // columns)
    keys = [*block[:batch], *(block[-2:] if wanted in BY_ROWS else block[:-3:-1])]
    sizes = [*dims[:batch], *((lines, across) if wanted in BY_ROWS else (across, lines))]
    flat = np.zeros(places.shape[1], np.int64)
    for key, n in zip(keys, sizes):
        flat = flat * n + key
    order, which = np.unique(flat, return_inverse=True)
    starts, others = _starts(order, dims[:batch], sizes[-2], sizes[-1])
    dense = tuple(x._numbers.shape[1:])
    inner = (rows, columns) if wanted in IN_BLOCKS else ()
    values = zeros((len(order), rows, columns, *dense), dtype=x.dtype)
    at = tuple(map(index_of, (which.reshape(-1), places[-2] % rows, places[-1] % columns)))
    values = values.index_put(at, x._numbers)
    return Compressed.of(index_of(starts), index_of(others),
                         values.reshape(*dims[:batch], others.shape[-1], *inner, *dense), dims, wanted)


def _checked_blocks(wanted: Layout, blocksize: Sequence[int] | None, matrix: tuple[int, ...]) -> tuple[int, int]:
    if wanted not in IN_BLOCKS:
        if blocksize is not None:
            raise NotSupported(f"to_sparse: {wanted} has no blocks", fix="leave blocksize out")
        return 1, 1
    if blocksize is None or len(blocksize) != 2 or min(blocksize) < 1:
        raise ShapeError(f"to_sparse: {wanted} needs a blocksize of two positive numbers, not {blocksize}",
                         fix="x.to_sparse_bsr((2, 2))")
    if any(n % b for n, b in zip(matrix, blocksize)):
        raise ShapeError(f"to_sparse: a matrix of {matrix[0]} by {matrix[1]} is not made of blocks of "
                         f"{blocksize[0]} by {blocksize[1]}", why="tensor sparse size must be divisible by blocksize")
    return blocksize[0], blocksize[1]


def _starts(order: Array, batches: tuple[int, ...], lines: int, across: int) -> tuple[Array, Array]:
    """Return where each line begins, and the other index of each block, for each batch."""
    line, other = np.divmod(order, max(across, 1))
    counts = np.bincount(line, minlength=prod(batches) * lines).reshape(*batches, lines)
    each = counts.sum(-1).reshape(-1)
    if each.size and (each != each[0]).any():
        raise ShapeError("to_sparse: Expect the same number of specified elements per batch.",
                         why=f"they have {each.tolist()}")
    starts = np.concatenate([np.zeros((*batches, 1), np.int64), counts.cumsum(-1)], -1)
    return starts, other.reshape(*batches, int(each[0]) if each.size else 0)
