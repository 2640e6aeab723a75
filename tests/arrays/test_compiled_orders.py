"""Work that compiled loops took over from NumPy: copies in another order, windows of matrices, functions of doubles."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, library, loops, reductions, rows
from mutagrad.nn import functional as F

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")
TABLE = np.random.default_rng(7).integers(0, 500, 4000)
CALLS: dict[str, Callable[..., Any]] = {
    "reshape": lambda x: x.T.reshape(-1), "reshape of a window": lambda x: x[2:, 1:].reshape(2, -1),
    "flip": lambda x: x.flip(0, 1), "flip of columns": lambda x: x.T.flip(1), "rot90": mg.rot90,
    "roll": lambda x: x.roll((5, -700), (0, 1)), "roll twice": lambda x: x.roll((1, 2), (1, 1)), "roll all": lambda x: x.roll(7),
    "cat": lambda x: mg.cat([x, x.flip(0), x[:3]]), "cat of columns": lambda x: mg.cat([x, x[:, 5:]], 1),
    "cat of transposed ones": lambda x: mg.cat([x.T, x.T]), "stack": lambda x: mg.stack([x, x], -1),
    "tril": lambda x: x.tril(-3), "triu": lambda x: x.reshape(4, -1, x.shape[1]).triu(2), "small triu": lambda x: x[:5, :6].triu(1),
    "diag_embed": lambda x: mg.diag_embed(x[:40, :50], -2, 0, 2), "outer": lambda x: mg.einsum("i,j->ij", x[:, 0], x[0]),
    "full product": lambda x: mg.einsum("ij,ji->", x, x.T), "trace": lambda x: x.trace(),
    "lerp": lambda x: mg.lerp(x, x * 2, x.sigmoid()), "pairs": lambda x: x[:, :, None] * x[0, :2],
    "a column of few": lambda x: x.clone().index_fill_(1, mg.arange(4, 9), 1.0),
    "sum of a window": lambda x: x[1:, 1:].sum(), "sums of its rows": lambda x: x[1:, 1:].sum(1, keepdim=True),
    "sums of its columns": lambda x: x[:, 3:].T.sum(1), "the largest in its rows": lambda x: x[1:, 1:].amax(1),
    "places in columns": lambda x: x.T.max(1).indices, "softmax": lambda x: x.T.softmax(1),
    "layer_norm": lambda x: F.layer_norm(x.T, (x.shape[0],)), "clamp": lambda x: x.clamp(min=x.flip(0), max=x + 1),
    "exp2": lambda x: (x * 30).exp2(), "logaddexp2": lambda x: mg.logaddexp2(x * 9, x.flip(0)),
    "bags": lambda x: F.embedding_bag(mg.tensor(TABLE), x[:500], mg.arange(0, 4000, 25), mode="sum"),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 4), "max_pool2d": lambda x: F.max_pool2d(x[None, None], 3, 2, 1, ceil_mode=True),
    "wide max_pool2d": lambda x: F.max_pool2d(x[None, None], (2, 5), (3, 1)), "adaptive": lambda x: F.adaptive_max_pool2d(x[None, None], (60, 80)),
    "channels last": lambda x: F.avg_pool2d(x.reshape(2, 40, -1, 8).permute(0, 3, 1, 2), 2),
    "median": lambda x: mg.where(x > 2, mg.nan, x).nanmedian(), "median with nan": lambda x: mg.where(x > 2, mg.nan, x).median(),
    "erf": lambda x: (x * 4).erf(), "erfc": lambda x: (x * 4).erfc(), "gelu": F.gelu,
    "sin": lambda x: (x * 1e4).sin(), "cos": lambda x: (x * 1e4).cos(), "tan": lambda x: x.tan(), "sin far": lambda x: (x * 1e7).sin(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_both_kernels_agree(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((600, 800)).astype(dtype)
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(CALLS[name](mg.tensor(x)).numpy())
    assert found[0].dtype == found[1].dtype
    tolerance = 2e-4 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(found[1], found[0], tolerance, tolerance)


@pytest.mark.parametrize("function", [np.sin, np.cos, np.tan, np.exp2, np.fmod, np.remainder])
def test_doubles_have_loops_of_their_own(function: Any) -> None:
    mg.set_kernels("numba")
    x = np.random.default_rng(0).uniform(-900, 900, (2, 30_000))
    arrays = tuple(x[:function.nin])
    out = np.empty(x.shape[1])
    loop = loops.forward(function, arrays, (), out, True)
    assert loop is not None and loop.run(1)
    np.testing.assert_allclose(out, function(*arrays), 1e-14, 1e-15)


@pytest.mark.parametrize("divisor", [0.1, -1.3, 1e-3, float("inf")])
def test_remainders_of_doubles_are_exact(divisor: float) -> None:
    a = np.concatenate([np.arange(-30_000, 30_000) * 0.1, np.arange(60_000) * min(divisor, 9), [-0.0]])
    mg.set_kernels("numba")
    with np.errstate(all="ignore"):
        for function in (np.fmod, np.remainder, np.floor_divide):
            found = getattr(mg, function.__name__)(mg.tensor(a), divisor).numpy()
            np.testing.assert_array_equal(found, function(a, divisor))


def test_rows_of_a_window_are_summed_where_they_are() -> None:
    mg.set_kernels("numba")
    x = np.ones((300, 400), np.float32)
    for window, dims in ((x[1:-1, 1:-1], (1,)), (x[:, 1:], (0, 1)), (x[1:, 5:].T, (0,))):
        assert reductions.reduce("sum", window, dims) is not None


def test_places_of_a_transposed_matrix_are_found_along_its_memory() -> None:
    mg.set_kernels("numba")
    x = np.random.default_rng(0).standard_normal((300, 400)).T
    assert (reductions.place("largest", x, 1) == x.argmax(1)).all()


def test_a_norm_without_weight_has_a_compiled_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    find = library.find_for
    monkeypatch.setattr(library, "find_for", lambda function, array: asked.append(function) or find(function, array))
    mg.set_kernels("numba")
    x = mg.randn(100, 200).requires_grad_()
    F.layer_norm(x, (200,)).sum().backward()
    assert rows.normalise_back in asked


def test_a_loop_for_one_exponent_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mg.set_kernels("numba")
    x = mg.rand(100, 333)
    for exponent in (3.0, 4.0, 3.0):
        assert mg.allclose(x ** exponent, mg.tensor(x.numpy() ** exponent))
    monkeypatch.setattr(loops, "_plan", None)
    assert mg.allclose(x ** 3.0, x * x * x)


def test_where_the_last_nan_is_adaptive_pooling_says() -> None:
    x = mg.randn(1, 1, 90, 90)
    x[0, 0, 1, 2] = x[0, 0, 2, 1] = mg.nan
    for kernels in ("numba", "numpy"):
        mg.set_kernels(kernels)
        for size in (9, 7):  # windows of one size, and of several
            assert F.adaptive_max_pool2d(x, size, return_indices=True)[1][0, 0, 0, 0] == 2 * 90 + 1


def test_the_parts_of_complex_numbers_get_those_of_their_adjoint() -> None:
    x, y = (mg.randn(300, dtype=mg.float64).requires_grad_() for _ in range(2))
    g = mg.complex(mg.randn(300, dtype=mg.float64), mg.randn(300, dtype=mg.float64))
    mg.complex(x, y).backward(g)
    assert (x.grad == g.real).all() and (y.grad == g.imag).all()
    assert mg.autograd.gradgradcheck(lambda a, b: mg.complex(a, b) ** 3, (x[:3].detach().requires_grad_(), y[:3].detach().requires_grad_()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_few_of_each_row(dtype: str, largest: bool) -> None:
    x = np.random.default_rng(0).integers(-40, 40, (50, 300)).astype(dtype)
    if dtype[0] == "f":
        x[::3, 5] = x[::6, 9] = np.nan
    mg.set_kernels("numba")
    order = np.argsort(-x if largest else x, 1, kind="stable")
    if largest and dtype[0] == "f":
        order = np.argsort(np.where(np.isnan(x), -np.inf, -x), 1, kind="stable")
    for k in (1, 7, 32):
        values, places = mg.topk(mg.tensor(x), k, 1, largest)
        assert np.array_equal(places.numpy(), order[:, :k])
        assert np.array_equal(values.numpy(), np.take_along_axis(x, order[:, :k], 1), equal_nan=dtype[0] == "f")


def test_rows_that_are_alike_at_first_are_ordered_by_what_follows() -> None:
    rng = np.random.default_rng(0)
    for given in (rng.integers(0, 2, (500, 9)), rng.integers(0, 3, (200, 3)), np.zeros((30, 4)), rng.standard_normal((50, 6)), np.zeros((0, 3))):
        values, inverse, counts = mg.unique(mg.tensor(given), return_inverse=True, return_counts=True, dim=0)
        expected = np.unique(given, axis=0, return_inverse=True, return_counts=True)
        for found, value in zip((values, inverse, counts), expected, strict=True):
            assert np.array_equal(found.numpy(), value.reshape(found.shape))


@pytest.mark.parametrize("again", [False, True])
def test_pairs_are_the_combinations_of_two(again: bool) -> None:
    from itertools import combinations, combinations_with_replacement as repeated

    for n in (0, 1, 5):
        expected = list((repeated if again else combinations)(range(n), 2))
        assert mg.combinations(mg.arange(n), 2, again).tolist() == [list(pair) for pair in expected]
