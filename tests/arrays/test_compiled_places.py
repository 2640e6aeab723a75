"""Compiled kernels for running sums and for indexing: as NumPy's, whatever the values, shapes and duplicates."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


@pytest.fixture(autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MUTAGRAD_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
    before = mg.get_kernels()
    yield
    mg.set_kernels(before)


def as_tuple(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def results(kernels: str, function: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """All results, and gradients by the arrays that are floats."""
    mg.set_kernels(kernels)
    xs = [mg.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    found = as_tuple(function(*xs))
    rng = np.random.default_rng(1)
    for one in found:
        if one.requires_grad:
            one.backward(mg.tensor(rng.standard_normal(one.shape).astype(one.detach().numpy().dtype)), retain_graph=True)
    return [f.detach().numpy() for f in found] + [x.grad.numpy() for x in xs if x.grad is not None]


def check(function: Callable[..., Any], *arrays: np.ndarray, uses: str = "", tolerance: float = 2e-5) -> None:
    """The same by NumPy's kernels and by compiled ones; `uses`: a kernel that has to be among those."""
    expected = results("numpy", function, arrays)
    found = results("numba", function, arrays)
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind in "ib":
            np.testing.assert_array_equal(b, a)
        else:
            scale = np.abs(a[np.isfinite(a)]).max(initial=0)
            np.testing.assert_allclose(b, a, tolerance, tolerance * float(scale))
    assert all(kernel.error is None for kernel in compiler.ALL)
    assert any(kernel.is_made() and kernel.name.endswith(uses) for kernel in compiler.ALL)


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * (1 if dtype.startswith("f") else 50)).astype(dtype)


# ------------------------------------------------------------------------------------------------------------- running

SHAPES = [((70, 301), 1), ((301, 70), 0), ((7, 33, 301), 1), ((5, 7, 900), 0), ((5, 7, 900), 2), ((70_001,), 0), ((9000, 1), 0), ((1, 9000), 0),
          ((3000, 3), 0)]
RUNNING = {"cumsum": ("along", lambda x, d: x.cumsum(d)), "cumprod": ("along", lambda x, d: (x / 50 + 1).cumprod(d)),
           "cummax": ("extreme_along", lambda x, d: x.cummax(d)), "cummin": ("extreme_along", lambda x, d: x.cummin(d)),
           "diff": ("differences", lambda x, d: mg.diff(x, dim=d))}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", RUNNING)
def test_running(name: str, dtype: str) -> None:
    kernel, function = RUNNING[name]
    for shape, dim in SHAPES:
        down = np.prod(shape[dim + 1:]) > 1 and name != "diff"
        uses = kernel.replace("along", "down") if down else kernel
        if name == "cumprod" and dtype == "int64":
            check(lambda x, d=dim: x.cumprod(d), numbers(shape, dtype) % 3 - 1, uses=f"int64: {uses}")
        elif not (name == "diff" and shape[dim] == 1):
            check(lambda x, d=dim: function(x, d), numbers(shape, dtype), uses=f"{dtype}: {uses}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logcumsumexp(dtype: str) -> None:
    for shape, dim in SHAPES:
        check(lambda x, d=dim: mg.logcumsumexp(x, d), numbers(shape, dtype), uses=f"{dtype}: log_sum_exp", tolerance=2e-4)


@pytest.mark.parametrize("name", [*RUNNING, "logcumsumexp"])
def test_running_over_what_is_not_finite(name: str) -> None:
    x = numbers((40, 300))
    x[3, 7], x[4, 8], x[5, 9], x[6, 3], x[6, 200] = np.nan, np.inf, -np.inf, np.inf, -np.inf
    x[7, 5:9], x[8, :3], x[9, ::7], x[10] = 1e30, -np.inf, np.nan, -np.inf
    x[11, 0], x[12, 0], x[12, 5], x[13, 100] = -1e4, -np.inf, np.inf, 1e5
    functions = {**{k: v[1] for k, v in RUNNING.items()}, "logcumsumexp": lambda x, d: mg.logcumsumexp(x, d)}
    for dim in (0, 1):
        expected, found = ([f.numpy() for f in as_tuple(each)] for each in _both(lambda: functions[name](mg.tensor(x), dim)))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(b, a, 2e-5, 1e-5)


def _both(function: Callable[[], Any]) -> list[Any]:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(function())
    return found


def test_running_of_equal_elements() -> None:
    """The latest of equal ones, and of nans."""
    x = np.tile(np.array([1, 1, 0, 2, 2, np.nan, 3, np.nan], np.float32), (100, 100))
    for dim in (0, 1):
        check(lambda x, d=dim: x.cummax(d).indices, x)
        check(lambda x, d=dim: x.cummin(d).indices, -x)


def test_running_of_other_layouts_and_types() -> None:
    for layout in (lambda x: x.T, lambda x: x[::2, ::3], lambda x: x.flip(0).T[1:], lambda x: x.expand(3, *x.shape), lambda x: x[:, None]):
        check(lambda x: (layout(x).cumsum(0), layout(x).cumsum(-1), layout(x).cummax(0).values, mg.diff(layout(x), dim=0) + 1), numbers((201, 150)))
    for dtype in ("int32", "float16", "uint8", "bool"):
        check(lambda x: (x.cumsum(1), x.cummax(1).indices), (numbers((100, 120)) > 0).astype(dtype))


def test_second_derivatives_of_running_sums() -> None:
    def twice(x: Any) -> Any:
        y = (x * x).cumsum(1) * mg.diff(x, dim=1, prepend=x[:, :1]) + x.cummax(1).values
        first, = mg.autograd.grad((y * y).sum(), x, create_graph=True)
        return mg.autograd.grad((first * first.detach()).sum(), x)[0]

    check(twice, numbers((70, 80), "float64"), uses="float64: along")


def test_trapezoid_of_what_is_not_finite() -> None:
    y = mg.tensor([[1.0, 2.0, float("inf")], [1.0, 2.0, 4.0]])
    assert mg.trapezoid(y).tolist() == [float("inf"), 4.5]
    assert mg.trapezoid(y[:, :1]).tolist() == [0.0, 0.0]
    assert mg.trapezoid(mg.tensor([1, 2, 4]), dx=2).tolist() == 9.0
