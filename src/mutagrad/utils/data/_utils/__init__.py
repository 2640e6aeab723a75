"""Parts of the loader under the paths that they have in PyTorch."""
from __future__ import annotations

from . import collate, pin_memory, worker

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "pin_memory", "worker"]

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which PyTorch's workers look for their parent; here they are told
