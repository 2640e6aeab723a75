"""Sparse tensors as tensors: made, told, written, copied, saved. What they compute is judged in test_computing.py."""
from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import mutagrad as mg
from tools import same

PLACES = [[0, 1, 1, 0], [2, 0, 2, 2]]
DENSE = [[0, 0, 4], [2, 0, 3]]
COO, CSR, CSC, BSR, BSC = mg.sparse_coo, mg.sparse_csr, mg.sparse_csc, mg.sparse_bsr, mg.sparse_bsc
LAYOUTS = [COO, CSR, CSC, BSR, BSC]


def matrix(**settings: Any) -> Any:
    return mg.sparse_coo_tensor(PLACES, mg.tensor([1.0, 2.0, 3.0, 3.0]), (2, 3), **settings)


def in_layout(layout: Any, data: Any = DENSE, **settings: Any) -> Any:
    x = mg.tensor(data, dtype=settings.get("dtype", mg.float64))
    return x.to_sparse(layout=layout, blocksize=(1, 3) if layout in (BSR, BSC) else None)


def test_what_it_tells() -> None:
    a = matrix()
    assert isinstance(a, mg.Tensor) and mg.is_tensor(a) and a.is_sparse and a.layout is COO
    assert a.shape == (2, 3) == a.size() and a.size(-1) == 3 and a.ndimension() == a.dim() == a.ndim == 2 and a.numel() == 6 == a.nelement() and len(a) == 2
    assert a.sparse_dim() == 2 and a.dense_dim() == 0 and a._nnz() == 4 and not a.is_coalesced() and a.dtype is mg.float32 and a.device == mg.device("cpu")
    assert a.type() == "torch.sparse.FloatTensor" and a.is_floating_point() and not a.is_complex() and a.element_size() == 4 and not a.is_contiguous()
    assert not mg.ones(1).is_sparse and mg.ones(2, 3).sparse_dim() == 0 and mg.ones(2, 3).dense_dim() == 2
    c = a.coalesce()
    same(c.values(), [4, 2, 3])
    same(c.indices(), [[0, 1, 1], [2, 0, 2]])
    assert c.is_coalesced() and c.coalesce() is c and c._nnz() == 3
    same(a.to_dense(), DENSE)
    assert repr(a * 1).startswith("tensor(indices=tensor([[0, 1, 1, 0],\n                       [2, 0, 2, 2]]),\n       values=tensor([1., 2., 3., 3.]),\n       size=(2, 3), nnz=4, layout=")


@pytest.mark.parametrize("size, sparse, dense", [((4, 3), 1, 1), ((4, 3, 2), 1, 2), ((2, 2, 3, 2), 3, 1), ((3,), 1, 0)])
def test_hybrid_tensors(size: tuple[int, ...], sparse: int, dense: int) -> None:
    x = np.arange(np.prod(size)).reshape(size) % 3 * (np.arange(size[0]) % 2).reshape(-1, *[1] * (len(size) - 1))
    a = mg.tensor(x, dtype=mg.float64).to_sparse(sparse)
    assert (a.sparse_dim(), a.dense_dim()) == (sparse, dense) and a.values().shape[1:] == size[sparse:]
    same(a.to_dense(), x)
    same((a + a).to_dense(), 2 * x)
    same((a * a).to_dense(), x * x)
    for d in range(len(size)):
        same(mg.sparse.sum(a, d).to_dense(), x.sum(d))
        same(a.select(d, -1).to_dense(), x.take(-1, d))
        same(a.index_select(d, mg.tensor([1, 0, 1])).to_dense(), x.take([1, 0, 1], d))
        same(mg.cat([a, a], d).to_dense(), np.concatenate([x, x], d))
        same(mg.stack([a, a], d).to_dense(), np.stack([x, x], d))
    same(a[1:].to_dense(), x[1:])


