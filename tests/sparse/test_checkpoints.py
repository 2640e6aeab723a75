"""Checkpointed functions that are given sparse tensors, or give some."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.utils.checkpoint import checkpoint

A = mg.tensor([[0.0, 2.0, 0.0], [1.5, 0.0, -1.0]], dtype=mg.float64)
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "dense result": lambda a, b: mg.sparse.mm(a, b).exp().sum(),
    "sparse result": lambda a, b: (a * 2 * b.sum()).sin(),
    "several": lambda a, b: {"x": a @ b, "y": [a * 3, (b ** 2).sum(), None, 5]},
    "same places": lambda a, b: a,
}


def leaves(layout: str) -> tuple[Any, Any]:
    sparse = A.to_sparse() if layout == "coo" else A.to_sparse_csr()
    return sparse.requires_grad_(), mg.arange(6.0, dtype=mg.float64).reshape(3, 2).div(5).requires_grad_()


def total(result: Any) -> Any:
    if isinstance(result, dict):
        return result["x"].sum() + result["y"][0].to_dense().square().sum() + result["y"][1]
    return (result.to_dense() if result.layout is not mg.strided else result).square().sum()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_without_a_checkpoint(name: str, layout: str, reentrant: bool) -> None:
    found = []
    for call in (lambda f, *given: f(*given), lambda f, *given: checkpoint(f, *given, use_reentrant=reentrant)):
        a, b = leaves(layout)
        loss = total(call(FUNCTIONS[name], a, b))
        loss.backward()
        found.append((loss, a.grad.to_dense(), mg.zeros(0) if b.grad is None else b.grad))
    for x, y in zip(*found):
        assert mg.allclose(x, y, rtol=1e-12)


def test_in_lists_and_by_name() -> None:
    a, b = leaves("coo")
    y = checkpoint(lambda pair, *, scale: (pair[0] @ pair[1] * scale.to_dense().sum()).sum(), [a, b], scale=a.detach(), use_reentrant=False)
    y.backward()
    wanted, = mg.autograd.grad((A.requires_grad_() @ b.detach()).sum() * A.detach().sum(), A)
    A.requires_grad_(False)
    assert mg.allclose(a.grad.to_dense(), wanted * (A != 0))


def test_what_is_computed_again_is_not_kept() -> None:
    kept: list[Any] = []

    def function(a: Any, b: Any) -> Any:
        hidden = (a * 2) * b.sum()
        kept.append(weakref.ref(hidden._values()))
        return hidden.sin()

    a, b = leaves("coo")
    y = checkpoint(function, a, b, use_reentrant=False)
    gc.collect()
    assert kept[0]() is None and y.is_sparse
    y.to_dense().sum().backward()
    assert len(kept) == 2 and a.grad._nnz() == 3
