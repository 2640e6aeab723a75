"""What the singular values of matrices tell: norms, rank, condition, pseudo-inverse, least squares."""
from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ...arrays import lapack, np
from ...arrays.kinds import anywhere
from ...base import return_types
from ...base.errors import BadData, BadValue, DTypeError, ShapeError, bad_choice
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import FLOAT, dtype, of_array
from ...core.factory import make
from ...core.number import number
from ...core.op import RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase
from ..math.elementwise import abs as abs_
from ..reduce.reductions import amax_dims, amin_dims, norm, sum_dims, to_dtype
from ..shape.shape import Dims, movedim, narrow, reshape, squeeze, tensor_argument, unsqueeze, whole_dims
from .products import matmul
from .solving import adj, as_real, batched, floating, inv_values, matrices, one_type, square, with_conjugates
from .spectral import eigvalsh, svdvals

FUNCTIONS = "pinverse"
METHODS = "pinverse"

# ---------------------------------------------------------------------------------------------------------------- norms


def _normed(name: str, x: TensorBase, dtype: dtype | None) -> TensorBase:
    """The tensor in the type that its norm is computed in."""
    if of_array(tensor_argument(x, name)._array.dtype).category < FLOAT:
        raise DTypeError(f"{name}: expects a floating point or complex tensor, got {of_array(x._array.dtype).name}",
                         fix="x.float()")
    return x if dtype is None else to_dtype(x, dtype)


def vector_norm(x: TensorBase, ord: float | str = 2, dim: Dims = None, keepdim: bool = False, *,
                dtype: dtype | None = None, out: TensorBase | None = None) -> Any:
    """Return the p-norm of all elements, or along dimensions; at zero its gradient is zero.

    >>> import mutagrad as mg
    >>> mg.linalg.vector_norm(mg.tensor([3., 4.]))
    tensor(5.)
    >>> mg.linalg.vector_norm(mg.tensor([3., -4.]), ord=1)
    tensor(7.)
    """
    ord = ord if ord.__class__ is str else number(ord)
    if isinstance(ord, (str, bool)):
        raise BadData(f"vector_norm: ord must be a number, not {ord!r}", fix="ord=2, or mutagrad.linalg.matrix_norm")
    x = _normed("vector_norm", x, dtype)
    dims = whole_dims(dim, x._array.ndim, "vector_norm")
    if abs(ord) == inf or ord < 0:
        _check_not_empty("vector_norm", x, dims)
    return write_out("vector_norm", norm(x, ord, dims if x._array.ndim else None, keepdim), out)


def _check_not_empty(name: str, x: TensorBase, dims: tuple[int, ...]) -> None:
    if any(x._array.shape[d] == 0 for d in dims):
        raise ShapeError(f"{name}: an empty dimension of shape {x._array.shape} has no largest or smallest element",
                         fix="if x.numel(): ...")


_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, inf, -inf)


def matrix_norm(A: TensorBase, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,
                dtype: dtype | None = None, out: TensorBase | None = None) -> Any:
    """Return the norm of matrices: of elements ("fro"), singular values (±2, "nuc"), columns (±1) or rows (±inf).

    >>> import mutagrad as mg
    >>> mg.linalg.matrix_norm(mg.tensor([[3., 0.], [0., 4.]]))
    tensor(5.)
    """
    ord = ord if ord.__class__ is str else number(ord)
    A = _normed("matrix_norm", A, dtype)
    if A._array.ndim < 2:
        raise ShapeError(f"matrix_norm: expects a matrix or a batch of them, got shape {A._array.shape}",
                         fix="mutagrad.linalg.vector_norm")
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise BadValue(f"matrix_norm: dim must name two dimensions, got {dim!r}", fix="dim=(-2, -1)")
    dims = whole_dims(dim, A._array.ndim, "matrix_norm")
    if ord not in _MATRIX_ORDERS:
        raise bad_choice(ord, (str, int, float), f"matrix_norm: ord={ord!r} is none of {_MATRIX_ORDERS}",
                         fix="ord='fro'")
    return write_out("matrix_norm", _matrix_norm(A, ord, dims, keepdim), out)