def test_zero_sparse_dimensions_and_empty_ones() -> None:
    assert mg.sparse_coo_tensor(mg.zeros(0, 1, dtype=mg.int64), mg.ones(1), ()).to_dense().item() == 1
    e = mg.sparse_coo_tensor((2, 3))
    assert e._nnz() == 0 and e.is_coalesced() and mg.equal(e, mg.zeros(2, 3, layout=COO)) and mg.sparse_coo_tensor(size=(2, 3)).shape == (2, 3)
    same((e + matrix()).to_dense(), DENSE)
    same(e @ mg.ones(3, 2), np.zeros((2, 2)))
    assert mg.empty(2, 3, layout=CSR).crow_indices().tolist() == [0, 0, 0] and mg.zeros(4, 2, 3, layout=CSC).ccol_indices().shape == (4, 4)
    assert e.to_sparse_csr()._nnz() == 0 and e.to_sparse_bsr((1, 3)).values().shape == (0, 1, 3)


def test_compressed_layouts_are_scipys() -> None:
    x = in_layout(CSR)
    for layout, kind in ((CSR, scipy.sparse.csr_array), (CSC, scipy.sparse.csc_array)):
        x, expected = in_layout(layout), kind(np.array(DENSE))
        starts, others = (x.crow_indices(), x.col_indices()) if layout is CSR else (x.ccol_indices(), x.row_indices())
        same(starts, expected.indptr)
        same(others, expected.indices)
        same(x.values(), expected.data)
        assert x.is_sparse is False and x.is_sparse_csr is (layout is CSR) and x.sparse_dim() == 2 and x._nnz() == 3
    blocks = np.kron([[0, 1], [1, 1], [0, 0]], np.ones((2, 3))) * np.arange(36).reshape(6, 6)
    expected = scipy.sparse.bsr_array(blocks, blocksize=(2, 3))
    x = mg.tensor(blocks).to_sparse_bsr((2, 3))
    same(x.crow_indices(), expected.indptr)
    same(x.col_indices(), expected.indices)
    same(x.values(), expected.data)
    same(mg.sparse_bsr_tensor(x.crow_indices(), x.col_indices(), x.values()).to_dense(), blocks[:, :])


@pytest.mark.parametrize("start", LAYOUTS)
@pytest.mark.parametrize("end", LAYOUTS)
def test_conversions(start: Any, end: Any) -> None:
    x = np.array(DENSE * 2, float)
    a = in_layout(start, x)
    b = a.to_sparse(layout=end, blocksize=(2, 3) if end in (BSR, BSC) and start not in (BSR, BSC) else None)
    assert b.layout is end
    same(b.to_dense(), x)
    same(b.t().to_dense(), x.T)
    assert {b.t().layout, b.layout} in ({COO}, {CSR, CSC}, {BSR, BSC})


