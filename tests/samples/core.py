"""Samples of what `import mutagrad` loads at once, and what was recorded from PyTorch about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from .base import (
    ABOVE1,
    POLES,
    WITHIN01,
    Array,
    P,
    R,
    U,
    Z,
    along,
    domain,
    each,
    op,
    words,
)

# --------------------------------------------------------------------------------------------------- element by element

erf = np.vectorize(math.erf, otypes=[float])

for name, inputs, ref in (
    ("abs", R, np.abs), ("neg", R, np.negative), ("positive", R, np.positive), ("square", R, np.square),
    ("sign", R, np.sign), ("sgn", R, np.sign), ("reciprocal", P, lambda x: 1 / x),
    ("sqrt", P, np.sqrt), ("rsqrt", P, lambda x: 1 / np.sqrt(x)),
    ("exp", R, np.exp), ("exp2", R, np.exp2), ("expm1", R, np.expm1),
    ("log", P, np.log), ("log2", P, np.log2), ("log10", P, np.log10), ("log1p", P, np.log1p),
    ("sin", R, np.sin), ("cos", R, np.cos), ("tan", POLES, np.tan),
    ("asin", U, np.arcsin), ("acos", U, np.arccos), ("atan", R, np.arctan),
    ("sinh", R, np.sinh), ("cosh", R, np.cosh), ("tanh", R, np.tanh),
    ("asinh", R, np.arcsinh), ("acosh", ABOVE1, np.arccosh), ("atanh", U, np.arctanh),
    ("deg2rad", R, np.deg2rad), ("rad2deg", R, np.rad2deg),
    ("sigmoid", R, lambda x: 1 / (1 + np.exp(-x))), ("relu", R, lambda x: np.maximum(x, 0)), ("erf", R, erf),
    ("logit", WITHIN01, lambda x: np.log(x / (1 - x))),
    ("floor", R, np.floor), ("ceil", R, np.ceil), ("trunc", R, np.trunc), ("round", R, np.round), ("frac", R, lambda x: x - np.trunc(x)),
    ("clone", R, np.copy),
):
    each(name, inputs, ref=ref)

for name, inputs, ref in (
    ("logical_not", Z, np.logical_not), ("isnan", Z, np.isnan), ("isinf", Z, np.isinf), ("isfinite", Z, np.isfinite), ("signbit", R, np.signbit),
):
    each(name, inputs, ref=ref, grad=False)

for name, left, right, ref in (
    ("add", R, R, np.add), ("sub", R, R, np.subtract), ("mul", R, R, np.multiply), ("div", R, P, np.divide), ("rsub", R, R, lambda x, y: y - x),
    ("pow", P, R, np.power), ("remainder", R, P, np.remainder), ("fmod", R, P, np.fmod), ("floor_divide", R, P, np.floor_divide),
    ("hypot", R, R, np.hypot), ("atan2", R, R, np.arctan2), ("logaddexp", R, R, np.logaddexp),
    ("maximum", R, R, np.maximum), ("minimum", R, R, np.minimum), ("fmax", R, R, np.fmax), ("fmin", R, R, np.fmin),
    ("clamp_min", R, R, np.maximum), ("clamp_max", R, R, np.minimum),
):
    each(name, left, right, ref=ref)

for name, ref in (
    ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal),
    ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor), ("isclose", np.isclose),
):
    each(name, Z, Z, ref=ref, grad=False)

each("lerp", R, R, R, ref=lambda x, y, w: x + w * (y - x))
each("addcmul", R, R, R, value=2, ref=lambda x, y, z, value: x + value * y * z)
each("addcdiv", R, R, P, value=0.5, ref=lambda x, y, z, value: x + value * y / z)
each("clamp", R, R, P, ref=lambda x, low, high: np.minimum(np.maximum(x, low), high))
each("clamp", R, min=-0.5, max=0.75, ref=lambda x, min, max: np.clip(x, min, max))

# With PyTorch's settings, and numbers instead of tensors.
op("add", R(5, 7), R(7), alpha=2.5, ref=lambda x, y, alpha: x + alpha * y)
op("sub", R(5, 7), R(5, 7), alpha=-2, ref=lambda x, y, alpha: x - alpha * y)
op("rsub", R(5, 7), R(7), alpha=2.5, ref=lambda x, y, alpha: y - alpha * x)
op("div", R(5, 7), P(7), rounding_mode="floor", ref=lambda x, y, rounding_mode: np.floor(x / y))
op("div", R(5, 7), P(7), rounding_mode="trunc", ref=lambda x, y, rounding_mode: np.trunc(x / y))
op("round", R(5, 7), decimals=1, ref=lambda x, decimals: np.round(x, decimals))
op("logit", domain(0.01, 0.99)(5, 7), 0.2, ref=lambda x, eps: np.log(np.clip(x, eps, 1 - eps) / (1 - np.clip(x, eps, 1 - eps))))
op("clamp", R(5, 7), max=0.5, ref=lambda x, max: np.minimum(x, max))
op("clamp", R(5, 7), -0.5, ref=np.maximum)
op("clamp", R(5, 7), min=R(7), ref=lambda x, min: np.maximum(x, min))
op("clamp", R(5, 7), max=R(5, 1), ref=lambda x, max: np.minimum(x, max))
op("clamp_min", R(5, 7), 0.5, ref=np.maximum)
op("clamp_max", R(5, 7), 0.5, ref=np.minimum)
op("lerp", R(5, 7), R(7), 0.25, ref=lambda x, y, w: x + w * (y - x))
op("addcmul", R(5, 7), R(5, 1), R(7), ref=lambda x, y, z: x + y * z)
op("addcmul", R(5, 7), R(5, 1), R(7), value=-0.5, ref=lambda x, y, z, value: x + value * y * z)
op("addcdiv", R(5, 7), R(5, 1), P(7), ref=lambda x, y, z: x + y / z)
for n in (0, 1, 2, 3, 0.5, -1, -2, 2.5):
    op("pow", P(5, 7), n, ref=np.power)
op("pow", R(5, 7), 2, ref=np.power, note=" of negatives")
op("pow", R(5, 7), 3.0, ref=np.power, note=" of negatives")
for name, ref in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("remainder", np.remainder), ("fmod", np.fmod),
                  ("floor_divide", np.floor_divide)):
    op(name, R(5, 7), 0.75, ref=ref)

SOME, OTHER = np.arange(35).reshape(5, 7) % 3 == 0, np.arange(7) % 2 == 0
op("where", SOME, R(5, 7), R(5, 7), ref=np.where)
op("where", SOME, R(7), R(5, 1), ref=np.where)
op("where", OTHER, R(5, 1), R(), ref=np.where)
op("where", SOME, R(5, 7), 0.5, ref=np.where)
op("where", SOME, -1.0, R(5, 7), ref=np.where)
op("where", np.array(True), R(), R(), ref=np.where)
op("where", np.zeros((0, 3), bool), R(3), R(0, 1), ref=np.where)
op("where", SOME, ref=np.nonzero, grad=False)
op("allclose", R(5, 7), R(5, 7), ref=np.allclose, grad=False)
op("equal", R(5, 7), R(5, 7), ref=np.array_equal, grad=False)
op("isclose", Z(5, 7), Z(5, 7), rtol=0.5, atol=0.5, ref=np.isclose, grad=False)

BITS = np.arange(35).reshape(5, 7) * 5 % 16
for name, ref in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
                  ("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift)):
    op(name, BITS, BITS[0] % 4, ref=ref, grad=False)
    op(name, BITS, 3, ref=ref, grad=False)
    op(name, BITS[:0], BITS[0], ref=ref, grad=False)
op("bitwise_not", BITS, ref=np.invert, grad=False)
op("bitwise_not", SOME, ref=np.invert, grad=False)
for name, ref in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    op(name, SOME, OTHER, ref=ref, grad=False)

# ------------------------------------------------------------------------------------------------------------ reductions


def variance(x: Array, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Array:
    axis = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    return np.var(x, axis=axis, keepdims=keepdim, ddof=int(unbiased) if correction is None else correction)


def deviation(*arguments: Any, **settings: Any) -> Array:
    return np.sqrt(variance(*arguments, **settings))


def log_sum_exp(x: Array, dim: Any, keepdim: bool = False) -> Array:
    return np.log(along(np.sum)(np.exp(x), dim, keepdim))


def p_norm(x: Array, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Array:
    a, total = np.abs(x), along(np.sum)
    if p in (math.inf, -math.inf):
        return along(np.max if p > 0 else np.min)(a, dim, keepdim)
    p = 2 if p == "fro" else p
    return total((a != 0).astype(x.dtype), dim, keepdim) if p == 0 else total(a**p, dim, keepdim) ** (1 / p)


ALONG: list[dict[str, Any]] = [{}, {"dim": 1}, {"dim": -1, "keepdim": True}, {"dim": 0}]
OVER_SEVERAL: list[dict[str, Any]] = [{"dim": (0, 2)}, {"dim": [2, 0], "keepdim": True}, {"dim": (-1,)}]
for name, ref, variants in (
    ("sum", along(np.sum), ALONG + OVER_SEVERAL), ("mean", along(np.mean), ALONG + OVER_SEVERAL), ("prod", along(np.prod), ALONG),
    ("amax", along(np.max), ALONG + OVER_SEVERAL), ("amin", along(np.min), ALONG + OVER_SEVERAL),
    ("var", variance, ALONG + OVER_SEVERAL + [{"correction": 0}, {"dim": 1, "correction": 2}, {"dim": 0, "unbiased": False}]),
    ("std", deviation, ALONG + OVER_SEVERAL + [{"correction": 0}, {"dim": 1, "correction": 2}, {"dim": 0, "unbiased": False}]),
    ("logsumexp", log_sum_exp, ALONG[1:] + OVER_SEVERAL),
    ("norm", p_norm, ALONG + OVER_SEVERAL + [{"p": p, "dim": 1} for p in (1, 2, 3, 0.5, math.inf, -math.inf, 0, "fro")] + [{"p": 3}]),
):
    for variant in variants:
        op(name, R(3, 4, 5), ref=ref, **variant)

op("sum", R(3, 4, 5), 1, True, ref=along(np.sum))
op("sum", R(), ref=along(np.sum))
op("sum", R(), dim=0, ref=lambda x, dim: x)
op("sum", R(0, 3), dim=0, ref=along(np.sum))
op("sum", R(0, 3), dim=1, ref=along(np.sum))
op("mean", R(), ref=along(np.mean))
op("mean", R(0, 3), dim=1, ref=along(np.mean))
op("prod", R(), ref=along(np.prod))
op("prod", R(0, 3), dim=0, ref=along(np.prod))
op("prod", Z(3, 4), dim=1, ref=along(np.prod), note=" with zeros")
op("prod", Z(2, 3), ref=along(np.prod), note=" with zeros")
op("amax", R(), ref=along(np.max))
op("amin", R(0, 3), dim=1, ref=along(np.min))
op("var", R(), correction=0, ref=variance)
op("logsumexp", R(), 0, ref=lambda x, dim: x)
op("logsumexp", R(0, 3), 1, ref=log_sum_exp)
op("norm", R(), ref=lambda x: np.abs(x))
op("norm", R(0, 3), dim=1, ref=p_norm)
op("dist", R(5, 7), R(7), ref=lambda x, y: p_norm(x - y))
op("dist", R(5, 7), R(5, 7), 3, ref=lambda x, y, p: p_norm(x - y, p))
op("var_mean", R(3, 4, 5), dim=1, ref=lambda x, dim: (variance(x, dim), x.mean(dim)))
op("std_mean", R(3, 4, 5), dim=(0, 1), keepdim=True, ref=lambda x, dim, keepdim: (deviation(x, dim, keepdim=True), x.mean(dim, keepdims=True)))
op("aminmax", R(3, 4, 5), ref=lambda x: (x.min(), x.max()))
op("aminmax", R(3, 4, 5), dim=1, keepdim=True, ref=lambda x, dim, keepdim: (x.min(dim, keepdims=True), x.max(dim, keepdims=True)))


def chosen(find: Callable[..., Any]) -> Callable[..., Any]:
    """max and min along a dimension: values and where they are."""

    def reference(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        where = find(x, axis=dim, keepdims=True)
        values = np.take_along_axis(x, where, dim)
        return (values, where) if keepdim else (values.squeeze(dim), where.squeeze(dim))

    return reference


for name, whole, pairwise, find in (("max", np.max, np.maximum, np.argmax), ("min", np.min, np.minimum, np.argmin)):
    op(name, R(3, 4, 5), ref=whole)
    op(name, R(), ref=whole)
    op(name, R(5, 7), R(7), ref=pairwise)
    op(name, R(3, 4, 5), dim=1, ref=chosen(find))
    op(name, R(3, 4, 5), -1, True, ref=chosen(find))
    op(name, R(), 0, ref=lambda x, dim: (x, np.array(0)))
    op("arg" + name, R(3, 4, 5), ref=along(find), grad=False)
    op("arg" + name, R(3, 4, 5), dim=1, keepdim=True, ref=along(find), grad=False)
    op("arg" + name, R(3, 4, 5), -1, ref=along(find), grad=False)
    op("arg" + name, R(), ref=along(find), grad=False)

for name, ref in (("any", along(np.any)), ("all", along(np.all))):
    for variant in ALONG + OVER_SEVERAL[:1]:
        op(name, Z(3, 4, 5), ref=ref, grad=False, **variant)
    op(name, Z(0, 3), ref=ref, grad=False)
    op(name, Z(0, 3), dim=0, ref=ref, grad=False)
op("count_nonzero", Z(3, 4, 5), ref=np.count_nonzero, grad=False)
op("count_nonzero", Z(3, 4, 5), dim=1, ref=lambda x, dim: np.count_nonzero(x, axis=dim), grad=False)
op("count_nonzero", Z(3, 4, 5), dim=(0, 2), ref=lambda x, dim: np.count_nonzero(x, axis=dim), grad=False)

for name, ref in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
    for dim in (0, 1, -1):
        op(name, R(3, 4, 5), dim, ref=ref)
    op(name, R(3, 4, 5), dim=1, ref=lambda x, dim, ref=ref: ref(x, dim))
    op(name, R(), 0, ref=lambda x, dim: x.copy())
    op(name, R(0, 3), 0, ref=ref)
    op(name, R(3, 0), 0, ref=ref)
op("cumprod", Z(3, 4), 1, ref=np.cumprod, note=" with zeros")
op("cumprod", Z(5, 7), 0, ref=np.cumprod, note=" with zeros")


def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x)
    return e / e.sum(dim, keepdims=True) if x.ndim else e / e


for dim in (0, 1, -1):
    op("softmax", R(3, 4, 5), dim, ref=softmax)
    op("log_softmax", R(3, 4, 5), dim, ref=lambda x, dim: np.log(softmax(x, dim)))
op("softmax", R(), 0, ref=softmax)
op("log_softmax", R(), 0, ref=lambda x, dim: np.log(softmax(x, dim)))
op("softmax", R(0, 3), dim=1, ref=softmax)
op("log_softmax", R(3, 0), dim=1, ref=lambda x, dim: x.copy())

# --------------------------------------------------------------------------------------------------------------- sorting


def in_order(x: Array, dim: int = -1, descending: bool = False, stable: bool = True) -> tuple[Array, Array]:
    order = np.argsort(-x if descending else x, dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def first_k(x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, ...]:
    return tuple(np.take(part, range(k), dim) for part in in_order(x, dim, largest))


VARIANTS: list[dict[str, Any]] = [{}, {"dim": 0}, {"dim": 1, "descending": True}]
for variant in VARIANTS:
    op("sort", R(3, 4, 5), ref=in_order, **variant)
    op("argsort", R(3, 4, 5), ref=lambda *a, **k: in_order(*a, **k)[1], grad=False, **variant)
op("sort", R(5, 7), 0, True, ref=in_order)
op("sort", R(), ref=lambda x: (x, np.array(0)))
op("sort", R(0, 3), dim=0, ref=in_order)
op("argsort", R(), ref=lambda x: np.array(0), grad=False)
op("topk", R(3, 4, 5), 2, ref=first_k)
op("topk", R(3, 4, 5), 3, dim=1, largest=False, ref=first_k)
op("topk", R(5, 7), 5, 0, ref=first_k)
op("topk", R(5, 7), 0, ref=first_k)
op("topk", R(), 1, ref=lambda x, k: (x, np.array(0)))

# -------------------------------------------------------------------------------------------------------------- products

for left, right in (((5, 7), (7, 3)), ((7,), (7,)), ((5, 7), (7,)), ((5,), (5, 7)), ((2, 5, 3), (3, 4)), ((2, 3, 4), (2, 4, 3)), ((2, 1, 3, 4), (3, 4, 2)),
                    ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((0,), (0,)), ((2, 0, 3), (3, 2))):
    op("matmul", R(*left), R(*right), ref=np.matmul)
op("mm", R(5, 7), R(7, 3), ref=np.matmul)
op("bmm", R(3, 4, 5), R(3, 5, 2), ref=np.matmul)
op("mv", R(5, 7), R(7), ref=np.matmul)
op("dot", R(40), R(40), ref=np.dot)
op("outer", R(5), R(7), ref=np.outer)
op("addmm", R(5, 3), R(5, 7), R(7, 3), ref=lambda x, y, z: x + y @ z)
op("addmm", R(3), R(5, 7), R(7, 3), beta=0.5, alpha=-2, ref=lambda x, y, z, beta, alpha: beta * x + alpha * (y @ z))
for equation, shapes in (("ij,jk->ik", [(5, 7), (7, 3)]), ("ij,jk", [(5, 7), (7, 3)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 3)]), ("i,j->ij", [(5,), (7,)]),
                         ("ii->i", [(5, 5)]), ("ii", [(6, 6)]), ("ij->ji", [(5, 7)]), ("ij->", [(5, 7)]), ("ij->j", [(5, 7)]), ("ij,ij->", [(5, 7), (5, 7)]),
                         ("...ij,jk->...ik", [(2, 3, 4, 2), (2, 3)]), ("i...,i...->...", [(3, 2, 4), (3, 4)]), ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
                         ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("iij->j", [(3, 3, 4)]), ("ij,kl->", [(2, 3), (3, 2)]), ("i,->i", [(5,), ()]),
                         ("ij, j -> i", [(0, 3), (3,)])):
    op("einsum", equation, *(R(*s) for s in shapes), ref=np.einsum, view=equation in ("ii->i", "ij->ji"))
op("einsum", "ij,jk->ik", [R(2, 3), R(3, 4)], ref=lambda equation, xs: np.einsum(equation, *xs), note=" listed")
op("tensordot", R(3, 4, 5), R(4, 5, 2), ref=np.tensordot)
op("tensordot", R(3, 4), R(4, 5), dims=1, ref=lambda x, y, dims: np.tensordot(x, y, dims))
op("tensordot", R(3), R(4), dims=0, ref=lambda x, y, dims: np.tensordot(x, y, dims))
op("tensordot", R(3, 4, 5), R(5, 2, 3), dims=([0, 2], [2, 0]), ref=lambda x, y, dims: np.tensordot(x, y, dims))

# ----------------------------------------------------------------------------------------------------------------- views

windows = np.lib.stride_tricks.as_strided


def strided(x: Array, size: Any, stride: Any, storage_offset: int = 0) -> Array:
    return windows(x.reshape(-1)[storage_offset:], size, [s * x.itemsize for s in stride], writeable=True)


def unfolded(x: Array, dim: int, size: int, step: int) -> Array:
    shape, strides = list(x.shape), list(x.strides)
    shape[dim], strides[dim] = (x.shape[dim] - size) // step + 1, x.strides[dim] * step
    return windows(x, (*shape, size), (*strides, x.strides[dim]), writeable=True)


def parts(x: Array, size: Any, dim: int = 0) -> list[Array]:
    at = np.cumsum(size)[:-1] if isinstance(size, (list, tuple)) else range(size, x.shape[dim], size)
    return np.split(x, at, dim)


def diag(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    found = np.diagonal(x, offset, dim1, dim2)
    found.flags.writeable = True
    return found


def spread(x: Array, *shape: Any) -> Array:
    shape = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
    lead = len(shape) - x.ndim
    wide = np.broadcast_to(x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)))
    return windows(x, wide.shape, wide.strides, writeable=True)


op("view", R(5, 7), 7, 5, view=True, ref=lambda x, *s: x.reshape(s))
op("view", R(5, 7), -1, view=True, ref=lambda x, *s: x.reshape(s))
op("view", R(5, 7), (5, 1, 7), view=True, ref=lambda x, s: x.reshape(s))
op("view", R(), 1, 1, view=True, ref=lambda x, *s: x.reshape(s))
op("view", R(0, 3), 3, 0, view=True, ref=lambda x, *s: x.reshape(s))
op("view_as", R(5, 7), np.zeros((7, 5)), view=True, ref=lambda x, y: x.reshape(y.shape))
op("reshape", R(5, 7), (7, -1), view=True, ref=lambda x, s: x.reshape(s))
op("reshape", R(3, 4, 5), (6, 10), view=True, ref=lambda x, s: x.reshape(s))
op("reshape", R(), (1,), view=True, ref=lambda x, s: x.reshape(s))
op("reshape_as", R(5, 7), np.zeros(35), view=True, ref=lambda x, y: x.reshape(y.shape))
op("ravel", R(5, 7), view=True, ref=np.ravel)
op("conj", R(5, 7), view=True, ref=lambda x: x.conj() if x.dtype.kind == "c" else x)
op("flatten", R(3, 4, 5), view=True, ref=np.ravel)
op("flatten", R(3, 4, 5), 1, view=True, ref=lambda x, start: x.reshape(3, 20))
op("flatten", R(3, 4, 5), 0, 1, view=True, ref=lambda x, start, end: x.reshape(12, 5))
op("flatten", R(), view=True, ref=np.ravel)
op("unflatten", R(5, 12), 1, (3, -1), view=True, ref=lambda x, dim, sizes: x.reshape(5, 3, 4))
op("transpose", R(3, 4, 5), 0, 2, view=True, ref=np.swapaxes)
op("transpose", R(5, 7), -1, 0, view=True, ref=np.swapaxes)
op("transpose", R(), 0, -1, view=True, ref=lambda x, a, b: x)
op("t", R(5, 7), view=True, ref=np.transpose)
op("t", R(40), view=True, ref=np.transpose)
op("T", R(5, 7), view=True, ref=np.transpose)
op("mT", R(3, 4, 5), view=True, ref=lambda x: x.swapaxes(-1, -2))
op("permute", R(3, 4, 5), (2, 0, 1), view=True, ref=np.transpose)
op("permute", R(), (), view=True, ref=lambda x, dims: x)
op("movedim", R(3, 4, 5), 0, 2, view=True, ref=np.moveaxis)
op("movedim", R(3, 4, 5), (0, -1), (1, 0), view=True, ref=np.moveaxis)
op("squeeze", R(5, 1, 7, 1), view=True, ref=np.squeeze)
op("squeeze", R(5, 1, 7, 1), 1, view=True, ref=np.squeeze)
op("squeeze", R(5, 1, 7, 1), (1, -1), view=True, ref=np.squeeze)
op("squeeze", R(5, 7), 0, view=True, ref=lambda x, dim: x[...])
op("unsqueeze", R(5, 7), 1, view=True, ref=np.expand_dims)
op("unsqueeze", R(5, 7), -1, view=True, ref=np.expand_dims)
op("unsqueeze", R(), 0, view=True, ref=np.expand_dims)
op("expand", R(5, 1), 5, 7, view=True, ref=spread)
op("expand", R(7), (2, 3, -1), view=True, ref=spread)
op("expand", R(), 3, 4, view=True, ref=spread)
op("expand", R(5, 7), -1, 7, view=True, ref=spread)
op("expand", R(1, 3), 0, 3, view=True, ref=spread)
op("expand_as", R(7), np.zeros((5, 7)), view=True, ref=lambda x, y: spread(x, *y.shape))
op("broadcast_to", R(7), (5, 7), view=True, ref=lambda x, s: spread(x, *s))
op("broadcast_tensors", R(5, 1), R(7), view=True, ref=lambda *xs: np.broadcast_arrays(*xs))
op("narrow", R(5, 7), 1, 2, 3, view=True, ref=lambda x, dim, start, length: x[:, 2:5])
op("narrow", R(5, 7), 0, -2, 2, view=True, ref=lambda x, dim, start, length: x[-2:])
op("narrow", R(5, 7), 0, 3, 0, view=True, ref=lambda x, dim, start, length: x[3:3])
op("select", R(5, 7), 0, 2, view=True, ref=lambda x, dim, i: x[2])
op("select", R(5, 7), -1, -2, view=True, ref=lambda x, dim, i: x[:, -2])
op("select", R(40), 0, 3, view=True, ref=lambda x, dim, i: x[3, ...])
op("chunk", R(5, 7), 3, view=True, ref=lambda x, n: parts(x, 2))
op("chunk", R(5, 7), 2, 1, view=True, ref=lambda x, n, dim: parts(x, 4, 1))
op("split", R(5, 7), 2, view=True, ref=parts)
op("split", R(5, 7), [1, 4, 2], 1, view=True, ref=parts)
op("split", R(5, 7), (2, 0, 3), dim=0, view=True, ref=parts)
op("unbind", R(5, 7), view=True, ref=lambda x: [*x])
op("unbind", R(5, 7), 1, view=True, ref=lambda x, dim: [*x.T])
op("unbind", R(4), view=True, ref=lambda x: [x[i, ...] for i in range(4)])
op("diagonal", R(5, 7), view=True, ref=diag)
op("diagonal", R(5, 7), 2, view=True, ref=diag)
op("diagonal", R(5, 7), -1, view=True, ref=diag)
op("diagonal", R(3, 4, 5), 1, 2, 0, view=True, ref=diag)
op("diagonal", R(5, 7), offset=9, view=True, ref=diag)
op("unfold", R(40), 0, 8, 8, view=True, ref=unfolded)
op("unfold", R(40), 0, 3, 2, view=True, ref=unfolded)
op("unfold", R(5, 7), 1, 3, 3, view=True, ref=unfolded)
op("unfold", R(5, 7), 0, 2, 1, view=True, ref=unfolded)
op("as_strided", R(40), (3, 4), (9, 2), view=True, ref=strided)
op("as_strided", R(5, 7), (3, 3), (8, 2), 1, view=True, ref=strided)
op("as_strided", R(40), (5, 3), (2, 2), view=True, ref=strided)
op("as_strided", R(40), (3, 3), (1, 0), view=True, ref=strided)
op("contiguous", R(5, 7), view=True, ref=lambda x: x)
op("detach", R(5, 7), view=True, ref=lambda x: x, grad=False)

# ------------------------------------------------------------------------------------------------------- joined and moved

op("cat", [R(5, 7), R(2, 7), R(1, 7)], ref=np.concatenate)
op("cat", [R(5, 3), R(5, 4)], 1, ref=np.concatenate)
op("cat", [R(5, 3), R(5, 4)], dim=-1, ref=lambda xs, dim: np.concatenate(xs, dim))
op("cat", [R(0), R(5, 7)], ref=lambda xs: xs[1])
op("cat", [R(0, 7), R(5, 7)], ref=np.concatenate)
op("stack", [R(5, 7), R(5, 7)], ref=np.stack)
op("stack", [R(5, 7), R(5, 7)], dim=1, ref=lambda xs, dim: np.stack(xs, dim))
op("stack", [R(5, 7), R(5, 7)], -1, ref=np.stack)
op("stack", [R(), R()], ref=np.stack)
op("repeat", R(5, 7), 2, 3, ref=lambda x, *n: np.tile(x, n))
op("repeat", R(7), (2, 3, 1), ref=np.tile)
op("repeat", R(5, 7), 0, 1, ref=lambda x, *n: np.tile(x, n))
op("repeat", R(), 3, ref=np.tile)
op("tile", R(5, 7), (2, 1), ref=np.tile)
op("tile", R(5, 7), (3,), ref=np.tile)
op("tile", R(7), (2, 2), ref=np.tile)
op("flip", R(5, 7), (0,), ref=np.flip)
op("flip", R(5, 7), (0, -1), ref=np.flip)
op("flip", R(0, 3), (0,), ref=np.flip)
op("roll", R(5, 7), 2, ref=np.roll)
op("roll", R(5, 7), 2, 1, ref=np.roll)
op("roll", R(5, 7), (1, -3), (0, 1), ref=np.roll)
op("roll", R(0, 3), 1, 0, ref=np.roll)

# ------------------------------------------------------------------------------------------------------------ element types

CASTS = {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
         "bool": "bool", "cfloat": "complex64", "cdouble": "complex128"}

# --------------------------------------------------------------------------------------------------------------- indexing

PICKS, ALSO, GRID = np.array([3, 0, 3, 4]), np.array([1, 6, 0, 2]), np.array([[0, 2], [4, 0], [2, 2]])
ROWS = np.array([2, 0, 2])
for key in ((2,), (-1, 3), (slice(1, 4),), (slice(None, None, 2), slice(1, 6, 3)), (..., 2), (None, 3), (slice(2, 2),), (2, None, ..., slice(None, 3))):
    op("__getitem__", R(5, 7), key, view=True, ref=lambda x, key: x[key if ... in key else (*key, ...)])
for key in ((PICKS,), (slice(None), PICKS), (PICKS, ALSO), (GRID,), (GRID, slice(1, 5)), (slice(1, None), GRID), (PICKS[:, None], ALSO[:3]), ([0, 2],),
            (..., PICKS), (PICKS, None), (SOME,), (slice(None), OTHER), (np.array([True, False, True, False, True]),), (PICKS[:0],), (SOME & False,),
            (2, PICKS), (slice(None, None, 2), OTHER)):
    op("__getitem__", R(5, 7), key, ref=lambda x, key: x[key])
op("__getitem__", R(5, 7), (np.array([-1, -5, 0]), -2), ref=lambda x, key: x[:, -2][key[0]], note=" from the end")
op("__getitem__", R(3, 4, 5), (ROWS, slice(None), ROWS), ref=lambda x, key: x[key])
op("__getitem__", R(3, 4, 5), (slice(None), ROWS, ROWS), ref=lambda x, key: x[key])
op("__getitem__", R(3, 4, 5), (1, slice(None), ROWS), ref=lambda x, key: x[1][:, ROWS], note=" an integer beside an index")
op("__getitem__", R(), (None,), view=True, ref=lambda x, key: x[key])
op("__getitem__", R(), (...,), view=True, ref=lambda x, key: x[key])
op("__getitem__", R(), (True,), ref=lambda x, key: x[key])
op("__getitem__", R(0, 3), (slice(None), 1), view=True, ref=lambda x, key: x[key])


def put_at(x: Array, index: Any, values: Any, accumulate: bool = False) -> Array:
    """One by one, so that the last of duplicates wins."""
    out = x.copy()
    places = np.broadcast_arrays(*index)
    values = np.broadcast_to(values, out[index].shape)
    for i in np.ndindex(places[0].shape):
        at = tuple(p[i] for p in places)
        out[at] = out[at] + values[i] if accumulate else values[i]
    return out


op("index_put", R(5, 7), (PICKS, ALSO), R(4), ref=put_at)
op("index_put", R(5, 7), (PICKS,), R(4, 7), ref=put_at)
op("index_put", R(5, 7), (PICKS,), R(7), accumulate=True, ref=put_at)
op("index_put", R(5, 7), (PICKS, ALSO), R(4), True, ref=put_at)
op("index_put", R(5, 7), (GRID, ALSO[:2]), R(), accumulate=True, ref=put_at)
op("index_put", R(5, 7), (SOME,), R(12), ref=lambda x, index, v: np.place(y := x.copy(), *index, v) or y)
op("index_put", R(5, 7), (PICKS[:0],), R(0, 7), ref=put_at)


def on_axis(f: Callable[..., None]) -> Callable[..., Any]:
    """A function of (slices of x along dim, index, rest ...) that changes them in place, slice by slice."""

    def reference(x: Array, dim: int, index: Any, source: Any = None, **settings: Any) -> Array:
        out = x.copy() if x.ndim else x.reshape(1).copy()
        rows = np.moveaxis(out, dim, 0)
        values = np.moveaxis(source, dim, 0) if isinstance(source, np.ndarray) and source.ndim else [source] * index.size
        for k, i in enumerate(index.reshape(-1)):
            f(rows, i, values[k], **settings)
        return out.reshape(x.shape)

    return reference


assign, add_to = on_axis(lambda rows, i, v: rows.__setitem__(i, v)), on_axis(lambda rows, i, v, alpha=1: rows.__setitem__(i, rows[i] + alpha * v))
op("index_select", R(5, 7), 0, PICKS, ref=lambda x, dim, index: np.take(x, index, dim))
op("index_select", R(5, 7), -1, ALSO, ref=lambda x, dim, index: np.take(x, index, dim))
op("index_select", R(5, 7), 0, PICKS[:0], ref=lambda x, dim, index: np.take(x, index, dim))
op("index_select", R(), 0, np.array([0]), ref=lambda x, dim, index: x.copy())
op("index_add", R(5, 7), 0, PICKS, R(4, 7), ref=add_to)
op("index_add", R(5, 7), 1, PICKS, R(5, 4), alpha=2.5, ref=add_to)
op("index_copy", R(5, 7), 0, PICKS[1:], R(3, 7), ref=assign)
op("index_copy", R(5, 7), 1, ALSO, R(5, 4), ref=assign)
op("index_fill", R(5, 7), 0, PICKS, 0.5, ref=assign)
op("index_fill", R(5, 7), 1, PICKS, R(), ref=assign)

COLUMN, WIDE = np.arange(20).reshape(4, 5) * 3 % 7, np.arange(12).reshape(3, 4) * 5 % 4


def at_index(out: Array, dim: int, index: Array) -> Iterator[tuple[Any, Any]]:
    """Where each element of an index of gather and scatter points, in order."""
    for i in np.ndindex(index.shape):
        yield i, (*i[:dim % out.ndim], index[i], *i[dim % out.ndim + 1:])


def scattered(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reference(x: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: Any = None) -> Array:
        out, src = x.copy(), value if src is None else src
        for i, at in at_index(out, dim, index):
            out[at] = combine(out[at], src[i] if isinstance(src, np.ndarray) else src)
        return out

    return reference


def scatter_reduced(x: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True) -> Array:
    out, met = x.copy(), {}
    for i, at in at_index(out, dim, index):
        met.setdefault(at, []).append(src[i])
    for at, values in met.items():
        values = [x[at], *values] if include_self else values
        out[at] = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce](values)
    return out


op("gather", R(5, 7), 0, GRID, ref=lambda x, dim, index: np.take_along_axis(x[:, :2], index, 0))
op("gather", R(5, 7), 1, COLUMN, ref=lambda x, dim, index: np.take_along_axis(x[:4], index, 1))
op("gather", R(5, 7), -1, COLUMN[:, :0], ref=lambda x, dim, index: np.zeros((4, 0)))
op("gather", R(), 0, np.array([0, 0]), ref=lambda x, dim, index: np.stack([x, x]))
op("take_along_dim", R(5, 7), COLUMN[:1], 1, ref=lambda x, index, dim: np.take_along_axis(x, np.broadcast_to(index, (5, 5)), 1))
op("take_along_dim", R(5, 7), COLUMN, ref=lambda x, index: x.reshape(-1)[index.reshape(-1)])
op("scatter", R(5, 7), 1, COLUMN, R(4, 5), ref=scattered(lambda a, b: b))
op("scatter", R(5, 7), 0, GRID, R(5, 7), ref=scattered(lambda a, b: b))
op("scatter", R(5, 7), 1, COLUMN, 0.5, ref=scattered(lambda a, b: b))
op("scatter", R(5, 7), 1, COLUMN, value=0.5, ref=scattered(lambda a, b: b))
op("scatter", R(5, 7), 1, COLUMN, R(4, 5), reduce="add", ref=scattered(np.add))
op("scatter", R(5, 7), 1, COLUMN, R(4, 5), reduce="multiply", ref=scattered(np.multiply))
op("scatter", R(5, 7), 1, COLUMN[:0], R(4, 5), ref=scattered(lambda a, b: b))
op("scatter_add", R(5, 7), 1, COLUMN, R(4, 5), ref=scattered(np.add))
op("scatter_add", R(5, 7), 0, GRID, R(5, 7), ref=scattered(np.add))
for how, alone in product(("sum", "prod", "mean", "amax", "amin"), (True, False)):
    op("scatter_reduce", R(5, 7), 1, COLUMN, R(4, 5), how, include_self=alone, ref=scatter_reduced)
    op("scatter_reduce", R(5, 7), 0, GRID, R(3, 2), how, include_self=alone, ref=scatter_reduced)
op("scatter_reduce", Z(5, 7), 1, COLUMN, Z(4, 5), "prod", ref=scatter_reduced, note=" with zeros", once=True)  # PyTorch has no second derivative, either

op("masked_fill", R(5, 7), SOME, 3, ref=lambda x, mask, v: np.where(mask, v, x))
op("masked_fill", R(5, 7), OTHER, R(), ref=lambda x, mask, v: np.where(mask, v, x))
op("masked_fill", R(), np.array(True), 0.5, ref=lambda x, mask, v: np.where(mask, v, x))
op("masked_fill", R(0, 3), np.zeros(3, bool), 0.5, ref=lambda x, mask, v: np.where(mask, v, x))
op("masked_select", R(5, 7), SOME, ref=lambda x, mask: x[mask])
op("masked_select", R(5, 7), OTHER, ref=lambda x, mask: x[:, mask].reshape(-1))
op("masked_select", R(7), SOME, ref=lambda x, mask: np.broadcast_to(x, mask.shape)[mask])
op("masked_select", R(), np.array(True), ref=lambda x, mask: x.reshape(1).copy())
op("masked_scatter", R(5, 7), SOME, R(20), ref=lambda x, mask, v: np.place(y := x.copy(), mask, v) or y)
op("masked_scatter", R(5, 7), OTHER, R(5, 4), ref=lambda x, mask, v: np.place(y := x.copy(), np.broadcast_to(mask, x.shape), v) or y)
op("take", R(5, 7), GRID * 7, ref=lambda x, index: x.reshape(-1)[index])
op("take", R(5, 7), np.array([-1, 34, 0, 0]), ref=lambda x, index: x.reshape(-1)[index])
op("take", R(), np.array([0, 0]), ref=lambda x, index: np.stack([x, x]))
op("put", R(5, 7), np.array([-1, 3, 3]), R(3), ref=lambda x, i, v: put_at(x.reshape(-1), (i,), v).reshape(x.shape))
op("put", R(5, 7), GRID, R(3, 2), True, ref=lambda x, i, v, accumulate: put_at(x.reshape(-1), (i,), v, True).reshape(x.shape))
op("nonzero", Z(5, 7), ref=np.argwhere, grad=False)
op("nonzero", Z(5, 7), as_tuple=True, ref=lambda x, as_tuple: np.nonzero(x), grad=False)
op("nonzero", R(), ref=np.argwhere, grad=False)
op("argwhere", Z(5, 7), ref=np.argwhere, grad=False)

# ------------------------------------------------------------------------------------------------- what exists only in place

op("copy_", R(5, 7), R(7), ref=lambda x, y: np.broadcast_to(y, x.shape).copy())
op("copy_", R(5, 7), R(5, 7), ref=lambda x, y: y.copy())
op("copy_", R(), R(), ref=lambda x, y: y.copy())
op("copy_", R(0, 3), R(3), ref=lambda x, y: x.copy())
op("fill_", R(5, 7), 0.5, ref=np.full_like)
op("fill_", R(5, 7), R(), ref=np.full_like)
op("zero_", R(5, 7), ref=np.zeros_like)


def assigned(x: Array, key: Any, value: Any) -> Array:
    out = x.copy()
    out[key] = value
    return out


for key, shape in (((2,), (7,)), ((slice(None, None, 2),), (3, 7)), ((slice(1, 4), slice(0, 7, 3)), (3, 1)), ((..., 2), (5,)), ((2, 3), ()), ((...,), (7,)),
                   ((PICKS[1:],), (3, 7)), ((PICKS[1:], ALSO[1:]), (3,)), ((SOME,), (12,)), ((slice(None), OTHER), ()), ((slice(2, 2),), (0, 7)),
                   ((PICKS[:, None], ALSO[:3]), (4, 3)), ((PICKS, ALSO), (4,))):
    op("__setitem__", R(5, 7), key, R(*shape), ref=assigned)


# The operations that have more than one name.
ALIASES = dict(pair.split("=") for pair in words("""
    absolute=abs arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctan2=atan2 arctanh=atanh subtract=sub multiply=mul
    divide=div true_divide=div negative=neg fix=trunc clip=clamp not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge concat=cat
    concatenate=cat swapaxes=transpose swapdims=transpose moveaxis=movedim ger=outer"""))

# ------------------------------------------------------------------------------------------- recorded from PyTorch 2.13.0

# The types of the first sample's results when its inputs are of these types; `-` where PyTorch refuses.
INPUT_TYPES = ("bool", "uint8", "int16", "int64", "float16", "complex64")
RESULT_TYPES = {
    "- u1 i2 i8 f2 f4": "abs",
    "- u1 i2 i8 f2 c8": "neg positive sub rsub pow addcmul matmul mm bmm mv dot addmm einsum tensordot",
    "i8 u1 i2 i8 f2 c8": "square",
    "? u1 i2 i8 f2 -": "sign maximum minimum fmax fmin clamp_min clamp_max amax amin aminmax max min",
    "? u1 i2 i8 f2 c8": """sgn conj clone add mul where outer view view_as reshape reshape_as ravel flatten unflatten transpose t T mT permute
        movedim squeeze unsqueeze expand expand_as broadcast_to broadcast_tensors narrow select chunk split unbind diagonal unfold
        as_strided contiguous detach cat stack repeat tile flip roll __getitem__ index_put index_select index_add index_copy
        index_fill gather take_along_dim scatter scatter_add scatter_reduce masked_fill masked_select masked_scatter take put copy_
        fill_ zero_ __setitem__""",
    "f4 f4 f4 f4 f2 c8": """reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
        atanh sigmoid div logsumexp""",
    "f4 f4 f4 f4 f2 -": "deg2rad rad2deg erf logit atan2",
    "- u1 i2 i8 f2 -": "relu floor ceil trunc round remainder fmod floor_divide clamp",
    "- - - - f2 -": "frac hypot softmax log_softmax logaddexp",  # (PyTorch has a complex logaddexp, NumPy has none)
    "? ? ? ? ? ?": "logical_not isnan isinf isfinite eq ne logical_and logical_or logical_xor isclose allclose equal",
    "? ? ? ? ? -": "signbit lt le gt ge",
    "- - - - f2 c8": "lerp addcdiv mean",
    "i8 i8 i8 i8 f2 c8": "sum prod cumsum cumprod",
    "- - - - f2 f4": "var std norm dist",
    "- - - - f2 f4/c8": "var_mean std_mean",
    "- i8 i8 i8 i8 -": "argmax argmin",
    "? u1 ? ? ? ?": "any all",
    "i8 i8 i8 i8 i8 i8": "count_nonzero nonzero argwhere",
    "?/i8 u1/i8 i2/i8 i8 f2/i8 -": "sort",
    "i8 i8 i8 i8 i8 -": "argsort",
    "- u1/i8 i2/i8 i8 f2/i8 -": "topk",
}

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")


def table(text: str) -> dict[tuple[str, str], str]:
    """Types by row and column; the rows are in the order of DTYPES, and so are the columns unless they are numbers."""
    rows = [line.split() for line in text.strip().splitlines()]
    columns = DTYPES if len(rows[0]) == len(DTYPES) else ("a bool", "an int", "a float", "a complex")
    return {(a, b): np.dtype(t).name for a, row in zip(DTYPES, rows) for b, t in zip(columns, row)}


PROMOTE_TYPES = table("""
     ?  u1  i1  i2  i4  i8  f2  f4  f8  c8 c16
    u1  u1  i2  i2  i4  i8  f2  f4  f8  c8 c16
    i1  i2  i1  i2  i4  i8  f2  f4  f8  c8 c16
    i2  i2  i2  i2  i4  i8  f2  f4  f8  c8 c16
    i4  i4  i4  i4  i4  i8  f2  f4  f8  c8 c16
    i8  i8  i8  i8  i8  i8  f2  f4  f8  c8 c16
    f2  f2  f2  f2  f2  f2  f2  f4  f8  c8 c16
    f4  f4  f4  f4  f4  f4  f4  f4  f8  c8 c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8 c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8 c16  c8 c16
   c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16""")

# A tensor with dimensions (rows) beside one without. PyTorch has complex32 for float16 beside a complex; we have complex64.
WITH_ZERO_DIM = table("""
     ?  u1  i1  i2  i4  i8  f2  f4  f8  c8 c16
    u1  u1  u1  u1  u1  u1  f2  f4  f8  c8 c16
    i1  i1  i1  i1  i1  i1  f2  f4  f8  c8 c16
    i2  i2  i2  i2  i2  i2  f2  f4  f8  c8 c16
    i4  i4  i4  i4  i4  i4  f2  f4  f8  c8 c16
    i8  i8  i8  i8  i8  i8  f2  f4  f8  c8 c16
    f2  f2  f2  f2  f2  f2  f2  f2  f2  c8  c8
    f4  f4  f4  f4  f4  f4  f4  f4  f4  c8  c8
    f8  f8  f8  f8  f8  f8  f8  f8  f8 c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8
   c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16""")

# A tensor (with dimensions or without) beside a Python number: bool, int, float, complex.
WITH_NUMBER = table("""
     ?  i8  f4  c8
    u1  u1  f4  c8
    i1  i1  f4  c8
    i2  i2  f4  c8
    i4  i4  f4  c8
    i8  i8  f4  c8
    f2  f2  f2  c8
    f4  f4  f4  c8
    f8  f8  f8 c16
    c8  c8  c8  c8
   c16 c16 c16 c16""")

# Gradients of the sum at kinks, poles and edges of domains: expression, inputs x and y, gradients.
inf, nan = math.inf, math.nan
KINKS: list[tuple[str, list[list[float]], list[list[float]]]] = [
    ("x.abs()", [[0, -0, -1]], [[0, 0, -1]]),
    ("x.relu()", [[0, -1, nan]], [[0, 0, 1]]),
    ("x.sign()", [[0, -2, nan]], [[0, 0, 0]]),
    ("x.sqrt()", [[0, 4, -1]], [[inf, 0.25, nan]]),
    ("x.rsqrt()", [[0, 4]], [[-inf, -0.0625]]),
    ("x.log()", [[0, 1, -1]], [[inf, 1, -1]]),
    ("x.reciprocal()", [[0, 2]], [[-inf, -0.25]]),
    ("x ** 0", [[0, 2]], [[0, 0]]),
    ("x ** 1", [[0, 2]], [[1, 1]]),
    ("x ** 2", [[0, -2]], [[0, -4]]),
    ("x ** 3", [[0, -2]], [[0, 12]]),
    ("x ** 0.5", [[0, 4]], [[inf, 0.25]]),
    ("x ** -1", [[0, 2]], [[-inf, -0.25]]),
    ("x ** 2.5", [[0, 4, -1]], [[0, 20, nan]]),
    ("x ** -0.5", [[0, 4]], [[-inf, -0.0625]]),
    ("0. ** x", [[0, 1, -1]], [[0, 0, -inf]]),
    ("2. ** x", [[0, 1, -1]], [[0.6931472, 1.386294, 0.3465736]]),
    ("(-2.) ** x", [[2, 3]], [[nan, nan]]),
    ("x.clamp(0, 1)", [[0, 1, 0.5, -1, nan]], [[1, 1, 1, 0, 0]]),
    ("x.clamp(min=0.)", [[0, nan]], [[1, 0]]),
    ("x.floor()", [[0, 1.5]], [[0, 0]]),
    ("x.frac()", [[0, 1.5, -1.5]], [[1, 1, 1]]),
    ("x.round()", [[0.5, 1.5, 2.5, -0.5]], [[0, 0, 0, 0]]),
    ("x.asin()", [[1, 0, 2]], [[inf, 1, nan]]),
    ("x.acosh()", [[1, 2, 0]], [[inf, 0.5773503, nan]]),
    ("x.atanh()", [[1, 0]], [[inf, 1]]),
    ("x.logit()", [[0, 1, 0.5]], [[inf, inf, 4]]),
    ("x.sigmoid()", [[-1000, 1000, 0]], [[0, 0, 0.25]]),
    ("x.tanh()", [[1000, 0]], [[0, 1]]),
    ("x.exp()", [[1000, -1000]], [[inf, 0]]),
    ("x.erf()", [[0, 100]], [[1.128379, 0]]),
    ("x.log1p()", [[-1, 0]], [[inf, 1]]),
    ("x.max()", [[1, 3, 3]], [[0, 0.5, 0.5]]),
    ("x.min()", [[1, 1, 3]], [[0.5, 0.5, 0]]),
    ("x.amax()", [[3, 3, 1]], [[0.5, 0.5, 0]]),
    ("x.amax(0)", [[3, 3, 3]], [[0.3333333, 0.3333333, 0.3333333]]),
    ("x.max(0).values", [[1, 3, 3]], [[0, 1, 0]]),
    ("x.min(0).values", [[1, 1, 3]], [[1, 0, 0]]),
    ("x.max()", [[1, nan, 3]], [[0, 1, 0]]),
    ("x.sort().values", [[2, 1, 1]], [[1, 1, 1]]),
    ("x.sort(descending=True).values", [[1, 2, 2]], [[1, 1, 1]]),
    ("x.norm()", [[0, 0]], [[0, 0]]),
    ("x.norm(1)", [[0, -2]], [[0, -1]]),
    ("x.norm(3)", [[0, 0]], [[0, 0]]),
    ("x.norm(3)", [[0, 2]], [[0, 1]]),
    ("x.norm(inf)", [[2, -2, 1]], [[0.5, -0.5, 0]]),
    ("x.norm(0.5)", [[4, 1]], [[1.5, 3]]),
    ("x.std()", [[1, 1]], [[0, 0]]),
    ("x.std()", [[1]], [[nan]]),
    ("x.var()", [[1]], [[nan]]),
    ("x.std(correction=0)", [[1, 3]], [[-0.5, 0.5]]),
    ("x.prod()", [[0, 2, 3]], [[6, 0, 0]]),
    ("x.prod()", [[0, 0, 3]], [[0, 0, 0]]),
    ("x.cumprod(0)", [[2, 0, 3, 0]], [[1, 8, 0, 0]]),
    ("x.cumprod(0)", [[0, 2]], [[3, 0]]),
    ("x.logsumexp(0)", [[-inf, 0]], [[0, 1]]),
    ("x.logsumexp(0)", [[-inf, -inf]], [[nan, nan]]),
    ("x.logsumexp(0)", [[1000, 1000]], [[0.5, 0.5]]),
    ("x.softmax(0)", [[-inf, 0]], [[0, 0]]),
    ("x.softmax(0)", [[1000, 0]], [[0, 0]]),
    ("x.log_softmax(0)", [[-inf, 0]], [[1, -1]]),
    ("x.mean()", [[inf, 1]], [[0.5, 0.5]]),
    ("m.maximum(x, y)", [[1, 2, nan], [1, 3, 0]], [[0.5, 0, 1], [0.5, 1, 1]]),
    ("m.minimum(x, y)", [[1, 2, nan], [1, 3, 0]], [[0.5, 1, 1], [0.5, 0, 1]]),
    ("m.fmax(x, y)", [[1, nan, 0, nan], [1, 2, nan, nan]], [[1, 0, 1, 1], [0, 1, 0, 0]]),
    ("m.fmin(x, y)", [[1, nan, 0], [1, 2, nan]], [[1, 0, 1], [0, 1, 0]]),
    ("x ** y", [[0, 0, 2, 0], [0, 2, 0, -1]], [[0, 0, 0, -inf], [0, 0, 0.6931472, -inf]]),
    ("x / y", [[1, 0], [0, 0]], [[inf, inf], [-inf, nan]]),
    ("m.atan2(x, y)", [[0, 0, 1], [0, -1, 0]], [[0, -1, 0], [-0, -0, -1]]),
    ("m.hypot(x, y)", [[0, 3], [0, 4]], [[nan, 0.6], [nan, 0.8]]),
    ("x % y", [[3, -3, 1], [2, 2, -2]], [[1, 1, 1], [-1, 2, 1]]),
    ("m.fmod(x, y)", [[3, -3, 1], [2, 2, -2]], [[1, 1, 1], [-1, 1, 0]]),
    ("m.where(x > 0, x.log(), y)", [[0, 1], [5, 6]], [[0, 1], [1, 0]]),
    ("m.logaddexp(x, y)", [[-inf, 0, inf], [-inf, -inf, 0]], [[nan, 1, 1], [nan, 0, 0]]),
    ("x.clamp(min=y)", [[1, 2, 0], [1, 1, 1]], [[1, 1, 0], [0, 0, 1]]),
    ("x.clamp(max=y)", [[1, 2, 0], [1, 1, 1]], [[1, 0, 1], [0, 1, 0]]),
    ("x.lerp(y, 0.5)", [[0, 1], [1, inf]], [[0.5, 0.5], [0.5, 0.5]]),
    ("m.dist(x, y)", [[1, 2], [1, 2]], [[0, 0], [-0, -0]]),
    ("x.max(y)", [[1, 2], [1, 1]], [[0.5, 1], [0.5, 0]]),
    ("m.remainder(x, 0.)", [[1]], [[1]]),
    ("x.masked_fill(x != x, 0.)", [[nan, 1]], [[0, 1]]),
]
