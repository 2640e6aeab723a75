"""Floats of two bytes to float32 and back, by their bits: NumPy converts them one at a time."""
from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy

from .compiler import Kernel, choice
from .written import Written

WORTH = 1 << 14  # elements from which it is worth the call
NAMES = {"e": "half", "E": "bfloat16"}
_SOURCE = """

def kernel(start, stop, x, out):
    x, out = x[start:stop], out[start:stop]
    for i in range(x.size):
        out[i] = {}(x[i])
"""


@cache
def _kernel(function: str) -> Kernel:
    types = ("uint16[::1]", "float32[::1]") if function.startswith("of_") else ("float32[::1]", "uint16[::1]")
    return Kernel(function, partial(Written, _SOURCE.format(function), types))


def bits(array: Any) -> Any:
    """A short array as integers, over the same memory."""
    return array.view(numpy.uint16)


def convert(array: Any, dtype: Any) -> Any:
    """Return an array in another float type, one of them short; None where NumPy has to do it."""
    if not choice.on or array.size < WORTH or type(array) is not numpy.ndarray or not array.flags.c_contiguous:
        return None
    wide = array.dtype.char in NAMES and dtype == numpy.float32
    if not wide and (array.dtype != numpy.float32 or dtype.char not in NAMES):
        return None
    loop = _kernel(f"of_{NAMES[array.dtype.char]}" if wide else f"to_{NAMES[dtype.char]}").get()
    if loop is None:
        return None
    out = numpy.empty(array.shape, dtype)
    given = [(bits(a) if a.dtype.char in NAMES else a).reshape(-1) for a in (array, out)]
    loop.share(array.size, array.size, *given)
    return out
