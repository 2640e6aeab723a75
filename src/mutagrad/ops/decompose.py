"""Factorizations of matrices: Cholesky, LU, LDL, QR, eigenvectors, singular vectors.

A factorization with several float results is one operation, whose results are windows on one storage. What LAPACK leaves
open (signs, phases) a loss must not depend on; for complex matrices that is checked, because the derivative would be wrong.
"""
from __future__ import annotations

from math import prod
from typing import Any

from .. import return_types
from ..backends import np
from ..backends.science import lapack
from ..call import primitive
from ..construct import make
from ..dtypes import of_array
from ..errors import BadValue, DTypeError, GradientError, LinAlgError, NotSupported, ShapeError
from ..op import RAW, RECORDED
from .create import randn
from .linalg import matmul
from .matrices import adjoint, tril, triu
from .outs import write_out
from .shape import clone, narrow, pack, tensor_argument, transpose, unpack, unsqueeze
from .solving import (
    SINGULAR,
    adj,
    as_diagonal,
    as_real,
    batched,
    columns,
    diagonal_of,
    each_matrix,
    first_failure,
    in_batch,
    lu_arrays,
    matrices,
    one_type,
    ratio,
    real_part,
    rows,
    solve_right,
    solve_triangular,
    square,
    with_batch,
    with_conjugates,
)

RAW.plain, RECORDED.plain = lambda a: a, lambda x: x._array


def _off_diagonal(xp: Any, x: Any) -> Any:
    return xp.tril(x, -1) + xp.triu(x, 1)


def _check_phase(xp: Any, name: str, diagonal: Any) -> None:
    """Raises where a loss depends on the phase of complex vectors, which is LAPACK's choice."""
    turning = np.asarray(xp.plain(diagonal)).imag
    if np.any(np.abs(turning) > 1e-2):
        raise GradientError(f"{name}: the loss depends on the phase of the complex vectors", why="they are determined only up to a factor exp(i phi)",
                            fix="a loss of abs(V), or of products such as V @ V.mH")


# -------------------------------------------------------------------------------------------------------------- Cholesky

def _cholesky(a: Any, upper: bool, strict: bool) -> Any:
    a = a.conj().swapaxes(-2, -1) if upper else a
    try:
        found = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        info = _bad_minors(a)
        if strict:
            first_failure("cholesky", a.shape, info, "is not positive definite: its leading minor of order {0} is not", "A @ A.mT + eps * eye(n)")
        good = np.reshape(info == 0, (*a.shape[:-2], 1, 1))
        found = np.where(good, np.linalg.cholesky(np.where(good, a, np.eye(a.shape[-1], dtype=a.dtype))), a.dtype.type(np.nan))
    return found.conj().swapaxes(-2, -1) if upper else found


def _bad_minors(a: Any) -> Any:
    """For each matrix the order of the first leading minor that is not positive definite, or 0."""
    info = np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(info.shape):
        for order in range(1, a.shape[-1] + 1):
            try:
                np.linalg.cholesky(a[at][:order, :order])
            except np.linalg.LinAlgError:
                info[at] = order
                break
    return info


def _cholesky_rule(xp: Any, g: Any, out: Any, upper: bool) -> Any:
    """inv(L).H @ half @ inv(L), where `half` is the lower half of L.H @ g made Hermitian: A is."""
    g, factor = (adj(xp, g), adj(xp, out)) if upper else (g, out)
    product = xp.matmul(adj(xp, factor), g)
    lower = xp.tril(product, -1)
    half = (lower + adj(xp, lower) + as_diagonal(xp, diagonal_of(xp, product))) * 0.5
    return solve_right(xp, factor, xp.solve_triangular(adj(xp, factor), half, True, False), False)


cholesky_values = with_conjugates(primitive("cholesky", _cholesky, settings=("upper", "strict"),
                                            x=lambda xp, g, out, upper: _cholesky_rule(xp, g, out, upper)))


