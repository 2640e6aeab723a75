"""What `compile` makes of a module."""
from __future__ import annotations

from ...compiler import OptimizedModule

__all__ = ["OptimizedModule"]
