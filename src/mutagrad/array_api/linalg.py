"""The standard's linear algebra, the extension `linalg` and what of it is in the main namespace."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ..core.dtypes import dtype
from ..ops.linalg import more_products as products, norms, products as ops, solving, spectral
from ..ops.linalg.cholesky import linalg_cholesky
from ..ops.linalg.qr import linalg_qr
from ..ops.math.elementwise import conj, mul
from ..ops.reduce import reductions as reduce
from ..ops.shape.shape import broadcast_tensors, diagonal as diagonal_view, expand, tensor_argument
from ..tensors.tensor import Tensor
from .kinds import broadcast_shapes, common
from .manipulation import axes_of, matrix_transpose
from .reductions import sum

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


# ------------------------------------------------------------------------------------------------------------- products

def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product.

    >>> import mutagrad as mg
    >>> mg.array_api.matmul(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1., 1.]))
    tensor([3., 7.])
    """
    return ops.matmul(*common("matmul", x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Return the product summed over so many axes, or over pairs of axes.

    >>> import mutagrad as mg
    >>> mg.array_api.tensordot(mg.ones(2, 3), mg.ones(3, 4), axes=1).shape
    mutagrad.Size([2, 4])
    """
    x1, x2 = common("tensordot", x1, x2)
    return ops.tensordot(x1, x2, axes if isinstance(axes, int) else tuple(map(list, axes)))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the products of corresponding elements, the first conjugated, summed along an axis.

    >>> import mutagrad as mg
    >>> mg.array_api.vecdot(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1., 1.]))
    tensor([3., 7.])
    """
    x1, x2 = common("vecdot", x1, x2)
    product = mul(conj(x1), x2)
    return reduce.sum_dims(product, axes_of(axis, len(product.shape), "vecdot"), False)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the products of every element of one vector with every one of another."""
    return ops.outer(*common("outer", x1, x2))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements along an axis."""
    return products.linalg_cross(*broadcast_tensors(*common("cross", x1, x2)), dim=axis)


# ------------------------------------------------------------------------------------------------------ parts and norms

def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices, as a view."""
    return diagonal_view(tensor_argument(x, "diagonal"), offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """Return the sums of the diagonals of matrices."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: float = 2) -> Tensor:
    """Return the norm of the elements along axes, or of all."""
    x = tensor_argument(x, "vector_norm")
    return norms.vector_norm(x, ord, axes_of(axis, len(x.shape), "vector_norm"), keepdims)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """Return the norms of matrices; of matrices without elements they are 0, where PyTorch raises for some."""
    nothing = 0 in tensor_argument(x, "matrix_norm").shape[-2:] and ord in (1, 2, inf)
    return norms.matrix_norm(x, "fro" if ord is None or nothing else ord, (-2, -1), keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """Return how many singular values are larger than rtol times the largest."""
    return norms.matrix_rank(tensor_argument(x, "matrix_rank"), rtol=rtol)


# -------------------------------------------------------------------------------------- solutions, inverses and factors

def det(x: Tensor, /) -> Tensor:
    """Return the determinants of matrices."""
    return solving.linalg_det(tensor_argument(x, "det"))


def slogdet(x: Tensor, /) -> Any:
    """Return the signs of determinants, and the logarithms of their sizes."""
    return solving.linalg_slogdet(tensor_argument(x, "slogdet"))


def inv(x: Tensor, /) -> Tensor:
    """Return the inverses of matrices."""
    return solving.inv(tensor_argument(x, "inv"))


def pinv(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """Return the pseudo-inverses of matrices."""
    return norms.pinv(tensor_argument(x, "pinv"), rtol=rtol)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return the matrix multiplied with itself so many times."""
    return solving.linalg_matrix_power(tensor_argument(x, "matrix_power"), n)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return what x1 must be multiplied with to give x2, which is a vector only if it has one axis.

    PyTorch also takes a batch of vectors, by comparing shapes; with the same batch on both sides it cannot.
    """
    x1, x2 = common("solve", x1, x2)
    if len(x2.shape) > 1:
        batch = broadcast_shapes(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))
        x1, x2 = expand(x1, *batch, *x1.shape[-2:]), expand(x2, *batch, *x2.shape[-2:])
    return solving.solve(x1, x2)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor of a positive definite matrix."""
    return linalg_cholesky(tensor_argument(x, "cholesky"), upper=upper)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """Return an orthogonal and a triangular factor."""
    return linalg_qr(tensor_argument(x, "qr"), mode)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """Return the singular value decomposition."""
    return spectral.linalg_svd(tensor_argument(x, "svd"), full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values."""
    return spectral.svdvals(tensor_argument(x, "svdvals"))


def eigh(x: Tensor, /) -> Any:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix."""
    return spectral.eigh(tensor_argument(x, "eigh"))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of a Hermitian matrix."""
    return spectral.eigvalsh(tensor_argument(x, "eigvalsh"))