def linalg_cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """The lower triangular L with L @ L.mH = A, for positive definite A; or the upper one with U.mH @ U = A.

    >>> import mutagrad as mg
    >>> mg.linalg.cholesky(mg.tensor([[4., 2.], [2., 2.]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return write_out("cholesky", cholesky_values(square(A, "cholesky"), upper, True), out)


def cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """The triangular factor of a positive definite matrix: an older name of `linalg.cholesky`."""
    return linalg_cholesky(input, upper=upper, out=out)


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """The factor, and for each matrix 0 or the order of the minor that is not positive, in which case the factor is nan."""
    found = cholesky_values(square(A, "cholesky_ex"), upper, check_errors)
    failed = bool(np.isnan(found._array).any())
    a = A._array.conj().swapaxes(-2, -1) if upper else A._array
    info = _bad_minors(a) if failed else np.zeros(a.shape[:-2], np.int32)
    return write_out("cholesky_ex", return_types.linalg_cholesky_ex(found, make(info)), out)


def cholesky_solve(B: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """X with A @ X = B, given the Cholesky factor of A."""
    square(L, "cholesky_solve")
    matrices(B, "cholesky_solve")
    one_type("cholesky_solve", L, B)
    if B._array.shape[-2] != L._array.shape[-1]:
        raise ShapeError(f"cholesky_solve: B of shape {B._array.shape} and L of shape {L._array.shape} do not fit", fix="B needs as many rows as L")
    lower, right = batched("cholesky_solve", adjoint(L) if upper else L, B)
    half = solve_triangular(lower, right, upper=False)
    return write_out("cholesky_solve", solve_triangular(adjoint(lower), half, upper=True), out)


def cholesky_inverse(L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """The inverse of A, given its Cholesky factor."""
    square(L, "cholesky_inverse")
    eye = make(np.broadcast_to(np.eye(L._array.shape[-1], dtype=L._array.dtype), L._array.shape).copy())
    return cholesky_solve(eye, L, upper, out=out)


# ---------------------------------------------------------------------------------------------------------------- LU

def _row_order(pivots: Any, rows: int) -> Any:
    """The order in which LAPACK's exchanges, counted from 1, leave the rows."""
    each = np.arange(prod(pivots.shape[:-1]))
    order = np.broadcast_to(np.arange(rows), (len(each), rows)).copy()
    for k, chosen in enumerate(pivots.reshape(len(each), pivots.shape[-1]).T - 1):
        order[each, k], order[each, chosen] = order[each, chosen], order[each, k].copy()
    return order.reshape(*pivots.shape[:-1], rows)


def _permutation(order: Any, dtype: Any) -> Any:
    """P with A = P @ L @ U: column k is 1 where row k of the product came from."""
    return np.eye(order.shape[-1], dtype=dtype)[order].swapaxes(-2, -1)


def _lu_rule(xp: Any, g: Any, out: Any, permutation: Any) -> Any:
    """For square matrices P @ inv(L).H @ (tril(L.H gL, -1) + triu(gU U.H)) @ inv(U).H.

    What lies beyond the square depends on the factors of the square: B below is B inv(U), C to the right inv(L) C.
    """
    dims = len(out.shape)
    m, n = out.shape[dims - 2:]
    k = min(m, n)

    def part(x: Any, dim: int, start: int, length: int) -> Any:
        return xp.narrow(x, dims + dim, start, length)

    top, g_top = part(part(out, -2, 0, k), -1, 0, k), part(part(g, -2, 0, k), -1, 0, k)
    beyond = None
    if m > n:
        below = solve_right(xp, adj(xp, top), part(g, -2, k, m - k), False)
        g_top = g_top - xp.triu(xp.matmul(adj(xp, part(out, -2, k, m - k)), below), 0)
    elif n > m:
        beyond = xp.solve_triangular(adj(xp, top), part(g, -1, k, n - k), True, True)
        g_top = g_top - xp.tril(xp.matmul(beyond, adj(xp, part(out, -1, k, n - k))), -1)
    g_lower, lower = xp.tril(g_top, -1), xp.tril(top, -1)
    inner = xp.tril(xp.matmul(adj(xp, lower), g_lower) + g_lower, -1) + xp.triu(xp.matmul(xp.triu(g_top, 0), adj(xp, xp.triu(top, 0))), 0)
    found = solve_right(xp, adj(xp, top), xp.solve_triangular(adj(xp, top), inner, True, True), False)
    found = xp.join([found, below], dims - 2) if m > n else found if beyond is None else xp.join([found, beyond], dims - 1)
    return xp.matmul(xp.fixed(permutation), found)


