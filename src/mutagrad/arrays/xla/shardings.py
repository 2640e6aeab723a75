"""Arrays of JAX's that are spread over the devices of a mesh: how they get there, stay as they are, and come back."""
from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from ...base.errors import LostProcess

Array = Any


def is_spread(device: Any) -> bool:
    """Return whether what a place has as its device is a sharding over several."""
    return isinstance(device, Sharding)


def put(array: Array, where: Any) -> Array:
    """Return an array on a device or over a mesh. Of NumPy's memory nothing is shared.

    A mesh may have devices of other processes. Each process then gives its own devices their parts; all have to have
    the same array.
    """
    if is_spread(where) and not where.is_fully_addressable:
        if isinstance(array, jax.Array) and not array.is_fully_addressable:
            return _identity(where)(array)
        values = numpy.asarray(array)
        return jax.make_array_from_callback(values.shape, where, lambda index: numpy.array(values[index]))
    if isinstance(array, jax.Array):
        return jax.device_put(array, where)
    return jax.device_put(numpy.array(array), where)  # a copy: JAX uses memory where it lies, may_alias=False or not


@cache
def _identity(where: Any) -> Any:
    return jax.jit(lambda value: value, out_shardings=where)


def kept(new: Array, old: Array) -> Array:
    """Return a value in the sharding of the one that it replaces."""
    if isinstance(new, jax.core.Tracer) or new.sharding == old.sharding:
        return new
    return put(new, old.sharding)


def gathered(value: Array) -> Array:
    """Return all elements, in NumPy's memory. What other processes have is asked of them: all have to call it."""
    if value.is_fully_addressable:
        return numpy.asarray(value)
    try:
        if not value.is_fully_replicated:
            value = _identity(replicated(value.sharding.mesh))(value)
        return numpy.asarray(value)
    except (ValueError, RuntimeError) as error:  # JAX has no class for it
        raise LostProcess("a value that other processes compute with did not come", why=str(error).splitlines()[0],
                          fix="look at what the other processes have printed") from None


def replicated(mesh: Any) -> Any:
    """Return the sharding of what every device of a mesh has all of."""
    return NamedSharding(mesh, PartitionSpec())  # type: ignore[no-untyped-call]


def constrained(value: Array, sharding: Any) -> Array:
    """Return a value of a program that is traced, as it is to be spread there."""
    return jax.lax.with_sharding_constraint(value, sharding)  # type: ignore[no-untyped-call]
