"""Parameters that are spread over the devices which each have a part of the batch, `torch.distributed.fsdp`."""
from __future__ import annotations

from typing import Any

from ..base.errors import BadValue
from ..base.sockets import socket
from .device_mesh import DeviceMesh, init_device_mesh
from .others import FullyShardedDataParallel
from .placements import Replicate, Shard
from .tensor import place_parameter

__all__ = ["FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "fully_shard"]


class FSDPModule:
    """A module of which `fully_shard` has been called: its class is none of this one."""


class MixedPrecisionPolicy:
    """In which types to compute; `mutagrad.autocast` says that here."""

    def __init__(self, param_dtype: Any = None, reduce_dtype: Any = None, output_dtype: Any = None,
                 cast_forward_inputs: bool = True) -> None:
        self.param_dtype, self.reduce_dtype, self.output_dtype = param_dtype, reduce_dtype, output_dtype
        self.cast_forward_inputs = cast_forward_inputs


def fully_shard(module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
                **settings: Any) -> Any:
    """Spread the parameters of a module over a mesh, each along its first dimension that can be divided.

    What an optimizer keeps for them is spread in the same way. Compute with a batch that is spread over the same
    devices: the parameters are gathered where they are used, and their gradients are summed part by part.
    """
    if mesh is None:
        socket("devices").jax_devices("fully_shard")
        mesh = init_device_mesh("xla", (len(socket("mesh").all_devices("xla")),))
    if mesh.ndim != 1:
        raise BadValue(f"fully_shard: {mesh} has {mesh.ndim} dimensions", fix='fully_shard(model, mesh=mesh["dp"])')
    for part in module.modules():
        for name in [*part._parameters, *part._buffers]:
            tensor = getattr(part, name)
            if tensor is None:
                continue
            place_parameter(part, name, mesh, [_placement(tensor, mesh) if name in part._parameters else Replicate()])
    return module


def _placement(tensor: Any, mesh: DeviceMesh) -> Any:
    """Along which dimension a tensor is spread: the first of which every device gets an equal part."""
    taken = {p.dim for p in getattr(tensor, "placements", ()) if isinstance(p, Shard)}
    for dim, size in enumerate(tensor.shape):
        if dim not in taken and size and size % mesh.size() == 0:
            return Shard(dim)
    return Replicate()
