"""Compiled kernels for running sums and for indexing: as NumPy's, whatever the values, shapes and duplicates."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


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


# ------------------------------------------------------------------------------------------------------------ positions

def positions(shape: tuple[int, ...], n: int, seed: int = 3) -> Any:
    return mg.tensor(np.random.default_rng(seed).integers(0, n, shape))


DTYPES = ["float32", "float64", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((300, 260), 0), ((300, 260), 1), ((7, 90, 130), 0), ((7, 90, 130), 1), ((7, 90, 130), 2), ((90_001,), 0)])
def test_gather_and_scatter(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    wanted = tuple(n + 3 if d == dim else n for d, n in enumerate(shape))
    index = positions(wanted, shape[dim])
    x, more = numbers(shape, dtype), numbers(wanted, dtype, 5)
    check(lambda x: x.gather(dim, index), x, uses="take_beside" if dim == len(shape) - 1 else "int64: beside")
    check(lambda x, y: x.scatter_add(dim, index, y), x, more, uses=f"{dtype}: add")
    check(lambda x, y: x.scatter(dim, index, y), x, more, uses="put")
    check(lambda x: x.scatter(dim, index, 2), x)
    for kind in ("sum", "mean", "amax", "amin", "prod"):
        if kind == "prod" and dtype == "int64":
            more = more % 3 - 1
        for own in (True, False):
            check(lambda x, y: x.scatter_reduce(dim, index, y, kind, include_self=own), x, more, tolerance=2e-3 if kind == "prod" else 2e-5)


@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "float16", "bool", "complex64"])
def test_reading_and_writing_by_index(dtype: str) -> None:
    x = numbers((300, 210), "float32").astype(dtype) if dtype != "bool" else numbers((300, 210)) > 0
    i, j, flat = positions((9000,), 300), positions((9000,), 210, 4) - 210, positions((100, 90), 63_000)
    rows, columns = positions((50,), 300), positions((333,), 210)
    mask = mg.tensor(numbers((300, 210)) > 0)

    def written(x: Any) -> Any:
        y = x.clone()
        y[i, j] = x.flatten()[:9000]
        y[rows] = x[:50]
        y[:, columns] = x[:, :1]
        y[mask] = x.flatten()[:int(mask.sum())]
        return y

    check(lambda x: (x[i, j], x.take(flat), x[rows], x[:, columns], x.index_select(1, columns), x[mask], x.T[columns], x[positions((40, 50), 300)],
                     mg.take_along_dim(x, positions((300, 9), 210), 1), x.reshape(30, 10, 210)[:, positions((77,), 10)]), x)
    check(written, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_adding_by_index(dtype: str) -> None:
    x = numbers((300, 210), dtype)
    i, j = positions((9000,), 300), positions((9000,), 210, 4)
    rows, columns = positions((333,), 300), positions((333,), 210)
    check(lambda x, y: x.index_put((i, j), y, accumulate=True), x, numbers((9000,), dtype, 1), uses=f"{dtype}: add")
    check(lambda x, y: x.index_add(0, rows, y), x, numbers((333, 210), dtype, 1), uses=f"{dtype}: add_slices")
    check(lambda x, y: x.index_add(1, columns, y), x, numbers((300, 333), dtype, 1), uses=f"{dtype}: add_columns")
    check(lambda x, y: x.reshape(30, 10, 210).index_add(1, rows % 10, y), x, numbers((30, 333, 210), dtype, 1))
    check(lambda x, y: x[None].index_add(1, rows, y), x, numbers((1, 333, 210), dtype, 1))
    check(lambda x, y: x.reshape(1, -1, 1).index_add(1, i, y), x, numbers((1, 9000, 1), dtype, 1))
    check(lambda x, y: x.index_put((i,), y, accumulate=True), x, numbers((210,), dtype, 1))


def test_positions_out_of_range_are_told_before_anything_is_written() -> None:
    mg.set_kernels("numba")
    x = mg.zeros(100, 90)
    for bad in (90, -1):
        index = mg.zeros(100, 90, dtype=mg.int64)
        index[99, 89] = bad
        for call in (lambda: x.gather(1, index), lambda: x.scatter_add_(1, index, mg.ones(100, 90)), lambda: x.scatter_(1, index, mg.ones(100, 90)),
                     lambda: x.scatter_reduce(1, index, mg.ones(100, 90), "amax")):
            with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension 1 with size 90"):
                call()
    for bad in (100, -101):
        rows = mg.zeros(9000, dtype=mg.int64)
        rows[8999] = bad
        for call in (lambda: x[rows], lambda: x.index_put_((rows, rows * 0), mg.ones(9000)), lambda: x.__setitem__((rows, rows * 0), mg.ones(9000))):
            with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension 0 with size 100"):
                call()
    assert not x.any()


def test_threads_share_what_does_not_meet() -> None:
    """The same bits with any number of threads, whether positions are in order or not; the last write wins."""
    mg.set_kernels("numba")
    before = mg.get_num_threads()
    values = mg.tensor(numbers((900_000,)))
    try:
        for places in (positions((900_000,), 5000), positions((900_000,), 5000).sort().values, mg.arange(900_000) // 2):
            found = []
            for threads in (1, 2, 5):
                mg.set_num_threads(threads)
                x, y, z = mg.zeros(450_000), mg.zeros(450_000), mg.zeros(450_000)
                x.index_add_(0, places, values)
                y[places] = values
                z = z.scatter_reduce(0, places, values, "amax")
                found.append([x.numpy(), y.numpy(), z.numpy()])
            assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
            expected = np.zeros(450_000, np.float32)
            expected[places.numpy()] = values.numpy()
            assert np.array_equal(found[0][1], expected)
    finally:
        mg.set_num_threads(before)


@pytest.mark.parametrize("shape", [(300_000,), (400, 1000), (20, 30, 700)])
def test_threads_share_rows_that_gather_and_scatter_go_along(shape: tuple[int, ...]) -> None:
    """Rows lie apart, and what goes to one place of a row is added in order; all of a vector is one row."""
    mg.set_kernels("numba")
    before = mg.get_num_threads()
    index, weight = positions(shape, shape[-1]), mg.tensor(numbers(shape))
    try:
        found = []
        for threads in (1, 2, 5):
            mg.set_num_threads(threads)
            x = mg.tensor(numbers(shape, seed=2), requires_grad=True)
            y = x.gather(-1, index)
            (y * weight).sum().backward()
            found.append([y.detach().numpy(), x.grad.numpy(), mg.zeros(*shape).scatter_add_(-1, index, weight).numpy()])
        assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
        rows, at = weight.numpy().reshape(-1, shape[-1]), index.numpy().reshape(-1, shape[-1])
        expected = np.stack([np.bincount(p, r, shape[-1]) for p, r in zip(at, rows)]).reshape(shape)
        for sums in found[0][1:]:
            np.testing.assert_allclose(sums, expected, 1e-5, 1e-4)
    finally:
        mg.set_num_threads(before)


def test_scattered_values_that_are_not_finite() -> None:
    x, y = numbers((100, 90)), numbers((100, 90), seed=1)
    x[3], y[4], y[5, ::3], y[6, ::2], x[7, ::2] = np.nan, np.nan, np.nan, np.inf, -np.inf
    index = positions((100, 90), 90)
    for kind in ("sum", "amax", "amin", "prod"):
        expected, found = _both(lambda: mg.tensor(x).scatter_reduce(1, index, mg.tensor(y), kind).numpy())
        np.testing.assert_allclose(found, expected, 1e-4)


@pytest.mark.parametrize("shape", [(9001,), (70, 83), (5, 40, 37), (3, 2, 1500, 1), (1, 6000), (6000, 1), (300, 700)])
def test_where_elements_are_not_zero(shape: tuple[int, ...]) -> None:
    for share in (-9, -0.5, 1.5, 9):
        x = numbers(shape) * (numbers(shape, seed=1) > share)
        mask = mg.tensor(x != 0)
        for kernels in ("numpy", "numba"):
            mg.set_kernels(kernels)
            expected = np.nonzero(x)
            for found in (mg.where(mask), mg.tensor(x).nonzero(as_tuple=True), mg.nonzero(mask.T, as_tuple=True)[::-1] if len(shape) == 1 else mg.where(mask)):
                assert [f.numpy().tolist() for f in found] == [e.tolist() for e in expected]
            assert np.array_equal(mg.argwhere(mask).numpy(), np.stack(expected, 1))
            assert np.array_equal(mg.tensor(x.T).nonzero().numpy(), np.stack(np.nonzero(x.T), 1))
    assert mg.argwhere(mg.tensor([np.nan, 0.0] * 3000)).numel() == 3000


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 1000])
def test_places_in_sorted_sequences(n: int, dtype: str) -> None:
    values = numbers((70, 83), dtype)
    sequence, rows = np.sort(numbers((n,), dtype, 1)), np.sort(numbers((70, n), dtype, 2), 1)
    values[0, :n] = sequence[:83]
    if dtype != "int64":
        sequence[-1], rows[:, -1], values[1, :3] = np.nan, np.nan, [np.nan, np.inf, -np.inf]
    for right in (False, True):
        check(lambda v: mg.searchsorted(mg.tensor(sequence), v.detach(), right=right), values, uses=f"{dtype}: insert")
        check(lambda v: mg.searchsorted(mg.tensor(rows), v.detach(), right=right), values)
        check(lambda v: mg.bucketize(v.detach().flatten()[:5001], mg.tensor(sequence), right=right), values)


@pytest.mark.parametrize("kernels", ["numpy", "numba"])
def test_distinct_elements(kernels: str) -> None:
    mg.set_kernels(kernels)
    rng = np.random.default_rng(0)
    for a in (rng.integers(-100, 100, 9000), rng.integers(-2**62, 2**62, 9000), np.zeros(0, np.int64), np.array([5]), np.array([-128, 127, 3] * 50, np.int8),
              np.array([2**63 - 1, -2**63] * 3), rng.integers(0, 255, 9000).astype(np.uint8), np.array([True, False, True]),
              np.array([1.5, np.nan, 1.5, np.nan, 0.0]), numbers((9000,)).round(1), numbers((900,)).astype(np.float16).round(1)):
        expected = np.unique(a, return_inverse=True, return_counts=True, equal_nan=False)
        found = mg.unique(mg.tensor(a), return_inverse=True, return_counts=True)
        for e, f in zip(expected, (*found, mg.unique(mg.tensor(a)))):
            assert f.numpy().dtype == e.dtype
            np.testing.assert_array_equal(f.numpy(), e)
        np.testing.assert_array_equal(mg.unique(mg.tensor(a)).numpy(), expected[0])
        values, groups, counts = (f.numpy() for f in mg.unique_consecutive(mg.tensor(a), return_inverse=True, return_counts=True))
        np.testing.assert_array_equal(values[groups], a)
        np.testing.assert_array_equal(np.repeat(values, counts), a)
        assert len(values) == np.count_nonzero(a[1:] != a[:-1]) + bool(a.size)


def test_positions_by_chance() -> None:
    """The same ones, whichever kernels find them."""
    weights = np.abs(numbers((300, 40), "float64"))
    weights[:, ::7] = 0
    for rows in (weights, weights[0]):
        expected, found = _both(lambda: mg.multinomial(mg.tensor(rows), 5000 if rows.ndim == 1 else 50, True,
                                                       generator=mg.Generator().manual_seed(3)).numpy())
        assert np.array_equal(expected, found)
        assert np.all(found % 7)