def _matrix_norm(A: TensorBase, ord: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    if ord == "fro":
        return norm(A, 2, dims, keepdim)
    if ord != "nuc":
        _check_matrix_sizes(A, ord, dims)
    if ord in ("nuc", 2, -2):
        values = svdvals(movedim(A, dims, (-2, -1)))
        last = (values._array.ndim - 1,)
        combine = sum_dims if ord == "nuc" else amax_dims if ord == 2 else amin_dims
        found = combine(values, last, False)
    else:
        summed, chosen = dims if abs(ord) == 1 else dims[::-1]
        found = sum_dims(abs_(A), (summed,), True)
        found = squeeze((amax_dims if ord > 0 else amin_dims)(found, (chosen,), True), dims)
    return reshape(found, *(1 if d in dims else n for d, n in enumerate(A._array.shape))) if keepdim else found


def _check_matrix_sizes(A: TensorBase, ord: Any, dims: tuple[int, ...]) -> None:
    """The largest of nothing does not exist."""
    sizes = [A._array.shape[d] for d in dims]
    chosen = min(sizes) if abs(ord) == 2 else sizes[1] if abs(ord) == 1 else sizes[0]
    if chosen == 0:
        raise ShapeError(f"matrix_norm: matrices of shape {tuple(sizes)} have no norm of order {ord}",
                         fix="if A.numel(): ...")


def linalg_norm(A: TensorBase, ord: float | str | None = None, dim: Any = None, keepdim: bool = False, *,
                out: TensorBase | None = None, dtype: dtype | None = None) -> Any:
    """Return the norm of vectors (one dimension) or matrices (two); of all elements without `ord` and `dim`.

    >>> import mutagrad as mg
    >>> mg.linalg.norm(mg.tensor([3., 4.]))
    tensor(5.)
    """
    x = _normed("norm", A, dtype)
    if dim is not None:
        dim = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        if len(dim) not in (1, 2) and ord is not None:
            raise BadValue(f"norm: dim must name one or two dimensions with ord, got {dim}", fix="dim=(-2, -1)")
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, out=out)
    if dim is None:
        if x._array.ndim not in (1, 2):
            raise ShapeError("norm: with ord and without dim it takes a vector or a matrix, "
                             f"got shape {x._array.shape}", fix="dim=(-2, -1)")
        dim = tuple(range(x._array.ndim))
    if len(dim) == 2:
        return matrix_norm(x, ord, dim, keepdim, out=out)
    return vector_norm(x, ord, dim, keepdim, out=out)


def cond(A: TensorBase, p: float | str | None = None, *, out: TensorBase | None = None) -> Any:
    """Return how much the solution of A @ X = B can grow with an error in B: norm(A) * norm(inv(A)).

    >>> import mutagrad as mg
    >>> mg.linalg.cond(mg.tensor([[2., 0.], [0., 4.]]))
    tensor(2.)
    """
    p = p if p.__class__ is str else number(p)
    matrices(A, "cond")
    if p is None or p in (2, -2):
        values = svdvals(A)
        k = values._array.shape[-1]
        if not k:
            return write_out("cond", make(np.zeros(values._array.shape[:-1], values._array.dtype)), out)
        first, last = (squeeze(narrow(values, -1, at, 1), -1) for at in (0, k - 1))
        return write_out("cond", last / first if p == -2 else first / last, out)
    if p not in _MATRIX_ORDERS:
        raise BadValue(f"cond: p={p!r} is none of {_MATRIX_ORDERS}", fix="p=2")
    if not square(A, "cond")._array.size:
        return write_out("cond", make(np.zeros(A._array.shape[:-2], as_real(A)._array.dtype)), out)
    found = matrix_norm(A, p) * matrix_norm(inv_values(A, False), p)
    return write_out("cond", RECORDED.where(make(np.isnan(found._array)), inf, found), out)


# ---------------------------------------------------------------------------------------------------------------- ranks

def _tolerances(A: TensorBase, atol: TensorBase | float | None, rtol: TensorBase | float | None) -> tuple[Array, Array]:
    """Absolute and relative, as arrays for each matrix: without either, what rounding leaves of a zero."""
    def as_array(value: TensorBase | float) -> Array:
        return value._array[..., None] if isinstance(value, TensorBase) else np.array(value)

    if rtol is None:
        rounding = np.finfo(A._array.dtype).eps * max(A._array.shape[-2:], default=0)
        rtol = rounding if atol is None else np.where(as_array(atol) > 0, 0.0, rounding)
    return as_array(0.0 if atol is None else atol), as_array(rtol)


