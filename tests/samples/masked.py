"""Samples of mutagrad.masked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Array, P, R, along, op

MASK = np.random.default_rng(5).random((5, 7)) < 0.6
MASK[:, 2] = MASK[1] = True
ROW = MASK[0]


def filled(f: Callable[..., Any], value: float) -> Callable[..., Any]:
    """A function of NumPy's, with `value` where the mask does not hold."""
    return lambda x, *arguments, mask=None, **settings: f(x if mask is None else np.where(mask, x, value), *arguments, **settings)


def missing(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's that ignores nan."""
    return filled(along(f), np.nan)


inf = float("inf")
for name, ref in (
    ("sum", filled(along(np.sum), 0)), ("prod", filled(along(np.prod), 1)), ("amax", filled(along(np.max), -inf)), ("amin", filled(along(np.min), inf)),
    ("mean", missing(np.nanmean)), ("var", missing(lambda x, **s: np.nanvar(x, ddof=1, **s))), ("std", missing(lambda x, **s: np.nanstd(x, ddof=1, **s))),
    ("logsumexp", filled(along(lambda x, **s: np.log(np.sum(np.exp(x), **s))), -inf)),
):
    op(f"masked.{name}", R(5, 7), dim=1, mask=MASK, ref=ref, ties=True)
    op(f"masked.{name}", R(5, 7), mask=ROW, ref=ref, ties=True)
op("masked.var", R(5, 7), dim=0, correction=0, keepdim=True, ref=lambda x, dim, correction, keepdim: x.var(dim, keepdims=keepdim))
op("masked.argmax", R(5, 7), dim=1, mask=MASK, ref=filled(lambda x, dim: np.argmax(x, dim).astype(x.dtype), -inf), grad=False)
op("masked.argmin", R(5, 7), dim=1, mask=MASK, ref=filled(lambda x, dim: np.argmin(x, dim).astype(x.dtype), inf), grad=False)
op("masked.cumsum", R(5, 7), 1, mask=MASK, ref=filled(np.cumsum, 0))
op("masked.cumprod", R(5, 7), 1, mask=MASK, ref=filled(np.cumprod, 1))


def median(x: Array, dim: int = -1) -> Array:
    """The lower one of two."""
    return np.apply_along_axis(lambda row: np.sort(row)[(np.isfinite(row).sum() - 1) // 2], dim, x)


def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x)
    return e / e.sum(dim, keepdims=True)


def norm(x: Array, ord: float, dim: int) -> Array:
    return (np.abs(x)**ord).sum(dim)**(1 / ord)


op("masked.median", R(5, 7), dim=1, mask=MASK, ref=filled(median, np.nan), ties=True)
op("masked.softmax", R(5, 7), 1, mask=MASK, ref=filled(softmax, -inf))
op("masked.log_softmax", R(5, 7), 1, ref=lambda x, dim: np.log(softmax(x, dim)))
op("masked.softmin", R(5, 7), 1, mask=MASK, ref=filled(lambda x, dim: softmax(-x, dim), inf))
op("masked.norm", R(5, 7), 3.0, 1, mask=MASK, ref=filled(norm, 0), ties=True)
op("masked.normalize", R(5, 7), 3.0, 1, mask=MASK, ref=filled(lambda x, ord, dim: x / norm(x, ord, dim)[:, None], 0), ties=True)
op("masked.logaddexp", R(5, 7), R(5, 7), input_mask=MASK, ref=lambda x, y, input_mask: np.logaddexp(np.where(input_mask, x, -inf), y))
op("masked.prod", P(5, 7), dim=0, ref=along(np.prod))
