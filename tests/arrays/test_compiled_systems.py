"""Many small systems of equations by a compiled loop: as NumPy solves them."""
from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import lapack
from mutagrad.arrays.compiled import compiler

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


@pytest.fixture(autouse=True)
def kernels(choices_are_undone: None) -> None:
    mg.set_kernels("numba")


@pytest.mark.parametrize("n", [1, 2, 3, 8, 31])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_numpy(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((7, 9000 // n**2 + 1, n, n)).astype(dtype)  # pivots have to be looked for
    b = rng.standard_normal((*a.shape[:-1], 3)).astype(dtype)
    tolerance = 1e-2 if dtype == "float32" else 1e-8
    good = np.linalg.cond(a.astype(np.float64)) < 1e3
    assert lapack._small(a, b) is not None
    for found, expected in ((lapack.inv(a), np.linalg.inv(a.astype(np.float64))),
                            (lapack.solve(a, b), np.linalg.solve(a.astype(np.float64), b.astype(np.float64)))):
        assert found.dtype == a.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found[good], expected[good], tolerance, tolerance)
    det = lapack.det(a)
    assert det.dtype == a.dtype
    np.testing.assert_allclose(det[good], np.linalg.det(a.astype(np.float64))[good], tolerance)
    turned = a.swapaxes(-2, -1)
    np.testing.assert_allclose(lapack.det(turned)[good], det[good], tolerance)


def test_singular_ones_and_nan() -> None:
    a = np.broadcast_to(np.eye(3), (600, 3, 3)).copy()
    a[5] = 0
    a[7, 1] = a[7, 0]
    assert np.flatnonzero(lapack.det(a) == 0).tolist() == [5, 7]
    with pytest.raises(mg.linalg.LinAlgError, match=r"matrix \(5,\)"):
        mg.linalg.inv(mg.tensor(a))
    found, info = mg.linalg.inv_ex(mg.tensor(a))
    assert info.nonzero().reshape(-1).tolist() == [5, 7] and found[6].equal(mg.eye(3, dtype=mg.float64))
    a[5], a[7] = np.eye(3), np.eye(3)
    a[9, 2, 0] = np.nan
    found = mg.linalg.inv(mg.tensor(a))
    assert found[9].isnan().any() and not found[8].isnan().any() and mg.linalg.det(mg.tensor(a))[9].isnan()


def test_gradients() -> None:
    grads = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        rng = np.random.default_rng(0)
        a, b = (mg.tensor(rng.standard_normal((300, 4, 4)) + 3 * np.eye(4), requires_grad=True) for _ in range(2))
        (mg.linalg.solve(a, b).sum() + mg.linalg.det(a).sum() + mg.linalg.inv(b).sum()).backward()
        grads.append((a.grad.numpy(), b.grad.numpy()))
    for one, other in zip(*grads):
        np.testing.assert_allclose(one, other, 1e-9)
