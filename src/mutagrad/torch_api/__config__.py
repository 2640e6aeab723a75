"""How this build computes, in words."""
from __future__ import annotations

import os

from ..arrays import np
from ..arrays.threads import get_num_threads


def show() -> str:
    """Return what it is built on."""
    return f"mutagrad on NumPy {np.__version__}, CPU only"


def parallel_info() -> str:
    """Return how many threads share the work on a large array."""
    return (f"threads for large arrays: {get_num_threads()}\ncores: {os.cpu_count()}\n"
            "threads of NumPy's own library for products: see threadpoolctl")
