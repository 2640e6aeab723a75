"""Soft order: stochastic rows, ranks that sum up, ties, and a loss of ranks that learns."""
from __future__ import annotations

import pytest

import mutagrad as mg
from mutagrad import relax
from tools import same


def test_rows_are_weights_and_each_has_its_peak_where_the_element_is() -> None:
    x = mg.randn(4, 7, generator=mg.Generator().manual_seed(0))
    for t in (0.01, 1.0, 30.0):
        rows = relax.permutation(x, temperature=t)
        assert rows.shape == (4, 7, 7) and bool((rows >= 0).all()) and mg.allclose(rows.sum(-1), mg.ones(4, 7))
        assert mg.equal(rows.argmax(-1), x.argsort(-1))


def test_sorting_and_its_matrix_are_one() -> None:
    x = mg.randn(5, 3, dtype=mg.float64)
    values, indices = relax.sort(x, 0, True, temperature=0.4)
    rows = relax.permutation(x, 0, True, temperature=0.4)
    same(values, (rows @ x.T[..., None])[..., 0].T), same(indices, (rows @ mg.arange(5, dtype=mg.float64)).T)
    same(relax.argsort(x, 0, True, temperature=0.4), indices)
    assert relax.sort(x).values.shape == relax.sort(x).indices.shape == (5, 3)


def test_the_first_of_the_sorted_are_the_top() -> None:
    x = mg.randn(2, 6, 3)
    for largest in (True, False):
        whole, top = relax.sort(x, 1, largest, temperature=0.3), relax.topk(x, 4, 1, largest, temperature=0.3)
        same(top.values, whole.values[:, :4]), same(top.indices, whole.indices[:, :4], 1e-5)
    same(relax.topk(x, 1, temperature=0.3).indices[..., 0], relax.argmax(x, -1, temperature=0.3), 1e-5)
    assert relax.topk(x, 0, 1).values.shape == (2, 0, 3)


def test_equal_elements_keep_their_value_and_share_rank_and_place() -> None:
    x = mg.tensor([2.0, 1.0, 2.0, 5.0])
    values, indices = relax.sort(x, temperature=1e-4)
    same(values, [1, 2, 2, 5]), same(indices, [1, 1, 1, 3]), same(relax.rank(x, temperature=1e-4), [1.5, 0, 1.5, 3])
    same(relax.topk_mask(x, 2, temperature=1e-4), [0.5, 0, 0.5, 1])


def test_ranks_sum_up_whatever_the_temperature() -> None:
    x = mg.randn(3, 8, dtype=mg.float64)
    for t in (1e-3, 1.0, 50.0):
        same(relax.rank(x, temperature=t).sum(1), [28] * 3), same(relax.rank(x, descending=True, temperature=t), 7 - relax.rank(x, temperature=t))


def test_a_mask_of_all_or_none_is_constant() -> None:
    x = mg.randn(2, 3, requires_grad=True)
    assert mg.equal(relax.topk_mask(x, 3), mg.ones(2, 3)) and mg.equal(relax.topk_mask(x, 2, 0), mg.ones(2, 3)) and mg.equal(relax.topk_mask(x, 0), mg.zeros(2, 3))


@pytest.mark.parametrize("k", [-1, 4, 1.5, True, "1"])
def test_k_is_a_number_of_elements(k: object) -> None:
    for function in (relax.topk, relax.topk_mask):
        with pytest.raises(ValueError, match="k must be an integer from 0 to 3"):
            function(mg.ones(3), k)  # type: ignore[arg-type]


def test_a_loss_of_ranks_learns_an_order() -> None:
    wanted = mg.tensor([3.0, 0.0, 4.0, 1.0, 2.0])
    x = mg.tensor([0.1, 0.2, 0.3, 0.4, 0.5], requires_grad=True)
    optimizer = mg.optim.Adam([x], 0.05)
    for _ in range(150):
        optimizer.zero_grad()
        ((relax.rank(x, temperature=0.2) - wanted) ** 2).sum().backward()
        optimizer.step()
    assert mg.equal(x.argsort().argsort(), wanted.long())
