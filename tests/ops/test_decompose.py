"""Factorizations without derivatives, matrices that have none, and derivatives at singular ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

RNG = np.random.default_rng(0)


def close(got: Any, expected: Any, tolerance: float = 1e-8) -> None:
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


def gradient(f: Any, a: Any) -> Any:
    x = mg.tensor(a, requires_grad=True)
    f(x).sum().backward()
    return x.grad.numpy()


def differences(f: Any, a: Any, step: float = 1e-6) -> Any:
    found = np.zeros_like(a)
    for i in np.ndindex(a.shape):
        moved = [a.copy(), a.copy()]
        moved[0][i] += step
        moved[1][i] -= step
        found[i] = (f(moved[0]).sum() - f(moved[1]).sum()) / (2 * step)
    return found


# --------------------------------------------------------------------------------------------------- without derivatives

@pytest.mark.parametrize("kind", ["real", "complex", "hermitian"])
def test_ldl_solves(kind: str) -> None:
    a = RNG.normal(size=(2, 5, 5)) + (1j * RNG.normal(size=(2, 5, 5)) if kind != "real" else 0)
    a = a + (a.conj() if kind == "hermitian" else a).swapaxes(-2, -1)
    b = RNG.normal(size=(2, 5, 3)).astype(a.dtype)
    factors, pivots = mg.linalg.ldl_factor(mg.tensor(a), hermitian=kind == "hermitian")
    assert pivots.dtype is mg.int32
    close(a @ mg.linalg.ldl_solve(factors, pivots, mg.tensor(b), hermitian=kind == "hermitian").numpy(), b)
    assert mg.linalg.ldl_factor_ex(mg.tensor(a)).info.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="no derivative"):
        mg.linalg.ldl_factor(mg.tensor(a, requires_grad=True)).LD.abs().sum().backward()


def test_geqrf_gives_what_householder_product_takes() -> None:
    a = RNG.normal(size=(2, 5, 3))
    found, tau = mg.geqrf(mg.tensor(a))
    q = mg.linalg.householder_product(found, tau)
    close((q @ found[:, :3].triu()).numpy(), a)
    close(mg.ormqr(found, tau, mg.tensor(a), transpose=True)[:, :3].numpy(), found[:, :3].triu().numpy())


def test_qr_modes() -> None:
    a = mg.tensor(RNG.normal(size=(5, 3)), requires_grad=True)
    q, r = mg.linalg.qr(a, "complete")
    assert q.shape == (5, 5) and r.shape == (5, 3)
    with pytest.raises(RuntimeError, match="complete"):
        q.sum().backward()
    empty, r = mg.linalg.qr(a, "r")
    assert empty.shape == (0,) and r.shape == (3, 3)
    with pytest.raises(RuntimeError):
        r.sum().backward()


def test_rank_with_tolerances() -> None:
    a = mg.tensor(np.diag([10.0, 1.0, 1e-3]))
    assert [mg.linalg.matrix_rank(a).item(), mg.linalg.matrix_rank(a, atol=0.1).item(), mg.linalg.matrix_rank(a, rtol=0.5).item()] == [3, 2, 1]
    assert mg.linalg.matrix_rank(-a, hermitian=True).item() == 3 and mg.linalg.matrix_rank(a, 2.0).item() == 1


# -------------------------------------------------------------------------------------------------- matrices that have none

SINGULAR = np.stack([np.eye(3), np.ones((3, 3))])


@pytest.mark.parametrize("call", [
    lambda x: mg.linalg.inv(x), lambda x: x.inverse(), lambda x: mg.linalg.solve(x, mg.ones(2, 3, 1, dtype=mg.float64)),
    lambda x: mg.linalg.lu_factor(x), lambda x: mg.linalg.inv_ex(x, check_errors=True), lambda x: mg.linalg.cholesky(x - 0.25)])
def test_errors_name_the_matrix(call: Any) -> None:
    with pytest.raises(mg.linalg.LinAlgError, match=r"matrix \(1,\) of the input") as caught:
        call(mg.tensor(SINGULAR))
    assert isinstance(caught.value, RuntimeError)


def test_info_instead_of_errors() -> None:
    x = mg.tensor(SINGULAR)
    found, info = mg.linalg.inv_ex(x)
    assert info.tolist() == [0, 2] and info.dtype is mg.int32
    close(found[0].numpy(), np.eye(3))
    assert mg.linalg.solve_ex(x, mg.ones(3, 1, dtype=mg.float64)).info.tolist() == [0, 2]
    assert mg.linalg.lu_factor_ex(x).info.tolist() == [0, 2]
    assert mg.linalg.cholesky_ex(x - 0.25).info.tolist() == [0, 2]


@pytest.mark.parametrize("call", [
    lambda: mg.linalg.inv(mg.ones(2, 3)), lambda: mg.linalg.solve(mg.eye(3), mg.ones(2)), lambda: mg.linalg.cholesky(mg.ones(3)),
    lambda: mg.linalg.svd(mg.ones(3)), lambda: mg.linalg.multi_dot([mg.ones(2, 3), mg.ones(2, 3)]), lambda: mg.cross(mg.ones(2), mg.ones(2)),
    lambda: mg.linalg.inv(mg.ones(2, 2, dtype=mg.int64)), lambda: mg.linalg.lu(mg.eye(2), pivot=False),
    lambda: mg.baddbmm(mg.ones(1), mg.ones(2, 3, 4), mg.ones(3, 4, 5))])
def test_what_does_not_fit_is_refused(call: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert isinstance(caught.value, mg.MutagradError)


@pytest.mark.parametrize("name", ["linalg.inv", "linalg.svd", "linalg.det", "linalg.norm", "tril", "trace", "inner", "kron", "dot", "mm", "outer", "diag"])
def test_lists_are_refused(name: str) -> None:
    function: Any = mg
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(TypeError) as caught:
        function(*[[[1.0]]] * (2 if name in ("inner", "kron", "dot", "mm", "outer") else 1))
    assert isinstance(caught.value, mg.MutagradError)


# ------------------------------------------------------------------------------------------ derivatives at singular matrices

@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinants_of_singular_matrices(rank: int) -> None:
    a = RNG.normal(size=(4, rank)) @ RNG.normal(size=(rank, 4))
    close(gradient(mg.det, a), differences(np.linalg.det, a), 1e-6)
    weights = RNG.normal(size=(4, 4))
    x = mg.tensor(a, requires_grad=True)
    first, = mg.autograd.grad(mg.det(x), x, create_graph=True)
    (first * mg.tensor(weights)).sum().backward()
    close(x.grad.numpy(), differences(lambda v: gradient(mg.det, v) * weights, a), 1e-5)


@pytest.mark.parametrize("order", [2, 1, 3, "fro"])
def test_norms_at_zero(order: Any) -> None:
    assert not gradient(lambda x: mg.linalg.norm(x, order) if order == "fro" else mg.linalg.vector_norm(x, order), np.zeros((3, 3))).any()


def test_equal_eigenvalues_do_not_disturb_the_values() -> None:
    close(gradient(mg.linalg.eigvalsh, np.eye(3)), np.eye(3))
    close(gradient(lambda x: mg.linalg.eigh(x).eigenvalues, np.eye(3)), np.eye(3))
    close(gradient(mg.linalg.svdvals, np.eye(3)), np.eye(3))


def test_a_loss_that_depends_on_the_phase_is_refused() -> None:
    a = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    x = mg.tensor(a + a.conj().T, requires_grad=True)
    with pytest.raises(RuntimeError, match="phase"):
        mg.linalg.eigh(x).eigenvectors.sum().abs().backward()


@pytest.mark.parametrize("installed", [True, False])
def test_large_matrices_with_and_without_scipy(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a certain size on SciPy, where there is one, computes what NumPy does in steps."""
    if installed:
        pytest.importorskip("scipy", reason="pip install 'mutagrad[scipy]'")
    monkeypatch.setattr("mutagrad.ops.linalg.solving.has_scipy", lambda: installed)
    a = RNG.normal(size=(40, 40)) + 10 * np.eye(40)
    p, lower, upper = mg.linalg.lu(mg.tensor(a))
    close((p @ lower @ upper).numpy(), a)
    close(mg.linalg.solve_triangular(mg.tensor(a), mg.tensor(a), upper=True).numpy(), np.linalg.solve(np.triu(a), a))


