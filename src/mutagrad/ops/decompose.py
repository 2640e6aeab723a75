"""Factorizations of matrices, and what is computed by them: inverses, solutions, determinants."""
from __future__ import annotations
