"""Ways that only large inputs take give what the plain ways give."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import parallel as large
from mutagrad.arrays.compiled.compiler import has_numba

needs_numba = pytest.mark.skipif(not has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


def drawn(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (1, 2), (2, 1), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums(dtype: Any, dims: tuple[int, ...], keepdim: bool) -> None:
    a = drawn(30, 20, 50, dtype=dtype)
    expected = a.astype(np.float64).sum(dims, keepdims=keepdim)
    for x in mg.tensor(a), mg.tensor(a.transpose(2, 0, 1).copy()).permute(1, 2, 0):
        np.testing.assert_allclose(x.sum(dims, keepdim).numpy(), expected, 0, 5e-4 if dtype == np.float32 else 1e-10)
        assert x.sum(dims, keepdim).dtype is x.dtype


def test_a_long_sum_rounds_little() -> None:
    x = mg.full((3_000_001,), 0.1)
    assert abs(x.sum().item() - 300000.1) < 1 and abs(x.mean().item() - 0.1) < 1e-6


@pytest.mark.parametrize("dtype", [mg.float32, mg.float16, mg.float64])
def test_choices_between_a_tensor_and_a_number(dtype: Any) -> None:
    x = mg.tensor(drawn(large.LARGE + 1)).to(dtype).requires_grad_()
    for found, expected in ((mg.where(x > 0, x, 0.0), x.detach().clamp(min=0)), (mg.where(x > 0, 0.0, x), x.detach().clamp(max=0))):
        assert found.dtype is dtype and mg.equal(found.detach(), expected)
        grad, = mg.autograd.grad(found, x, mg.ones_like(found))
        assert grad.dtype is dtype and mg.equal(grad, (expected != 0).to(dtype))


@pytest.mark.parametrize(("name", "given"), [
    ("relu", ()), ("clamp", (-1, 1)), ("clamp", (None, 0.5)), ("clamp", (0.5, None)), ("floor", ()), ("ceil", ()), ("trunc", ()),
    ("round", ()), ("square", ())])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_that_are_one_ufunc(name: str, given: Any, dtype: Any) -> None:
    a = drawn(600, 600, dtype=dtype)
    a[0, :6] = np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5
    function = mg.nn.functional.relu if name == "relu" else getattr(mg, name)
    for part in (np.s_[:], np.s_[5:-5, 5:-5], np.s_[:, ::2]):
        x = mg.tensor(a)[part]
        expected = np.stack([function(row, *given).numpy() for row in x])
        np.testing.assert_array_equal(function(x, *given).numpy(), expected)
        if name != "square":
            assert getattr(x, name + "_")(*given) is x
            np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("shape", [(200, 300), (300, 130), (3, 130, 70)])
def test_triangles(shape: tuple[int, ...]) -> None:
    a = drawn(*shape)
    a.flat[5] = np.nan
    for diagonal in (-400, -65, -64, -1, 0, 1, 63, 64, 65, 400):
        np.testing.assert_array_equal(mg.tensor(a).tril(diagonal).numpy(), np.tril(a, diagonal))
        np.testing.assert_array_equal(mg.tensor(a).triu(diagonal).numpy(), np.triu(a, diagonal))


@pytest.mark.parametrize(("shape", "dim"), [((300, 200), 0), ((7, 50, 130), 1)])
def test_running_sums_side_by_side(shape: tuple[int, ...], dim: int) -> None:
    a = drawn(*shape, dtype=np.float32)
    np.testing.assert_array_equal(mg.tensor(a).cumsum(dim).numpy(), np.cumsum(a, dim, np.float64).astype("f"))
    x = mg.tensor(a, requires_grad=True)
    x.cumsum(dim).sum().backward()
    left = np.arange(shape[dim], 0, -1, dtype=np.float32).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(left, shape))


def test_erf_of_many() -> None:
    a = np.linspace(-6, 6, 10_001).astype(np.float32)
    expected = np.array([math.erf(v) for v in a.tolist()])
    np.testing.assert_allclose(mg.tensor(a).erf().numpy(), expected, 5e-7)
    a[:4] = np.nan, np.inf, -np.inf, 1e-40
    np.testing.assert_allclose(mg.tensor(a).erf().numpy()[:4], [np.nan, 1, -1, 1.1283792e-40], 1e-3)


@pytest.mark.parametrize("dims", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms(dims: Any, keepdim: bool) -> None:
    a = drawn(70, 1030, dtype=np.float32)
    found = mg.tensor(a).norm(dim=dims, keepdim=keepdim)
    np.testing.assert_allclose(found.numpy(), np.sqrt(np.square(a.astype("d")).sum(dims, keepdims=keepdim)), 1e-6)


@pytest.mark.parametrize("n", [16, 17, 31, 33, 100, 257])
def test_products(n: int) -> None:
    a = 1 + 0.01 * drawn(300, n)
    np.testing.assert_allclose(mg.tensor(a).prod(1).numpy(), a.prod(1), 1e-12)
    np.testing.assert_allclose(mg.tensor(a).prod(1, keepdim=True).numpy(), a.prod(1, keepdims=True), 1e-12)


@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5])
def test_powers(exponent: float) -> None:
    a = drawn(9)
    a[0], a[1] = 0.0, -0.0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose((mg.tensor(a) ** exponent).numpy(), a ** exponent, 1e-14)
        np.testing.assert_allclose(mg.pow(mg.tensor(a), mg.tensor(exponent, dtype=mg.float64)).numpy(), a ** exponent, 1e-14)
    x = mg.tensor(np.abs(a[2:]), requires_grad=True)
    (x ** exponent).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), exponent * np.abs(a[2:]) ** (exponent - 1), 1e-12)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [0, 1, 7, 20])
def test_a_few_of_the_largest(dim: int, largest: bool, k: int) -> None:
    a = np.random.default_rng(1).integers(0, 1000, (100, 90)).astype(np.float32)
    a[3, 5] = a[80, 70] = np.nan
    values, indices = mg.tensor(a).topk(k, dim, largest)
    ascending = np.sort(a, dim)
    expected = np.flip(ascending, dim) if largest else ascending
    np.testing.assert_array_equal(values.numpy(), np.take(expected, np.arange(k), dim))
    np.testing.assert_array_equal(np.take_along_axis(a, indices.numpy(), dim), values.numpy())


@pytest.mark.parametrize("shape", [(600, 601), (3, 400, 360), (17, 20000), (2, 5, 200, 200)])
def test_copies_of_transposed_matrices(shape: tuple[int, ...]) -> None:
    a = drawn(*shape)
    assert a.size >= large.LARGE
    for x, turned in (mg.tensor(a).mT, a.swapaxes(-1, -2)), (mg.tensor(a).flip(-1).mT, np.flip(a, -1).swapaxes(-1, -2)):
        assert x.contiguous().is_contiguous()
        np.testing.assert_array_equal(x.contiguous().numpy(), turned)


@pytest.mark.parametrize("n", [600, large.LARGE + 1])
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "softplus", "elu", "leaky_relu", "hardswish", "sigmoid", "tanh", "relu", "logsigmoid"])
def test_activations_with_one_adjoint_for_all_elements(name: str, n: int) -> None:
    function, a = getattr(mg.nn.functional, name), drawn(n, dtype=np.float32) * 3
    many, few = mg.tensor(a, requires_grad=True), mg.tensor(a[:40].astype(np.float64), requires_grad=True)
    function(many).sum().backward()
    function(few).sum().backward()
    np.testing.assert_allclose(many.grad.numpy()[:40], few.grad.numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("kernels", ["numpy", pytest.param("numba", marks=needs_numba)])
def test_the_last_pixel_of_very_many(kernels: str) -> None:
    """float32 does not have its number, and the next number is that of none."""
    mg.set_kernels(kernels)
    size, points = 2**24 + 4, 5000
    image = mg.zeros(1, 1, 1, size)
    image[..., -1] = 5.0
    image.requires_grad_()
    grid = mg.tensor([[[[1.0, 0.0]]]]).expand(1, 1, points, 2)
    out = mg.nn.functional.grid_sample(image, grid, padding_mode="border", align_corners=True)
    out.sum().backward()
    assert (out == 5).all() and image.grad[0, 0, 0, -1] == points
