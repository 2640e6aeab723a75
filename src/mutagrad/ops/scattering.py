"""Copies of a tensor with one window of it replaced."""
from __future__ import annotations
