"""What NumPy alone finds by other ways than its own: counts of what is true, places of extremes, sums of windows, products."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.counting import count_true, first_extremes


@pytest.fixture(autouse=True)
def numpy_alone() -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels("numpy")
    yield
    mg.set_kernels(before)


def drawn(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


SHAPES = (64, 4096), (4096, 64), (9000,), (10, 600, 24), (10, 24, 600), (300, 17), (3, 5000), (2, 3000)
LAYOUTS = lambda a: a, lambda a: a.T, lambda a: a[::2], lambda a: a[..., ::-1], lambda a: np.moveaxis(a, 0, -1).copy()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_counts_are_those_of_numpy(shape: tuple[int, ...], layout: int) -> None:
    a = LAYOUTS[layout](drawn(shape))
    for mask in (a > 0, a > -9, a > 9):
        for keepdim in (False, True):
            for dims in ((0,), (a.ndim - 1,), tuple(range(a.ndim)), (0, a.ndim - 1)[:a.ndim]):
                exact = mask.sum(dims, keepdims=keepdim)
                np.testing.assert_array_equal(mg.tensor(mask).sum(dims, keepdim).numpy(), exact)
                found = count_true(np.ascontiguousarray(mask), tuple(set(dims)), keepdim)
                assert found is None or found.dtype == np.int64 and found.shape == exact.shape and (found == exact).all()
        np.testing.assert_array_equal(mg.count_nonzero(mg.tensor(np.where(mask, a, 0)), dim=0).numpy(), np.count_nonzero(mask & (a != 0), 0))
    assert int(mg.count_nonzero(mg.tensor(a))) == np.count_nonzero(a)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
@pytest.mark.parametrize("values", ["distinct", "few", "equal", "nans", "zeros", "integers"])
def test_places_of_extremes_are_those_of_numpy(shape: tuple[int, ...], layout: int, values: str) -> None:
    a = drawn(shape)
    if values in ("few", "integers"):
        a = np.round(a)
    if values == "equal":
        a[...] = 3
    if values == "nans":
        a[drawn(shape, 1) > 2] = np.nan
    if values == "zeros":
        a = np.where(a > 0, np.float32(-0.0), np.float32(0.0))
    a = LAYOUTS[layout](a.astype(np.int64) if values == "integers" else a)
    for dim in range(a.ndim):
        for ufunc, name, exact in ((np.maximum, "argmax", a.argmax(dim)), (np.minimum, "argmin", a.argmin(dim))):
            np.testing.assert_array_equal(getattr(mg.from_numpy(a.copy()), name)(dim).numpy(), exact)
            found = first_extremes(ufunc, a, dim)
            assert found is None or found.flags.c_contiguous and (found == exact).all()


def test_places_of_extremes_are_found_column_by_column() -> None:
    a = drawn((600, 64))
    assert first_extremes(np.maximum, a, 0) is not None and first_extremes(np.maximum, a.T, 1) is not None
    assert first_extremes(np.maximum, np.zeros_like(a), 0) is None  # all are hits


def test_sums_of_windows_and_of_complex_rows() -> None:
    a = drawn((300, 1026))
    for window in (a[1:-1, 1:-1], a[::2, 5:700], a[::-1, 1:], a.reshape(10, 30, 1026)[:, 1:-1, 1:]):
        exact = window.astype(np.float64).sum(-1)
        np.testing.assert_allclose(_sum_of(a, window), exact, rtol=0, atol=1e-4)
    c = (a[:, :1000] + 1j * a[:, 1:1001]).astype(np.complex64)
    np.testing.assert_allclose(mg.tensor(c).sum(1).numpy(), c.astype(np.complex128).sum(1), rtol=0, atol=1e-4)
    c[3, 5], c[4, 6] = np.inf, complex(0, np.nan)
    found = mg.tensor(c).sum(1).numpy()
    assert found[3].real == np.inf and np.isfinite(found[3].imag)
    assert np.isfinite(found[4].real) and np.isnan(found[4].imag)
    assert np.isfinite(found[5:]).all()


def _sum_of(base: np.ndarray, window: np.ndarray) -> np.ndarray:
    offset = (window.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // 4
    if min(window.strides) < 0:
        return mg.from_numpy(base).flip(0)[:, 1:].sum(-1).numpy()
    return mg.from_numpy(base).as_strided(window.shape, [s // 4 for s in window.strides], offset).sum(-1).numpy()


def test_products_of_rows_and_of_everything() -> None:
    a = (1 + drawn((64, 1000)) / 100).astype(np.float32)
    exact = a.astype(np.float64)
    np.testing.assert_allclose(mg.tensor(a).prod(1).numpy(), exact.prod(1), rtol=1e-4)
    np.testing.assert_allclose(mg.tensor(a).prod().numpy(), exact.prod(), rtol=1e-6)
    np.testing.assert_allclose(mg.tensor(a.reshape(8, 8, 1000)).prod(2, keepdim=True).numpy(), exact.reshape(8, 8, 1000).prod(2, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("size", [0, 5, 300])
def test_distances_by_coordinates(p: float, size: int) -> None:
    a, b = np.round(drawn((70, size)) * 4) / 4, np.round(drawn((90, size), 1) * 4) / 4
    apart = np.abs(a[:, None].astype(np.float64) - b)
    exact = ((apart != 0).sum(-1) if p == 0 else apart.max(-1, initial=0) if p == np.inf else (apart ** p).sum(-1) ** (1 / p))
    found = mg.cdist(mg.tensor(a), mg.tensor(b), p, "donot_use_mm_for_euclid_dist")
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-5)


@pytest.mark.parametrize("count", [999, 10_000, 99_999])
def test_cosines_of_many_steps(count: int) -> None:
    exact = 0.5 - 0.5 * np.cos(2 * np.pi / count * np.arange(count))
    np.testing.assert_allclose(mg.hann_window(count, dtype=mg.float64).numpy(), exact, rtol=0, atol=1e-14)
