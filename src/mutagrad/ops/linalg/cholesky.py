"""Cholesky factorizations of positive definite matrices, and solving with them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import lapack, np
from ...arrays.kinds import computed, perhaps, require_plain
from ...base import return_types
from ...base.errors import ShapeError, may_need_much
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import make
from ...core.op import RAW
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from .matrices import adjoint
from .solving import (
    adj,
    as_diagonal,
    batched,
    diagonal_of,
    first_failure,
    matrices,
    one_type,
    solve_right,
    solve_triangular,
    square,
    with_conjugates,
)

FUNCTIONS = "cholesky cholesky_inverse cholesky_solve"
METHODS = "cholesky cholesky_inverse cholesky_solve"


def _cholesky(a: Array, upper: bool, strict: bool) -> Any:
    a = a.conj().swapaxes(-2, -1) if upper else a
    try:
        found = lapack.cholesky(a)
    except np.linalg.LinAlgError:
        require_plain("a matrix has no Cholesky factor, and others may have one", a)
        found, info = _each(a)
        if strict:
            first_failure("cholesky", a.shape, info, "is not positive-definite: its leading minor of order {0} is not",
                          "A @ A.mT + eps * eye(n)")
    return found.conj().swapaxes(-2, -1) if upper else found


def _each(a: Array) -> tuple[Array, Array]:
    """The factor of each matrix, nan where there is none, and the order of the first minor that is to blame, or 0."""
    found, info = np.empty_like(a), np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(info.shape):
        found[at], info[at] = lapack.cholesky_or_order(a[at])
    return found, info


def _bad_minors(a: Array) -> Any:
    """For each matrix the order of the first leading minor that is not positive definite, or 0."""
    require_plain("each matrix has minors of its own", a)
    return _each(a)[1]


RAW.bad_minors = _bad_minors


def _cholesky_rule(xp: Any, g: Any, out: Any, upper: bool) -> Any:
    """inv(L).H @ half @ inv(L), where `half` is the lower half of L.H @ g made Hermitian: A is."""
    g, factor = (adj(xp, g), adj(xp, out)) if upper else (g, out)
    product = xp.matmul(adj(xp, factor), g)
    lower = xp.tril(product, -1)
    half = (lower + adj(xp, lower) + as_diagonal(xp, diagonal_of(xp, product))) * 0.5
    return solve_right(xp, factor, xp.solve_triangular(adj(xp, factor), half, True, False), False)


cholesky_values = with_conjugates(primitive("cholesky", _cholesky, settings=("upper", "strict"),
                                            x=lambda xp, g, out, upper: _cholesky_rule(xp, g, out, upper)))


def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Any:
    """Return the lower L with L @ L.mH = A, for positive definite A; or the upper U with U.mH @ U = A.

    >>> import mutagrad as mg
    >>> mg.linalg.cholesky(mg.tensor([[4., 2.], [2., 2.]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return write_out("cholesky", cholesky_values(square(A, "cholesky"), upper, True), out)


def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Any:
    """Return the triangular factor of a positive definite matrix: an older name of `linalg.cholesky`.

    >>> import mutagrad as mg
    >>> mg.cholesky(mg.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return linalg_cholesky(input, upper=upper, out=out)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False,
                out: Sequence[Tensor] | None = None) -> Any:
    """Return the factor, nan where it fails, and for each matrix 0 or the order of the minor that is not positive.

    >>> import mutagrad as mg
    >>> factor, info = mg.linalg.cholesky_ex(mg.tensor([[4., 2.], [2., 5.]]))
    >>> factor, info
    (tensor([[2., 0.],
            [1., 2.]]), tensor(0, dtype=mutagrad.int32))
    """
    found = cholesky_values(square(A, "cholesky_ex"), upper, check_errors)
    failed = perhaps(np.isnan(found._array))
    a = A._array.conj().swapaxes(-2, -1) if upper else A._array
    info = computed(RAW.bad_minors, a) if failed else np.zeros(a.shape[:-2], np.int32)
    return write_out("cholesky_ex", return_types.linalg_cholesky_ex(found, make(info)), out)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Any:
    """Return X with A @ X = B, given the Cholesky factor of A.

    >>> import mutagrad as mg
    >>> mg.cholesky_solve(mg.tensor([[4.], [2.]]), mg.tensor([[2., 0.], [1., 2.]]))
    tensor([[1.],
            [0.]])
    """
    square(L, "cholesky_solve")
    matrices(B, "cholesky_solve")
    one_type("cholesky_solve", L, B)
    if B._array.shape[-2] != L._array.shape[-1]:
        raise ShapeError(f"cholesky_solve: B of shape {B._array.shape} and L of shape {L._array.shape} do not fit",
                         fix="B needs as many rows as L")
    lower, right = batched("cholesky_solve", adjoint(L) if upper else L, B)
    half = solve_triangular(lower, right, upper=False)
    return write_out("cholesky_solve", solve_triangular(adjoint(lower), half, upper=True), out)


@may_need_much
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Any:
    """Return the inverse of A, given its Cholesky factor.

    >>> import mutagrad as mg
    >>> mg.cholesky_inverse(mg.tensor([[2., 0.], [1., 2.]]))
    tensor([[ 0.3125, -0.1250],
            [-0.1250,  0.2500]])
    """
    square(L, "cholesky_inverse")
    eye = make(np.broadcast_to(np.eye(L._array.shape[-1], dtype=L._array.dtype), L._array.shape).copy())
    return cholesky_solve(eye, L, upper, out=out)
