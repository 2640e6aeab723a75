"""What a program asks about Apple's GPUs: there are none here."""
from __future__ import annotations

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


__getattr__ = absent("mps", "synchronize empty_cache set_per_process_memory_fraction get_rng_state set_rng_state")
