"""Which classes a file that is loaded may name, beside those of plain data, under PyTorch's names."""
from __future__ import annotations

from .files import load, save
from .pickled import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
