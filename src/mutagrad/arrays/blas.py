"""OpenBLAS, which multiplies NumPy's matrices on threads of its own.

Where many small products are part of work that is spread over our threads, or of one decomposition, `on_one_thread`
keeps OpenBLAS from spreading each of them. It speaks to the libraries that come with the wheels of NumPy and SciPy,
which has one of its own; elsewhere it does nothing.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from glob import escape, glob
from typing import Any

from ..base.locks import new_lock
from ..base.operands import Array
from .numpy import np


def _libraries(owner: str) -> Iterator[Any]:
    packages = os.path.dirname(os.path.dirname(np.__file__))
    for path in glob(os.path.join(escape(packages), f"{owner}.libs", "libscipy_openblas*.so")):
        with suppress(OSError):
            yield ctypes.CDLL(path)


@cache
def _library(owner: str = "numpy") -> Any:
    """How the OpenBLAS of NumPy or SciPy tells and sets its number of threads.

    None where there is another BLAS, or one that lacks these functions.
    """
    for found in _libraries(owner):
        for end in ("64_", ""):
            get = getattr(found, f"scipy_openblas_get_num_threads{end}", None)
            put = getattr(found, f"scipy_openblas_set_num_threads{end}", None)
            if get is not None and put is not None:
                return get, put
    return None


@cache
def product_address(char: str) -> int:
    """Return where the product of matrices of this type is in NumPy's OpenBLAS, with integers of 64 bits; else 0."""
    if _library() is not None:
        for library in _libraries("numpy"):
            function = getattr(library, f"scipy_cblas_{'s' if char == 'f' else 'd'}gemm64_", None)
            if function is not None:
                return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


@cache
def transposing(char: str) -> Any:
    """Return the function of NumPy's OpenBLAS that copies a matrix of this type into its transpose; None without one.

    It is given rows, columns, where the matrix is and how many elements its rows are apart, and the same of the copy.
    """
    if char not in "fd" or _library() is None:
        return None
    for library in _libraries("numpy"):
        if (found := getattr(library, f"scipy_cblas_{'s' if char == 'f' else 'd'}omatcopy64_", None)) is not None:
            number = ctypes.c_float if char == "f" else ctypes.c_double
            kind, size, place = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
            found.argtypes, found.restype = [kind, kind, size, size, number, place, size, place, size], None
            return partial(_transpose, found)
    return None


_ROW_MAJOR, _TRANSPOSED = 101, 112


def _transpose(function: Any, rows: int, columns: int, source: int, apart: int, target: int, wide: int) -> None:
    function(_ROW_MAJOR, _TRANSPOSED, rows, columns, 1.0, source, apart, target, wide)


# Whose owner has changed an OpenBLAS's number of threads.
_turns = {"numpy": new_lock(), "scipy": new_lock()}


def on_one_thread(work: Callable[[bool], Any], owner: str = "numpy") -> Any:
    """Call `work(free)` while OpenBLAS uses one thread; `free` says whether its work may be spread over ours instead.

    The number is one for the whole process. Who comes while another thread has changed it leaves it alone. An interrupt
    at any place finds it as it was, or a `finally` that sets it back: what must not be interrupted is one call of a C
    function each.
    """
    library = _library(owner)
    if library is None:
        return work(False)
    get, put = library
    turn, mine, before = _turns[owner], False, 0
    try:
        mine = turn.acquire(blocking=False)
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
                turn.release()
            except RuntimeError:  # another thread has it, or nobody yet
                pass


# Elements of a matrix from which OpenBLAS uses several threads for its product with a vector, and from which that pays
# though they first have to wake.
SPREAD, WORTH = 9216, 1 << 23


def times_vector(a: Array, b: Array) -> Any:
    """Return `a @ b`, of which one is a vector, so that it costs what one pass over the other does."""
    if not SPREAD <= max(a.size, b.size) < WORTH:
        return np.matmul(a, b)
    return on_one_thread(lambda _: np.matmul(a, b))
