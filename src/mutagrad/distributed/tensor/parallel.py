"""Layers whose weights are spread over devices, `torch.distributed.tensor.parallel`: tensor parallelism by placement.

XLA finds what devices have to exchange from how the weights lie. A column-wise layer followed by a row-wise one needs a
sum over the devices after the second, and nothing between them.
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from fnmatch import fnmatch
from typing import Any

from ...base.errors import BadArgument, BadValue
from ..device_mesh import DeviceMesh
from ..placements import Placement, Replicate, Shard
from . import DTensor, distribute_module, place_parameter

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel",
           "SequenceParallel", "loss_parallel", "parallelize_module"]


class ParallelStyle:
    """How a module is spread over one dimension of a mesh."""

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        raise NotImplementedError


def _dims(module: Any, by_column: bool) -> tuple[Placement, Placement]:
    """How the weight and the bias of a layer lie; an embedding has its features in columns, a linear layer in rows."""
    if hasattr(module, "num_embeddings"):
        return Shard(1 if by_column else 0), Replicate()
    if getattr(getattr(module, "weight", None), "ndim", 0) != 2:
        raise BadArgument(f"parallelize_module: a {type(module).__name__} has no rows and columns",
                          fix="a Linear or Embedding layer")
    return (Shard(0), Shard(0)) if by_column else (Shard(1), Replicate())


class _Layer(ParallelStyle):
    by_column = True

    def __init__(self, *, input_layouts: Any = None, output_layouts: Any = None,
                 use_local_output: bool = True) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        weight, bias = _dims(module, self.by_column)
        place_parameter(module, "weight", device_mesh, [weight])
        if getattr(module, "bias", None) is not None:
            place_parameter(module, "bias", device_mesh, [bias])
        _laying(module, device_mesh, self.input_layouts, self.output_layouts)
        return module


class ColwiseParallel(_Layer):
    """Each device computes a part of the features that come out."""


class RowwiseParallel(_Layer):
    """Each device computes with a part of the features that go in; the results are summed."""

    by_column = False


def _laid(values: Any, layouts: Any, mesh: DeviceMesh) -> Any:
    """Tensors, those of them that are spread as layouts say."""
    if isinstance(values, tuple):
        wanted = layouts if isinstance(layouts, (tuple, list)) else (layouts,) * len(values)
        return tuple(_laid(v, w, mesh) for v, w in zip(values, wanted))
    spread: Any = values if isinstance(values, DTensor) else None
    return values if layouts is None or spread is None else spread.redistribute(mesh, [layouts])


def _laying(module: Any, mesh: DeviceMesh, before: Any, after: Any) -> None:
    if before is not None:
        module.register_forward_pre_hook(lambda m, inputs: _laid(inputs, before, mesh))
    if after is not None:
        module.register_forward_hook(lambda m, inputs, outputs: _laid(outputs, after, mesh))


class PrepareModuleInput(ParallelStyle):
    """Says how what goes into a module lies."""

    def __init__(self, *, input_layouts: Any = None, desired_input_layouts: Any = None, input_kwarg_layouts: Any = None,
                 desired_input_kwarg_layouts: Any = None, use_local_output: bool = False) -> None:
        self.layouts = desired_input_layouts

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        _laying(module, device_mesh, self.layouts, None)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Says how what comes out of a module lies."""

    def __init__(self, *, output_layouts: Any = None, desired_output_layouts: Any = None,
                 use_local_output: bool = True) -> None:
        self.layouts = desired_output_layouts

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        _laying(module, device_mesh, None, self.layouts)
        return module


class SequenceParallel(ParallelStyle):
    """The parameters are copied; what goes in is spread along the sequence, and computed part by part."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.dim = sequence_dim

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        _laying(distribute_module(module, device_mesh), device_mesh, Shard(self.dim), None)
        return module


def parallelize_module(module: Any, device_mesh: DeviceMesh,
                       parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None, *,
                       src_data_rank: int | None = 0) -> Any:
    """Spread the modules that a plan names over one dimension of a mesh; what it does not name is copied.

    Names may have `*` for any number: `{"layers.*.up": ColwiseParallel()}`.
    """
    if device_mesh.ndim != 1:
        raise BadValue(f"parallelize_module: {device_mesh} has {device_mesh.ndim} dimensions",
                       why="a layer is spread over one", fix='parallelize_module(model, mesh["tp"], plan)')
    plan = {"": parallelize_plan} if isinstance(parallelize_plan, ParallelStyle) else dict(parallelize_plan or {})
    named = dict(module.named_modules())
    for pattern, style in plan.items():
        found = [m for name, m in named.items() if fnmatch(name, pattern)]
        if not found:
            raise BadValue(f"parallelize_module: there is no module {pattern!r}", fix=f"one of {list(named)[1:6]}")
        for part in found:
            style._apply(part, device_mesh)
    return distribute_module(module, device_mesh)


def loss_parallel() -> Any:
    """Return a block in which losses of spread scores are found without gathering them: XLA does so anyway."""
    return nullcontext()
