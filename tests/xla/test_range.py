"""Indices that are out of range in a run: the error that the step would raise, at the line where it would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.nn import functional as F

pytest.importorskip("jax")

X = mg.arange(12.0).reshape(4, 3)
CASES: dict[str, tuple[Callable[[Any], Any], int, int]] = {  # a step of a number, one that is right, and one that is not
    "read": (lambda i: X[i] * 1, -4, 4),
    "written": (lambda i: X.clone().__setitem__((slice(None), i), 1.0), 2, 3),
    "rows": (lambda i: X[i.reshape(1)], 3, -5),
    "narrow": (lambda i: X.narrow(0, i, 2) * 1, 2, 3),
    "gather": (lambda i: X.gather(0, i.reshape(1, 1)), 3, -1),
    "index_add": (lambda i: X.clone().index_add_(0, i.reshape(1), X[:1]), 3, 4),
    "embedding": (lambda i: F.embedding(i, X), 3, -1),
    "cross_entropy": (lambda i: F.cross_entropy(X[:1], i.reshape(1), ignore_index=7), 7, 3),
    "nll_loss": (lambda i: F.nll_loss(X[:1], i.reshape(1)), 2, -1),
    "max_unpool2d": (lambda i: F.max_unpool2d(mg.ones(1, 1, 1), i.reshape(1, 1, 1), 2), 3, 4),
    "vmap": (lambda i: mg.func.vmap(lambda row, k: row[k])(X, i.expand(4)), 2, 3),
    "a loop": (lambda i: mg.loop(3, lambda k: X.clone().__setitem__(k + i, 0.0)), 1, 2),
    "a while": (lambda i: mg.while_loop(lambda k: k < 3, lambda k: (k + 1 + X[k, 0].long() * 0,), (i,)), 0, -9),
    "a checkpoint": (lambda i: mg.utils.checkpoint.checkpoint(lambda x: x[i], X, use_reentrant=False) * 1, 0, 5),
}


@pytest.mark.parametrize("name", CASES)
def test_an_index_that_is_out_of_range_is_an_error(name: str) -> None:
    function, right, wrong = CASES[name]
    with pytest.raises(IndexError) as expected:
        function(mg.tensor(wrong))
    step = mg.compile(function)
    step(mg.tensor(right))
    for _ in range(2):
        with pytest.raises(IndexError) as got:
            step(mg.tensor(wrong))
        assert got.type is expected.type and "test_range.py" in str(got.value)
        assert name in ("narrow", "embedding", "a while") or got.value.what == expected.value.what  # type: ignore[attr-defined]
    step(mg.tensor(right))
    assert len(step.retraces) == 1


@pytest.mark.parametrize("divide", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: mg.fmod(a, b)], ids=["//", "%", "fmod"])
def test_an_integer_divided_by_zero(divide: Any) -> None:
    step, a = mg.compile(divide), mg.tensor([7, -7])
    assert step(a, mg.tensor([2, 3])).tolist() == divide(a, mg.tensor([2, 3])).tolist()
    with pytest.raises(ZeroDivisionError, match="divided by zero"):
        step(a, mg.tensor([2, 0]))


def test_what_does_not_run_is_not_checked() -> None:
    step = mg.compile(lambda i: mg.cond(i < 4, lambda: X[i, 0] * 1, lambda: X[0, 0] - 1))
    assert [step(mg.tensor(i)).item() for i in (3, 9)] == [9, -1]

    def rounds(x: Any) -> Any:
        def body(i: Any) -> None:
            mg.cond(i < 4, lambda: [x[i].add_(1)].clear(), lambda: None)

        mg.loop(6, body)
        return x

    assert mg.compile(rounds)(mg.zeros(4)).tolist() == [1] * 4


def test_the_number_of_a_round_is_checked_while_the_step_is_traced() -> None:
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        mg.compile(lambda x: mg.loop(5, lambda i: x.__setitem__(i, 0.0)))(mg.zeros(4))


def test_gradients_and_updates_with_checks() -> None:
    found = []
    for c in (lambda f: f, mg.compile):
        mg.manual_seed(0)
        table = mg.nn.Embedding(5, 3)
        optimizer = mg.optim.Adam(table.parameters(), lr=0.1)

        def step(i: Any, t: Any, table: Any = table, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            h = mg.zeros(2, 3)
            mg.loop(3, lambda k: h.add_(table(i[k])).tanh_())
            loss = F.cross_entropy(h, t)
            loss.backward()
            optimizer.step()
            return loss.detach()

        g = c(step)
        i, t = mg.tensor([[0, 1], [2, 3], [4, 4]]), mg.tensor([0, 2])
        losses = [g(i, t).item() for _ in range(3)]
        with pytest.raises(IndexError):
            g(i + 1, t)
        found.append(losses)
    assert found[0] == pytest.approx(found[1], 1e-5)


def test_on_a_device_the_error_comes_with_the_next_read_or_call() -> None:
    x, indices = X.to("xla"), mg.arange(5).to("xla")
    step = mg.compile(lambda i: x[i] * 1)
    result = step(indices[4])
    with pytest.raises(IndexError, match="index 4"):
        result.cpu()
    with pytest.raises(IndexError, match="index 4"):
        for i in (4, *[3] * 1000):
            step(indices[i])
    assert step(indices[3]).tolist() == [9, 10, 11]
