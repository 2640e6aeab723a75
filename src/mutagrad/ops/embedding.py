"""Rows of a table by number."""
from __future__ import annotations
