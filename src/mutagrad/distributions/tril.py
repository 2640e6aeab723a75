"""Lower triangles of matrices as vectors."""
from __future__ import annotations

from ..tensors.tensor import Tensor

__all__ = ["tril_matrix_to_vec", "vec_to_tril_matrix"]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the matrices whose lower triangles, on and below the diagonal `diag`, the vectors hold row by row."""
    n = int(((1 + 8 * vec.shape[-1]) ** 0.5 - 1) / 2) - diag
    made = vec.new_zeros(*vec.shape[:-1], n, n)
    made[..., vec.new_ones(n, n).tril(diag).bool()] = vec
    return made


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangles of matrices, on and below the diagonal `diag`, row by row."""
    n = mat.shape[-1]
    return mat[..., mat.new_ones(n, n).tril(diag).bool()]
