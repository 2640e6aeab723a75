"""Several processes that compute together: `jax.distributed`, and what they tell each other.

Each process lends one of its devices to a mesh with one dimension, over which small programs sum, gather or pick. A
process that is gone is noticed by the next of these, or by its missing heartbeat: all others then stop with an error.
"""
from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..arrays.xla.shardings import replicated
from ..base.errors import BadValue, LostProcess

HEARTBEAT = 10  # seconds after which a silent process counts as dead
Array = Any


def start(address: str, size: int, rank: int, seconds: float) -> None:
    """Join the processes that meet at an address, or wait there as the first of them."""
    host = address.rpartition(":")[0]
    local = host in ("localhost", "127.0.0.1")
    several = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1
    try:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # type: ignore[no-untyped-call]
        jax.distributed.initialize(
            address, size, rank, local_device_ids=int(os.environ["LOCAL_RANK"]) if several else None,
            cluster_detection_method="deactivate", initialization_timeout=max(1, int(seconds)),
            heartbeat_timeout_seconds=HEARTBEAT, shutdown_timeout_seconds=HEARTBEAT,
            coordinator_bind_address=f"127.0.0.1:{address.rpartition(':')[2]}" if local else None)
    except RuntimeError as error:
        if "before any JAX" in str(error):
            raise BadValue("distributed.init_process_group: JAX is in use already",
                           why="processes have to meet before the first tensor is on a device",
                           fix="init_process_group() at the beginning of the program") from None
        raise LostProcess(f"distributed.init_process_group: the {size} processes did not meet at {address}",
                          why=str(error).splitlines()[0], fix="the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE for "
                                                              "all, and each RANK once") from None


def stop() -> None:
    """Leave, once all others do."""
    jax.distributed.shutdown()  # type: ignore[no-untyped-call]


# -------------------------------------------------------------------------------------------------------- what is told

@cache
def _mesh(ranks: tuple[int, ...]) -> Any:
    """One device of each process."""
    first: dict[int, Any] = {}
    for device in jax.devices():
        first.setdefault(device.process_index, device)
    return Mesh(numpy.array([first[rank] for rank in ranks]), ("process",))


@cache
def _program(ranks: tuple[int, ...], what: str, source: int) -> Any:
    return jax.jit(lambda x: HOW[what](x, source), out_shardings=replicated(_mesh(ranks)))


HOW: dict[str, Callable[[Any, int], Any]] = {  # of the values of all processes, one after the other
    "gather": lambda x, _: x,
    "pick": lambda x, source: x[source],
    "SUM": lambda x, _: x.sum(0, dtype=x.dtype),
    "AVG": lambda x, _: (x.sum(0, dtype=x.dtype) / x.shape[0]).astype(x.dtype),
    "PRODUCT": lambda x, _: x.prod(0, dtype=x.dtype),
    "MIN": lambda x, _: x.min(0),
    "MAX": lambda x, _: x.max(0),
    "BAND": lambda x, _: jnp.bitwise_and.reduce(x, axis=0),
    "BOR": lambda x, _: jnp.bitwise_or.reduce(x, axis=0),
    "BXOR": lambda x, _: jnp.bitwise_xor.reduce(x, axis=0),
}


def told(array: Array, what: str, ranks: Sequence[int], source: int = 0) -> Array:
    """Return what comes of the arrays of some processes, each of which has to call this."""
    ranks = tuple(ranks)
    sharding = NamedSharding(_mesh(ranks), PartitionSpec("process"))  # type: ignore[no-untyped-call]
    placed: Any = jax.make_array_from_process_local_data
    array = numpy.ascontiguousarray(array).reshape(numpy.shape(array))
    try:
        given = placed(sharding, array[None], (len(ranks), *array.shape))
        return numpy.array(_program(ranks, what, source)(given))
    except (ValueError, RuntimeError) as error:  # JAX has no class for it
        if isinstance(error, BadValue):
            raise
        raise LostProcess(f"distributed: another process cannot be reached ({what.lower()})",
                          why=str(error).splitlines()[0], fix="look at what the other processes have printed") from None


def everybody() -> tuple[int, ...]:
    return tuple(range(jax.process_count()))


def broadcast(array: Array, source: int) -> Array:
    """Return the array that one process has."""
    return told(array, "pick", everybody(), source)


def objects(value: Any, ranks: Sequence[int]) -> list[Any]:
    """Return the objects of some processes: pickled, because they go through arrays."""
    data = numpy.frombuffer(pickle.dumps(value), numpy.uint8)
    sizes = told(numpy.array(data.size), "gather", ranks)
    padded = numpy.zeros(int(sizes.max()), numpy.uint8)
    padded[:data.size] = data
    return [pickle.loads(row[:n].tobytes()) for row, n in zip(told(padded, "gather", ranks), sizes)]