def _above(values: Array, atol: Array, rtol: Array) -> Any:
    """Which singular values count as more than zero; `values` are along the last dimension, and not negative."""
    largest = values.max(-1, keepdims=True, initial=0)
    return values > np.maximum(atol, rtol * largest)


def matrix_rank(A: TensorBase, tol: TensorBase | float | None = None, hermitian: bool = False, *,
                atol: TensorBase | float | None = None, rtol: TensorBase | float | None = None,
                out: TensorBase | None = None) -> Any:
    """Return how many singular values are more than zero, up to tolerances.

    >>> import mutagrad as mg
    >>> mg.linalg.matrix_rank(mg.tensor([[1., 2.], [2., 4.]]))
    tensor(1)
    """
    matrices(A, "matrix_rank")
    if isinstance(tol, bool):
        tol, hermitian = None, tol
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _spectrum(A, hermitian)
    above = _above(values, *_tolerances(A, atol, rtol))
    return write_out("matrix_rank", make(np.asarray(above.sum(-1, dtype=np.int64))), out)


def _spectrum(A: TensorBase, hermitian: bool) -> Any:
    detached = make(A._array)
    return np.abs(eigvalsh(square(detached, "matrix_rank"))._array) if hermitian else svdvals(detached)._array


# ------------------------------------------------------------------------------------------------------ pseudo-inverses

def _pinv(a: Array, atol: Array, rtol: Array, hermitian: bool) -> Any:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        s, v = lapack.eigh(a, True)
        u = v
    else:
        u, s, vh = lapack.svd(a, False)
        v = vh.conj().swapaxes(-2, -1)
    counts = _above(np.abs(s), atol, rtol)
    inverted = np.where(counts, 1 / np.where(counts, s, 1), 0).astype(s.dtype)
    return (v * inverted[..., None, :]) @ u.conj().swapaxes(-2, -1)


def _pinv_rule(xp: Any, g: Any, x: Any, out: Any) -> Any:
    """As for an inverse, -P.H g P.H, and what g has outside of the range of A on either side."""
    back, g_back = adj(xp, out), adj(xp, g)
    left, right = xp.matmul(g_back, out), xp.matmul(out, g_back)
    found = -xp.matmul(back, xp.matmul(g, back))
    outside = xp.matmul(left, back)
    found = found + outside - xp.matmul(x, xp.matmul(out, outside))
    inside = xp.matmul(back, right)
    return found + inside - xp.matmul(xp.matmul(inside, out), x)


pinv_values = with_conjugates(primitive("pinv", _pinv, settings=("atol", "rtol", "hermitian"),
                                        x=lambda xp, g, x, out: _pinv_rule(xp, g, x, out)))


def pinv(A: TensorBase, rcond: TensorBase | float | None = None, hermitian: bool = False, *,
         atol: TensorBase | float | None = None, rtol: TensorBase | float | None = None,
         out: TensorBase | None = None) -> Any:
    """Return the pseudo-inverse: of all X that bring A @ X nearest to the identity, the smallest.

    >>> import mutagrad as mg
    >>> mg.linalg.pinv(mg.tensor([[2., 0.], [0., 4.], [0., 0.]]))
    tensor([[0.5000, 0.0000, 0.0000],
            [0.0000, 0.2500, 0.0000]])
    """
    matrices(A, "pinv")
    if isinstance(rcond, bool):
        rcond, hermitian = None, rcond
    tolerances = _tolerances(A, atol, rcond if rtol is None else rtol)
    if hermitian:
        square(A, "pinv")
    return write_out("pinv", pinv_values(A, *tolerances, bool(hermitian)), out)


def pinverse(input: TensorBase, rcond: float = 1e-15) -> Any:
    """Return the pseudo-inverse: an older name of `linalg.pinv`.

    >>> import mutagrad as mg
    >>> mg.pinverse(mg.tensor([[2., 0.], [0., 4.], [0., 0.]]))
    tensor([[0.5000, 0.0000, 0.0000],
            [0.0000, 0.2500, 0.0000]])
    """
    return pinv(input, rcond)


