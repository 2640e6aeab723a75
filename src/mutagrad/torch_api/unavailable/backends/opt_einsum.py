"""Whether this build uses opt_einsum: it does not."""
from __future__ import annotations


def is_available() -> bool:
    return False
