"""Samples of products beyond `@`."""

from __future__ import annotations

from functools import reduce

import numpy as np

from .base import R, op

SCALED = {"beta": 0.5, "alpha": -2}


def plus(x, y, beta, alpha):
    return beta * x + alpha * y


op("addmm", R(5, 3), R(5, 7), R(7, 3), beta=0, ref=lambda x, a, b, beta: a @ b, complex=True)
op("addmv", R(5), R(5, 7), R(7), ref=lambda x, a, b: x + a @ b, complex=True)
op("addmv", R(), R(5, 7), R(7), **SCALED, ref=lambda x, a, b, **s: plus(x, a @ b, **s))
op("addr", R(5, 7), R(5), R(7), ref=lambda x, a, b: x + np.outer(a, b), complex=True)
op("addr", R(7), R(5), R(7), **SCALED, ref=lambda x, a, b, **s: plus(x, np.outer(a, b), **s))
op("baddbmm", R(2, 3, 5), R(2, 3, 4), R(2, 4, 5), ref=lambda x, a, b: x + a @ b, complex=True)
op("baddbmm", R(3, 5), R(2, 3, 4), R(2, 4, 5), **SCALED, ref=lambda x, a, b, **s: plus(x, a @ b, **s))
op("addbmm", R(3, 5), R(2, 3, 4), R(2, 4, 5), ref=lambda x, a, b: x + (a @ b).sum(0), complex=True)
op("addbmm", R(5), R(2, 3, 4), R(2, 4, 5), **SCALED, ref=lambda x, a, b, **s: plus(x, (a @ b).sum(0), **s))

op("inner", R(5, 7), R(3, 7), ref=np.inner)
op("inner", R(7), R(7), ref=np.inner)
op("inner", R(), R(3), ref=np.inner)
op("vdot", R(35), R(35), ref=np.vdot, complex=True)
op("linalg.vecdot", R(5, 7), R(7), ref=lambda x, y: (x.conj() * y).sum(-1), complex=True)
op("linalg.vecdot", R(5, 7), R(5, 7), dim=0, ref=lambda x, y, dim: (x * y).sum(dim))
op("cross", R(5, 3), R(5, 3), ref=np.cross, complex=True)
op("cross", R(3, 5), R(3, 1), dim=0, ref=lambda x, y, dim: np.cross(x, np.broadcast_to(y, x.shape), axis=dim))
op("linalg.cross", R(12, 3), R(1, 3), ref=np.cross)
op("linalg.cross", R(3, 12), R(3, 12), dim=0, ref=lambda x, y, dim: np.cross(x, y, axis=dim))
op("kron", R(2, 3), R(4, 2), ref=np.kron, complex=True)
op("kron", R(3), R(2, 2), ref=np.kron)
op("linalg.multi_dot", [R(3, 5), R(5, 2), R(2, 4)], ref=lambda factors: reduce(np.matmul, factors))
op("linalg.multi_dot", [R(5), R(5, 2), R(2, 4), R(4)], ref=lambda factors: reduce(np.matmul, factors))
op("chain_matmul", R(3, 5), R(5, 2), R(2, 4), ref=lambda *factors: reduce(np.matmul, factors))
op("chain_matmul", R(3, 5), ref=lambda x: x, view=True)
op("tensordot", R(3, 4), R(4, 5), dims=1, ref=lambda x, y, dims: np.tensordot(x, y, dims), note=" again")
