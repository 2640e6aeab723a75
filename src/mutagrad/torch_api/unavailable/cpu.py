"""The CPU as a device: one, always there, never waited for."""
from __future__ import annotations

from typing import Any


def is_available() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def synchronize(device: Any = None) -> None:
    return None


def set_device(device: Any) -> None:
    return None
