"""Functions of one number that LLVM makes vectors of: Numba's own call the C library for each element.

For float32 they are polynomials in float32, for float64 in float64, within a few units of the last place, also at the
ends of the range; nan and inf are as NumPy has them. The coefficients are those of the Cephes library (S. Moshier),
Taylor's, Eigen's, and for erf of doubles W. J. Cody's (1969).
"""
# Each name ends in the bits of the type that its arguments have, and in which it computes.
# mypy: ignore-errors
import math

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

_OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}
f, d = np.float32, np.float64


# The bits of a number as those of another type. Numba views only what is converted on the spot.

@njit(**_OPTIONS)
def f_of_i(x):
    return np.int32(x).view(np.float32)


@njit(**_OPTIONS)
def f_of_u(x):
    return np.uint32(x).view(np.float32)


@njit(**_OPTIONS)
def d_of_l(x):
    return np.int64(x).view(np.float64)


@njit(**_OPTIONS)
def i_of_f(x):
    return np.float32(x).view(np.int32)


@njit(**_OPTIONS)
def u_of_f(x):
    return np.float32(x).view(np.uint32)


@njit(**_OPTIONS)
def l_of_d(x):
    return np.float64(x).view(np.int64)


@njit(**_OPTIONS)
def _power_of_two_32(r, n):
    """exp(r) * 2 ** n, for a small r."""
    p = f(1.9875691500e-4)
    p = p * r + f(1.3981999507e-3)
    p = p * r + f(8.3334519073e-3)
    p = p * r + f(4.1665795894e-2)
    p = p * r + f(1.6666665459e-1)
    p = p * r + f(5.0000001201e-1)
    p = p * r * r + r + f(1.0)
    n = np.int32(n)
    half = n >> np.int32(1)  # in two factors, each of which is a normal number
    low = f_of_i(np.int32((half + np.int32(127)) << np.int32(23)))
    high = f_of_i(np.int32((n - half + np.int32(127)) << np.int32(23)))
    return p * low * high


@njit(**_OPTIONS)
def exp_32(x):
    x = min(max(x, f(-104.0)), f(88.8))
    n = np.floor(x * f(1.44269504) + f(0.5))
    r = x - n * f(0.693359375)
    return _power_of_two_32(r - n * f(-2.12194440e-4), n)


@njit(**_OPTIONS)
def exp2_32(x):
    x = min(max(x, f(-151.0)), f(128.1))
    n = np.floor(x + f(0.5))
    return _power_of_two_32((x - n) * f(0.693147181), n)


@njit(**_OPTIONS)
def _power_of_two_64(r, n):
    p = d(1.0 / 6227020800.0)
    p = p * r + d(1.0 / 479001600.0)
    p = p * r + d(1.0 / 39916800.0)
    p = p * r + d(1.0 / 3628800.0)
    p = p * r + d(1.0 / 362880.0)
    p = p * r + d(1.0 / 40320.0)
    p = p * r + d(1.0 / 5040.0)
    p = p * r + d(1.0 / 720.0)
    p = p * r + d(1.0 / 120.0)
    p = p * r + d(1.0 / 24.0)
    p = p * r + d(1.0 / 6.0)
    p = p * r + d(0.5)
    p = p * r * r + r + d(1.0)
    n = np.int64(n)
    half = n >> np.int64(1)
    low = d_of_l(np.int64((half + np.int64(1023)) << np.int64(52)))
    high = d_of_l(np.int64((n - half + np.int64(1023)) << np.int64(52)))
    return p * low * high


@njit(**_OPTIONS)
def exp_64(x):
    x = min(max(x, d(-746.0)), d(709.9))
    n = np.floor(x * d(1.4426950408889634) + d(0.5))
    r = x - n * d(6.93145751953125e-1)
    return _power_of_two_64(r - n * d(1.42860682030941723212e-6), n)


@njit(**_OPTIONS)
def exp2_64(x):
    x = min(max(x, d(-1076.0)), d(1024.1))
    n = np.floor(x + d(0.5))
    return _power_of_two_64((x - n) * d(0.69314718055994531), n)


@njit(**_OPTIONS)
def _quarters_64(x):
    """How many quarters of a turn are in an angle, and the rest of it: for those below a million."""
    n = np.floor(x * d(0.63661977236758134) + d(0.5))
    r = x - n * d(1.5707963267341256)  # pi / 2 in three parts, the first two of which have 33 bits
    r = r - n * d(6.077100506303966e-11)
    return np.int64(n), r - n * d(2.0222662487959506e-21)


