"""JAX's devices, and what they say of themselves."""
from __future__ import annotations

from typing import Any

import jax

from . import rules
from .memory import Place, place_of

__all__ = ["Place", "devices", "place_of", "rules", "statistics", "wait"]  # rules: what NumPy's functions mean there


def devices(platform: str | None) -> list[Any]:
    """Return the devices of a platform of JAX's (None: of its default one); none if there is no such platform."""
    try:
        return list(jax.local_devices(backend=platform))
    except RuntimeError:
        return []


def statistics(device: Any) -> dict[str, int]:
    """Return what a device says of its memory, in bytes."""
    return dict(device.memory_stats() or {})


def wait(device: Any) -> None:
    """Return when all that a device was asked to compute is done."""
    jax.effects_barrier()  # type: ignore[no-untyped-call]
    (jax.device_put(0.0, device) + 0).block_until_ready()
