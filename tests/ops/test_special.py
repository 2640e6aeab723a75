"""What the table of samples cannot say about special functions: limits, types, names, and SciPy missing."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad._lazy import WRITES
from mutagrad.arrays import scipy as science


@pytest.mark.parametrize("name", sorted(WRITES))
def test_functions_that_write_are_the_methods(name: str) -> None:
    assert inspect.unwrap(getattr(mg, name)) is inspect.unwrap(getattr(mg.Tensor, name))  # classes that take over may have been put around them


def test_a_function_that_writes() -> None:
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    y = x * 1
    assert mg.exp_(y) is y
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.0, 1.0]), 1e-6)


@pytest.mark.parametrize(("expression", "value", "slope"), [
    ("m.special.i1(x)", 0.0, 0.5), ("m.special.i1e(x)", 0.0, 0.5), ("m.special.bessel_j1(x)", 0.0, 0.5), ("m.special.spherical_bessel_j0(x)", 0.0, 0.0),
    ("m.sinc(x)", 0.0, 0.0), ("m.xlogy(x, 0.)", 0.0, 0.0), ("m.special.xlog1py(x, -1.)", 0.0, 0.0), ("m.special.entr(x)", 0.0, math.inf),
    ("m.nan_to_num(x)", math.nan, 0.0), ("m.nan_to_num(x)", math.inf, 0.0), ("m.nan_to_num(x)", 2.0, 1.0), ("m.copysign(x, -1.)", 0.0, 0.0),
    ("m.copysign(x, -1.)", 2.0, -1.0), ("m.heaviside(m.zeros(()), x)", 3.0, 1.0), ("m.heaviside(m.ones(()), x)", 3.0, 0.0),
    ("m.frexp(x).mantissa", 6.0, 0.125),
])
def test_gradient_at_limits(expression: str, value: float, slope: float) -> None:
    x = mg.tensor(value, requires_grad=True)
    eval(expression, {"m": mg, "x": x}).backward()
    assert x.grad.item() == pytest.approx(slope)


def test_curvature_of_sinc_at_zero() -> None:
    x = mg.tensor(0.0, dtype=mg.float64, requires_grad=True)
    slope, = mg.autograd.grad(mg.sinc(x), x, create_graph=True)
    slope.backward()
    assert x.grad.item() == pytest.approx(-math.pi**2 / 3)


@pytest.mark.parametrize("call", [lambda x, y: mg.igamma(x, y), lambda x, y: mg.igammac(x, y), lambda x, y: mg.special.zeta(x, y),
                                  lambda x, y: mg.special.hermite_polynomial_h(y, x)])
def test_a_derivative_that_is_not_known_is_never_zero(call: Any) -> None:
    x = mg.tensor([2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="no derivative"):
        call(x, mg.tensor([2.0])).backward()


def test_float_power_computes_in_double() -> None:
    x = mg.tensor([2.0, 3.0], requires_grad=True)
    y = mg.float_power(x, 2)
    y.sum().backward()
    assert y.dtype is mg.float64 and x.grad.dtype is mg.float32 and x.grad.tolist() == [4.0, 6.0]
    assert mg.float_power(2, mg.tensor([3])).tolist() == [8.0]
    assert mg.float_power(mg.tensor([1j]), 2).dtype is mg.complex128
    z = mg.tensor([2.0], dtype=mg.float64)
    assert z.float_power_(3) is z and z.item() == 8
    with pytest.raises(RuntimeError, match="double precision"):
        mg.tensor([2.0]).float_power_(2)


def test_replacements_of_nan_and_infinity() -> None:
    x = mg.tensor([math.nan, math.inf, -math.inf, 2.0])
    assert x.nan_to_num(1, 2, 3).tolist() == [1, 2, 3, 2]
    assert x.nan_to_num().tolist() == [0, mg.finfo(mg.float32).max, mg.finfo(mg.float32).min, 2]
    assert mg.tensor([1, 2]).nan_to_num().tolist() == [1, 2]
    for short in (mg.float16, mg.bfloat16):
        limits = mg.finfo(short)
        assert x.to(short).nan_to_num().tolist() == [0, limits.max, limits.min, 2]
        assert x.to(short).nan_to_num_(posinf=7).tolist() == [0, 7, limits.min, 2]


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64, mg.float16, mg.bfloat16], ids=str)
def test_bounds_of_many(dtype: mg.dtype) -> None:
    """Many elements are bounded by another function of NumPy's than few: the same, of nan and infinities, too."""
    x = mg.randn(70, 70).to(dtype)
    x[0, :3] = mg.tensor([math.nan, math.inf, -math.inf], dtype=dtype)
    for bounded in (lambda t: t.relu(), lambda t: t.clamp(min=0.5), lambda t: t.clamp(max=-0.5), lambda t: t.clamp(-1, 1),
                    mg.nan_to_num, mg.nn.functional.elu, mg.nn.functional.softplus, mg.nn.functional.logsigmoid):
        few = mg.cat([bounded(row) for row in x])
        mg.testing.assert_close(bounded(x).reshape(-1), few, equal_nan=True)


@pytest.mark.parametrize("name", ["isposinf", "isneginf", "gcd", "heaviside", "nextafter", "frexp"])
def test_types_that_are_refused(name: str) -> None:
    z = mg.tensor([1j])
    with pytest.raises(RuntimeError):
        getattr(mg, name)(*(z,) * (2 if name in ("gcd", "heaviside", "nextafter") else 1))


def test_negative_orders_and_degrees() -> None:
    with pytest.raises(RuntimeError, match="negative"):
        mg.polygamma(-1, mg.ones(2))
    with pytest.raises(RuntimeError, match="at least 1"):
        mg.mvlgamma(mg.ones(2), 0)
    assert mg.special.legendre_polynomial_p(mg.tensor([0.5]), -1).tolist() == [0]


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(science, "import_module", refuse)
    caches = science.scipy, science._find, science._find_lgamma
    for cached in caches:
        cached.cache_clear()
    try:
        x = mg.tensor([0.5, 3.0, 0.0])
        np.testing.assert_allclose(mg.lgamma(x).numpy(), [math.lgamma(0.5), math.log(2), math.inf], 1e-6)
        np.testing.assert_allclose(mg.erfc(x).numpy(), [math.erfc(v) for v in x.tolist()], 1e-6)
        with pytest.raises(ImportError, match="SciPy"):
            mg.digamma(x)
    finally:
        for cached in caches:
            cached.cache_clear()


def test_polygamma_far_below_zero() -> None:
    """It has a pole at each whole number up to 0, and takes no longer the further from 0 it is asked for."""
    far = mg.tensor([-1e15 - 0.25, -1e6 - 0.5, -0.25], dtype=mg.float64)
    squares = math.pi**2 / mg.sin(math.pi * (far - far.round())) ** 2
    mg.testing.assert_close(mg.polygamma(1, far), squares - mg.polygamma(1, 1 - far))
    x = mg.linspace(-7.9, -0.1, 14, dtype=mg.float64)
    for n in (1, 2, 3, 6):
        step = (-1) ** n * math.factorial(n) / x ** (n + 1)
        mg.testing.assert_close(mg.polygamma(n, x), mg.polygamma(n, x + 1) - step)
    assert mg.polygamma(1, mg.tensor([-2.0, 0.0, math.nan, math.inf])).tolist()[:2] == [math.inf, math.inf]
