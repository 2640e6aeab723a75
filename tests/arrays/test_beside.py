"""Positions along one dimension as positions in a vector, by NumPy alone; and extremes of what meets in one place."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.places import beside


@pytest.fixture(autouse=True)
def numpy_alone() -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels("numpy")
    yield
    mg.set_kernels(before)


CASES = [((70, 90), 1, 80), ((70, 90), 0, 100), ((8, 30, 40), 1, 50), ((8, 30, 40), 0, 9), ((8, 30, 40), 2, 33), ((9000,), 0, 5000)]


@pytest.mark.parametrize(("shape", "dim", "m"), CASES)
def test_positions_are_those_of_numpy(shape: tuple[int, ...], dim: int, m: int) -> None:
    rng = np.random.default_rng(0)
    picks = (*shape[:dim], m, *shape[dim + 1:])
    index = rng.integers(0, shape[dim], picks)
    exact = np.take_along_axis(np.arange(np.prod(shape)).reshape(shape), index, dim)
    for given in (index, np.asfortranarray(index)):
        found = beside(given, shape, dim)
        assert found is not None and found.dtype == np.int64 and (found == exact).all()
    for bad in (-1, shape[dim], 1 << 62):
        wrong = index.copy()
        wrong.reshape(-1)[-1] = bad
        assert beside(wrong, shape, dim) is None
        with pytest.raises(IndexError):
            mg.zeros(*shape).gather(dim, mg.tensor(wrong))
    assert beside(index.astype(np.int32), shape, dim) is None


@pytest.mark.parametrize(("shape", "dim", "m"), CASES)
@pytest.mark.parametrize("kind", ["amax", "amin", "prod", "sum", "mean"])
def test_what_meets_in_one_place(shape: tuple[int, ...], dim: int, m: int, kind: str) -> None:
    rng = np.random.default_rng(1)
    m = min(m, shape[dim])
    picks = (*shape[:dim], m, *shape[dim + 1:])
    x, src, index = rng.standard_normal(shape), rng.standard_normal(picks), rng.integers(0, shape[dim], picks)
    exact, counts = x.copy(), np.ones(shape)
    places = tuple(index if d == dim else i for d, i in enumerate(np.indices(picks)))
    {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply}.get(kind, np.add).at(exact, places, src)
    np.add.at(counts, places, 1)
    found = mg.tensor(x).scatter_reduce(dim, mg.tensor(index), mg.tensor(src), kind)
    np.testing.assert_allclose(found.numpy(), exact / counts if kind == "mean" else exact)
