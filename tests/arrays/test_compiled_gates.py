"""Gated rows and the connectionist loss by compiled loops: values and gradients of NumPy's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler
from mutagrad.nn import functional as F

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


def same_with_kernels(function: Any, x: np.ndarray, tolerance: float) -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        leaf = mg.tensor(x, requires_grad=True)
        result = function(leaf)
        result.backward(mg.tensor(np.cos(np.arange(result.numel())).reshape(result.shape).astype(x.dtype)))
        found.append([result.detach().numpy(), leaf.grad.numpy()])
    for one, other in zip(*found):
        np.testing.assert_allclose(other, one, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_glu(dtype: str, dim: int) -> None:
    x = (np.random.default_rng(0).standard_normal((10, 26, 34)) * 30).astype(dtype)
    x[0, 0, 0], x[9, 25, 33], x[1, 2, 3], x[9, 20, 20] = np.nan, np.nan, np.inf, -np.inf
    same_with_kernels(lambda x: F.glu(x, dim), x, 1e-5 if dtype == "float32" else 1e-12)
    same_with_kernels(lambda x: F.glu(x.permute(2, 0, 1), dim), x, 1e-5 if dtype == "float32" else 1e-12)


def test_glu_has_a_second_derivative() -> None:
    x = mg.tensor(np.random.default_rng(0).standard_normal((3, 4)), requires_grad=True)
    assert mg.autograd.gradcheck(F.glu, (x,)) and mg.autograd.gradgradcheck(F.glu, (x,))
    assert F.glu(mg.zeros(3, 0)).shape == (3, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("labels", [0, 1, 2, 12])
def test_ctc_loss(dtype: str, labels: int) -> None:
    rng = np.random.default_rng(labels)
    x = rng.standard_normal((30, 9, 7)).astype(dtype)
    targets = mg.tensor(rng.integers(1, 7, (9, labels)))
    steps, lengths = mg.tensor([30, 29, 1, 0, 30, 13, 30, 2, 30]), mg.tensor([min(labels, n) for n in (12, 3, 1, 0, 0, 7, 12, 5, 2)])
    for infinite in (False, True):
        same_with_kernels(lambda x, infinite=infinite: F.ctc_loss(x.log_softmax(-1), targets, steps, lengths, reduction="none",
                                                                  zero_infinity=infinite), x, 2e-4 if dtype == "float32" else 1e-9)


def test_products_without_one_factor() -> None:
    for bad in (1.0, 0.0, np.inf, np.nan):
        x = np.random.default_rng(0).uniform(0.9, 1.1, (600, 500))
        x[3, 4] = bad
        same_with_kernels(lambda x: x.prod(1), x, 1e-9)
        same_with_kernels(lambda x: x.prod(0), x, 1e-9)
