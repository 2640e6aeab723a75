"""Convolutions, their transposes, and columns of windows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .base import Array, R, op


def tuple_of(value: Any, n: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def bordered(x: Array, before: tuple[int, ...], after: tuple[int, ...], value: Any = 0) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *zip(before, after)], constant_values=value)


def seen(x: Array, at: tuple[int, ...], stride: tuple[int, ...], out: tuple[int, ...]) -> Array:
    """What the kernel element at `at` sees of every image."""
    return x[(..., *(slice(i, i + s * (o - 1) + 1, s) for i, s, o in zip(at, stride, out)))]


def conv(x: Array, w: Array, b: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Array:
    n = w.ndim - 2
    if x.ndim == n + 1:
        return conv(x[None], w, b, stride, padding, dilation, groups)[0]
    stride, dilation, kernel = tuple_of(stride, n), tuple_of(dilation, n), w.shape[2:]
    extent = tuple(d * (k - 1) for d, k in zip(dilation, kernel))
    before = tuple(e // 2 for e in extent) if padding == "same" else (0,) * n if padding == "valid" else tuple_of(padding, n)
    after = tuple(e - e // 2 for e in extent) if padding == "same" else before
    x = bordered(x, before, after)
    out = tuple((m - e - 1) // s + 1 for m, e, s in zip(x.shape[2:], extent, stride))
    x = x.reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    total: Any = 0
    for k in product(*map(range, kernel)):
        part = seen(x, tuple(d * i for d, i in zip(dilation, k)), stride, out)
        total = total + np.einsum("ngc...,goc->ngo...", part, w[(..., *k)])
    total = total.reshape(len(x), w.shape[0] * w.shape[1], *out)
    return total if b is None else total + b.reshape(-1, *(1,) * n)


def conv_transpose(x: Array, w: Array, b: Array | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                   dilation: Any = 1) -> Array:
    n = w.ndim - 2
    if x.ndim == n + 1:
        return conv_transpose(x[None], w, b, stride, padding, output_padding, groups, dilation)[0]
    stride, padding, extra, dilation = (tuple_of(v, n) for v in (stride, padding, output_padding, dilation))
    size = tuple((m - 1) * s + d * (k - 1) + 1 + e for m, s, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra))
    parts = x.reshape(len(x), groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    image = np.zeros((len(x), groups, w.shape[2], *size), np.result_type(x, w))
    for k in product(*map(range, w.shape[3:])):
        place = seen(image, tuple(d * i for d, i in zip(dilation, k)), stride, x.shape[2:])
        place += np.einsum("ngo...,goc->ngc...", parts, w[(..., *k)])
    image = image.reshape(len(x), -1, *size)[(..., *(slice(p, m - p) for p, m in zip(padding, size)))]
    return image if b is None else image + b.reshape(-1, *(1,) * n)


def columns(x: Array, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    if x.ndim == 3:
        return columns(x[None], kernel, dilation, padding, stride)[0]
    kernel, dilation, padding, stride = (tuple_of(v, 2) for v in (kernel, dilation, padding, stride))
    x = bordered(x, padding, padding)
    out = tuple((m - d * (k - 1) - 1) // s + 1 for m, d, k, s in zip(x.shape[2:], dilation, kernel, stride))
    parts = [seen(x, tuple(d * i for d, i in zip(dilation, k)), stride, out) for k in product(*map(range, kernel))]
    return np.stack(parts, 2).reshape(len(x), -1, out[0] * out[1])


def from_columns(y: Array, size: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """The transpose, by the matrix of it."""
    if y.ndim == 2:
        return from_columns(y[None], size, kernel, dilation, padding, stride)[0]
    size, kernel = tuple_of(size, 2), tuple_of(kernel, 2)
    area, c = size[0] * size[1], y.shape[1] // (kernel[0] * kernel[1])
    matrix = columns(np.eye(area).reshape(area, 1, *size), kernel, dilation, padding, stride).reshape(area, -1)
    return (y.reshape(len(y) * c, -1) @ matrix.T).reshape(len(y), c, *size)


op("conv1d", R(2, 3, 9), R(4, 3, 3), ref=conv, complex=True)
op("conv1d", R(2, 4, 9), R(6, 2, 2), R(6), 2, 1, 2, 2, ref=conv)
op("conv1d", R(3, 11), R(2, 3, 4), padding="same", ref=conv)
op("conv2d", R(2, 3, 6, 5), R(4, 3, 3, 2), R(4), padding=(1, 0), ref=conv, complex=True)
op("conv2d", R(2, 4, 7, 6), R(4, 2, 2, 3), None, (2, 1), 1, (1, 2), 2, ref=conv)
op("conv2d", R(2, 3, 4, 5), R(5, 3, 1, 1), R(5), ref=conv)
op("conv2d", R(2, 3, 6, 4), R(3, 1, 3, 3), groups=3, padding="valid", ref=conv)
op("conv2d", R(2, 5, 5), R(3, 2, 4, 4), R(3), padding="same", ref=conv, note=" unbatched")
op("conv2d", R(2, 2, 3, 3), R(2, 2, 5, 5), padding=3, ref=conv, note=" mostly border")
op("conv2d", R(0, 3, 5, 5), R(2, 3, 3, 3), R(2), ref=conv, note=" no samples")
op("conv3d", R(2, 2, 4, 3, 5), R(3, 2, 2, 2, 3), R(3), ref=conv)
op("conv3d", R(2, 5, 3, 4), R(2, 1, 3, 1, 2), stride=(2, 1, 2), padding=(1, 0, 1), groups=2, ref=conv)
op("conv_transpose1d", R(2, 3, 5), R(3, 2, 3), R(2), stride=2, output_padding=1, ref=conv_transpose)
op("conv_transpose1d", R(4, 5), R(4, 3, 2), dilation=3, output_padding=2, groups=2, ref=conv_transpose)
op("conv_transpose2d", R(2, 3, 4, 3), R(3, 2, 2, 3), R(2), ref=conv_transpose, complex=True)
op("conv_transpose2d", R(2, 4, 3, 4), R(4, 2, 3, 3), None, (2, 3), (1, 0), (1, 2), 2, (1, 2), ref=conv_transpose)
op("conv_transpose3d", R(2, 2, 3, 2, 3), R(2, 2, 2, 3, 2), R(2), stride=(1, 2, 1), padding=(1, 1, 0), ref=conv_transpose)
op("nn.functional.unfold", R(2, 2, 5, 4), 3, padding=1, ref=columns)
op("nn.functional.unfold", R(3, 6, 5), (2, 3), dilation=(2, 1), stride=(1, 2), ref=columns)
op("nn.functional.fold", R(2, 12, 9), (5, 4), (3, 2), ref=from_columns)
op("nn.functional.fold", R(8, 15), 5, 2, dilation=2, padding=1, stride=(2, 1), ref=from_columns)
