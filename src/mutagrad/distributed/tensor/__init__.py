"""Tensors that are spread over a mesh of devices, `torch.distributed.tensor`.

A tensor that was placed is a tensor like any other: what is computed of it is computed by all devices, as XLA finds
best, and what is written keeps its placement. So a program for one device becomes one for many by placing tensors:

    model = distribute_module(model, mesh)                  # a copy of the parameters on each device
    x = distribute_tensor(x, mesh, [Shard(0)])              # a part of the batch for each: data parallel
    fully_shard(model, mesh=mesh)                           # a part of the parameters and of what the optimizer keeps
    parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})

In a compiled step tensors in NumPy's memory are copied to all devices; outside of one, and for tensors on one device
of another place, that is an error.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arrays.kinds import device_of, is_replayed
from ...base.errors import BadArgument, GradientError, NotSupported
from ...base.sockets import socket
from ...core.factory import make
from ...ops.create.create import full as full_, ones as ones_, zeros as zeros_
from ...ops.random.draws import rand as rand_, randn as randn_
from ...ops.shape.places import laid
from ...tensors.tensor import Tensor
from .. import get_world_size, is_initialized
from ..device_mesh import DeviceMesh, init_device_mesh
from ..placements import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
           "distribute_tensor", "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros"]


class _Spread(type):
    """Answers `isinstance(x, DTensor)`: such a tensor is none of another class, but one in another place."""

    def __instancecheck__(cls, instance: Any) -> bool:
        place = device_of(instance._array) if isinstance(instance, Tensor) else None
        return place is not None and place.over_mesh


class DTensor(metaclass=_Spread):
    """A tensor that is spread over a mesh. It has `placements`, `device_mesh`, `full_tensor()`, `redistribute(...)`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise NotSupported("DTensor: a placed tensor is not made by its class",
                           fix="distribute_tensor(x, mesh, [Shard(0)]), or DTensor.from_local(x, mesh, [Shard(0)])")

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
                   run_check: bool = False, shape: Any = None, stride: Any = None) -> Any:
        """Return a tensor of which each process gives the part that its devices are to have."""
        if local_tensor.requires_grad and not local_tensor.is_leaf:
            raise _not_a_leaf("DTensor.from_local")
        made = make(socket("mesh").from_local(local_tensor.detach().cpu().numpy(), device_mesh, placements))
        return made.requires_grad_(local_tensor.requires_grad)


def _not_a_leaf(name: str) -> GradientError:
    return GradientError(f"{name}: this tensor was computed, and what is placed begins anew",
                         fix="x.redistribute(mesh, placements) of one that is placed, or x.detach()")


def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
                      src_data_rank: int | None = 0) -> Any:
    """Return a tensor with the same elements that is spread over a mesh; without placements, a copy for each device.

    In a group of several processes it is that of process `src_data_rank`; None: all have the same. A parameter is a
    parameter again. Inside a compiled step, where nothing moves, it says how XLA is to spread the values.
    """
    if not isinstance(tensor, Tensor):
        raise BadArgument(f"distribute_tensor: expects a tensor, got {type(tensor).__name__}",
                          fix="distribute_tensor(x, mesh, [Shard(0)])")
    if is_replayed():
        there, here = socket("mesh").layout("distribute_tensor", tensor._array, device_mesh, placements)
        return laid(tensor, there, here)
    if not tensor.is_leaf:
        raise _not_a_leaf("distribute_tensor")
    made = _placed(tensor.detach(), device_mesh, placements, src_data_rank)
    return type(tensor)(made, tensor.requires_grad) if type(tensor) is not Tensor else made.requires_grad_(
        tensor.requires_grad)


def _placed(plain: Tensor, mesh: DeviceMesh, placements: Sequence[Placement] | None, source: int | None) -> Any:
    """A tensor without a gradient, spread over a mesh."""
    there, here = socket("mesh").layout("distribute_tensor", plain._array, mesh, placements)
    if source is not None and here is None and is_initialized() and get_world_size() > 1:
        plain = make(socket("processes").broadcast(plain.cpu().numpy(), source))
    return make(there.laid(plain._array))


def place_parameter(owner: Any, name: str, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> None:
    """Place a parameter or buffer of a module. The object stays the one that an optimizer holds."""
    tensor = getattr(owner, name)
    tensor.data = _placed(tensor.data, mesh, placements, 0)
    if tensor.grad is not None:
        tensor.grad.data = _placed(tensor.grad.data, mesh, placements, 0)


def distribute_module(module: Any, device_mesh: DeviceMesh,
                      partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
                      input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
                      output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None) -> Any:
    """Place the parameters and buffers of a module: as `partition_fn` does, and else a copy for each device.

    `input_fn(module, inputs, mesh)` and `output_fn(module, outputs, mesh)` say what goes in and comes out.
    """
    for path, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(path, part, device_mesh)
    for part in module.modules():
        for name in [*part._parameters, *part._buffers]:
            tensor = getattr(part, name)
            if tensor is not None and not isinstance(tensor, DTensor):
                place_parameter(part, name, device_mesh, None)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, device_mesh))
    return module


# ------------------------------------------------------------------------------------------------------- made in place

def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


def _making(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def maker(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
              device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None) -> Any:
        made = distribute_tensor(function(_sizes(size), dtype=dtype), device_mesh, placements)
        return made.requires_grad_(requires_grad)

    maker.__name__ = maker.__qualname__ = name
    maker.__doc__ = f"Return what mutagrad.{name} does, spread over a mesh."
    return maker


empty, ones, rand, randn, zeros = (_making(name, function) for name, function in (
    ("empty", zeros_), ("ones", ones_), ("rand", rand_), ("randn", randn_), ("zeros", zeros_)))


def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
         device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None) -> Any:
    """Return what mutagrad.full does, spread over a mesh."""
    made = distribute_tensor(full_(tuple(size), fill_value, dtype=dtype), device_mesh, placements)
    return made.requires_grad_(requires_grad)
