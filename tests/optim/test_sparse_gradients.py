"""Sparse gradients of tables of vectors, and the optimizers that take them."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import optim
from tools import same

F = mg.nn.functional
ROWS = mg.tensor([[1, 2], [4, 1]])


def twins(make: Callable[..., Any] = mg.nn.Embedding, **settings: Any) -> tuple[Any, Any]:
    """The same table, with a sparse gradient and with a dense one."""
    sparse, dense = make(6, 3, sparse=True, **settings), make(6, 3, **settings)
    dense.load_state_dict(sparse.state_dict())
    return sparse, dense


READERS: dict[str, tuple[Any, dict[str, Any], Callable[[Any], Any]]] = {
    "rows": (mg.nn.Embedding, {}, lambda e: (e(ROWS) ** 2).sum()),
    "padding": (mg.nn.Embedding, {"padding_idx": 2}, lambda e: (e(ROWS) ** 3).sum()),
    "frequency": (mg.nn.Embedding, {"scale_grad_by_freq": True}, lambda e: (e(ROWS) ** 3).sum()),
    "max_norm": (mg.nn.Embedding, {"max_norm": 0.5}, lambda e: e(ROWS).exp().sum()),
    "one": (mg.nn.Embedding, {}, lambda e: e(mg.tensor(3)).sin().sum()),
    "none": (mg.nn.Embedding, {}, lambda e: e(mg.zeros(0, dtype=mg.int64)).sum()),
    "twice": (mg.nn.Embedding, {}, lambda e: (e(ROWS) * e(ROWS.t())).sum()),
    "sums": (mg.nn.EmbeddingBag, {"mode": "sum"}, lambda e: (e(ROWS) ** 2).sum()),
    "means": (mg.nn.EmbeddingBag, {"mode": "mean"}, lambda e: (e(mg.tensor([1, 2, 4, 1, 3]), mg.tensor([0, 3])) ** 2).sum()),
    "weighed": (mg.nn.EmbeddingBag, {"mode": "sum"}, lambda e: (e(ROWS, per_sample_weights=mg.tensor([[1.0, 2.0], [3.0, 4.0]])) ** 2).sum()),
    "padded bags": (mg.nn.EmbeddingBag, {"mode": "sum", "padding_idx": 1}, lambda e: (e(ROWS) ** 2).sum())}


@pytest.mark.parametrize("name", READERS)
def test_the_gradient_has_the_rows_that_were_read(name: str) -> None:
    make, settings, read = READERS[name]
    sparse, dense = twins(make, **settings)
    for _ in range(2):  # the second time, it is added
        for table in (sparse, dense):
            read(table).backward()
    g = sparse.weight.grad
    assert g.is_sparse and g.layout is mg.sparse_coo and g.shape == (6, 3) and g.sparse_dim() == g.dense_dim() == 1
    assert mg.allclose(g.to_dense(), dense.weight.grad, rtol=1e-6) and not dense.weight.grad.is_sparse
    touched = set(g.coalesce().indices()[0].tolist())
    assert touched >= {i for i, row in enumerate(dense.weight.grad.tolist()) if any(row)} and touched <= {1, 2, 3, 4}
    if settings.get("padding_idx") is not None:
        assert settings["padding_idx"] not in touched


def test_where_the_table_is_read_in_another_way_too_the_gradient_is_dense() -> None:
    for order in (0, 1):
        sparse, dense = twins()
        losses = [(lambda e: (e(ROWS) ** 2).sum(), lambda e: (e.weight * 2).sum())[i] for i in (order, 1 - order)]
        for table in (sparse, dense):
            for loss in losses:
                loss(table).backward()
        assert not sparse.weight.grad.is_sparse and mg.allclose(sparse.weight.grad, dense.weight.grad)
    sparse, dense = twins()
    for table in (sparse, dense):
        (table(ROWS) @ table.weight.t()).sum().backward()
    assert not sparse.weight.grad.is_sparse and mg.allclose(sparse.weight.grad, dense.weight.grad)
    held = mg.zeros(6, 3)
    sparse.weight.grad = held
    sparse(ROWS).sum().backward()
    same(held.sum(1), [0, 6, 3, 0, 3, 0])
    g, = mg.autograd.grad((sparse(ROWS) ** 2).sum(), sparse.weight, create_graph=True)
    assert not g.is_sparse and g.requires_grad
    seen: list[Any] = []
    sparse.weight.register_hook(seen.append)
    sparse.weight.grad = None
    sparse(ROWS).sum().backward()
    assert not seen[0].is_sparse and not sparse.weight.grad.is_sparse


def test_no_memory_is_made_for_rows_that_were_not_read() -> None:
    table = mg.nn.Embedding(20_000, 16, sparse=True)
    before = mg.stats().allocated
    table(mg.tensor([3, 5])).sum().backward()
    assert mg.stats().allocated - before < 10_000 and table.weight.grad._nnz() == 2


def train(table: Any, optimizer: Any, steps: int = 4) -> Any:
    for i in range(steps):
        optimizer.zero_grad()
        ((table(mg.tensor([i, 2, (2 * i) % 6, 2])) - 1) ** 2).sum().backward()
        optimizer.step()
    return table.weight.detach()


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, lr=0.1, maximize=True), lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), lambda p: optim.Adagrad(p, lr=0.3, lr_decay=0.1, initial_accumulator_value=0.2),
    lambda p: optim.Adagrad(p, lr=0.3, maximize=True), lambda p: optim.SparseAdam(p, lr=0.1)])
def test_a_step_is_that_of_the_dense_gradient(make: Callable[..., Any]) -> None:
    sparse, dense = twins()
    assert mg.allclose(train(sparse, make(sparse.parameters())), train(dense, make(dense.parameters())), atol=1e-6)


def test_the_state_is_saved_and_loaded() -> None:
    sparse, _ = twins()
    other, settings = copy.deepcopy(sparse), {"lr": 0.1, "momentum": 0.9}
    one = optim.SGD(sparse.parameters(), **settings)
    train(sparse, one, 2)
    other.load_state_dict(sparse.state_dict())
    again = optim.SGD(other.parameters(), **settings)
    again.load_state_dict(copy.deepcopy(one.state_dict()))
    assert again.state[other.weight]["momentum_buffer"].is_sparse
    assert mg.allclose(train(sparse, one), train(other, again))


def test_optimizers_that_change_all_elements_refuse() -> None:
    plain = mg.nn.Linear(3, 1)
    for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor"):
        table, _ = twins()
        optimizer = getattr(optim, name)([*plain.parameters(), table.weight], lr=0.1)
        before = plain.weight.detach().clone()
        plain(table(ROWS)).sum().backward()
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            optimizer.step()
        assert mg.equal(plain.weight, before)
    for decaying in (optim.SGD, optim.Adagrad):
        with pytest.raises(RuntimeError, match="weight_decay"):
            decaying([table.weight], lr=0.1, weight_decay=0.1).step()


def test_lbfgs_takes_it_with_the_zeros() -> None:
    found = []
    for table in twins():
        optimizer = optim.LBFGS(table.parameters(), lr=0.5)

        def loss(table: Any = table, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            value = ((table(ROWS) - 1) ** 2).sum()
            value.backward()
            return value

        optimizer.step(loss)
        found.append(table.weight.detach())
    assert mg.allclose(*found)


def test_a_sparse_gradient_is_a_gradient_like_others() -> None:
    table, _ = twins()
    told: list[bool] = []
    table.weight.register_post_accumulate_grad_hook(lambda p: told.append(p.grad.is_sparse))
    table(mg.tensor([1, 2, 1])).sum().backward()
    assert told == [True] and "sparse_coo" in repr(table.weight.grad) and str(table.weight.why())
    table.weight.grad = table.weight.grad.coalesce()
    assert table.weight.grad._nnz() == 2
    with pytest.raises(RuntimeError):
        table.weight.grad = mg.eye(2).to_sparse()
    table.zero_grad(set_to_none=False)
    assert table.weight.grad.is_sparse and table.weight.grad.to_dense().abs().sum() == 0