@njit(**_OPTIONS)
def _small_sine_64(r):
    z = r * r
    p = d(1.0 / 355687428096000.0)
    p = p * z + d(-1.0 / 1307674368000.0)
    p = p * z + d(1.0 / 6227020800.0)
    p = p * z + d(-1.0 / 39916800.0)
    p = p * z + d(1.0 / 362880.0)
    p = p * z + d(-1.0 / 5040.0)
    p = p * z + d(1.0 / 120.0)
    p = p * z + d(-1.0 / 6.0)
    return r + r * z * p


@njit(**_OPTIONS)
def _small_cosine_64(r):
    z = r * r
    p = d(1.0 / 20922789888000.0)
    p = p * z + d(-1.0 / 87178291200.0)
    p = p * z + d(1.0 / 479001600.0)
    p = p * z + d(-1.0 / 3628800.0)
    p = p * z + d(1.0 / 40320.0)
    p = p * z + d(-1.0 / 720.0)
    p = p * z + d(1.0 / 24.0)
    return (d(1.0) - d(0.5) * z) + z * z * p


@njit(**_OPTIONS)
def sin_64(x):
    n, r = _quarters_64(x)
    found = _small_cosine_64(r) if n & 1 else _small_sine_64(r)
    found = -found if n & 2 else found
    return found if abs(x) > d(1e-9) else x


@njit(**_OPTIONS)
def cos_64(x):
    n, r = _quarters_64(x)
    found = _small_sine_64(r) if n & 1 else _small_cosine_64(r)
    return -found if (n + 1) & 2 else found


@njit(**_OPTIONS)
def tan_64(x):
    n, r = _quarters_64(x)
    sine, cosine = _small_sine_64(r), _small_cosine_64(r)
    found = (-cosine if n & 1 else sine) / (sine if n & 1 else cosine)
    return found if abs(x) > d(1e-9) else x


@njit(**_OPTIONS)
def log_32(x):
    tiny = x < f(1.17549435e-38)
    y = x * f(8388608.0) if tiny else x
    bits = i_of_f(y)
    e = np.int32((bits >> np.int32(23)) & np.int32(255)) - np.int32(126)
    m = f_of_i(np.int32((bits & np.int32(0x007fffff)) | np.int32(0x3f000000)))
    low = m < f(0.70710678)
    n = f(e) - (f(1.0) if low else f(0.0)) - (f(23.0) if tiny else f(0.0))
    m = m + m - f(1.0) if low else m - f(1.0)
    z = m * m
    p = f(7.0376836292e-2)
    p = p * m + f(-1.1514610310e-1)
    p = p * m + f(1.1676998740e-1)
    p = p * m + f(-1.2420140846e-1)
    p = p * m + f(1.4249322787e-1)
    p = p * m + f(-1.6668057665e-1)
    p = p * m + f(2.0000714765e-1)
    p = p * m + f(-2.4999993993e-1)
    p = p * m + f(3.3333331174e-1)
    p = p * m * z
    p = p + n * f(-2.12194440e-4)
    p = p - f(0.5) * z
    found = m + p + n * f(0.693359375)
    found = found if x < f(np.inf) else x
    found = found if x > f(0.0) else f(-np.inf)
    return found if x >= f(0.0) else f(np.nan)


@njit(**_OPTIONS)
def log_64(x):
    tiny = x < d(2.2250738585072014e-308)
    y = x * d(4503599627370496.0) if tiny else x
    bits = l_of_d(y)
    e = np.int64((bits >> np.int64(52)) & np.int64(2047)) - np.int64(1022)
    m = d_of_l(np.int64((bits & np.int64(0x000fffffffffffff)) | np.int64(0x3fe0000000000000)))
    low = m < d(0.7071067811865476)
    n = d(e) - (d(1.0) if low else d(0.0)) - (d(52.0) if tiny else d(0.0))
    m = m + m - d(1.0) if low else m - d(1.0)
    # log(1 + m) = 2 atanh(s) with s = m / (2 + m)
    s = m / (d(2.0) + m)
    z = s * s
    p = d(2.0 / 21.0)
    p = p * z + d(2.0 / 19.0)
    p = p * z + d(2.0 / 17.0)
    p = p * z + d(2.0 / 15.0)
    p = p * z + d(2.0 / 13.0)
    p = p * z + d(2.0 / 11.0)
    p = p * z + d(2.0 / 9.0)
    p = p * z + d(2.0 / 7.0)
    p = p * z + d(2.0 / 5.0)
    p = p * z + d(2.0 / 3.0)
    half = d(0.5) * m * m
    found = n * d(6.93147180369123816490e-01) + (m - (half - (s * (half + p * z) + n * d(1.90821492927058770002e-10))))
    found = found if x < d(np.inf) else x
    found = found if x > d(0.0) else d(-np.inf)
    return found if x >= d(0.0) else d(np.nan)


