"""Samples of norms, conditions, pseudo-inverses and least squares."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .base import Array, R, op
from .solving import A


def vector_norm(x: Array, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Array:
    return np.linalg.vector_norm(x, ord=ord, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim)


def matrix_norm(x: Array, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Array:
    return np.linalg.norm(x, ord, axis=dim, keepdims=keepdim)


for order in (1, 2, 3.5, 0.5, 0, -1, inf, -inf):
    op("linalg.vector_norm", R(5, 7), order, 1, ref=vector_norm, ties=True, complex=order not in (0, -1))
op("linalg.vector_norm", R(2, 3, 6), dim=[0, 2], keepdim=True, ref=vector_norm, ties=True)
for order in ("fro", "nuc", 1, -1, 2, -2, inf, -inf):
    op("linalg.matrix_norm", A(2, 4, 3), order, ref=matrix_norm, ties=True, complex=True)
op("linalg.matrix_norm", A(4, 2, 3), "nuc", dim=(2, 0), keepdim=True, ref=matrix_norm, ties=True)
op("linalg.matrix_norm", A(4, 2, 3), 1, dim=(2, 0), keepdim=True, ref=matrix_norm, ties=True)
op("linalg.norm", R(5, 7), ref=lambda x: np.sqrt((x * x).sum()), ties=True)
op("linalg.norm", R(5, 7), 3, dim=1, ref=lambda x, ord, dim: vector_norm(x, ord, dim), ties=True)
op("linalg.norm", A(4, 4), "nuc", ref=matrix_norm, ties=True)
op("norm", A(5, 7), "nuc", ref=matrix_norm, ties=True, complex=True)
for order in (None, 2, -2, 1, "fro", "nuc"):
    op("linalg.cond", A(2, 4, 4), order, ref=np.linalg.cond, ties=True)
op("linalg.matrix_rank", A(2, 4, 3), ref=np.linalg.matrix_rank, grad=False)

for shape in ((2, 4, 3), (3, 5), (4, 4)):
    op("linalg.pinv", A(*shape), ref=lambda x: np.linalg.pinv(x), ties=True, complex=True)
op("pinverse", A(6, 6), ref=lambda x: np.linalg.pinv(x), ties=True)


def least_squares(a: Array, b: Array) -> Array:
    return np.linalg.pinv(a) @ b


op("linalg.lstsq", A(2, 5, 3), R(2, 5, 2), driver="gels", ties=True, ref=lambda a, b, driver: (
    least_squares(a, b), ((a @ least_squares(a, b) - b) ** 2).sum(-2), np.zeros(0, np.int64), np.zeros(0, a.dtype)))
op("linalg.lstsq", A(3, 5), R(3, 2), ties=True, ref=lambda a, b: (least_squares(a, b), np.zeros(0, a.dtype), np.array(3), np.zeros(0, a.dtype)))
