"""LU factorizations of matrices, LDL factorizations of symmetric ones, and solving with them."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.kinds import computed, take_rows
from ...arrays.scipy import lapack
from ...base import return_types
from ...base.errors import DTypeError, NotSupported, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import make
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..shape.shape import narrow, tensor_argument, transpose
from .matrices import adjoint, tril, triu
from .products import matmul
from .solving import (
    SINGULAR,
    adj,
    batched,
    each_matrix,
    first_failure,
    matrices,
    one_type,
    solve_right,
    solve_triangular,
    square,
    with_conjugates,
)

FUNCTIONS = "lu lu_solve lu_unpack"
METHODS = "lu lu_solve"


_FEW = 16  # matrices up to which exchanging rows one by one is faster than in all of them at once


def _exchanged(pivots: list[int], rows: int) -> list[int]:
    order = list(range(rows))
    for k, chosen in enumerate(pivots):
        order[k], order[chosen - 1] = order[chosen - 1], order[k]
    return order


def _row_order(pivots: Array, rows: int) -> Any:
    """The order in which LAPACK's exchanges, counted from 1, leave the rows."""
    count = prod(pivots.shape[:-1])
    if type(pivots) is np.ndarray and count <= _FEW:
        exchanged = [_exchanged(chosen, rows) for chosen in pivots.reshape(count, pivots.shape[-1]).tolist()]
        return np.array(exchanged, np.int64).reshape(*pivots.shape[:-1], rows)
    each = np.arange(count)
    order = np.broadcast_to(np.arange(rows), (len(each), rows)).copy()
    for k, chosen in enumerate(pivots.reshape(len(each), pivots.shape[-1]).T - 1):
        order[each, k], order[each, chosen] = order[each, chosen], order[each, k].copy()
    return order.reshape(*pivots.shape[:-1], rows)


RAW.row_order = _row_order


def _permutation(order: Array, dtype: Any) -> Any:
    """P with A = P @ L @ U: column k is 1 where row k of the product came from."""
    return take_rows(np.eye(order.shape[-1], dtype=dtype), order).swapaxes(-2, -1)


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
    inner = xp.tril(xp.matmul(adj(xp, lower), g_lower) + g_lower, -1)
    inner = inner + xp.triu(xp.matmul(xp.triu(g_top, 0), adj(xp, xp.triu(top, 0))), 0)
    found = solve_right(xp, adj(xp, top), xp.solve_triangular(adj(xp, top), inner, True, True), False)
    if m > n:
        found = xp.join([found, below], dims - 2)
    elif beyond is not None:
        found = xp.join([found, beyond], dims - 1)
    return xp.matmul(xp.fixed(permutation), found)


RAW.fixed, RECORDED.fixed = lambda a: a, make
lu_values = with_conjugates(primitive(
    "lu_factor", lambda a, factors, permutation: factors, settings=("factors", "permutation"),
    x=lambda xp, g, out, permutation: _lu_rule(xp, g, out, permutation)))


def _check_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise NotSupported(f"{name}: pivot=False is not supported", why="on the CPU PyTorch does not have it either",
                           fix="pivot=True")


def _lu(name: str, A: Tensor, pivot: bool) -> Any:
    array = matrices(A, name)._array
    _check_pivot(name, pivot)
    factors, pivots, info = RAW.lu_arrays(array)
    permutation = computed(lambda p: _permutation(RAW.row_order(p, array.shape[-2]), array.dtype), pivots)
    found = lu_values(A, factors, permutation)
    return return_types.linalg_lu_factor_ex(found, make(pivots), make(info))