RAW.fixed, RECORDED.fixed = lambda a: a, make
lu_values = with_conjugates(primitive("lu_factor", lambda a, factors, permutation: factors, settings=("factors", "permutation"),
                                      x=lambda xp, g, out, permutation: _lu_rule(xp, g, out, permutation)))


def _check_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise NotSupported(f"{name}: pivot=False is not supported", why="on the CPU PyTorch does not have it either", fix="pivot=True")


def _lu(name: str, A: Any, pivot: bool) -> Any:
    array = matrices(A, name)._array
    _check_pivot(name, pivot)
    factors, pivots, info = lu_arrays(array)
    found = lu_values(A, factors, _permutation(_row_order(pivots, array.shape[-2]), array.dtype))
    return return_types.linalg_lu_factor_ex(found, make(pivots), make(info))


def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """L and U in one matrix, and the exchanges of rows, counted from 1."""
    factors, pivots, info = _lu("lu_factor", A, pivot)
    first_failure("lu_factor", A._array.shape, info._array, SINGULAR, "lu_factor_ex, which returns it with its info")
    return write_out("lu_factor", return_types.linalg_lu_factor(factors, pivots), out)


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """L and U in one matrix, the exchanges of rows, and for each matrix 0 or its first zero pivot."""
    found = _lu("lu_factor_ex", A, pivot)
    if check_errors:
        first_failure("lu_factor_ex", A._array.shape, found.info._array, SINGULAR, "check_errors=False")
    return write_out("lu_factor_ex", found, out)


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None) -> Any:
    """P, L and U out of what `lu_factor` returns; what is not asked for is empty."""
    array = matrices(LU_data, "lu_unpack")._array
    if tensor_argument(LU_pivots, "lu_unpack")._array.dtype != np.int32:
        raise DTypeError("lu_unpack: the pivots must be of type int32, as lu_factor returns them", fix="pivots.int()")
    m, n = array.shape[-2:]
    k = min(m, n)
    empty = make(np.zeros(0, array.dtype))
    permutation = make(_permutation(_row_order(LU_pivots._array, m), array.dtype)) if unpack_pivots else empty
    lower, upper = empty, empty
    if unpack_data:
        lower = tril(narrow(LU_data, -1, 0, k), -1) + make(np.eye(m, k, dtype=array.dtype))
        upper = triu(narrow(LU_data, -2, 0, k))
    return write_out("lu_unpack", return_types.lu_unpack(permutation, lower, upper), out)


def linalg_lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """P, L and U with A = P @ L @ U: a permutation, a lower triangle with ones on its diagonal, an upper triangle."""
    factors, pivots, _ = _lu("lu", A, pivot)
    return write_out("lu", return_types.linalg_lu(lu_unpack(factors, pivots)), out)


def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """L and U in one matrix, the exchanges of rows, and with `get_infos` the first zero pivots: an older form of `lu_factor`."""
    factors, pivots, info = _lu("lu", A, pivot)
    if not get_infos:
        first_failure("lu", A._array.shape, info._array, SINGULAR, "get_infos=True, which returns it with its info")
    return write_out("lu", (factors, pivots, info) if get_infos else (factors, pivots), out)


