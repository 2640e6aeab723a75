"""Communication that gradients pass through, `torch.distributed.nn.functional`: a group of one gets what it gives.

Between several processes gradients pass through tensors that are placed over a mesh, see `distributed.tensor`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.errors import BadValue, NotSupported
from . import ProcessGroup, ReduceOp, get_world_size as processes

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
           "reduce_scatter", "scatter"]


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return that there is one process, or raise."""
    if (count := processes(group)) > 1:
        raise NotSupported(f"distributed.nn: gradients do not pass between {count} processes in this way",
                           why="XLA finds what devices exchange", fix="tensors that are placed over a mesh of all "
                           "processes (distribute_tensor), or DistributedDataParallel")
    return count


def _from_first(name: str, rank: int) -> None:
    if rank != 0:
        raise BadValue(f"distributed.nn.{name}: the only process is 0, not {rank}", fix="0")


def _one(name: str, tensors: Sequence[Tensor]) -> Tensor:
    """Return the one tensor for the one process."""
    if len(tensors) != get_world_size():
        raise BadValue(f"distributed.nn.{name}: {len(tensors)} tensors for 1 process", fix="a list of one tensor")
    return tensors[0].clone()


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Combine the tensors of all processes, of which this has the only one."""
    get_world_size(group)
    return tensor.clone()


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor of one process to all."""
    get_world_size(group)
    _from_first("broadcast", src)
    return tensor.clone()


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Combine the tensors of all processes for one of them."""
    get_world_size(group)
    _from_first("reduce", dst)
    return tensor.clone()


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all processes to all."""
    get_world_size(group)
    return (tensor.clone(),)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all processes to one."""
    _from_first("gather", dst)
    return all_gather(tensor, group)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """Give each process one of the tensors that one process has."""
    _from_first("scatter", src)
    return _one("scatter", tensors)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM,
                   group: ProcessGroup | None = None) -> Tensor:
    """Combine lists of tensors, and give each process one of the results."""
    return output.copy_(_one("reduce_scatter", input_list))


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
               group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Give each process one tensor of every process."""
    found = _one("all_to_all", input_tensor_list)
    return tuple(output.copy_(found) for output in output_tensor_list)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: ProcessGroup | None = None) -> Tensor:
    """Give each process a part of the tensor of every process."""
    get_world_size(group)
    return output.copy_(input)
