"""Losses of class indices, and the connectionist loss as scans over its steps."""
from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from ...arrays.xla.memory import XArray, unwrap, wrap
from ...arrays.xla.rules import place_among
from ...core.op import kernel
from .lowering import lowered


@lowered("subtract")
def subtract(whole: Any, index: Any, values: Any) -> Any:
    """Values taken off at one class of each position: chosen elementwise, which fuses where a scatter would not."""
    if numpy.shape(index[1]) != whole.shape[:1] + whole.shape[2:]:
        return NotImplemented
    target = jnp.asarray(index[1])[:, None]
    here = lax.broadcasted_iota(target.dtype, whole.shape, 1) == target
    values = jnp.asarray(values)
    values = values[:, None] if values.ndim else values
    return jnp.where(here, whole - values.astype(whole.dtype), whole)


# ------------------------------------------------------------------------------------------------------------------ ctc

def _moved(row: Any, never: Any, by: int) -> Any:
    """A row of states moved to the right (to the left, if negative), with what cannot be in the gap."""
    count = row.shape[1]
    gap = never[:, :min(abs(by), count)]
    parts = [gap, row[:, :max(count - by, 0)]] if by > 0 else [row[:, min(-by, count):], gap]
    return jnp.concatenate(parts, 1)


@kernel("ways_here", XArray)
def ways_here(e: Any, plan: Any) -> Any:
    place = place_among((e,))
    e, start, skip, never = (jnp.asarray(unwrap(v), e.dtype) for v in (e, plan.start, plan.skip, plan.never))
    first = e[0] + start

    def step(row: Any, now: Any) -> Any:
        stay_or_next = jnp.logaddexp(row, _moved(row, never, 1))
        row = now + jnp.logaddexp(stay_or_next, _moved(row, never, 2) + skip)
        return row, row

    _, rest = lax.scan(step, first, e[1:])
    return wrap(jnp.concatenate([first[None], rest]), place)


@kernel("ways_on", XArray)
def ways_on(e: Any, plan: Any) -> Any:
    place = place_among((e,))
    e, end, skip, never = (jnp.asarray(unwrap(v), e.dtype) for v in (e, plan.end, plan.skip, plan.never))
    last = jnp.asarray(unwrap(plan.last))
    final = len(e) - 1
    beginning = jnp.where((last == final)[:, None], end, never)

    def step(row: Any, given: Any) -> Any:
        after, t = given
        row = row + after
        stay_or_next = jnp.logaddexp(row, _moved(row, never, -1))
        row = jnp.logaddexp(stay_or_next, _moved(row + skip, never, -2))
        row = jnp.where((last == t)[:, None], end, row)
        return row, row

    _, rest = lax.scan(step, beginning, (e[1:], numpy.arange(final)), reverse=True)
    return wrap(jnp.concatenate([rest, beginning[None]]), place)
