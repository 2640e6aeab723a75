"""Random numbers in a compiled step: by keys of JAX's, which come from the generator of the program in each run.

In each run a generator gives one seed, from which all that the step draws with it follows. So
`manual_seed` makes the numbers of compiled steps repeat, too; they are others than those of an eager step.
"""
from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..arrays.xla.memory import HOST, not_traced, tracing, unwrap, wrap


class Draws:
    """Draws where `ops.random.source.Source` does, for arrays of NumPy's."""

    def __init__(self, owner: Any, session: Any) -> None:
        self.owner, self.count = owner, 0
        session.each_run(self.seed)
        self.given = session.sites[-1].arrays[0]

    def seed(self) -> tuple[Any, Any]:
        return (self.owner.source.words(2),), _nothing

    @property
    def state(self) -> Any:
        """How many draws there were, as what `get_state` gives."""
        return self.count

    @state.setter
    def state(self, state: Any) -> None:
        """Draw the same again, as what is computed again has to."""
        if not isinstance(state, int):
            raise not_traced("a generator's state from outside is set")
        self.count = state

    def key(self) -> Any:
        """A key that was not used before: by its number and, inside loops, by the number of the round."""
        self.count += 1
        found = jax.random.fold_in(jax.random.wrap_key_data(self.given), self.count)
        trace = tracing()
        while trace is not None:
            if trace.turn is not None:
                found = jax.random.fold_in(found, trace.turn)
            trace = tracing(trace.outer)
        return found

    def __getattr__(self, name: str) -> Any:
        raise not_traced(f"a draw by {name} has no counterpart in JAX")

    def uniform(self, shape: Any, kind: Any, low: Any, high: Any) -> Any:
        unit = jax.random.uniform(self.key(), shape, _single(kind))
        return wrap((low + (high - low) * unit).astype(kind), HOST)

    def chosen(self, shape: Any, p: Any) -> Any:
        return wrap(jax.random.uniform(self.key(), shape, numpy.float64) < p, HOST)

    def happened(self, p: Any) -> Any:
        p = unwrap(p)
        return wrap(jax.random.uniform(self.key(), p.shape, _single(p.dtype)) < p, HOST)

    def normal(self, shape: Any, kind: Any, mean: Any, std: Any, in_order: bool) -> Any:
        return wrap((mean + std * jax.random.normal(self.key(), shape, _single(kind))).astype(kind), HOST)

    def log_normal(self, shape: Any, kind: Any, mean: Any, std: Any) -> Any:
        return wrap(jnp.exp(mean + std * jax.random.normal(self.key(), shape, numpy.float64)).astype(kind), HOST)

    def integers(self, shape: Any, low: int, span: int) -> Any:
        return wrap(jax.random.randint(self.key(), shape, low, min(low + span, 2**63 - 1), numpy.int64), HOST)

    def remainders(self, shape: Any, divisor: int, long: bool) -> Any:
        return self.integers(shape, 0, divisor)

    def permutation(self, count: int) -> Any:
        return wrap(jax.random.permutation(self.key(), count), HOST)

    def geometric(self, shape: Any, p: float) -> Any:
        return wrap(jnp.ceil(-jax.random.exponential(self.key(), shape, numpy.float64) / math.log1p(-p)), HOST)

    def exponential(self, shape: Any, kind: Any, rate: float) -> Any:
        return wrap((jax.random.exponential(self.key(), shape, _single(kind)) / rate).astype(kind), HOST)

    def cauchy(self, shape: Any, kind: Any, median: float, sigma: float) -> Any:
        return wrap((median + sigma * jax.random.cauchy(self.key(), shape, numpy.float64)).astype(kind), HOST)

    def gamma(self, concentration: Any) -> Any:
        a = unwrap(concentration)
        return wrap(jax.random.gamma(self.key(), a, a.shape, _single(a.dtype)).astype(a.dtype), HOST)

    def poisson(self, rate: Any) -> Any:
        rate = unwrap(rate)
        return wrap(jax.random.poisson(self.key(), rate, rate.shape, numpy.int64).astype(rate.dtype), HOST)

    def binomial(self, count: Any, p: Any) -> Any:
        count, p = unwrap(count), unwrap(p)
        drawn = jax.random.binomial(self.key(), jnp.maximum(jnp.floor(count), 0), jnp.clip(p, 0, 1))
        return wrap(drawn.astype(count.dtype), HOST)


def _nothing() -> None:
    """What a generator has drawn, it has drawn."""


def _single(kind: Any) -> Any:
    """The type in which numbers of this one are drawn: at least float32."""
    return numpy.float64 if numpy.dtype(kind) == numpy.float64 else numpy.float32
