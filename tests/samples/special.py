"""Samples of special functions, and of the elementwise functions that few programs use."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from mutagrad._lazy import WRITES

from .base import ABOVE1, WITHIN01, P, R, U, Z, domain, each, elsewhere, op

WIDE, FAR = domain(-3, 3), domain(1.5, 4)
KINDS = np.arange(35).reshape(5, 7) % 5


class Special:
    """SciPy's functions, looked for when a reference is computed."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def function(*arrays: Any) -> Any:
            if find_spec("scipy") is None:
                pytest.skip(f"compares with SciPy's {name}: pip install 'mutagrad[scipy]'")  # inside a test: a module is never skipped by it
            return getattr(import_module("scipy.special"), name)(*arrays)

        return function


special = Special()

for name, inputs, ref in (("lgamma", P, np.vectorize(math.lgamma, otypes=[float])), ("erfc", R, np.vectorize(math.erfc, otypes=[float])), ("sinc", Z, np.sinc)):
    each(name, inputs, ref=ref)
each("xlogy", R, P, ref=lambda x, y: x * np.log(y))
each("copysign", P, R, ref=np.copysign)

for name, inputs, ref in (
    ("digamma", P, special.psi), ("erfinv", U, special.erfinv), ("i0", WIDE, special.i0),
    ("special.erfcx", R, special.erfcx), ("special.ndtr", R, special.ndtr), ("special.ndtri", WITHIN01, special.ndtri),
    ("special.log_ndtr", WIDE, special.log_ndtr), ("special.entr", P, lambda x: -x * np.log(x)),
    ("special.i0e", WIDE, special.i0e), ("special.i1", WIDE, special.i1), ("special.i1e", WIDE, special.i1e),
    ("special.bessel_j0", WIDE, special.j0), ("special.bessel_j1", WIDE, special.j1), ("special.bessel_y0", P, special.y0), ("special.bessel_y1", P, special.y1),
    ("special.modified_bessel_i0", WIDE, special.i0), ("special.modified_bessel_i1", WIDE, special.i1),
    ("special.modified_bessel_k0", P, special.k0), ("special.modified_bessel_k1", ABOVE1, special.k1),
    ("special.scaled_modified_bessel_k0", P, special.k0e), ("special.scaled_modified_bessel_k1", ABOVE1, special.k1e),
    ("special.spherical_bessel_j0", WIDE, lambda x: np.sinc(x / np.pi)), ("special.airy_ai", R, lambda x: special.airy(x)[0]),
):
    op(name, inputs(5, 7), ref=ref)

op("polygamma", 2, ABOVE1(5, 7), ref=special.polygamma)
op("polygamma", 0, P(5, 7), ref=lambda n, x: special.psi(x))
op("mvlgamma", FAR(5, 7), 3, ref=lambda x, p: np.vectorize(lambda v: special.multigammaln(v, p))(x))
op("igamma", KINDS + 1, P(5, 7), ref=special.gammainc)
op("igammac", KINDS + 1, P(7), ref=special.gammaincc)
op("special.zeta", KINDS + 2, ABOVE1(5, 7), ref=special.zeta)
op("special.xlog1py", R(5, 7), P(7), ref=lambda x, y: x * np.log1p(y))
op("xlogy", 2.5, P(5, 7), ref=lambda x, y: x * np.log(y))
op("logaddexp2", R(5, 7), R(7), ref=np.logaddexp2)
op("ldexp", R(5, 7), np.arange(7) - 3, ref=lambda x, n: x * 2.0**n)
op("frexp", R(5, 7), ref=np.frexp)
op("nan_to_num", R(5, 7), 1.0, ref=lambda x, nan: x)
op("nextafter", R(5, 7), R(7), ref=lambda x, y: np.nextafter(x, y.astype(x.dtype)))
op("heaviside", R(5, 7), R(7), ref=lambda x, y: np.where(x == 0, y, x > 0))
op("clamp_min", R(5, 7), R(7), ref=np.maximum)
op("clamp_max", R(5, 7), 0.5, ref=np.minimum, note=" as a function")


def family(name: str, ref: object) -> None:
    op(f"special.{name}", R(5, 7), KINDS, ref=ref)


family("chebyshev_polynomial_t", lambda x, n: special.eval_chebyt(n, x))
family("chebyshev_polynomial_u", lambda x, n: special.eval_chebyu(n, x))
family("chebyshev_polynomial_v", lambda x, n: special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0))
family("chebyshev_polynomial_w", lambda x, n: special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0))
family("shifted_chebyshev_polynomial_t", lambda x, n: special.eval_chebyt(n, 2 * x - 1))
family("shifted_chebyshev_polynomial_u", lambda x, n: special.eval_chebyu(n, 2 * x - 1))
family("shifted_chebyshev_polynomial_v",
       lambda x, n: special.eval_chebyu(n, 2 * x - 1) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), 2 * x - 1), 0))
family("shifted_chebyshev_polynomial_w",
       lambda x, n: special.eval_chebyu(n, 2 * x - 1) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), 2 * x - 1), 0))
family("hermite_polynomial_h", lambda x, n: special.eval_hermite(n, x))
family("hermite_polynomial_he", lambda x, n: special.eval_hermitenorm(n, x))
family("laguerre_polynomial_l", lambda x, n: special.eval_laguerre(n, x))
family("legendre_polynomial_p", lambda x, n: special.eval_legendre(n, x))

ODD = np.array([1.0, np.inf, -np.inf, np.nan, -0.0])
for name, ref in (("isposinf", np.isposinf), ("isneginf", np.isneginf), ("isreal", np.isreal)):
    op(name, ODD, ref=ref, grad=False)
op("isin", np.arange(12).reshape(3, 4), np.array([3, 7, 7]), ref=np.isin, grad=False)
op("isin", np.arange(12), np.array([3, 7]), invert=True, assume_unique=True, ref=np.isin, grad=False)
op("gcd", np.arange(12).reshape(3, 4), np.array([4, 6, 9, 0]), ref=np.gcd, grad=False)
op("lcm", np.arange(12).reshape(3, 4), 6, ref=np.lcm, grad=False)

elsewhere(" ".join(WRITES) + " float_power float_power_")  # test_special.py
