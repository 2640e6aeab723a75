"""The ponds in NVIDIA Warp.

Kernels are launched on a `Tape`. Its manual warns of arrays that are overwritten before the backward pass, so each time step
has arrays of its own; they are allocated once, and `Tape.zero` clears their gradients.
"""

from typing import Any

import numpy as np
import warp as wp

from peers import FLOATS, SPEED_SQUARED, SPRING, Run, inputs, rows

wp.config.log_level = wp.LOG_WARNING
wp.set_device("cpu")


@wp.kernel
def begin(start: wp.array2d[float], height: wp.array2d[float]):
    i, j = wp.tid()
    height[i + 1, j + 1] = start[i, j]


@wp.kernel
def move(height: wp.array2d[float], speed: wp.array2d[float], next_height: wp.array2d[float], next_speed: wp.array2d[float]):
    row, column = wp.tid()
    i, j = row + 1, column + 1
    inside = height[i, j]
    around = height[i - 1, j] + height[i + 1, j] + height[i, j - 1] + height[i, j + 1]
    pushed = speed[row, column] + SPEED_SQUARED * (around - 4.0 * inside) - SPRING * inside * inside * inside
    next_speed[row, column] = pushed
    next_height[i, j] = inside + pushed


@wp.kernel
def look(height: wp.array2d[float], floats: wp.array2d[int], loss: wp.array[float]):
    k = wp.tid()
    seen = height[floats[k, 0], floats[k, 1]]
    wp.atomic_add(loss, 0, seen * seen)


def pond(lib: Any, size: int, times: int) -> Run:
    begins, places = inputs.pond(size)
    start = wp.array(begins, dtype=float, requires_grad=True)
    floats = wp.array(np.stack([places // size, places % size], 1), dtype=int)
    heights = [wp.zeros((size, size), dtype=float, requires_grad=True) for _ in range(times + 1)]
    speeds = [wp.zeros(begins.shape, dtype=float, requires_grad=True) for _ in range(times + 1)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def simulate() -> None:
        wp.launch(begin, dim=begins.shape, inputs=[start], outputs=[heights[0]])
        for t in range(times):
            wp.launch(move, dim=begins.shape, inputs=[heights[t], speeds[t]], outputs=[heights[t + 1], speeds[t + 1]])
            wp.launch(look, dim=FLOATS, inputs=[heights[t + 1], floats], outputs=[loss])

    def run() -> Any:
        tape = wp.Tape()
        loss.zero_()
        with tape:
            simulate()
        tape.backward(loss)
        gradient = wp.clone(start.grad)
        tape.zero()
        return gradient

    return run


ROWS = rows(pond=pond)
