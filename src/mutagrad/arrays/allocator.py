"""glibc's allocator, asked to keep the memory of large arrays that are freed.

By default it gives blocks of 128 KiB and more back to the system, and the next array pays a page fault for every 4 KiB:
more than the arithmetic on them. So when the first array of that size is made, and not before, `keep_memory` raises
glibc's thresholds for mapping and trimming, for the whole process. MUTAGRAD_KEEP_MEMORY=0 in the environment leaves
glibc as it is.
(One arena for all threads would make a little more of the memory reusable, but other threads of the program would wait
for it.)
"""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # mallopt's names for them


class _Allocator:
    """`least`: the size in bytes from which a new array is a reason to ask; none is, once that has been done."""

    least = 128 << 10


allocator = _Allocator()


def keep_memory() -> None:
    """Ask glibc to keep blocks of up to 32 MiB for reuse, once; does nothing elsewhere."""
    if allocator.least == sys.maxsize:
        return
    allocator.least = sys.maxsize
    mallopt = None if os.environ.get("MUTAGRAD_KEEP_MEMORY", "1") == "0" else _mallopt()
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, 32 << 20)
        mallopt(TRIM_THRESHOLD, 1 << 30)


def _mallopt() -> Callable[[int, int], int] | None:
    try:
        return ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
