"""Which version this is, and of what it was not built with."""
from __future__ import annotations

from . import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

cuda = hip = xpu = None
debug = False
git_version = "Unknown"
