"""Losses and distances."""
from __future__ import annotations
