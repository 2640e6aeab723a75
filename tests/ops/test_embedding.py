"""Tables: which rows get gradient, the limit on their length, and large tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import numpy as host, places

F = mg.nn.functional
INDEX = [[0, 2, 0], [5, 2, 0]]


def table(rows: int = 6, columns: int = 3) -> Any:
    return mg.tensor(np.random.default_rng(1).normal(size=(rows, columns)), requires_grad=True)


def test_the_padding_row_is_read_and_gets_no_gradient() -> None:
    x = table()
    out = F.embedding(mg.tensor(INDEX), x, padding_idx=-6)
    assert mg.equal(out[0, 0], x[0])
    out.sum().backward()
    assert x.grad[:, 0].tolist() == [0, 0, 2, 0, 0, 1]


def test_gradient_divided_by_frequency() -> None:
    x = table()
    F.embedding(mg.tensor(INDEX), x, scale_grad_by_freq=True).sum().backward()
    assert np.allclose(x.grad[:, 0].numpy(), [1, 0, 1, 0, 0, 1])
    x.grad = None
    F.embedding_bag(mg.tensor(INDEX), x, scale_grad_by_freq=True, mode="sum").sum().backward()
    assert np.allclose(x.grad[:, 0].numpy(), [1, 0, 1, 0, 0, 1])


def test_second_order_goes_through_padding() -> None:
    x, w = table(), mg.ones(3, requires_grad=True)
    g, = mg.autograd.grad((F.embedding(mg.tensor(INDEX), x, padding_idx=0) * w).pow(2).sum(), x, create_graph=True)
    second, = mg.autograd.grad(g.sum(), w)
    counts = np.array([0, 0, 2, 0, 0, 1])
    np.testing.assert_allclose(second.numpy(), (4 * counts[:, None] * x.detach().numpy()).sum(0), 1e-6)


def test_long_rows_are_shortened_in_the_table() -> None:
    x = mg.tensor([[3.0, 4.0], [0.1, 0.0], [6.0, 8.0]], requires_grad=True)
    out = F.embedding(mg.tensor([0, 1]), x, max_norm=1.0)
    np.testing.assert_allclose(out.detach().numpy(), [[0.6, 0.8], [0.1, 0]], 1e-6)
    np.testing.assert_allclose(x.detach().numpy(), [[0.6, 0.8], [0.1, 0], [6, 8]], 1e-6)
    out.sum().backward()
    assert x.is_leaf and x.grad.tolist() == [[1, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize("scipy", [True, False], ids=["SciPy", "without"])
@pytest.mark.parametrize(("shape", "pick"), [
    ((500, 64), (0,)), ((40, 5, 64), (0,)), ((30, 50, 40), (1,)), ((30, 50, 40), (2,)), ((20, 30, 40), (0, 2)), ((20, 30, 40), (1, 2)), ((20, 30, 40), (0, 1, 2)),
])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "complex64"])
def test_adding_at_places_counts_every_duplicate(shape: tuple[int, ...], pick: tuple[int, ...], dtype: str, scipy: bool, monkeypatch: Any) -> None:
    if not scipy:
        monkeypatch.setattr(places, "_sparse_product", lambda: None)
    rng = np.random.default_rng(2)
    index = tuple(rng.integers(0, n, (60, 10)) if d in pick else slice(None) for d, n in enumerate(shape))
    array = rng.integers(0, 5, shape).astype(dtype)
    values = rng.integers(0, 3, array[index].shape).astype(dtype)
    expected = array.copy()
    np.add.at(expected, index, values)
    places.add_at(array, index, values)
    assert np.array_equal(array, expected)


def test_rows_of_a_large_table() -> None:
    x = table(300, 64)
    index = np.random.default_rng(3).integers(0, 300, (50, 40))
    (F.embedding(mg.tensor(index), x) * 2).sum().backward()
    assert np.array_equal(x.grad[:, 0].numpy(), 2.0 * np.bincount(index.reshape(-1), minlength=300))


@pytest.mark.parametrize(("call", "error"), [
    (lambda x: F.embedding(mg.tensor([6]), x), IndexError),
    (lambda x: F.embedding(mg.tensor([-1]), x), IndexError),
    (lambda x: F.embedding(mg.tensor([1.0]), x), RuntimeError),
    (lambda x: F.embedding([1], x), TypeError),
    (lambda x: F.embedding(mg.tensor([1]), x[0]), RuntimeError),
    (lambda x: F.embedding(mg.tensor([1]), x, padding_idx=6), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([[1, 2]]), x, mode="max", sparse=True), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([1, 2]), x), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([[1, 2]]), x, mg.tensor([0])), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([1, 2]), x, mg.tensor([1])), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([1, 2]), x, mg.tensor([0, 3])), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([[1, 2]]), x, mode="min"), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([[1, 2]]), x, mode="max", scale_grad_by_freq=True), ValueError),
    (lambda x: F.embedding_bag(mg.tensor([[1, 2]]), x, per_sample_weights=mg.ones(1, 2).double()), NotImplementedError),
    (lambda x: F.embedding_bag(mg.tensor([[1, 2]]), x, mode="sum", per_sample_weights=mg.ones(2).double()), ValueError),
])
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        call(table())
    assert isinstance(raised.value, mg.MutagradError)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_choosing_by_bits_is_choosing(dtype: str) -> None:
    rng = np.random.default_rng(4)
    mask, x, y = rng.random((80, 70)) < 0.5, rng.normal(size=(80, 70)), rng.normal(size=(80, 70))
    x[::3, ::2], x[::5, 1::3], x[1::5, ::3] = np.inf, np.nan, -0.0
    with np.errstate(invalid="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    zero, one = np.zeros((), dtype), np.ones((), dtype)
    for a, b in ((x, y), (x, 0.0), (0.0, x), (x, zero), (one, y), (x.T.copy().T, y), (x[:1], y), (x, 1)):
        found, expected = host.choose(mask, a, b), np.where(mask, a, b)
        assert found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=dtype != "int64")
        assert np.array_equal(np.signbit(found), np.signbit(expected)) if dtype != "int64" else True


def test_sparse_adam_leaves_rows_alone_that_were_not_read() -> None:
    layer, dense = mg.nn.Embedding(5, 2, padding_idx=0, sparse=True), mg.nn.Embedding(5, 2, padding_idx=0)
    dense.load_state_dict(layer.state_dict())
    first = layer.weight.detach().clone()
    sparse, adam = mg.optim.SparseAdam(layer.parameters(), lr=0.1), mg.optim.Adam(dense.parameters(), lr=0.1)
    for rows in ([0, 1, 1, 3], [1, 3]):
        for module, optimizer in ((layer, sparse), (dense, adam)):
            optimizer.zero_grad()
            (module(mg.tensor(rows)) ** 2).sum().backward()
            optimizer.step()
    assert mg.allclose(layer.weight[[1, 3]], dense.weight[[1, 3]], atol=1e-5), "where every step touches a row it is Adam"
    (layer(mg.tensor([4])) ** 2).sum().backward()
    before = layer.weight.detach().clone()
    sparse.zero_grad()
    (layer(mg.tensor([4])) ** 2).sum().backward()
    sparse.step()
    assert mg.equal(layer.weight[:4], before[:4]) and mg.equal(layer.weight[[0, 2]], first[[0, 2]]) and not mg.equal(layer.weight[4], before[4])


def test_tables_of_integers_and_a_last_offset_before_the_end() -> None:
    assert mg.nn.Embedding.from_pretrained(mg.tensor([[1, 2], [3, 4]]))(mg.tensor([1])).tolist() == [[3, 4]]
    x = table()
    assert mg.equal(F.embedding_bag(mg.tensor([0, 1, 2]), x, mg.tensor([0, 2, 2]), include_last_offset=True, mode="sum"), mg.stack([x[0] + x[1], x[2]]))
