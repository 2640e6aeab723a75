"""Random numbers by kernels are those that NumPy's and Python's ways give, to the last bit, and so is what follows."""
from __future__ import annotations

from collections.abc import Callable

import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")

N = 5000
DRAWS: dict[str, Callable[[], mg.Tensor]] = {
    "poisson": lambda: mg.poisson(mg.arange(N) % 40 / 2),
    "poisson in double": lambda: mg.poisson((mg.arange(N) % 40 / 2).double()),
    "gamma": lambda: mg.distributions.Gamma((mg.arange(N) + 1) / 2000, 1.0).sample(),
    "binomial": lambda: mg.binomial(mg.arange(N) % 90.0, mg.arange(N) / N),
    "binomial, hardly ever": lambda: mg.binomial(mg.full((N,), 100.0).double(), mg.logspace(-300, -2, N, dtype=mg.float64)),
    "randperm": lambda: mg.randperm(N),
    "normal, strided": lambda: mg.empty(2 * N)[::2].normal_(1.0, 2.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers(name: str) -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        mg.manual_seed(7)
        odd = mg.randn(3)  # so that a normal number is kept
        found.append([odd, DRAWS[name](), mg.randn(5), mg.get_rng_state()])
    for a, b in zip(*found, strict=True):
        assert mg.equal(a, b)


def test_the_same_numbers_one_call_after_the_other() -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        mg.manual_seed(7)
        found.append([mg.distributions.Gamma(mg.full((N + k,), 0.7), 1.0).sample() for k in range(3)])
    assert all(mg.equal(a, b) for a, b in zip(*found, strict=True))
