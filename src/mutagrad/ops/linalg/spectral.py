"""Eigenvectors and singular vectors of matrices.

What LAPACK leaves open (signs, phases) a loss must not depend on; for complex matrices that is checked, because the
derivative would be wrong.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arrays import lapack, np
from ...arrays.kinds import anywhere, is_plain
from ...base import return_types
from ...base.errors import BadValue, GradientError, LinAlgError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import make
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..shape.shape import clone, pack, unpack
from .matrices import adjoint
from .solving import (
    adj,
    as_diagonal,
    as_real,
    columns,
    diagonal_of,
    in_batch,
    matrices,
    ratio,
    real_part,
    rows,
    square,
    with_conjugates,
)

FUNCTIONS = "svd"
METHODS = "svd"

RAW.plain, RECORDED.plain = lambda a: a, lambda x: x._array


def _off_diagonal(xp: Any, x: Any) -> Any:
    return xp.tril(x, -1) + xp.triu(x, 1)


def _check_phase(xp: Any, name: str, diagonal: Any) -> None:
    """Raises where a loss depends on the phase of complex vectors, which is LAPACK's choice."""
    turning = np.asarray(xp.plain(diagonal)).imag
    if anywhere(np.abs(turning) > 1e-2):
        raise GradientError(f"{name}: the loss depends on the phase of the complex vectors",
                            why="they are determined only up to a factor exp(i phi)",
                            fix="a loss of abs(V), or of products such as V @ V.mH")


# --------------------------------------------------------------------------------------------------------- eigenvectors

def _eigh(a: Array, lower: bool) -> Any:
    values, vectors = _converged("eigh", lambda: lapack.eigh(a, lower), a)
    return pack([values.astype(a.dtype, copy=False), vectors])


def _converged(name: str, function: Callable[[], Any], a: Array) -> Any:
    """What an iterative algorithm finds for matrices; an error that names the first of them that is not finite."""
    try:
        return function()
    except np.linalg.LinAlgError:
        bad = np.flatnonzero(~np.isfinite(a).all((-2, -1)))
        which = in_batch(a.shape, bad[0]) if bad.size else "some matrix"
        raise LinAlgError(f"{name}: the algorithm did not converge for {which}",
                          why="it has nan or inf in it, or is badly conditioned",
                          fix="mutagrad.isfinite(A).all() tells") from None


