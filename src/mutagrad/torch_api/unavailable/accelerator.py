"""Whatever accelerator there is: a GPU of JAX's, or none."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.device import device
from ...base.sockets import socket
from .devices import needing

_RENAMED = {"current_device_index": "current_device", "current_device_idx": "current_device",
            "set_device_index": "set_device", "set_device_idx": "set_device"}
_needs_a_device = needing("accelerator")


def _present() -> bool:
    return bool(socket("devices").available("cuda"))


def is_available() -> bool:
    return _present()


def device_count() -> int:
    return int(socket("cuda").device_count()) if _present() else 0


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the device that is there besides the CPU."""
    return device("cuda") if _present() else None


def __getattr__(name: str) -> Callable[..., Any]:
    """Find a function that needs a device."""
    absent: Callable[..., Any] = _needs_a_device(name)
    return getattr(socket("cuda"), _RENAMED.get(name, name), absent) if _present() else absent
