"""Floats of two bytes are computed in float32 and rounded once: sums do not stick, and numbers are taken as they are."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

F = mg.nn.functional


@pytest.fixture(params=["float16", "bfloat16"])
def dtype(request: Any) -> Any:
    if request.param == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="pip install 'mutagrad[bfloat16]'")
    return getattr(mg, request.param)


@pytest.mark.parametrize("name", ["index_add", "scatter_add", "index_put", "add by index", "embedding", "gather", "expand"])
def test_what_is_added_to_one_place_does_not_stick(name: str, dtype: Any) -> None:
    n = 5000  # one after the other, the sum would stop at 2048, or at 256
    ones, places, table = mg.ones(n, dtype=dtype), mg.zeros(n, dtype=mg.int64), mg.ones(2, 1, dtype=dtype, requires_grad=True)
    if name == "index_add":
        found = mg.zeros(2, dtype=dtype).index_add(0, places, ones)[0]
    elif name == "scatter_add":
        found = mg.zeros(2, dtype=dtype).scatter_add(0, places, ones)[0]
    elif name == "index_put":
        found = mg.zeros(2, 3, dtype=dtype)[:, ::2].index_put((places, places), ones, accumulate=True)[0, 0]
    else:
        read = {"add by index": lambda: table[places], "embedding": lambda: F.embedding(places, table), "gather": lambda: table.gather(0, places[:, None]),
                "expand": lambda: table[0].expand(n, 1) * 1}[name]()
        read.backward(mg.ones(n, 1, dtype=dtype))
        found = table.grad[0, 0]
    assert found.item() == mg.tensor(float(n)).to(dtype).item()


def test_rules_are_rounded_once(dtype: Any) -> None:
    n = 200_000
    x = mg.ones(n, dtype=dtype, requires_grad=True)
    x.mean().backward()
    np.testing.assert_allclose(x.grad.float().numpy(), 1 / n, 0.01)  # 200,000 itself is infinite in float16
    y = mg.full((n,), 3.0, dtype=dtype, requires_grad=True)
    y.norm(3).backward()
    np.testing.assert_allclose(y.grad.float().numpy(), n ** (-2 / 3), 0.01)


@pytest.mark.parametrize("value", [1e-8, 3e-6, 1e5, 500_000, 1 / 3])
@pytest.mark.parametrize("n", [3, 300_000])
def test_numbers_are_taken_as_they_are(value: float, n: int, dtype: Any) -> None:
    x = mg.full((n,), 0.01, dtype=dtype, requires_grad=True)
    exact = x.detach().double()
    tiny = 6e-8 if dtype is mg.float16 else 0.0  # the smallest step above zero
    for found, expected, slope in ((x * value, exact * value, value), (x / value, exact / value, 1 / value), (value * x, exact * value, value)):
        held = expected.abs().max().item() < mg.finfo(dtype).max and slope < mg.finfo(dtype).max
        assert found.dtype is dtype
        if held:
            np.testing.assert_allclose(found.detach().double().numpy(), expected.numpy(), mg.finfo(dtype).eps, tiny)
            grad, = mg.autograd.grad(found.sum(), x, allow_unused=False) if n < 10 else mg.autograd.grad(found, x, mg.ones_like(found))
            np.testing.assert_allclose(grad.double().numpy(), slope, mg.finfo(dtype).eps, tiny)
    z = x.detach().clone()
    z.mul_(value)
    np.testing.assert_allclose(z.double().numpy(), (exact * value).numpy(), mg.finfo(dtype).eps, tiny)


@pytest.mark.parametrize("settings", [{"label_smoothing": 0.1}, {"ignore_index": 3}, {}, {"reduction": "sum"}], ids=str)
def test_losses_over_many_rows(settings: dict[str, Any], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, target = mg.tensor(rng.normal(size=(4000, 10))).to(dtype), mg.tensor(rng.integers(0, 10, 4000))
    found, expected = F.cross_entropy(x, target, **settings), F.cross_entropy(x.double(), target, **settings)
    np.testing.assert_allclose(found.item(), expected.item(), 2 * mg.finfo(dtype).eps)


def test_the_slope_of_gelu_is_that_of_its_input_not_of_the_rounded_result(dtype: Any) -> None:
    x = mg.cat([mg.linspace(-4, 4, 401).to(dtype), mg.tensor([0.0, 1e-7, 1e-40]).to(dtype)]).requires_grad_()
    mg.nn.functional.gelu(x).sum().backward()
    wide = x.detach().double().requires_grad_()
    mg.nn.functional.gelu(wide).sum().backward()
    assert (x.grad.double() - wide.grad).abs().max() < 1.2 * mg.finfo(dtype).eps
