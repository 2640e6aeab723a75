"""The modes that switch recording, under PyTorch's path."""
from __future__ import annotations

from .modes import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
