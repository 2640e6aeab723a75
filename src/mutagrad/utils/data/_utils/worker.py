"""What a process that loads data knows of itself, under PyTorch's path."""
from __future__ import annotations

from ..workers import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
