"""Process groups: processes that compute the same program and tell each other their tensors.

    init_process_group()              # as MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE in the environment say
    all_reduce(x)                     # x is the sum over all processes now

`mutagrad launch --nproc 2 train.py` starts processes on this machine. A group of one process needs nothing else; in one
of several, JAX connects them. What is compiled for several devices exchanges more, and faster, by placing tensors over
a mesh of the devices of all processes: see `distributed.tensor`.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..arrays import np
from ..arrays.kinds import host, is_replayed, is_spread
from ..base.errors import BadArgument, BadValue, NotSupported
from ..base.sockets import socket
from ..core.factory import make
from ..core.storage import TensorBase

if TYPE_CHECKING:
    from datetime import timedelta

    from ..base.operands import Array
    from ..tensors.tensor import Tensor

WAIT = 300.0  # seconds to wait for the other processes at the start


class ProcessGroup:
    """Processes that communicate: `ranks` are their numbers among all."""

    def __init__(self, backend: str, ranks: tuple[int, ...] = (0,), own: int = 0) -> None:
        self.backend, self.ranks, self.own = backend, ranks, own

    def rank(self) -> int:
        """The number of this process among those of the group; -1 if it is none of them."""
        return self.ranks.index(self.own) if self.own in self.ranks else -1

    def size(self) -> int:
        return len(self.ranks)


class GroupMember:
    """PyTorch's name for the group of all processes."""

    WORLD: ProcessGroup | None = None


group = GroupMember


class Work:
    """What `async_op=True` returns: communication that is over."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


_groups: list[ProcessGroup] = []  # the one of all processes, if there is one


class ReduceOp(Enum):
    """How values of several processes are put together."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


def is_available() -> bool:
    """Return whether there can be several processes: if JAX is installed, which connects them."""
    return find_spec("jax") is not None


is_gloo_available = is_available


def is_nccl_available() -> bool:
    return bool(socket("devices").available("cuda"))


def is_initialized() -> bool:
    return bool(_groups)


def is_mpi_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return "LOCAL_RANK" in os.environ


# --------------------------------------------------------------------------------------------------------------- groups

def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
                       world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
                       pg_options: Any = None, device_id: Any = None) -> None:
    """Begin a group: `world_size` processes, of which this is number `rank`, meet at an address.

    `init_method` is "env://", which reads MASTER_ADDR and MASTER_PORT, or "tcp://host:port". Sizes and numbers that are
    not given are WORLD_SIZE and RANK in the environment. It comes before the first tensor on a device.
    """
    name = "distributed.init_process_group"
    if _groups:
        raise BadValue(f"{name}: there is a process group already", fix="destroy_process_group()")
    if store is not None:
        raise NotSupported(f"{name}: a store is not supported", why="JAX has its own way to meet",
                           fix='init_method="tcp://127.0.0.1:29500"')
    size = world_size if world_size != -1 else _from_environment(name, "WORLD_SIZE", "world_size=1, rank=0")
    number = rank if rank != -1 else 0 if size == 1 else _from_environment(name, "RANK", "rank=0")
    if not 0 <= number < size:
        raise BadValue(f"{name}: rank {number} of {size} processes", fix=f"a rank from 0 to {size - 1}")
    if size > 1:
        address = _address(name, init_method)
        socket("devices").jax_devices(name)
        socket("processes").start(address, size, number, timeout.total_seconds() if timeout is not None else WAIT)
    _groups.append(ProcessGroup(backend or "gloo", tuple(range(size)), number))
    GroupMember.WORLD = _groups[0]


def _from_environment(name: str, variable: str, fix: str) -> int:
    if not os.environ.get(variable, "").isdecimal():
        raise BadValue(f"{name}: {variable} is not set", why="it says what is not given by an argument",
                       fix=f"{fix}; or `mutagrad launch --nproc 2 train.py`, which sets it")
    return int(os.environ[variable])