def linalg_lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = None) -> Any:
    """X with A @ X = B, given what `lu_factor` says of A; `left=False` for X @ A = B, `adjoint` for A.mH in place of A."""
    square(LU, "lu_solve")
    matrices(B, "lu_solve")
    one_type("lu_solve", LU, B)
    if B._array.shape[-2 if left else -1] != LU._array.shape[-1]:
        raise ShapeError(f"lu_solve: LU of shape {LU._array.shape} and B of shape {B._array.shape} do not fit", fix="check which one should be transposed")
    if not left:
        return write_out("lu_solve", _adjoint(linalg_lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint)), out)
    permutation = make(_permutation(_row_order(tensor_argument(pivots, "lu_solve")._array, LU._array.shape[-1]), LU._array.dtype))
    factors, right = batched("lu_solve", LU, B)
    if adjoint:
        half = solve_triangular(_adjoint(factors), right, upper=False)
        found = matmul(permutation, solve_triangular(_adjoint(factors), half, upper=True, unitriangular=True))
    else:
        half = solve_triangular(factors, matmul(transpose(permutation, -2, -1), right), upper=False, unitriangular=True)
        found = solve_triangular(factors, half, upper=True)
    return write_out("lu_solve", found, out)


_adjoint = adjoint


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """X with A @ X = b, given what `lu_factor` says of A: an older form of `linalg.lu_solve`."""
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)


# ------------------------------------------------------------------------------------------------------------------- LDL

def _ldl(name: str, A: Any, hermitian: bool) -> Any:
    array = square(A, name)._array
    factor = lapack("hetrf" if hermitian and array.dtype.kind == "c" else "sytrf", array.dtype, name)
    n = array.shape[-1]
    found = each_matrix(lambda a: factor(a, lower=1), array, ((n, n), array.dtype), ((n,), np.int32), ((), np.int32))
    values = ldl_values(A, np.tril(found[0]))
    return return_types.linalg_ldl_factor_ex(values, make(found[1]), make(found[2]))


ldl_values = primitive("ldl_factor", lambda a, factors: factors, settings=("factors",), inputs=("x",), x=None)


