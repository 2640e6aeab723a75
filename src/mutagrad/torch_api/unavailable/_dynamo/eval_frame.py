"""What `compile` would make of a module."""
from __future__ import annotations

from ....nn.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module that was compiled; there are none, as `compile` gives a module itself back."""
