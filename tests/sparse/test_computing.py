"""What sparse tensors compute is what dense ones do, and SciPy; their gradients are finite differences at the same places."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import mutagrad as mg
from mutagrad.sparse import products
from tools import same

DENSE = np.array([[0, 0, 0.4], [0.2, 0, -0.3]])
OTHER = np.array([[0, 0.5, 0.1], [0.7, 0, 0]])
WIDE = np.arange(6.0).reshape(2, 3) / 7
LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
d, tall = mg.tensor(WIDE), mg.tensor(WIDE.T)


def made(data: Any, layout: str) -> Any:
    return mg.tensor(data).to_sparse(layout=getattr(mg, layout), blocksize=(1, 3) if layout[7] == "b" else None)


def dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, mg.Tensor) else x


UNARY = ["abs", "asin", "asinh", "atan", "atanh", "ceil", "conj", "conj_physical", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "neg", "positive", "rad2deg", "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "square", "tan", "tanh", "trunc", "angle"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name: str, layout: str) -> None:
    x = made(DENSE, layout)
    with warnings.catch_warnings():
        result = getattr(mg, name)(x)
        assert result.layout is x.layout
        same(result.to_dense(), getattr(mg, name)(mg.tensor(DENSE)).numpy())
        same(getattr(x, name)().to_dense(), result.to_dense().numpy())


# Functions of a sparse matrix, and the same of a dense one.
BOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {name: (f, f) for name, f in {
    "sum": lambda x: x.sum(), "twice": lambda x: x + x, "less": lambda x: x * 3 - x, "product": lambda x: x * x, "by dense": lambda x: x * d, "dense by": lambda x: d * x,
    "by a row": lambda x: x * d[0], "by a column": lambda x: x * d[:, :1], "to dense": lambda x: d + x, "from dense": lambda x: d - x, "scaled": lambda x: 2 * x / 4,
    "by a 0-d": lambda x: x * mg.tensor(3.0, dtype=mg.float64), "power": lambda x: x**2, "norm": lambda x: x.norm(), "norm 1": lambda x: x.norm(1), "sine": lambda x: x.sin(),
    "t": lambda x: x.t(), "transpose": lambda x: x.transpose(0, -1), "T": lambda x: x.T, "permute": lambda x: x.permute(1, 0), "H": lambda x: x.H,
    "row": lambda x: x[1], "column": lambda x: x[:, 2], "element": lambda x: x[1, 2], "missing": lambda x: x[0, 0], "last": lambda x: x[-1, -1], "everything": lambda x: x[...], "list": lambda x: x[[1, 0]],
    "unbind": lambda x: x.unbind()[0], "rows": lambda x: x[0:1], "new": lambda x: x[None], "narrow": lambda x: x.narrow(0, 1, 1), "mask": lambda x: x[mg.tensor([True, False])],
    "index": lambda x: x.index_select(0, mg.tensor([1, 1, 0])), "unsqueeze": lambda x: x.unsqueeze(-1), "squeeze": lambda x: x.unsqueeze(0).squeeze(0), "cat": lambda x: mg.cat([x, 2 * x]),
    "stack": lambda x: mg.stack([x, 2 * x]), "mm": lambda x: x.mm(tall), "@": lambda x: x @ tall, "dense @": lambda x: tall @ x, "mv": lambda x: x.mv(d[0]), "@ vector": lambda x: x @ d[1],
    "vector @": lambda x: d[:, 1] @ x, "@ batch": lambda x: x @ mg.stack([tall, 2 * tall]), "addmm": lambda x: mg.addmm(mg.ones(2, 2, dtype=mg.float64), x, tall, beta=2, alpha=3),
    "addmv": lambda x: mg.addmv(d[:, 0], x, d[0]), "linear": lambda x: mg.nn.functional.linear(x, d, d[:, 0]), "@ itself": lambda x: x @ x.t(), "einsum is not": lambda x: x.sum(0),
    "keepdim": lambda x: x.sum(1, keepdim=True), "all": lambda x: x.sum((0, 1), keepdim=True)}.items()}
BOTH |= {
    "sparse.sum": (lambda x: mg.sparse.sum(x, 0), lambda x: x.sum(0)), "sparse.mm": (lambda x: mg.sparse.mm(x, tall), lambda x: x @ tall), "spmm": (lambda x: mg.spmm(x, tall), lambda x: x @ tall),
    "to_dense": (lambda x: x.to_dense(), lambda x: x + 0), "smm": (lambda x: mg.smm(x, tall), lambda x: x @ tall), "hspmm": (lambda x: mg.hspmm(x, tall), lambda x: x @ tall),
    "dsmm": (lambda x: mg.dsmm(x, tall), lambda x: x @ tall), "sspaddmm": (lambda x: mg.sspaddmm(mg.eye(2, dtype=mg.float64).to_sparse(), x, tall), lambda x: mg.eye(2, dtype=mg.float64) + x @ tall),
    "sparse.addmm": (lambda x: mg.sparse.addmm(mg.ones(2, 2, dtype=mg.float64), x, tall), lambda x: 1 + x @ tall), "sparse_mask": (lambda x: d.sparse_mask(x), lambda x: d * (DENSE != 0)),
    "sparse by a mask": (lambda x: x.sparse_mask(made(OTHER, "sparse_coo")), lambda x: x * (OTHER != 0)), "other": (lambda x: x * made(OTHER, "sparse_coo"), lambda x: x * mg.tensor(OTHER)),
    "plus other": (lambda x: x + made(OTHER, "sparse_coo"), lambda x: x + mg.tensor(OTHER)), "@ other": (lambda x: x @ made(OTHER.T.copy(), "sparse_csc"), lambda x: x @ mg.tensor(OTHER.T)),
    "by rows": (lambda x: x.to_sparse_csr() * 2, lambda x: x * 2), "by columns": (lambda x: x.to_sparse_csc() * 2, lambda x: x * 2), "by blocks": (lambda x: x.to_sparse().to_sparse_bsr((2, 1)) @ tall, lambda x: x @ tall)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", BOTH)
def test_functions_of_a_matrix(name: str, layout: str) -> None:
    sparse, plain = BOTH[name]
    x = made(DENSE, layout)
    try:
        result = sparse(x)
    except RuntimeError as error:
        assert layout[7] == "b" and "not made of blocks" in str(error) or layout != "sparse_coo" and "two sparse dimensions" in str(error), str(error)
        return
    expected = plain(mg.tensor(DENSE))
    if name == "sparse_mask" and layout[7] == "b":
        expected = d * (made(np.ones_like(DENSE), layout).to_dense())
    same(dense(result), expected.numpy())
    if layout in ("sparse_coo", "sparse_csr"):
        assert mg.autograd.gradcheck(sparse, (x.requires_grad_(),), masked=True)


@pytest.mark.parametrize("name", ["product", "sine", "mm", "@ itself", "@ other", "other", "norm", "sparse_mask", "to dense", "index"])
def test_second_derivatives(name: str) -> None:
    assert mg.autograd.gradgradcheck(BOTH[name][0], (made(DENSE, "sparse_coo").requires_grad_(),), masked=True)


@pytest.mark.parametrize("name", ["product", "mm", "sum", "dense @", "by dense", "sparse.sum", "t"])
def test_gradients_by_all_elements(name: str) -> None:
    """With `masked=False` the zeros are varied, too, and so have to be entries."""
    assert mg.autograd.gradcheck(BOTH[name][0], (made(DENSE, "sparse_coo").requires_grad_(),), masked=False)
    assert mg.sparse.as_sparse_gradcheck(mg.autograd.gradcheck)(BOTH[name][0], (made(DENSE, "sparse_coo").requires_grad_(),), masked=False)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_the_other_factor(layout: str) -> None:
    x, w = made(DENSE, layout), mg.tensor(WIDE.T, requires_grad=True)
    assert mg.autograd.gradcheck(lambda w: x @ w, (w,)) and mg.autograd.gradcheck(lambda w: w @ x, (w,)) and mg.autograd.gradcheck(lambda w: x * w.t(), (w,))
    assert mg.autograd.gradcheck(lambda w: mg.sparse.sampled_addmm(x, w.t(), w @ w.t()), (w,)) if layout == "sparse_csr" else True
    assert mg.autograd.gradcheck(lambda x, w: x @ w, (x.requires_grad_(), w), masked=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_dense_and_back(layout: str) -> None:
    x = mg.tensor(DENSE, requires_grad=True)
    back = x.to_sparse(layout=getattr(mg, layout), blocksize=(1, 3) if layout[7] == "b" else None).to_dense()
    (back * d).sum().backward()
    same(x.grad, WIDE if layout[7] == "b" else np.where(DENSE != 0, WIDE, 0))


@pytest.mark.parametrize("with_scipy", [True, False])
def test_large_products_are_scipys(with_scipy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_scipy:
        monkeypatch.setattr(products, "has_scipy", lambda: False)
    rng = np.random.default_rng(0)
    a = scipy.sparse.random_array((200, 300), density=0.02, format="csr", rng=rng)
    w = rng.normal(size=(300, 7))
    x = mg.sparse_csr_tensor(a.indptr, a.indices, a.data, a.shape)
    same(x @ mg.tensor(w), a @ w)
    same(x.to_sparse() @ mg.tensor(w), a @ w)
    if with_scipy:
        b = scipy.sparse.random_array((300, 100), density=0.02, format="csr", rng=rng)
        same((x @ mg.sparse_csr_tensor(b.indptr, b.indices, b.data, b.shape)).to_dense(), (a @ b).toarray())
        assert (x @ x.t()).layout is mg.sparse_csr and (x.to_sparse() @ x.to_sparse().t()).layout is mg.sparse_coo


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "int32", "complex64", "complex128"])
def test_types(dtype: str) -> None:
    kind = getattr(mg, dtype)
    x = mg.tensor([[0, 3, 0], [2, 0, 1]]).to(kind)
    y = x.to_sparse() @ x.t()
    assert y.dtype is kind
    same(y.to(mg.complex128).real, [[9, 0], [0, 5]])
    same((x.to_sparse() @ x.to_sparse().t()).to_dense().to(mg.complex128).real, [[9, 0], [0, 5]])
    same((x.to_sparse() + x.to_sparse()).to_dense().to(mg.complex128).real, [[0, 6, 0], [4, 0, 2]])
    assert (x.to_sparse() * mg.ones(2, 3, dtype=mg.float64)).dtype is mg.promote_types(kind, mg.float64)
    flags = (x != 0).to_sparse()
    same(mg.cat([flags, flags]).to_dense(), np.concatenate([[[0, 1, 0], [1, 0, 1]]] * 2).astype(bool))


def test_complex_gradients() -> None:
    x = mg.tensor([[0, 1 + 2j], [3j, 0]]).to(mg.complex128).to_sparse().requires_grad_()
    w = mg.tensor([[1 + 1j, 2], [0.5j, 1]], dtype=mg.complex128)
    for f in (lambda x: x @ w, lambda x: w @ x, lambda x: x @ x, lambda x: (x * w).sum(), lambda x: x.H @ w):
        assert mg.autograd.gradcheck(f, (x,), masked=True)


def test_bmm() -> None:
    x = np.stack([DENSE, OTHER, 0 * DENSE])
    w = np.arange(18.0).reshape(3, 3, 2)
    a = mg.tensor(x).to_sparse().requires_grad_()
    same(mg.bmm(a, mg.tensor(w)), x @ w)
    same(a @ mg.tensor(w), x @ w)
    same(mg.tensor(w) @ a, w @ x)
    same(a @ mg.tensor(w[0]), x @ w[0])
    assert mg.autograd.gradcheck(lambda a: mg.bmm(a, mg.tensor(w)), (a,), masked=True)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "max", "min"])
def test_products_reduced_otherwise(reduce: str) -> None:
    x = made(np.array([[1.0, 2, 0], [0, 0, 0], [0, 3, -1]]), "sparse_csr").requires_grad_()
    w = mg.tensor([[1.0, -2], [3, 0.5], [-1, 4]], dtype=mg.float64)
    how = {"sum": np.sum, "mean": np.mean}.get(reduce, np.max if "max" in reduce else np.min)
    rows = [np.stack([1 * w.numpy()[0], 2 * w.numpy()[1]]), np.zeros((1, 2)), np.stack([3 * w.numpy()[1], -1 * w.numpy()[2]])]
    same(mg.sparse.mm(x, w, reduce), np.stack([how(r, 0) for r in rows]))
    assert mg.autograd.gradcheck(lambda x: mg.sparse.mm(x, w, reduce), (x,), masked=True)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("size", [(2, 3), (2, 3, 2)])
def test_softmax_is_of_the_elements_that_are_there(dim: int, size: tuple[int, ...]) -> None:
    x = np.where(np.arange(np.prod(size)).reshape(size) % 3, np.arange(np.prod(size)).reshape(size) / 5, -np.inf)
    a = mg.tensor(np.where(np.isinf(x), 0, x)).to_sparse().requires_grad_()
    powers = np.exp(x)
    expected = powers / np.maximum(powers.sum(dim, keepdims=True), 1e-300)
    same(mg.sparse.softmax(a, dim).to_dense(), expected)
    same(mg.sparse.log_softmax(a, dim).values(), np.log(expected[expected > 0]))
    assert mg.autograd.gradcheck(lambda a: mg.sparse.softmax(a, dim), (a,), masked=True) and mg.autograd.gradcheck(lambda a: mg.sparse.log_softmax(a, dim), (a,), masked=True)
    hybrid = mg.tensor(WIDE).to_sparse(1)
    same(mg.sparse.softmax(hybrid, 1).to_dense(), mg.softmax(mg.tensor(WIDE), 1).numpy())


def test_sampled_addmm() -> None:
    x, w = made(DENSE, "sparse_csr"), mg.tensor(WIDE)
    found = mg.sparse.sampled_addmm(x, mg.tensor(WIDE @ WIDE.T), w, beta=2, alpha=3)
    assert found.layout is mg.sparse_csr
    same(found.to_dense(), np.where(DENSE != 0, 3 * (WIDE @ WIDE.T @ WIDE) + 2 * DENSE, 0))
    batch = mg.stack([mg.tensor(DENSE), 2 * mg.tensor(DENSE)]).to_sparse_csr()
    found = mg.sparse.sampled_addmm(batch, mg.stack([w @ w.t()] * 2), mg.stack([w, w]))
    same(found.to_dense()[1], np.where(DENSE != 0, WIDE @ WIDE.T @ WIDE + 2 * DENSE, 0))


def test_spdiags() -> None:
    for layout, kind in ((None, "coo"), (mg.sparse_csr, "csr"), (mg.sparse_csc, "csc")):
        diagonals, offsets = np.arange(1.0, 10).reshape(3, 3), [0, -1, 2]
        found = mg.sparse.spdiags(mg.tensor(diagonals), mg.tensor(offsets), (3, 4), layout=layout)
        assert str(found.layout).endswith(kind)
        same(found.to_dense(), scipy.sparse.spdiags(diagonals, offsets, 3, 4).toarray())


def test_truth_and_equality() -> None:
    x = made(DENSE, "sparse_coo")
    assert bool(x.any()) and not bool(x.all()) and bool(made(np.ones((2, 2)), "sparse_csr").all()) and not bool((x * 0).any())
    assert mg.equal(x, x.to_sparse_csc()) and mg.allclose(x, x + x * 1e-9) and not mg.allclose(x, x * 2) and not mg.equal(x, x.t())
    assert (x * 0).equal(mg.zeros(2, 3, layout=mg.sparse_coo, dtype=mg.float64))
    assert bool(x[1:, :1].sum() == DENSE[1, 0]) and x[1:, :1].item() == DENSE[1, 0] and float(x[1:, :1]) == DENSE[1, 0]


def test_a_graph_convolution_trains() -> None:
    mg.manual_seed(0)
    edges = mg.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    adjacency = mg.sparse_coo_tensor(edges, mg.ones(6), (4, 4)).to_sparse_csr()
    layer, x, wanted = mg.nn.Linear(4, 2), mg.eye(4), mg.tensor([0, 0, 1, 1])
    optimizer = mg.optim.Adam(layer.parameters(), 0.1)
    for _ in range(30):
        optimizer.zero_grad()
        loss = mg.nn.functional.cross_entropy(adjacency @ layer(x), wanted)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_where_rows_begin() -> None:
    a = scipy.sparse.random_array((7, 5), density=0.3, format="csr", rng=np.random.default_rng(0))
    rows = a.tocoo().row
    same(mg._convert_indices_from_coo_to_csr(mg.tensor(rows), 7), a.indptr)
    assert mg._convert_indices_from_coo_to_csr(mg.tensor(rows), 7, out_int32=True).dtype is mg.int32
    both = mg._convert_indices_from_csr_to_coo(mg.tensor(a.indptr), mg.tensor(a.indices))
    same(both, np.stack([rows, a.indices]))
    same(mg._convert_indices_from_csr_to_coo(mg.tensor(a.indptr), mg.tensor(a.indices), transpose=True), both.flip(0).numpy())
    with pytest.raises(TypeError):
        mg._convert_indices_from_coo_to_csr(mg.ones(2), 3)


@pytest.mark.parametrize("f", [
    lambda v, s: v.to_sparse().to_dense(), lambda v, s: (s @ s).to_dense(), lambda v, s: (s + s * 2).sin().to_dense(), lambda v, s: mg.sparse.softmax(s, 0).to_dense(), lambda v, s: s.to_sparse_csr() @ v,
    lambda v, s: s.to_sparse_bsr((1, 3)) @ v, lambda v, s: mg.sparse.sum(s, 0).to_dense(), lambda v, s: s.norm(), lambda v, s: mg.sparse.sampled_addmm(s.to_sparse_csr(), mg.outer(v, v), mg.outer(v, v)).to_dense()])
def test_inside_vmap(f: Any) -> None:
    x = mg.tensor(np.arange(12.0).reshape(4, 3) * (np.arange(12).reshape(4, 3) % 2))
    g = lambda v: f(v, mg.sparse_coo_tensor([[0, 1, 2], [0, 0, 2]], v, (3, 3)))
    same(mg.func.vmap(g)(x), mg.stack([g(row) for row in x]).numpy())


def test_in_func_and_forward_mode() -> None:
    a, v, w = made(WIDE, "sparse_coo"), d[0], d[1]
    same(mg.func.grad(lambda s: (s @ v).sum())(a).to_dense(), np.where(WIDE != 0, np.stack([v.numpy()] * 2), 0))
    same(mg.func.jvp(lambda v: a @ v, (v,), (w,))[1], WIDE @ w.numpy())
    same(mg.autograd.functional.jacobian(lambda v: a @ v, v), WIDE)
