"""Intel's kernels, which are not used: the switches can be set, and change nothing."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled, deterministic = True, False


def is_available() -> bool:
    return False


@contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True) -> Iterator[None]:
    """Set them for a while."""
    before = {name: globals()[name] for name in ("enabled", "deterministic")}
    globals().update(enabled=enabled, deterministic=deterministic)
    try:
        yield
    finally:
        globals().update(before)
