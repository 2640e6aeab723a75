"""The programs in HIPS autograd, which has no assignment to elements: what is written in place elsewhere is a list here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as np
from autograd.scipy.special import erf, logsumexp

from autograd import grad
from peers import SPEED_SQUARED, SPRING, Run, inputs, rows
from peers.adam import Adam
from programs import values


def gradient(loss: Callable[..., Any], arrays: Any, wanted: int, shown: int = 0) -> Run:
    """A run that computes the gradients of the first `wanted` arrays, and returns one of them."""
    function = grad(loss, argnum=tuple(range(wanted)))
    return lambda: function(*arrays)[shown]


def small_mix(lib: Any) -> Run:
    def loss(x: Any, w: Any, b: Any) -> Any:
        for _ in range(50):
            x = np.tanh(np.exp(np.sin(x * w + b)) * 0.3)
        return np.sum(x)

    return gradient(loss, inputs.small(), 3, 1)


def writes_10k(lib: Any) -> Run:
    def loss(x: Any) -> Any:
        y = [x[0]]
        for i in range(1, 10_000):
            y.append(x[i] + y[i - 1])
        return np.sum(np.array(y))

    return gradient(loss, [values(10_000, mean=0.0)], 1)


def reads_10k(lib: Any) -> Run:
    def loss(x: Any) -> Any:
        total = x[0]
        for i in range(1, 10_000):
            total = total + x[i]
        return total

    return gradient(loss, [values(10_000)], 1)


def pond(lib: Any, size: int, times: int) -> Run:
    start, floats = inputs.pond(size)

    def loss(start: Any) -> Any:
        height, speed, record = np.pad(start, 1, "constant"), 0 * start, []
        for _ in range(times):
            inside = height[1:-1, 1:-1]
            around = height[:-2, 1:-1] + height[2:, 1:-1] + height[1:-1, :-2] + height[1:-1, 2:]
            speed = speed + SPEED_SQUARED * (around - 4 * inside) - SPRING * inside**3
            height = np.pad(inside + speed, 1, "constant")
            record.append(np.ravel(height)[floats])
        return np.sum(np.stack(record) ** 2)

    return gradient(loss, [start], 1)


def large_mix(lib: Any) -> Run:
    def loss(x: Any, w: Any) -> Any:
        h = np.sin(x * w + 0.5)
        h = np.tanh(np.exp(h * 0.5) - w)
        return np.sum(h * x + w)

    return gradient(loss, inputs.large(), 2, 1)


def softmax(lib: Any) -> Run:
    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.exp(x - logsumexp(x, axis=-1, keepdims=True)) * w)

    return gradient(loss, inputs.softmax(), 2, 1)


def layer_norm(lib: Any) -> Run:
    def loss(x: Any, scale: Any, shift: Any, w: Any) -> Any:
        normal = (x - np.mean(x, axis=-1, keepdims=True)) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)
        return np.sum((normal * scale + shift) * w)

    return gradient(loss, inputs.norm(), 3)


def mean_entropy(x: Any, target: Any) -> Any:
    return np.mean(logsumexp(x, axis=-1) - x[np.arange(len(target)), target])


def cross_entropy(lib: Any) -> Run:
    return gradient(mean_entropy, inputs.entropy(), 1)


def gelu(lib: Any) -> Run:
    def loss(x: Any, w: Any) -> Any:
        return np.sum(0.5 * x * (1 + erf(x * 0.5**0.5)) * w)

    return gradient(loss, inputs.weighted(1_000_000), 1)


def train_mlp(lib: Any) -> Run:
    parameters, x, target = inputs.mlp()
    adam = Adam(parameters)

    def loss(parameters: Any) -> Any:
        h = x
        for i in range(len(inputs.LAYERS)):
            h = np.dot(h, parameters[2 * i].T) + parameters[2 * i + 1]
            h = np.maximum(h, 0) if i + 1 < len(inputs.LAYERS) else h
        return mean_entropy(h, target)

    gradients = grad(loss)

    def run() -> Any:
        found = gradients(parameters)
        adam.step(found)
        return found[0]

    return run


ROWS = rows(small_mix, writes_10k, reads_10k, large_mix, softmax, layer_norm, cross_entropy, gelu, train_mlp, pond=pond)