@njit(**_OPTIONS)
def expm1_32(x):
    # sinh's way: exp(x) - 1 = 2 exp(x / 2) sinh(x / 2), near zero a polynomial
    near = abs(x) < f(0.5)
    z = x if near else f(0.0)
    p = f(1.0 / 40320.0)
    p = p * z + f(1.0 / 5040.0)
    p = p * z + f(1.0 / 720.0)
    p = p * z + f(1.0 / 120.0)
    p = p * z + f(1.0 / 24.0)
    p = p * z + f(1.0 / 6.0)
    p = p * z + f(0.5)
    p = p * z * z + z
    return p if near else exp_32(x) - f(1.0)


@njit(**_OPTIONS)
def expm1_64(x):
    near = abs(x) < d(0.5)
    z = x if near else d(0.0)
    p = d(1.0 / 1307674368000.0)
    p = p * z + d(1.0 / 87178291200.0)
    p = p * z + d(1.0 / 6227020800.0)
    p = p * z + d(1.0 / 479001600.0)
    p = p * z + d(1.0 / 39916800.0)
    p = p * z + d(1.0 / 3628800.0)
    p = p * z + d(1.0 / 362880.0)
    p = p * z + d(1.0 / 40320.0)
    p = p * z + d(1.0 / 5040.0)
    p = p * z + d(1.0 / 720.0)
    p = p * z + d(1.0 / 120.0)
    p = p * z + d(1.0 / 24.0)
    p = p * z + d(1.0 / 6.0)
    p = p * z + d(0.5)
    p = p * z * z + z
    return p if near else exp_64(x) - d(1.0)


def _of_both(F, exp, log, expm1):
    """What is the same for both types but for these."""
    zero, one, two, inf, nan, least = F(0), F(1), F(2), F(np.inf), F(np.nan), F(1 / np.finfo(F).eps)

    @njit(**_OPTIONS)
    def log1p(x):
        u = one + x
        whole = log(u)
        found = whole - ((u - one) - x) / u  # what rounding took from u is put back
        found = x if u == one else found
        return found if (u > zero) & (u < inf) else whole

    @njit(**_OPTIONS)
    def tanh(x):
        e = expm1(-two * abs(x))
        found = -e / (e + two)
        return found if x > zero else (-found if x < zero else x)

    @njit(**_OPTIONS)
    def sign(x):
        return one if x > zero else (-one if x < zero else x)

    @njit(**_OPTIONS)
    def power3(x):
        return x * x * x

    @njit(**_OPTIONS)
    def where(c, a, b):
        return a if c else b

    @njit(**_OPTIONS)
    def larger(a, b):
        """As NumPy's maximum: nan where one of them is. (The second is often the same for all.)"""
        return b if (b > a) | (b != b) else a

    @njit(**_OPTIONS)
    def smaller(a, b):
        return b if (b < a) | (b != b) else a

    @njit(**_OPTIONS)
    def logaddexp(a, b):
        top, apart = a if a > b else b, -abs(a - b)
        found = top + log1p(exp(apart if apart == apart else zero))
        found = top if abs(top) == inf else found
        return found if (a == a) & (b == b) else nan

    @njit(**_OPTIONS)
    def sqrt(x):
        return F(math.sqrt(x))

    @njit(**_OPTIONS)
    def round(x):
        """To even where it is halfway: adding a number that has no digits for fractions rounds so."""
        whole = (abs(x) + least) - least
        return F(math.copysign(whole if abs(x) < least else x, x))

    return log1p, tanh, sign, power3, where, larger, smaller, logaddexp, sqrt, round


