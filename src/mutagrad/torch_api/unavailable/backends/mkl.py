"""Whether this build uses mkl: it does not."""
from __future__ import annotations


def is_available() -> bool:
    return False