def test_batches_and_dense_dimensions_of_compressed_layouts() -> None:
    x = np.stack([DENSE, np.roll(DENSE, 1, 1)]).astype(float)
    for layout in (CSR, CSC):
        a = mg.tensor(x).to_sparse(layout=layout)
        assert a.values().shape == (2, 3) and a.dense_dim() == 0
        same(a.to_dense(), x)
        same(a @ mg.ones(2, 3, 2, dtype=mg.float64), x @ np.ones((2, 3, 2)))
        same(a.transpose(1, 2).to_dense(), x.transpose(0, 2, 1))
        same(a.to_sparse().to_dense(), x)
        same(a[1].to_dense(), x[1])
        hybrid = mg.tensor(x.transpose(1, 2, 0)).to_sparse(layout=layout, dense_dim=1)
        assert hybrid.dense_dim() == 1
        same(hybrid.to_dense(), x.transpose(1, 2, 0))
    with pytest.raises(RuntimeError, match="same number of specified elements"):
        mg.tensor([DENSE, [[1, 1, 1], [1, 1, 1]]]).to_sparse_csr()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(layout: Any) -> None:
    x = in_layout(layout).requires_grad_()
    file = io.BytesIO()
    mg.save({"x": x, "y": x.detach()}, file)
    for safe in (True, False):
        file.seek(0)
        loaded = mg.load(file, weights_only=safe)
        assert loaded["x"].requires_grad and not loaded["y"].requires_grad and mg.equal(loaded["y"], x.detach()) and loaded["y"].is_sparse is x.is_sparse
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), loaded["x"]):
        assert y.layout is layout and y.requires_grad and y.is_leaf and mg.equal(y, x)
    y = x.detach().clone()
    y.values().zero_()
    assert not mg.equal(x, y) and y.values().any().item() is False
    assert x.to(mg.float64) is x and x.float().dtype is mg.float32 and x.to(mg.float32).layout is layout and x.cpu() is x and x.type_as(mg.ones(1)).dtype is mg.float32
    assert mg.zeros_like(x).layout is layout and not mg.zeros_like(x).to_dense().any() and mg.empty_like(x).shape == x.shape
    assert mg.as_tensor(x) is x and mg.tensor(x.detach()).layout is layout
    module = mg.nn.Module()
    module.register_buffer("a", x.detach())
    module.float().load_state_dict(module.state_dict())
    assert module.a.dtype is mg.float32 and module.a.layout is layout


def test_an_archive_of_pytorchs_form_loads() -> None:
    """Its pickle names `_rebuild_sparse_tensor`; tests/oracle/test_sparse.py reads real ones."""
    from mutagrad.files import safe_unpickler as files
    made = files.sparse("torch.sparse_csr", (mg.tensor([0, 1]), mg.tensor([1]), mg.ones(1), (1, 2)))
    same(made.to_dense(), [[0, 1]])
    places = mg.zeros(1, 1, dtype=mg.int64)
    for kind, parts in (("torch.strided", (places, mg.ones(1), (1,))), ("torch.sparse_coo", (places + 7, mg.ones(1), (1,))), ("torch.sparse_coo", (places, mg.ones(1))), (3, ()),
                        ("torch.sparse_csr", (mg.tensor([0, 9]), mg.tensor([1]), mg.ones(1), (1, 2))), ("torch.sparse_coo", (mg.zeros(1, 2, dtype=mg.int64), mg.ones(2), (1,), True))):
        with pytest.raises(RuntimeError):
            files.sparse(kind, parts)
    meter = files.Meter(100)
    with pytest.raises(RuntimeError, match="again and again"):
        files.sparse("torch.sparse_coo", (places.expand(1, 1 << 30), mg.ones(1).expand(1 << 30), (1,)), meter=meter)


# -------------------------------------------------------------------------------------------------- leaves and writes

@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_a_leaf_is_sparse(layout: Any) -> None:
    x, w = in_layout(layout).requires_grad_(), mg.arange(6.0, dtype=mg.float64).reshape(3, 2)
    assert x.is_leaf and x.grad is None and x.grad_fn is None
    y = x @ w
    y.pow(2).sum().backward()
    dense = mg.tensor(DENSE, dtype=mg.float64, requires_grad=True)
    (dense @ w).pow(2).sum().backward()
    assert x.grad.layout is layout and x.grad.shape == x.shape and x.grad.values().shape == x.values().shape
    same(x.grad.to_dense(), np.where(x.detach().to_dense().numpy() != 0, dense.grad.numpy(), dense.grad.numpy() if layout in (BSR, BSC) else 0))
    (x @ w).sum().backward()
    assert mg.equal(x.grad, mg.autograd.grad((x @ w).pow(2).sum() + (x @ w).sum(), x)[0])
    x.grad = None
    assert x.grad is None
    x.grad = x.detach() * 2
    assert mg.equal(x.grad, x.detach() * 2)


