"""Whether this build uses openmp: it does not."""
from __future__ import annotations


def is_available() -> bool:
    return False
