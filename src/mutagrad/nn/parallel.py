"""Several devices or processes, under PyTorch's names: there is one of each."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import NotSupported
from .module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


class DataParallel(Module):
    """Calls the module that it holds, as PyTorch's does where there is no GPU.

    >>> import mutagrad as mg
    >>> model = mg.nn.parallel.DataParallel(mg.nn.Linear(2, 1, bias=False))
    >>> model(mg.ones(4, 2)).shape, list(model.state_dict())
    (mutagrad.Size([4, 1]), ['module.weight'])
    """

    module: Module

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        _check_devices(device_ids, "DataParallel")
        self.dim, self.output_device, self.module = dim, output_device, module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        return self.module(*inputs, **settings)


def _check_devices(device_ids: Sequence[Any] | None, name: str) -> None:
    if device_ids:
        raise NotSupported(f"{name}: device_ids={list(device_ids)} are GPUs, and this build computes on the CPU only", fix=f"{name}(module)")


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0,
                  module_kwargs: Any = None) -> Any:
    """Calls the module with one input or a tuple of them."""
    _check_devices(device_ids, "data_parallel")
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Needs a process group, and there is none."""

    def __init__(self, module: Module, *arguments: Any, **settings: Any) -> None:
        raise NotSupported("DistributedDataParallel: one process computes here", why="there is no communication between processes",
                           fix="the module itself, without DistributedDataParallel")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Parts of a tensor for each of several GPUs; there are none."""
    raise NotSupported("scatter: this build computes on the CPU only", fix="x.chunk(n, dim)")


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The parts of a tensor from several GPUs; there are none."""
    raise NotSupported("gather: this build computes on the CPU only", fix="mutagrad.cat(outputs, dim)")