(log1p_32, _, sign_32, power3_32, where_32, larger_32, smaller_32, logaddexp_32,
 sqrt_32, round_32) = _of_both(f, exp_32, log_32, expm1_32)
(log1p_64, tanh_64, sign_64, power3_64, where_64, larger_64, smaller_64, logaddexp_64,
 sqrt_64, round_64) = _of_both(d, exp_64, log_64, expm1_64)


@njit(**_OPTIONS)
def tanh_32(x):
    a = min(max(x, f(-7.9053111)), f(7.9053111))
    z = a * a
    p = f(-2.76076847742355e-16)
    p = p * z + f(2.00018790482477e-13)
    p = p * z + f(-8.60467152213735e-11)
    p = p * z + f(5.12229709037114e-08)
    p = p * z + f(1.48572235717979e-05)
    p = p * z + f(6.37261928875436e-04)
    p = p * z + f(4.89352455891786e-03)
    q = f(1.19825839466702e-06)
    q = q * z + f(1.18534705686654e-04)
    q = q * z + f(2.26843463243900e-03)
    q = q * z + f(4.89352518554385e-03)
    found = a * p / q
    found = found if abs(x) < f(8.2) else (f(1) if x > f(0) else f(-1))
    return found if (x == x) & (abs(x) > f(4e-4)) else x


@njit(**_OPTIONS)
def erfc_32(x):
    a = abs(x)
    z = x * x
    near = f(7.853861353153693e-5)
    near = near * z + f(-8.010193625184903e-4)
    near = near * z + f(5.188327685732524e-3)
    near = near * z + f(-2.685381193529856e-2)
    near = near * z + f(1.128358514861418e-1)
    near = near * z + f(-3.761262582423300e-1)
    near = near * z + f(1.128379165726710)
    q = f(1.0) / (a if a > f(1.0) else f(1.0))
    y = q * q
    p = f(2.326819970068386e-2)
    p = p * y + f(-1.387039388740657e-1)
    p = p * y + f(3.687424674597105e-1)
    p = p * y + f(-5.824733027278666e-1)
    p = p * y + f(6.210004621745983e-1)
    p = p * y + f(-4.944515323274145e-1)
    p = p * y + f(3.404879937665872e-1)
    p = p * y + f(-2.741127028184656e-1)
    p = p * y + f(5.638259427386472e-1)
    r = f(-1.047766399936249e+1)
    r = r * y + f(1.297719955372516e+1)
    r = r * y + f(-7.495518717768503)
    r = r * y + f(2.921019019210786)
    r = r * y + f(-1.015265279202700)
    r = r * y + f(4.218463358204948e-1)
    r = r * y + f(-2.820767439740514e-1)
    r = r * y + f(5.641895067754075e-1)
    # exp(-a * a) in two factors: the square of a's leading part is exact
    high = f_of_u(u_of_f(a) & np.uint32(0xfffff000))
    tail = exp_32(-high * high) * exp_32(-(a - high) * (a + high)) * q * (p if a < f(2.0) else r)
    tail = tail if a < f(14.0) else f(0.0)
    far = tail if x > f(0.0) else f(2.0) - tail
    found = f(1.0) - x * near if a < f(1.0) else far
    return found if x == x else x


@njit(**_OPTIONS)
def erf_32(x):
    """By the quotient of polynomials that Eigen and XLA use: from 4 on it is 1."""
    a = min(max(x, f(-4.0)), f(4.0))
    z = a * a
    p = f(-2.72614225801306e-10)
    p = p * z + f(2.77068142495902e-8)
    p = p * z + f(-2.10102402082508e-6)
    p = p * z + f(-5.69250639462346e-5)
    p = p * z + f(-7.34990630326855e-4)
    p = p * z + f(-2.95459980854025e-3)
    p = p * z + f(-1.60960333262415e-2)
    q = f(-1.45660718464996e-5)
    q = q * z + f(-2.13374055278905e-4)
    q = q * z + f(-1.68282697438203e-3)
    q = q * z + f(-7.37332916720468e-3)
    q = q * z + f(-1.42647390514189e-2)
    return a * p / q


