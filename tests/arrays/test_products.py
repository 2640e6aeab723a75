"""Products by ways that are faster than NumPy's: the same values, whatever the order in memory."""
from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import blas, products
from mutagrad.arrays.compiled import compiler, gemm
from mutagrad.ops.linalg import products as equations


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


EQUATIONS = ["ij,jk->ik", "ij,kj->ki", "ij,jk->ki", "bij,bjk->bik", "bhqd,bhkd->bhqk", "bhqk,bhkd->bqhd", "i,j->ij", "i,j->ji",
             "ij,ij->i", "ij,ij->", "ij,j->i", "abc,cd->abd", "abc,dcb->ad", "bi,bj->bij", "ab,cd->acbd", "abc,adc->cbd", "ij,ij->ij"]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    sizes = {c: n for n, c in enumerate("abcdhijkq", 2)}
    first, second = equation.partition("->")[0].split(",")
    x, y = (array(*(sizes[c] for c in term), seed=i) for i, term in enumerate((first, second)))
    a, b = (mg.tensor(v, requires_grad=True) for v in (x, y))
    found = mg.einsum(equation, a, b)
    np.testing.assert_allclose(found.detach().numpy(), np.einsum(equation, x, y), 1e-12, 1e-12)
    g = array(*found.shape, seed=3)
    found.backward(mg.tensor(g))
    result = equation.partition("->")[2]
    expand = np.einsum(equation, np.ones_like(x), np.ones_like(y))
    assert expand.shape == g.shape
    for grad, term, other, values in ((a.grad, first, second, y), (b.grad, second, first, x)):
        np.testing.assert_allclose(grad.numpy(), np.einsum(f"{result},{other}->{term}", g, values), 1e-12, 1e-12)


def test_an_einsum_shares_no_memory() -> None:
    x = mg.tensor(array(3, 4))
    found = mg.einsum("ij,ij->ij", x, mg.ones(3, 4, dtype=mg.float64))
    found.zero_()
    assert bool((x != 0).all())


@pytest.mark.parametrize("rows", [1, 2, 32, 33])
def test_few_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGE", 1)
    x, w = array(rows, 40), array(50, 40, seed=1)
    found = products.multiply(x, w.T)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, np.matmul(x, w.T), 1e-12)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
