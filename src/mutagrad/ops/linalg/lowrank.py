"""Singular vectors of matrices by random directions: nearly the largest of them, at less cost."""
from __future__ import annotations

from typing import Any

from ...base.errors import BadValue
from ...core.dtypes import of_array
from ...core.op import RECORDED
from ...core.storage import TensorBase as Tensor
from ..random.draws import randn
from .matrices import adjoint
from .products import matmul
from .qr import linalg_qr
from .solving import matrices, with_batch
from .spectral import linalg_svd

FUNCTIONS = "pca_lowrank svd_lowrank"


def _range_basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Any:
    """Orthonormal columns that nearly span the range of A - M: random directions, drawn towards it `niter` times."""
    def apply(x: Tensor) -> Any:
        return matmul(A, x) if M is None else matmul(A, x) - matmul(M, x)

    def apply_back(x: Tensor) -> Any:
        return matmul(adjoint(A), x) if M is None else matmul(adjoint(A), x) - matmul(adjoint(M), x)

    directions = randn(A._array.shape[-1], q, dtype=of_array(A._array.dtype))
    basis = linalg_qr(apply(directions)).Q
    for _ in range(niter):
        basis = linalg_qr(apply(linalg_qr(apply_back(basis)).Q)).Q
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Any, ...]:
    """Return nearly the `q` largest singular values of A - M with their vectors, by random directions.

    >>> import mutagrad as mg
    >>> u, s, v = mg.svd_lowrank(mg.eye(4), q=2)
    >>> u.shape, s.shape, v.shape
    (mutagrad.Size([4, 2]), mutagrad.Size([2]), mutagrad.Size([4, 2]))
    """
    m, n = matrices(A, "svd_lowrank")._array.shape[-2:]
    M = None if M is None else with_batch(M, A._array.shape[:-2])
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if m < n:
        v, s, u = svd_lowrank(adjoint(A), q, niter, None if M is None else adjoint(M))
        return u, s, v
    basis = _range_basis(A, q, niter, M)
    small = matmul(adjoint(basis), A if M is None else A - M)
    u, s, vh = linalg_svd(small, False)
    return matmul(basis, u), s, adjoint(vh)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, ...]:
    """Return nearly the `q` principal components: singular values and vectors of A, its columns centred first.

    >>> import mutagrad as mg
    >>> u, s, v = mg.pca_lowrank(mg.eye(4), q=2)
    >>> u.shape, s.shape, v.shape
    (mutagrad.Size([4, 2]), mutagrad.Size([2]), mutagrad.Size([4, 2]))
    """
    m, n = matrices(A, "pca_lowrank")._array.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise BadValue(f"pca_lowrank: q={q} is more than min{(m, n)}", why="there are no more components",
                       fix=f"q={min(m, n)}")
    if niter < 0:
        raise BadValue(f"pca_lowrank: niter must not be negative, got {niter}", fix="niter=2")
    return svd_lowrank(A - RECORDED.mean(A, (A._array.ndim - 2,), True) if center else A, q, niter)
