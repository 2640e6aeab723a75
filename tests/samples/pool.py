"""Pooling."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .base import Array, R, elsewhere, op
from .conv import bordered, seen, tuple_of


def in_windows(x: Array, n: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, value: float) -> tuple[Array, Array]:
    """What lies in every window, as a new last dimension, and the flat positions of it (-1 in the border)."""
    kernel, padding, dilation = tuple_of(kernel, n), tuple_of(padding, n), tuple_of(dilation, n)
    stride = kernel if stride is None else tuple_of(stride, n)
    size = x.shape[2:]
    out = []
    for m, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        room = m + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        out.append(count - 1 if ceil_mode and (count - 1) * s >= m + p else count)
    after = tuple(max((o - 1) * s + d * (k - 1) + 1 - m - p, 0) for o, s, d, k, m, p in zip(out, stride, dilation, kernel, size, padding))
    places = np.arange(np.prod(size)).reshape(1, 1, *size)
    wide, at = bordered(x, padding, after, value), bordered(places, padding, after, -1)
    steps = [tuple(d * i for d, i in zip(dilation, k)) for k in product(*map(range, kernel))]
    return tuple(np.stack([seen(a, step, stride, tuple(out)) for step in steps], -1) for a in (wide, at))


def largest(n: int, with_indices: bool = False) -> Any:
    def ref(x: Array, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = with_indices) -> Any:
        if x.ndim == n + 1:
            found = ref(x[None], kernel, stride, padding, dilation, ceil_mode, return_indices)
            return tuple(f[0] for f in found) if return_indices else found[0]
        values, at = in_windows(x, n, kernel, stride, padding, dilation, ceil_mode, -np.inf)
        best = values.argmax(-1)[..., None]
        found = np.take_along_axis(values, best, -1)[..., 0]
        return (found, np.take_along_axis(np.broadcast_to(at, values.shape), best, -1)[..., 0]) if return_indices else found

    return ref


def average(n: int) -> Any:
    def ref(x: Array, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
            divisor_override: Any = None) -> Array:
        if x.ndim == n + 1:
            return ref(x[None], kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)[0]
        values = in_windows(x, n, kernel, stride, padding, 1, ceil_mode, 0)[0]
        area, border = x[:1, :1] * 0 + 1, tuple_of(padding, n)
        counted = in_windows(bordered(area, border, border, 1 if count_include_pad else 0), n, kernel, stride, 0, 1, ceil_mode, 0)[0]
        counted = counted[(slice(None), slice(None), *(slice(m) for m in values.shape[2:-1]))]
        return values.sum(-1) / (divisor_override or counted.sum(-1))

    return ref


def adaptive(n: int, f: Any) -> Any:
    """`f` of each of so many windows of nearly equal size."""
    def ref(x: Array, sizes: Any, **settings: Any) -> Array:
        sizes = [m if s is None else s for s, m in zip(tuple_of(sizes, n), x.shape[-n:])]
        out = np.empty((*x.shape[:-n], *sizes), x.dtype)
        for at in product(*map(range, sizes)):
            window = tuple(slice(i * m // s, -(-(i + 1) * m // s)) for i, m, s in zip(at, x.shape[-n:], sizes))
            out[(..., *at)] = f(x[(..., *window)], tuple(range(-n, 0)))
        return out

    return ref


def with_positions(ref: Any, n: int) -> Any:
    """Also where in the flat image each result is: the only place with its value."""
    def both(x: Array, *arguments: Any, return_indices: bool = True) -> Any:
        found = ref(x, *arguments)
        flat = x.reshape(*x.shape[:-n], *(1,) * n, -1)
        return found, (flat == found[..., None]).argmax(-1)

    return both


def norm(n: int) -> Any:
    def ref(x: Array, p: float, kernel: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
        size = np.prod(tuple_of(kernel, n))
        if p == float("inf"):
            return largest(n)(np.abs(x), kernel, stride, 0, 1, ceil_mode)
        return (average(n)(x**p, kernel, stride, 0, ceil_mode) * size) ** (1 / p)

    return ref


def unpooled(n: int) -> Any:
    def ref(x: Array, at: Array, kernel: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Array:
        size = output_size or tuple((m - 1) * k + k for m, k in zip(x.shape[-n:], tuple_of(kernel, n)))
        out = np.zeros((*x.shape[:-n], np.prod(size)), x.dtype)
        np.put_along_axis(out, at.reshape(*x.shape[:-n], -1), x.reshape(*x.shape[:-n], -1), -1)
        return out.reshape(*x.shape[:-n], *size)

    return ref


def places(n: int, *shape: int) -> Array:
    return largest(n, True)(np.random.default_rng(0).normal(size=shape), 2)[1]


op("max_pool1d", R(2, 3, 9), 2, ref=largest(1), ties=True)
op("max_pool1d", R(3, 12), 3, 2, 1, 2, True, ref=largest(1), ties=True)
op("max_pool1d_with_indices", R(2, 3, 9), 3, stride=2, padding=1, ref=largest(1, True), ties=True)
op("max_pool2d", R(2, 3, 6, 4), 2, ref=largest(2), ties=True)
op("max_pool2d", R(2, 2, 7, 6), (3, 2), (2, 1), 1, ceil_mode=True, ref=largest(2), ties=True)
op("max_pool2d", R(3, 6, 7), 3, padding=1, dilation=2, return_indices=True, ref=largest(2), ties=True)
op("nn.functional.max_pool2d_with_indices", R(2, 2, 5, 5), 3, 1, ref=largest(2, True), ties=True)
op("max_pool3d", R(2, 2, 4, 3, 5), 2, stride=1, ref=largest(3), ties=True)
op("nn.functional.max_pool3d_with_indices", R(2, 4, 4, 4), 2, ref=largest(3, True), ties=True)
op("avg_pool1d", R(2, 3, 9), 2, ref=average(1))
op("avg_pool1d", R(3, 10), 3, 2, 1, True, False, ref=average(1))
op("nn.functional.avg_pool2d", R(2, 2, 6, 5), 3, 2, 1, ref=average(2))
op("nn.functional.avg_pool2d", R(2, 7, 6), (3, 2), ceil_mode=True, count_include_pad=False, ref=average(2))
op("nn.functional.avg_pool2d", R(2, 2, 5, 5), 2, 1, divisor_override=3, ref=average(2))
op("nn.functional.avg_pool3d", R(2, 2, 3, 4, 3), 2, 1, 1, count_include_pad=False, ref=average(3))
op("adaptive_avg_pool1d", R(2, 3, 7), 3, ref=adaptive(1, np.mean))
op("nn.functional.adaptive_avg_pool2d", R(2, 3, 5, 6), (2, 4), ref=adaptive(2, np.mean))
op("nn.functional.adaptive_avg_pool2d", R(2, 3, 5, 6), 1, ref=adaptive(2, np.mean))
op("nn.functional.adaptive_avg_pool3d", R(2, 4, 3, 5), (2, None, 3), ref=adaptive(3, np.mean))
op("nn.functional.adaptive_max_pool1d", R(2, 3, 7), 3, ref=adaptive(1, np.max), ties=True)
op("nn.functional.adaptive_max_pool2d", R(2, 3, 5, 6), (2, 4), return_indices=True, ref=with_positions(adaptive(2, np.max), 2), ties=True)
op("nn.functional.adaptive_max_pool3d", R(2, 4, 3, 5), 2, ref=adaptive(3, np.max), ties=True)
op("nn.functional.adaptive_max_pool1d_with_indices", R(3, 12), 5, ref=with_positions(adaptive(1, np.max), 1), ties=True)
op("nn.functional.adaptive_max_pool2d_with_indices", R(2, 5, 6), 3, ref=with_positions(adaptive(2, np.max), 2), ties=True)
op("nn.functional.adaptive_max_pool3d_with_indices", R(2, 4, 3, 5), 2, ref=with_positions(adaptive(3, np.max), 3), ties=True)
op("nn.functional.lp_pool1d", R(2, 3, 9), 2, 3, ref=norm(1))
op("nn.functional.lp_pool2d", R(2, 2, 5, 5), 4.0, 2, stride=1, ref=norm(2))
op("nn.functional.lp_pool2d", R(2, 2, 5, 5), float("inf"), 2, ref=norm(2), ties=True)
op("nn.functional.lp_pool3d", R(2, 3, 4, 4), 2, (1, 2, 2), ref=norm(3))
op("nn.functional.max_unpool1d", R(2, 9, 3), places(1, 2, 9, 6), 2, ref=unpooled(1))
op("nn.functional.max_unpool2d", R(2, 5, 2, 2), places(2, 2, 5, 5, 4), 2, output_size=(5, 4), ref=unpooled(2))
op("nn.functional.max_unpool3d", R(3, 2, 2, 3), places(3, 3, 4, 4, 6), 2, ref=unpooled(3))
elsewhere("""nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool2d_with_indices nn.functional.fractional_max_pool3d
    nn.functional.fractional_max_pool3d_with_indices""")
