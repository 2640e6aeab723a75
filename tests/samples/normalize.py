"""Samples of normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, P, R, elsewhere, op


def standard(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + eps)


def affine(x: Array, weight: Any, bias: Any, shape: tuple[int, ...]) -> Array:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def layer(x: Array, shape: tuple[int, ...], weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Array:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return affine(standard(x, axes, eps), weight, bias, shape)


def root_mean_square(x: Array, shape: tuple[int, ...], weight: Any = None, eps: Any = None) -> Array:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    scale = 1 / np.sqrt((x * x).mean(axes, keepdims=True) + (np.finfo(x.dtype).eps if eps is None else eps))
    return affine(x * scale, weight, None, shape)


def channels(x: Array) -> tuple[int, ...]:
    return (1, x.shape[1], *[1] * (x.ndim - 2))


def group(x: Array, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Array:
    rows = x.reshape(x.shape[0], num_groups, -1)
    return affine(standard(rows, (2,), eps).reshape(x.shape), weight, bias, channels(x))


def instance(x: Array, mean: Any = None, var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True, eps: float = 1e-5) -> Array:
    return group(x, x.shape[1], weight, bias, eps) if use_input_stats else batch(x, mean, var, weight, bias, False, eps=eps)


def batch(x: Array, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False, eps: float = 1e-5) -> Array:
    axes, shape = (0, *range(2, x.ndim)), channels(x)
    normal = standard(x, axes, eps) if training else (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return affine(normal, weight, bias, shape)


def response(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    padded = np.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    mean = sum(padded[:, i:i + x.shape[1]] for i in range(size)) / size
    return x / (mean * alpha + k) ** beta


op("nn.functional.layer_norm", R(5, 7), (7,), ref=layer)
op("nn.functional.layer_norm", R(5, 7), (7,), R(7), R(7), ref=layer)
op("nn.functional.layer_norm", R(3, 4, 5), (4, 5), R(4, 5), R(4, 5), 0.1, ref=layer)
op("nn.functional.layer_norm", R(3, 4, 5), (5,), R(5), ref=layer)
op("nn.functional.layer_norm", R(2, 3, 4), (4,), bias=R(4), ref=layer)
op("nn.functional.layer_norm", R(0, 3), (3,), R(3), R(3), ref=layer)
op("layer_norm", R(5, 7), (7,), R(7), R(7), ref=layer)
op("nn.functional.rms_norm", R(5, 7), (7,), ref=root_mean_square)
op("nn.functional.rms_norm", R(5, 7), (7,), R(7), ref=root_mean_square, complex=True)
op("nn.functional.rms_norm", R(3, 4, 5), (4, 5), R(4, 5), 0.1, ref=root_mean_square)
op("rms_norm", R(5, 7), (7,), R(7), ref=root_mean_square)
op("nn.functional.group_norm", R(3, 4, 5), 2, ref=group)
op("nn.functional.group_norm", R(3, 4, 5), 2, R(4), R(4), ref=group)
op("nn.functional.group_norm", R(2, 6, 2, 2), 3, R(6), R(6), 0.1, ref=group)
op("nn.functional.group_norm", R(5, 8), 2, R(8), ref=group)
op("group_norm", R(3, 4, 5), 4, bias=R(4), ref=group)
op("nn.functional.instance_norm", R(3, 4, 5), ref=instance)
op("nn.functional.instance_norm", R(2, 3, 3, 2), weight=R(3), bias=R(3), eps=0.1, ref=lambda x, weight, bias, eps: instance(x, None, None, weight, bias, eps=eps))
MEAN, VARIANCE = np.linspace(-1, 1, 4), np.linspace(0.5, 2, 4)
op("nn.functional.instance_norm", R(3, 4, 5), MEAN, VARIANCE, R(4), R(4), False, ref=instance)
op("nn.functional.batch_norm", R(9, 4), None, None, training=True, ref=batch)
op("nn.functional.batch_norm", R(9, 4), None, None, R(4), R(4), True, ref=batch)
op("nn.functional.batch_norm", R(3, 4, 5), None, None, R(4), R(4), True, eps=0.1, ref=batch)
op("nn.functional.batch_norm", R(3, 4, 2, 2), None, None, R(4), training=True, ref=batch)
op("nn.functional.batch_norm", R(3, 4, 5), MEAN, VARIANCE, R(4), R(4), ref=batch)
op("nn.functional.batch_norm", R(9, 4), MEAN, VARIANCE, ref=batch)
op("nn.functional.local_response_norm", R(2, 5, 4), 3, 0.5, ref=response)
op("nn.functional.local_response_norm", P(2, 4, 2, 2), 2, 0.5, 0.5, 2.0, ref=response)

elsewhere("native_batch_norm native_layer_norm")  # tests/ops/test_normalize.py