def test_batches_on_several_threads(turned: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LARGE", "WORTH_SHARING"):
        monkeypatch.setattr(products, name, 1)
    a = array(3, 5, 7, 6).swapaxes(-2, -1) if turned[0] else array(3, 5, 6, 7)
    b = array(3, 5, 4, 7).swapaxes(-2, -1) if turned[1] else array(3, 5, 7, 4)
    np.testing.assert_allclose(products.multiply(a, b), np.matmul(a, b), 1e-12)
    strided = array(3, 10, 6, 7)[:, ::2]
    np.testing.assert_allclose(products.multiply(strided, b), np.matmul(strided, b), 1e-12)


def test_vectors_have_the_gradients_of_matrices() -> None:
    for first, second in (((5, 4), (4,)), ((4,), (4, 6)), ((2, 3, 5, 4), (4,)), ((4,), (3, 4, 6)), ((4,), (4,))):
        x, y = (mg.tensor(array(*shape, seed=i), requires_grad=True) for i, shape in enumerate((first, second)))
        assert mg.autograd.gradcheck(lambda x, y: x @ y, (x, y))
        assert mg.autograd.gradgradcheck(lambda x, y: x @ y, (x, y))


@pytest.fixture
def compiled() -> None:
    if not compiler.has_numba():
        pytest.skip("needs Numba: pip install 'mutagrad[fast]'")


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_shares_of_one_product(dtype: str, compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if not blas.product_address(dtype):
        pytest.skip("needs the OpenBLAS of NumPy's wheels")
    monkeypatch.setattr(gemm, "WORTH", 1)
    monkeypatch.setattr(gemm, "SHARED", 1)
    monkeypatch.setattr(gemm, "LEAST", 1)
    monkeypatch.setattr(products, "on_one_thread", lambda work: work(True))  # even if OpenBLAS is told to use one
    mg.set_kernels("numba")
    for m, k, n in ((2, 1, 1), (5, 7, 3), (3, 7, 5), (1, 9, 40), (40, 9, 1), (33, 65, 129)):
        x, y = array(m, k).astype(dtype), array(k, n, seed=1).astype(dtype)
        x[0, 0] = float("nan")
        for a in (x, np.asfortranarray(x)):
            for b in (y, np.asfortranarray(y)):
                assert gemm.kernel(a, b) is not None
                found = products.multiply(a, b)
                assert found.flags.c_contiguous
                np.testing.assert_allclose(found, np.matmul(a, b), 1e-4 if dtype == "f" else 1e-12, 1e-5)
                np.testing.assert_array_equal(found, products.multiply(a, b))
    assert gemm.kernel(array(8, 6)[::2], array(6, 8)) is None
    assert gemm.kernel(array(8, 6), array(6, 8).astype("f")) is None
    with pytest.raises(ValueError):
        products.multiply(array(8, 6), array(5, 8))


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_distances(dtype: mg.dtype, compiled: None) -> None:
    x, y = mg.tensor(array(130, 37)).to(dtype), mg.tensor(array(21, 37, seed=1)).to(dtype)
    x[3, 4], y[5], x[7] = float("nan"), x[9], y[2]
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf")):
        found = []
        for kernels in ("numpy", "numba"):
            mg.set_kernels(kernels)
            found.append(mg.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist").numpy())
        np.testing.assert_allclose(found[1], found[0], 1e-4 if dtype is mg.float32 else 1e-10, 1e-6)


def test_vectors_in_space(compiled: None) -> None:
    x, y, g = (array(40, 50, 3, seed=i) for i in range(3))
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        a, b = (mg.tensor(v, requires_grad=True) for v in (x, y))
        out = mg.linalg.cross(a, b)
        out.backward(mg.tensor(g))
        found.append([out.detach().numpy(), a.grad.numpy(), b.grad.numpy()])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)
    np.testing.assert_allclose(mg.linalg.cross(mg.tensor(x).permute(1, 0, 2), mg.tensor(y).permute(1, 0, 2)).numpy(),
                               np.cross(x, y).transpose(1, 0, 2), 1e-12, 1e-12)


@pytest.mark.parametrize("equation", ["ij,kl->ijkl", "ij,kl->klji", "ijk,k->ji", "ij,ij->", "i,jik->kj", "ij,j->i"])
def test_a_contraction_with_nothing_left_on_one_side_has_its_shape(equation: str) -> None:
    terms = equation.split("->")[0].split(",")
    a, b = (np.arange(1.0, 1 + 2 ** len(t)).reshape((2,) * len(t)) for t in terms)
    x, y = (mg.tensor(v, requires_grad=True) for v in (a, b))
    found = mg.einsum(equation, x, y)
    assert np.array_equal(found.detach().numpy(), np.einsum(equation, a, b))
    assert mg.autograd.gradcheck(lambda x, y: mg.einsum(equation, x, y), (x, y))


def test_an_equation_is_read_once_for_shapes_that_need_nothing_done() -> None:
    known = equations._read_before
    known.clear()
    x, y = mg.rand(3, 4, 5), mg.rand(5, 2)
    for _ in range(2):
        assert mg.allclose(mg.einsum("bij,jk->bik", x, y), x @ y)
    assert list(known) == [("bij,jk->bik", (3, 4, 5), (5, 2))]
    assert mg.allclose(mg.einsum("bij,jk->bik", x, y[:1]), x.sum(2, keepdim=True) @ y[:1])  # a size of 1 is repeated
    assert mg.einsum("ii,ij->j", mg.eye(5), y).shape == (2,) and mg.einsum("ij,k->k", y, mg.ones(3)).shape == (3,)
    assert len(known) == 1
    with pytest.raises(RuntimeError):
        mg.einsum("bij,jk->bik", x, mg.rand(4, 2))


@pytest.mark.parametrize("types", [("float16", "float32"), ("float32", "float16"), ("bfloat16", "float16"), ("bfloat16", "float64")])
def test_einsum_of_short_and_other_types_is_in_the_type_that_holds_both(types) -> None:
    a, b = (mg.tensor(rows, dtype=getattr(mg, kind), requires_grad=True) for rows, kind in zip(([[1.0, 2.0]], [[3.0], [2049.0]]), types))
    found = mg.einsum("ij,jk->ik", a, b)
    assert found.dtype == mg.promote_types(a.dtype, b.dtype) and found.item() == 3 + 2 * b[1, 0].item()
    found.sum().backward()
    assert [t.grad.dtype for t in (a, b)] == [a.dtype, b.dtype] and b.grad.tolist() == [[1.0], [2.0]]
    same = mg.einsum("ij,jk->ik", a, a.T.detach())
    assert same.dtype == a.dtype
