"""Tables of vectors with sparse gradients, trained in both libraries from one seed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

READERS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "rows": lambda m: (m.nn.Embedding(6, 3, sparse=True), lambda e: e(m.tensor([[1, 2], [4, 1]])) ** 2),
    "padding": lambda m: (m.nn.Embedding(6, 3, padding_idx=2, sparse=True), lambda e: e(m.tensor([[1, 2], [4, 1]])) ** 2),
    "max_norm": lambda m: (m.nn.Embedding(6, 3, max_norm=0.5, sparse=True), lambda e: e(m.tensor([1, 2])) ** 2),
    "sums": lambda m: (m.nn.EmbeddingBag(6, 3, mode="sum", sparse=True), lambda e: e(m.tensor([[1, 2], [4, 1]])) ** 2),
    "means": lambda m: (m.nn.EmbeddingBag(6, 3, sparse=True), lambda e: e(m.tensor([1, 2, 4, 1, 3]), m.tensor([0, 3])) ** 2),
    "weighed": lambda m: (m.nn.EmbeddingBag(6, 3, mode="sum", sparse=True),
                          lambda e: e(m.tensor([[1, 2], [4, 1]]), per_sample_weights=m.tensor([[1.0, 2.0], [3.0, 4.0]])) ** 2),
    "mixed": lambda m: (m.nn.Embedding(6, 3, sparse=True), lambda e: e(m.tensor([1, 2])).sum() + e.weight[0]),
}


@pytest.mark.parametrize("name", READERS)
def test_gradients(name: str) -> None:
    found = []
    for library in (mg, torch):
        library.manual_seed(0)
        table, read = READERS[name](library)
        read(table).sum().backward()
        g = table.weight.grad
        found.append([g.is_sparse, *([tuple(g.shape), g._nnz(), g.is_coalesced(), g.coalesce().indices().tolist()] if g.is_sparse else [])])
        found.append((g.to_dense() if g.is_sparse else g).numpy())
    assert found[0] == found[2]
    np.testing.assert_allclose(found[1], found[3], 1e-6)


OPTIMIZERS: list[Callable[[Any, Any], Any]] = [
    lambda m, p: m.optim.SGD(p, lr=0.1), lambda m, p: m.optim.SGD(p, lr=0.1, maximize=True), lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    lambda m, p: m.optim.SparseAdam(list(p), lr=0.1), lambda m, p: m.optim.SparseAdam(list(p), lr=0.1, maximize=True),
    lambda m, p: m.optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2)]


@pytest.mark.parametrize("number", range(len(OPTIMIZERS)))
def test_steps(number: int) -> None:
    found = []
    for library in (mg, torch):
        library.manual_seed(1)
        table = library.nn.Embedding(8, 3, sparse=True)
        optimizer = OPTIMIZERS[number](library, table.parameters())
        for i in range(4):
            optimizer.zero_grad()
            (table(library.tensor([i, 2, 2 + i, 5])) ** 2).sum().backward()
            optimizer.step()
        found += [table.weight.detach().numpy(), sorted(optimizer.state_dict()["state"].get(0, {}))]
    np.testing.assert_allclose(found[0], found[2], 1e-5, 1e-6)
    assert found[1] == found[3]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor"])
def test_who_refuses(name: str) -> None:
    for library in (mg, torch):
        table = library.nn.Embedding(8, 3, sparse=True)
        table(library.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            getattr(library.optim, name)(table.parameters(), lr=0.1).step()
