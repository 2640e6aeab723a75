"""What a program asks about Apple's GPUs: there are none here."""
from __future__ import annotations

from typing import Any

from .errors import NoDevice

_NEEDS_A_DEVICE = "synchronize empty_cache set_per_process_memory_fraction get_rng_state set_rng_state"


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """Waits until a device is first used, which none is."""
    int(seed)


def seed() -> None:
    return None


def __getattr__(name: str) -> Any:
    """Functions that need a device exist, and say so when they are called."""
    if name not in _NEEDS_A_DEVICE.split():
        raise AttributeError(f"module 'mutagrad.mps' has no attribute {name!r}")

    def unavailable(*arguments: Any, **settings: Any) -> Any:
        raise NoDevice(f"mps.{name}: this build computes on the CPU only", fix="if mutagrad.mps.is_available(): ...")

    return unavailable
