"""Functions whose zeros have another sign in NumPy than in JAX."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy


def _sign(x: Any) -> Any:
    return jnp.where(x == 0, x.dtype.type(0), jnp.sign(x))


def _like(function: Callable[..., Any], sign: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two whose zeros have the sign of what `sign` gives."""
    def signed(x: Any, y: Any) -> Any:
        found = function(x, y)
        if found.dtype.kind != "f":
            return found
        return jnp.where(found == 0, jnp.copysign(found.dtype.type(0), sign(x, y)), found)

    return signed


SIGNED: dict[Any, Callable[..., Any]] = {
    numpy.sign: _sign,
    numpy.remainder: _like(jnp.remainder, lambda x, y: y),
    numpy.floor_divide: _like(jnp.floor_divide, lambda x, y: x / y),
}
