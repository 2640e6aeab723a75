"""Running sums, products and extremes of many elements, computed in blocks and in another order, without a compiler."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.core.op import RAW

SHAPES = [((5, 70_000), 1), ((300, 700), 1), ((300, 700), 0), ((9_000, 33), 1), ((40, 900, 7), 1), ((3, 400, 300), 1), ((1, 40_000, 3), 1)]


@pytest.fixture(autouse=True)
def numpy_alone() -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels("numpy")
    yield
    mg.set_kernels(before)


def drawn(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sums_and_products(shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    a = drawn(shape, dtype)
    exact = np.cumsum(a, dim, np.longdouble)
    x = mg.tensor(a, requires_grad=True)
    y = x.cumsum(dim)
    np.testing.assert_allclose(y.detach().numpy(), exact.astype(dtype), 2e-7 if dtype == np.float32 else 1e-13, 1e-12)
    g = drawn(shape, dtype)[::-1]
    y.backward(mg.tensor(g.copy()))
    expected = np.flip(np.cumsum(np.flip(g, dim), dim, np.longdouble), dim)
    np.testing.assert_allclose(x.grad.numpy(), expected.astype(dtype), 2e-7 if dtype == np.float32 else 1e-13, 1e-12)
    for b in (a, 1 + a / 1000, np.where(np.abs(a) < 0.1, 0, a * 30)):  # with zeros, and with what overflows
        with np.errstate(all="ignore"):
            expected = np.cumprod(b.astype(dtype), dim, np.float64).astype(dtype)
        np.testing.assert_allclose(mg.tensor(b.astype(dtype)).cumprod(dim).numpy(), expected, 1e-6 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_extremes(shape: tuple[int, ...], dim: int, special: bool, least: bool) -> None:
    a = np.round(drawn(shape, np.float32), 1)
    if special:
        a.flat[:: a.size // 7], a.flat[5 :: a.size // 5] = np.nan, np.inf
    values, places = (mg.cummin if least else mg.cummax)(mg.tensor(a), dim)
    expected = (np.minimum if least else np.maximum).accumulate(a, dim)
    np.testing.assert_array_equal(values.numpy(), expected)
    places = places.numpy()
    np.testing.assert_array_equal(np.take_along_axis(a, places, dim), expected)
    new = (a == expected) | np.isnan(a)
    steps = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    np.testing.assert_array_equal(places, np.maximum.accumulate(np.where(new, steps, 0), dim))


def test_infinities_and_nan_stay_behind_what_they_follow() -> None:
    a = drawn((50, 2000), np.float32)
    a[3, 700], a[4, 700], a[4, 900], a[5, 3] = np.inf, np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        expected = np.cumsum(a, 1, np.float64).astype(np.float32)
    np.testing.assert_allclose(mg.tensor(a).cumsum(1).numpy(), expected, 1e-6, 1e-12)


def test_the_slope_of_a_running_product_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the definition, in a number of steps that does not depend on how long the rows are."""
    calls, cumprod = [], RAW.cumprod
    monkeypatch.setattr(RAW, "cumprod", lambda a, dim: calls.append(a.shape) or cumprod(a, dim))
    x = (mg.arange(12 * 50, dtype=mg.float64).reshape(12, 50) % 7 - 3).div(3).requires_grad_()  # rows with several zeros
    g = mg.sin(mg.arange(12 * 50, dtype=mg.float64)).reshape(12, 50)
    for dim in (0, 1):
        found, = mg.autograd.grad(x.cumprod(dim), x, g)
        assert len(calls) == 1
        calls.clear()
        for i in range(x.shape[dim]):
            mine = mg.arange(x.shape[dim]).reshape(-1, 1) == i if dim == 0 else mg.arange(x.shape[dim]) == i
            rest = mg.where(mine, 1.0, x.detach()).cumprod(dim) * g
            mg.testing.assert_close(found.select(dim, i), rest.narrow(dim, i, x.shape[dim] - i).sum(dim))
    assert mg.autograd.gradgradcheck(lambda x: x.cumprod(0), x.detach()[:4, :5].clone().requires_grad_())
