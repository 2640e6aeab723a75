"""Normal numbers out of uniform ones, by Box and Muller's method, with PyTorch's rounding.

PyTorch has it twice. Fewer than 16 numbers, and those that are not in order in memory, are drawn in pairs of doubles,
and the second of a pair is kept for the next call. Others are drawn by 16: eight radii, then eight angles, as doubles
or in single precision.

Of doubles, logarithms, sines and cosines are the C library's, in both libraries. Where NumPy's own differ from them in
the last bit, Python's `math` is asked for each number. In single precision PyTorch computes them by polynomials (of S.
Moshier's Cephes library) with fused multiplication and addition, and so does this: the product of two floats is exact
as a double.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...arrays import pieces
from ...arrays.compiled import draws as compiled_draws, rejection
from ...arrays.compiled.library import find_for
from ...arrays.kinds import raw as np
from ...arrays.numpy import choose
from ...arrays.threads import in_steps

GROUP = 16
FEW = 64  # groups that are not worth pieces
STEP = 1 << 12  # groups that are turned into normal numbers at a time, while they are in the cache

_LOGARITHM = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
              2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_LN2 = (-2.12194440e-4, 0.693359375)  # in two parts, of which the second is exact
_QUARTER_PI = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # in three, with its sign changed
_PER_QUARTER_PI = np.float32(1.27323954473516)
_ROOT_HALF = np.float32(0.707106781186547524)
_SIGN = np.int32(-1 << 31)
_ONE, _MINUS_TWO, _TURN = np.float32(1), np.float32(-2), np.float32(2 * math.pi)


def each(function: Callable[[float], float], array: Any) -> Any:
    """A function of Python's for each double: what the C library gives, to the last bit."""
    return np.fromiter(map(function, array.ravel().tolist()), np.float64, array.size).reshape(array.shape)


def fused(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of doubles, rounded once."""
    product = x * y
    high, low = _halves(x)
    upper, lower = _halves(y)
    lost = low * lower - (((product - high * upper) - low * upper) - high * lower)
    total = product + z
    part = total - product
    lost = lost + ((product - (total - part)) + (z - part))
    return np.where(np.isfinite(lost), total + lost, total)


def _halves(x: Any) -> tuple[Any, Any]:
    """A double as the sum of two numbers of 26 bits."""
    wide = x * 134217729.0
    high = wide - (wide - x)
    return high, x - high


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    """Horner's rule in single precision, each step rounded once; x is given as doubles that are floats."""
    found = float(np.float32(coefficients[0]))
    for c in coefficients[1:]:
        found = _single(found * x + float(np.float32(c)))
    return found


def _single(x: Any) -> Any:
    """Doubles rounded to single precision."""
    return x.astype(np.float32).astype(np.float64)


def logarithm(x: Any) -> Any:
    """The logarithm of floats from the least normal one to 1."""
    bits = x.view(np.int32)
    power = ((bits >> 23) - 126).astype(np.float32)
    x = (bits & 0x007FFFFF | 0x3F000000).view(np.float32)  # from 1/2 to 1
    small = x < _ROOT_HALF
    power -= small
    x = x - _ONE + choose(small, x, np.float32(0))
    wide = x.astype(np.float64)
    square = x * x
    y = (_polynomial(_LOGARITHM, wide).astype(np.float32) * x).astype(np.float64)
    y = _single(y * square + power * np.float32(_LN2[0]))
    y -= 0.5 * square.astype(np.float64)
    total = (x + y.astype(np.float32)).astype(np.float64)
    return (power.astype(np.float64) * _LN2[1] + total).astype(np.float32)


def sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """The sine and cosine of floats from 0 to 2 pi."""
    part = ((x * _PER_QUARTER_PI).astype(np.int32) + 1) & ~1  # eighths of a turn, as an even number
    parts = part.astype(np.float64)
    wide = x.astype(np.float64)
    for c in _QUARTER_PI:
        wide = _single(parts * float(np.float32(c)) + wide)
    x = wide.astype(np.float32)
    square = x * x
    z = square.astype(np.float64)
    c = (_polynomial(_COSINE, z).astype(np.float32) * square).astype(np.float64)
    cosine = (c * z - 0.5 * z).astype(np.float32) + _ONE
    s = (_polynomial(_SINE, z).astype(np.float32) * square).astype(np.float64)
    sine = (s * wide + wide).astype(np.float32)
    sine, cosine = sine.view(np.int32), cosine.view(np.int32)
    swapped = (part << 30 >> 31) & (sine ^ cosine)
    up, along = sine ^ swapped, cosine ^ swapped
    up ^= (part & 4) << 29  # the bit of the sign
    along ^= ~(part - 2) << 29 & _SIGN
    return up.view(np.float32), along.view(np.float32)


def singles(first: Any, second: Any, mean: float, std: float) -> tuple[Any, Any]:
    """Two normal floats of two uniform ones."""
    radius = np.sqrt(_MINUS_TWO * logarithm(_ONE - first))
    sine, cosine = sine_and_cosine(_TURN * second)
    return _spread_singles(radius * cosine, mean, std), _spread_singles(radius * sine, mean, std)


def _spread_singles(normal: Any, mean: float, std: float) -> Any:
    return normal if not mean and std == 1 else (normal.astype(np.float64) * std + mean).astype(np.float32)


def doubles(uniform: Any, mean: float, std: float) -> Any:
    """Groups of 16 doubles, of rows (2, 8)."""
    radius = np.sqrt(-2 * each(math.log, 1 - uniform[:, 0]))
    angle = 2 * math.pi * uniform[:, 1]
    return spread(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), mean, std)


def turn_to_normal(numbers: Any, mean: float, std: float) -> None:
    """Turn uniform numbers, of which there are whole groups of 16, into normal ones, where they are."""
    groups = numbers.reshape(-1, 2, GROUP // 2)
    if (loop := find_for(compiled_draws.normals, numbers)) is not None:
        loop.share(len(groups), numbers.size, groups, float(np.float32(mean)), float(np.float32(std)))
        return
    if numbers.dtype == np.float64:
        def work(part: slice) -> None:
            groups[part] = doubles(groups[part], mean, std)

        in_steps(len(groups), STEP, work, len(groups) >= 2 * STEP)
        return
    given = groups[:, 0].copy(), groups[:, 1].copy(), float(np.float32(mean)), float(np.float32(std))
    parts = [groups[:, 0], groups[:, 1]]
    if len(groups) < FEW or not pieces.run(singles, lambda given: singles(*given), given, None, parts):
        parts[0][...], parts[1][...] = singles(*given)


def pairs(uniform: Any) -> Any:
    """The standard normal numbers that uniform doubles give, in pairs, one after the other."""
    if (loop := find_for(rejection.normal_pairs, uniform)) is not None:
        loop(0, uniform.size // 2, uniform)
        return uniform
    radius = np.sqrt(-2.0 * each(math.log1p, -uniform[1::2]))
    angle = 2 * math.pi * uniform[::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)


def spread(normal: Any, mean: float, std: float) -> Any:
    """Standard normal doubles with another mean and standard deviation."""
    return normal * std if mean == 0 else fused(normal, np.float64(std), np.float64(mean))
