"""Rows of a table by number."""
from __future__ import annotations

__all__: list[str] = []
