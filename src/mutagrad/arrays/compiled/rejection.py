"""Numbers drawn until they are accepted (gamma, Poisson and binomial ones), pairs of normal ones, a random order.

The methods are PyTorch's, with its constants: for gamma numbers Marsaglia and Tsang's (2000), for Poisson and binomial
ones with a large mean Hoermann's transformed rejection (1993), and counting for a small one. Where in the stream a
number begins is known only when the one before it is done, so these are loops.

Numba reads them as it reads rows.py, but with every step rounded as it stands; where there is no Numba, Python runs
them. What `draw` is differs: to Python, functions that give the next uniform and the next normal number, and to a
kernel the state of the generator (`twister`, below).
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

import math
from importlib import import_module

LARGE = 10.0  # the mean from which rejection is quicker than counting
WHOLE = 2.0**52  # doubles from here on have no fraction
SHRINK = 0.03310000151395798  # 0.0331 in single precision
TAILS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
         0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def uniform(draw):
    return draw[0]()


def normal(draw):
    return draw[1]()


def logarithm(x):
    return math.log(x) if x > 0 else -math.inf


def one_gamma(a, d, inverse, draw):
    scale = 1.0
    if a < 1:
        if a == 0:
            return 0.0
        scale = (1 - uniform(draw)) ** inverse
    c = 1 / math.sqrt(9 * d) if d > 0 else math.nan
    while True:
        x = normal(draw)
        y = 1 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - uniform(draw)
        square = x * x
        if u < 1 - SHRINK * square * square or math.log(u) < 0.5 * square + d * (1 - v + math.log(v)) or c != c:
            return scale * d * v


def counted_poisson(rate, draw):
    least, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= uniform(draw)
        if product <= least:
            return count
        count += 1


def rejected_poisson(rate, draw):
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    tight = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = uniform(draw) - 0.5
        v = uniform(draw)
        inside = 0.5 - abs(u)
        k = math.floor((2 * a / inside + b) * u + rate + 0.43) if inside else -1
        if inside >= 0.07 and v <= tight:
            return k
        if k < 0 or inside < 0.013 and v > inside:
            continue
        ratio = logarithm(v) + math.log(inverse) - math.log(a / (inside * inside) + b)
        if ratio <= -rate + k * log_rate - math.lgamma(k + 1.0):
            return k


def one_poisson(rate, draw):
    if rate >= LARGE:
        return rejected_poisson(rate, draw)
    return counted_poisson(rate, draw) if rate else 0


def counted_binomial(n, p, draw):
    """How many geometric numbers it takes to pass n, less one."""
    log_rest, total, count = math.log1p(-p), 0.0, 0
    while True:
        wait = logarithm(uniform(draw)) / log_rest
        total += math.ceil(wait) if wait < WHOLE else wait  # for a p near zero it may be larger than any integer
        if total > n:
            return count
        count += 1


def tail(k):
    """What Stirling's formula misses of the logarithm of k!."""
    if k <= 9:
        return TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def rejected_binomial(n, p, draw):
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center = n * p + 0.5
    tight = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((n + 1) * p)
    while True:
        u = uniform(draw) - 0.5
        v = uniform(draw)
        inside = 0.5 - abs(u)
        k = math.floor((2 * a / inside + b) * u + center) if inside else -1
        if inside >= 0.07 and v <= tight:
            return k
        if k < 0 or k > n:
            continue
        bound = ((mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
                 + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
                 + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
                 + tail(mode) + tail(n - mode) - tail(k) - tail(n - k))
        if logarithm(v * alpha / (a / (inside * inside) + b)) <= bound:
            return k


def one_binomial(n, p, rest, draw):
    if n <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return n
    if p != p or n != n:
        return math.nan
    q = p if p <= 0.5 else rest
    found = rejected_binomial(n, q, draw) if n * min(p, rest) >= LARGE else counted_binomial(n, q, draw)
    return float(found) if p <= 0.5 else n - found


def gamma(start, stop, state, a, d, inverse, out):
    draw = state.ctypes.data
    for i in range(start, stop):
        out[i] = one_gamma(a[i], d[i], inverse[i], draw)


def poisson(start, stop, state, rate, out):
    draw = state.ctypes.data
    for i in range(start, stop):
        out[i] = one_poisson(rate[i], draw)


def binomial(start, stop, state, n, p, rest, out):
    draw = state.ctypes.data
    for i in range(start, stop):
        out[i] = one_binomial(n[i], p[i], rest[i], draw)


def normal_pairs(start, stop, x):
    """Pairs of uniform numbers, in place: the second gives the radius."""
    for i in range(start, stop):
        angle = 2 * math.pi * x[2 * i]
        radius = math.sqrt(-2.0 * math.log1p(-x[2 * i + 1]))
        x[2 * i] = radius * math.cos(angle)
        x[2 * i + 1] = radius * math.sin(angle)


def exchange(start, stop, words, order):
    """Exchange each item with one of those from it on, as many places further as a random word says."""
    for i in range(start, stop):
        other = i + np.int64(np.uint32(words[i]) % np.uint32(order.size - i))
        held = order[i]
        order[i] = order[other]
        order[other] = held


# To a kernel `draw` is the address of a state: 624 words, which of them is next, whether there is a normal number that
# was kept, and the bits of that. (Arrays would be counted by all who are given them.)
TWISTER = """
@njit
def word(draw):
    state = row_q(draw, 627)
    at = state[624]
    if at >= 624:
        for i in range(624):
            y = (state[i] & 0x80000000) | (state[i + 1 if i < 623 else 0] & 0x7fffffff)
            state[i] = state[i + 397 if i < 227 else i - 227] ^ (y >> 1) ^ (0x9908b0df if y & 1 else 0)
        at = 0
    y = state[np.uint64(at)]
    state[624] = at + 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9d2c5680
    y ^= (y << 15) & 0xefc60000
    return y ^ (y >> 18)


@njit
def uniform(draw):
    high = word(draw)
    return np.float64((high << 32 | word(draw)) & (2**53 - 1)) * 2.0**-53


@njit
def normal(draw):
    state = row_q(draw, 627)
    if state[625]:
        state[625] = 0
        return d_of_l(state[626])
    angle = 2 * math.pi * uniform(draw)
    radius = math.sqrt(-2.0 * math.log1p(-uniform(draw)))
    state[625] = 1
    state[626] = l_of_d(radius * math.sin(angle))
    return radius * math.cos(angle)
"""


def source() -> str:
    """What the kernels call, as their source has it."""
    parts = (logarithm, one_gamma, counted_poisson, rejected_poisson, one_poisson, counted_binomial, tail,
             rejected_binomial, one_binomial)
    read = import_module("inspect").getsource  # which takes long to import
    constants = f"LARGE, WHOLE, SHRINK = {LARGE}, {WHOLE}, {SHRINK}\nTAILS = {TAILS}\n"
    return "\n\n".join([constants + TWISTER, *(f"@njit(error_model='numpy')\n{read(part)}" for part in parts)])
