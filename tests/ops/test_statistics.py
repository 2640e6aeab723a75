"""Reductions, sorting and searching beyond the table of samples: nan, NumPy's names, several `out=`, bad arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import parallel as large

nan, inf = float("nan"), float("inf")


def leaf(values: Any) -> Any:
    return mg.tensor(values, dtype=mg.float64, requires_grad=True)


# --------------------------------------------------------------------------------------------------------------------- nan


@pytest.mark.parametrize(("expression", "value", "slope"), [
    ("x.nansum()", 6.0, [1, 0, 1, 1]),
    ("x.nanmean()", 2.0, [1 / 3, 0, 1 / 3, 1 / 3]),
    ("x.nanmedian()", 2.0, [0, 0, 0, 1]),
    ("x.nanmedian(0).values", 2.0, [0, 0, 0, 1]),
    ("x.nanquantile(0.75)", 2.5, [0, 0, 0.5, 0.5]),
    ("x.median()", nan, [0, 1, 0, 0]),
    ("x.quantile(0.5)", nan, [0, 1, 0, 0]),
    ("x.cummax(0).values.nansum()", 1.0, [1, 0, 0, 0]),
])
def test_nan(expression: str, value: float, slope: list[float]) -> None:
    x = leaf([1.0, nan, 3.0, 2.0])
    result = eval(expression, {"x": x})
    np.testing.assert_allclose(result.detach().numpy(), value)
    result.backward(mg.ones_like(result))
    np.testing.assert_allclose(x.grad.numpy(), slope)


def test_medians_share_the_gradient_where_values_are_equal() -> None:
    x = leaf([2.0, 1.0, 2.0, 5.0])
    x.median().backward()
    assert x.grad.tolist() == [0.5, 0, 0.5, 0]


def test_running_extremes_take_the_latest_of_equal_values() -> None:
    values, indices = leaf([1.0, 3.0, 3.0, 2.0]).cummax(0)
    assert values.tolist() == [1, 3, 3, 3] and indices.tolist() == [0, 1, 2, 2]


def test_the_gradient_of_logcumsumexp_keeps_its_digits_beside_large_numbers() -> None:
    x = mg.tensor([10000.0, 1.0, 2.0], requires_grad=True)
    mg.logcumsumexp(x, 0).backward(mg.tensor([0.25, 0.5, -1.0]))
    assert x.grad.tolist() == [-0.25, 0, 0]


def test_distances_of_equal_points_have_no_slope() -> None:
    for p in (1, 2, 3, inf):
        x = leaf([[1.0, 2.0], [3.0, 3.0]])
        mg.cdist(x, x.detach(), p).backward(mg.eye(2, dtype=mg.float64))
        assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_distances_by_a_product_of_matrices_are_those_by_differences() -> None:
    rng = np.random.default_rng(0)
    a, b = mg.tensor(rng.normal(size=(30, 4))), mg.tensor(rng.normal(size=(40, 4)))
    exact = mg.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    np.testing.assert_allclose(mg.cdist(a, b).numpy(), exact.numpy(), 1e-12)


# ------------------------------------------------------------------------------------------------------------- large arrays

def softmax(x: Any, dim: Any) -> Any:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def shares(x: Any, top: Any, dim: Any) -> Any:
    chosen = (x == top) | np.isnan(x) & np.isnan(top)
    return chosen / chosen.sum(dim, keepdims=True)


LARGE = {  # the value, and the adjoint of x for an adjoint g of the result, its dimensions kept
    "softmax": (softmax, lambda x, y, g, dim: y * (g - (g * y).sum(dim, keepdims=True))),
    "log_softmax": (lambda x, dim: np.log(softmax(x, dim)), lambda x, y, g, dim: g - np.exp(y) * g.sum(dim, keepdims=True)),
    "logsumexp": (lambda x, dim: np.log(np.exp(x).sum(dim, keepdims=True)), lambda x, y, g, dim: g * softmax(x, dim)),
    "amax": (lambda x, dim: x.max(dim, keepdims=True), lambda x, y, g, dim: g * shares(x, y, dim)),
    "amin": (lambda x, dim: x.min(dim, keepdims=True), lambda x, y, g, dim: g * shares(x, y, dim)),
}


@pytest.mark.parametrize(("shape", "dim"), [((400, 500), 1), ((400, 500), 0), ((20000, 9), 1), ((9, 20000), 0), ((7, 300, 80), 1), ((3, 70, 700), 1),
                                            ((2, 100, 30, 30), (2, 3)), ((150000,), 0), ((50, 60, 60), (0, 2))])
@pytest.mark.parametrize("name", LARGE)
def test_large_arrays_are_worked_on_in_parts(name: str, shape: tuple[int, ...], dim: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(large, "LARGE", 1 << 17)
    assert np.prod(shape) >= large.LARGE
    if "soft" in name and not isinstance(dim, int):
        return
    rng = np.random.default_rng(5)
    array = rng.integers(-20, 20, shape) / 7 if name in ("amax", "amin") else rng.normal(size=shape)  # with many ties
    if name in ("amax", "amin"):
        array[(0,) * len(shape)] = nan
    value, adjoint = LARGE[name]
    expected = value(array, dim)
    settings = {} if "soft" in name else {"keepdim": True}
    x = leaf(array)
    y = getattr(x, name)(dim, **settings)
    np.testing.assert_allclose(y.detach().numpy(), expected, 1e-12, 1e-12)
    g = rng.normal(size=expected.shape)
    y.backward(mg.tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), adjoint(array, expected, g, dim), 1e-9, 1e-12)


# -------------------------------------------------------------------------------------------------------------- histograms


def test_histogramdd() -> None:
    rng = np.random.default_rng(1)
    points, weight = rng.uniform(0, 1, (20, 2)), rng.uniform(0, 1, 20)
    for bins, settings in (([3, 2], {}), ([3, 2], {"density": True}), (4, {"range": (0.1, 0.9, 0.0, 1.0)})):
        hist, edges = mg.histogramdd(mg.tensor(points), bins, weight=mg.tensor(weight), **settings)
        limits = settings.get("range")
        expected, expected_edges = np.histogramdd(points, bins, limits and list(zip(limits[::2], limits[1::2])), settings.get("density", False), weight)
        np.testing.assert_allclose(hist.numpy(), expected)
        for e, f in zip(edges, expected_edges):
            np.testing.assert_allclose(e.numpy(), f)


def test_histogram_between_given_edges() -> None:
    hist, edges = mg.histogram(mg.tensor([0.1, 0.4, 1.0, 3.0]), mg.tensor([0.0, 0.5, 1.0]))
    assert hist.tolist() == [2, 1] and edges.tolist() == [0, 0.5, 1]


# ------------------------------------------------------------------------------------------------- NumPy's names, and out=

NAMED = "sum mean prod std var any all amax amin argmax argmin logsumexp nansum nanmean max min median nanmedian mode"


@pytest.mark.parametrize("name", NAMED.split())
def test_axis_and_keepdims(name: str) -> None:
    x = mg.tensor(np.random.default_rng(2).normal(size=(3, 4)))
    found, expected = getattr(x, name)(axis=1, keepdims=True), getattr(x, name)(dim=1, keepdim=True)
    for f, e in zip(found, expected) if isinstance(found, tuple) else [(found, expected)]:
        assert f.shape == (3, 1) and f.tolist() == e.tolist()


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "softmax", "log_softmax", "sort", "argsort", "cummax", "cummin", "logcumsumexp", "diff", "count_nonzero"])
def test_axis(name: str) -> None:
    x = mg.tensor(np.random.default_rng(3).normal(size=(3, 4)))
    found, expected = getattr(x, name)(axis=0), getattr(x, name)(dim=0)
    for f, e in zip(found, expected) if isinstance(found, tuple) else [(found, expected)]:
        assert f.tolist() == e.tolist()


SEVERAL = {
    "max": {"dim": 1}, "min": {"dim": 1}, "sort": {}, "topk": {"k": 2}, "median": {"dim": 1}, "nanmedian": {"dim": 1}, "mode": {}, "kthvalue": {"k": 2},
    "cummax": {"dim": 1}, "cummin": {"dim": 1}, "aminmax": {}, "var_mean": {"dim": 1}, "std_mean": {"dim": 1}, "histogram": {"bins": 3}}


@pytest.mark.parametrize("name", SEVERAL)
def test_out_of_several_results(name: str) -> None:
    """Values, gradient and the kind of tuple are those without `out=`; what cannot be written is refused before anything is."""
    array = np.random.default_rng(4).normal(size=(3, 4))
    x, y = leaf(array), leaf(array)
    expected = getattr(mg, name)(x, **SEVERAL[name])
    outs = tuple(mg.empty_like(e) for e in expected)
    found = getattr(mg, name)(y, **SEVERAL[name], out=outs)
    assert type(found) is type(expected) and all(f is o for f, o in zip(found, outs))
    assert [f.tolist() for f in found] == [e.tolist() for e in expected]
    if expected[0].requires_grad:
        expected[0].sum().backward()
        found[0].sum().backward()
        assert x.grad.tolist() == y.grad.tolist()
    kept = mg.full_like(expected[0].detach(), 4)
    with pytest.raises(RuntimeError):
        getattr(mg, name)(x, **SEVERAL[name], out=(kept, mg.zeros(9, 9, requires_grad=True)))  # resizing a leaf
    assert (kept == 4).all()
    with pytest.raises(TypeError):
        getattr(mg, name)(x, **SEVERAL[name], out=kept)


# ----------------------------------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize("expression", [
    'x.topk("a")', "x.topk(2.5)", 'x.sum("a")', "x.sum(1.5)", "x.sum(True)", 'x.sum(0, "a")', 'x.max("a")', "x.max(0, 5)", 'x.softmax("a")', "x.softmax()",
    'x.cumsum("a")', "x.cumsum()", 'x.argmax("a")', 'x.sort("a")', "x.sort(descending=3)", 'x.any("a")', 'x.std("a")', 'x.var(correction="a")',
    'x.norm(2, "a")', 'x.logsumexp("a")', "x.logsumexp()", 'x.kthvalue("a")', 'x.quantile("a")', 'x.median("a")', 'x.cummax("a")', "x.renorm('a', 0, 1)",
    "m.sum([1.0])", "m.max([1.0])", "m.softmax([1.0], 0)", "m.sort([1.0])", "m.topk([1.0], 1)", "m.amax([1.0])", "m.any([True])", "m.cumsum([1.0], 0)",
    "m.norm([1.0])", "m.median([1.0])", "m.unique([1])", "m.quantile([1.0], 0.5)", "m.bincount([1])", "m.searchsorted([1.0], 2)", "m.cdist([[1.0]], x)",
    "m.histc([1.0])", "m.masked.sum([1.0])", "m.masked.sum(x, mask=[True])", "m.isin([1], 2)", "m.trapezoid([1.0])", "m.cov([1.0])", "m.unravel_index([1], 3)"])
def test_arguments_of_the_wrong_kind(expression: str) -> None:
    with pytest.raises(TypeError) as caught:
        eval(expression, {"m": mg, "x": mg.ones(3, 4)})
    assert isinstance(caught.value, mg.MutagradError) and caught.value.fix


def test_lerp_ends_at_its_ends() -> None:
    far, near = mg.tensor([1e8, 1.0]), mg.tensor([1.0, 1e8])
    assert mg.lerp(far, near, 1.0).tolist() == near.tolist() and far.clone().lerp_(near, mg.ones(2)).tolist() == near.tolist()
    assert mg.tensor([-float("inf"), 1.0, float("inf")]).quantile(0.25).item() == -float("inf")