def test_results_are_named() -> None:
    a = mg.eye(2) * 2
    assert mg.linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors") and mg.linalg.svd(a)._fields == ("U", "S", "Vh")
    assert mg.svd(a)._fields == ("U", "S", "V") and mg.linalg.qr(a)._fields == ("Q", "R")
    assert mg.slogdet(a)._fields == ("sign", "logabsdet") and mg.linalg.lu_factor_ex(a)._fields == ("LU", "pivots", "info")
    assert mg.linalg.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")


@pytest.mark.parametrize("call", [lambda x: mg.linalg.cholesky(x), lambda x: mg.linalg.eigh(x).eigenvectors ** 3])
def test_gradients_of_symmetric_matrices_are_symmetric(call: Any) -> None:
    a = np.diag([3.0, 5.0, 8.0]) + 0.5
    found = gradient(lambda x: call(x) * mg.arange(9.0, dtype=mg.float64).reshape(3, 3), a)
    close(found, found.T)
    assert np.abs(found).max() > 0.1


@pytest.mark.parametrize("size", [3, 40, 200])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_minor_that_is_to_blame_is_the_one_that_the_factorization_met(size, kind):
    points = np.linspace(0.0, 1.0, size, dtype=kind)[:, None]
    almost = np.exp(-((points - points.T) / kind(0.5)) ** 2) - kind(1e-9) * np.eye(size, dtype=kind)  # rounding decides
    broken = np.eye(size, dtype=kind)
    broken[-2, -2] = -1
    factor, info = mg.linalg.cholesky_ex(mg.tensor(np.stack([broken, np.eye(size, dtype=kind), almost])))
    assert info[:2].tolist() == [size - 1, 0] and mg.equal(factor[1], mg.eye(size, dtype=factor.dtype)) and factor[0].isnan().any()
    assert bool(factor[2].isnan().any()) == bool(info[2] > 0)


