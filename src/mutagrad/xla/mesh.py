"""Meshes of JAX's devices, and tensors that are spread over them."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..arrays.xla import shardings
from ..arrays.xla.memory import Place, XArray, new, place_of, tracing, wrap
from ..base.errors import BadValue, NoDevice, NotSupported
from ..distributed.device_mesh import DeviceMesh
from ..distributed.placements import Partial, Placement, Replicate, Shard
from .devices import PLATFORMS, begin

# ------------------------------------------------------------------------------------------------------------- devices


def all_devices(device_type: str) -> list[Any]:
    """Return the devices of a type, in all processes."""
    if device_type != "cpu" and device_type not in PLATFORMS:
        raise BadValue(f"DeviceMesh: no mesh can be of {device_type!r} devices", fix='"xla", "cuda" or "cpu"')
    try:
        return list(jax.devices("cpu" if device_type == "cpu" else PLATFORMS[device_type]))
    except RuntimeError as error:
        raise NoDevice(f"DeviceMesh: there are no devices of the type {device_type!r}", why=str(error),
                       fix='init_device_mesh("xla", ...)') from None


def first_devices(device_type: str, count: int) -> list[int]:
    """Return the numbers of as many devices; of several processes, equally many of each."""
    found = all_devices(device_type)
    several = jax.process_count()
    if count > len(found) or count % several:
        why = f"there are {len(found)}" + (f" in {several} processes" if several > 1 else "")
        more = "XLA_FLAGS=--xla_force_host_platform_device_count=8 in the environment makes 8 of a CPU"
        raise NoDevice(f"init_device_mesh: {count} devices of the type {device_type!r} are needed", why=why,
                       fix=more if all(d.platform == "cpu" for d in found) else f"a shape of {len(found)} devices")
    each = count // several
    return [k for process in range(several)
            for k in [k for k, d in enumerate(found) if d.process_index == process][:each]]


def mesh_of(device_type: str, numbers: Any, names: tuple[str, ...]) -> Any:
    """Return a mesh of JAX's, of devices by their numbers."""
    found = all_devices(device_type)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(found):
        raise NoDevice(f"DeviceMesh: there is no device {numbers.max()} of the type {device_type!r}",
                       why=f"there are {len(found)}", fix="numbers from 0")
    chosen = numpy.empty(numbers.shape, object)
    for at, k in numpy.ndenumerate(numbers):
        chosen[at] = found[k]
    return Mesh(chosen, names)


def place_over(mesh: Any, device_type: str) -> Place:
    """Return the place that a mesh is: what is made there is on all devices."""
    begin()
    return place_of(shardings.replicated(mesh), (device_type, None))


def numbers(mesh: DeviceMesh) -> Any:
    known = {d: k for k, d in enumerate(all_devices(mesh.device_type))}
    found = numpy.vectorize(known.__getitem__, otypes=[numpy.int64])(mesh.root.devices)
    rest = tuple(slice(None) if name in mesh.names else 0 for name in mesh.root.axis_names)
    return found[rest]


def coordinate(mesh: DeviceMesh) -> list[int] | None:
    for at, one in numpy.ndenumerate(mesh.root.devices):
        if one.process_index == jax.process_index():
            return [at[mesh.root.axis_names.index(name)] for name in mesh.names]
    return None


# ---------------------------------------------------------------------------------------------------------- placements

def sharding_for(name: str, mesh: DeviceMesh, placements: Sequence[Placement] | None, shape: tuple[int, ...],
                 before: Any = None) -> Any:
    """Return JAX's sharding for placements; over dimensions of the mesh that they do not speak of, it is as before."""
    placements = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(placements) != mesh.ndim:
        raise BadValue(f"{name}: {len(placements)} placements for a mesh of {mesh.ndim} dimensions",
                       fix="a placement for each dimension of the mesh")
    parts: list[list[str]] = [[] for _ in shape]
    if before is not None and before.mesh == mesh.root:
        for d, axes in enumerate(axes_of(before, len(shape))):
            parts[d] += [axis for axis in axes if axis not in mesh.names]
    for axis, placement in zip(mesh.names, placements):
        if isinstance(placement, Partial):
            raise NotSupported(f"{name}: no tensor can be placed as Partial", why="XLA has sums that are not taken yet "
                               "inside of a program only", fix="Replicate() or Shard(dim)")
        if isinstance(placement, Shard):
            if not -len(shape) <= placement.dim < len(shape):
                raise BadValue(f"{name}: {placement} of a tensor of {len(shape)} dimensions", fix="Shard(0)")
            parts[placement.dim].append(axis)
    order = list(mesh.root.axis_names)
    for d, taken in enumerate(parts):
        taken.sort(key=order.index)
        count = prod(mesh.root.shape[a] for a in taken)
        if shape[d] % count:
            raise BadValue(f"{name}: dimension {d} of size {shape[d]} has no {count} equal parts",
                           why=f"it is placed over {', '.join(taken)}", fix="a size with that divisor, or Replicate()")
    return NamedSharding(mesh.root, spec(parts))


