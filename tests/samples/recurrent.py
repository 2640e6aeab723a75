"""Samples of recurrent layers, and what a loop over steps says that they compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Array, U, op


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm_step(x: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Any = 0.0, b_hh: Any = 0.0, w_hr: Any = None) -> tuple[Array, ...]:
    h, c = hx
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return h if w_hr is None else h @ w_hr.T, c


def gru_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any = 0.0, b_hh: Any = 0.0) -> Array:
    (a, b, c), (r, z, n) = np.split(x @ w_ih.T + b_ih, 3, -1), np.split(h @ w_hh.T + b_hh, 3, -1)
    z = sigmoid(b + z)
    return (1 - z) * np.tanh(c + sigmoid(a + r) * n) + z * h


def tanh_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any = 0.0, b_hh: Any = 0.0) -> Array:
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


def relu_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any = 0.0, b_hh: Any = 0.0) -> Array:
    return np.maximum(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 0)


def one_way(step: Any, sequences: Sequence[Array], states: Any, weights: Sequence[Array]) -> Any:
    """Each sequence by itself: its results, and the last state of all."""
    results, last = [], []
    for number, sequence in enumerate(sequences):
        state: Any = tuple(s[number] for s in states)
        rows = []
        for x in sequence:
            state = step(x, state, *weights) if len(state) == 2 else (step(x, state[0], *weights),)
            rows.append(state[0])
        results.append(np.stack(rows))
        last.append(state)
    return results, [np.stack(s) for s in zip(*last)]


def layers(step: Any, sequences: Sequence[Array], states: Any, params: Sequence[Array], biases: bool, number: int, both: bool) -> Any:
    each, last = len(params) // (number * (1 + both)), []
    groups = [list(params[k:k + each]) for k in range(0, len(params), each)]
    for layer in range(number):
        ways = []
        for backwards in range(1 + both):
            at = layer * (1 + both) + backwards
            weights = groups[at] if biases else [*groups[at][:2], 0.0, 0.0, *groups[at][2:]]
            turned = [s[::-1] if backwards else s for s in sequences]
            results, new = one_way(step, turned, [s[at] for s in states], weights)
            ways.append([r[::-1] if backwards else r for r in results])
            last.append(new)
        sequences = [np.concatenate(parts, -1) for parts in zip(*ways)]
    return sequences, [np.stack(s) for s in zip(*last)]


def network(step: Any) -> Any:
    def reference(x: Array, *arguments: Any) -> Any:
        packed = len(arguments[0]) > 2 and getattr(arguments[0], "dtype", None) == np.int64
        hx, params, biases, number, _, _, both, *first = arguments[packed:]
        states = hx if isinstance(hx, (tuple, list)) else (hx,)
        if packed:
            sizes = arguments[0].tolist()
            rows = np.split(x, np.cumsum(sizes)[:-1])
            sequences = [np.stack([r[k] for r in rows if k < len(r)]) for k in range(sizes[0])]
        else:
            sequences = list(x if first[0] else x.swapaxes(0, 1))
        results, last = layers(step, sequences, states, params, biases, number, both)
        if packed:
            out = np.concatenate([np.stack([r[k] for r in results if k < len(r)]) for k in range(len(rows))])
        else:
            out = np.stack(results) if first[0] else np.stack(results, 1)
        return out, *last

    return reference


def weights(gates: int, width: int, hidden: int, biases: bool = True, projected: int = 0) -> list[Any]:
    """Of one layer in one direction."""
    found: list[Any] = [U(gates * hidden, width), U(gates * hidden, projected or hidden)]
    return found + [U(gates * hidden)] * 2 * biases + [U(projected, hidden)] * bool(projected)


SIZES = np.array([3, 2, 2, 1])
for name, step, gates in (("gru", gru_step, 3), ("rnn_tanh", tanh_step, 1), ("rnn_relu", relu_step, 1)):
    op(f"{name}_cell", U(3, 5), U(3, 4), *weights(gates, 5, 4), ref=step)
    op(f"{name}_cell", U(5), U(4), *weights(gates, 5, 4, False), ref=step)
    op(name, U(4, 2, 5), U(1, 2, 3), weights(gates, 5, 3), True, 1, 0.0, False, False, False, ref=network(step))
    op(name, U(2, 3, 4), U(4, 2, 2), [*weights(gates, 4, 2, False) * 2, *weights(gates, 4, 2, False) * 2], False, 2, 0.0, False, True, True,
       ref=network(step), note=" both ways")
    op(name, U(8, 4), SIZES, U(2, 3, 2), weights(gates, 4, 2) * 2, True, 1, 0.0, False, True, ref=network(step), note=" packed")

op("lstm_cell", U(3, 5), (U(3, 4), U(3, 4)), *weights(4, 5, 4), ref=lstm_step)
op("lstm_cell", U(5), (U(4), U(4)), *weights(4, 5, 4, False), ref=lstm_step)
op("lstm", U(4, 2, 5), (U(1, 2, 3), U(1, 2, 3)), weights(4, 5, 3), True, 1, 0.0, False, False, False, ref=network(lstm_step))
op("lstm", U(2, 3, 4), (U(4, 2, 2), U(4, 2, 2)), weights(4, 4, 2, False) * 4, False, 2, 0.0, False, True, True, ref=network(lstm_step), note=" both ways")
op("lstm", U(8, 4), SIZES, (U(2, 3, 2), U(2, 3, 2)), weights(4, 4, 2) * 2, True, 1, 0.0, False, True, ref=network(lstm_step), note=" packed")
op("lstm", U(3, 2, 4), (U(1, 2, 2), U(1, 2, 3)), weights(4, 4, 3, True, 2), True, 1, 0.0, False, False, False, ref=network(lstm_step), note=" projected")
