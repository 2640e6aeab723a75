"""Compiled loops over integers, and whole quotients of floats: exactly what NumPy gives, at the limits of a type, too."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, loops
from mutagrad.base.errors import DivisionByZero

SIZE = 300_000  # several threads share it
pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")
TYPES = "int8", "uint8", "int16", "int32", "int64"
CALLS: dict[str, Any] = {
    "a + b": lambda a, b: a + b, "a - 7": lambda a, b: a - 7, "a * b": lambda a, b: a * b,
    "a // b": lambda a, b: a // b, "a % b": lambda a, b: a % b, "a % 7": lambda a, b: a % 7, "fmod": mg.fmod,
    "trunc": lambda a, b: mg.div(a, b, rounding_mode="trunc"), "-a": lambda a, b: -a, "abs": lambda a, b: a.abs(),
    "sign": lambda a, b: a.sign(), "maximum": mg.maximum, "bits": lambda a, b: (a & b) | ~a, "a > b": lambda a, b: a > b,
    "where": lambda a, b: mg.where(a > b, a, b), "clamp": lambda a, b: a.clamp(3, 5)}


def by_both(function: Any, *arrays: Any) -> list[Any]:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(function(*map(mg.tensor, arrays)).numpy())
    return found


def integers(dtype: str, seed: int) -> Any:
    limits = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(limits.min, limits.max, SIZE, dtype, endpoint=True)
    found[:2] = limits.min, limits.max
    return found


@pytest.mark.parametrize("dtype", TYPES)
def test_integers_wrap_as_numpys_do(dtype: str) -> None:
    a, b = integers(dtype, 0), integers(dtype, 1)
    b[b == 0] = 3
    for name, function in CALLS.items():
        expected, found = by_both(function, a, b)
        assert found.dtype == expected.dtype and (found == expected).all(), name


def test_they_are_computed_by_loops() -> None:
    mg.set_kernels("numba")
    a, b = integers("int32", 0), integers("int32", 1) | 1
    for function in (np.add, np.floor_divide, np.remainder, np.bitwise_and):
        assert loops.forward(function, (a, b), (), np.empty_like(a), True) is not None


def test_quotients_of_large_integers_are_exact() -> None:
    """Beyond 2**53 a quotient in double is not the right one."""
    a = np.full(SIZE, 3**39, np.int64)
    b = np.full(SIZE, 3**5, np.int64)
    a[::2] -= 1
    for function in (lambda a, b: a // b, lambda a, b: a % b):
        expected, found = by_both(function, a, b)
        assert (found == expected).all()
        assert (expected == function(a, b)).all()


def test_an_integer_is_not_divided_by_zero() -> None:
    mg.set_kernels("numba")
    a = mg.ones(SIZE, dtype=mg.int64)
    b = mg.ones(SIZE, dtype=mg.int64)
    b[-1] = 0
    for divide in (lambda: a // b, lambda: a % b, lambda: a.remainder_(b)):
        with pytest.raises(DivisionByZero):
            divide()
    assert (a == 1).all()


@pytest.mark.parametrize("divisor", [1.7, -0.25, float("inf"), 0.0])
@pytest.mark.parametrize("scale", [1.0, 1e30])
def test_whole_quotients_of_floats(divisor: float, scale: float) -> None:
    a = (np.random.default_rng(0).standard_normal(SIZE) * scale).astype(np.float32)
    a[:4] = 0.0, -0.0, np.inf, np.nan
    for divisors in (np.full(SIZE, divisor, np.float32), np.float32(divisor)):
        with np.errstate(all="ignore"):
            for function, ufunc in ((mg.remainder, np.remainder), (mg.fmod, np.fmod), (mg.floor_divide, np.floor_divide)):
                for part in (a, a[4:]):  # what is not finite has NumPy compute it all
                    apart = divisors if divisors.ndim == 0 else divisors[:part.size]
                    expected = ufunc(part, apart)
                    for found in by_both(function, part, apart):
                        np.testing.assert_array_equal(found, expected)
                        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()
