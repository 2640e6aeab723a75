"""Which version this is, and of what it was not built with."""
from __future__ import annotations

from ..base.sockets import socket

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__: str = socket("top").__version__
cuda = hip = xpu = None
debug = False
git_version = "Unknown"
