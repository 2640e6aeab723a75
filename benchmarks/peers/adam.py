"""Adam on NumPy arrays, for libraries that have gradients but no optimizer that makes one step."""

from __future__ import annotations

import numpy as np

from peers import BETA1, BETA2, EPSILON
from programs import RATE


class Adam:
    """Changes `parameters` in place."""

    def __init__(self, parameters: list[np.ndarray]) -> None:
        self.parameters, self.count = parameters, 0
        self.means, self.squares = ([np.zeros_like(p) for p in parameters] for _ in range(2))

    def step(self, grads: list[np.ndarray]) -> None:
        self.count += 1
        first, second = 1 - BETA1**self.count, 1 - BETA2**self.count
        for p, g, m, v in zip(self.parameters, grads, self.means, self.squares, strict=True):
            m *= BETA1
            m += (1 - BETA1) * g
            v *= BETA2
            v += (1 - BETA2) * g * g
            p -= RATE / first * m / (np.sqrt(v / second) + EPSILON)
