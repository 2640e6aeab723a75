"""Samples of factorizations.

LAPACK reads one triangle of a symmetric matrix and chooses the signs of vectors, so that most factorizations have no finite
differences of their own: the samples are functions of them that do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import SAMPLES, Array, R, Sample, elsewhere, op
from .solving import A, mH, triangle


@dataclass(frozen=True, eq=False)
class Through(Sample):
    """A call of a function of the operation; its name says which."""

    function: Callable[..., Any] = lambda library, *arguments: None

    def forms(self, library: Any) -> dict[str, Callable[..., Any]]:
        return {"function": lambda *arguments: self.function(library, *arguments)}


def through(name: str, *arguments: Any, call: Callable[..., Any], ref: Callable[..., Any], complex: bool = True) -> None:
    elsewhere(name)
    number = sum(isinstance(s, Through) for s in SAMPLES)
    SAMPLES.append(Through(f"a function of {name}", arguments, {}, ref, ties=True, complex=complex, function=call, note=f" #{number}"))


def positive(x: Any) -> Any:
    """A positive definite matrix, of arrays and tensors alike."""
    return x @ x.conj().swapaxes(-2, -1)


def hermitian(x: Any) -> Any:
    return x + x.conj().swapaxes(-2, -1)


# -------------------------------------------------------------------------------------------------------------- Cholesky

through("linalg.cholesky", A(2, 4, 4), call=lambda m, x: m.linalg.cholesky(positive(x)), ref=lambda x: np.linalg.cholesky(positive(x)))
through("linalg.cholesky", A(6, 6), call=lambda m, x: m.linalg.cholesky(positive(x), upper=True), ref=lambda x: mH(np.linalg.cholesky(positive(x))))
through("cholesky", A(3, 3), call=lambda m, x: positive(x).cholesky(), ref=lambda x: np.linalg.cholesky(positive(x)))
through("linalg.cholesky_ex", A(3, 3), call=lambda m, x: m.linalg.cholesky_ex(positive(x)).L, ref=lambda x: np.linalg.cholesky(positive(x)))
op("cholesky_solve", R(4, 3), A(2, 4, 4), ref=lambda b, x: np.linalg.solve(positive(np.tril(x)), np.broadcast_to(b, (2, 4, 3))), ties=True, complex=True)
op("cholesky_solve", R(4, 3), A(4, 4), upper=True, ref=lambda b, x, upper: np.linalg.solve(mH(np.triu(x)) @ np.triu(x), b), ties=True)
op("cholesky_inverse", A(2, 4, 4), ref=lambda x: np.linalg.inv(positive(np.tril(x))), ties=True)

# -------------------------------------------------------------------------------------------------------------------- LU


def eliminated(x: Array) -> tuple[Array, Array, Array, Array]:
    """P, L and U, and LAPACK's exchanges, by elimination."""
    *batch, m, n = x.shape
    p, lower, upper, pivots = np.zeros((*batch, m, m)), np.zeros((*batch, m, min(m, n)), x.dtype), x.copy(), np.zeros((*batch, min(m, n)), np.int32)
    for at in np.ndindex(*batch):
        u, order = upper[at], np.arange(m)
        for k in range(min(m, n)):
            best = k + np.argmax(np.abs(u[k:, k].real) + np.abs(u[k:, k].imag))
            pivots[at][k] = best + 1
            u[[k, best]], order[[k, best]], lower[at][[k, best]] = u[[best, k]], order[[best, k]], lower[at][[best, k]]
            lower[at][k, k] = 1
            lower[at][k + 1:, k] = u[k + 1:, k] / u[k, k]
            u[k + 1:] -= np.outer(lower[at][k + 1:, k], u[k])
        p[at][order, np.arange(m)] = 1
    return p.astype(x.dtype), lower, np.triu(upper)[..., :min(m, n), :], pivots


def packed(x: Array) -> tuple[Array, Array]:
    _, lower, upper, pivots = eliminated(x)
    found = np.zeros_like(x)
    found[..., :, :lower.shape[-1]] += np.tril(lower, -1)
    found[..., :upper.shape[-2], :] += upper
    return found, pivots


def exchanged(pivots: Array, rows: int) -> Array:
    found = np.eye(rows)
    for k, chosen in reversed(list(enumerate(pivots - 1))):
        found[[k, chosen]] = found[[chosen, k]]
    return found


for shape in ((2, 4, 4), (6, 3), (3, 5)):
    through("linalg.lu_factor", R(*shape), call=lambda m, x: m.linalg.lu_factor(x).LU, ref=lambda x: packed(x)[0])
op("linalg.lu_factor", R(2, 4, 4), ref=packed, ties=True)
op("linalg.lu_factor_ex", R(3, 3), ref=lambda x: (*packed(x), np.zeros((), np.int32)), ties=True)
op("lu", R(4, 4), ref=packed, ties=True)
through("linalg.lu", R(2, 4, 3), call=lambda m, x: m.linalg.lu(x)[1:], ref=lambda x: eliminated(x)[1:3])
through("lu_unpack", R(4, 3), call=lambda m, x: m.lu_unpack(x, m.tensor([2, 2, 4], dtype=m.int32))[1:],
        ref=lambda x: (np.tril(x, -1) + np.eye(4, 3, dtype=x.dtype), np.triu(x)[:3]))

SWAPS = np.array([3, 2, 4, 4], np.int32)


def product(x: Array, pivots: Array) -> Array:
    return exchanged(pivots, x.shape[-1]) @ triangle(x, False, True) @ np.triu(x)


