"""SciPy, found when first used: special functions and the linear algebra that NumPy lacks."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..base.errors import MissingExtra
from ..base.operands import Array
from .compiled.expressions import Symbol, known_function
from .numpy import choose, clip, np
from .recorded import Value


@cache
def scipy(module: str, wanted_by: str) -> Any:
    """Return `scipy.module`, or raise an error that says how to get it."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError:
        raise MissingExtra(f"{wanted_by}: needs SciPy, which is not installed",
                           why="NumPy has nothing that computes it", fix="pip install 'mutagrad[scipy]'") from None


@cache
def scipy_fft() -> Any:
    """Return `scipy.fft`, or None."""
    try:
        return import_module("scipy.fft")
    except ImportError:
        return None


@cache
def _find(name: str) -> Any:
    """SciPy's function where it is installed, else the standard library's, element by element."""
    try:
        return getattr(import_module("scipy.special"), name)
    except ImportError:
        return np.frompyfunc(getattr(math, name), 1, 1)


def erf(a: Array) -> Any:
    if isinstance(a, Symbol):
        return known_function("erf", a)
    if _are_many(a):
        return _erf_of_many(a)
    return np.asarray(_find("erf")(a)).astype(a.dtype, copy=False)


_FEW = 512
# The quotient of polynomials that Eigen and XLA use for float32, and compiled loops here: from 4 on it is 1.
_ABOVE = (-2.72614225801306e-10, 2.77068142495902e-8, -2.10102402082508e-6, -5.69250639462346e-5, -7.34990630326855e-4,
          -2.95459980854025e-3, -1.60960333262415e-2)
_BELOW = (-1.45660718464996e-5, -2.13374053278905e-4, -1.68282697438203e-3, -7.37332916720468e-3, -1.42647390514189e-2)


def _are_many(a: Array) -> bool:
    return (type(a) is np.ndarray or isinstance(a, Value)) and a.dtype.char == "f" and a.size >= _FEW


def _erf_of_many(a: Array) -> Any:
    """The same in a tenth of the time that SciPy's takes, element by element."""
    a = clip(a, -4, 4)
    squares = a * a
    found = polynomial(_ABOVE, squares)
    found *= a
    found /= polynomial(_BELOW, squares)
    return found


# Those of erfc that compiled loops have, see scalars.py: up to 1, to 2, and beyond.
_NEAR = (7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2, 1.128358514861418e-1,
         -3.761262582423300e-1, 1.128379165726710)
_MIDDLE = (2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1,
           6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1,
           5.638259427386472e-1)
_OUTER = (-1.047766399936249e+1, 1.297719955372516e+1, -7.495518717768503, 2.921019019210786, -1.015265279202700,
          4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1)


def _erfc_of_many(a: Array) -> Any:
    """The same in a fraction of the time that SciPy's takes; exp(-a * a) in two factors, of which one is exact."""
    size = np.abs(a)
    far = clip(size, 1, 14)
    share = 1 / far
    square = share * share
    high = (far.view(np.int32) & np.int32(-4096)).view(np.float32)
    tail = np.exp(high * -high) * np.exp((high - far) * (far + high)) * share
    tail *= choose(size < 2, polynomial(_MIDDLE, square), polynomial(_OUTER, square))
    near = clip(a, -1, 1)
    square = near * near
    wide = near.astype(np.float64)  # what is left of 1 would show how a product is rounded
    erf = wide * (_NEAR[-1] + wide * wide * polynomial(_NEAR[:-1], square))
    found = choose(size < 1, (1 - erf).astype(np.float32), choose(a > 0, tail, 2 - tail))
    return choose(a == a, choose(a < 14, found, np.float32(0)), a)


def polynomial(coefficients: tuple[float, ...], x: Array) -> Any:
    """Return the value of a polynomial by Horner's rule, in the type of x; the highest power comes first."""
    found = x * x.dtype.type(coefficients[0])
    for c in coefficients[1:-1]:
        found += x.dtype.type(c)
        found *= x
    found += x.dtype.type(coefficients[-1])
    return found


def erfc(a: Array) -> Any:
    if isinstance(a, Symbol):
        return known_function("erfc", a)
    if _are_many(a):
        return _erfc_of_many(a)
    return np.asarray(_find("erfc")(a)).astype(a.dtype, copy=False)


def _lgamma(value: float) -> float:
    try:
        return math.lgamma(value)
    except (OverflowError, ValueError):  # a pole, or too large
        return math.inf


@cache
def _find_lgamma() -> Any:
    try:
        return import_module("scipy.special").gammaln
    except ImportError:
        return np.frompyfunc(_lgamma, 1, 1)


def lgamma(a: Array) -> Any:
    if isinstance(a, Symbol):
        return known_function("lgamma", a)
    found = np.asarray(_find_lgamma()(a)).astype(a.dtype, copy=False)
    return np.where(a == -math.inf, a.dtype.type(math.inf), found)


def special(name: str, wanted_by: str = "") -> Callable[..., Any]:
    """Return SciPy's special function of this name, found when first called; its results have its argument's type."""
    def function(*arrays: Array) -> Any:
        if isinstance(arrays[0], Symbol):
            return known_function(name, arrays[0])
        found = getattr(scipy("special", wanted_by or name), name)(*arrays)
        return np.asarray(found).astype(arrays[0].dtype, copy=False)

    return function


@cache
def has_scipy() -> bool:
    try:
        return import_module("scipy.linalg") is not None
    except ImportError:
        return False


def lapack(name: str, dtype: Any, wanted_by: str) -> Any:
    """Return LAPACK's routine of a name for an element type: `lapack("getrf", a.dtype, "lu")` is dgetrf for doubles."""
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char]
    found = getattr(scipy("linalg.lapack", wanted_by), letter + name, None)
    if found is None:
        raise MissingExtra(f"{wanted_by}: needs SciPy 1.15 or newer",
                           why=f"the one that is installed lacks LAPACK's {name}",
                           fix="pip install --upgrade 'mutagrad[scipy]'")
    return found
