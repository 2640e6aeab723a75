"""Running products and sums of exponentials, and polynomials by recurrence."""
from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from ...ops.math.special import Family
from .lowering import lowered


@lowered("cumprod_rule")
def cumprod_rule(g: Any, x: Any, out: Any, dim: int) -> Any:
    """The product before i times s[i] = g[i] + x[i + 1] * s[i + 1]: without division, as x may have zeros."""
    if not x.size:
        return NotImplemented
    x, g = jnp.moveaxis(x, dim, 0), jnp.moveaxis(g, dim, 0)
    ones = jnp.ones_like(x[:1])
    before = jnp.cumprod(jnp.concatenate([ones, x[:-1]]), 0)

    def step(s: Any, given: Any) -> Any:
        mine, following = given
        s = mine + following * s
        return s, s

    _, sums = lax.scan(step, jnp.zeros_like(x[0]), (g, jnp.concatenate([x[1:], ones])), reverse=True)
    return jnp.moveaxis(before * sums, 0, dim)


@lowered("logcumsumexp")
def logcumsumexp(a: Any, dim: int) -> Any:
    if a.dtype.kind == "f" or not a.size:
        return NotImplemented

    def add(x: Any, y: Any) -> Any:
        swap = y.real > x.real
        high, low = jnp.where(swap, y, x), jnp.where(swap, x, y)
        return high + jnp.log1p(jnp.exp(low - high))

    return lax.associative_scan(add, a, axis=dim)


@lowered("by_recurrence")
def by_recurrence(family: Family, x: Any, degrees: Any, derivative: int) -> Any:
    """A loop up to the highest degree, whatever that is."""
    ones, zeros = jnp.ones_like(x), jnp.zeros_like(x)
    before = (ones, *[zeros] * derivative)
    now = (family.slope * x + family.constant, family.slope * ones, *[zeros] * derivative)[:derivative + 1]
    found = jnp.where(degrees == 0, before[derivative], jnp.where(degrees == 1, now[derivative], zeros))
    most = degrees.max(initial=0)

    def step(state: Any) -> Any:
        k, before, now, found = state
        a, b, c = (jnp.asarray(v, x.dtype) for v in family.recurrence(k))
        after = [(a * x + b) * q - c * p for q, p in zip(now, before)]
        for m in range(1, derivative + 1):
            after[m] = after[m] + m * a * now[m - 1]
        return k + 1, now, tuple(after), jnp.where(degrees == k + 1, after[derivative], found)

    return lax.while_loop(lambda state: state[0] < most, step, (numpy.int64(1), before, now, found))[3]
