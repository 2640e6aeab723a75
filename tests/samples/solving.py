"""Samples of inverses, solutions, determinants and powers of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import Array, Draw, R, U, elsewhere, op


@dataclass(frozen=True)
class Regular(Draw):
    """Matrices far from singular, with different eigenvalues."""

    def values(self, rng: np.random.Generator) -> Array:
        steps = np.zeros(self.shape)
        n = min(self.shape[-2:])
        steps[..., range(n), range(n)] = 2 + np.arange(n)
        return super().values(rng) + steps


@dataclass(frozen=True)
class RegularTensor(Draw):
    """Tensors whose halves, as matrices, are far from singular."""

    def values(self, rng: np.random.Generator) -> Array:
        return super().values(rng) + np.diag(np.arange(2.0, 8.0)).reshape(self.shape)


def A(*shape: int) -> Draw:
    return Regular(shape, -0.7, 0.7)


def mH(x: Array) -> Array:
    return x.conj().swapaxes(-2, -1)


def triangle(x: Array, upper: bool, unit: bool = False) -> Array:
    found = (np.triu if upper else np.tril)(x, int(unit) if upper else -int(unit))
    return found + np.eye(x.shape[-1]) if unit else found


def no_failures(x: Array) -> Array:
    return np.zeros(x.shape[:-2], np.int32)


op("linalg.inv", A(2, 4, 4), ref=np.linalg.inv, ties=True, complex=True)
op("linalg.inv", A(6, 6), ref=np.linalg.inv, ties=True)
op("linalg.inv", A(0, 0), ref=np.linalg.inv)
op("inverse", A(3, 3), ref=np.linalg.inv, ties=True)
op("linalg.inv_ex", A(2, 3, 3), ref=lambda x: (np.linalg.inv(x), no_failures(x)), ties=True)

op("linalg.solve", A(2, 4, 4), R(2, 4, 3), ref=np.linalg.solve, ties=True, complex=True)
op("linalg.solve", A(6, 6), R(6), ref=np.linalg.solve, ties=True)
op("linalg.solve", A(4, 4), R(2, 4, 3), ref=np.linalg.solve, ties=True, note=" of one matrix for two")
op("linalg.solve", A(2, 4, 4), R(2, 4), ref=lambda a, b: np.linalg.solve(a, b[..., None])[..., 0], ties=True)
op("linalg.solve", A(4, 4), R(3, 4), left=False, ref=lambda a, b, left: b @ np.linalg.inv(a), ties=True, complex=True)
op("linalg.solve_ex", A(4, 4), R(4, 3), ref=lambda a, b: (np.linalg.solve(a, b), no_failures(a)), ties=True)

for upper, unit in ((True, False), (False, False), (True, True), (False, True)):
    op("linalg.solve_triangular", A(2, 4, 4), R(4, 3), upper=upper, unitriangular=unit, ties=True, complex=True,
       ref=lambda a, b, upper, unitriangular: np.linalg.solve(triangle(a, upper, unitriangular), np.broadcast_to(b, (2, 4, 3))))
op("linalg.solve_triangular", A(4, 4), R(3, 4), upper=False, left=False, ties=True, ref=lambda a, b, upper, left: b @ np.linalg.inv(np.tril(a)))
op("triangular_solve", R(4, 3), A(4, 4), ties=True, ref=lambda b, a: (np.linalg.solve(np.triu(a), b), a))
op("triangular_solve", R(4, 3), A(4, 4), upper=False, transpose=True, ties=True,
   ref=lambda b, a, upper, transpose: (np.linalg.solve(np.tril(a).T, b), a))
op("linalg.tensorinv", RegularTensor((2, 3, 6), -0.7, 0.7), ref=lambda a: np.linalg.tensorinv(a, 2), ties=True)
op("linalg.tensorsolve", RegularTensor((2, 3, 6), -0.7, 0.7), R(2, 3), ref=np.linalg.tensorsolve, ties=True)


def signed_log(x: Array) -> Any:
    return tuple(np.linalg.slogdet(x))


op("det", A(2, 4, 4), ref=np.linalg.det, ties=True, complex=True)
op("linalg.det", A(6, 6), ref=np.linalg.det, ties=True)
op("linalg.det", R(2, 3, 3), ref=lambda x: np.linalg.det(x), ties=True)
op("slogdet", A(2, 4, 4), ref=signed_log, ties=True, complex=True)
op("linalg.slogdet", A(6, 6), ref=signed_log, ties=True)
op("logdet", A(2, 4, 4), ref=lambda x: np.log(np.linalg.det(x)), ties=True, complex=True)

op("matrix_power", A(2, 3, 3), 3, ref=np.linalg.matrix_power, ties=True, complex=True)
op("linalg.matrix_power", A(6, 6), 1, ref=np.linalg.matrix_power, ties=True)
op("linalg.matrix_power", A(3, 3), -2, ref=np.linalg.matrix_power, ties=True)
op("linalg.matrix_power", A(2, 3, 3), 0, ref=lambda x, n: np.broadcast_to(np.eye(3), x.shape).astype(x.dtype))


def exponential(x: Array) -> Array:
    """The sum of x**k / k!, which is exact for small matrices."""
    term = found = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for k in range(1, 60):
        term = term @ x / x.dtype.type(k)
        found = found + term
    return found


op("matrix_exp", U(2, 3, 3), ref=exponential, complex=True)
op("matrix_exp", R(6, 6), ref=exponential)
# The derivative of `det`, and no function of ours.
elsewhere("cofactors linalg.LinAlgError")
