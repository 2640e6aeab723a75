"""Programs set the code generator of PyTorch's compiler up here. There is none: settings are kept, and change nothing."""
from __future__ import annotations

from . import config

__all__ = ["config"]
