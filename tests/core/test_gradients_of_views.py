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


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("by_whole", [False, True])
def test_reads_before_the_last_write_do_not_count(before: bool, by_whole: bool) -> None:
    """As it is now, whichever history is asked: what read it before it was last written read something else."""
    whole = mg.tensor([1.0, 2.0, 3.0, 4.0])
    leaf = whole[:].requires_grad_()
    if before:
        leaf.mul_(1.0)
    leaf[2] = leaf.sum() * 0.5
    loss = (whole**2).sum() + (leaf**2).sum()
    assert mg.autograd.grad(loss, whole if by_whole else leaf)[0].tolist() == [4.0, 8.0, 20.0, 16.0]


@pytest.mark.parametrize("write", [lambda leaf: leaf.mul_(1.0), lambda leaf: leaf[:1].mul_(1.0)])
def test_how_it_was_last_written_makes_no_difference(write: Any) -> None:
    whole = mg.ones(4)
    leaf = whole[1:3].requires_grad_()
    leaf.mul_(1.0)
    read_before = whole[3] * 10
    write(leaf)
    assert mg.autograd.grad(read_before + whole.sum(), whole)[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("first", [False, True])
def test_an_unnamed_value_written_to_part_of_a_leaf_is_told_to_the_whole(first: bool) -> None:
    whole = mg.ones(3)
    leaf = whole[:].requires_grad_()
    if first:
        leaf.mul_(1.0)
    leaf[0:2] = leaf[0:2] * 5
    whole.sum().backward()
    assert leaf.grad.tolist() == [5.0, 5.0, 1.0]
