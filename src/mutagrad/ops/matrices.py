"""Triangles, diagonals and other rearrangements of matrices."""
from __future__ import annotations