@njit(**_OPTIONS)
def _near_erf_64(x):
    """erf, of what is less than a half."""
    z = x * x
    p = d(1.85777706184603153e-1) * z + d(3.16112374387056560e0)
    p = p * z + d(1.13864154151050156e2)
    p = p * z + d(3.77485237685302021e2)
    p = p * z + d(3.20937758913846947e3)
    q = z + d(2.36012909523441209e1)
    q = q * z + d(2.44024637934444173e2)
    q = q * z + d(1.28261652607737228e3)
    q = q * z + d(2.84423683343917062e3)
    return x * p / q


@njit(**_OPTIONS)
def _far_erfc_64(a):
    """erfc, of what is more: by two quotients, up to 4 and beyond."""
    x = min(a, d(4.0))
    p = d(2.15311535474403846e-8) * x + d(5.64188496988670089e-1)
    p = p * x + d(8.88314979438837594e0)
    p = p * x + d(6.61191906371416295e1)
    p = p * x + d(2.98635138197400131e2)
    p = p * x + d(8.81952221241769090e2)
    p = p * x + d(1.71204761263407058e3)
    p = p * x + d(2.05107837782607147e3)
    p = p * x + d(1.23033935479799725e3)
    q = x + d(1.57449261107098347e1)
    q = q * x + d(1.17693950891312499e2)
    q = q * x + d(5.37181101862009858e2)
    q = q * x + d(1.62138957456669019e3)
    q = q * x + d(3.29079923573345963e3)
    q = q * x + d(4.36261909014324716e3)
    q = q * x + d(3.43936767414372164e3)
    q = q * x + d(1.23033935480374942e3)
    y = max(a, d(4.0))
    z = d(1.0) / (y * y)
    u = d(1.63153871373020978e-2) * z + d(3.05326634961232344e-1)
    u = u * z + d(3.60344899949804439e-1)
    u = u * z + d(1.25781726111229246e-1)
    u = u * z + d(1.60837851487422766e-2)
    u = u * z + d(6.58749161529837803e-4)
    v = z + d(2.56852019228982242e0)
    v = v * z + d(1.87295284992346047e0)
    v = v * z + d(5.27905102951428412e-1)
    v = v * z + d(6.05183413124413191e-2)
    v = v * z + d(2.33520497626869185e-3)
    # exp(-a * a) in two factors: the square of a's leading part is exact
    high = d_of_l(np.int64(l_of_d(a) & np.int64(-134217728)))
    share = p / q if a < d(4.0) else (d(0.56418958354775629) - z * u / v) / y
    found = exp_64(-high * high) * exp_64(-(a - high) * (a + high)) * share
    return found if a < d(27.5) else d(0.0)


@njit(**_OPTIONS)
def erf_64(x):
    a = abs(x)
    far = d(1.0) - _far_erfc_64(a)
    found = _near_erf_64(x) if a < d(0.46875) else (far if x > d(0.0) else -far)
    return found if x == x else x


@njit(**_OPTIONS)
def erfc_64(x):
    a = abs(x)
    far = _far_erfc_64(a)
    found = d(1.0) - _near_erf_64(x) if a < d(0.46875) else (far if x > d(0.0) else d(2.0) - far)
    return found if x == x else x


@njit(**_OPTIONS)
def erfinv_32(x):
    """By the polynomials in double of M. Giles (2010), of which floats need two: one far from 0 and one near."""
    a = d(x)
    w = -log_64((d(1.0) - a) * (d(1.0) + a))
    near = w < d(6.25)
    z = w - d(3.125) if near else d(math.sqrt(w)) - d(3.25)
    p = d(-3.6444120640178196996e-21)
    p = p * z + d(-1.685059138182016589e-19)
    p = p * z + d(1.2858480715256400167e-18)
    p = p * z + d(1.115787767802518096e-17)
    p = p * z + d(-1.333171662854620906e-16) if near else d(2.2137376921775787049e-09)
    p = p * z + (d(2.0972767875968561637e-17) if near else d(9.0756561938885390979e-08))
    p = p * z + (d(6.6376381343583238325e-15) if near else d(-2.7517406297064545428e-07))
    p = p * z + (d(-4.0545662729752068639e-14) if near else d(1.8239629214389227755e-08))
    p = p * z + (d(-8.1519341976054721522e-14) if near else d(1.5027403968909827627e-06))
    p = p * z + (d(2.6335093153082322977e-12) if near else d(-4.013867526981545969e-06))
    p = p * z + (d(-1.2975133253453532498e-11) if near else d(2.9234449089955446044e-06))
    p = p * z + (d(-5.4154120542946279317e-11) if near else d(1.2475304481671778723e-05))
    p = p * z + (d(1.051212273321532285e-09) if near else d(-4.7318229009055733981e-05))
    p = p * z + (d(-4.1126339803469836976e-09) if near else d(6.8284851459573175448e-05))
    p = p * z + (d(-2.9070369957882005086e-08) if near else d(2.4031110387097893999e-05))
    p = p * z + (d(4.2347877827932403518e-07) if near else d(-0.0003550375203628474796))
    p = p * z + (d(-1.3654692000834678645e-06) if near else d(0.00095328937973738049703))
    p = p * z + (d(-1.3882523362786468719e-05) if near else d(-0.0016882755560235047313))
    p = p * z + (d(0.0001867342080340571352) if near else d(0.0024914420961078508066))
    p = p * z + (d(-0.00074070253416626697512) if near else d(-0.0037512085075692412107))
    p = p * z + (d(-0.0060336708714301490533) if near else d(0.005370914553590063617))
    p = p * z + (d(0.24015818242558961693) if near else d(1.0052589676941592334))
    p = p * z + (d(1.6536545626831027356) if near else d(3.0838856104922207635))
    found = f(p * a)
    one = f(1.0)
    found = found if abs(x) < one else x * f(np.inf)
    return found if abs(x) <= one else f(np.nan)


