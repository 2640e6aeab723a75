"""OpenBLAS, which multiplies NumPy's matrices on threads of its own.

Where many small products are part of work that is spread over our threads, `one_thread` keeps OpenBLAS from spreading each
of them again. It speaks to the library that comes with NumPy's wheels; elsewhere it does nothing.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from .host import np


@cache
def _library() -> Any:
    """The OpenBLAS that NumPy uses; None where there is another BLAS, or none that has the functions needed here."""
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_*.so"):
        with suppress(OSError):
            found = ctypes.CDLL(str(path))
            if all(hasattr(found, name) for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_")):
                return found
    return None


class _State:
    """How many are inside `one_thread`, and how many threads OpenBLAS had before the first of them."""

    def __init__(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, 1


_state = _State()


@contextmanager
def one_thread() -> Iterator[bool]:
    """While it lasts OpenBLAS uses one thread; gives whether its work may be spread over ours instead."""
    library = _library()
    if library is None:
        yield False
        return
    with _state.lock:
        if not _state.inside:
            _state.before = library.scipy_openblas_get_num_threads64_()
            library.scipy_openblas_set_num_threads64_(1)
        _state.inside += 1
    try:
        yield _state.before > 1
    finally:
        with _state.lock:
            _state.inside -= 1
            if not _state.inside:
                library.scipy_openblas_set_num_threads64_(_state.before)
