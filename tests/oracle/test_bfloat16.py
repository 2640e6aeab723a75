"""bfloat16 against PyTorch: values and gradients of common operations, promotion, text."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg

from .compare import difference, gradient_difference, name_of, ours

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytest.importorskip("ml_dtypes", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

# `L` is the library; a, b are 4 x 5, m is 5 x 3, p is positive, c a row of 5, i positions.
CALLS: dict[str, Any] = {name: eval(f"lambda L, a, b, m, p, c, i: {name}") for name in """
a + b
a * c
a - 2.5
1.5 / p
a / p
p ** 2
p ** 0.5
p ** p
2.0 ** a
-a
abs(a)
a @ m
a.matmul(m)
L.einsum('ij,jk->ik', a, m)
L.addmm(a @ m, a, m, alpha=0.5)
a.exp()
p.log()
p.sqrt()
p.rsqrt()
a.sin()
a.tanh()
a.sigmoid()
a.relu()
a.erf()
a.clamp(-0.5, 0.5)
L.where(a > 0, a, b)
L.maximum(a, b)
L.minimum(a, 0 * b)
L.lerp(a, b, 0.25)
L.addcmul(a, b, p, value=0.5)
L.addcdiv(a, b, p, value=0.5)
a.sum()
a.sum(0)
a.sum(1, dtype=L.float32)
a.mean(1)
a.var(1)
a.std(0)
a.norm()
p.prod(1)
a.cumsum(1)
p.cumprod(0)
a.amax(1)
a.max(1)
a.sort(1)
a.argmax(0)
a.softmax(1)
a.log_softmax(-1)
a.logsumexp(0)
a.t()
a.reshape(5, 4)
a[1:, ::2]
a[i]
a.index_select(0, i)
a.gather(1, i[:, None])
a.index_add(0, i, b)
a.scatter_add(1, i[:, None], b)
a.masked_fill(a > 0, 7)
L.cat([a, b])
L.stack([a, b], 1)
a.clone().mul_(b).add_(1.5)
a.float() * 3
a.double()
a.half()
a.floor()
a.round()
a.remainder(0.75)
a.fmod(0.75)
a == b
a < 0.25
a.isfinite()
L.outer(c, c)
a.flip(0)
a.abs().topk(2)
L.atan2(a, b)
L.hypot(a, b)
a.square()
p.reciprocal()
a.sign()""".strip().splitlines()}


def inputs() -> list[Any]:
    torch.manual_seed(0)
    values = [torch.randn(4, 5), torch.randn(4, 5), torch.randn(5, 3), torch.rand(4, 5) + 0.5, torch.randn(5)]
    return [*(v.bfloat16().requires_grad_() for v in values), torch.tensor([0, 2, 1, 2])]


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    theirs = inputs()
    mine = [ours(v) for v in theirs]
    expected, found = CALLS[name](torch, *theirs), CALLS[name](mg, *mine)
    expected, found = (tuple(v) if isinstance(v, tuple) else v for v in (expected, found))
    assert not difference(expected, found), difference(expected, found)
    text = gradient_difference(expected, found, theirs, mine, (3e-2, 3e-2))
    assert not text, text


OTHERS = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("other", OTHERS)
def test_promotion(other: str) -> None:
    for shapes in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
        types = []
        for L in (torch, mg):
            x, y = L.ones(shapes[0], dtype=L.bfloat16), L.ones(shapes[1], dtype=getattr(L, other))
            types.append([name_of(v) for v in ((x * y).dtype, (y * x).dtype, L.result_type(x, y), L.promote_types(x.dtype, y.dtype), (x / y).dtype)])
        assert types[0] == types[1], shapes


@pytest.mark.parametrize("values", [[1.0, 2.5], [1.0, 2.0], [1e-5, 1e5], [float("nan"), 1.0], [3.14159], [[1.5, -2.0], [0.001, 100.0]]], ids=str)
def test_text(values: Any) -> None:
    assert repr(mg.tensor(values, dtype=mg.bfloat16)).replace("mutagrad", "torch") == repr(torch.tensor(values, dtype=torch.bfloat16))


def test_limits() -> None:
    theirs, mine = torch.finfo(torch.bfloat16), mg.finfo(mg.bfloat16)
    for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(theirs, name) == getattr(mine, name), name


def test_rounding() -> None:
    """To nearest, ties to even, overflow to infinity: all of 20000 random numbers and the halfway ones."""
    values = torch.cat([torch.randn(20000) * torch.exp(torch.randn(20000) * 20), torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, -3.4e38, 1e-40])])
    assert not difference(values.bfloat16(), ours(values).bfloat16(), tolerance=(0, 0))


def test_numpy_is_refused() -> None:
    for L in (torch, mg):
        with pytest.raises(TypeError):
            L.ones(2, dtype=L.bfloat16).numpy()
