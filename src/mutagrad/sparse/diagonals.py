"""Sparse matrices with given diagonals."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import np
from ..base.errors import BadValue, ShapeError
from ..base.layout import layout as Layout
from ..tensors.tensor import Tensor
from .convert import to_sparse
from .coordinates import Coordinates
from .tensor import index_of


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Layout | None = None) -> Any:
    """Return a matrix that has the rows of `diagonals` as its diagonals, column by column.

    >>> import mutagrad as mg
    >>> mg.sparse.spdiags(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([0, -1]), (2, 2)).to_dense()
    tensor([[1., 0.],
            [3., 2.]])
    """
    rows = diagonals if diagonals.dim() == 2 else diagonals.reshape(1, -1)
    steps = offsets._array.reshape(-1)
    if len(shape) != 2:
        raise ShapeError(f"spdiags: Output shape must be 2d, not {tuple(shape)}")
    if len(steps) != rows.shape[0]:
        raise ShapeError(f"spdiags: Number of diagonals ({rows.shape[0]}) does not match the number of offsets "
                         f"({len(steps)})")
    if len(np.unique(steps)) != len(steps):
        raise BadValue("spdiags: Offset tensor contains duplicate values")
    n, m = shape
    column = np.tile(np.arange(rows.shape[1]), (len(steps), 1))
    row = column - steps[:, None]
    there = (row >= 0) & (row < n) & (column < m)
    values = rows[tuple(map(index_of, np.nonzero(there)))]
    made = Coordinates.of(index_of(np.stack([row[there], column[there]])), values, (n, m))
    return made if layout is None else to_sparse(made, layout=layout)
