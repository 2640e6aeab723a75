"""What programs import to be measured. Python's own profilers see everything that happens here: `python -m cProfile`."""
from __future__ import annotations

from contextlib import ContextDecorator
from enum import Enum
from typing import Any

from .errors import NotSupported

__all__ = ["ProfilerActivity", "emit_nvtx", "profile", "record_function", "schedule", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """Where the time of a program goes."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class record_function(ContextDecorator):
    """A name for a part of a program, in a block or a decorator. Only PyTorch's profiler would read it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None


class profile(ContextDecorator):
    """Measures nothing, so it refuses to start; `enabled=False` is as in PyTorch."""

    def __init__(self, *arguments: Any, enabled: bool = True, **settings: Any) -> None:
        if enabled and False not in arguments[:1]:
            raise NotSupported("profile: there is no profiler", why="Python's own profilers see everything that happens here",
                               fix="python -m cProfile -s cumulative program.py")

    def __enter__(self) -> profile:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None


emit_nvtx = profile


def schedule(**settings: Any) -> dict[str, Any]:
    """When to measure: an argument of `profile`."""
    return settings


def tensorboard_trace_handler(*arguments: Any, **settings: Any) -> tuple[Any, ...]:
    """What to do with what was measured: an argument of `profile`."""
    return arguments
