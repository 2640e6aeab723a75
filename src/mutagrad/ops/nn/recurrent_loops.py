"""Recurrent layers whose steps are compiled loops: one product by BLAS and one loop a step, all memory made before.

Each of these gives what its namesake in recurrent.py does, or None where there is no loop for what it is given.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arrays import np, parallel as large
from ...arrays.blas import on_one_thread
from ...arrays.compiled import library, steps
from ...arrays.copies import copy_in_order
from ...base.operands import Array
from ..shape.shape import unpack

PER_STEP = 1 << 14  # elements of a step from which its rows are worth several threads


def loop_for(function: Callable[..., Any], *arrays: Array) -> Any:
    """The loop for a step, if all that it goes over are plain arrays of one type."""
    kind = arrays[0].dtype
    if not arrays[0].size or any(type(a) is not np.ndarray or a.dtype is not kind for a in arrays):
        return None
    return library.find_for(function, arrays[0])


def for_items(plan: Any, width: int, steps_of: Callable[[int, int], None]) -> None:
    """Do `steps_of(first, end)` for items of the batch, which know nothing of each other; many on several threads.

    Meanwhile BLAS uses one: its others fall asleep during a step, and to wake them takes as long as a product.
    """
    batch = max(plan.steps[0][1], plan.steps[-1][1])
    if batch == 1 or len(plan.steps) == 1:
        return steps_of(0, batch)

    def work(free: bool) -> None:
        if free and batch * width >= PER_STEP:
            large.in_spans(batch, lambda part: steps_of(part.start, part.stop))
        else:
            steps_of(0, batch)

    on_one_thread(work)


def go_forward(plan: Any, loop: Any, h: Array, weight: Array, product: Array, arrays: Sequence[Array]) -> None:
    """Do all steps: each is a product of the state before, and the loop over what it gives."""
    def steps_of(first: int, end: int) -> None:
        for rows, n in plan.steps:
            stop = min(end, n)
            if first < stop:
                np.matmul(h[first:stop], weight, product[first:stop])
                loop(first, stop, rows.start, *arrays)

    for_items(plan, product.shape[1], steps_of)


def turned(w: Array, plan: Any) -> Array:
    """A transposed matrix; laid out anew where it is multiplied with often, which halves the time of small products."""
    return copy_in_order(w.T) if len(plan.steps) > 4 else w.T


def results(x: Array, width: int, *states: Array) -> tuple[Array, tuple[Any, ...]]:
    """One array for the results of all steps and the last states, and the windows on it, with the first states in."""
    flat: Array = np.empty(x.shape[0] * width + sum(s.size for s in states), x.dtype)
    out, *last = unpack(flat, [(x.shape[0], width), *(s.shape for s in states)])
    for state, first in zip(last, states):
        state[...] = first
    return flat, (out, *last)


def lstm(x: Array, h: Array, c: Array, w: Array, plan: Any) -> tuple[Array, tuple[Array, ...]] | None:
    """All results in one array, and what the reverse needs: activated gates, and the states before each step."""
    if plan.projected or (loop := loop_for(steps.lstm, x, h, c, w)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    x, weight = np.ascontiguousarray(x), turned(w, plan)
    flat, (out, h, c) = results(x, size, h, c)
    gates, product = np.empty(x.shape, x.dtype), np.empty((h.shape[0], 4 * size), x.dtype)
    before_h, before_c = np.empty((n_rows, size), x.dtype), np.empty((n_rows, size), x.dtype)
    arrays = x, product, h, c, gates, before_h, before_c, out
    go_forward(plan, loop, h, weight, product, arrays)
    return flat, (gates.reshape(n_rows, 4, size), before_h, before_c)


def lstm_reverse(g: Array, x: Array, h: Array, c: Array, w: Array, plan: Any, memory: Any) -> tuple[Any, ...] | None:
    gates, before_h, before_c = memory
    if plan.projected or (loop := loop_for(steps.lstm_back, x, g, w, gates, before_h, before_c)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    dout, dh, dc = unpack(np.ascontiguousarray(g), [(n_rows, size), h.shape, c.shape])
    dh, dc, dx = dh.copy(), dc.copy(), np.empty((n_rows, 4 * size), x.dtype)
    gates, w = gates.reshape(n_rows, 4 * size), np.ascontiguousarray(w)
    arrays = dout, gates, before_c, dh, dc, dx

    def steps_of(first: int, end: int) -> None:
        for rows, n in reversed(plan.steps):
            stop = min(end, n)
            if first < stop:
                loop(first, stop, rows.start, *arrays)
                np.matmul(dx[rows.start + first:rows.start + stop], w, dh[first:stop])

    for_items(plan, 4 * size, steps_of)
    return dx, dh, dc, dx.T @ before_h


def gru(x: Array, h: Array, w: Array, b: Array, plan: Any) -> tuple[Array, tuple[Array, ...]] | None:
    """All results in one array, and what the reverse needs: activated gates, the state's part, the states before."""
    if (loop := loop_for(steps.gru, x, h, w, b)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    x, weight, b = np.ascontiguousarray(x), turned(w, plan), np.ascontiguousarray(b)
    flat, (out, h) = results(x, size, h)
    gates, product = np.empty(x.shape, x.dtype), np.empty((h.shape[0], 3 * size), x.dtype)
    part, before = np.empty((n_rows, size), x.dtype), np.empty((n_rows, size), x.dtype)
    arrays = x, product, b, h, gates, part, before, out
    go_forward(plan, loop, h, weight, product, arrays)
    return flat, (gates.reshape(n_rows, 3, size), part, before)


def gru_reverse(g: Array, x: Array, h: Array, w: Array, b: Array, plan: Any, memory: Any) -> tuple[Any, ...] | None:
    gates, part, before = memory
    if (loop := loop_for(steps.gru_back, x, g, w, gates, part, before)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    dout, dh = unpack(np.ascontiguousarray(g), [(n_rows, size), h.shape])
    dh, dx, dstate = dh.copy(), np.empty((n_rows, 3 * size), x.dtype), np.empty((n_rows, 3 * size), x.dtype)
    gates, w, product = gates.reshape(n_rows, 3 * size), np.ascontiguousarray(w), np.empty(h.shape, x.dtype)
    arrays = dout, gates, part, before, dh, dx, dstate

    def steps_of(first: int, end: int) -> None:
        for rows, n in reversed(plan.steps):
            stop = min(end, n)
            if first < stop:
                loop(first, stop, rows.start, *arrays)
                np.matmul(dstate[rows.start + first:rows.start + stop], w, product[first:stop])
                np.add(dh[first:stop], product[first:stop], dh[first:stop])

    for_items(plan, 3 * size, steps_of)
    return dx, dh, dstate.T @ before, dstate.sum(0)
