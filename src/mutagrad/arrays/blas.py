"""OpenBLAS, which multiplies NumPy's matrices on threads of its own.

Where many small products are part of work that is spread over our threads, `on_one_thread` keeps OpenBLAS from
spreading each of them again. It speaks to the library that comes with NumPy's wheels; elsewhere it does nothing.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..base.locks import new_lock
from .numpy import np


@cache
def _library() -> Any:
    """The OpenBLAS that NumPy uses; None where there is another BLAS, or none that has the functions needed here."""
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas64_*.so"):
        with suppress(OSError):
            found = ctypes.CDLL(str(path))
            if all(hasattr(found, name) for name in ("scipy_openblas_get_num_threads64_",
                                                     "scipy_openblas_set_num_threads64_")):
                return found
    return None


_turn = new_lock()  # whose owner has changed OpenBLAS's number of threads


def on_one_thread(work: Callable[[bool], Any]) -> Any:
    """Call `work(free)` while OpenBLAS uses one thread; `free` says whether its work may be spread over ours instead.

    The number is one for the whole process. Who comes while another thread has changed it leaves it alone. An interrupt
    at any place finds it as it was, or a `finally` that sets it back: what must not be interrupted is one call of a C
    function each.
    """
    library = _library()
    if library is None:
        return work(False)
    get, put = library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
    mine, before = False, 0
    try:
        mine = _turn.acquire(blocking=False)
        if mine:
            before = get()
            put(1)
        return work(not mine or before > 1)
    finally:
        try:
            if before:
                put(before)
        finally:
            try:  # noqa: SIM105  suppress() runs Python code before the call
                _turn.release()
            except RuntimeError:  # another thread has it, or nobody yet
                pass
