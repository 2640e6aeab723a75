"""Numbers that are drawn until they are accepted, so that each takes as many uniform ones as it needs.

The methods are PyTorch's, with its constants: for gamma numbers Marsaglia and Tsang's (2000), for Poisson and binomial
ones with a large mean Hoermann's transformed rejection (1993), and counting for a small one. Where in the stream a
number begins is known only when the one before it is done, so this is a loop.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...arrays.kinds import raw as np

Next = Callable[[], float]
LARGE = 10  # the mean from which rejection is quicker than counting

_SHRINK = float(np.float32(0.0331))


def gamma(concentration: Any, uniform: Next, normal: Next) -> Any:
    """Gamma numbers of rate one. What PyTorch computes in the type of the concentration, this does, too."""
    kind = concentration.dtype.type
    boosted = np.where(concentration < 1, concentration + kind(1), concentration)
    shift = (boosted - kind(np.float32(1) / np.float32(3))).astype(np.float64)
    inverse = (kind(1) / concentration).astype(np.float64)
    found = [_gamma(a, d, b, uniform, normal) for a, d, b in
             zip(concentration.ravel().tolist(), shift.ravel().tolist(), inverse.ravel().tolist())]
    return np.array(found, np.float64).astype(concentration.dtype).reshape(concentration.shape)


def _gamma(a: float, d: float, inverse: float, uniform: Next, normal: Next) -> float:
    scale = 1.0
    if a < 1:
        if a == 0:
            return 0.0
        scale = (1 - uniform()) ** inverse
    c = 1 / math.sqrt(9 * d) if d > 0 else math.nan
    while True:
        x = normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - uniform()
        square = x * x
        if u < 1 - _SHRINK * square * square or math.log(u) < 0.5 * square + d * (1 - v + math.log(v)) or c != c:
            return scale * d * v


def poisson(rate: Any, uniform: Next) -> Any:
    """Poisson numbers."""
    found = [_rejected_poisson(r, uniform) if r >= LARGE else _counted_poisson(r, uniform) if r else 0
             for r in rate.ravel().tolist()]
    return np.array(found, np.float64).astype(rate.dtype).reshape(rate.shape)


def _counted_poisson(rate: float, uniform: Next) -> int:
    least, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= uniform()
        if product <= least:
            return count
        count += 1


def _rejected_poisson(rate: float, uniform: Next) -> int:
    logarithm = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    tight = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = uniform() - 0.5
        v = uniform()
        inside = 0.5 - abs(u)
        k = math.floor((2 * a / inside + b) * u + rate + 0.43) if inside else -1
        if inside >= 0.07 and v <= tight:
            return k
        if k < 0 or inside < 0.013 and v > inside:
            continue
        ratio = _log(v) + math.log(inverse) - math.log(a / (inside * inside) + b)
        if ratio <= -rate + k * logarithm - math.lgamma(k + 1):
            return k


def binomial(count: Any, p: Any, uniform: Next) -> Any:
    """Binomial numbers. What is out of range is taken for the nearest count or probability."""
    rest = (p.dtype.type(1) - p).ravel().tolist()
    found = [_binomial(n, q, r, uniform) for n, q, r in zip(count.ravel().tolist(), p.ravel().tolist(), rest)]
    return np.array(found, np.float64).astype(count.dtype).reshape(count.shape)


def _binomial(n: float, p: float, rest: float, uniform: Next) -> float:
    if n <= 0 or p <= 0:
        return 0
    if p >= 1:
        return n
    if p != p or n != n:
        return math.nan
    draw = _rejected_binomial if n * min(p, rest) >= LARGE else _counted_binomial
    return draw(n, p, uniform) if p <= 0.5 else n - draw(n, rest, uniform)


def _counted_binomial(n: float, p: float, uniform: Next) -> float:
    """How many geometric numbers it takes to pass n, less one."""
    logarithm, total, count = math.log1p(-p), 0.0, 0
    while True:
        total += math.ceil(_log(uniform()) / logarithm)
        if total > n:
            return count
        count += 1


def _rejected_binomial(n: float, p: float, uniform: Next) -> float:
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center = n * p + 0.5
    tight = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((n + 1) * p)
    while True:
        u = uniform() - 0.5
        v = uniform()
        inside = 0.5 - abs(u)
        k = math.floor((2 * a / inside + b) * u + center) if inside else -1
        if inside >= 0.07 and v <= tight:
            return k
        if k < 0 or k > n:
            continue
        bound = ((mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
                 + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
                 + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
                 + _tail(mode) + _tail(n - mode) - _tail(k) - _tail(n - k))
        if _log(v * alpha / (a / (inside * inside) + b)) <= bound:
            return k


_TAILS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
          0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def _tail(k: float) -> float:
    """What Stirling's formula misses of the logarithm of k!."""
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
