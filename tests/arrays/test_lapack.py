"""Decompositions by SciPy's LAPACK: those of NumPy, up to what a decomposition leaves open."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import lapack
from mutagrad.arrays.numpy import silently
from mutagrad.arrays.scipy import has_scipy

pytestmark = pytest.mark.skipif(not has_scipy(), reason="needs SciPy: pip install 'mutagrad[scipy]'")
TYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "PAYS", 2)


def matrix(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.startswith("complex") else 0)
    return (values + 3 * np.eye(*shape[-2:])).astype(dtype)


def close(found: Any, expected: Any, dtype: str) -> None:
    assert found.dtype == np.dtype(dtype) or np.isrealobj(found)
    tolerance = 2e-4 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(6, 6), (2, 3, 5, 5)])
@pytest.mark.parametrize("turned", [False, True])
def test_square(shape: tuple[int, ...], dtype: str, turned: bool) -> None:
    a, b = matrix(shape, dtype), matrix((*shape[:-1], 4), dtype, 1)
    a = a.swapaxes(-2, -1) if turned else a
    close(lapack.inv(a), np.linalg.inv(wide(a)), dtype)
    close(lapack.solve(a, b), np.linalg.solve(wide(a), wide(b)), dtype)
    close(lapack.det(a), np.linalg.det(wide(a)), dtype)
    for found, expected in zip(lapack.slogdet(a), np.linalg.slogdet(wide(a)), strict=True):
        close(found, expected, dtype)
    definite = a @ a.conj().swapaxes(-2, -1)
    close(lapack.cholesky(definite), np.linalg.cholesky(wide(definite)), dtype)
    found, expected = (np.sort(v.real, -1) for v in (lapack.eigvals(a), np.linalg.eigvals(wide(a))))
    close(found, expected, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5), (3, 6, 4)])
def test_any_shape(shape: tuple[int, ...], dtype: str) -> None:
    a = matrix(shape, dtype)
    for form in ("reduced", "complete"):
        expected = np.linalg.qr(a, form)
        q, r = lapack.qr(a, form)
        assert (q.shape, r.shape) == (expected.Q.shape, expected.R.shape)
        close(q @ r, a, dtype)
        close(q.conj().swapaxes(-2, -1) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2)), dtype)
        close(np.tril(r, -1), np.zeros_like(r), dtype)
    close(np.abs(lapack.qr(a, "r")), np.abs(np.linalg.qr(wide(a), "r")), dtype)
    for full in (False, True):
        u, s, vh = lapack.svd(a, full)
        expected = np.linalg.svd(wide(a), full)
        assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype)
        close(s, expected.S, dtype)
    close(lapack.svdvals(a), np.linalg.svd(wide(a), compute_uv=False), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_least_squares(shape: tuple[int, int], dtype: str) -> None:
    a, b = mg.tensor(matrix(shape, dtype), requires_grad=True), mg.tensor(matrix((shape[0], 3), dtype, 1), requires_grad=True)
    found = mg.linalg.lstsq(a, b)
    assert found.rank.item() == min(shape)
    expected = mg.linalg.lstsq(a, b, driver="gelsd").solution
    close(found.solution.detach().numpy(), expected.detach().numpy(), dtype)
    g = mg.tensor(matrix(tuple(expected.shape), dtype, 2))
    for one, other in zip(mg.autograd.grad(found.solution, (a, b), g), mg.autograd.grad(expected, (a, b), g), strict=True):
        close(one.numpy(), other.numpy(), dtype)


def test_less_than_full_rank() -> None:
    a = matrix((8, 3), "float64")
    a = np.concatenate([a, a @ np.ones((3, 1))], 1)
    found = mg.linalg.lstsq(mg.tensor(a), mg.ones(8, 1, dtype=mg.float64))
    assert found.rank.item() == 3
    np.testing.assert_allclose(found.solution.numpy(), np.linalg.pinv(a) @ np.ones((8, 1)), 1e-9)


def test_what_is_singular_is_named() -> None:
    a = np.stack([np.eye(4), np.ones((4, 4))])
    assert lapack.det(a).tolist() == [1, 0]
    assert [v.tolist() for v in silently(lapack.slogdet, a)] == [[1, 0], [0, -np.inf]]
    for function in (mg.linalg.inv, lambda a: mg.linalg.solve(a, a), mg.linalg.cholesky):
        with pytest.raises(mg.linalg.LinAlgError, match=r"matrix \(1,\)"):
            function(mg.tensor(a))
    found, info = mg.linalg.inv_ex(mg.tensor(a))
    assert info.tolist() == [0, 2] and found[1].isnan().all() and found[0].equal(mg.eye(4, dtype=mg.float64))


def test_what_is_not_finite() -> None:
    a = matrix((5, 5), "float32")
    a[2, 3] = np.nan
    for function in (mg.linalg.svd, mg.linalg.svdvals):
        with pytest.raises(mg.linalg.LinAlgError):
            function(mg.tensor(a))
    assert mg.linalg.det(mg.tensor(a)).isnan()


def test_nothing_is_exchanged_in_empty_matrices() -> None:
    for batch in ((), (2,), (0,)):
        a = mg.zeros(*batch, 0, 0)
        assert mg.linalg.lu(a).P.shape == a.shape and mg.linalg.inv(a).shape == a.shape
        assert mg.linalg.det(a).tolist() == mg.ones(batch).tolist()
