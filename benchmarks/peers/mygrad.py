"""The programs in MyGrad, which differentiates in-place operations as well: those rows are written as for mutagrad."""

from __future__ import annotations

from typing import Any

import mygrad as mg
import numpy as np
from mygrad.nnet.activations import relu, softmax as softmax_of
from mygrad.nnet.losses import softmax_crossentropy

from peers import SPEED_SQUARED, SPRING, Run, inputs, rows
from peers.adam import Adam
from programs import values


def small_mix(lib: Any) -> Run:
    x, w, b = map(mg.tensor, inputs.small())

    def run() -> Any:
        h = x
        for _ in range(50):
            h = mg.tanh(mg.exp(mg.sin(h * w + b)) * 0.3)
        h.sum().backward()
        return w.grad

    return run


def writes_10k(lib: Any) -> Run:
    x = mg.tensor(values(10_000, mean=0.0))

    def run() -> Any:
        y = +x
        for i in range(1, 10_000):
            y[i] = y[i] + y[i - 1]
        y.sum().backward()
        return x.grad

    return run


def reads_10k(lib: Any) -> Run:
    x = mg.tensor(values(10_000))

    def run() -> Any:
        s = x[0]
        for i in range(1, 10_000):
            s = s + x[i]
        s.backward()
        return x.grad

    return run


def pond(lib: Any, size: int, times: int) -> Run:
    begins, floats = inputs.pond(size)
    start = mg.tensor(begins)

    def run() -> Any:
        height, speed, record = mg.zeros((size, size), np.float32), mg.zeros(begins.shape, np.float32), []
        height[1:-1, 1:-1] = start
        for _ in range(times):
            inside = height[1:-1, 1:-1]
            around = height[:-2, 1:-1] + height[2:, 1:-1] + height[1:-1, :-2] + height[1:-1, 2:]
            speed += SPEED_SQUARED * (around - 4 * inside) - SPRING * inside**3
            height[1:-1, 1:-1] += speed
            record.append(height.reshape(-1)[floats])
        (mg.stack(record) ** 2).sum().backward()
        return start.grad

    return run


def large_mix(lib: Any) -> Run:
    x, w = map(mg.tensor, inputs.large())

    def run() -> Any:
        h = mg.sin(x * w + 0.5)
        h = mg.tanh(mg.exp(h * 0.5) - w)
        (h * x + w).sum().backward()
        return w.grad

    return run


def softmax(lib: Any) -> Run:
    x, w = map(mg.tensor, inputs.softmax())

    def run() -> Any:
        (softmax_of(x, axis=-1) * w).sum().backward()
        return w.grad

    return run


def layer_norm(lib: Any) -> Run:
    *arrays, w = inputs.norm()
    x, scale, shift = map(mg.tensor, arrays)

    def run() -> Any:
        normal = (x - x.mean(-1, keepdims=True)) / mg.sqrt(x.var(-1, keepdims=True) + 1e-5)
        ((normal * scale + shift) * w).sum().backward()
        return x.grad

    return run


def cross_entropy(lib: Any) -> Run:
    scores, target = inputs.entropy()
    x = mg.tensor(scores)

    def run() -> Any:
        softmax_crossentropy(x, target).backward()
        return x.grad

    return run


def train_mlp(lib: Any) -> Run:
    drawn, x, target = inputs.mlp()
    parameters = [mg.tensor(p) for p in drawn]
    adam = Adam([p.data for p in parameters])

    def run() -> Any:
        h = x
        for w, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            h = relu(h @ w.T + b)
        softmax_crossentropy(h @ parameters[-2].T + parameters[-1], target).backward()
        adam.step([p.grad for p in parameters])
        return parameters[0].grad

    return run


ROWS = rows(small_mix, writes_10k, reads_10k, large_mix, softmax, layer_norm, cross_entropy, train_mlp, pond=pond)
