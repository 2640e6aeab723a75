"""What a program asks about Intel's GPUs: there are none here."""
from __future__ import annotations

from typing import Any

from .absent import absent


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


__getattr__ = absent("xpu", "synchronize set_device current_device get_device_name get_device_properties current_stream")
