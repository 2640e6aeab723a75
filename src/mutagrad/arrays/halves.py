"""Pieces of float16 and float32 turned into each other by their bits, in a fraction of NumPy's time.

NumPy has no vectors for that and goes one by one. The results are the same, bit for bit.
"""
from __future__ import annotations

from ..base.operands import Array
from .kinds import raw as numpy
from .numpy import clip

# The sign, and the bits of a half where float32 has them.
_REST = numpy.array(0x8FFFE000, numpy.uint32).view(numpy.int32)
_UP, _DOWN = numpy.array(2.0**112, numpy.float32), numpy.array(2.0**-112, numpy.float32)  # between their exponents


def widen(a: Array, out: Array) -> None:
    """Write halves as float32: the bits are the same, but for an exponent that counts from elsewhere."""
    half = a.view(numpy.int16)
    if half.max() >= 0x7C00 or a.view(numpy.uint16).max() >= 0xFC00:  # inf and nan have the largest exponent
        numpy.copyto(out, a)
        return
    bits = out.view(numpy.int32)
    numpy.copyto(bits, half)
    bits <<= 13
    bits &= _REST
    numpy.multiply(out, _UP, out=out)


# Bits of float32: the exponent; that of 2**-14, below which halves have steps alike; that of 2**15.
_EXPONENT, _LEAST, _LARGEST = numpy.array([0xFF << 23, (127 - 14) << 23, (127 + 15) << 23], numpy.int32)
_SHIFT = numpy.array(1.5 * 2.0**13, numpy.float32)


def narrow(a: Array, out: Array) -> None:
    """Write float32 as halves, rounded to the nearest, to an even one of two.

    The sum with a number some 2**13 times as large rounds as a half does: its last bits count steps of the half. (One
    and a half times, so that the sum has the exponent of that number, whichever the sign is.)
    """
    bits = a.view(numpy.int32)
    power = bits & _EXPONENT
    if power.max() >= _LARGEST:
        numpy.copyto(out, a, "same_kind")
        return
    clip(power, _LEAST, _LARGEST, out=power)
    large = power.view(numpy.float32)
    numpy.multiply(large, _SHIFT, out=large)
    rounded = a + large
    numpy.subtract(rounded, large, out=rounded)
    numpy.multiply(rounded, _DOWN, out=rounded)
    found = rounded.view(numpy.int32)
    found >>= 13
    half = out.view(numpy.int16)
    numpy.copyto(half, found, "same_kind")
    numpy.right_shift(bits, 16, out=found)
    sign = found.astype(numpy.int16)
    sign &= -0x8000
    half |= sign
