"""A tensor of PyTorch's beside one of ours: an error that says how to convert, never a recursion, on either side."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

OPERATORS = [getattr(operator, name) for name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift", "lt", "le", "gt", "ge", "iadd", "isub", "imul", "itruediv"]]
F = "nn.functional"
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, a, b: m.add(a, b), "cat": lambda m, a, b: m.cat([a, b]), "where": lambda m, a, b: m.where(a > 0, a, b),
    "condition": lambda m, a, b: m.where(b > 0, a, a), "sin": lambda m, a, b: m.sin(b), "sum": lambda m, a, b: m.sum(b),
    "einsum": lambda m, a, b: m.einsum("i,i", a, b), "index": lambda m, a, b: a[b.long()], "copy_": lambda m, a, b: a.copy_(b),
    "add_": lambda m, a, b: a.add_(b), "relu": lambda m, a, b: m.nn.functional.relu(b), "layer": lambda m, a, b: m.nn.Linear(3, 2)(b),
    "loss": lambda m, a, b: m.nn.functional.mse_loss(a, b), "out": lambda m, a, b: m.sin(a, out=b), "method": lambda m, a, b: a.mul(b),
    "gather": lambda m, a, b: m.gather(a, 0, b.long()), "norm": lambda m, a, b: m.linalg.norm(b), "clamp": lambda m, a, b: m.clamp(a, min=b),
    "equal": lambda m, a, b: m.equal(a, b), "matmul": lambda m, a, b: m.matmul(a, b)}


def pair(needs: bool) -> tuple[Any, Any]:
    return mg.ones(3, requires_grad=needs) * 1, torch.ones(3, requires_grad=needs) * 1


@pytest.mark.parametrize("symbol", OPERATORS, ids=lambda o: o.__name__)
@pytest.mark.parametrize("needs", [False, True], ids=["plain", "recorded"])
def test_operators_say_how_to_convert(symbol: Any, needs: bool) -> None:
    ours, theirs = pair(needs)
    if symbol.__name__.strip("_") in ("and", "or", "xor", "lshift", "rshift"):
        ours, theirs = ours.long(), theirs.long()
    for left, right in ((ours, theirs), (theirs, ours)):
        with pytest.raises(TypeError, match="PyTorch's"):
            symbol(left, right)


def test_comparing_is_no_exception() -> None:
    for symbol in (operator.eq, operator.ne):
        for left, right in (pair(False), pair(False)[::-1]):
            with pytest.raises(TypeError, match="PyTorch's"):
                symbol(left, right)


@pytest.mark.parametrize("name", CALLS)
def test_functions_refuse(name: str) -> None:
    ours, theirs = pair(False)
    for call in (lambda: CALLS[name](mg, ours, theirs), lambda: CALLS[name](torch, theirs, ours)):
        with pytest.raises((TypeError, NotImplementedError, IndexError)):
            call()


def test_a_parameter_given_to_pytorch() -> None:
    with pytest.raises(TypeError, match="from_dlpack"):
        torch.sin(mg.nn.Parameter(mg.ones(2)))
    with pytest.raises(TypeError, match="PyTorch's"):
        mg.sin(torch.nn.Parameter(torch.ones(2)))


def test_data_is_converted() -> None:
    theirs = torch.tensor([[1, 2], [3, 4]])
    found = mg.tensor(theirs)
    assert found.dtype is mg.int64 and found.tolist() == [[1, 2], [3, 4]]
    assert mg.as_tensor(theirs, dtype=mg.float32).dtype is mg.float32
    shared = mg.from_dlpack(theirs)
    shared[0, 0] = 9
    assert theirs[0, 0] == 9
    assert torch.from_dlpack(mg.ones(2)).tolist() == [1, 1]
