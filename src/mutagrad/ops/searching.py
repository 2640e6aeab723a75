"""Sorting and searching: distinct values, places in sorted sequences, histograms."""
from __future__ import annotations
