"""What a program asks about Intel's GPUs: there are none here."""
from __future__ import annotations

from typing import Any

from .errors import NoDevice

_NEEDS_A_DEVICE = "synchronize set_device current_device get_device_name get_device_properties current_stream"


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """Waits until a device is first used, which none is."""
    int(seed)


def seed() -> None:
    return None


def empty_cache() -> None:
    return None


def memory_allocated(device: Any = None) -> int:
    return 0


def __getattr__(name: str) -> Any:
    """Functions that need a device exist, and say so when they are called."""
    if name not in _NEEDS_A_DEVICE.split():
        raise AttributeError(f"module 'mutagrad.xpu' has no attribute {name!r}")

    def unavailable(*arguments: Any, **settings: Any) -> Any:
        raise NoDevice(f"xpu.{name}: this build computes on the CPU only", fix="if mutagrad.xpu.is_available(): ...")

    return unavailable
