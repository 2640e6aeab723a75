"""Samples of triangles, diagonals and other parts of matrices."""

from __future__ import annotations

import numpy as np

from .base import Array, R, Z, op
from .core import diag

for name, ref in (("tril", np.tril), ("triu", np.triu)):
    op(name, R(5, 7), ref=ref, complex=True)
    op(name, R(2, 3, 3), diagonal=1, ref=lambda x, diagonal, ref=ref: ref(x, diagonal))
    op(name, R(5, 7), -2, ref=ref)
op("tril_indices", 4, 3, -1, ref=lambda row, col, offset: np.stack(np.tril_indices(row, offset, col)), grad=False)
op("triu_indices", 4, 3, ref=lambda row, col: np.stack(np.triu_indices(row, 0, col)), grad=False)


def embedded(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    found = np.zeros((*x.shape[:-1], x.shape[-1] + abs(offset), x.shape[-1] + abs(offset)), x.dtype)
    for i in range(x.shape[-1]):
        found[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(found, (-2, -1), (dim1, dim2))


op("diag_embed", R(5, 7), ref=embedded, complex=True)
op("diag_embed", R(2, 3), offset=-1, dim1=0, dim2=2, ref=embedded)
op("diag_embed", R(2, 3), 2, 1, 0, ref=embedded)
op("diag", R(35), ref=np.diag)
op("diag", R(5, 7), -1, ref=np.diag)
op("diag", R(5, 7), diagonal=9, ref=lambda x, diagonal: x[:0, 0])
op("diagflat", R(2, 3), 1, ref=np.diagflat)
op("linalg.diagonal", R(2, 5, 7), view=True, ref=lambda x: diag(x, 0, -2, -1))
op("trace", R(5, 7), ref=np.trace, complex=True)


def filled(x: Array, value: float, wrap: bool = False) -> Array:
    found = x.copy()
    np.fill_diagonal(found, value, wrap)
    return found


op("fill_diagonal_", R(5, 7), 0.5, ref=filled)
op("fill_diagonal_", R(7, 3), 0.5, wrap=True, ref=filled)
op("fill_diagonal_", R(3, 3, 3), 0.5, ref=filled)

op("adjoint", R(2, 5, 7), view=True, ref=lambda x: x.swapaxes(-2, -1).conj() if x.dtype.kind == "c" else x.swapaxes(-2, -1), complex=True)
op("mH", R(2, 5, 7), view=True, ref=lambda x: x.swapaxes(-2, -1))
op("H", R(5, 7), view=True, ref=lambda x: x.T)

op("vander", R(6), ref=np.vander)
op("vander", R(6), 3, increasing=True, ref=lambda x, n, increasing: np.vander(x, n, increasing))
op("linalg.vander", R(2, 5), N=4, ref=lambda x, N: x[..., None] ** np.arange(N))
op("linalg.vander", Z(5), ref=lambda x: np.vander(x, increasing=True), note=" with zeros")