@njit(**_OPTIONS)
def lgamma_32(x):
    """By Stirling's series in double, from 8 on: what lies below is moved there, and mirrored if it is negative."""
    a = d(x)
    mirrored = a <= d(0.0)
    a = d(1.0) - a if mirrored else a
    low = a < d(8.0)
    b = a if low else d(1.0)
    below = b * (b + d(1.0)) * (b + d(2.0)) * (b + d(3.0)) * (b + d(4.0)) * (b + d(5.0)) * (b + d(6.0)) * (b + d(7.0))
    below = below if low else d(1.0)
    y = a + d(8.0) if low else a
    part = d(1.0) / y
    z = part * part
    p = d(-691.0 / 360360.0) + z * d(1.0 / 156.0)
    p = d(1.0 / 1188.0) + z * p
    p = d(-1.0 / 1680.0) + z * p
    p = d(1.0 / 1260.0) + z * p
    p = d(-1.0 / 360.0) + z * p
    p = (d(1.0 / 12.0) + z * p) * part
    whole = (y - d(0.5)) * log_64(y) - y + d(0.9189385332046727) + p
    r = abs(d(x)) - np.floor(abs(d(x)))
    q = r if r < d(0.5) else d(1.0) - r
    s = q * d(math.pi)
    t = s * s
    sine = d(-1.0 / 1307674368000.0) + t * d(1.0 / 355687428096000.0)
    sine = d(1.0 / 6227020800.0) + t * sine
    sine = d(-1.0 / 39916800.0) + t * sine
    sine = d(1.0 / 362880.0) + t * sine
    sine = d(-1.0 / 5040.0) + t * sine
    sine = d(1.0 / 120.0) + t * sine
    sine = d(-1.0 / 6.0) + t * sine
    sine = s + s * t * sine
    rest = log_64(below * d(math.pi) / sine if mirrored else below)
    found = rest - whole if mirrored else whole - rest
    found = d(0.0) if (x == f(1.0)) | (x == f(2.0)) else found
    return f(np.inf) if abs(x) == f(np.inf) else f(found)


@intrinsic
def _fused(context, a, b, c):
    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(*[types.float64] * 3), generate


def _nearly_fused(a, b, c):
    return d(np.longdouble(a) * b + c)


fused = _nearly_fused if config.DISABLE_JIT else _fused  # a * b + c, rounded once


@njit(**_OPTIONS)
def rest_64(x, y, quotient, like):
    """What a whole quotient leaves, of the sign of a number; it may be one too many, where it was rounded up."""
    rest = fused(-quotient, y, x)
    found = rest + math.copysign(y, like) if (rest < d(0.0)) != (like < d(0.0)) else rest
    return found if rest != d(0.0) else d(math.copysign(rest, like))


@njit(**_OPTIONS)
def whole_64(x, y, quotient):
    rest = fused(-quotient, y, x)
    return quotient - d(1.0) if (rest != d(0.0)) & ((rest < d(0.0)) != (y < d(0.0))) else quotient