def ldl_factor(A: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """L and the block diagonal D with A = L @ D @ L.mT (L.mH if `hermitian`) in one matrix, and the exchanges of rows."""
    found = _ldl("ldl_factor", A, hermitian)
    first_failure("ldl_factor", A._array.shape, found.info._array, SINGULAR, "ldl_factor_ex, which returns it with its info")
    return write_out("ldl_factor", return_types.linalg_ldl_factor(found.LD, found.pivots), out)


def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As `ldl_factor`, with 0 or the first zero pivot for each matrix instead of an error."""
    found = _ldl("ldl_factor_ex", A, hermitian)
    if check_errors:
        first_failure("ldl_factor_ex", A._array.shape, found.info._array, SINGULAR, "check_errors=False")
    return write_out("ldl_factor_ex", found, out)


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """X with A @ X = B, given what `ldl_factor` says of A."""
    square(LD, "ldl_solve")
    matrices(B, "ldl_solve")
    one_type("ldl_solve", LD, B)
    if B._array.shape[-2] != LD._array.shape[-1]:
        raise ShapeError(f"ldl_solve: LD of shape {LD._array.shape} and B of shape {B._array.shape} do not fit", fix="B needs as many rows as LD")
    return write_out("ldl_solve", ldl_solve_values(*batched("ldl_solve", LD, B), tensor_argument(pivots, "ldl_solve")._array, hermitian), out)


def _ldl_solve(factors: Any, b: Any, pivots: Any, hermitian: bool) -> Any:
    solve = lapack("hetrs" if hermitian and factors.dtype.kind == "c" else "sytrs", factors.dtype, "ldl_solve")
    pivots = np.broadcast_to(pivots, factors.shape[:-1])
    out = np.empty(b.shape, b.dtype)
    for at in np.ndindex(b.shape[:-2]):
        out[at] = solve(factors[at], pivots[at], b[at], lower=1)[0] if b.size else b[at]
    return out


ldl_solve_values = primitive("ldl_solve", _ldl_solve, settings=("pivots", "hermitian"), inputs=("x", "y"), x=None, y=None)

# -------------------------------------------------------------------------------------------------------------------- QR


def _qr_shapes(shape: tuple[int, ...], form: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    *batch, m, n = shape
    k = m if form == "complete" else min(m, n)
    return (*batch, m, k), (*batch, k, n)


def _qr(a: Any, form: str) -> Any:
    return pack(np.linalg.qr(a, form))


def _qr_rule(xp: Any, g: Any, x: Any, out: Any, form: str) -> Any:
    """For tall A: (gQ + Q @ M) @ inv(R).H, where M is the lower half of R gR.H - gQ.H Q made Hermitian.

    A wide A is a square part, and columns C to its right that become Q.H @ C.
    """
    dims = len(x.shape)
    m, n = x.shape[dims - 2:]
    if form == "complete" and m > n:
        raise GradientError("qr: has no derivative with mode='complete' for matrices with more rows than columns",
                            why="the last columns of Q are not determined by the matrix", fix="mode='reduced'")
    shapes = _qr_shapes(tuple(x.shape), form)
    (gq, gr), (q, r) = xp.unpack(g, shapes), xp.unpack(out, shapes)
    right = None
    if n > m:
        wide = xp.narrow(gr, dims - 1, m, n - m)
        right = xp.matmul(q, wide)
        gq = gq + xp.matmul(xp.narrow(x, dims - 1, m, n - m), adj(xp, wide))
        gr, r = xp.narrow(gr, dims - 1, 0, m), xp.narrow(r, dims - 1, 0, m)
    product = xp.matmul(r, adj(xp, gr)) - xp.matmul(adj(xp, gq), q)
    lower = xp.tril(product, -1)
    symmetric = lower + adj(xp, lower) + as_diagonal(xp, real_part(xp, diagonal_of(xp, product)))
    found = solve_right(xp, adj(xp, r), gq + xp.matmul(q, symmetric), False)
    return found if right is None else xp.join([found, right], dims - 1)


qr_values = with_conjugates(primitive("qr", _qr, settings=("form",), x=lambda xp, g, x, out, form: _qr_rule(xp, g, x, out, form)))
r_values = primitive("r_of_qr", lambda a: np.ascontiguousarray(np.linalg.qr(a, "r")), inputs=("x",), x=None)


def linalg_qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Q with orthonormal columns and the upper triangle R with A = Q @ R; mode "r" gives R alone, with Q empty."""
    shape = matrices(A, "qr")._array.shape
    if mode not in ("reduced", "complete", "r"):
        raise BadValue(f"qr: mode {mode!r} is not 'reduced', 'complete' or 'r'", fix="mode='reduced'")
    if mode == "r":
        return write_out("qr", return_types.linalg_qr(make(np.zeros(0, A._array.dtype)), r_values(A)), out)
    return write_out("qr", return_types.linalg_qr(*unpack(qr_values(A, mode), _qr_shapes(shape, mode))), out)


def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """Q and R with A = Q @ R: an older form of `linalg.qr`; `some=False` is mode "complete"."""
    return return_types.qr(linalg_qr(input, "reduced" if some else "complete", out=out))


def geqrf(input: Any, *, out: Any = None) -> Any:
    """The QR factorization as LAPACK keeps it: R above, and below it the vectors and factors of the reflections that make Q."""
    shape = matrices(input, "geqrf")._array.shape
    shapes = shape, (*shape[:-2], min(shape[-2:]))
    return write_out("geqrf", return_types.geqrf(*unpack(geqrf_values(input), shapes)), out)


def _geqrf(a: Any) -> Any:
    h, tau = np.linalg.qr(a, "raw")
    return pack([h.swapaxes(-2, -1), tau])


geqrf_values = primitive("geqrf", _geqrf, inputs=("x",), x=None)


def _reflect(vectors: Any, tau: Any, x: Any, backwards: bool, transposed: bool) -> Any:
    """`x` reflected at one vector after the other: (I - tau v v.H) x."""
    below = tril(vectors, -1) + make(np.eye(*vectors._array.shape[-2:], dtype=x._array.dtype))
    factors = RECORDED.conj(tau) if transposed and tau._array.dtype.kind == "c" else tau
    count = tau._array.shape[-1]
    for i in reversed(range(count)) if backwards else range(count):
        v = narrow(below, -1, i, 1)
        x = x - matmul(v, matmul(adjoint(v), x)) * unsqueeze(narrow(factors, -1, i, 1), -1)
    return x


def householder_product(input: Any, tau: Any, *, out: Any = None) -> Any:
    """The first columns of the product of reflections, as `geqrf` gives them: Q of the QR factorization."""
    shape = matrices(input, "householder_product")._array.shape
    one_type("householder_product", input, tensor_argument(tau, "householder_product"))
    m, n = shape[-2:]
    if m < n or n < tau._array.shape[-1] or tau._array.shape[:-1] != shape[:-2]:
        raise ShapeError(f"householder_product: shape {shape} and tau of shape {tau._array.shape} do not fit",
                         why="it needs at least as many rows as columns, and columns as factors", fix="mutagrad.geqrf(A) gives both")
    start = make(np.broadcast_to(np.eye(m, n, dtype=input._array.dtype), shape).copy())
    if not tau._array.size:
        start = RECORDED.where(make(np.array(False)), input, start)  # nothing to reflect at, and a history all the same
    return write_out("householder_product", _reflect(input, tau, start, True, False), out)


def orgqr(input: Any, tau: Any) -> Any:
    """The first columns of the product of reflections: LAPACK's name of `linalg.householder_product`."""
    return householder_product(input, tau)


def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False, *, out: Any = None) -> Any:
    """The product Q @ other of reflections and a matrix, or other @ Q; of Q.mH with `transpose`."""
    matrices(input, "ormqr")
    matrices(other, "ormqr")
    one_type("ormqr", input, tensor_argument(tau, "ormqr"), other)
    _check_reflectors(input._array.shape, tau._array.shape, other._array.shape, left)
    if left:
        found = _reflect(input, tau, other, not transpose, transpose)
    else:
        found = adjoint(_reflect(input, tau, adjoint(other), transpose, not transpose))
    return write_out("ormqr", found, out)


