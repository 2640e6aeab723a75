"""NVIDIA's cuDNN, which is not there: as in PyTorch's build for the CPU, its switches change nothing."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10


def is_available() -> bool:
    return False


def version() -> None:
    return None


def set_flags(_enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
              _deterministic: bool | None = None,
              _allow_tf32: bool | None = None) -> tuple[bool, bool, int, bool, bool]:
    """Set those that are given; return what all were before."""
    before = enabled, benchmark, benchmark_limit, deterministic, allow_tf32
    given = {"enabled": _enabled, "benchmark": _benchmark, "benchmark_limit": _benchmark_limit,
             "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    globals().update({name: value for name, value in given.items() if value is not None})
    return before


@contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
          allow_tf32: bool = True) -> Iterator[None]:
    """Set all of them for a while."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
