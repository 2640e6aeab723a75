"""Python's multiprocessing under PyTorch's names. A tensor that goes to another process is copied there."""
from __future__ import annotations

import multiprocessing as _python
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from typing import Any

from ..base.errors import BadValue

__all__ = [*_python.__all__, "ProcessExitedException", "get_all_sharing_strategies", "get_sharing_strategy",
           "set_sharing_strategy", "spawn"]


class ProcessExitedException(Exception):
    """A process that `spawn` started has failed."""


_strategies = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    return set(_strategies)


def get_sharing_strategy() -> str:
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember it, without effect: tensors are copied between processes, and nothing is shared."""
    global _strategy
    if new_strategy not in _strategies:
        raise BadValue(f"set_sharing_strategy: {new_strategy!r} is none of {sorted(_strategies)}",
                       fix="set_sharing_strategy('file_system')")
    _strategy = new_strategy


def spawn(fn: Callable[..., None], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> Any:
    """Call `fn(number, *args)` in so many new processes, and wait for them unless told not to."""
    make: Any = _python.get_context(start_method).Process  # type: ignore[attr-defined]
    processes = [make(target=fn, args=(k, *args), daemon=daemon) for k in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    for process in processes:
        process.join()
    failed = [k for k, process in enumerate(processes) if process.exitcode]
    if failed:
        raise ProcessExitedException(f"process {failed[0]} terminated with exit code {processes[failed[0]].exitcode}")
    return None
