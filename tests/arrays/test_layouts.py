"""Compiled loops over arrays that do not lie in memory as one vector: windows, steps, what is broadcast, other orders."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, loops
from mutagrad.arrays.compiled.layout import rows_of

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


OPERANDS = {
    "a row": (array(300, 500), array(500)),
    "a column": (array(300, 500), array(300, 1)),
    "both spread": (array(300, 1), array(1, 500)),
    "channels": (array(8, 16, 20, 30), array(1, 16, 1, 1)),
    "windows": (array(302, 502)[1:-1, 1:-1], array(310, 510)[:300, 4:504]),
    "steps": (array(300, 1000)[:, ::2], array(300, 1500)[:, ::3]),
    "far steps": (array(300, 20, 500)[:, 0], array(500, 300).T),
    "backwards": (array(300, 500)[::-1, ::-1], array(300, 500)),
    "few rows": (array(3, 9)[:, :8], array(3, 1)),
    "four dimensions apart": (array(6, 7, 8, 9)[:5, :6, :7, :8], array(5, 1, 7, 1)),
    "one element": (array(300, 500), array(1, 1)),
    "a cube from two sides": (array(20, 1, 30), array(40, 1)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_a_function_of_two_operands(name: str) -> None:
    a, b = OPERANDS[name]
    expected = a * np.tanh(b) + 1
    for x, y, want in ((a, b, expected), (b, a, b * np.tanh(a) + 1)):
        out = np.full(expected.shape, np.nan, np.float32)
        mg.set_kernels("numba")
        found = loops.forward(_formula, (x, y), (), out)
        if found is None:  # a loop over it would be no gain
            rows = rows_of(out.shape, (x, y, out))
            assert rows is None or "far" in rows.kinds
            continue
        half = found.count // 2
        found.shared.part(half, found.count, found.given)
        found.shared.part(0, half, found.given)
        assert np.allclose(out, want, 1e-5, 1e-6)


def _formula(a: Any, b: Any) -> Any:
    return a * np.tanh(b) + 1


WINDOWS = {
    "rows": lambda around: around[3:30, 5:40],
    "steps": lambda around: around[3:30, 5:40:2],
    "transposed": lambda around: around.T[3:40, 5:30],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_only_what_is_asked_for_is_written(name: str) -> None:
    mg.set_kernels("numba")
    around = np.full((40, 50), 7, np.float32)
    window = WINDOWS[name](around)
    given = window.copy(order="K") * 2
    loop = loops.forward(np.add, (given, np.ones((), np.float32)), (), window)
    assert loop is not None
    loop.run(1)
    expected = np.full((40, 50), 7, np.float32)
    WINDOWS[name](expected)[...] = 15
    assert np.array_equal(around, expected)


PROGRAMS: dict[str, Any] = {
    "windows": lambda x, y: (x[1:-1, 1:-1].sigmoid() * y[2:, 2:]).exp(),
    "broadcast": lambda x, y: (x * y[0] + y[:, :1]) / (2 + x[:, :1].abs()),
    "transposed": lambda x, y: (x.T * y).relu() + x.T.tanh(),
    "spread": lambda x, y: x[:, :1] * y[:1] + 3.0 - x[:1] * y[:, :1],
    "asked": lambda x, y: mg.where(x > y.T, x, y * 2).clamp(-1, 1),
}


def in_place(x: Any, y: Any) -> Any:
    z = x.clone()
    inner = z[1:-1, 1:-1]
    inner.mul_(3.0)
    inner += z[:-2, :-2]  # what it reads it also writes
    inner.sigmoid_()
    z.T.add_(y)
    z[:, ::2] *= z[:, 1::2]
    return z


PROGRAMS["in place"] = in_place


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_numpys_kernels(name: str, dtype: str) -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        xs = [mg.tensor(array(600, 600, seed=seed).astype(dtype), requires_grad=True) for seed in (1, 2)]
        result = PROGRAMS[name](*xs)
        result.backward(mg.tensor(np.cos(np.arange(result.numel())).reshape(result.shape).astype(dtype)))
        found.append([result.detach().double().numpy(), *[x.grad.double().numpy() for x in xs]])
    tolerance = {"float32": 1e-4, "float64": 1e-10, "float16": 2e-2}[dtype]
    for a, b in zip(*found, strict=True):
        scale = np.abs(a).max()
        assert np.abs(a - b).max() <= tolerance * scale


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_large_writes_in_place(dtype: str) -> None:
    """A statement reads all before it writes; what does not require a gradient is written where it lies, too."""
    given = np.random.default_rng(0).integers(-8, 8, (400, 800)).astype(dtype)
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        x = mg.tensor(given)
        x[1:].add_(x[:-1])
        x[:, ::2].mul_(2)
        x.t().sub_(1).neg_()
        expected = given.copy()
        expected[1:] += given[:-1]
        expected[:, ::2] *= 2
        np.testing.assert_array_equal(x.numpy(), -(expected - 1))


def test_a_choice_of_kernels_holds_for_what_was_computed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that operations remember are not used where NumPy is wanted, and shapes and layouts are told apart."""
    x, row, column = mg.tensor(array(300, 700)), mg.tensor(array(700, seed=1)), mg.tensor(array(300, 1, seed=2))
    for kernels in ("numba", "numba", "numpy", "numba"):
        mg.set_kernels(kernels)
        with monkeypatch.context() as patch:
            if kernels == "numpy":
                patch.setattr(loops.Loop, "run", None)
            for a, b in ((x, row), (x, column), (x, x), (column, x), (x, x.flip(0)), (x[::2], x[::2]), (row, column)):
                np.testing.assert_allclose((a * b).numpy(), a.numpy() * b.numpy(), 1e-6)


def test_truth_values_of_floats_of_two_bytes() -> None:
    mg.set_kernels("numba")
    x = mg.tensor(array(300, 1000)).half()
    x[0, :4] = mg.tensor([float("nan"), float("inf"), 0.0, -0.0])
    assert np.array_equal((x > 0).numpy(), x.float().numpy() > 0)
    assert np.array_equal((x == x).numpy(), x.float().numpy() == x.float().numpy())
