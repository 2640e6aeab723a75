"""Padding, and the blocks of an image: unfold, fold, pixel_shuffle."""
from __future__ import annotations

__all__: list[str] = []
