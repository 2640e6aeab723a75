"""Linear algebra, under PyTorch's names."""
from __future__ import annotations

from .errors import LinAlgError
from .ops.cholesky import cholesky_ex
from .ops.cholesky import linalg_cholesky as cholesky
from .ops.linalg import matmul
from .ops.lu import ldl_factor, ldl_factor_ex, ldl_solve, lu_factor, lu_factor_ex
from .ops.lu import linalg_lu as lu
from .ops.lu import linalg_lu_solve as lu_solve
from .ops.matrices import linalg_diagonal as diagonal
from .ops.matrices import linalg_vander as vander
from .ops.norms import cond, lstsq, matrix_norm, matrix_rank, pinv, vector_norm
from .ops.norms import linalg_norm as norm
from .ops.products import linalg_cross as cross
from .ops.products import multi_dot, vecdot
from .ops.qr import householder_product
from .ops.qr import linalg_qr as qr
from .ops.solving import inv, inv_ex, matrix_exp, solve, solve_ex, solve_triangular, tensorinv, tensorsolve
from .ops.solving import linalg_det as det
from .ops.solving import linalg_matrix_power as matrix_power
from .ops.solving import linalg_slogdet as slogdet
from .ops.spectral import eig, eigh, eigvals, eigvalsh, svdvals
from .ops.spectral import linalg_svd as svd

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