def test_a_factorization_that_fails_by_rounding_alone_has_an_order(monkeypatch):
    def fails(a):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr("mutagrad.arrays.lapack.cholesky", fails)
    factor, info = mg.linalg.cholesky_ex(mg.eye(3))
    assert factor.isnan().all() and info >= 1
    with pytest.raises(RuntimeError, match="positive-definite"):
        mg.linalg.cholesky(mg.eye(3))


def test_a_matrix_that_is_singular_by_rounding_alone_is_solved(monkeypatch):
    def fails(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    x = mg.tensor(np.random.default_rng(0).normal(size=(2, 4, 4)))
    expected = [mg.linalg.inv(x), mg.linalg.solve(x, x + 1), mg.linalg.solve(x, x[..., 0])]
    monkeypatch.setattr("mutagrad.arrays.lapack.inv", fails)
    monkeypatch.setattr("mutagrad.arrays.lapack.solve", fails)
    found = [mg.linalg.inv(x), mg.linalg.solve(x, x + 1), mg.linalg.solve(x, x[..., 0])]
    assert all(mg.allclose(a, b) for a, b in zip(found, expected))
    with pytest.raises(RuntimeError, match="singular"):
        mg.linalg.inv(mg.zeros(2, 2))


@pytest.mark.parametrize("batch", [(), (2,)])
def test_programs_find_what_was_wrong_in_the_text(batch: tuple[int, ...]) -> None:
    """Samplers go on after an error whose text has these words, which are PyTorch's."""
    with pytest.raises(RuntimeError, match="input is not positive-definite"):
        mg.linalg.cholesky(mg.tensor([[1., 2.], [2., 1.]]).expand(*batch, 2, 2))
    with pytest.raises(RuntimeError, match="input is singular"):
        mg.linalg.inv(mg.ones(*batch, 2, 2))