op("linalg.lu_solve", A(4, 4), SWAPS, R(2, 4, 3), ref=lambda x, p, b: np.linalg.solve(product(x, p), b), ties=True)
op("linalg.lu_solve", A(4, 4), SWAPS, R(4, 3), adjoint=True, ref=lambda x, p, b, adjoint: np.linalg.solve(product(x, p).T, b), ties=True)
op("linalg.lu_solve", A(4, 4), SWAPS, R(3, 4), left=False, ref=lambda x, p, b, left: b @ np.linalg.inv(product(x, p)), ties=True)
op("lu_solve", R(4, 3), A(4, 4), SWAPS, ref=lambda b, x, p: np.linalg.solve(product(x, p), b), ties=True)

# -------------------------------------------------------------------------------------------------------------------- QR


def q_and_r(x: Array, mode: str = "reduced") -> tuple[Array, ...]:
    return tuple(np.linalg.qr(x, mode))


for shape in ((2, 4, 4), (6, 3), (3, 5)):
    op("linalg.qr", A(*shape), ref=q_and_r, ties=True, complex=True)
op("linalg.qr", A(3, 5), "complete", ref=q_and_r, ties=True)
op("qr", A(6, 4), ref=q_and_r, ties=True)


def reflected(x: Array, tau: Array) -> Array:
    m, k = x.shape[-2], tau.shape[-1]
    found = np.eye(m, dtype=x.dtype)
    for i in range(k):
        v = (np.tril(x, -1) + np.eye(*x.shape, dtype=x.dtype))[:, i]
        found = found @ (np.eye(m, dtype=x.dtype) - tau[i] * np.outer(v, v.conj()))
    return found


op("linalg.householder_product", R(5, 3), R(3), ref=lambda x, tau: reflected(x, tau)[:, :3], ties=True, complex=True)
op("orgqr", R(4, 3), R(2), ref=lambda x, tau: reflected(x, tau)[:, :3], ties=True)
op("ormqr", R(4, 3), R(3), R(4, 2), ref=lambda x, tau, y: reflected(x, tau) @ y, ties=True, complex=True)
op("ormqr", R(4, 3), R(3), R(2, 4), left=False, transpose=True, ref=lambda x, tau, y, left, transpose: y @ reflected(x, tau).T, ties=True)

# ----------------------------------------------------------------------------------------------------------- eigenvectors


def size(x: Any) -> Any:
    return (x * x.conj()).real if isinstance(x, np.ndarray) else abs(x) ** 2


def values_and_sizes(found: Any) -> tuple[Any, Any]:
    return found[0], size(found[1])


through("linalg.eigh", A(2, 4, 4), call=lambda m, x: values_and_sizes(m.linalg.eigh(hermitian(x))), ref=lambda x: values_and_sizes(np.linalg.eigh(hermitian(x))))
through("linalg.eigh", A(5, 5), call=lambda m, x: m.linalg.eigh(hermitian(x), "U")[0], ref=lambda x: np.linalg.eigh(hermitian(x), "U")[0])
through("linalg.eigvalsh", A(2, 4, 4), call=lambda m, x: m.linalg.eigvalsh(hermitian(x)), ref=lambda x: np.linalg.eigvalsh(hermitian(x)))


def invariants(values: Any, vectors: Any) -> Any:
    """Real numbers that eigenvalues and vectors determine in any order."""
    return abs(values * values - 1).sum(-1), (abs(vectors[..., :1, :]) ** 2 * abs(values[..., None, :])).sum(-1)


through("linalg.eig", A(2, 4, 4), call=lambda m, x: invariants(*m.linalg.eig(x)), ref=lambda x: invariants(*np.linalg.eig(x)))
through("linalg.eigvals", A(5, 5), call=lambda m, x: abs(m.linalg.eigvals(x)).sum(-1), ref=lambda x: abs(np.linalg.eigvals(x)).sum(-1))

# -------------------------------------------------------------------------------------------------------- singular vectors


def sizes_of_all(found: Any) -> tuple[Any, Any, Any, Any]:
    u, s, vh = found
    k = s.shape[-1]
    return size(u[..., :k]), s, size(vh[..., :k, :]), abs(u[..., :k] @ vh[..., :k, :])


for shape in ((2, 4, 4), (5, 3), (3, 5)):
    through("linalg.svd", A(*shape), call=lambda m, x: sizes_of_all(m.linalg.svd(x, full_matrices=False)), ref=lambda x: sizes_of_all(np.linalg.svd(x, False)))
through("linalg.svd", A(5, 3), call=lambda m, x: sizes_of_all(m.linalg.svd(x)), ref=lambda x: sizes_of_all(np.linalg.svd(x)))
through("svd", A(4, 4), call=lambda m, x: (x.svd().S, size(x.svd().V)), ref=lambda x: (np.linalg.svd(x)[1], size(mH(np.linalg.svd(x)[2]))))
op("linalg.svdvals", A(2, 4, 3), ref=lambda x: np.linalg.svd(x, compute_uv=False), ties=True, complex=True)
op("linalg.svdvals", A(6, 6), ref=lambda x: np.linalg.svd(x, compute_uv=False), ties=True)
through("svd_lowrank", R(6, 2), R(5, 2), call=lambda m, x, y: m.svd_lowrank(x @ y.T, q=2)[1], ref=lambda x, y: np.linalg.svd(x @ y.T)[1][:2], complex=False)
through("pca_lowrank", R(4, 2), R(6, 2), call=lambda m, x, y: m.pca_lowrank(x @ y.T, q=2)[1],
        ref=lambda x, y: np.linalg.svd(x @ y.T - (x @ y.T).mean(0))[1][:2], complex=False)

# Without derivatives; tests/ops/test_decompose.py has them.
elsewhere("geqrf ldl_factor ldl_solve linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve r_of_qr")