def test_a_place_that_is_held_twice_has_one_gradient() -> None:
    x = matrix(requires_grad=True)
    (x @ mg.ones(3, 1)).sum().backward()
    assert x.grad.is_coalesced() and x.grad._nnz() == 3
    same(x.grad.to_dense(), np.array(DENSE) != 0)
    y = matrix(requires_grad=True)
    (y * y).sum().backward()
    same(y.grad.to_dense(), 2 * np.array(DENSE))


def test_values_given_have_the_gradient() -> None:
    values = mg.tensor([1.0, 2.0, 3.0, 3.0], requires_grad=True)
    a = mg.sparse_coo_tensor(PLACES, values, (2, 3))
    assert a.requires_grad and not a.is_leaf and a.grad_fn is not None
    (mg.sparse.sum(a, 1).to_dense() * mg.tensor([1.0, 2.0])).sum().backward()
    same(values.grad, [1, 2, 2, 1])
    assert mg.sparse_coo_tensor(PLACES, values, (2, 3), requires_grad=True).is_leaf


def test_seeds_hooks_and_sparse_outputs() -> None:
    x = in_layout(COO).requires_grad_()
    seen = []
    x.register_hook(lambda g: seen.append(g) or g * 2)
    y = x * 3
    y.retain_grad()
    y.backward(mg.ones(2, 3, dtype=mg.float64))
    same(seen[0].values(), [3, 3, 3])
    same(x.grad.values(), [6, 6, 6])
    same(y.grad.values(), [1, 1, 1])
    g, = mg.autograd.grad(x * 2, x, (x * 5).detach())
    same(g.to_dense(), 20 * np.array(DENSE))
    g, = mg.autograd.grad((x * x).sum(), [x], create_graph=True)
    g2, = mg.autograd.grad((g * g).sum(), x)
    same(g2.to_dense(), 2 * 2 * 2 * 2 * 2 * np.array(DENSE) * 2)
    mg.autograd.backward([x.sum(), (x * 2).sum()], inputs=[x])


def test_writes_to_values_are_differentiable() -> None:
    x = in_layout(COO).requires_grad_()
    y = x * 2
    y.values()[1:] *= y.values()[:-1]
    y.mul_(3)
    y.values()[0] = 7.0
    y.to_dense().sum().backward()  # 7 + 3 * 2 a * 2 b + 3 * 2 b * 2 c, of a, b, c = 4, 2, 3
    same(x.grad.values(), [12 * 2, 12 * (4 + 3), 12 * 2])
    values = mg.full((50,), 2.0)
    w = mg.ones(50, 1, requires_grad=True)
    y = mg.sparse_coo_tensor(mg.stack([mg.arange(50), mg.arange(50)]), values, (50, 50)) @ w
    values.zero_()
    y.sum().backward()
    same(w.grad, np.full((50, 1), 2.0))


def test_in_place_forms() -> None:
    x = in_layout(COO).requires_grad_()
    values = x.values()
    x.mul_(2)
    same(values, [8, 4, 6])
    x.add_(mg.eye(2, 3, dtype=mg.float64).to_sparse())
    assert x._nnz() == 5 and not x.is_leaf
    x.to_dense().square().sum().backward()
    same(x.grad.to_dense(), 2 * 2 * 2 * np.array(DENSE))
    y = in_layout(CSR)
    y.neg_().sin_().div_(2)
    same(y.to_dense(), np.sin(-np.array(DENSE)) / 2)
    assert not y.zero_().to_dense().any() and in_layout(COO).zero_()._nnz() == 0
    y = in_layout(COO)
    y.copy_(y * 3)
    same(y.to_dense(), 3 * np.array(DENSE))
    y.t_()
    assert y.shape == (3, 2)
    y.resize_as_sparse_(mg.zeros(4, 4, layout=COO))
    assert y.shape == (4, 4) and y._nnz() == 3
    y.sparse_resize_and_clear_((2, 2), 1, 1)
    assert y._nnz() == 0 and y.dense_dim() == 1


