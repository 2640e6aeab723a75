"""Building blocks of networks."""
from __future__ import annotations

from . import functional

__all__ = ["functional"]
