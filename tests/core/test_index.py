"""What stands between the brackets."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg

x = mg.arange(24.0, dtype=mg.float64).reshape(2, 3, 4)
LISTS: list[list[Any]] = [
    [slice(0, 2), None], [..., 0], [None], [None, 0], [...], [slice(None), [0, 1]], [slice(None), mg.tensor([0, 2])], [0, [1, 2]],
    [mg.tensor([0, 1]), mg.tensor([1, 0])], [mg.tensor([0, 1]), 1], [mg.tensor([True, False])], [x[:, 0, 0] > 0, 0],
    [x.numpy()[:, 0, 0] > 0, 1], [slice(None), range(2)]]


@pytest.mark.parametrize("key", LISTS, ids=str)
def test_a_list_that_cannot_be_positions_is_a_tuple(key: list[Any]) -> None:
    grads = []
    for k in (key, tuple(key)):
        leaf = x.clone().requires_grad_()
        (leaf[k] ** 2).sum().backward()
        y = x * leaf
        y[k] = 5.0
        y[k] *= leaf[k]
        y.sum().backward()
        grads.append((leaf[k].tolist(), y.tolist(), leaf.grad.tolist()))  # type: ignore[union-attr]
    assert grads[0] == grads[1]


@pytest.mark.parametrize("key, shape", [([0, 1], (2, 3, 4)), ([[0, 1], [1, 0]], (2, 2, 3, 4)), ([True, False], (1, 3, 4)), ([], (0, 3, 4)),
                                        ([mg.tensor(0), mg.tensor(1)], (2, 3, 4))], ids=str)
def test_a_list_of_numbers_or_of_lists_is_positions(key: list[Any], shape: tuple[int, ...]) -> None:
    assert x[key].shape == shape
