"""Normalisation over batches, layers, groups and instances: in whole arrays, with the moments saved."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from ...arrays.xla.memory import XArray, unwrap, wrap
from ...arrays.xla.rules import place_among
from ...core.op import kernel
from ...ops.nn.normal_passes import Plan

NAMES = ("layer_norm", "rms_norm", "group_norm", "batch_norm")


def _mean(a: Any, plan: Plan) -> Any:
    return a.mean(plan.over, keepdims=True)


def normalise(x: Any, weight: Any, bias: Any, plan: Plan, moments: Any) -> Any:
    """`moments`, the mean and the reciprocal deviation, are written unless they are given."""
    if not x.size:
        return NotImplemented
    place = place_among((x, weight, bias))
    a, w, b = (jnp.asarray(unwrap(v)) for v in (x, weight, bias))
    a = a.reshape(plan.shape)
    if plan.given:
        mean, scale = (unwrap(m) for m in moments)
        a = a - mean
    else:
        mean = _mean(a, plan) if plan.centred else jnp.zeros(moments.shape[1:], moments.dtype)
        a = a - mean if plan.centred else a
        scale = lax.rsqrt(_mean(a * a, plan) + a.dtype.type(plan.eps))
        moments[...] = wrap(jnp.stack([mean, scale]), place)
    a = a * scale
    a = a * w.reshape(plan.affine) if w.ndim else a
    a = a + b.reshape(plan.affine) if b.ndim else a
    return wrap(a.reshape(x.shape), place)


def reverse(g: Any, x: Any, weight: Any, plan: Plan, moments: Any, wanted: Sequence[bool]) -> Any:
    """The adjoints of input, weight and bias, those that are wanted."""
    if not x.size:
        return NotImplemented
    place = place_among((g, x))
    mean, scale = (unwrap(moments[k]) for k in (0, 1))
    g, x = (unwrap(v).reshape(plan.shape) for v in (g, x))
    normal = (x - mean) * scale if plan.centred else x * scale
    found: list[Any] = [None, None, None]
    if wanted[1]:
        found[1] = (g * normal).sum(plan.repeated)
    if wanted[2]:
        found[2] = g.sum(plan.repeated)
    if wanted[0]:
        if weight is not None and weight.ndim:
            g = g * unwrap(weight).reshape(plan.affine)
        if not plan.given:
            g = g - normal * _mean(g * normal, plan) - (_mean(g, plan) if plan.centred else 0)
        found[0] = g * scale
    return [wrap(f, place) for f in found]


for _name in NAMES:
    kernel(_name, XArray)(normalise)
    kernel(f"{_name}_reverse", XArray)(reverse)
