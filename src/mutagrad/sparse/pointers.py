"""Row indices, and where each row begins: one made of the other."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.errors import BadArgument
from ..core.factory import make
from ..core.out_arg import write_out
from ..tensors.tensor import Tensor

FUNCTIONS = "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo"


def _whole(index: Tensor, name: str) -> Any:
    if not isinstance(index, Tensor) or index._array.dtype.kind not in "iu":
        raise BadArgument(f"{name}: expects a tensor of integers", fix="index.long()")
    return index._array


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False,
                                     out: Tensor | None = None) -> Any:
    """Return where each of `size` rows begins, of row indices in order.

    >>> import mutagrad as mg
    >>> mg._convert_indices_from_coo_to_csr(mg.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    rows = _whole(input, "_convert_indices_from_coo_to_csr")
    starts = np.searchsorted(rows, np.arange(size + 1))
    kind = np.int32 if out_int32 else np.int64
    return write_out("_convert_indices_from_coo_to_csr", make(starts.astype(kind)), out)


def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False,
                                     transpose: bool = False, out: Tensor | None = None) -> Any:
    """Return the row indices above the column indices, or below them, of where each row begins."""
    starts, columns = (_whole(x, "_convert_indices_from_csr_to_coo") for x in (crow_indices, col_indices))
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    both = np.stack([columns, rows] if transpose else [rows, columns])
    kind = np.int32 if out_int32 else np.int64
    return write_out("_convert_indices_from_csr_to_coo", make(both.astype(kind)), out)
