"""Convolutions of numbers that are not finite: one kernel element at a time, and only where it lies inside the image.

The fast ways multiply what lies outside, which is zero, as well; a weight or an adjoint that is infinite there would
make a nan of it. Here no such product is made, as in PyTorch.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from ...arrays import np
from ...base.operands import Array
from .sliding import EVERY, Sizes

Index = tuple[Any, ...]


def _inside(size: int, stride: int, before: int, out: int) -> tuple[slice, slice]:
    """The positions of an image that a kernel element meets, `before` of them before the image, and their results."""
    low = max(-(-before // stride), 0)
    high = max(min((size - 1 + before) // stride + 1, out), low)
    first = low * stride - before
    return slice(first, first + (high - low - 1) * stride + 1 if high > low else first, stride), slice(low, high)


def _elements(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Iterator[
        tuple[Index, Index, Index]]:
    """For each kernel element an index of it, of what it meets in images, and of the results that go by it."""
    for at in product(*map(range, kernel)):
        met = [_inside(n, s, p - k * d, o) for n, s, p, k, d, o in zip(size, stride, padding, at, dilation, out)]
        yield (Ellipsis, *at), EVERY + tuple(m[0] for m in met), EVERY + tuple(m[1] for m in met)


def _by_group(images: Array, groups: int) -> Any:
    """(samples, groups, channels, positions)"""
    n, c = images.shape[:2]
    return np.ascontiguousarray(images).reshape(n, groups, c // groups, -1)


def conv(x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, out: Sizes) -> Any:
    o, c, *kernel = weight.shape
    found = np.zeros((len(x), o, *out), x.dtype)
    for element, seen, results in _elements(x.shape[2:], tuple(kernel), stride, padding, dilation, out):
        part = np.matmul(weight[element].reshape(groups, o // groups, c), _by_group(x[seen], groups))
        found[results] += part.reshape(found[results].shape)
    return found


def conv_transpose(g: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                   groups: int) -> Any:
    o, c, *kernel = weight.shape
    found = np.zeros((len(g), c * groups, *size), g.dtype)
    for element, seen, results in _elements(size, tuple(kernel), stride, padding, dilation, g.shape[2:]):
        matrix = weight[element].reshape(groups, o // groups, c).swapaxes(1, 2)
        found[seen] += np.matmul(matrix, _by_group(g[results], groups)).reshape(found[seen].shape)
    return found


def conv_weight(g: Array, x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    o, c = g.shape[1], x.shape[1] // groups
    found = np.zeros((o, c, *kernel), x.dtype)
    for element, seen, results in _elements(x.shape[2:], kernel, stride, padding, dilation, g.shape[2:]):
        rows = _by_group(x[seen], groups).swapaxes(2, 3)
        found[element] = np.add.reduce(np.matmul(_by_group(g[results], groups), rows), 0).reshape(o, c)
    return found
