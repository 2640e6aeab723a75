"""Whatever accelerator there is: none."""
from __future__ import annotations

from .absent import absent


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def current_accelerator(check_available: bool = False) -> None:
    return None


__getattr__ = absent("accelerator", """
    current_device_index current_device_idx current_stream empty_cache memory_allocated set_device_index set_device_idx set_stream synchronize""")
