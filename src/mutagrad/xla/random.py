"""Random numbers in a compiled step: by keys of JAX's, which come from the generator of the program in each run.

In each run a generator of NumPy's gives one seed, from which all that the step draws with it follows. So
`manual_seed` makes the numbers of compiled steps repeat, too; they are others than those of an eager step.
"""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..arrays.xla.memory import HOST, XArray, not_traced, tracing, unwrap, wrap


class Draws:
    """Draws where NumPy's generator does."""

    def __init__(self, owner: Any, session: Any) -> None:
        self.owner, self.count = owner, 0
        session.each_run(self.seed)
        self.given = session.sites[-1].arrays[0]

    def seed(self) -> tuple[Any, Any]:
        return (self.owner.source.integers(0, 1 << 32, 2, numpy.uint32),), _nothing

    def state(self) -> Any:
        """How many draws there were, as what `get_state` gives."""
        return self.count

    def go_back(self, state: Any) -> None:
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

    def random(self, size: Any = None, dtype: Any = numpy.float64, out: Any = None) -> Any:
        return _given(jax.random.uniform(self.key(), _shape(size), dtype), out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        low, high = unwrap(low), unwrap(high)
        shape = jnp.broadcast_shapes(jnp.shape(low), jnp.shape(high)) if size is None else _shape(size)
        return wrap(low + (high - low) * jax.random.uniform(self.key(), shape, numpy.float64), HOST)

    def standard_normal(self, size: Any = None, dtype: Any = numpy.float64, out: Any = None) -> Any:
        return _given(jax.random.normal(self.key(), _shape(size), dtype), out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        loc, scale = unwrap(loc), unwrap(scale)
        shape = jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(scale)) if size is None else _shape(size)
        return wrap(loc + scale * jax.random.normal(self.key(), shape, numpy.float64), HOST)

    def standard_exponential(self, size: Any = None, dtype: Any = numpy.float64, method: str = "zig",
                             out: Any = None) -> Any:
        return _given(jax.random.exponential(self.key(), _shape(size), dtype), out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        shape = jnp.shape(unwrap(scale)) if size is None else _shape(size)
        return wrap(unwrap(scale) * jax.random.exponential(self.key(), shape, numpy.float64), HOST)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = numpy.float64, out: Any = None) -> Any:
        a = jnp.asarray(unwrap(shape), dtype)
        return _given(jax.random.gamma(self.key(), a, a.shape if size is None else _shape(size), dtype), out)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        return wrap(unwrap(scale) * unwrap(self.standard_gamma(shape, size)), HOST)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        lam = jnp.asarray(unwrap(lam))
        shape = lam.shape if size is None else _shape(size)
        return wrap(jax.random.poisson(self.key(), lam, shape, numpy.int64), HOST)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        found = jax.random.binomial(self.key(), unwrap(n), unwrap(p), None if size is None else _shape(size))
        return wrap(found.astype(numpy.int64), HOST)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = numpy.int64,
                 endpoint: bool = False) -> Any:
        low, high = (0, low) if high is None else (low, high)
        return wrap(jax.random.randint(self.key(), _shape(size), unwrap(low), unwrap(high) + endpoint, dtype), HOST)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return wrap(jax.random.permutation(self.key(), unwrap(x), axis), HOST)

    def permuted(self, x: Any, axis: Any = None, out: Any = None) -> Any:
        return _given(jax.random.permutation(self.key(), unwrap(x), axis or 0, independent=True), out)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if type(x) is not XArray:
            raise not_traced("memory of NumPy's is shuffled")
        x.assign(self.permutation(x, axis))


def _nothing() -> None:
    """What a generator has drawn, it has drawn."""


def _shape(size: Any) -> tuple[int, ...]:
    return () if size is None else (int(size),) if isinstance(size, (int, numpy.integer)) else tuple(size)


def _given(value: Any, out: Any) -> Any:
    found = wrap(value, HOST)
    if out is None:
        return found
    out[...] = found
    return out
