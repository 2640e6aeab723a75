"""Process groups: there are none, so a program that asks first runs on its own."""
from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from .errors import BadValue, NotSupported

_NEEDS_A_GROUP = """
    all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all barrier broadcast broadcast_object_list context destroy_process_group
    fully_shard gather get_backend get_rank get_world_size implicit_replication init_device_mesh irecv isend monitored_barrier new_group recv reduce
    reduce_scatter reduce_scatter_tensor scatter send"""


class ProcessGroup:
    """What processes communicate in; there are none."""


class ZeroRedundancyOptimizer:
    """An optimizer whose state is spread over processes; there is one."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise NotSupported(f"distributed.{type(self).__name__}: one process computes here", why="there is no communication between processes",
                           fix="the model and its optimizer themselves")


class FullyShardedDataParallel(ZeroRedundancyOptimizer):
    """A model that is spread over processes; there is one."""


FSDPModule = FullyShardedDataParallel


class DeviceMesh(FullyShardedDataParallel):
    """Devices of several processes, in rows and columns; there is one."""


class DTensor:
    """A tensor that is spread over processes; there is one."""


class RRef:
    """A value in another process; there is none."""


class ReduceOp(Enum):
    """How values of several processes are put together."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_nccl_available() -> bool:
    return False


def is_gloo_available() -> bool:
    return False


def is_mpi_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


def record(fn: Any, error_handler: Any = None) -> Any:
    """The function itself: errors of other processes are not collected."""
    return fn


def init_process_group(*arguments: Any, **settings: Any) -> None:
    raise NotSupported("distributed.init_process_group: one process computes here", why="there is no communication between processes",
                       fix="if mutagrad.distributed.is_available(): ...")


def __getattr__(name: str) -> Any:
    """Collective operations exist, and say that there is no group when they are called."""
    if name in ("autograd", "device_mesh", "fsdp", "nn", "optim", "rpc", "tensor"):  # PyTorch's parts, of which there is little here
        return sys.modules[__name__]
    if name not in _NEEDS_A_GROUP.split():
        raise AttributeError(f"module 'mutagrad.distributed' has no attribute {name!r}")

    def without_group(*arguments: Any, **settings: Any) -> Any:
        raise BadValue(f"distributed.{name}: there is no process group", fix="if mutagrad.distributed.is_initialized(): ...")

    return without_group