def lu_factor(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> Any:
    """Return L and U in one matrix, and the exchanges of rows, counted from 1.

    >>> import mutagrad as mg
    >>> packed, pivots = mg.linalg.lu_factor(mg.tensor([[1., 2.], [4., 4.]]))
    >>> packed, pivots
    (tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]]), tensor([2, 2], dtype=mutagrad.int32))
    """
    factors, pivots, info = _lu("lu_factor", A, pivot)
    first_failure("lu_factor", A._array.shape, info._array, SINGULAR, "lu_factor_ex, which returns it with its info")
    return write_out("lu_factor", return_types.linalg_lu_factor(factors, pivots), out)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False,
                 out: Sequence[Tensor] | None = None) -> Any:
    """Return L and U in one matrix, the exchanges of rows, and for each matrix 0 or its first zero pivot.

    >>> import mutagrad as mg
    >>> packed, pivots, info = mg.linalg.lu_factor_ex(mg.tensor([[1., 2.], [4., 4.]]))
    >>> info
    tensor(0, dtype=mutagrad.int32)
    """
    found = _lu("lu_factor_ex", A, pivot)
    if check_errors:
        first_failure("lu_factor_ex", A._array.shape, found.info._array, SINGULAR, "check_errors=False")
    return write_out("lu_factor_ex", found, out)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *,
              out: Sequence[Tensor] | None = None) -> Any:
    """Return P, L and U out of what `lu_factor` returns; what is not asked for is empty.

    >>> import mutagrad as mg
    >>> p, l, u = mg.lu_unpack(*mg.linalg.lu_factor(mg.tensor([[1., 2.], [4., 4.]])))
    >>> p @ l @ u
    tensor([[1., 2.],
            [4., 4.]])
    """
    array = matrices(LU_data, "lu_unpack")._array
    if tensor_argument(LU_pivots, "lu_unpack")._array.dtype != np.int32:
        raise DTypeError("lu_unpack: the pivots must be of type int32, as lu_factor returns them", fix="pivots.int()")
    m, n = array.shape[-2:]
    k = min(m, n)
    empty = make(np.zeros(0, array.dtype))
    permutation = make(_permutation(RAW.row_order(LU_pivots._array, m), array.dtype)) if unpack_pivots else empty
    lower, upper = empty, empty
    if unpack_data:
        lower = tril(narrow(LU_data, -1, 0, k), -1) + make(np.eye(m, k, dtype=array.dtype))
        upper = triu(narrow(LU_data, -2, 0, k))
    return write_out("lu_unpack", return_types.lu_unpack(permutation, lower, upper), out)


def linalg_lu(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> Any:
    """Return P, L and U with A = P @ L @ U: a permutation, a lower triangle with a diagonal of ones, an upper one.

    >>> import mutagrad as mg
    >>> p, l, u = mg.linalg.lu(mg.tensor([[1., 2.], [4., 4.]]))
    >>> l, u
    (tensor([[1.0000, 0.0000],
            [0.2500, 1.0000]]), tensor([[4., 4.],
            [0., 1.]]))
    """
    factors, pivots, _ = _lu("lu", A, pivot)
    return write_out("lu", return_types.linalg_lu(lu_unpack(factors, pivots)), out)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """Return L and U in one matrix, row exchanges and, with `get_infos`, first zero pivots: an older `lu_factor`.

    >>> import mutagrad as mg
    >>> packed, pivots = mg.lu(mg.tensor([[1., 2.], [4., 4.]]))
    >>> packed, pivots
    (tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]]), tensor([2, 2], dtype=mutagrad.int32))
    """
    factors, pivots, info = _lu("lu", A, pivot)
    if not get_infos:
        first_failure("lu", A._array.shape, info._array, SINGULAR, "get_infos=True, which returns it with its info")
    return write_out("lu", (factors, pivots, info) if get_infos else (factors, pivots), out)


def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False,
                    out: Tensor | None = None) -> Any:
    """Return X with A @ X = B, given A's `lu_factor`; X @ A = B if not `left`, A.mH in place of A if `adjoint`.

    >>> import mutagrad as mg
    >>> packed, pivots = mg.linalg.lu_factor(mg.tensor([[1., 2.], [4., 4.]]))
    >>> mg.linalg.lu_solve(packed, pivots, mg.tensor([[5.], [12.]]))
    tensor([[1.],
            [2.]])
    """
    square(LU, "lu_solve")
    matrices(B, "lu_solve")
    one_type("lu_solve", LU, B)
    if B._array.shape[-2 if left else -1] != LU._array.shape[-1]:
        raise ShapeError(f"lu_solve: LU of shape {LU._array.shape} and B of shape {B._array.shape} do not fit",
                         fix="check which one should be transposed")
    if not left:
        return write_out("lu_solve", _adjoint(linalg_lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint)), out)
    rows = RAW.row_order(tensor_argument(pivots, "lu_solve")._array, LU._array.shape[-1])
    permutation = make(_permutation(rows, LU._array.dtype))
    factors, right = batched("lu_solve", LU, B)
    if adjoint:
        half = solve_triangular(_adjoint(factors), right, upper=False)
        found = matmul(permutation, solve_triangular(_adjoint(factors), half, upper=True, unitriangular=True))
    else:
        half = solve_triangular(factors, matmul(transpose(permutation, -2, -1), right), upper=False, unitriangular=True)
        found = solve_triangular(factors, half, upper=True)
    return write_out("lu_solve", found, out)


