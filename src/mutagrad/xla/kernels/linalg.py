"""Factorizations and triangular systems."""
from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from .lowering import lowered


@lowered("solve_triangular")
def solve_triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    if not a.size or not b.size:
        return NotImplemented
    lead = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(v, lead + v.shape[-2:]) for v in (a, b))
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unit)


@lowered("lu_arrays")
def lu_arrays(a: Any) -> Any:
    if not a.size:
        return NotImplemented
    factors, pivots, _ = lax.linalg.lu(a)
    return factors, pivots + numpy.int32(1), _first_zero(factors)


def _first_zero(factors: Any) -> Any:
    """The number of the first zero on the diagonal, from 1; 0 if there is none."""
    zero = jnp.diagonal(factors, axis1=-2, axis2=-1) == 0
    return jnp.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(numpy.int32)


@lowered("row_order")
def row_order(pivots: Any, rows: int) -> Any:
    if not pivots.size:
        return NotImplemented
    return lax.linalg.lu_pivots_to_permutation(pivots - pivots.dtype.type(1), rows).astype(numpy.int64)


def _regular(a: Any, found: Any) -> Any:
    """Nan for matrices that are singular."""
    good = _first_zero(lax.linalg.lu(a)[0]) == 0
    return jnp.where(good[..., None, None], found, found.dtype.type(numpy.nan))


@lowered("inv")
def inv(a: Any, strict: bool) -> Any:
    return _regular(a, jnp.linalg.inv(a)) if a.size else NotImplemented


@lowered("solve")
def solve(a: Any, b: Any, strict: bool) -> Any:
    if not a.size or not b.size or b.ndim < 2:
        return NotImplemented
    lead = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    b = jnp.broadcast_to(b, lead + b.shape[-2:])
    return _regular(a, jnp.linalg.solve(a, b))


@lowered("cholesky")
def cholesky(a: Any, upper: bool, strict: bool) -> Any:
    """Nan, all of it, where there is no factor: no error can say so while the program runs."""
    if not a.size:
        return NotImplemented
    found = jnp.linalg.cholesky(a.conj().swapaxes(-2, -1) if upper else a, symmetrize_input=False)
    bad = jnp.isnan(found).any((-2, -1), keepdims=True)
    found = jnp.where(bad, found.dtype.type(numpy.nan), found)
    return found.conj().swapaxes(-2, -1) if upper else found


@lowered("squared")
def squared(found: Any, times: Any) -> Any:
    most = times.max(initial=0)

    def step(state: Any) -> Any:
        k, matrices = state
        more = (times > k)[..., None, None]
        return k + 1, jnp.where(more, jnp.matmul(matrices, matrices, precision=lax.Precision.HIGHEST), matrices)

    return lax.while_loop(lambda state: state[0] < most, step, (jnp.zeros((), most.dtype), found))[1]


@lowered("bad_minors")
def bad_minors(a: Any) -> Any:
    """By elimination without exchanges: the first pivot that is not positive."""
    if not a.size:
        return NotImplemented
    n = a.shape[-1]

    def step(k: Any, state: Any) -> Any:
        rest, found = state
        column = lax.dynamic_index_in_dim(rest, k, -1, keepdims=False)
        pivot = lax.dynamic_index_in_dim(column, k, -1, keepdims=False).real
        found = jnp.where((found == 0) & ~(pivot > 0), (k + 1).astype(numpy.int32), found)
        share = column / jnp.where(pivot > 0, pivot, 1)[..., None]
        return rest - share[..., :, None] * column.conj()[..., None, :], found

    lower = jnp.tril(a)
    whole = lower + jnp.tril(a, -1).conj().swapaxes(-2, -1)
    return lax.fori_loop(0, n, step, (whole, jnp.zeros(a.shape[:-2], numpy.int32)))[1]
