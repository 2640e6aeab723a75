"""What is done by other means here, under PyTorch's names: none of it can be made.

The classes are classes, so that programs can ask `isinstance(model, FullyShardedDataParallel)`, and get the answer no.
"""
from __future__ import annotations

from typing import Any

from ..base.errors import NotSupported


def _refuse(name: str) -> NotSupported:
    return NotSupported(f"distributed.{name}: is not supported", why="tensors are spread by placing them",
                        fix="distributed.fsdp.fully_shard(model, mesh=mesh), or distribute_module(model, mesh)")


class ZeroRedundancyOptimizer:
    """An optimizer whose state is spread over processes."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise _refuse(type(self).__name__)


class FullyShardedDataParallel(ZeroRedundancyOptimizer):
    """A model that is spread over processes."""


class RRef(ZeroRedundancyOptimizer):
    """A value in another process."""


_FUNCTIONS = frozenset([
    "context", "implicit_replication", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown"])


def record(fn: Any, error_handler: Any = None) -> Any:
    """Return the function: it would tell other processes of its errors, and there are none."""
    return fn


def __getattr__(name: str) -> Any:
    """Find a function that needs several processes, which says so when it is called."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def without_others(*arguments: Any, **settings: Any) -> Any:
        raise _refuse(name)

    return without_others
