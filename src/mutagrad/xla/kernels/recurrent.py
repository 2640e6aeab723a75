"""Recurrent layers: a scan over the steps, and one back.

Sequences of different lengths come packed, with fewer and fewer rows a step. Here they are laid out as a table of steps
and sequences with gaps, in which the state stays as it is.

The adjoint of a product with weights is not added up step by step: `shift` is a zero that is added to each product, so
its adjoint is that of the product, and that of the weights is one product over all steps at the end.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from ...arrays.xla.memory import XArray, unwrap, wrap
from ...arrays.xla.rules import place_among, precision
from ...core.op import kernel
from ...ops.nn.recurrent import Plan


class Layout(NamedTuple):
    """Of packed rows: for each step and sequence the row (beyond the last where there is none), and back."""

    backwards: bool
    steps: int
    batch: int
    rows: Any  # None: all steps have all sequences
    places: Any
    alive: Any


def layout(plan: Plan) -> Layout:
    return _layout(tuple((rows.start, n) for rows, n in plan.steps))


@lru_cache(64)
def _layout(steps: tuple[tuple[int, int], ...]) -> Layout:
    backwards = len(steps) > 1 and steps[0][0] > steps[-1][0]
    ordered = steps[::-1] if backwards else steps
    counts = numpy.array([n for _, n in ordered])
    batch = int(counts.max())
    if (counts == batch).all():
        return Layout(backwards, len(steps), batch, None, None, None)
    alive = numpy.arange(batch) < counts[:, None]
    starts = numpy.array([start for start, _ in ordered])
    rows = numpy.where(alive, starts[:, None] + numpy.arange(batch), int(counts.sum()))
    return Layout(backwards, len(steps), batch, rows, numpy.flatnonzero(alive), alive)


def _table(x: Any, at: Layout) -> Any:
    if at.rows is None:
        return x.reshape(at.steps, at.batch, -1)
    return jnp.take(x, at.rows, 0, mode="fill", fill_value=0)


def _packed(table: Any, at: Layout) -> Any:
    flat = table.reshape(at.steps * at.batch, table.shape[-1])
    return flat if at.places is None else jnp.take(flat, at.places, 0, mode="clip")


def _product(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision=precision())


# ---------------------------------------------------------------------------------------------------------------- steps

Step = Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]  # the next states, and the factors of weights' adjoints


def _lstm_step(plan: Plan, weights: tuple[Any, ...], states: Any, x: Any, shifts: Any) -> Any:
    h, c = states
    z = x + _product(h, weights[0].T) + shifts[0]
    i, f, new, o = jnp.split(z, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(c)
    if not plan.projected:
        return (hidden, c), (h,)
    return (_product(hidden, weights[1].T) + shifts[1], c), (h, hidden)


def _gru_step(plan: Plan, weights: tuple[Any, ...], states: Any, x: Any, shifts: Any) -> Any:
    h, = states
    state = _product(h, weights[0].T) + weights[1] + shifts[0]
    (reset, update, new), (by_reset, by_update, part) = jnp.split(x, 3, -1), jnp.split(state, 3, -1)
    reset, update = jax.nn.sigmoid(reset + by_reset), jax.nn.sigmoid(update + by_update)
    new = jnp.tanh(new + reset * part)
    return (new + update * (h - new),), (h,)


def _simple_step(activation: Callable[[Any], Any]) -> Step:
    def step(plan: Plan, weights: tuple[Any, ...], states: Any, x: Any, shifts: Any) -> Any:
        h, = states
        return (activation(x + _product(h, weights[0].T) + shifts[0]),), (h,)

    return step


def _run(step: Step, plan: Plan, weights: tuple[Any, ...], x: Any, states: tuple[Any, ...],
         shifts: tuple[Any, ...]) -> tuple[Any, Any]:
    """Results and last states end to end; and what was multiplied with weights, for all steps."""
    at = layout(plan)
    alive = None if at.alive is None else at.alive[..., None]

    def one(states: Any, given: Any) -> Any:
        x, shifts, alive = given
        new, factors = step(plan, weights, states, x, shifts)
        if alive is not None:
            new = tuple(jnp.where(alive, n, s) for n, s in zip(new, states))
        return new, (new[0], factors)

    last, (out, factors) = lax.scan(one, states, (_table(x, at), shifts, alive), reverse=at.backwards)
    return jnp.concatenate([v.reshape(-1) for v in (_packed(out, at), *last)]), factors


# -------------------------------------------------------------------------------------------------------------- kernels

class Kind(NamedTuple):
    """A kind of layer: its step, how many states it has, and which weights a packed argument holds."""

    step: Step
    states: int
    weights: Callable[[Plan, Any], tuple[Any, ...]]


def _lstm_weights(plan: Plan, w: Any) -> tuple[Any, ...]:
    if not plan.projected:
        return (w[0],)
    gates, width = 4 * plan.hidden, plan.projected
    return w[0][:gates * width].reshape(gates, width), w[0][gates * width:].reshape(width, plan.hidden)


KINDS = {
    "lstm": Kind(_lstm_step, 2, _lstm_weights),
    "gru": Kind(_gru_step, 1, lambda plan, w: tuple(w)),
    "rnn_tanh": Kind(_simple_step(jnp.tanh), 1, lambda plan, w: tuple(w)),
    "rnn_relu": Kind(_simple_step(jax.nn.relu), 1, lambda plan, w: tuple(w)),
}


def _forward(kind: Kind) -> Callable[..., Any]:
    def forward(*arguments: Any) -> Any:
        *arrays, plan, memory = arguments
        x, *rest = map(unwrap, arrays)
        states, weights = tuple(rest[:kind.states]), kind.weights(plan, rest[kind.states:])
        at = layout(plan)
        shifts = tuple(jnp.zeros((at.steps, at.batch, w.shape[0]), x.dtype) for w in weights if w.ndim == 2)

        def run(x: Any, states: Any, shifts: Any) -> Any:
            return _run(kind.step, plan, weights, x, states, shifts)

        found, back, factors = jax.vjp(run, x, states, shifts, has_aux=True)
        memory[:] = [back, factors]
        return wrap(found, place_among(arrays))

    return forward


def _reverse(kind: Kind, name: str) -> Callable[..., Any]:
    def reverse(g: Any, *arguments: Any) -> Any:
        *arrays, _, (back, factors) = arguments
        dx, states, shifts = back(unwrap(g))
        weights = [_product(d.reshape(-1, d.shape[-1]).T, f.reshape(-1, f.shape[-1])) for d, f in zip(shifts, factors)]
        if len(weights) > 1:
            weights = [jnp.concatenate([w.reshape(-1) for w in weights])]
        if name == "gru":
            weights.append(shifts[0].sum((0, 1)))
        return wrap((dx, *states, *weights), place_among((g, *arrays)))

    return reverse


for _name, _kind in KINDS.items():
    kernel(_name, XArray)(_forward(_kind))
    kernel(f"{_name}_reverse", XArray)(_reverse(_kind, _name))
