"""The ponds in Taichi.

Kernels run inside `ti.ad.Tape`. Its rules allow no field to be overwritten that a derivative needs, so the fields have a
dimension for time, and the loop over time is Python's.
"""

import os
from typing import Any

import numpy as np
import taichi as ti

from peers import FLOATS, SPEED_SQUARED, SPRING, Run, inputs, rows


def pond(lib: Any, size: int, times: int) -> Run:
    ti.reset()
    ti.init(arch=ti.cpu, cpu_max_num_threads=int(os.environ["OMP_NUM_THREADS"]), default_fp=ti.f32, log_level=ti.WARN)
    begins, places = inputs.pond(size)
    start = ti.field(float, shape=begins.shape, needs_grad=True)
    height = ti.field(float, shape=(times + 1, size, size), needs_grad=True)
    speed = ti.field(float, shape=(times + 1, size, size), needs_grad=True)
    loss = ti.field(float, shape=(), needs_grad=True)
    floats = ti.Vector.field(2, int, shape=FLOATS)
    start.from_numpy(begins)
    floats.from_numpy(np.stack([places // size, places % size], 1).astype(np.int32))

    @ti.kernel
    def begin():
        for i, j in start:
            height[0, i + 1, j + 1] = start[i, j]

    @ti.kernel
    def move(t: int):
        for i, j in ti.ndrange((1, size - 1), (1, size - 1)):
            inside = height[t, i, j]
            around = height[t, i - 1, j] + height[t, i + 1, j] + height[t, i, j - 1] + height[t, i, j + 1]
            pushed = speed[t, i, j] + SPEED_SQUARED * (around - 4 * inside) - SPRING * inside**3
            speed[t + 1, i, j] = pushed
            height[t + 1, i, j] = inside + pushed

    @ti.kernel
    def look():
        for t, k in ti.ndrange(times, FLOATS):
            loss[None] += height[t + 1, floats[k][0], floats[k][1]] ** 2

    def run() -> Any:
        with ti.ad.Tape(loss):
            begin()
            for t in range(times):
                move(t)
            look()
        return start.grad

    return run


ROWS = rows(pond=pond)
