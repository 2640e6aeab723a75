"""What is not finite reaches what depends on it and nothing else: zeros that mean "not there" are not multiplied with it.

A very large number shows what depends on it: there, and only there, are results infinite where it is infinite.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled.compiler import has_numba

NUMBA = pytest.param("numba", marks=pytest.mark.skipif(not has_numba(), reason="needs Numba"))
F = mg.nn.functional
LARGE, VERY_LARGE = 1e20, 1e30


def ones_and(value: float, shape: tuple[int, ...], at: int | None) -> np.ndarray:
    values = np.ones(shape)
    if at is not None:
        values[(at,) * len(shape)] = value
    return values


def results(function: Callable[..., Any], shapes: list[tuple[int, ...]], which: int, at: int, value: float) -> list[Any]:
    """The result and the gradients, where one element of one of the arguments, or of the adjoint, has this value."""
    xs = [mg.tensor(ones_and(value, s, at if k == which else None), requires_grad=True) for k, s in enumerate(shapes)]
    out = function(*xs)
    out.backward(mg.tensor(ones_and(value, out.shape, at if which == len(shapes) else None)))
    return [out.detach().numpy(), *(x.grad.numpy() for x in xs)]


def check(kernels: str, function: Callable[..., Any], shapes: list[tuple[int, ...]], which: int, at: int) -> None:
    mg.set_kernels(kernels)
    for large, found in zip(results(function, shapes, which, at, VERY_LARGE),
                            results(function, shapes, which, at, np.inf), strict=True):
        np.testing.assert_allclose(found, np.where(large > LARGE, np.inf, large), 1e-12)


CONVOLUTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "stride": (lambda x, w: F.conv2d(x, w, stride=2), [(4, 2, 16, 16), (4, 2, 3, 3)]),
    "padding": (lambda x, w: F.conv2d(x, w, padding=1), [(4, 2, 17, 17), (4, 2, 3, 3)]),
    "far outside": (lambda x, w: F.conv2d(x, w, padding=4, stride=3), [(4, 2, 9, 17), (4, 2, 3, 3)]),
    "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=4), [(5, 4, 9, 9), (4, 1, 3, 3)]),
    "dilation": (lambda x, w: F.conv1d(x, w, padding=2, dilation=2), [(3, 4, 200), (4, 4, 3)]),
    "volume": (lambda x, w: F.conv3d(x, w, padding=1), [(2, 2, 5, 6, 7), (4, 2, 3, 3, 3)]),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w, padding=1), [(2, 4, 9, 9), (4, 2, 3, 3)]),
    "transposed, stride": (lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
                           [(2, 4, 9, 9), (4, 2, 3, 3)])}


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["image", "weight", "adjoint"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, which: int, kernels: str) -> None:
    for at in (0, -1):
        check(kernels, *CONVOLUTIONS[name], which, at)


RESAMPLED: dict[str, Callable[..., Any]] = {
    "means": lambda x: F.adaptive_avg_pool2d(x, (7, 9)), "means of rows": lambda x: F.adaptive_avg_pool2d(x, (16, 9)),
    "area": lambda x: F.interpolate(x, (6, 40), mode="area"), "larger": lambda x: F.adaptive_avg_pool2d(x, (21, 40)),
    "linear": lambda x: F.interpolate(x, (21, 41), mode="bilinear", align_corners=False)}


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
@pytest.mark.parametrize("which", [0, 1], ids=["image", "adjoint"])
@pytest.mark.parametrize("name", RESAMPLED)
def test_resampling(name: str, which: int, kernels: str) -> None:
    for at in (0, -1):
        check(kernels, RESAMPLED[name], [(3, 2, 16, 60)], which, at)


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_filters_end_where_their_images_end(mode: str, kernels: str) -> None:
    mg.set_kernels(kernels)
    x = mg.ones(3, 2, 40, 60)
    x[:, :, 0, 0] = np.inf
    found = F.interpolate(x, (17, 23), mode=mode, antialias=True).numpy()
    assert not np.isnan(found).any() and np.isinf(found[:, :, 0, 0]).all()
    np.testing.assert_allclose(found[:, :, 6:, 8:], 1, 1e-5)


# ------------------------------------------------------------------------------------------------- reading at coordinates

def sampled(mode: str, x: Any, shift: float) -> Any:
    """Read at points of which half are outside; the first and the last pixel are next to some of these."""
    rows, columns = np.linspace(-1.5, 1.5, 61), np.linspace(-1.5 + shift, 1.5 + shift, 67)
    grid = np.stack(np.broadcast_arrays(columns, rows[:, None]), -1)[None].repeat(3, 0)
    return F.grid_sample(x, mg.tensor(grid), mode=mode, align_corners=False)


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
@pytest.mark.parametrize("which", [0, 1], ids=["image", "adjoint"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_pixels_that_are_not_there(mode: str, which: int, kernels: str) -> None:
    for at in (0, -1):
        check(kernels, lambda x: sampled(mode, x, 0.01), [(3, 2, 32, 40)], which, at)


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
def test_points_far_outside(kernels: str) -> None:
    mg.set_kernels(kernels)
    x = mg.ones(2, 3, 32, 32)
    x[..., 0, 0] = np.nan
    x[..., -1, -1] = -np.inf
    for mode in ("bilinear", "nearest", "bicubic"):
        for far in (-5.0, 5.0):
            image, grid = x.clone().requires_grad_(), mg.full((2, 20, 20, 2), far, requires_grad=True)
            out = F.grid_sample(image, grid, mode=mode, align_corners=False)
            out.backward(mg.full_like(out, np.inf))
            assert not out.any() and not image.grad.any()
            assert grid.grad is None or not grid.grad.any()


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
def test_points_that_are_nan_reach_no_pixel(kernels: str) -> None:
    mg.set_kernels(kernels)
    image, grid = mg.ones(2, 3, 32, 32, requires_grad=True), mg.full((2, 20, 20, 2), np.nan)
    out = F.grid_sample(image, grid, align_corners=False)
    out.backward(mg.ones_like(out))
    assert out.isnan().all() and not image.grad.any()
