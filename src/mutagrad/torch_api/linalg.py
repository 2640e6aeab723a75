"""Linear algebra, under PyTorch's names."""
from __future__ import annotations

from ..base.errors import LinAlgError
from ..ops.linalg.cholesky import cholesky_ex, linalg_cholesky as cholesky
from ..ops.linalg.lu import (
    ldl_factor,
    ldl_factor_ex,
    ldl_solve,
    linalg_lu as lu,
    linalg_lu_solve as lu_solve,
    lu_factor,
    lu_factor_ex,
)
from ..ops.linalg.matrices import linalg_diagonal as diagonal, linalg_vander as vander
from ..ops.linalg.more_products import linalg_cross as cross, multi_dot, vecdot
from ..ops.linalg.norms import cond, linalg_norm as norm, lstsq, matrix_norm, matrix_rank, pinv, vector_norm
from ..ops.linalg.products import matmul
from ..ops.linalg.qr import householder_product, linalg_qr as qr
from ..ops.linalg.solving import (
    inv,
    inv_ex,
    linalg_det as det,
    linalg_matrix_power as matrix_power,
    linalg_slogdet as slogdet,
    matrix_exp,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from ..ops.linalg.spectral import eig, eigh, eigvals, eigvalsh, linalg_svd as svd, svdvals

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
