"""One product of matrices on several threads, each of which has OpenBLAS compute its rows, or its columns.

OpenBLAS's own threads sleep between products and wait for each other within one: 256 x 256 x 256 takes 0.26 ms on two
cores, and 0.32 on one. Ours are awake as a rule (workers.py), and have nothing to tell each other: 0.17 ms.
"""
from __future__ import annotations

from functools import cache, partial
from struct import Struct
from typing import Any

import numpy

from ...base.operands import Array
from ..threads import get_num_threads
from .compiler import Kernel, choice
from .layout import address
from .workers import INTERPRETED, Shared

WORTH = 1 << 18  # multiplications from which OpenBLAS would wake its threads
SHARED = 1 << 20  # and from which ours are worth it
LEAST = 32  # rows or columns for each thread: it lays the whole of the other factor out for itself
_PLAIN, _TURNED = 111, 112  # CBLAS's names
_pack = Struct("14q").pack_into
_SOURCE = """

def kernel(start, stop, given):
    w = row_q(given, 14)
    function, by_rows, m, n, k, c = w[0], w[1], w[2], w[3], w[4], w[5]
    a, left, lda, down, b, right, ldb, across = w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]
    if by_rows:
        product_{0}(function, left, right, stop - start, n, k, a + start * down, lda, b, ldb, c + start * n * {1}, n)
    else:
        product_{0}(function, left, right, m, stop - start, k, a, lda, b + start * across, ldb, c + start * {1}, n)
    return 0
"""


@cache
def kernel_of(char: str) -> Kernel:
    """Return the loop for matrices of a type."""
    return Kernel(f"product of matrices of {numpy.dtype(char).name}",
                  partial(Shared, _SOURCE.format(char, numpy.dtype(char).itemsize)))


def kernel(a: Array, b: Array) -> Any:
    """Return the loop for `a @ b`; None where there is none, or it would be no faster."""
    char = a.dtype.char
    if (not choice.on or INTERPRETED or char not in "fd" or b.dtype is not a.dtype or a.shape[1] != b.shape[0]
            or get_num_threads() < 2 or max(a.shape[0], b.shape[1]) < 2 * LEAST
            or not all(v.flags.c_contiguous or v.flags.f_contiguous for v in (a, b))):
        return None
    return kernel_of(char).get()


def run(loop: Any, function: int, a: Array, b: Array) -> Any:
    """Return `a @ b`, computed by CBLAS's function at this address."""
    (m, k), n, item = a.shape, b.shape[1], a.itemsize
    out: Any = numpy.empty((m, n), a.dtype)
    by_rows, given = m >= n, bytearray(14 * 8)
    # How each lies in memory, how far its lines are apart, and from one row of `a`, or column of `b`, to the next.
    left = (_PLAIN, k, k * item) if a.flags.c_contiguous else (_TURNED, m, item)
    right = (_PLAIN, n, item) if b.flags.c_contiguous else (_TURNED, k, k * item)
    _pack(given, 0, function, by_rows, m, n, k, address(out), address(a), *left, address(b), *right)
    count = m if by_rows else n
    threads = min(get_num_threads(), count // LEAST) if m * n * k >= SHARED else 1
    loop(count, numpy.frombuffer(given, numpy.int64), threads)
    return out
