"""What tensors that are spread over a mesh of devices have besides."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays.kinds import IN_USE, device_of
from ..base.errors import BadArgument
from ..base.sockets import socket
from ..core.factory import make
from ..ops.shape.places import at, laid

METHODS = "full_tensor redistribute to_local"


def is_spread(x: Any) -> bool:
    """Return whether a tensor is spread over a mesh."""
    place = device_of(x._array) if IN_USE else None
    return place is not None and place.over_mesh


def _check(x: Any, name: str) -> None:
    if not is_spread(x):
        raise BadArgument(f"{name}: this tensor is not spread over a mesh",
                          fix="mutagrad.distributed.tensor.distribute_tensor(x, mesh, placements)")


def spread_attribute(x: Any, name: str) -> Any:
    """Return `placements` or `device_mesh`, which other tensors do not have."""
    if not is_spread(x):
        raise AttributeError(f"'Tensor' object has no attribute {name!r}: it is not spread over a mesh")
    mesh = socket("mesh")
    return mesh.placements_of(x._array) if name == "placements" else mesh.device_mesh_of(x._array)


def redistribute(self: Any, device_mesh: Any = None, placements: Sequence[Any] | None = None, *,
                 async_op: bool = False) -> Any:
    """Return the same tensor spread in another way. A gradient comes back as this one is spread."""
    _check(self, "redistribute")
    mesh = self.device_mesh if device_mesh is None else device_mesh
    there, here = socket("mesh").layout("redistribute", self._array, mesh, placements)
    return laid(self, there, here)


def full_tensor(self: Any) -> Any:
    """Return all of it in the CPU's memory; of several processes, all have to ask."""
    _check(self, "full_tensor")
    return at(self, None)


def to_local(self: Any) -> Any:
    """Return a copy of what the first device of this process has, in the CPU's memory; it has no history."""
    _check(self, "to_local")
    return make(socket("mesh").local_part(self._array))
