"""Sparse matrices: made, multiplied, differentiated; the rest says what it is not."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.sparse import matrix as room
from tools import same

PLACES = [[0, 1, 1, 0], [2, 0, 2, 2]]
DENSE = [[0, 0, 4], [2, 0, 3]]


def matrix(**settings: Any) -> Any:
    return mg.sparse_coo_tensor(PLACES, mg.tensor([1.0, 2.0, 3.0, 3.0], **settings), (2, 3))


def test_forms() -> None:
    a = matrix()
    same(a.to_dense(), DENSE)
    same(a.t().to_dense(), np.transpose(DENSE))
    same(a.coalesce().values(), [4, 2, 3])
    same(a.coalesce().indices(), [[0, 1, 1], [2, 0, 2]])
    assert a.is_sparse and not mg.ones(1).is_sparse and a._nnz() == 4 and a.coalesce()._nnz() == 3 and a.shape == (2, 3) and a.layout is mg.sparse_coo
    same((a + a).to_dense(), 2 * np.array(DENSE))
    same((2 * a / 4).to_dense(), np.array(DENSE) / 2)
    same(a.double().to_dense(), DENSE)
    assert "nnz=4" in repr(a)


def test_sums() -> None:
    a, dense = matrix(requires_grad=True), np.array(DENSE)
    same(mg.sparse.sum(a), 9)
    same(mg.sparse.sum(a, 1).to_dense(), dense.sum(1))
    same(mg.sparse.sum(a, [-2]).to_dense(), dense.sum(0))
    same(mg.sparse.sum(a, (0, 1)), 9)
    rows = mg.sparse.sum(mg.tensor(DENSE).to_sparse(1), 1, dtype=mg.float64)
    assert rows.is_sparse and rows.dtype is mg.float64
    same(rows.to_dense(), dense.sum(1))
    with pytest.raises(IndexError):
        mg.sparse.sum(a, 2)
    weights = mg.tensor([1.0, 2.0])
    values = a._values()
    (mg.sparse.sum(a, 1).to_dense() * weights).sum().backward()
    same(values.grad, [1, 2, 2, 1])


def test_from_and_to_dense() -> None:
    x = mg.tensor(DENSE, dtype=mg.float32, requires_grad=True)
    s = x.to_sparse()
    assert s.is_coalesced() and s._nnz() == 3
    (s.to_dense() * 2).sum().backward()
    same(x.grad, (np.array(DENSE) != 0) * 2)
    same(x.to_sparse(1).to_dense(), DENSE)
    assert x.to_dense() is x


def test_constructors_of_old() -> None:
    a = mg.sparse.FloatTensor(mg.LongTensor(PLACES), mg.FloatTensor([1.0, 2, 3, 3]), mg.Size([2, 3]))
    same(a.to_dense(), DENSE)
    assert isinstance(a, mg.sparse.FloatTensor) and not isinstance(a, mg.sparse.DoubleTensor)
    same(mg.sparse.DoubleTensor(2, 3).to_dense(), np.zeros((2, 3)))


@pytest.mark.parametrize("multiply", [mg.spmm, mg.sparse.mm, lambda a, x: a @ x, mg.mm, mg.matmul, lambda a, x: mg.sparse.addmm(mg.zeros(()), a, x)])
@pytest.mark.parametrize("with_scipy", [True, False])
def test_products_and_their_gradients(multiply: Any, with_scipy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_scipy:
        monkeypatch.setattr(room, "has_scipy", lambda: False)
    a, x = matrix(requires_grad=True), mg.arange(6.0).reshape(3, 2).requires_grad_()
    y = multiply(a, x)
    same(y, np.array(DENSE) @ np.arange(6).reshape(3, 2))
    y.pow(2).sum().backward()
    found = a._values().grad, x.grad
    a, x = matrix(requires_grad=True), mg.arange(6.0).reshape(3, 2).requires_grad_()
    (a.to_dense() @ x).pow(2).sum().backward()
    same(found[0], a._values().grad.numpy())
    same(found[1], x.grad.numpy())


def test_a_vector_and_second_derivatives() -> None:
    same(matrix() @ mg.tensor([1.0, 1.0, 2.0]), [8, 8])
    inputs = (mg.randn(4, dtype=mg.float64, requires_grad=True), mg.randn(3, 2, dtype=mg.float64, requires_grad=True))
    f = lambda v, x: mg.sparse_coo_tensor(PLACES, v, (2, 3)) @ x
    assert mg.autograd.gradcheck(f, inputs) and mg.autograd.gradgradcheck(f, inputs)
    assert mg.autograd.gradcheck(lambda v: mg.sparse_coo_tensor(PLACES, v, (2, 3)).coalesce().values(), inputs[:1])


def test_values_written_later_count_as_they_were() -> None:
    values, x = mg.full((50,), 2.0), mg.ones(50, 1, requires_grad=True)
    y = mg.sparse_coo_tensor(mg.stack([mg.arange(50), mg.arange(50)]), values, (50, 50)) @ x
    values.zero_()
    y.sum().backward()
    same(x.grad, np.full((50, 1), 2.0))


@pytest.mark.parametrize("call, error", [
    (lambda a: a.sin(), AttributeError), (lambda a: a.indices(), RuntimeError), (lambda a: a * mg.ones(2, 3), NotImplementedError),
    (lambda a: a + 1, NotImplementedError), (lambda a: a @ mg.ones(2, 2), RuntimeError), (lambda a: a @ a.t(), NotImplementedError),
    (lambda a: a @ [1.0], TypeError), (lambda a: a @ mg.ones(3, 2, dtype=mg.float64), TypeError), (lambda a: a.requires_grad_(), RuntimeError),
    (lambda a: mg.sparse_coo_tensor([[5], [0]], [1.0], (2, 3)), RuntimeError), (lambda a: mg.sparse_coo_tensor([[0], [0]], [1.0, 2.0]), RuntimeError),
    (lambda a: mg.sparse_coo_tensor([[-1], [0]], [1.0], (2, 3)), RuntimeError), (lambda a: mg.sparse_coo_tensor([[0.5], [0.0]], [1.0]), TypeError)])
def test_mistakes_are_named(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(matrix())
