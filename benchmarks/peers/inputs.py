"""The inputs of the rows of `programs.py`, as arrays."""

from __future__ import annotations

import numpy as np

from peers import FLOATS
from programs import drawn, values, whole_numbers

LAYERS = (784, 512), (512, 512), (512, 10)


def small() -> tuple[np.ndarray, ...]:
    return values(10), values(10, seed=1), values(10, mean=0.1, seed=2)


def large() -> tuple[np.ndarray, ...]:
    return values(1_000_000, spread=0.3), values(1_000_000, spread=0.3, seed=1)


def softmax() -> tuple[np.ndarray, ...]:
    return values(256, 1024, spread=1), values(256, 1024, spread=1, seed=1)


def weighted(*shape: int) -> tuple[np.ndarray, ...]:
    return values(*shape, mean=0, spread=1), values(*shape, mean=0, spread=1, seed=9)


def norm() -> tuple[np.ndarray, ...]:
    x, w = weighted(4096, 1024)
    return x, values(1024), values(1024, mean=0), w


def entropy() -> tuple[np.ndarray, ...]:
    return values(4096, 1024, mean=0, spread=1), whole_numbers(1024, 4096)


def pond(size: int) -> tuple[np.ndarray, ...]:
    """The heights at the start, and where the floats are, counted along the rows."""
    return values(size - 2, size - 2, mean=0, spread=0.1), whole_numbers(size * size, FLOATS)


def mlp() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Weights (out, in) and biases in turn, the data, and the classes."""
    shapes = [shape for inside, outside in LAYERS for shape in ((outside, inside), (outside,))]
    return drawn(shapes), values(128, 784, mean=0, spread=1), whole_numbers(10, 128)
