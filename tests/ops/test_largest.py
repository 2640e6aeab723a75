"""The largest of windows by NumPy alone: the values without a gradient, and where they lie among equal ones and nans."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import mutagrad as mg

F = mg.nn.functional


@pytest.fixture(autouse=True)
def numpy_alone() -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels("numpy")
    yield
    mg.set_kernels(before)


def windows(n: int, out: int) -> list[slice]:
    return [slice(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def first_largest(image: np.ndarray, spans: tuple[slice, ...]) -> int:
    """The place in the flat image: of several the first, of nans the last."""
    best: tuple[float, int] | None = None
    for at in product(*(range(s.start, s.stop) for s in spans)):
        place, value = int(np.ravel_multi_index(at, image.shape)), image[at]
        if best is None or value != value or value > best[0]:
            best = value, place
    assert best is not None
    return best[1]


@pytest.mark.parametrize("size", [(11,), (9, 13), (5, 6, 7)])
@pytest.mark.parametrize("values", ["distinct", "few", "nans", "lowest"])
def test_windows_of_nearly_equal_size(size: tuple[int, ...], values: str) -> None:
    rng = np.random.default_rng(len(size))
    a = rng.standard_normal((2, 3, *size)).astype(np.float32)
    if values == "few":
        a = np.round(a)
    if values == "nans":
        a[rng.random(a.shape) < 0.05] = np.nan
    if values == "lowest":
        a[rng.random(a.shape) < 0.8] = -np.inf
    out = tuple(n // 2 for n in size)
    name = f"adaptive_max_pool{len(size)}d"
    best, where = getattr(F, name)(mg.tensor(a), out, return_indices=True)
    exact = np.array([[[first_largest(image, spans) for spans in product(*map(windows, size, out))] for image in sample] for sample in a])
    np.testing.assert_array_equal(where.numpy().reshape(exact.shape), exact)
    taken = np.take_along_axis(a.reshape(2, 3, -1), exact, 2).reshape(best.shape)
    np.testing.assert_array_equal(best.numpy(), taken)
    np.testing.assert_array_equal(getattr(F, name)(mg.tensor(a), out).numpy(), taken)


@pytest.mark.parametrize("settings", [{}, {"stride": 1}, {"padding": 1}, {"dilation": 2, "stride": 3}, {"stride": 3, "ceil_mode": True, "padding": 1}])
@pytest.mark.parametrize("kernel", [1, 2, 3, (1, 2), (3, 1)])
@pytest.mark.parametrize("last", [False, True])
def test_without_a_gradient_the_same_is_found(settings: dict[str, int], kernel: int | tuple[int, int], last: bool) -> None:
    if settings.get("padding") and min(kernel if isinstance(kernel, tuple) else (kernel,)) == 1:
        pytest.skip("the border would be as wide as the window")
    rng = np.random.default_rng(3)
    a = rng.standard_normal((2, 40, 11, 13)).astype(np.float32)
    a[rng.random(a.shape) < 0.02] = np.nan
    x = mg.tensor(a)
    x = x.to(memory_format=mg.channels_last) if last else x
    alone = F.max_pool2d(x, kernel, **settings)
    recorded = F.max_pool2d(x.clone().requires_grad_(), kernel, **settings)
    np.testing.assert_array_equal(alone.numpy(), recorded.detach().numpy())
    assert alone.stride() == recorded.stride() and not np.shares_memory(alone._array, x._array)
    exact, where = F.max_pool2d(x, kernel, return_indices=True, **settings)
    np.testing.assert_array_equal(alone.numpy(), exact.numpy())
    flat = np.ascontiguousarray(a).reshape(2, 40, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, where.numpy().reshape(2, 40, -1), 2), exact.numpy().reshape(2, 40, -1))