def spec(parts: Sequence[Sequence[str]]) -> Any:
    made: Any = PartitionSpec
    return made(*[None if not a else a[0] if len(a) == 1 else tuple(a) for a in parts])


def axes_of(sharding: Any, ndim: int) -> list[tuple[str, ...]]:
    """Return over which dimensions of the mesh each dimension of an array is spread."""
    found = [() if a is None else (a,) if isinstance(a, str) else tuple(a) for a in sharding.spec]
    return found + [()] * (ndim - len(found))


def sharding_of(array: XArray) -> Any:
    """Return how an array is spread: while a step is traced, how its memory was before."""
    values = array.cell.held if array.twin is array.cell.twin and array.cell.held is not None else array.values()
    if isinstance(values, jax.core.Tracer):
        raise NotSupported("placements: while a step is traced, it is not known how its results are spread",
                           why="XLA decides it when it compiles the program", fix="x.redistribute(mesh, placements)")
    found = values.sharding
    return found if isinstance(found, NamedSharding) else array.level.device


def placements_of(array: XArray) -> tuple[Placement, ...]:
    """Return the placement along each dimension of the mesh."""
    sharding = sharding_of(array)
    where = {axis: d for d, axes in enumerate(axes_of(sharding, array.ndim)) for axis in axes}
    return tuple(Shard(where[a]) if a in where else Replicate() for a in sharding.mesh.axis_names)


def device_mesh_of(array: XArray) -> DeviceMesh:
    mesh, type = array.level.device.mesh, array.level.name[0]
    found = object.__new__(DeviceMesh)
    found._begin(type, mesh, tuple(mesh.axis_names), mesh.axis_names[0] != "dim_0")
    return found


# -------------------------------------------------------------------------------------------------------------- arrays

class Layout(NamedTuple):
    """Where an array is, and how it is spread there."""

    place: Place
    sharding: Any

    def laid(self, array: Any) -> Any:
        """Return the elements of an array so."""
        if tracing() is not None:
            values = array.values() if type(array) is XArray else new(array, self.place).values()
            return wrap(shardings.constrained(values, self.sharding), self.place)
        if type(array) is not XArray:
            return wrap(shardings.put(numpy.array(array), self.sharding), self.place)
        values = array.values()
        if not values.is_fully_addressable and array.level is not self.place:
            values = shardings.gathered(values)
        found = shardings.put(values, self.sharding)
        return wrap(found, self.place)


def layout(name: str, array: Any, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> tuple[Layout, Any]:
    """Return how an array is to be spread, and how it is now: None where that is not known, or is another place."""
    here = None
    if type(array) is XArray and array.level.over_mesh and not isinstance(array.cell.held, jax.core.Tracer):
        here = Layout(array.level, sharding_of(array))
    before = here.sharding if here is not None else None
    return Layout(mesh.place, sharding_for(name, mesh, placements, array.shape, before)), here


def local_part(array: XArray) -> Any:
    """Return what the first device of this process has, in NumPy's memory."""
    return numpy.array(array.values().addressable_shards[0].data)


def from_local(local: Any, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> XArray:
    """Return an array of which each process gives the part that its devices have."""
    placements = [Replicate()] * mesh.ndim if placements is None else list(placements)
    shape = list(local.shape)
    for name, placement in zip(mesh.names, placements):
        if isinstance(placement, Shard):
            shape[placement.dim] *= _processes_along(mesh, name)
    sharding = sharding_for("DTensor.from_local", mesh, placements, tuple(shape))
    made_of: Any = jax.make_array_from_process_local_data
    found = made_of(sharding, numpy.ascontiguousarray(local), tuple(shape))
    made: XArray = wrap(found, mesh.place)
    return made


def _processes_along(mesh: DeviceMesh, name: str) -> int:
    """Over how many processes a dimension of a mesh goes."""
    lines = numpy.moveaxis(mesh.root.devices, mesh.root.axis_names.index(name), 0)
    return len({d.process_index for d in lines.reshape(lines.shape[0], -1)[:, 0]})


def shards(array: XArray) -> list[tuple[tuple[slice, ...], Any]]:
    """Return the parts that this process has to write down: where they lie, and their elements."""
    return [(s.index, numpy.asarray(s.data)) for s in array.values().addressable_shards if s.replica_id == 0]


def filled(like: XArray, read: Any) -> XArray:
    """Return an array that is spread as another, of elements that are asked for part by part."""
    made: XArray = wrap(jax.make_array_from_callback(like.shape, sharding_of(like), read), like.level)
    return made