_adjoint = adjoint


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Any:
    """Return X with A @ X = b, given what `lu_factor` says of A: an older form of `linalg.lu_solve`.

    >>> import mutagrad as mg
    >>> a = mg.tensor([[1., 2.], [4., 4.]])
    >>> mg.lu_solve(mg.tensor([[5.], [12.]]), *mg.linalg.lu_factor(a))
    tensor([[1.],
            [2.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)


# ------------------------------------------------------------------------------------------------------------------ LDL

def _ldl(name: str, A: Tensor, hermitian: bool) -> Any:
    array = square(A, name)._array
    factor = lapack("hetrf" if hermitian and array.dtype.kind == "c" else "sytrf", array.dtype, name)
    n = array.shape[-1]
    found = each_matrix(lambda a: factor(a, lower=1), array, ((n, n), array.dtype), ((n,), np.int32), ((), np.int32))
    values = ldl_values(A, np.tril(found[0]))
    return return_types.linalg_ldl_factor_ex(values, make(found[1]), make(found[2]))


ldl_values = primitive("ldl_factor", lambda a, factors: factors, settings=("factors",), inputs=("x",), x=None)


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """Return L and the block diagonal D with A = L @ D @ L.mT (`hermitian`: L.mH) in one matrix; and row exchanges.

    >>> import mutagrad as mg
    >>> a = mg.tensor([[4., 2.], [2., 5.]])
    >>> packed, pivots = mg.linalg.ldl_factor(a)
    >>> mg.linalg.ldl_solve(packed, pivots, mg.tensor([[6.], [7.]]))
    tensor([[1.],
            [1.]])
    """
    found = _ldl("ldl_factor", A, hermitian)
    first_failure("ldl_factor", A._array.shape, found.info._array, SINGULAR,
                  "ldl_factor_ex, which returns it with its info")
    return write_out("ldl_factor", return_types.linalg_ldl_factor(found.LD, found.pivots), out)


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False,
                  out: Sequence[Tensor] | None = None) -> Any:
    """Do as `ldl_factor`, with 0 or the first zero pivot for each matrix instead of an error.

    >>> import mutagrad as mg
    >>> packed, pivots, info = mg.linalg.ldl_factor_ex(mg.tensor([[4., 2.], [2., 5.]]))
    >>> info
    tensor(0, dtype=mutagrad.int32)
    """
    found = _ldl("ldl_factor_ex", A, hermitian)
    if check_errors:
        first_failure("ldl_factor_ex", A._array.shape, found.info._array, SINGULAR, "check_errors=False")
    return write_out("ldl_factor_ex", found, out)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Any:
    """Return X with A @ X = B, given what `ldl_factor` says of A.

    >>> import mutagrad as mg
    >>> a = mg.tensor([[4., 2.], [2., 5.]])
    >>> mg.linalg.ldl_solve(*mg.linalg.ldl_factor(a), mg.tensor([[6.], [7.]]))
    tensor([[1.],
            [1.]])
    """
    square(LD, "ldl_solve")
    matrices(B, "ldl_solve")
    one_type("ldl_solve", LD, B)
    if B._array.shape[-2] != LD._array.shape[-1]:
        raise ShapeError(f"ldl_solve: LD of shape {LD._array.shape} and B of shape {B._array.shape} do not fit",
                         fix="B needs as many rows as LD")
    factors, right = batched("ldl_solve", LD, B)
    found = ldl_solve_values(factors, right, tensor_argument(pivots, "ldl_solve")._array, hermitian)
    return write_out("ldl_solve", found, out)


def _ldl_solve(factors: Array, b: Array, pivots: Array, hermitian: bool) -> Any:
    solve = lapack("hetrs" if hermitian and factors.dtype.kind == "c" else "sytrs", factors.dtype, "ldl_solve")
    pivots = np.broadcast_to(pivots, factors.shape[:-1])
    out = np.empty(b.shape, b.dtype)
    for at in np.ndindex(b.shape[:-2]):
        out[at] = solve(factors[at], pivots[at], b[at], lower=1)[0] if b.size else b[at]
    return out


ldl_solve_values = primitive("ldl_solve", _ldl_solve, settings=("pivots", "hermitian"), inputs=("x", "y"),
                             x=None, y=None)