_DRIVERS = ("gelsy", "gels", "gelsd", "gelss")


def lstsq(A: TensorBase, B: TensorBase, rcond: TensorBase | float | None = None, *, driver: str | None = None) -> Any:
    """Return X for which A @ X comes nearest to B; and the residuals, rank and singular values of LAPACK's `driver`.

    >>> import mutagrad as mg
    >>> A, B = mg.tensor([[1., 0.], [1., 1.], [1., 2.]]), mg.tensor([[1.], [3.], [5.]])
    >>> mg.linalg.lstsq(A, B).solution.round(decimals=3)
    tensor([[1.],
            [2.]])
    """
    matrices(A, "lstsq")
    floating(B, "lstsq")
    one_type("lstsq", A, B)
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise bad_choice(driver, str, f"lstsq: driver {driver!r} is none of {_DRIVERS}", fix="driver='gelsy'")
    vector = B._array.ndim == A._array.ndim - 1 and B._array.shape == A._array.shape[:-1]
    right = unsqueeze(B, -1) if vector else matrices(B, "lstsq")
    if right._array.shape[-2] != A._array.shape[-2]:
        raise ShapeError(f"lstsq: A of shape {A._array.shape} and B of shape {B._array.shape} do not fit",
                         fix="B needs as many rows as A")
    a, b = batched("lstsq", A, right)
    if driver == "gelsy" and (found := _by_gelsy(a, b, rcond)) is not None:
        return return_types.linalg_lstsq(squeeze(found[0], -1) if vector else found[0],
                                         as_real(narrow(reshape(found[0], -1), 0, 0, 0)), *found[1:])
    values = _spectrum(A, False)
    counted = _above(values, *_tolerances(A, None, rcond)).sum(-1, dtype=np.int64)
    solution = matmul(pinv(a, rcond if driver != "gels" else 0.0), b)
    residuals = _residuals(a, b, solution, driver, counted)
    nothing = make(np.zeros(0, values.dtype))
    return return_types.linalg_lstsq(squeeze(solution, -1) if vector else solution, residuals,
                                     make(np.zeros(0, np.int64)) if driver == "gels" else make(np.asarray(counted)),
                                     make(values) if driver in ("gelsd", "gelss") else nothing)


def _lstsq_rule(xp: Any, g: Any, x: Any, y: Any, inverse: Any) -> Any:
    return _pinv_rule(xp, xp.matmul(g, adj(xp, y)), x, inverse)


lstsq_values = with_conjugates(primitive(
    "lstsq", lambda a, b, found, atol, rtol: found, settings=("found", "atol", "rtol"),
    x=lambda xp, g, x, y, atol, rtol: _lstsq_rule(xp, g, x, y, xp.pinv(x, atol, rtol, False)),
    y=lambda xp, g, x, atol, rtol: xp.matmul(adj(xp, xp.pinv(x, atol, rtol, False)), g)))


def _by_gelsy(a: TensorBase, b: TensorBase, rcond: TensorBase | float | None) -> Any:
    """The solution, the rank, and no singular values, by LAPACK; None where that cannot be."""
    if isinstance(rcond, TensorBase):
        return None
    tolerances = _tolerances(a, None, rcond)
    found = lapack.least_squares(a._array, b._array, float(tolerances[1]))
    if found is None:
        return None
    return (lstsq_values(a, b, found[0], *tolerances), make(np.array(found[1], np.int64)),
            make(np.zeros(0, as_real(a)._array.dtype)))


def _residuals(a: TensorBase, b: TensorBase, solution: TensorBase, driver: str, rank: Array) -> Any:
    """The sums of squares that are left, where there are more rows than unknowns; else nothing."""
    m, n = a._array.shape[-2:]
    if m > n and driver != "gelsy" and not anywhere(rank != n):
        size = abs_(matmul(a, solution) - b)
        return sum_dims(size * size, (size._array.ndim - 2,), False)
    return as_real(narrow(reshape(solution, -1), 0, 0, 0))
