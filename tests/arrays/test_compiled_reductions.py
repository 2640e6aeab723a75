"""Reductions by compiled loops: as NumPy's, for all types and layouts, with nan, zeros and odd sizes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, reductions
from mutagrad.nn import functional as F

needs_numba = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")
pytestmark = needs_numba


def both(function: Any, *arrays: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Values and gradients by NumPy's kernels, and by compiled ones."""
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        xs = [mg.tensor(a) for a in arrays]
        for x in xs:
            if x.is_floating_point():
                x.requires_grad_()
        results = function(*xs)
        results = results if isinstance(results, tuple) else (results,)
        values = [r.detach().double().numpy() for r in results]
        for r in results:
            if r.requires_grad:
                r.backward(mg.tensor(np.cos(np.arange(r.numel())).reshape(r.shape)).to(r.dtype), retain_graph=True)
        found.append(values + [x.grad.double().numpy() for x in xs if x.grad is not None])
    return found[0], found[1]


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape)
    return values > 0 if dtype == "bool" else (values * 50 if "int" in dtype else values).astype(dtype)


SHAPES = [(70, 131), (1, 5003), (5003, 1), (17, 33, 29), (9001,), (2, 3000), (3000, 17)]
REDUCED: dict[str, Any] = {
    "sum": lambda x, dim: x.sum(dim), "mean": lambda x, dim: x.mean(dim), "amax": lambda x, dim: x.amax(dim),
    "amin": lambda x, dim: x.amin(dim, keepdim=True), "norm": lambda x, dim: x.norm(dim=dim),
    "var": lambda x, dim: x.var(dim), "std": lambda x, dim: x.std(dim, keepdim=True),
    "prod": lambda x, dim: (1 + x / 100).prod(dim), "nansum": lambda x, dim: x.nansum(dim),
    "nanmean": lambda x, dim: x.nanmean(dim), "max": lambda x, dim: tuple(x.max(dim)),
    "min": lambda x, dim: tuple(x.min(dim, keepdim=True)), "argmax": lambda x, dim: x.argmax(dim),
    "count_nonzero": lambda x, dim: x.count_nonzero(dim),
}
EXACT = ("amax", "amin", "max", "min", "argmax", "count_nonzero")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str, dtype: str) -> None:
    for shape in SHAPES:
        for dim in range(len(shape)):
            expected, found = both(lambda x, dim=dim: REDUCED[name](x, dim), data(shape, dtype))
            for a, b in zip(expected, found, strict=True):
                assert a.shape == b.shape
                tolerance = 0 if name in EXACT else 1e-5 if dtype == "float32" else 1e-12
                np.testing.assert_allclose(b, a, tolerance, tolerance)


@pytest.mark.parametrize("name", ["sum", "amax", "amin", "count_nonzero", "prod"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers(name: str, dtype: str) -> None:
    for dim in (0, 1, (0, 1)):
        expected, found = both(lambda x, dim=dim: getattr(x, name)(dim), data((130, 71), dtype))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "norm"])
@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16])
def test_short_floats(name: str, dtype: Any) -> None:
    if dtype is mg.bfloat16:
        pytest.importorskip("ml_dtypes")
    x = data((130, 171), "float32")
    for dim in (0, 1, (0, 1)):
        expected, found = both(lambda x, dim=dim: REDUCED[name](x.to(dtype), dim), x)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(b, a, 0 if name in EXACT else 1e-2, 0 if name in EXACT else 1e-2)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2)])
@pytest.mark.parametrize("layout", ["whole", "transposed", "strided", "backwards"])
def test_layouts(dims: tuple[int, ...], layout: str) -> None:
    views: dict[str, Any] = {"whole": lambda x: x, "transposed": lambda x: x.permute(2, 0, 1),
                             "strided": lambda x: x[:, ::2], "backwards": lambda x: x.flip(1)}
    for name in ("sum", "amax", "norm", "prod"):
        expected, found = both(lambda x, name=name: getattr(mg, name)(views[layout](x), dim=dims)
                               if name != "prod" else mg.prod(1 + views[layout](x) / 100, dims[0]),
                               data((21, 34, 40), "float32"))
        for a, b in zip(expected, found, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(b, a, 2e-5, 1e-5)


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_not_finite(bad: float, dtype: str) -> None:
    x = data((64, 150), dtype)
    x[3, 140] = x[60, 2] = bad
    for name in ("sum", "amax", "amin", "nansum", "norm", "std", "max", "min", "argmax"):
        for dim in (0, 1):
            expected, found = both(lambda x, name=name, dim=dim: REDUCED[name](x, dim).detach()
                                   if name not in ("max", "min") else REDUCED[name](x, dim)[1], x)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(b, a, 2e-3 if dtype == "float16" else 2e-5, 1e-4)


def test_sign_of_what_is_not_a_number_does_not_matter() -> None:
    x = np.ones((100, 100), np.float32)
    x[5, 5] = np.array(0xFFC00000, np.uint32).view(np.float32)
    mg.set_kernels("numba")
    assert mg.tensor(x).amax(1)[5].isnan() and mg.tensor(x).amin(1)[5].isnan()
    assert mg.tensor(x).argmin(0)[5] == 5 == mg.tensor(x).argmax(0)[5]


def test_zeros_in_products_and_ties() -> None:
    x = data((40, 200), "float64")
    x[3, 5] = x[4, 6] = x[4, 7] = 0
    expected, found = both(lambda x: x.prod(1), x)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, 1e-9)
    ties = np.round(data((200, 100), "float32"))
    expected, found = both(lambda x: (x.argmax(0), x.argmin(0)), ties)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["amax", "amin", "var", "std"])
