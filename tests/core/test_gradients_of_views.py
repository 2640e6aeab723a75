"""`autograd.grad` by any window on memory that has several histories: all that reads an element counts, through whichever window."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

SIZE = 6


def window(r: random.Random, x: Any) -> Any:
    kind = r.randrange(5)
    start, stop = sorted(r.sample(range(SIZE + 1), 2))
    return (x, x[start:stop], x[::2], x[r.randrange(SIZE)], x.reshape(2, 3)[:, r.randrange(3)])[kind]


@pytest.mark.parametrize("seed", range(300))
@pytest.mark.parametrize("create_graph", [False, True])
def test_all_that_reads_an_element_counts(seed: int, create_graph: bool) -> None:
    r = random.Random(seed)
    flat = mg.ones(SIZE, dtype=mg.float64)
    factor = mg.tensor(2.0, dtype=mg.float64, requires_grad=True)
    start = r.randrange(3)
    leaves = [flat[start:start + 2].requires_grad_(), flat[4:].requires_grad_()]
    leaves[0].mul_(factor)  # the memory has a history from here on
    for _ in range(r.randrange(5)):
        target = window(r, flat) if r.random() < 0.6 else r.choice(leaves)
        target.mul_(factor) if r.random() < 0.7 else target.add_(factor)
    weights = np.zeros(SIZE)
    loss = 0.0
    for _ in range(r.randrange(1, 4)):  # what reads, and how much it makes of each element
        by = r.random() + 0.5
        which = r.randrange(3)
        read = (flat, leaves[0], leaves[1])[which]
        loss = loss + by * read.sum()
        (weights, weights[start:start + 2], weights[4:])[which][...] += by
    asked = r.choice([flat, *leaves, leaves[0][1:], flat[1:5]])
    expected = {id(flat): weights, id(leaves[0]): weights[start:start + 2], id(leaves[1]): weights[4:]}.get(
        id(asked), weights[start + 1:start + 2] if asked.numel() == 1 else weights[1:5])
    got, = mg.autograd.grad(loss, asked, create_graph=create_graph, materialize_grads=True)
    np.testing.assert_allclose(got.detach().numpy(), expected)
