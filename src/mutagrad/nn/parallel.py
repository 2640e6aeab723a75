"""Models of which several processes train one, and PyTorch's names for models on several GPUs."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd.modes import no_grad
from ..autograd.variable import Variable
from ..base.errors import BadArgument, NotSupported
from ..distributed import ReduceOp, all_reduce, broadcast, get_world_size, is_initialized
from ..ops.shape.shape import cat
from .module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]

_HOW_GRADIENTS_TRAVEL = frozenset([
    "bucket_cap_mb", "find_unused_parameters", "check_reduction", "gradient_as_bucket_view", "static_graph",
    "init_sync", "delay_all_reduce_named_params", "param_to_hook_all_reduce", "skip_all_reduce_unused_params"])


class DataParallel(Module):
    """Calls the module that it holds, as PyTorch's does where there is no GPU.

    >>> import mutagrad as mg
    >>> model = mg.nn.parallel.DataParallel(mg.nn.Linear(2, 1, bias=False))
    >>> model(mg.ones(4, 2)).shape, list(model.state_dict())
    (mutagrad.Size([4, 1]), ['module.weight'])
    """

    module: Module

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                 dim: int = 0) -> None:
        super().__init__()
        _check_devices(device_ids, "DataParallel")
        self.dim, self.output_device, self.module = dim, output_device, module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        return self.module(*inputs, **settings)


def _check_devices(device_ids: Sequence[Any] | None, name: str) -> None:
    if device_ids:
        raise NotSupported(f"{name}: device_ids={list(device_ids)} are GPUs, and this build computes on the CPU only",
                           fix=f"{name}(module)")


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                  dim: int = 0, module_kwargs: dict[str, Any] | None = None) -> Any:
    """Calls the module with one input or a tuple of them."""
    _check_devices(device_ids, "data_parallel")
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Calls the module that it holds. Each backward ends with the mean of the gradients of all processes.

    All begin with the parameters and buffers of the first. Gradients of one type travel together, when the sweep is
    over, so the settings about how they travel say nothing here.
    """

    module: Module

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                 dim: int = 0, broadcast_buffers: bool = True, process_group: Any = None, **settings: Any) -> None:
        if not is_initialized():
            raise NotSupported("DistributedDataParallel: there is no process group",
                               why="it would exchange gradients between its processes",
                               fix="the module itself, or mutagrad.distributed.init_process_group(world_size=1, "
                                   "rank=0) before")
        unknown = settings.keys() - _HOW_GRADIENTS_TRAVEL
        if unknown:
            raise BadArgument(f"DistributedDataParallel: got an unexpected keyword argument {min(unknown)!r}",
                              fix="DistributedDataParallel(module)")
        super().__init__()
        if all(p.device.type == "cpu" for p in module.parameters()):  # else it says where the module is
            _check_devices(device_ids, "DistributedDataParallel")
        self.dim, self.output_device, self.broadcast_buffers = dim, output_device, broadcast_buffers
        self.process_group, self.module = process_group, module
        self.several, self.exchanging, self.waiting = get_world_size(process_group) > 1, True, False
        if self.several:
            self._share([*module.parameters(), *module.buffers()])
            for p in module.parameters():
                if p.requires_grad:
                    p.register_post_accumulate_grad_hook(self._noticed)

    def _share(self, tensors: Sequence[Any]) -> None:
        with no_grad():
            for t in tensors:
                broadcast(t, group=self.process_group, group_src=0)

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        if self.several and self.broadcast_buffers and self.training and self.exchanging:
            self._share([*self.module.buffers()])
        return self.module(*inputs, **settings)

    def _noticed(self, p: Any) -> None:
        """A gradient is there: when the sweep is over, all are exchanged."""
        if self.exchanging and not self.waiting:
            self.waiting = True
            Variable._execution_engine.queue_callback(self._exchange)

    def _exchange(self) -> None:
        self.waiting = False
        by_type: dict[Any, list[Any]] = {}
        for p in self.module.parameters():
            if p.grad is not None:
                by_type.setdefault((p.grad.dtype, p.grad.device), []).append(p.grad)
        with no_grad():
            for grads in by_type.values():
                together = cat([g.detach().reshape(-1) for g in grads])
                all_reduce(together, ReduceOp.AVG, self.process_group)
                for g, mean in zip(grads, together.split([g.numel() for g in grads])):
                    g.copy_(mean.reshape(g.shape))

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward sweeps whose gradients are not exchanged yet: they add up."""
        before, self.exchanging = self.exchanging, False
        try:
            yield
        finally:
            self.exchanging = before


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Parts of a tensor for each of several GPUs; there are none."""
    raise NotSupported("scatter: this build computes on the CPU only", fix="x.chunk(n, dim)")


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Gathers the parts of a tensor from several GPUs; there are none."""
    raise NotSupported("gather: this build computes on the CPU only", fix="mutagrad.cat(outputs, dim)")