def _check_reflectors(a: tuple[int, ...], tau: tuple[int, ...], other: tuple[int, ...], left: bool) -> None:
    side = other[-2 if left else -1]
    if len(tau) != len(a) - 1 or len(other) != len(a) or tau[:-1] != a[:-2] or other[:-2] != a[:-2]:
        raise ShapeError(f"ormqr: shapes {a}, {tau} and {other} have different batches", fix="one batch of matrices, vectors and matrices")
    if tau[-1] > a[-1] or a[-2] != side or tau[-1] > side:
        raise ShapeError(f"ormqr: reflections of shape {a} with {tau[-1]} factors do not fit a matrix of shape {other}",
                         fix="mutagrad.geqrf(A) gives the first two")


# ----------------------------------------------------------------------------------------------------------- eigenvectors

def _eigh(a: Any, lower: bool) -> Any:
    values, vectors = _finite("eigh", lambda: np.linalg.eigh(a, "L" if lower else "U"), a)
    return pack([values.astype(a.dtype, copy=False), vectors])


def _finite(name: str, function: Any, a: Any) -> Any:
    try:
        return function()
    except np.linalg.LinAlgError:
        bad = np.flatnonzero(~np.isfinite(a).all((-2, -1)))
        which = in_batch(a.shape, bad[0]) if bad.size else "some matrix"
        raise LinAlgError(f"{name}: the algorithm did not converge for {which}", why="it has nan or inf in it, or is badly conditioned",
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
    inner = ratio(xp, _off_diagonal(xp, turned - adj(xp, turned)) * 0.5, gaps) + as_diagonal(xp, real_part(xp, g_values))
    return xp.matmul(vectors, xp.matmul(inner, back))


eigh_values = with_conjugates(primitive("eigh", _eigh, settings=("lower",), x=lambda xp, g, x_shape, out: _eigh_rule(xp, g, x_shape, out)))


def _is_lower(name: str, UPLO: str) -> bool:
    if str(UPLO).upper() not in ("L", "U"):
        raise BadValue(f"{name}: UPLO must be 'L' or 'U', not {UPLO!r}", fix="UPLO='L' reads the lower triangle")
    return str(UPLO).upper() == "L"


def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues, rising, and eigenvectors of symmetric or Hermitian matrices, of which one triangle is read."""
    shape = square(A, "eigh")._array.shape
    values, vectors = unpack(eigh_values(A, _is_lower("eigh", UPLO)), _eigen_shapes(shape))
    return write_out("eigh", return_types.linalg_eigh(as_real(values), vectors), out)


eigvalsh_values = primitive("eigvalsh", lambda a, lower: _finite("eigvalsh", lambda: np.linalg.eigvalsh(a, "L" if lower else "U"), a), settings=("lower",),
                            x=lambda xp, g, x, lower: _eigvalsh_rule(xp, g, x, lower))


def _eigvalsh_rule(xp: Any, g: Any, x: Any, lower: bool) -> Any:
    _, vectors = xp.unpack(xp.eigh(x, lower), _eigen_shapes(tuple(x.shape)))
    return xp.matmul(vectors * columns(xp, g), adj(xp, vectors))


def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues, rising, of symmetric or Hermitian matrices, of which one triangle is read."""
    return write_out("eigvalsh", eigvalsh_values(square(A, "eigvalsh"), _is_lower("eigvalsh", UPLO)), out)


def _complex_type(dtype: Any) -> Any:
    return np.dtype("complex64" if dtype.char in "fF" else "complex128")


def _eig(a: Any) -> Any:
    values, vectors = _finite("eig", lambda: np.linalg.eig(a), a)
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


def eig(A: Any, *, out: Any = None) -> Any:
    """The eigenvalues and eigenvectors of any square matrices, as complex numbers."""
    shape = square(A, "eig")._array.shape
    return write_out("eig", return_types.linalg_eig(*unpack(eig_values(A), _eigen_shapes(shape))), out)


def eigvals(A: Any, *, out: Any = None) -> Any:
    """The eigenvalues of any square matrices, as complex numbers."""
    shape = square(A, "eigvals")._array.shape
    return write_out("eigvals", clone(unpack(eig_values(A), _eigen_shapes(shape))[0]), out)


# -------------------------------------------------------------------------------------------------------- singular vectors

def _svd_shapes(shape: tuple[int, ...], full: bool) -> tuple[tuple[int, ...], ...]:
    *batch, m, n = shape
    k = min(m, n)
    return (*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n)


def _svd(a: Any, full: bool) -> Any:
    u, s, vh = _finite("svd", lambda: np.linalg.svd(a, full), a)
    return pack([u, s.astype(a.dtype, copy=False), vh])


def _svd_rule(xp: Any, g: Any, x_shape: tuple[int, ...], out: Any, full: bool) -> Any:
    """U @ inner @ V.H, where `inner` turns the vectors towards each other, and what of gU and gV lies outside of U and V."""
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


svd_values = with_conjugates(primitive("svd", _svd, settings=("full",), x=lambda xp, g, x_shape, out, full: _svd_rule(xp, g, x_shape, out, full)))
svdvals_values = primitive("svdvals", lambda a: _finite("svdvals", lambda: np.linalg.svd(a, compute_uv=False), a),
                           x=lambda xp, g, x: _svdvals_rule(xp, g, x))


def _svdvals_rule(xp: Any, g: Any, x: Any) -> Any:
    u, _, vh = xp.unpack(xp.svd(x, False), _svd_shapes(tuple(x.shape), False))
    return xp.matmul(u * columns(xp, g), vh)


def _check_driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise BadValue(f"{name}: driver={driver!r} is for CUDA tensors", why="on the CPU there is one", fix="driver=None")


def linalg_svd(A: Any, full_matrices: bool = True, *, driver: Any = None, out: Any = None) -> Any:
    """U, S and Vh with A = U @ diag(S) @ Vh: orthonormal columns, singular values falling, orthonormal rows."""
    _check_driver("svd", driver)
    shape = matrices(A, "svd")._array.shape
    u, s, vh = unpack(svd_values(A, full_matrices), _svd_shapes(shape, full_matrices))
    return write_out("svd", return_types.linalg_svd(u, as_real(s), vh), out)


def svdvals(A: Any, *, driver: Any = None, out: Any = None) -> Any:
    """The singular values of matrices, falling."""
    _check_driver("svdvals", driver)
    return write_out("svdvals", svdvals_values(matrices(A, "svdvals")), out)


def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V with A = U @ diag(S) @ V.mH: an older form of `linalg.svd`; without `compute_uv` U and V are zeros."""
    m, n = matrices(input, "svd")._array.shape[-2:]
    if not compute_uv:
        batch = input._array.shape[:-2]
        u, v = (make(np.zeros((*batch, k, k), input._array.dtype)) for k in (m, n))
        return write_out("svd", return_types.svd(u, svdvals(input), v), out)
    u, s, vh = linalg_svd(input, not some)
    return write_out("svd", return_types.svd(u, s, adjoint(vh)), out)


# -------------------------------------------------------------------------------------------------------------- low rank

def _range_basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """Orthonormal columns that nearly span the range of A - M: random directions, drawn towards it `niter` times."""
    def apply(x: Any) -> Any:
        return matmul(A, x) if M is None else matmul(A, x) - matmul(M, x)

    def apply_back(x: Any) -> Any:
        return matmul(adjoint(A), x) if M is None else matmul(adjoint(A), x) - matmul(adjoint(M), x)

    directions = randn(A._array.shape[-1], q, dtype=of_array(A._array.dtype))
    basis = linalg_qr(apply(directions)).Q
    for _ in range(niter):
        basis = linalg_qr(apply(linalg_qr(apply_back(basis)).Q)).Q
    return basis


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """Nearly the `q` largest singular values of A - M with their vectors, by random directions."""
    m, n = matrices(A, "svd_lowrank")._array.shape[-2:]
    M = None if M is None else with_batch(M, A._array.shape[:-2])
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if m < n:
        v, s, u = svd_lowrank(adjoint(A), q, niter, None if M is None else adjoint(M))
        return u, s, v
    basis = _range_basis(A, q, niter, M)
    small = matmul(adjoint(basis), A if M is None else A - M)
    u, s, vh = linalg_svd(small, False)
    return matmul(basis, u), s, adjoint(vh)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Nearly the `q` principal components: singular values and vectors of A, its columns centred first."""
    m, n = matrices(A, "pca_lowrank")._array.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise BadValue(f"pca_lowrank: q={q} is more than min{(m, n)}", why="there are no more components", fix=f"q={min(m, n)}")
    if niter < 0:
        raise BadValue(f"pca_lowrank: niter must not be negative, got {niter}", fix="niter=2")
    return svd_lowrank(A - RECORDED.mean(A, (A._array.ndim - 2,), True) if center else A, q, niter)
