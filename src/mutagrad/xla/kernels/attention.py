"""Attention: four products and a softmax, without stripes."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from ...arrays.xla.memory import XArray, unwrap, wrap
from ...arrays.xla.rules import all_short, place_among, precision
from ...core.op import kernel
from ...ops.nn.attention import Plan


def on_gpu(place: Any) -> bool:
    """Whether memory is a GPU's, for which cuDNN has kernels of its own."""
    device = place.device if place.device is not None else jax.devices()[0]
    return getattr(device, "platform", "") in ("gpu", "cuda")


def _product(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=precision())


def _later(shape: tuple[int, ...]) -> Any:
    """Where a key comes after the query."""
    rows, columns = (lax.broadcasted_iota(numpy.int32, shape[-2:], d) for d in (0, 1))
    return columns > rows


def _weights(q: Any, k: Any, bias: Any, plan: Plan) -> Any:
    """Rows in which everything is blocked are zero."""
    scores = _product(q * q.dtype.type(plan.scale), k.swapaxes(-2, -1))
    if bias.ndim:
        scores = scores + bias
    blocked = _later(scores.shape) if plan.causal else unwrap(plan.blocked)
    if blocked is not None:
        scores = jnp.where(blocked, scores.dtype.type(-numpy.inf), scores)
    top = scores.max(-1, keepdims=True, initial=-numpy.inf)
    e = jnp.exp(scores - jnp.where(top == -numpy.inf, scores.dtype.type(0), top))
    total = e.sum(-1, keepdims=True)
    return e / jnp.where(total == 0, e.dtype.type(1), total)


def _fused(q: Any, k: Any, v: Any, bias: Any, plan: Plan) -> Any:
    """Factors of two bytes, in cuDNN's order of dimensions; None where its kernel is not for them."""
    if bias.ndim or plan.kept is not None or plan.blocked is not None or not (2 < q.ndim < 5) or q.ndim != v.ndim:
        return None
    sizes = q.shape[-1], v.shape[-1]
    if not on_gpu(place_among((q, k, v))) or max(sizes) > 128 or any(n % 8 for n in sizes) or not (
            short := all_short(q, k, v)):
        return None
    if q.shape[:-2] != k.shape[:-2] or q.shape[:-2] != v.shape[:-2]:
        return None
    return [a.reshape(-1, *a.shape[-3:]).swapaxes(1, 2) for a in short]


def _flash(q: Any, k: Any, v: Any, plan: Plan) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=plan.causal, scale=plan.scale, implementation="cudnn")


def _in_order(a: Any, shape: tuple[int, ...]) -> Any:
    return a.swapaxes(1, 2).reshape(shape).astype(numpy.float32)


@kernel("scaled_dot_product_attention", XArray)
def attention(q: Any, k: Any, v: Any, bias: Any, plan: Plan, saved: list[Any]) -> Any:
    place = place_among((q, k, v))
    if (factors := _fused(q, k, v, bias, plan)) is not None:
        found, back = jax.vjp(lambda q, k, v: _flash(q, k, v, plan), *factors)
        saved[:] = [back, found.dtype]
        return wrap(_in_order(found, (*q.shape[:-1], v.shape[-1])), place)
    q, k, v, bias = map(unwrap, (q, k, v, bias))
    weights = _weights(q, k, jnp.asarray(bias), plan)
    saved[:] = [wrap(weights, place)]
    return wrap(_product(_thinned(weights, plan), v), place)


def _thinned(weights: Any, plan: Plan) -> Any:
    return weights if plan.kept is None else weights * unwrap(plan.kept)


@kernel("attention_reverse", XArray)
def attention_reverse(g: Any, q: Any, k: Any, v: Any, plan: Plan, saved: list[Any], wanted: Any) -> Any:
    place = place_among((g, q, k, v))
    if type(saved[0]) is not XArray:
        g = unwrap(g)
        g = g.reshape(-1, *g.shape[-3:]).swapaxes(1, 2)
        shapes = q.shape, k.shape, v.shape
        each = saved[0](g.astype(saved[1]))
        return [*(wrap(_in_order(f, shape), place) for f, shape in zip(each, shapes)), None]
    weights = saved[0].values()
    g, q, k, v = (jnp.asarray(unwrap(a)).astype(weights.dtype) for a in (g, q, k, v))
    found: list[Any] = [None] * 4
    if wanted[2]:
        found[2] = _product(_thinned(weights, plan).swapaxes(-2, -1), g)
    if wanted[0] or wanted[1] or wanted[3]:
        slope = _thinned(_product(g, v.swapaxes(-2, -1)), plan)
        slope = weights * (slope - (slope * weights).sum(-1, keepdims=True))
        scale = weights.dtype.type(plan.scale)
        found[0] = _product(slope, k * scale) if wanted[0] else None
        found[1] = _product(slope.swapaxes(-2, -1), q * scale) if wanted[1] else None
        found[3] = slope if wanted[3] else None
    return [wrap(f, place) for f in found]
