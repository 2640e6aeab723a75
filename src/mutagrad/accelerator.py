"""Whatever accelerator there is: none."""
from __future__ import annotations

from typing import Any

from .errors import NoDevice

_NEEDS_A_DEVICE = """
    current_device_index current_device_idx current_stream empty_cache memory_allocated set_device_index set_device_idx set_stream synchronize"""


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def current_accelerator(check_available: bool = False) -> None:
    return None


def __getattr__(name: str) -> Any:
    """Functions that need an accelerator exist, and say so when they are called."""
    if name not in _NEEDS_A_DEVICE.split():
        raise AttributeError(f"module 'mutagrad.accelerator' has no attribute {name!r}")

    def unavailable(*arguments: Any, **settings: Any) -> Any:
        raise NoDevice(f"accelerator.{name}: there is no accelerator", fix="if mutagrad.accelerator.is_available(): ...")

    return unavailable
