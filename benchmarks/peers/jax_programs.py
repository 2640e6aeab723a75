"""The programs in JAX, compiled or not: `table(compiled)`.

Compiled, a function is under `jax.jit` and its loops are `lax.scan`; otherwise loops are Python's, and every operation is
dispatched by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from peers import BETA1, BETA2, EPSILON, SPEED_SQUARED, SPRING, Program, Run, inputs, rows
from programs import RATE, values


def table(compiled: bool) -> dict[str, Program]:
    finish = jax.jit if compiled else lambda f: f

    def gradient(loss: Callable[..., Any], arrays: Any, wanted: int, shown: int = 0) -> Run:
        """A run that computes the gradients of the first `wanted` arrays, and returns one of them."""
        given = [jnp.asarray(a) for a in arrays]
        function = finish(jax.grad(loss, argnums=tuple(range(wanted))))
        return lambda: jax.block_until_ready(function(*given))[shown]

    def small_mix(lib: Any) -> Run:
        def loss(x: Any, w: Any, b: Any) -> Any:
            for _ in range(50):
                x = jnp.tanh(jnp.exp(jnp.sin(x * w + b)) * 0.3)
            return x.sum()

        return gradient(loss, inputs.small(), 3, 1)

    def writes_10k(lib: Any) -> Run:
        def scanned(x: Any) -> Any:
            def add(before: Any, value: Any) -> Any:
                return (before + value,) * 2

            return jax.lax.scan(add, jnp.float32(0), x)[1].sum()

        def looped(y: Any) -> Any:
            for i in range(1, 10_000):
                y = y.at[i].add(y[i - 1])
            return y.sum()

        return gradient(scanned if compiled else looped, [values(10_000, mean=0.0)], 1)

    def reads_10k(lib: Any) -> Run:
        def scanned(x: Any) -> Any:
            return jax.lax.scan(lambda total, value: (total + value, None), jnp.float32(0), x)[0]

        def looped(x: Any) -> Any:
            total = x[0]
            for i in range(1, 10_000):
                total = total + x[i]
            return total

        return gradient(scanned if compiled else looped, [values(10_000)], 1)

    def pond(lib: Any, size: int, times: int) -> Run:
        start, floats = inputs.pond(size)

        def step(state: Any, _: Any) -> Any:
            height, speed = state
            inside = height[1:-1, 1:-1]
            around = height[:-2, 1:-1] + height[2:, 1:-1] + height[1:-1, :-2] + height[1:-1, 2:]
            speed = speed + SPEED_SQUARED * (around - 4 * inside) - SPRING * inside**3
            height = height.at[1:-1, 1:-1].add(speed)
            return (height, speed), height.reshape(-1)[floats]

        def loop(state: Any) -> Any:
            record = []
            for _ in range(times):
                state, seen = step(state, None)
                record.append(seen)
            return jnp.stack(record)

        def loss(start: Any) -> Any:
            state = jnp.pad(start, 1), jnp.zeros_like(start)
            record = jax.lax.scan(step, state, None, length=times)[1] if compiled else loop(state)
            return (record**2).sum()

        return gradient(loss, [start], 1)

    def large_mix(lib: Any) -> Run:
        def loss(x: Any, w: Any) -> Any:
            h = jnp.sin(x * w + 0.5)
            h = jnp.tanh(jnp.exp(h * 0.5) - w)
            return (h * x + w).sum()

        return gradient(loss, inputs.large(), 2, 1)

    def softmax(lib: Any) -> Run:
        return gradient(lambda x, w: (jax.nn.softmax(x, -1) * w).sum(), inputs.softmax(), 2, 1)

    def layer_norm(lib: Any) -> Run:
        def loss(x: Any, scale: Any, shift: Any, w: Any) -> Any:
            mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
            return (((x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift) * w).sum()

        return gradient(loss, inputs.norm(), 3)

    def cross_entropy(lib: Any) -> Run:
        return gradient(mean_entropy, inputs.entropy(), 1)

    def gelu(lib: Any) -> Run:
        return gradient(lambda x, w: (jax.nn.gelu(x, approximate=False) * w).sum(), inputs.weighted(1_000_000), 1)

    def train_mlp(lib: Any) -> Run:
        parameters, x, target = inputs.mlp()
        x, target = jnp.asarray(x), jnp.asarray(target)
        state = [jnp.asarray(p) for p in parameters], *([jnp.zeros_like(p) for p in parameters] for _ in range(2)), jnp.float32(0)
        step = jax.jit(adam_step, donate_argnums=0) if compiled else adam_step

        def run() -> Any:
            nonlocal state
            state, grads = jax.block_until_ready(step(state, x, target))
            return grads[0]

        return run

    return rows(small_mix, writes_10k, reads_10k, large_mix, softmax, layer_norm, cross_entropy, gelu, train_mlp, pond=pond)


def mean_entropy(x: Any, target: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x), target[:, None], 1).mean()


def mlp_loss(parameters: list[Any], x: Any, target: Any) -> Any:
    *hidden, last = zip(parameters[::2], parameters[1::2], strict=True)
    for w, b in hidden:
        x = jax.nn.relu(x @ w.T + b)
    return mean_entropy(x @ last[0].T + last[1], target)


def adam_step(state: Any, x: Any, target: Any) -> Any:
    parameters, means, squares, count = state
    grads = jax.grad(mlp_loss)(parameters, x, target)
    count = count + 1
    means = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, grads)
    squares = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, squares, grads)
    update = partial(adam_update, 1 - BETA1**count, 1 - BETA2**count)
    return (jax.tree.map(update, parameters, means, squares), means, squares, count), grads


def adam_update(first: Any, second: Any, p: Any, m: Any, v: Any) -> Any:
    return p - RATE * (m / first) / (jnp.sqrt(v / second) + EPSILON)