def _eigen_shapes(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return shape[:-1], shape


def _eigh_rule(xp: Any, g: Any, x_shape: tuple[int, ...], out: Any) -> Any:
    """V @ (diag(gL) + skew(V.H gV) / gaps) @ V.H: vectors turn towards each other by how near their values are."""
    shapes = _eigen_shapes(x_shape)
    (g_values, g_vectors), (values, vectors) = xp.unpack(g, shapes), xp.unpack(out, shapes)
    back = adj(xp, vectors)
    turned = xp.matmul(back, g_vectors)
    if xp.is_complex(turned):
        _check_phase(xp, "eigh", diagonal_of(xp, turned))
    gaps = columns(xp, values) - rows(xp, values)
    skew = _off_diagonal(xp, turned - adj(xp, turned)) * 0.5
    inner = ratio(xp, skew, gaps) + as_diagonal(xp, real_part(xp, g_values))
    return xp.matmul(vectors, xp.matmul(inner, back))


eigh_values = with_conjugates(primitive("eigh", _eigh, settings=("lower",),
                                        x=lambda xp, g, x_shape, out: _eigh_rule(xp, g, x_shape, out)))


def _is_lower(name: str, UPLO: str) -> bool:
    if str(UPLO).upper() not in ("L", "U"):
        raise BadValue(f"{name}: UPLO must be 'L' or 'U', not {UPLO!r}", fix="UPLO='L' reads the lower triangle")
    return str(UPLO).upper() == "L"


def eigh(A: Tensor, UPLO: str = "L", *, out: Sequence[Tensor] | None = None) -> Any:
    """Return the eigenvalues, rising, and eigenvectors of symmetric or Hermitian matrices; one triangle is read.

    >>> import mutagrad as mg
    >>> values, vectors = mg.linalg.eigh(mg.tensor([[2., 0.], [0., 3.]]))
    >>> values
    tensor([2., 3.])
    """
    shape = square(A, "eigh")._array.shape
    values, vectors = unpack(eigh_values(A, _is_lower("eigh", UPLO)), _eigen_shapes(shape))
    return write_out("eigh", return_types.linalg_eigh(as_real(values), vectors), out)


eigvalsh_values = primitive(
    "eigvalsh", lambda a, lower: _converged("eigvalsh", lambda: lapack.eigvalsh(a, lower), a),
    settings=("lower",), x=lambda xp, g, x, lower: _eigvalsh_rule(xp, g, x, lower))


def _eigvalsh_rule(xp: Any, g: Any, x: Any, lower: bool) -> Any:
    _, vectors = xp.unpack(xp.eigh(x, lower), _eigen_shapes(tuple(x.shape)))
    return xp.matmul(vectors * columns(xp, g), adj(xp, vectors))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Any:
    """Return the eigenvalues, rising, of symmetric or Hermitian matrices; one triangle is read.

    >>> import mutagrad as mg
    >>> mg.linalg.eigvalsh(mg.tensor([[2., 0.], [0., 3.]]))
    tensor([2., 3.])
    """
    return write_out("eigvalsh", eigvalsh_values(square(A, "eigvalsh"), _is_lower("eigvalsh", UPLO)), out)


def _complex_type(dtype: Any) -> Any:
    return np.dtype("complex64" if dtype.char in "fF" else "complex128")


def _eig(a: Array) -> Any:
    values, vectors = _converged("eig", lambda: np.linalg.eig(a), a)
    to = _complex_type(a.dtype)
    return pack([values.astype(to, copy=False), vectors.astype(to, copy=False)])


def _eig_rule(xp: Any, g: Any, x: Any, out: Any) -> Any:
    """inv(V).H @ (diag(gL) + (V.H gV - V.H V diag(V.H gV)) / gaps) @ V.H: the vectors keep their length."""
    shapes = _eigen_shapes(tuple(x.shape))
    (g_values, g_vectors), (values, vectors) = xp.unpack(g, shapes), xp.unpack(out, shapes)
    back = adj(xp, vectors)
    turned = xp.matmul(back, g_vectors)
    along = diagonal_of(xp, turned)
    _check_phase(xp, "eig", along)
    gaps = xp.conj(columns(xp, values) - rows(xp, values))
    sideways = _off_diagonal(xp, turned - xp.matmul(back, vectors) * columns(xp, real_part(xp, along)))
    inner = ratio(xp, sideways, gaps) + as_diagonal(xp, g_values)
    found = xp.solve(back, xp.matmul(inner, back), False)
    return found if xp.is_complex(x) else xp.cast(found, np.dtype("f4" if xp.plain(x).dtype.char == "f" else "f8"))


eig_values = with_conjugates(primitive("eig", _eig, x=lambda xp, g, x, out: _eig_rule(xp, g, x, out)))


def eig(A: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return the eigenvalues and eigenvectors of any square matrices, as complex numbers.

    >>> import mutagrad as mg
    >>> values, vectors = mg.linalg.eig(mg.tensor([[2., 0.], [0., 3.]]))
    >>> values
    tensor([2.+0.j, 3.+0.j])
    """
    shape = square(A, "eig")._array.shape
    return write_out("eig", return_types.linalg_eig(*unpack(eig_values(A), _eigen_shapes(shape))), out)


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the eigenvalues of any square matrices, as complex numbers.

    >>> import mutagrad as mg
    >>> mg.linalg.eigvals(mg.tensor([[2., 0.], [0., 3.]]))
    tensor([2.+0.j, 3.+0.j])
    """
    array = square(A, "eigvals")._array
    shape = array.shape
    if A._storage.writer is None and is_plain(array):
        values = _converged("eigvals", lambda: lapack.eigvals(array), array)
        return write_out("eigvals", make(values.astype(_complex_type(array.dtype), copy=False)), out)
    return write_out("eigvals", clone(unpack(eig_values(A), _eigen_shapes(shape))[0]), out)


# ----------------------------------------------------------------------------------------------------- singular vectors

def _svd_shapes(shape: tuple[int, ...], full: bool) -> tuple[tuple[int, ...], ...]:
    *batch, m, n = shape
    k = min(m, n)
    return (*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n)


def _svd(a: Array, full: bool) -> Any:
    u, s, vh = _converged("svd", lambda: lapack.svd(a, full), a)
    return pack([u, s.astype(a.dtype, copy=False), vh])


def _svd_rule(xp: Any, g: Any, x_shape: tuple[int, ...], out: Any, full: bool) -> Any:
    """U @ inner @ V.H, where `inner` turns the vectors towards each other, and what of gU, gV lies outside of U, V."""
    dims, shapes = len(x_shape), _svd_shapes(x_shape, full)
    m, n = x_shape[-2:]
    k = min(m, n)
    (gu, gs, gvh), (u, s, vh) = ((xp.narrow(a, dims - 1, 0, k), b, xp.narrow(c, dims - 2, 0, k)) for a, b, c in
                                 (xp.unpack(g, shapes), xp.unpack(out, shapes)))
    back = adj(xp, u)
    left, right = xp.matmul(back, gu), xp.matmul(vh, adj(xp, gvh))
    if xp.is_complex(left):
        _check_phase(xp, "svd", diagonal_of(xp, left) + diagonal_of(xp, right))
    turned = (left - adj(xp, left)) * columns(xp, s) + rows(xp, s) * (right - adj(xp, right))
    squares = s * s
    inner = ratio(xp, _off_diagonal(xp, turned), columns(xp, squares) - rows(xp, squares))
    along = real_part(xp, gs)
    if xp.is_complex(left):
        phase = diagonal_of(xp, left)
        along = along + ratio(xp, (phase - xp.conj(phase)) * 0.5, s)
    inner = inner + as_diagonal(xp, along)
    found = xp.matmul(u, inner)
    if m > k:
        found = found + ratio(xp, gu - xp.matmul(u, left), columns(xp, s))
    found = xp.matmul(found, vh)
    if n > k:
        outside = gvh - xp.matmul(adj(xp, right), vh)
        found = found + xp.matmul(u, ratio(xp, outside, rows(xp, s)))
    return found


svd_values = with_conjugates(primitive("svd", _svd, settings=("full",),
                                       x=lambda xp, g, x_shape, out, full: _svd_rule(xp, g, x_shape, out, full)))
svdvals_values = primitive("svdvals", lambda a: _converged("svdvals", lambda: lapack.svdvals(a), a),
                           x=lambda xp, g, x: _svdvals_rule(xp, g, x))


def _svdvals_rule(xp: Any, g: Any, x: Any) -> Any:
    u, _, vh = xp.unpack(xp.svd(x, False), _svd_shapes(tuple(x.shape), False))
    return xp.matmul(u * columns(xp, g), vh)


def _check_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise BadValue(f"{name}: driver={driver!r} is for CUDA tensors", why="on the CPU there is one",
                       fix="driver=None")


def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None,
               out: Sequence[Tensor] | None = None) -> Any:
    """Return U, S and Vh with A = U @ diag(S) @ Vh: orthonormal columns, falling singular values, orthonormal rows.

    >>> import mutagrad as mg
    >>> u, s, vh = mg.linalg.svd(mg.tensor([[3., 0.], [0., 4.]]))
    >>> s
    tensor([4., 3.])
    """
    _check_driver("svd", driver)
    shape = matrices(A, "svd")._array.shape
    u, s, vh = unpack(svd_values(A, full_matrices), _svd_shapes(shape, full_matrices))
    return write_out("svd", return_types.linalg_svd(u, as_real(s), vh), out)


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Any:
    """Return the singular values of matrices, falling.

    >>> import mutagrad as mg
    >>> mg.linalg.svdvals(mg.tensor([[3., 0.], [0., 4.]]))
    tensor([4., 3.])
    """
    _check_driver("svdvals", driver)
    return write_out("svdvals", svdvals_values(matrices(A, "svdvals")), out)


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return U, S and V with A = U @ diag(S) @ V.mH: an older `linalg.svd`; without `compute_uv` U and V are zeros.

    >>> import mutagrad as mg
    >>> u, s, v = mg.svd(mg.tensor([[3., 0.], [0., 4.]]))
    >>> s
    tensor([4., 3.])
    """
    m, n = matrices(input, "svd")._array.shape[-2:]
    if not compute_uv:
        batch = input._array.shape[:-2]
        u, v = (make(np.zeros((*batch, k, k), input._array.dtype)) for k in (m, n))
        return write_out("svd", return_types.svd(u, svdvals(input), v), out)
    u, s, vh = linalg_svd(input, not some)
    return write_out("svd", return_types.svd(u, s, adjoint(vh)), out)
