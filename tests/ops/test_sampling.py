"""Reading images at coordinates with NumPy alone is what the composed operations give, whose derivatives are recorded."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.ops.nn import resample, taps

F = mg.nn.functional
SHAPES = [((3, 2, 7, 9), (3, 5, 6, 2)), ((2, 3, 4, 5, 6), (2, 3, 4, 5, 3)), ((1, 1, 1, 1), (1, 3, 3, 2)), ((2, 2, 5, 4), (2, 0, 3, 2))]


@pytest.mark.parametrize(("shape", "points"), SHAPES)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("special", [False, True])
def test_values_and_gradients(shape: Any, points: Any, mode: str, border: str, align: bool, special: bool) -> None:
    rng = np.random.default_rng(0)
    a, at = rng.standard_normal(shape), rng.random(points) * 4 - 2
    if special:
        at = np.round(at * 2) / 2
    results = []
    kernels = mg.get_kernels()
    mg.set_kernels("numpy")
    try:
        for function in (F.grid_sample, resample._by_corners):
            x, grid = mg.tensor(a, requires_grad=True), mg.tensor(at, requires_grad=True)
            y = function(x, grid, mode, border, align)
            y.backward(mg.tensor(np.random.default_rng(1).standard_normal(tuple(y.shape))))
            results.append((y.detach(), x.grad, mg.zeros_like(grid) if grid.grad is None else grid.grad))
    finally:
        mg.set_kernels(kernels)
    for found, exact in zip(*results):
        np.testing.assert_allclose(found.numpy(), exact.numpy(), atol=1e-12)


def test_what_is_not_finite_stays_where_it_is_read() -> None:
    x = mg.ones(1, 1, 4, 4)
    x[0, 0, 0, 0] = mg.inf
    found = F.grid_sample(x, mg.tensor([[[[1.0, 1.0], [-1.0, -1.0], [3.0, 3.0]]]]), align_corners=True)
    assert found.flatten().tolist() == [1.0, mg.inf, 0.0]


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("size", [(8, 80), (16, 160), (5, 40)])
def test_resampling_writes_into_nobodys_memory(mode: str, size: tuple[int, int]) -> None:
    """What is picked may be a view of what is given."""
    kernels = mg.get_kernels()
    mg.set_kernels("numpy")
    try:
        a = np.random.default_rng(0).standard_normal((3, 2, 8, 80))
        x = mg.tensor(a, requires_grad=True)
        y = F.interpolate(x[1:], size=size, mode=mode)
        g = np.random.default_rng(1).standard_normal((4, *y.shape[1:]))
        given, beside = mg.tensor(g), mg.zeros_like(y).requires_grad_()
        (y + beside).backward(given[2:])
        assert np.array_equal(given.numpy(), g) and np.array_equal(x.detach().numpy(), a)
        assert np.array_equal(beside.grad.numpy(), g[2:])  # whose adjoint is the same array
        exact = mg.tensor(a, requires_grad=True)
        F.interpolate(exact[1:].clone(), size=size, mode=mode).backward(mg.tensor(g[2:].copy()))
        assert np.array_equal(x.grad.numpy(), exact.grad.numpy())
    finally:
        mg.set_kernels(kernels)


@pytest.mark.parametrize("mode", ["nearest", "linear", "bicubic", "area"])
@pytest.mark.parametrize("old", [1, 2, 3, 7, 100, 101, 300])
def test_positions_that_are_made_of_slices(mode: str, old: int) -> None:
    rng = np.random.default_rng(0)
    found = 0
    for new in (1, 2, 3, 14, 21, 50, 200, 202, 300, 303, 400, 600, 900):
        for align in (False, True):
            given = resample._map(mode, old, new, None, align, False)
            for each in (given, given.transposed):
                if each.weights is not None and each.phases is not None:
                    a = rng.standard_normal((3, each.size))
                    exact = (a[:, each.positions] * each.weights).sum(2)
                    np.testing.assert_allclose(taps.by_phases(a, each, each.weights), exact, atol=1e-12)
                    found += 1
    assert found > 2 or old < 100
