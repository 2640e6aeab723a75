"""Pooling whose windows are drawn at random, and what pooling does at its edges."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from tools import same

F = mg.nn.functional


@pytest.mark.parametrize(("pool", "n"), [("fractional_max_pool2d", 2), ("fractional_max_pool3d", 3)])
def test_fractional_windows_cover_the_image_and_hold_their_largest(pool: str, n: int) -> None:
    x = mg.randn(2, 3, *(7, 9, 8)[:n], dtype=mg.float64, requires_grad=True)
    values, at = getattr(F, pool + "_with_indices")(x, 3, output_size=4)
    assert values.shape == at.shape == (2, 3, *(4,) * n)
    assert mg.equal(x.flatten(2).gather(2, at.flatten(2)), values.flatten(2))
    values.sum().backward()
    assert x.grad is not None and float(x.grad.sum()) == values.numel()
    assert float(values.max()) == float(x.max()) or values.numel() < 64  # nothing is skipped where windows overlap


@pytest.mark.parametrize("pool", ["fractional_max_pool2d", "fractional_max_pool3d"])
def test_fractional_windows_follow_their_samples(pool: str) -> None:
    n = int(pool[-2])
    x, samples = mg.randn(1, 2, *(9,) * n), mg.full((1, 2, n), 0.4)
    first = getattr(F, pool)(x, 2, output_ratio=(0.5,) * n, _random_samples=samples)
    assert mg.equal(first, getattr(F, pool)(x, 2, output_ratio=(0.5,) * n, _random_samples=samples))
    starts = [int((i + 0.4) * 7 / 3) - int(0.4 * 7 / 3) for i in range(3)] + [7]
    expected: Any = x.numpy()
    for d in range(n):
        expected = np.stack([expected.take(range(s, s + 2), d + 2).max(d + 2) for s in starts], d + 2)
    assert np.array_equal(first.numpy(), expected)


def test_of_nans_the_last_is_the_largest() -> None:
    values, at = F.max_pool1d(mg.tensor([[1.0, float("nan"), 5.0, float("nan"), 2.0, 3.0]]), 3, return_indices=True)
    assert np.isnan(values.numpy()).tolist() == [[True, True]]
    assert at.tolist() == [[1, 3]]


def test_the_border_is_never_the_largest() -> None:
    x = mg.full((1, 1, 4), -1e30, requires_grad=True)
    values, at = F.max_pool1d(x, 3, 1, 1, return_indices=True)
    assert values.tolist() == [[[-np.float32(1e30)] * 4]]
    assert at.tolist() == [[[0, 0, 1, 2]]]
    values.sum().backward()
    assert x.grad.tolist() == [[[2.0, 1.0, 1.0, 0.0]]]


def test_bad_arguments_say_what_would_fit() -> None:
    x = mg.ones(1, 1, 4, 4)
    for call, words in (
            (lambda: F.max_pool2d(x, 5), r"\(5, 5\).*\(4, 4\)"), (lambda: F.max_pool2d(x, 0), "greater than zero"),
            (lambda: F.avg_pool2d(x, 2, padding=2), "padding"), (lambda: F.avg_pool2d(x, 2, divisor_override=0), "zero"),
            (lambda: F.max_pool2d(x[0, 0], 2), r"\(4, 4\)"), (lambda: F.max_unpool2d(x, x.long() + 99, 2), "99|100")):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(TypeError, match="tensor"):
        F.max_pool2d([[1.0]], 2)
    with pytest.raises(TypeError, match="kernel_size"):
        F.max_pool2d(x, 2.5)


# --------------------------------------------------------------------------------------------------------- channels last

KEEPING: dict[str, Any] = {
    "max": lambda x: F.max_pool2d(x, 2), "average": lambda x: F.avg_pool2d(x, 2), "one": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 3), "largest": lambda x: F.adaptive_max_pool2d(x, 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2), "cubic": lambda x: F.interpolate(x, size=5, mode="bicubic"),
    "batch": lambda x: F.batch_norm(x, None, None, training=True), "group": lambda x: F.group_norm(x, 3),
    "border": lambda x: F.max_pool2d(x, 3, stride=2, padding=1), "counts": lambda x: F.avg_pool2d(x, (3, 2), 2, 1, False, False),
    "ceil": lambda x: F.max_pool2d(x, 3, stride=2, dilation=2, ceil_mode=True), "pad": lambda x: F.pad(x, (1, -2, 0, 3), value=2.0),
    "mirrored": lambda x: F.pad(x, (2, 1, 3, 1), mode="reflect"), "turned": lambda x: x.flip(3, 1),
    "joined": lambda x: mg.cat([x, x * 2], 1), "joined rows": lambda x: mg.cat([x, x[:, :, :2]], 2)}


@pytest.mark.parametrize("channels", [3, 12])
@pytest.mark.parametrize("name", KEEPING)
def test_channels_that_are_last_stay_last(name: str, channels: int) -> None:
    rows = mg.tensor(np.random.default_rng(0).normal(size=(2, channels, 6, 8)), requires_grad=True)
    x = rows.contiguous(memory_format=mg.channels_last)
    found, plain = KEEPING[name](x), KEEPING[name](rows)
    assert found.is_contiguous(memory_format=mg.channels_last) and plain.is_contiguous()
    same(found.detach(), plain.detach())
    got, = mg.autograd.grad((found * found).sum(), rows)
    same(got, mg.autograd.grad((plain * plain).sum(), rows)[0])


@pytest.mark.parametrize("channels", [2, 20])
def test_places_of_the_largest_have_the_same_format(channels: int) -> None:
    rows = mg.rand(1, channels, 4, 4)
    rows[0, 1, 2] = float("nan")
    x = rows.contiguous(memory_format=mg.channels_last)
    for pool in (F.max_pool2d, F.adaptive_max_pool2d):
        for found, plain in zip(pool(x, 2, return_indices=True), pool(rows, 2, return_indices=True)):
            assert found.is_contiguous(memory_format=mg.channels_last) and mg.allclose(found, plain, equal_nan=True)
    volume = mg.rand(1, 2, 4, 4, 4).contiguous(memory_format=mg.channels_last_3d)
    assert F.max_pool3d(volume, 2).is_contiguous(memory_format=mg.channels_last_3d)


# ---------------------------------------------------------------------------------------------------------------- resampling

def test_lanczos_is_a_filter() -> None:
    x = mg.eye(12, dtype=mg.float64)[None, :, None, :].requires_grad_()
    rows = F.interpolate(x, size=(1, 5), mode="lanczos", antialias=True)[0, :, 0].T
    same(rows.sum(1), np.ones(5))
    same(rows[0, :4], [0.3782, 0.4311, 0.2449, 0.0162], 1e-4)  # as PyTorch 2.13
    same(mg.autograd.grad(rows[0, 1], x)[0][0, 1, 0, :2], rows[0, :2].detach())
    for wrong in ({}, {"antialias": True, "align_corners": True}):
        with pytest.raises(ValueError, match="lanczos"):
            F.interpolate(x, size=(1, 5), mode="lanczos", **wrong)


def test_the_default_of_align_corners_warns() -> None:
    image, theta = mg.ones(1, 1, 2, 2), mg.ones(1, 2, 3)
    for call in (lambda **s: F.grid_sample(image, mg.zeros(1, 1, 1, 2), **s), lambda **s: F.affine_grid(theta, (1, 1, 2, 2), **s)):
        with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior"):
            default = call()
        same(default, call(align_corners=False))  # no warning
