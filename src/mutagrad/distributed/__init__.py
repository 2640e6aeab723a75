"""Process groups: a program can be in one by itself, where all that processes tell each other is already known."""
from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..base.errors import BadValue, NotSupported

if TYPE_CHECKING:
    from datetime import timedelta

    from ..tensors.tensor import Tensor


class ProcessGroup:
    """What processes communicate in; the one that there can be has this process only."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 1


class Work:
    """What `async_op=True` returns: communication that is over."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


_groups: list[ProcessGroup] = []  # the one that was made, if any


class ReduceOp(Enum):
    """How values of several processes are put together."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return bool(_groups)


def is_nccl_available() -> bool:
    return False


def is_gloo_available() -> bool:
    return False


def is_mpi_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
                       world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
                       pg_options: Any = None, device_id: Any = None) -> None:
    """Begin a group of one process; world_size, or WORLD_SIZE in the environment, says how many there are."""
    if _groups:
        raise BadValue("distributed.init_process_group: there is a process group already",
                       fix="destroy_process_group()")
    size = world_size if world_size != -1 else int(os.environ.get("WORLD_SIZE", "0"))
    if size != 1:
        raise NotSupported(f"distributed.init_process_group: one process computes here, not {size or 'several'}",
                           why="there is no communication between processes", fix="world_size=1, rank=0")
    if rank not in (-1, 0):
        raise BadValue(f"distributed.init_process_group: the rank of the only process is 0, not {rank}", fix="rank=0")
    _groups.append(ProcessGroup(backend or "gloo"))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End the group."""
    _joined("destroy_process_group").clear()


def _joined(name: str) -> list[ProcessGroup]:
    if not _groups:
        raise BadValue(f"distributed.{name}: there is no process group",
                       fix="if mutagrad.distributed.is_initialized(): ...")
    return _groups


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the number of this process in its group: 0."""
    return _joined("get_rank")[0].rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return how many processes are in the group: 1."""
    return _joined("get_world_size")[0].size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return what the group was said to communicate with."""
    return _joined("get_backend")[0].backend


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None) -> ProcessGroup:
    """Make another group of this process."""
    first = _joined("new_group")[0]
    if ranks is not None and list(ranks) != [0]:
        raise BadValue(f"distributed.new_group: process 0 is the only one, got {list(ranks)}", fix="ranks=[0]")
    return ProcessGroup(backend or first.backend)


def _check_ranks(name: str, *ranks: int | None) -> None:
    _joined(name)
    if any(ranks):
        raise BadValue(f"distributed.{name}: process 0 is the only one, not {max(filter(None, ranks))}", fix="0")


def _copied(name: str, targets: Sequence[Tensor], sources: Sequence[Tensor], async_op: bool) -> Work | None:
    """Writes what the only process gives into what it gets."""
    _joined(name)
    if len(targets) != 1 or len(sources) != 1:
        raise BadValue(f"distributed.{name}: there is one process, and {len(targets)} tensors to write from "
                       f"{len(sources)}", fix="lists of one tensor")
    targets[0].copy_(sources[0].detach().reshape(targets[0].shape))
    return Work() if async_op else None


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for the other processes, of which there are none."""
    _joined("barrier")
    return Work() if async_op else None


def monitored_barrier(group: ProcessGroup | None = None, timeout: timedelta | None = None,
                      wait_all_ranks: bool = False) -> None:
    """Wait for the other processes, of which there are none."""
    _joined("monitored_barrier")


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Leave the tensor as it is: the sum, or the like, over the processes."""
    _joined("all_reduce")
    return Work() if async_op else None


def reduce(tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Do as all_reduce for one of the processes."""
    _check_ranks("reduce", dst, group_dst)
    return Work() if async_op else None


def broadcast(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Leave the tensor as it is: that of one process for all."""
    _check_ranks("broadcast", src, group_src)
    return Work() if async_op else None


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None,
                          device: Any = None, group_src: int | None = None) -> None:
    """Leave the list as it is: the objects of one process for all."""
    _check_ranks("broadcast_object_list", src, group_src)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into those of a list."""
    return _copied("all_gather", tensor_list, [tensor], async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None,
                           async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into one."""
    return _copied("all_gather_into_tensor", [output_tensor], [input_tensor], async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Put the objects of all processes into a list."""
    _joined("all_gather_object")
    object_list[0] = obj


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Write a tensor from each process for each."""
    return _copied("all_to_all", output_tensor_list, input_tensor_list, async_op)


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: ProcessGroup | None = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Do as all_gather for one of the processes."""
    _check_ranks("gather", dst, group_dst)
    return _copied("gather", gather_list or [], [tensor], async_op)


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: ProcessGroup | None = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Write the tensor that one process has for this one."""
    _check_ranks("scatter", src, group_src)
    return _copied("scatter", [tensor], scatter_list or [], async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM,
                   group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Combine lists of all processes; each gets one tensor of the result."""
    return _copied("reduce_scatter", [output], input_list, async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM,
                          group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Combine tensors of all processes; each gets a part of the result."""
    return _copied("reduce_scatter_tensor", [output], [input], async_op)


# PyTorch's parts, and where they are here.
_PARTS = {"nn": "functional"} | dict.fromkeys(("autograd", "device_mesh", "fsdp", "optim", "rpc", "tensor"), "others")


def __getattr__(name: str) -> Any:
    """Find the parts; what needs several processes exists, and says that there is one when it is called."""
    if name in _PARTS:
        return import_module(f"{__name__}.{_PARTS[name]}")
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(import_module(f"{__name__}.others"), name)
    if name not in ("irecv", "isend", "recv", "send"):
        raise AttributeError(f"module 'mutagrad.distributed' has no attribute {name!r}")

    def without_others(*arguments: Any, **settings: Any) -> Any:
        raise BadValue(f"distributed.{name}: there is no process group with another process",
                       fix="if mutagrad.distributed.is_initialized(): ...")

    return without_others
