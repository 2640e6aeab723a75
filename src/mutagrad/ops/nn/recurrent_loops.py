"""Recurrent layers whose steps are one compiled loop, all memory made before.

Each of these gives what its namesake in recurrent.py does, or None where there is no loop for what it is given.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays import np
from ...arrays.blas import on_one_thread, product_address
from ...arrays.compiled import library, steps
from ...arrays.compiled.workers import INTERPRETED
from ...arrays.copies import copy_in_order
from ...base.operands import Array
from ..shape.shape import unpack

FEW = 4  # steps for which weights are not laid out anew
PANEL = 64  # columns of weights that are laid out together: POSITIONS of tiles.py


def loop_for(function: Callable[..., Any], *arrays: Array) -> Any:
    """The loop for a step, if all that it goes over are plain arrays of one type."""
    kind = arrays[0].dtype
    if not arrays[0].size or any(type(a) is not np.ndarray or a.dtype is not kind for a in arrays):
        return None
    return library.find_for(function, arrays[0])


def run(loop: Any, plan: Any, width: int, w: Array, transposed: bool, *given: Any) -> None:
    """Do all steps for the items of a batch, which know nothing of each other: many on several threads.

    For many steps the weights are laid out for products by the loop itself. A few are left to OpenBLAS, which uses one
    thread meanwhile, since each of ours has it compute a product of its own.
    """
    table = np.array([(rows.start, n) for rows, n in plan.steps])
    batch, size = max(table[0, 1], table[-1, 1]), table[:, 1].sum() * width
    blas = product_address(w.dtype.char) if len(table) <= FEW and not INTERPRETED else 0
    if blas and batch > 1:
        on_one_thread(lambda free: loop.share(batch, size if free else 0, table, blas, np.ascontiguousarray(w), *given))
    else:
        w = np.ascontiguousarray(w) if blas else in_panels(w.T if transposed else w)
        loop.share(batch, size, table, blas, w, *given)


def in_panels(w: Array) -> Array:
    """A matrix as a row for each PANEL of its columns, in which those lie row after row."""
    rows, columns = w.shape
    count = -(-columns // PANEL)
    if columns < count * PANEL:
        w = np.pad(w, ((0, 0), (0, count * PANEL - columns)))
    return copy_in_order(w.reshape(rows, count, PANEL).swapaxes(0, 1)).reshape(count, rows * PANEL)


def turned(w: Array, plan: Any) -> Array:
    """A transposed matrix; laid out anew where it is multiplied with often, which halves the time of small products."""
    return copy_in_order(w.T) if len(plan.steps) > FEW else w.T


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
    x = np.ascontiguousarray(x)
    flat, (out, h, c) = results(x, size, h, c)
    gates = np.empty(x.shape, x.dtype)
    before_h, before_c = np.empty((n_rows, size), x.dtype), np.empty((n_rows, size), x.dtype)
    run(loop, plan, 4 * size, w, True, x, h, c, gates, before_h, before_c, out)
    return flat, (gates.reshape(n_rows, 4, size), before_h, before_c)


def lstm_reverse(g: Array, x: Array, h: Array, c: Array, w: Array, plan: Any, memory: Any) -> tuple[Any, ...] | None:
    gates, before_h, before_c = memory
    if plan.projected or (loop := loop_for(steps.lstm_back, x, g, w, gates, before_h, before_c)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    dout, dh, dc = unpack(np.ascontiguousarray(g), [(n_rows, size), h.shape, c.shape])
    dh, dc, dx = dh.copy(), dc.copy(), np.empty((n_rows, 4 * size), x.dtype)
    gates = gates.reshape(n_rows, 4 * size)
    run(loop, plan, 4 * size, w, False, dout, gates, before_c, dh, dc, dx)
    return dx, dh, dc, dx.T @ before_h


def gru(x: Array, h: Array, w: Array, b: Array, plan: Any) -> tuple[Array, tuple[Array, ...]] | None:
    """All results in one array, and what the reverse needs: activated gates, the state's part, the states before."""
    if (loop := loop_for(steps.gru, x, h, w, b)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    x, b = np.ascontiguousarray(x), np.ascontiguousarray(b)
    flat, (out, h) = results(x, size, h)
    gates = np.empty(x.shape, x.dtype)
    part, before = np.empty((n_rows, size), x.dtype), np.empty((n_rows, size), x.dtype)
    run(loop, plan, 3 * size, w, True, x, b, h, gates, part, before, out)
    return flat, (gates.reshape(n_rows, 3, size), part, before)


def gru_reverse(g: Array, x: Array, h: Array, w: Array, b: Array, plan: Any, memory: Any) -> tuple[Any, ...] | None:
    gates, part, before = memory
    if (loop := loop_for(steps.gru_back, x, g, w, gates, part, before)) is None:
        return None
    n_rows, size = x.shape[0], plan.hidden
    dout, dh = unpack(np.ascontiguousarray(g), [(n_rows, size), h.shape])
    dh, dx, dstate = dh.copy(), np.empty((n_rows, 3 * size), x.dtype), np.empty((n_rows, 3 * size), x.dtype)
    gates = gates.reshape(n_rows, 3 * size)
    run(loop, plan, 3 * size, w, False, dout, gates, part, before, dh, dx, dstate)
    return dx, dh, dstate.T @ before, dstate.sum(0)
