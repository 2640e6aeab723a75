"""Products of matrices and vectors that are made of other products."""
from __future__ import annotations
