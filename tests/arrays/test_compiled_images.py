"""Images by compiled loops: convolution, pooling, other sizes; all as NumPy's kernels have it."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler
from mutagrad.nn import functional as F

needs_numba = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def run(kernels: str, function: Any, arrays: list[Any]) -> list[Any]:
    """The value and gradients."""
    mg.set_kernels(kernels)
    xs = [mg.tensor(a, requires_grad=True) for a in arrays]
    result = function(*xs)
    slopes = np.cos(np.arange(result.numel())).reshape(result.shape).astype(arrays[0].dtype)
    result.backward(mg.tensor(slopes))
    return [result.detach().numpy(), *[x.grad.numpy() for x in xs]]


def last(x: Any) -> Any:
    """Images with many channels, which lie last."""
    return x.tile(1, 3, 1, 1).contiguous(memory_format=mg.channels_last)


def compare(function: Any, shapes: tuple[tuple[int, ...], ...], dtype: str = "float32", uses: str = "") -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    expected, found = (run(kernels, function, arrays) for kernels in ("numpy", "numba"))
    for name in uses.split():
        assert any(kernel.is_made() and kernel.name == f"{dtype}: {name}" for kernel in compiler.ALL), name
    for a, b in zip(expected, found, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b, a, TOLERANCE[dtype], TOLERANCE[dtype] * float(np.abs(a).max(initial=1)))


CONVOLUTIONS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "3 x 3": (lambda x, w, b: F.conv2d(x, w, b, padding=1), ((5, 6, 19, 21), (13, 6, 3, 3), (13,))),
    "one channel": (lambda x, w, b: F.conv2d(x, w, b, padding=1), ((9, 1, 28, 28), (16, 1, 3, 3), (16,))),
    "one sample": (lambda x, w, b: F.conv2d(x, w, b, padding=1), ((1, 9, 33, 32), (12, 9, 3, 3), (12,))),
    "small images": (lambda x, w: F.conv2d(x, w, padding=1), ((33, 24, 3, 3), (35, 24, 3, 3))),
    "many weights": (lambda x, w: F.conv2d(x, w, padding=1), ((5, 64, 4, 4), (65, 64, 3, 3))),
    "stride": (lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=2), ((4, 5, 19, 21), (9, 5, 3, 3), (9,))),
    "7 x 7": (lambda x, w: F.conv2d(x, w, padding=3, stride=2), ((4, 3, 33, 32), (16, 3, 7, 7))),
    "1 x 1": (lambda x, w: F.conv2d(x, w), ((4, 16, 15, 14), (7, 16, 1, 1))),
    "1 x 1 with stride": (lambda x, w: F.conv2d(x, w, stride=3), ((4, 5, 33, 32), (16, 5, 1, 1))),
    "dilation": (lambda x, w: F.conv2d(x, w, stride=(2, 3), dilation=(3, 2), padding=(2, 1)),
                 ((4, 3, 33, 32), (16, 3, 3, 2))),
    "large border": (lambda x, w: F.conv2d(x, w, padding=4), ((3, 4, 9, 7), (11, 4, 2, 3))),
    "each channel": (lambda x, w, b: F.conv2d(x, w, b, groups=7, padding=1), ((4, 7, 23, 22), (7, 1, 3, 3), (7,))),
    "groups": (lambda x, w, b: F.conv2d(x, w, b, groups=3, padding=1), ((1, 9, 33, 32), (12, 3, 3, 3), (12,))),
    "1 dimension": (lambda x, w, b: F.conv1d(x, w, b, padding=2), ((5, 9, 1133), (12, 9, 5), (12,))),
    "3 dimensions": (lambda x, w: F.conv3d(x, w, padding=1), ((2, 3, 8, 9, 10), (6, 3, 3, 3, 3))),
    "3 strides": (lambda x, w: F.conv3d(x, w, padding=(1, 0, 2), stride=(1, 2, 3)), ((2, 3, 8, 9, 10), (6, 3, 3, 2, 4))),
    "transposed": (lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1), ((3, 5, 8, 9), (5, 6, 4, 4), (6,))),
    "transposed, more": (lambda x, w, b: F.conv_transpose2d(x, w, b, stride=3, padding=1, output_padding=2, dilation=2),
                         ((3, 5, 18, 9), (5, 6, 3, 2), (6,))),
    "transposed with gaps": (lambda x, w, b: F.conv_transpose2d(x, w, b, stride=4), ((3, 5, 18, 9), (5, 6, 2, 2), (6,))),
    "transposed groups": (lambda x, w: F.conv_transpose1d(x, w, stride=2, groups=2), ((3, 6, 180), (6, 6, 5))),
    "strided input": (lambda x, w: F.conv2d(x.transpose(2, 3)[:, ::2], w.flip(2)), ((4, 6, 19, 21), (13, 3, 3, 3))),
}


@needs_numba
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, dtype: str) -> None:
    compare(*CONVOLUTIONS[name], dtype, "correlate correlate_weights")


@needs_numba
def test_what_a_window_does_not_see_does_not_reach_it() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6, 19, 21)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((8, 6, 3, 3)).astype(np.float32)
    x[1, 2, 18, 20], x[2, 0, 0, 0], x[3, 5, 7, 20] = np.nan, np.inf, -np.inf
    for settings in ({"padding": 1}, {"stride": 2}, {"padding": 2, "stride": 3}):
        found = []
        for kernels in ("numpy", "numba"):
            mg.set_kernels(kernels)
            found.append(F.conv2d(mg.tensor(x), mg.tensor(w), **settings).numpy())
        np.testing.assert_allclose(found[1], found[0], 1e-4, 1e-4)


@needs_numba
def test_the_same_bits_again() -> None:
    mg.set_kernels("numba")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((9, 16, 30, 30), (24, 16, 3, 3), (24,))]
    first, second = (run("numba", lambda x, w, b: F.conv2d(x, w, b, padding=1), arrays) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second))


SIZES: dict[str, tuple[Any, tuple[tuple[int, ...], ...], str]] = {
    "constant": (lambda x: F.pad(x, (1, 2, 3, 0), value=1.5), ((5, 6, 19, 21),), "surround"),
    "constant, cut off": (lambda x: F.pad(x, (-1, 2, 3, -4)), ((5, 6, 19, 21),), "surround"),
    "constant, all cut off": (lambda x: F.pad(x, (-30, 2, 3, -4)), ((5, 6, 19, 30),), "surround"),
    "constant, 4 dimensions": (lambda x: F.pad(x, (1, 0, 0, 1, 2, 2, 1, 0)), ((5, 6, 19, 21),), ""),
    "constant, 1 dimension": (lambda x: F.pad(x, (3, 5)), ((5001,),), "surround"),
    "reflect": (lambda x: F.pad(x, (3, 2, 1, 4), mode="reflect"), ((5, 6, 19, 21),), "pick"),
    "replicate": (lambda x: F.pad(x, (3, 2, 1, 4, 0, 2), mode="replicate"), ((2, 5, 6, 19, 21),), "pick"),
    "circular": (lambda x: F.pad(x, (3, 2), mode="circular"), ((50, 219),), "pick"),
    "nearest": (lambda x: F.interpolate(x, scale_factor=(2, 3)), ((5, 6, 19, 21),), "pick weigh"),
    "nearest, smaller": (lambda x: F.interpolate(x, size=(7, 8)), ((5, 6, 19, 21),), "pick weigh"),
    "linear": (lambda x: F.interpolate(x, scale_factor=2, mode="linear"), ((5, 6, 191),), "weigh_two weigh"),
    "bilinear": (lambda x: F.interpolate(x, size=(31, 20), mode="bilinear"), ((5, 6, 19, 21),), "weigh_two weigh"),
    "trilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear", align_corners=True),
                  ((2, 3, 9, 10, 11),), "weigh_two weigh"),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"), ((5, 6, 19, 21),), "weigh"),
    "bicubic, channels last": (lambda x: F.interpolate(x.permute(0, 3, 1, 2), scale_factor=1.7, mode="bicubic"),
                               ((5, 19, 21, 12),), "weigh"),
    "nearest, channels last": (lambda x: F.interpolate(x.permute(0, 3, 1, 2), scale_factor=2), ((5, 19, 21, 12),), "pick weigh"),
    "constant, channels last": (lambda x: F.pad(x.permute(0, 3, 1, 2), (1, 2, 3, 0), value=1.5), ((5, 19, 21, 12),), "surround"),
    "antialias": (lambda x: F.interpolate(x, size=(7, 8), mode="bilinear", antialias=True), ((5, 6, 19, 21),), "weigh"),
    "adaptive_avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 7), ((5, 6, 19, 21),), "weigh"),
}


@needs_numba
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", SIZES)
def test_other_sizes(name: str, dtype: str) -> None:
    function, shapes, uses = SIZES[name]
    compare(function, shapes, dtype, uses)


POOLS: dict[str, tuple[Any, tuple[tuple[int, ...], ...], str]] = {
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), ((5, 6, 49, 51),), "largest put_back"),
    "max_pool2d, overlapping": (lambda x: F.max_pool2d(x, 3, 2, 1), ((5, 6, 49, 51),), "largest put_back"),
    "max_pool2d, each place": (lambda x: F.max_pool2d(x, (2, 4), 1, (1, 2)), ((5, 6, 49, 51),), "largest put_back"),
    "max_pool2d, ceil": (lambda x: F.max_pool2d(x, 3, (2, 4), 1, ceil_mode=True), ((5, 6, 49, 51),), "largest put_back"),
    "max_pool2d, dilation": (lambda x: F.max_pool2d(x, 3, 2, 1, 2), ((5, 6, 49, 51),), "put_back"),
    "max_pool1d": (lambda x: F.max_pool1d(x, 4), ((50, 6, 191),), "largest put_back"),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), ((9, 3, 18, 19, 11),), "largest put_back"),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (4, 9)), ((5, 6, 49, 51),), "largest_between"),
    "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, 3), ((9, 3, 18, 19, 11),), "largest_between"),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 5), ((50, 6, 191),), "largest_between"),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), ((5, 6, 49, 51),), "averages shares"),
    "avg_pool2d, overlapping": (lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), ((5, 6, 49, 51),), "averages shares"),
    "avg_pool2d, ceil": (lambda x: F.avg_pool2d(x, 3, (2, 4), 1, True), ((5, 6, 49, 51),), "averages shares"),
    "avg_pool2d, divisor": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), ((5, 6, 49, 51),), "averages shares"),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 4), ((50, 6, 191),), "averages shares"),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, padding=1), ((9, 3, 18, 19, 11),), "averages shares"),
    "max_pool2d, channels last": (lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1), ((5, 19, 21, 12),), "largest put_back"),
    "avg_pool2d, channels last": (lambda x: F.avg_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1, count_include_pad=False),
                                  ((5, 19, 21, 12),), "averages shares"),
}


@needs_numba
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str, dtype: str) -> None:
    function, shapes, uses = POOLS[name]
    compare(function, shapes, dtype, uses)


@needs_numba
@pytest.mark.parametrize("pool", [lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
                                  lambda x: F.max_pool2d(x, 2, ceil_mode=True, return_indices=True),
                                  lambda x: F.max_pool2d(last(x), 3, 2, 1, return_indices=True),
                                  lambda x: [F.max_pool2d(last(x), 2)],
                                  lambda x: F.adaptive_max_pool2d(x, 5, return_indices=True)])
def test_the_largest_of_equal_ones_and_of_such_as_are_not_finite(pool: Any) -> None:
    x = np.random.default_rng(0).integers(-2, 3, (5, 6, 19, 21)).astype(np.float32)
    x[0, 0], x[1, 1, :4], x[2, 2, 3:5, 3:9], x[3, 3, 0, 0], x[4] = -np.inf, np.nan, np.nan, np.inf, 1
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append([t.numpy() for t in pool(mg.tensor(x))])
    for a, b in zip(*found):
        np.testing.assert_array_equal(b, a)


def grid_of(size: tuple[int, ...], dtype: str) -> Any:
    """Coordinates inside and outside, between pixels."""
    return np.random.default_rng(3).uniform(-1.7, 1.7, (*size, 2)).astype(dtype)


@needs_numba
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_reading_at_coordinates(mode: str, border: str, align: bool, dtype: str) -> None:
    arrays = [np.random.default_rng(0).standard_normal((5, 3, 19, 21)).astype(dtype), grid_of((5, 14, 13), dtype)]
    call = lambda x, at: F.grid_sample(x, at, mode, border, align) + 0 * at.sum()
    expected, found = (run(kernels, call, arrays) for kernels in ("numpy", "numba"))
    assert any(kernel.is_made() and kernel.name == f"{dtype}: sample_back" for kernel in compiler.ALL)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, 10 * TOLERANCE[dtype], 10 * TOLERANCE[dtype] * float(np.abs(a).max()))


@needs_numba
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -1e30, 1.0, -1.0])
def test_coordinates_at_the_edge(border: str, value: float) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 31, 33)).astype(np.float32)
    at = grid_of((2, 5, 4), "float32")
    at[0, 0, 0, 0] = at[1, 2, 1, 1] = value
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(F.grid_sample(mg.tensor(x), mg.tensor(at), padding_mode=border, align_corners=False).numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-4, 1e-4)


@needs_numba
def test_reading_at_coordinates_twice_differentiable() -> None:
    mg.set_kernels("numba")
    x = mg.tensor(np.random.default_rng(0).standard_normal((2, 2, 32, 33)), requires_grad=True)
    at = mg.tensor(grid_of((2, 2, 2), "float64") / 2, requires_grad=True)
    results = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        y = F.grid_sample(x, at, align_corners=False)
        first = mg.autograd.grad((y * y * y).sum(), (x, at), create_graph=True)
        second = mg.autograd.grad(sum((g * g).sum() for g in first), (x, at))
        results.append([g.detach().numpy() for g in (*first, *second)])
    for a, b in zip(*results):
        np.testing.assert_allclose(b, a, 1e-9, 1e-9)


@needs_numba
@pytest.mark.parametrize("call", [lambda x, w, at: F.conv2d(x, w, padding=1), lambda x, w, at: F.conv_transpose2d(x, w.transpose(0, 1)),
                                  lambda x, w, at: F.max_pool2d(x, 2), lambda x, w, at: F.pad(x, (1, 1)),
                                  lambda x, w, at: F.grid_sample(x, at, align_corners=False),
                                  lambda x, w, at: F.interpolate(x, scale_factor=2, mode="bilinear")])
def test_memory_that_cannot_be_written(call: Any) -> None:
    arrays = [np.ones((5, 3, 19, 21), np.float32), np.ones((4, 3, 3, 3), np.float32), grid_of((5, 14, 13), "float32")]
    for a in arrays:
        a.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, w, at = map(mg.from_numpy, arrays)
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(call(x, w, at).numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-5)
