"""Utilities under PyTorch's names."""
from __future__ import annotations

from . import _pytree

__all__ = ["_pytree"]