@njit(**_OPTIONS)
def hypot_32(x, y):
    a, b = d(x), d(y)
    found = f(math.sqrt(a * a + b * b))
    return f(np.inf) if (abs(x) == f(np.inf)) | (abs(y) == f(np.inf)) else found


@njit(**_OPTIONS)
def hypot_64(x, y):
    a, b = abs(x), abs(y)
    large, small = a if a > b else b, b if a > b else a
    part = small / (large if large > d(0.0) else d(1.0))
    found = large * d(math.sqrt(d(1.0) + part * part))
    found = found if (a == a) & (b == b) else d(np.nan)
    return d(np.inf) if (a == d(np.inf)) | (b == d(np.inf)) else found


# What is found of a row.

@njit(**_OPTIONS)
def largest_32(row):
    """By the order of the bits, in which nan is above all: comparing floats one by one is no work for vectors."""
    top = np.int32(-2147483648)
    for j in range(row.size):
        bits = i_of_f(row[j])
        key = np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7fffffff)))
        top = max(top, key)
    return f_of_i(np.int32(top ^ ((top >> np.int32(31)) & np.int32(0x7fffffff))))


@njit(**_OPTIONS)
def largest_64(row):
    top = np.int64(-9223372036854775808)
    for j in range(row.size):
        bits = l_of_d(row[j])
        key = np.int64(bits ^ ((bits >> np.int64(63)) & np.int64(0x7fffffffffffffff)))
        top = max(top, key)
    return d_of_l(np.int64(top ^ ((top >> np.int64(63)) & np.int64(0x7fffffffffffffff))))


@njit(error_model="numpy", fastmath={"contract", "reassoc"})
def total_32(row):
    """In double, but for short runs."""
    total = 0.0
    for first in range(0, row.size, 512):
        part, run = f(0), row[first:first + 512]
        for j in range(run.size):
            part += run[j]
        total += part
    return total


@njit(error_model="numpy", fastmath={"contract", "reassoc"})
def total_64(row):
    total = 0.0
    for j in range(row.size):
        total += row[j]
    return total


# Floats of two bytes, as the integers that their bits are.

@njit(**_OPTIONS)
def widened_by_bits(h):
    bits = np.uint32(h)
    magnitude = (bits & np.uint32(0x7fff)) << np.uint32(13)
    value = f_of_u(np.uint32(magnitude)) * f(5.192296858534828e33)  # 2 ** 112: the exponents' offsets differ
    whole = np.uint32(u_of_f(value) | (np.uint32(0x7f800000) if magnitude >= np.uint32(0x0f800000)
                                               else np.uint32(0)))
    return f_of_u(np.uint32(whole | ((bits & np.uint32(0x8000)) << np.uint32(16))))


@njit(**_OPTIONS)
def rounded_by_bits(x):
    bits = u_of_f(x)
    signed = (bits >> np.uint32(16)) & np.uint32(0x8000)
    a = np.uint32(bits & np.uint32(0x7fffffff))
    # below the normal numbers: adding 1/2 leaves the rounded fraction in the last bits
    small = np.uint32(u_of_f(f_of_u(a) + f(0.5)) - np.uint32(0x3f000000))
    odd = (a >> np.uint32(13)) & np.uint32(1)
    normal = np.uint32((a - np.uint32(0x38000000) + np.uint32(0x0fff) + odd) >> np.uint32(13))
    huge = np.uint32(0x7e00) if a > np.uint32(0x7f800000) else np.uint32(0x7c00)
    found = small if a < np.uint32(0x38800000) else (normal if a < np.uint32(0x477ff000) else huge)
    return np.uint16(found | signed)


# Processors mostly have instructions for these two.

@intrinsic
def _widened(context, bits):
    def generate(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic
def _rounded(context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), generate


_native = llvm.get_host_cpu_features().get("f16c") and not config.DISABLE_JIT
of_half, to_half = (_widened, _rounded) if _native else (widened_by_bits, rounded_by_bits)


@njit(**_OPTIONS)
def of_bfloat16(h):
    return f_of_u(np.uint32(np.uint32(h) << np.uint32(16)))


@njit(**_OPTIONS)
def to_bfloat16(x):
    bits = u_of_f(x)
    rounded = np.uint32((bits + np.uint32(0x7fff) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))
    return np.uint16(rounded if x == x else np.uint32(0x7fc0))
