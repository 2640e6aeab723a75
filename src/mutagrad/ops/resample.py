"""Resampling of images: interpolate, grid_sample, affine_grid."""
from __future__ import annotations

__all__: list[str] = []