def test_derivatives_along_rows(name: str, dtype: str) -> None:
    """Equal shares where several are extreme; all nan are, where one is. Also for few elements, and over all dimensions."""
    tied = np.floor(data((60, 90), dtype) * 3)
    missing = tied.copy()
    missing[3, 5] = missing[3, 7] = missing[50, 0] = np.nan
    for x in (tied, missing, tied[:2, :5].copy(), tied.reshape(4, 15, 90)):
        for dims in ((-1,), tuple(range(1, x.ndim)), tuple(range(x.ndim)), (0,)):
            expected, found = both(lambda x, dims=dims: getattr(x, name)(dims), x)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(b, a, 1e-4, 1e-5)


def test_sums_round_little() -> None:
    """As PyTorch's: a hundred million times a tenth is off in the last places only."""
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        x = mg.full((1000, 5000), 0.1)
        for total, exact in ((x.sum(), 5e5), (x.sum(1), 500.0), (x.sum(0), 100.0), (x.norm() ** 2, 5e4),
                             (x.half().sum(1).float(), 500.0)):
            assert float((total / exact - 1).abs().max()) < (1e-3 if total.numel() == 1000 and exact == 500 else 3e-6)


def test_the_number_of_threads_does_not_show() -> None:
    mg.set_kernels("numba")
    x = mg.tensor(data((1024, 1100), "float32"))
    threads, found = mg.get_num_threads(), []
    try:
        for count in (1, 3):
            mg.set_num_threads(count)
            found.append([f(x) for f in (mg.sum, mg.norm, mg.amax, mg.std, lambda x: x.amax(0))])
    finally:
        mg.set_num_threads(threads)
    assert all(bool((a == b).all()) for a, b in zip(*found))


@pytest.mark.parametrize("name", ["sum", "largest", "product"])
def test_few_columns_are_seen_as_more(name: str) -> None:
    mg.set_kernels("numba")
    a = np.random.default_rng(0).uniform(0.9, 1.1, (3, 1664, 2)).astype(np.float32)
    a[1, 100, 1] = np.nan if name == "largest" else 1.2
    expected = {"sum": np.add, "largest": np.maximum, "product": np.multiply}[name].reduce(a.astype(np.float64), 1)
    np.testing.assert_allclose(reductions.reduce(name, a, (1,)), expected, 1e-5)
    assert reductions.reduce("sum", a[:, :-1].copy(), (1,)) is None  # of an odd number there are no halves


def test_small_arrays_are_left_to_numpy() -> None:
    mg.set_kernels("numba")
    assert reductions.reduce("sum", np.ones((5001, 3)), (0,)) is None
    assert reductions.reduce("sum", np.ones(10), (0,)) is None
    assert reductions.reduce("sum", np.ones((100, 100)), ()) is None
    assert reductions.reduce("sum", np.ones((100, 100))[:, ::2], (0,)) is None
    assert reductions.reduce("sum", np.ones((100, 100), ">f4"), (0,)) is None
    assert float(F.normalize(mg.ones(3, 4))[0, 0]) == 0.5


@pytest.mark.parametrize("n", [1, 2, 7, 64, 1001])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spectra_of_real_numbers(n: int, dtype: str) -> None:
    pytest.importorskip("scipy")
    x = data((70_000 // n, n), dtype)
    mg.set_kernels("numba")
    for norm in ("backward", "ortho", "forward"):
        found = mg.fft.fft(mg.tensor(x), norm=norm).numpy()
        expected = np.fft.fft(x, norm=norm)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zeros_of_either_sign_are_ties(dtype: str) -> None:
    x = np.zeros((300, 20), dtype)
    x[::2, :10], x[1::2, 10:] = -0.0, -0.0
    expected, found = both(lambda x: (x.argmax(0), x.argmin(0), x.max(0).indices, x.min(0).indices), x)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(b, a)
        assert not b.any()
