"""What elementwise operations compute, for their docstrings; generated functions have no source that could hold one.

A row is: the public name (`operation=name` where they differ), arguments, what it returns for them, and that in words.
"""
from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.op import DESCRIPTIONS

_ROWS = """
abs | [-1., 2.] | [1., 2.] | the absolute value of each element; of a complex number, its modulus
acos | [0., 1.] | [1.5708, 0.0000] | the angle in radians, from 0 to pi, of which each element is the cosine
acosh | [1., 2.] | [0.0000, 1.3170] | the inverse hyperbolic cosine of each element, nan below 1
angle | [1., -1.] | [0.0000, 3.1416] | the angle of each complex number in the plane; 0 or pi for real ones
asin | [0., 1.] | [0.0000, 1.5708] | the angle in radians, from -pi/2 to pi/2, of which each element is the sine
asinh | [0., 1.] | [0.0000, 0.8814] | the inverse hyperbolic sine of each element
atan | [0., 1.] | [0.0000, 0.7854] | the angle in radians, from -pi/2 to pi/2, of which each element is the tangent
atan2 | [1., 1.], [1., -1.] | [0.7854, 2.3562] | the angle in radians, from -pi to pi, of the points (other, input)
atanh | [0., 0.5] | [0.0000, 0.5493] | the inverse hyperbolic tangent of each element, nan beyond 1
bitwise_and | [6, 5], [3, 4] | [2, 4] | the bits that are set in both integers, or whether both booleans are true
bitwise_left_shift | [1, 3], [2, 1] | [4, 6] | integers with their bits moved to the left
bitwise_not | [0, 5] | [-1, -6] | integers with every bit turned, or booleans negated
bitwise_or | [6, 5], [3, 4] | [7, 5] | the bits that are set in either integer, or whether either boolean is true
bitwise_right_shift | [8, 7], [2, 1] | [2, 3] | integers with their bits moved to the right
bitwise_xor | [6, 5], [3, 4] | [5, 1] | the bits that are set in one of two integers, or whether two booleans differ
ceil | [1.2, -1.2] | [ 2., -1.] | the least integer that is no less than each element; its derivative is zero
conj=conj_physical | [1., 2.] | [1., 2.] | the conjugate of each complex number, as a tensor of its own
copysign | [1., 2.], [-1., 0.5] | [-1.,  2.] | the magnitudes of input with the signs of other
cos | [0., 1.] | [1.0000, 0.5403] | the cosine of each element, in radians
cosh | [0., 1.] | [1.0000, 1.5431] | the hyperbolic cosine of each element
deg2rad | [90., 180.] | [1.5708, 3.1416] | angles in degrees as radians
digamma | [1., 2.] | [-0.5772,  0.4228] | the derivative of the logarithm of the gamma function
div | [1., 2.], [4., 4.] | [0.2500, 0.5000] | the quotient of each pair of elements
eq | [1, 2], [1, 3] | [ True, False] | whether elements are equal
erf | [0., 1.] | [0.0000, 0.8427] | the error function of each element
erfc | [0., 1.] | [1.0000, 0.1573] | one minus the error function of each element, exact for large ones
special.erfcx | [0., 1.] | [1.0000, 0.4276] | the complementary error function, scaled by exp(x squared)
erfinv | [0., 0.5] | [0.0000, 0.4769] | the inverse of the error function, for elements from -1 to 1
exp | [0., 1.] | [1.0000, 2.7183] | e to the power of each element
exp2 | [0., 3.] | [1., 8.] | 2 to the power of each element
expm1 | [0., 1.] | [0.0000, 1.7183] | exp(x) - 1, exact for small elements
floor | [1.2, -1.2] | [ 1., -2.] | the greatest integer that is no greater than each element; its derivative is zero
floor_divide | [7, -7], [2, 2] | [ 3, -4] | the quotient of each pair of elements, rounded down
fmax | [1., nan], [0., 2.] | [1., 2.] | the larger of each pair of elements; where one is nan, the other
fmin | [1., nan], [0., 2.] | [0., 2.] | the smaller of each pair of elements; where one is nan, the other
fmod | [7., -7.], [3., 3.] | [ 1., -1.] | the remainder of a division, with the sign of input
frac | [1.25, -1.25] | [ 0.2500, -0.2500] | the part of each element after the point, with its sign
gcd | [12, 7], [18, 3] | [6, 1] | the greatest common divisor of each pair of integers
ge | [1, 2], [2, 2] | [False,  True] | whether elements of input are greater than or equal to those of other
gt | [1, 2], [0, 2] | [ True, False] | whether elements of input are greater than those of other
hypot | [3., 5.], [4., 12.] | [ 5., 13.] | the length of the hypotenuse over two legs, without overflow
i0 | [0., 1.] | [1.0000, 1.2661] | the modified Bessel function of the first kind, of order 0
igamma | [1., 2.], [1., 2.] | [0.6321, 0.5940] | the regularized lower incomplete gamma function
igammac | [1., 2.], [1., 2.] | [0.3679, 0.4060] | the regularized upper incomplete gamma function
isfinite | [1., inf, nan] | [ True, False, False] | whether elements are neither infinite nor nan
isinf | [1., inf, nan] | [False,  True, False] | whether elements are infinite
isnan | [1., inf, nan] | [False, False,  True] | whether elements are nan
isneginf | [-inf, inf, 0.] | [ True, False, False] | whether elements are minus infinity
isposinf | [-inf, inf, 0.] | [False,  True, False] | whether elements are plus infinity
isreal | [1., 2.] | [True, True] | whether elements have no imaginary part
lcm | [4, 6], [6, 4] | [12, 12] | the least common multiple of each pair of integers
le | [1, 3], [2, 2] | [ True, False] | whether elements of input are less than or equal to those of other
lgamma | [1., 4.] | [0.0000, 1.7918] | the logarithm of the absolute value of the gamma function
log | [1., 2.] | [0.0000, 0.6931] | the natural logarithm of each element; -inf at zero, nan below
log10 | [1., 100.] | [0.0000, 2.0000] | the logarithm of each element to base 10
log1p | [0., 1.] | [0.0000, 0.6931] | the logarithm of 1 + x, exact for small elements
log2 | [1., 8.] | [0., 3.] | the logarithm of each element to base 2
logaddexp | [0., 1.], [0., 2.] | [0.6931, 2.3133] | the logarithm of exp(input) + exp(other), without overflow
logaddexp2 | [0., 1.], [0., 2.] | [1.0000, 2.5850] | the logarithm to base 2 of 2^input + 2^other, without overflow
logical_and | [1, 0], [1, 1] | [ True, False] | whether both elements are not zero
logical_not | [1, 0] | [False,  True] | whether elements are zero
logical_or | [1, 0], [0, 0] | [ True, False] | whether either element is not zero
logical_xor | [1, 0], [1, 1] | [False,  True] | whether one of both elements is not zero, and the other is
lt | [1, 2], [2, 2] | [ True, False] | whether elements of input are less than those of other
maximum | [1., 5.], [3., 4.] | [3., 5.] | the larger of each pair of elements; nan where either is
minimum | [1., 5.], [3., 4.] | [1., 4.] | the smaller of each pair of elements; nan where either is
mul | [1., 2.], [3., 4.] | [3., 8.] | the product of each pair of elements
ne | [1, 2], [1, 3] | [False,  True] | whether elements differ
neg | [1., -2.] | [-1.,  2.] | minus each element
nextafter | [1., 1.], [2., 0.] | [1.0000, 1.0000] | the next number after each element, towards other
positive | [1., -2.] | [ 1., -2.] | each element as it is
rad2deg | [0., 1.] | [ 0.0000, 57.2958] | angles in radians as degrees
reciprocal | [2., 4.] | [0.5000, 0.2500] | one over each element
relu | [-1., 2.] | [0., 2.] | each element, or zero where it is negative
remainder | [7., -7.], [3., 3.] | [1., 2.] | the remainder of a division rounded down: Python's %
rsqrt | [1., 4.] | [1.0000, 0.5000] | one over the square root of each element
sgn | [-3., 2.] | [-1.,  1.] | the sign of each element; of a complex number, the number of modulus 1 in its direction
sigmoid | [0., 1.] | [0.5000, 0.7311] | 1 / (1 + exp(-x)) of each element
sign | [-3., 0., 2.] | [-1.,  0.,  1.] | -1, 0 or 1 by the sign of each element; its derivative is zero
signbit | [-3., 2.] | [ True, False] | whether elements have their sign bit set, which -0. has, too
sin | [0., 1.] | [0.0000, 0.8415] | the sine of each element, in radians
sinc | [0., 0.5] | [1.0000, 0.6366] | sin(pi x) / (pi x) of each element, 1 at zero
sinh | [0., 1.] | [0.0000, 1.1752] | the hyperbolic sine of each element
sqrt | [4., 9.] | [2., 3.] | the square root of each element, nan below zero
square | [1., 3.] | [1., 9.] | the square of each element
tan | [0., 1.] | [0.0000, 1.5574] | the tangent of each element, in radians
tanh | [0., 1.] | [0.0000, 0.7616] | the hyperbolic tangent of each element
trunc | [1.7, -1.7] | [ 1., -1.] | each element without what stands after its point; its derivative is zero
xlogy | [0., 2.], [0., 3.] | [0.0000, 2.1972] | input * log(other), zero where input is zero
special.xlog1py | [0., 2.], [0., 3.] | [0.0000, 2.7726] | input * log(1 + other), zero where input is zero
special.bessel_j0 | [0., 1.] | [1.0000, 0.7652] | the Bessel function of the first kind, of order 0
special.bessel_j1 | [0., 1.] | [0.0000, 0.4401] | the Bessel function of the first kind, of order 1
special.bessel_y0 | [1., 2.] | [0.0883, 0.5104] | the Bessel function of the second kind, of order 0
special.bessel_y1 | [1., 2.] | [-0.7812, -0.1070] | the Bessel function of the second kind, of order 1
special.entr | [0., 0.5] | [0.0000, 0.3466] | -x log(x) of each element, zero at zero and -inf below
special.i0e | [0., 1.] | [1.0000, 0.4658] | the modified Bessel function i0, scaled by exp(-|x|)
special.i1 | [0., 1.] | [0.0000, 0.5652] | the modified Bessel function of the first kind, of order 1
special.i1e | [0., 1.] | [0.0000, 0.2079] | the modified Bessel function i1, scaled by exp(-|x|)
special.log_ndtr | [0., 1.] | [-0.6931, -0.1728] | the logarithm of the normal distribution's cumulative function
special.modified_bessel_k0 | [1., 2.] | [0.4210, 0.1139] | the modified Bessel function of the second kind, of order 0
special.modified_bessel_k1 | [1., 2.] | [0.6019, 0.1399] | the modified Bessel function of the second kind, of order 1
special.ndtr | [0., 1.] | [0.5000, 0.8413] | the normal distribution's cumulative function
special.ndtri | [0.5, 0.9] | [0.0000, 1.2816] | the normal distribution's quantile function
special.scaled_modified_bessel_k0 | [1., 2.] | [1.1445, 0.8416] | the modified Bessel function k0, scaled by exp(x)
special.scaled_modified_bessel_k1 | [1., 2.] | [1.6362, 1.0335] | the modified Bessel function k1, scaled by exp(x)
special.spherical_bessel_j0 | [0., 1.] | [1.0000, 0.8415] | the spherical Bessel function of the first kind, of order 0
special.zeta | [2., 3.], [1., 2.] | [1.6449, 0.2021] | the Hurwitz zeta function of x and q
"""


def _docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstring of each operation, and of the form of it that writes into its first argument."""
    for row in _ROWS.strip().splitlines():
        path, given, returned, words = row.split(" | ")
        operation, _, public = path.rpartition("special.")[2].partition("=")
        first, *others = (f"mg.tensor([{values}])" for values in given.strip("[]").split("], ["))
        head = _HEAD.replace("mg", "mg; from math import inf, nan", 1) if "n" in given else _HEAD
        call = f"mg.{public or path}({', '.join([first, *others])})"
        yield operation, f"Return {words}.{head}{call}{_TAIL.format(returned)}"
        kept = _KEPT.sub(lambda found: str(int("T" in found[0])), returned)  # a mask, in a tensor of integers
        example = f"{head}{first}.{public or operation}_({', '.join(others)}){_TAIL.format(kept)}"
        fits = kept == returned or "." not in given
        yield operation + "_", f"Write into the tensor {words}; return the tensor.{example if fits else ''}"


_KEPT = re.compile(" ?True|False")
_HEAD, _TAIL = "\n\n    >>> import mutagrad as mg\n    >>> ", "\n    tensor({})\n    "
DESCRIPTIONS.update(_docstrings())
