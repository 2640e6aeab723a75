"""Activations, and dropout."""
from __future__ import annotations
