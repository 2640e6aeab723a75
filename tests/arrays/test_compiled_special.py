"""Special functions as compiled loops, against the standard library's in double."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler

needs_numba = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")

rng = np.random.default_rng(0)
MANY = 1 << 15


def computed(function: Callable[..., mg.Tensor], *arrays: np.ndarray) -> np.ndarray:
    mg.set_kernels("numba")
    return function(*[mg.tensor(a) for a in arrays]).numpy()


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """In units of the last place of float32."""
    return float(np.max(np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32))))


@needs_numba
@pytest.mark.parametrize("values", [
    rng.uniform(0, 3, MANY), rng.uniform(3, 60, MANY), 10.0 ** rng.uniform(-30, 30, MANY), rng.uniform(-2, 0, MANY), 1 + rng.normal(0, 1e-4, MANY),
    2 + rng.normal(0, 1e-4, MANY), -(10.0 ** rng.uniform(-30, 0, MANY))], ids=["small", "middle", "wide", "negative", "about-1", "about-2", "below-0"])
def test_lgamma(values: np.ndarray) -> None:
    x = values.astype(np.float32)
    expected = np.array([math.lgamma(float(v)) if v > 0 or v != math.floor(v) else math.inf for v in x])
    assert distance(computed(mg.lgamma, x)[x != 0], expected[x != 0]) < 2


@needs_numba
def test_lgamma_at_the_ends() -> None:
    x = np.zeros(MANY, np.float32)
    x[:8] = [1, 2, -1, -3e7, np.inf, -np.inf, np.nan, 0]
    assert str(computed(mg.lgamma, x)[:8].tolist()) == "[0.0, 0.0, inf, inf, inf, inf, nan, inf]"


@needs_numba
@pytest.mark.parametrize("values", [rng.uniform(-1, 1, MANY), 1 - 10.0 ** rng.uniform(-7, 0, MANY), 10.0 ** rng.uniform(-30, -1, MANY)],
                         ids=["all", "about-1", "about-0"])
def test_erfinv(values: np.ndarray) -> None:
    """One of Newton's steps in double from what is found leads no further away than half a unit."""
    x = values[np.abs(values) < 1].astype(np.float32)
    x = x[np.abs(x) < 1]
    found = computed(mg.erfinv, x).astype(np.float64)
    rest = [math.erf(y) - v if abs(v) < 0.5 else math.copysign(1 - abs(v) - math.erfc(abs(y)), v) for y, v in zip(found.tolist(), x.tolist())]
    better = found - np.array(rest) * np.exp(found * found) * (math.sqrt(math.pi) / 2)
    assert distance(found, better) < 0.6


@needs_numba
def test_erfinv_at_the_ends() -> None:
    x = np.zeros(MANY, np.float32)
    x[:6] = [1, -1, 2, np.nan, 0, -0.0]
    assert str(computed(mg.erfinv, x)[:6].tolist()) == "[inf, -inf, nan, nan, 0.0, -0.0]"


@needs_numba
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_hypot(kind: str) -> None:
    x, y = rng.standard_normal((2, MANY)).astype(kind)
    largest = float(np.finfo(kind).max)
    x[:8], y[:8] = [3, 0, np.inf, np.nan, np.nan, largest, 1e-30, np.nan], [4, 0, np.nan, -np.inf, 1, 1, 1e-30, np.nan]
    np.testing.assert_allclose(computed(mg.hypot, x, y), np.hypot(x, y), 2 * np.finfo(kind).eps)
