"""Joining, splitting, repeating and turning."""
from __future__ import annotations
