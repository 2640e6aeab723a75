"""Casts, ranges and checks for nan of large arrays, which go other ways than those of small ones."""
from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.bfloat16 import converted
from mutagrad.core.nans import has_nan

SIZE = (1 << 18) + 5
NUMBERS = ["float32", "float64", "int64", "int32", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("source", NUMBERS)
def test_casts_of_many(source: str, to: str) -> None:
    if source == "complex64" and to not in ("complex64", "bool"):
        pytest.skip("the real part is taken first")
    x = np.random.default_rng(0).integers(0, 100, SIZE).astype(source)
    for a in (x, x[::-1], x[:1 << 18].reshape(512, 512).T, x[::2]):
        found = converted(a, np.dtype(to))
        assert found.shape == a.shape and found.dtype == to
        np.testing.assert_array_equal(found, a.astype(to))


def test_halves_are_converted_exactly() -> None:
    """All of them to float32; and back what lies on either side of the middle between two of them, and there."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    for some in (finite, halves):
        np.testing.assert_array_equal(converted(some, np.dtype(np.float32)).view(np.int32), some.astype(np.float32).view(np.int32))
    steps = np.sort(np.abs(finite)).astype(np.float64)
    middle = ((steps[1:] + steps[:-1]) / 2).astype(np.float32)
    near = np.concatenate([np.nextafter(middle, np.float32(0)), middle, np.nextafter(middle, np.float32(1e9)), finite.astype("f")])
    beyond = np.array([65519, 65520, 1e30, np.inf, np.nan, 1e-30, -0.0], np.float32)
    for some in (near, -near, np.concatenate([near, beyond])):
        with np.errstate(all="ignore"):
            expected = some.astype(np.float16)
        np.testing.assert_array_equal(converted(some, np.dtype(np.float16)).view(np.int16), expected.view(np.int16))


@pytest.mark.parametrize("kernels", ["numpy", "auto"])
def test_between_short_types(kernels: str) -> None:
    pytest.importorskip("ml_dtypes")
    before = mg.get_kernels()
    mg.set_kernels(kernels)
    try:
        x = mg.tensor(np.random.default_rng(0).standard_normal(SIZE).astype(np.float16))
        x[:3] = mg.tensor([float("nan"), float("inf"), 1e-7]).half()
        for one, other in ((x.bfloat16(), x.float().bfloat16()), (x.double(), x.float().double())):
            assert mg.equal(one[1:], other[1:]) and one[0].isnan()
    finally:
        mg.set_kernels(before)


@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16, mg.float32, mg.float64, mg.complex64])
def test_nan_among_many(dtype: mg.dtype) -> None:
    if dtype is mg.bfloat16:
        pytest.importorskip("ml_dtypes")
    x = mg.ones(5000, dtype=dtype)
    x[7], x[8] = float("inf"), -float("inf")
    assert not has_nan(x._array)
    for place in (0, 4999):
        y = x.clone()
        y[place] = -float("nan")
        assert has_nan(y._array)


def test_ranges() -> None:
    n = 200_001
    assert float((mg.linspace(-1, 3, n).double() - mg.tensor(np.linspace(-1, 3, n))).abs().max()) < 1.5e-7  # as in PyTorch
    assert mg.linspace(0, 0.3, n)[-1] == mg.tensor(0.3) and mg.linspace(2, 2, n).unique().tolist() == [2]
    found, expected = mg.arange(5, 1000, 0.005), np.arange(199_000) * 0.005 + 5
    np.testing.assert_allclose(found.numpy(), expected, 6e-8)
    assert mg.ones(1000, 1000).sum() == 1e6 and mg.full((1000, 1000), 3).unique().tolist() == [3]


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3), (5, 5), (0, 3), (3, 0)])
def test_triangles(sizes: tuple[int, int]) -> None:
    for offset in range(-7, 8):
        for name in ("tril_indices", "triu_indices"):
            expected = getattr(np, name)(sizes[0], offset, sizes[1])
            np.testing.assert_array_equal(getattr(mg, name)(*sizes, offset).numpy(), np.stack(expected))


@pytest.mark.parametrize("points", [1, 2, 3, 8, 9, 20_000])
def test_windows_are_the_same_both_ways(points: int) -> None:
    t = 2 * np.pi / points * np.arange(points)
    expected = np.ones(1) if points == 1 else 0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t)
    np.testing.assert_allclose(mg.blackman_window(points, dtype=mg.float64).numpy(), expected, 1e-9, 1e-12)


def test_complex_of_many() -> None:
    x, y = (mg.tensor(np.random.default_rng(i).standard_normal((600, 500))) for i in range(2))
    for a, b in ((x, y), (x.T, y.T), (x[::2], y[1::2])):
        found = mg.complex(a, b)
        assert mg.equal(found.real, a) and mg.equal(found.imag, b)
