"""What is at a threshold, is nan, or has an infinite loss: as PyTorch has it, by either set of kernels."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled.compiler import has_numba

F = mg.nn.functional


@pytest.fixture(params=["numpy", pytest.param("numba", marks=pytest.mark.skipif(not has_numba(), reason="needs Numba"))],
                autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels(request.param)
    yield
    mg.set_kernels(before)


def value_and_slope(function: Callable[[Any], Any], x: Any) -> tuple[float, float]:
    x = x.clone().requires_grad_()
    out = function(x)
    out.backward(mg.ones_like(out))
    assert len(set(map(str, out.tolist()))) == len(set(map(str, x.grad.tolist()))) == 1
    return out[0].item(), x.grad[0].item()


@pytest.mark.parametrize("n", [1, 5000])
def test_slopes_at_nan(n: int) -> None:
    x = mg.full((n,), np.nan)
    for function, slope in ((F.hardshrink, 0.0), (F.softshrink, 0.0), (F.hardswish, np.nan), (F.hardtanh, 0.0)):
        np.testing.assert_equal(value_and_slope(function, x), (np.nan, slope))


@pytest.mark.parametrize("n", [1, 5000])
@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16])
@pytest.mark.parametrize("number", [0.1, 0.3, 0.7])
def test_short_floats_meet_thresholds_that_are_rounded_as_they_are(dtype: mg.dtype, number: float, n: int) -> None:
    """One of these lies above its number, another below it."""
    if dtype is mg.bfloat16:
        pytest.importorskip("ml_dtypes")
    x = mg.full((n,), number, dtype=dtype)
    here = x[0].item()
    assert value_and_slope(lambda x: F.hardshrink(x, number), x) == (0, 0)
    assert value_and_slope(lambda x: F.softshrink(x, number), x)[1] == 0
    assert value_and_slope(lambda x: x.clamp(max=number), x) == (here, 1)
    assert value_and_slope(lambda x: x.clamp(min=number), x) == (here, 1)
    assert value_and_slope(lambda x: -(-x).clamp(-number, 0.0), x) == (here, 1)


def test_steps_that_a_loss_does_not_see_have_no_part_in_it() -> None:
    """The first target does not fit into its three steps."""
    x = mg.full((6, 2, 4), np.log(0.25), requires_grad=True)
    loss = F.ctc_loss(x, mg.tensor([[1, 1, 1], [1, 2, 3]]), mg.tensor([3, 5]), mg.tensor([3, 2]), reduction="none")
    loss.backward(mg.ones(2))
    assert loss[0].item() == np.inf and loss[1].isfinite()
    assert not x.grad[3:, 0].any() and x.grad[:3, 0].isnan().any(-1).all()
    assert x.grad[:, 1].isfinite().all() and x.grad[:5, 1].any() and not x.grad[5:, 1].any()


@pytest.mark.parametrize("n", [3, 300_000])
def test_rprop_takes_no_step_by_a_nan(n: int) -> None:
    p = mg.nn.Parameter(mg.ones(n))
    optimizer = mg.optim.Rprop([p], lr=0.1)
    for first in (np.nan, 1.0, np.nan, 1.0):
        p.grad = mg.ones(n)
        p.grad[0], p.grad[1] = first, -1.0
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy()[:3], [0.8, 1.5368, 0.4632], 1e-5)