def test_constructors_of_old() -> None:
    a = mg.sparse.FloatTensor(mg.LongTensor(PLACES), mg.FloatTensor([1.0, 2, 3, 3]), mg.Size([2, 3]))
    same(a.to_dense(), DENSE)
    assert isinstance(a, mg.sparse.FloatTensor) and not isinstance(a, mg.sparse.DoubleTensor)
    same(mg.sparse.DoubleTensor(2, 3).to_dense(), np.zeros((2, 3)))
    x = mg.ones(3, 2)
    assert getattr(mg.sparse, x.type().split(".")[-1]) is mg.sparse.FloatTensor


def test_invariants() -> None:
    unordered = lambda **settings: mg.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), **settings)
    assert not mg.sparse.check_sparse_tensor_invariants.is_enabled()
    same(unordered().to_dense(), [[2, 1]])
    with mg.sparse.check_sparse_tensor_invariants():
        assert mg.sparse.check_sparse_tensor_invariants.is_enabled()
        with pytest.raises(RuntimeError, match="not in order"):
            unordered()
        unordered(check_invariants=False)
    with pytest.raises(RuntimeError):
        mg.sparse.check_sparse_tensor_invariants()(unordered)()
    mg.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2), check_invariants=True)
    with pytest.raises(RuntimeError):
        unordered(check_invariants=True)


@pytest.mark.parametrize("call, error", [
    (lambda a: a.exp(), NotImplementedError), (lambda a: mg.cos(a), NotImplementedError), (lambda a: a.indices(), RuntimeError), (lambda a: a.values(), RuntimeError),
    (lambda a: a + 1, RuntimeError), (lambda a: a + mg.ones(2, 3), RuntimeError), (lambda a: 1 / a, RuntimeError), (lambda a: a / mg.ones(2, 3), RuntimeError),
    (lambda a: a**0, RuntimeError), (lambda a: 2**a, RuntimeError), (lambda a: a % 2, RuntimeError), (lambda a: a == a, RuntimeError), (lambda a: a > 0, RuntimeError),
    (lambda a: a @ mg.ones(2, 2), RuntimeError), (lambda a: a @ [1.0], TypeError), (lambda a: a @ mg.ones(3, 2, dtype=mg.float64), TypeError),
    (lambda a: a.numpy(), TypeError), (lambda a: np.asarray(a), TypeError), (lambda a: a.tolist(), RuntimeError), (lambda a: a.stride(), RuntimeError), (lambda a: a.storage(), RuntimeError),
    (lambda a: a.reshape(6), RuntimeError), (lambda a: a.view(6), RuntimeError), (lambda a: a.__setitem__(0, 1), TypeError), (lambda a: mg.ones(2, 3).__setitem__(0, a), RuntimeError),
    (lambda a: mg.ones(2, 3).copy_(a), RuntimeError), (lambda a: a.copy_(mg.ones(2, 3)), RuntimeError), (lambda a: a.fill_(1), RuntimeError), (lambda a: a.crow_indices(), RuntimeError),
    (lambda a: mg.ones(2).coalesce(), RuntimeError), (lambda a: mg.ones(2).values(), RuntimeError), (lambda a: mg.ones(2)._nnz(), RuntimeError), (lambda a: mg.ones(2).crow_indices(), RuntimeError),
    (lambda a: mg.cat([a, mg.ones(2, 3)]), RuntimeError), (lambda a: a[5], IndexError), (lambda a: a[0, 0, 0], IndexError), (lambda a: a[mg.ones(2, 3).bool()], RuntimeError),
    (lambda a: mg.nn.Parameter(a), RuntimeError), (lambda a: mg.nn.functional.softmax(a, 1), RuntimeError), (lambda a: a.to_dense().requires_grad_() + a.to_sparse_bsr((1, 3)).exp(), RuntimeError),
    (lambda a: mg.sparse_coo_tensor([[5], [0]], [1.0], (2, 3)), RuntimeError), (lambda a: mg.sparse_coo_tensor([[0], [0]], [1.0, 2.0]), RuntimeError), (lambda a: a.norm(dim=0), RuntimeError),
    (lambda a: mg.sparse_coo_tensor([[-1], [0]], [1.0], (2, 3)), RuntimeError), (lambda a: mg.sparse_coo_tensor([[0.5], [0.0]], [1.0]), TypeError), (lambda a: mg.sparse_coo_tensor([0], [1.0]), RuntimeError),
    (lambda a: mg.sparse_csr_tensor([0, 1], [5], [1.0], (1, 2)), RuntimeError), (lambda a: mg.sparse_csr_tensor([0, 2], [0], [1.0], (1, 2)), RuntimeError),
    (lambda a: mg.sparse_csr_tensor([0, 1], [0], [1.0], (3, 2)), RuntimeError), (lambda a: mg.sparse_csr_tensor([1, 1], [0], [1.0]), RuntimeError), (lambda a: a.to_sparse(1), RuntimeError),
    (lambda a: a.to_sparse_bsr((2, 2)), RuntimeError), (lambda a: a.to_dense().to_sparse(layout=BSR), RuntimeError), (lambda a: a.to_dense().to_sparse(7), RuntimeError),
    (lambda a: a.requires_grad_().to_dense(masked_grad=False), NotImplementedError), (lambda a: mg.compile(lambda x: x.sin())(a).exp(), RuntimeError)])
