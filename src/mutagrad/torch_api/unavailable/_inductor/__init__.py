"""Programs set up the code generator of PyTorch's compiler here. There is none: settings change nothing."""
from __future__ import annotations

from . import config

__all__ = ["config"]