def _address(name: str, method: str | None) -> str:
    """Where processes meet."""
    if method in (None, "env://"):
        if not os.environ.get("MASTER_ADDR") or not os.environ.get("MASTER_PORT"):
            raise BadValue(f"{name}: MASTER_ADDR or MASTER_PORT is not set", why="processes meet at that address",
                           fix='init_method="tcp://127.0.0.1:29500", or `mutagrad launch --nproc 2 train.py`')
        return f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    parts = urlsplit(method)
    if parts.scheme != "tcp" or not parts.hostname or not parts.port:
        raise NotSupported(f"{name}: init_method={method!r} is no way to meet", fix='"env://" or "tcp://host:port"')
    return f"{parts.hostname}:{parts.port}"


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End the group, or a smaller one that was made of it."""
    everybody = _joined("destroy_process_group")
    if group is not None and group is not everybody:
        return
    _groups.clear()
    GroupMember.WORLD = None
    if everybody.size() > 1:
        socket("processes").stop()


def _joined(name: str, group: ProcessGroup | None = None) -> ProcessGroup:
    if not _groups:
        raise BadValue(f"distributed.{name}: there is no process group",
                       fix="if mutagrad.distributed.is_initialized(): ...")
    return group if group is not None else _groups[0]


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the number of this process in its group."""
    return _joined("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return how many processes are in the group."""
    return _joined("get_world_size", group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return what the group was said to communicate with."""
    return _joined("get_backend", group).backend


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the numbers, among all, of the processes of a group."""
    return list(_joined("get_process_group_ranks", group).ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process among those on this machine."""
    return int(os.environ.get("LOCAL_RANK", get_rank() if fallback_rank is None else fallback_rank))


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None) -> ProcessGroup:
    """Make a group of some of the processes; all of them have to make it."""
    first = _joined("new_group")
    chosen = first.ranks if ranks is None else tuple(ranks)
    if not set(chosen) <= set(first.ranks) or not chosen:
        raise BadValue(f"distributed.new_group: there are processes {list(first.ranks)}, not {list(chosen)}",
                       fix=f"ranks={list(first.ranks)}")
    return ProcessGroup(backend or first.backend, chosen, first.own)


# -------------------------------------------------------------------------------------------------------- communication

def _values(name: str, tensor: Any) -> Array:
    """The elements of a tensor that is told to others."""
    if not isinstance(tensor, TensorBase):
        raise BadArgument(f"distributed.{name}: expects a tensor, got {type(tensor).__name__}",
                          fix="mutagrad.tensor(x)")
    if is_replayed() or is_spread(tensor._array):
        what = "inside a compiled step" if is_replayed() else "of a tensor over a mesh"
        raise NotSupported(f"distributed.{name}: not {what}", why="XLA finds what devices exchange",
                           fix="place tensors over a mesh of all processes (distribute_tensor), and compute with them")
    return np.asarray(host(tensor._array, name))


def _exchanged(array: Array, what: str, among: ProcessGroup, source: int = 0) -> Array:
    """What comes of the arrays of all processes of a group."""
    if among.size() == 1:
        return array[None] if what == "gather" else array
    found: Array = socket("processes").told(array, what, among.ranks, source)
    return found


def _write(tensor: Tensor, array: Array) -> None:
    tensor.detach().copy_(make(np.array(array)).reshape(tensor.shape))


def _source(name: str, among: ProcessGroup, rank: int | None, in_group: int | None) -> int:
    """Which process of a group is meant: by its number among all, or by that in the group."""
    if in_group is not None and 0 <= in_group < among.size():
        return in_group
    if in_group is None and (rank or 0) in among.ranks:
        return among.ranks.index(rank or 0)
    raise BadValue(f"distributed.{name}: there is no process {rank if in_group is None else in_group}",
                   why=f"the group has {list(among.ranks)}", fix=str(among.ranks[0]))


def _lists(name: str, among: ProcessGroup, *lists: Sequence[Any] | None) -> None:
    for tensors in lists:
        if tensors is None or len(tensors) != among.size():
            count = "no" if tensors is None else len(tensors)
            raise BadValue(f"distributed.{name}: {count} tensors for {among.size()} processes",
                           fix="a list of one tensor for each process")


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here."""
    _exchanged(np.zeros(()), "SUM", _joined("barrier", group))
    return Work() if async_op else None


def monitored_barrier(group: ProcessGroup | None = None, timeout: timedelta | None = None,
                      wait_all_ranks: bool = False) -> None:
    """Wait until all processes are here."""
    barrier(group)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Make the tensor the sum, or the like, of those of all processes."""
    among = _joined("all_reduce", group)
    values = _values("all_reduce", tensor)
    if among.size() > 1:
        _write(tensor, _exchanged(values, op.name, among))
    return Work() if async_op else None


def reduce(tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Do as all_reduce for one of the processes."""
    among = _joined("reduce", group)
    target = _source("reduce", among, dst, group_dst)
    found = _exchanged(_values("reduce", tensor), op.name, among)
    if among.rank() == target and among.size() > 1:
        _write(tensor, found)
    return Work() if async_op else None


def broadcast(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Make the tensor that of one process, in all."""
    among = _joined("broadcast", group)
    source = _source("broadcast", among, src, group_src)
    values = _values("broadcast", tensor)
    if among.size() > 1:
        _write(tensor, _exchanged(values, "pick", among, source))
    return Work() if async_op else None


def _objects(value: Any, among: ProcessGroup) -> list[Any]:
    return [value] if among.size() == 1 else list(socket("processes").objects(value, among.ranks))


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None,
                          device: Any = None, group_src: int | None = None) -> None:
    """Make the objects in a list those of one process, in all."""
    among = _joined("broadcast_object_list", group)
    source = _source("broadcast_object_list", among, src, group_src)
    object_list[:] = _objects(list(object_list) if among.rank() == source else None, among)[source]


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Put the objects of all processes into a list."""
    among = _joined("all_gather_object", group)
    object_list[:among.size()] = _objects(obj, among)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into those of a list."""
    among = _joined("all_gather", group)
    _lists("all_gather", among, tensor_list)
    for target, values in zip(tensor_list, _exchanged(_values("all_gather", tensor), "gather", among)):
        _write(target, values)
    return Work() if async_op else None


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None,
                           async_op: bool = False) -> Work | None:
    """Write the tensors of all processes into one."""
    among = _joined("all_gather_into_tensor", group)
    _write(output_tensor, _exchanged(_values("all_gather_into_tensor", input_tensor), "gather", among))
    return Work() if async_op else None


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Write a tensor from each process for each."""
    among = _joined("all_to_all", group)
    _lists("all_to_all", among, output_tensor_list, input_tensor_list)
    found = _exchanged(np.stack([_values("all_to_all", t) for t in input_tensor_list]), "gather", among)
    for target, values in zip(output_tensor_list, found):
        _write(target, values[among.rank()])
    return Work() if async_op else None


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: ProcessGroup | None = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Do as all_gather for one of the processes."""
    among = _joined("gather", group)
    if among.rank() == _source("gather", among, dst, group_dst):
        _lists("gather", among, gather_list)
    for target, values in zip(gather_list or [], _exchanged(_values("gather", tensor), "gather", among)):
        _write(target, values)
    return Work() if async_op else None


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: ProcessGroup | None = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Write the tensor that one process has for this one."""
    among = _joined("scatter", group)
    source = _source("scatter", among, src, group_src)
    if among.rank() == source:
        _lists("scatter", among, scatter_list)
    given = scatter_list if among.rank() == source and scatter_list else [tensor] * among.size()
    _write(tensor, _exchanged(np.stack([_values("scatter", t) for t in given]), "pick", among, source)[among.rank()])
    return Work() if async_op else None


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM,
                   group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Combine lists of all processes; each gets one tensor of the result."""
    among = _joined("reduce_scatter", group)
    _lists("reduce_scatter", among, input_list)
    found = _exchanged(np.stack([_values("reduce_scatter", t) for t in input_list]), op.name, among)
    _write(output, found[among.rank()])
    return Work() if async_op else None


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM,
                          group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Combine tensors of all processes; each gets a part of the result."""
    among = _joined("reduce_scatter_tensor", group)
    found = _exchanged(_values("reduce_scatter_tensor", input), op.name, among)
    _write(output, found.reshape(among.size(), -1)[among.rank()])
    return Work() if async_op else None


def _pair(name: str, other: int, group: ProcessGroup | None) -> ProcessGroup:
    among = _joined(name, group)
    if other == among.own or other not in among.ranks:
        raise BadValue(f"distributed.{name}: there is no process group with another process {other}",
                       why=f"the group has {list(among.ranks)}", fix="the rank of another process")
    return ProcessGroup(among.backend, tuple(sorted((among.own, other))), among.own)


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Tell a tensor to one other process, which has to ask for it with `recv`."""
    pair = _pair("send", dst, group)
    _exchanged(_values("send", tensor), "pick", pair, pair.rank())


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Write the tensor that one other process sends."""
    source = -1 if src is None else src
    pair = _pair("recv", source, group)
    _write(tensor, _exchanged(_values("recv", tensor), "pick", pair, 1 - pair.rank()))
    return source


# PyTorch's parts, and where they are here.
_PARTS = {"nn": "functional", "checkpoint": "checkpoint", "device_mesh": "device_mesh", "fsdp": "fsdp",
          "tensor": "tensor"} | dict.fromkeys(("autograd", "optim", "rpc"), "others")
_OF_STORES = "DistError", "DistNetworkError", "DistStoreError", "HashStore", "PrefixStore", "QueueEmptyError", "Store"
_NAMES = {"DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh", "TCPStore": "tcp_store"} | dict.fromkeys(
    _OF_STORES, "store")


def __getattr__(name: str) -> Any:
    """Find the parts, and what is in them."""
    if name in _PARTS:
        return import_module(f"{__name__}.{_PARTS[name]}")
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'mutagrad.distributed' has no attribute {name!r}")