def test_mistakes_are_named(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(matrix())


def test_functions_that_were_imported_before_say_so() -> None:
    program = "\n".join(["import mutagrad as mg", "from mutagrad import add, matmul", "from mutagrad.autograd import grad, gradcheck", "a = mg.eye(2).to_sparse().requires_grad_()",
                         "try: add(a, a)", "except NotImplementedError as error: assert 'by its name' in str(error)", "else: raise SystemExit('added')",
                         "assert grad((a @ mg.ones(2, 1)).sum(), a)[0].layout is mg.sparse_coo",
                         "assert gradcheck(lambda x: x * x, (mg.eye(2, dtype=mg.float64).to_sparse().requires_grad_(),))"])
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_view_that_is_a_leaf_is_pickled_in_its_own_shape() -> None:
    x = mg.ones(3, 1).reshape(3).requires_grad_()
    assert pickle.loads(pickle.dumps(x)).shape == (3,) == copy.deepcopy(x).shape


class Times(mg.autograd.Function):
    """A sparse matrix times a dense one, both of which are saved; the sparse gradient is given as a dense one."""

    @staticmethod
    def forward(ctx: Any, sparse: Any, dense: Any) -> Any:
        ctx.save_for_backward(sparse, dense)
        ctx.kept = sparse
        return sparse @ dense, sparse * 2

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        sparse, dense = ctx.saved_tensors
        assert sparse.is_sparse and h.is_sparse and mg.equal(sparse, ctx.kept)
        return g @ dense.t() + 2 * h.to_dense(), sparse.mT @ g


def test_functions_of_sparse_tensors() -> None:
    w = mg.arange(6.0, dtype=mg.float64).reshape(3, 2).requires_grad_()
    for x in (in_layout(COO), in_layout(COO).requires_grad_()):
        y, z = Times.apply(x, w)
        assert z.is_sparse
        (y.pow(2).sum() + (z * z).sum()).backward()
        plain, v = mg.tensor(DENSE, dtype=mg.float64, requires_grad=True), w.detach().clone().requires_grad_()
        ((plain @ v).pow(2).sum() + (4 * plain * plain).sum()).backward()
        same(w.grad, v.grad.numpy())
        w.grad = None
    same(x.grad.to_dense(), np.where(np.array(DENSE) != 0, plain.grad.numpy(), 0))
