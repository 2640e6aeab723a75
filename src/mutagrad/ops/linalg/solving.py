"""Systems of linear equations: inverses, solutions, determinants, and powers of matrices.

Rules are written for real matrices and for holomorphic functions of complex ones, with plain transposes; where a
function is not holomorphic, its rule has conjugates in it and is marked by `with_conjugates`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from ...arrays import lapack as matrix, np
from ...arrays.blas import on_one_thread
from ...arrays.kinds import all_values, perhaps
from ...arrays.numpy import silenced
from ...arrays.products import SMALL
from ...arrays.scipy import has_scipy, lapack, scipy
from ...base import return_types
from ...base.errors import BadValue, DTypeError, LinAlgError, NotSupported, ShapeError, may_need_much
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.number import whole_number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import cast, log
from ..shape.shape import clone, expand, pack, permute, reshape, squeeze, tensor_argument, transpose, unpack, unsqueeze
from . import matrices as _matrices  # noqa: F401  (declares xp.tril, xp.triu and xp.diag_embed, which rules use)
from .products import check_factors, matmul

FUNCTIONS = "det inverse logdet matrix_exp matrix_power slogdet triangular_solve"
METHODS = "det inverse logdet matrix_exp matrix_power slogdet triangular_solve"

SCIPY_PAYS = 24  # rows from which one call of LAPACK is faster than as many steps of NumPy

# ----------------------------------------------------------------------------------------------------- what rules share


def swap(xp: Any, x: Any) -> Any:
    """Transpose matrices."""
    n = len(x.shape)
    return xp.transpose(x, n - 2, n - 1)


def adj(xp: Any, x: Any) -> Any:
    """Transpose and conjugate matrices."""
    return xp.conj(swap(xp, x)) if xp.is_complex(x) else swap(xp, x)


def diagonal_of(xp: Any, x: Any) -> Any:
    n = len(x.shape)
    return xp.diagonal(x, 0, n - 2, n - 1)


def as_diagonal(xp: Any, x: Any) -> Any:
    n = len(x.shape)
    return xp.diag_embed(x, 0, n - 1, n)


def columns(xp: Any, x: Any) -> Any:
    """Return a row of numbers for each matrix, to multiply its columns with."""
    return xp.unsqueeze(x, len(x.shape) - 1)


def rows(xp: Any, x: Any) -> Any:
    return xp.unsqueeze(x, len(x.shape))


def real_part(xp: Any, x: Any) -> Any:
    """Return the real part, in the type of x."""
    return (x + xp.conj(x)) * 0.5 if xp.is_complex(x) else x


def ratio(xp: Any, a: Any, b: Any) -> Any:
    """Return a / b, where nothing divided by nothing is nothing: an unused result asks for no division."""
    void = (a == 0) & (b == 0)
    return xp.where(void, 0.0, a / xp.where(void, 1.0, b))


def solve_right(xp: Any, triangle: Any, x: Any, upper: bool) -> Any:
    """Return x @ inv(triangle)."""
    return swap(xp, xp.solve_triangular(swap(xp, triangle), swap(xp, x), not upper, False))


def with_conjugates(function: Any) -> Any:
    """Say that the rules give PyTorch's gradient of a complex result as they are."""
    function.op.conjugate = function.op
    return function


# ------------------------------------------------------------------------------------------------------------ arguments

def floating(x: Tensor, name: str) -> Any:
    """Return the tensor; raise for element types that LAPACK does not have."""
    array = tensor_argument(x, name)._array
    if array.dtype.char not in "fdFD":
        raise DTypeError(f"{name}: expects float32, float64 or complex numbers, got {of_array(array.dtype).name}",
                         why="LAPACK computes in no other type", fix="x.float()")
    return x


def matrices(x: Tensor, name: str) -> Any:
    if floating(x, name)._array.ndim < 2:
        raise ShapeError(f"{name}: The input tensor must have at least 2 dimensions, got shape {x._array.shape}",
                         fix="x[None]")
    return x


def square(x: Tensor, name: str) -> Any:
    shape = matrices(x, name)._array.shape
    if shape[-1] != shape[-2]:
        raise ShapeError(f"{name}: The input must be batches of square matrices, got shape {shape}",
                         fix="mutagrad.linalg.pinv or lstsq for other shapes")
    return x


def one_type(name: str, *tensors: Tensor) -> None:
    first = tensors[0]._array.dtype
    for x in tensors[1:]:
        if x._array.dtype is not first:
            raise DTypeError(f"{name}: the operands have types {of_array(first).name} "
                             f"and {of_array(x._array.dtype).name}",
                             why="linear algebra does not promote", fix=f"x.to({of_array(first)})")


def with_batch(x: Tensor, batch: tuple[int, ...]) -> Any:
    """Return matrices seen once for each member of a batch."""
    shape = batch + x._array.shape[-2:]
    return x if x._array.shape == shape else expand(x, *shape)


def batched(name: str, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    """Return both with the batch dimensions that they broadcast to."""
    a, b = x._array.shape[:-2], y._array.shape[:-2]
    try:
        common = np.broadcast_shapes(a, b)
    except ValueError:
        raise ShapeError(f"{name}: batches of shape {a} and {b} do not broadcast",
                         fix="reshape until sizes are equal or 1") from None
    return with_batch(x, common), with_batch(y, common)


def in_batch(shape: tuple[int, ...], failed: int) -> str:
    """Say which matrix it was, for the text of an error. Programs look for "input is not positive-definite" there."""
    if len(shape) == 2:
        return "the input"
    return f"matrix {tuple(int(i) for i in np.unravel_index(failed, shape[:-2]))} of the input"


def first_failure(name: str, shape: tuple[int, ...], info: Array, why: str, fix: str) -> None:
    """Raise for the first matrix whose `info` is not zero."""
    found = all_values(info).reshape(-1)
    failed = found.nonzero()[0]
    if failed.size:
        number = failed[0] % max(prod(shape[:-2]), 1)
        raise LinAlgError(f"{name}: {in_batch(shape, number)} {why.format(found[failed[0]])}", fix=fix)


SINGULAR = "is singular: pivot {0} is zero"
USE_PINV = "mutagrad.linalg.pinv(A) or lstsq(A, B), or add a little to the diagonal"

# -------------------------------------------------------------------------------------------------------- LU by LAPACK


@may_need_much
@silenced
def lu_arrays(a: Array) -> tuple[Array, Array, Array]:
    """Return L and U in one array, LAPACK's pivots counted from 1, and for each matrix the first zero pivot or 0."""
    size = min(a.shape[-2:])
    if has_scipy() and size >= SCIPY_PAYS:
        factor = lapack("getrf", a.dtype, "lu_factor")
        found = each_matrix(factor, a, (a.shape[-2:], a.dtype), ((size,), np.int32), ((), np.int32))
        return found[0], found[1] + np.int32(1), found[2]
    return _eliminate(a)


RAW.lu_arrays = lu_arrays


def each_matrix(function: Callable[..., Any], a: Array, *results: tuple[tuple[int, ...], Any]) -> tuple[Array, ...]:
    """Call a function for each matrix of a batch; `results` are the shapes and types of what it returns."""
    outs = tuple(np.empty(a.shape[:-2] + shape, dtype) for shape, dtype in results)
    for at in np.ndindex(a.shape[:-2]):
        for out, found in zip(outs, function(a[at])):
            out[at] = found
    return outs


def _eliminate(a: Array) -> tuple[Array, Array, Array]:
    """Gaussian elimination with the largest pivot of each column, on all matrices at once."""
    m, n = a.shape[-2:]
    work = a.reshape(prod(a.shape[:-2]), m, n).copy()
    each = np.arange(len(work))
    pivots, info = np.zeros((len(work), min(m, n)), np.int32), np.zeros(len(work), np.int32)
    for k in range(min(m, n)):
        below = work[:, k:, k]
        size = np.abs(below.real) + np.abs(below.imag) if a.dtype.kind == "c" else np.abs(below)
        chosen = k + size.argmax(1)
        pivots[:, k] = chosen + 1
        work[each, k], work[each, chosen] = work[each, chosen], work[each, k].copy()
        pivot = work[:, k, k]
        info = np.where((info == 0) & (pivot == 0), k + 1, info)
        work[:, k + 1:, k] /= np.where(pivot == 0, 1, pivot)[:, None]
        work[:, k + 1:, k + 1:] -= work[:, k + 1:, k, None] * work[:, k, None, k + 1:]
    return work.reshape(a.shape), pivots.reshape(*a.shape[:-2], min(m, n)), info.astype(np.int32).reshape(a.shape[:-2])


# ------------------------------------------------------------------------------------------------------------- inverses

def _each(function: Callable[..., Array], name: str, strict: bool, a: Array, *others: Array) -> Any:
    """NumPy's function on batches; if it fails, an error that names the matrix, or nan for those that failed."""
    try:
        return function(a, *others)
    except np.linalg.LinAlgError:
        factors, pivots, info = lu_arrays(a)
        if strict:
            first_failure(name, a.shape, info, SINGULAR, USE_PINV)
        good = np.reshape(info == 0, (*a.shape[:-2], 1, 1))
        identity = np.eye(a.shape[-1], dtype=a.dtype)
        try:
            safe = function(np.where(good, a, identity), *others)
        except np.linalg.LinAlgError:  # rounding decides whether a pivot is zero, and in another order it was not
            right = np.broadcast_to(identity, a.shape) if not others else others[0]
            safe = _substituted(np.where(good, factors, identity), pivots, right)
        return np.where(good, safe, safe.dtype.type(np.nan))


@silenced
def _substituted(factors: Array, pivots: Array, b: Array) -> Array:
    """The solutions for b, by L and U and the exchanges of rows that `lu_arrays` has found."""
    n, x = factors.shape[-1], b.copy()
    lu, right, chosen = factors.reshape(-1, n, n), x.reshape(-1, *x.shape[-2:]), pivots.reshape(-1, n) - 1
    each = np.arange(len(lu))
    for k in range(n):
        right[each, k], right[each, chosen[:, k]] = right[each, chosen[:, k]], right[each, k].copy()
    for k in range(n):
        right[:, k + 1:] -= lu[:, k + 1:, k, None] * right[:, k, None]
    for k in reversed(range(n)):
        right[:, k] /= lu[:, k, k, None]
        right[:, :k] -= lu[:, :k, k, None] * right[:, k, None]
    return x


inv_values = primitive("inv", lambda a, strict: _each(matrix.inv, "inv", strict, a), settings=("strict",),
                       x=lambda xp, g, out: -xp.matmul(swap(xp, out), xp.matmul(g, swap(xp, out))))


def inv(A: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the inverse of square matrices.

    >>> import mutagrad as mg
    >>> mg.linalg.inv(mg.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return write_out("inv", inv_values(square(A, "inv"), True), out)


def inverse(input: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the inverse of square matrices: an older name of `linalg.inv`.

    >>> import mutagrad as mg
    >>> mg.inverse(mg.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv(input, out=out)


def _info(name: str, A: Tensor, failed: bool, check_errors: bool) -> Any:
    shape = A._array.shape
    info = RAW.lu_arrays(A._array)[2] if failed else np.zeros(shape[:-2], np.int32)
    if check_errors:
        first_failure(name, shape, info, SINGULAR, USE_PINV)
    return make(np.asarray(info))


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """Return the inverse, nan where there is none, and for each matrix 0 or its first zero pivot.

    >>> import mutagrad as mg
    >>> inverse, info = mg.linalg.inv_ex(mg.tensor([[2., 0.], [0., 4.]]))
    >>> inverse, info
    (tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]]), tensor(0, dtype=mutagrad.int32))
    """
    found = inv_values(square(A, "inv_ex"), False)
    info = _info("inv_ex", A, perhaps(np.isnan(found._array)), check_errors)
    return write_out("inv_ex", return_types.linalg_inv_ex(found, info), out)


# ------------------------------------------------------------------------------------------------------------ solutions

solve_values = primitive("solve", lambda a, b, strict: _each(matrix.solve, "solve", strict, a, b),
                         settings=("strict",),
                         x=lambda xp, g, x, out: -xp.matmul(xp.solve(swap(xp, x), g, False), swap(xp, out)),
                         y=lambda xp, g, x: xp.solve(swap(xp, x), g, False))


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a batch of vectors: one, or one for each matrix."""
    a, b = A._array.shape, B._array.shape
    return len(b) == 1 or len(b) == len(a) - 1 and b == a[:-1]


def _solve(name: str, A: Tensor, B: Tensor, left: bool, strict: bool) -> Any:
    square(A, name)
    floating(B, name)
    one_type(name, A, B)
    vector = _is_vector(A, B)
    if not B._array.ndim:
        raise ShapeError(f"{name}: B of shape {B._array.shape} is neither a vector nor a matrix", fix="B[None]")
    if vector and not left:
        raise ShapeError(f"{name}: left=False takes matrices, and B of shape {B._array.shape} is a vector",
                         fix="B[None]")
    b = unsqueeze(B, -1) if vector else B
    if b._array.shape[-2 if left else -1] != A._array.shape[-1]:
        raise ShapeError(f"{name}: A of shape {A._array.shape} and B of shape {B._array.shape} do not fit",
                         why="B needs as many rows as A (columns with left=False)",
                         fix="check which one should be transposed")
    if not left:
        return transpose(_solve(name, transpose(A, -2, -1), transpose(b, -2, -1), True, strict), -2, -1)
    found = solve_values(*batched(name, A, b), strict)
    return squeeze(found, -1) if vector else found


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Any:
    """Return X with A @ X = B, or X @ A = B with `left=False`.

    >>> import mutagrad as mg
    >>> mg.linalg.solve(mg.tensor([[2., 0.], [0., 4.]]), mg.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    return write_out("solve", _solve("solve", A, B, left, True), out)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False,
             out: Sequence[Tensor] | None = None) -> Any:
    """Return the solution, nan where there is none, and for each matrix 0 or its first zero pivot.

    >>> import mutagrad as mg
    >>> x, info = mg.linalg.solve_ex(mg.tensor([[2., 0.], [0., 4.]]), mg.tensor([2., 8.]))
    >>> x, info
    (tensor([1., 2.]), tensor(0, dtype=mutagrad.int32))
    """
    found = _solve("solve_ex", A, B, left, False)
    info = _info("solve_ex", A, perhaps(np.isnan(found._array)), check_errors)
    return write_out("solve_ex", return_types.linalg_solve_ex(found, info), out)


def _substitute(a: Array, b: Array, upper: bool, unit: bool) -> Any:
    """Row by row from the end that has one unknown, on all matrices at once; zeros on the diagonal give inf."""
    n = a.shape[-1]
    x = np.empty(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], b.dtype)
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        row = b[..., i:i + 1, :] - np.matmul(a[..., i:i + 1, known], x[..., known, :])
        x[..., i:i + 1, :] = row if unit else row / a[..., i:i + 1, i:i + 1]
    return x


def _solve_triangle(a: Array, b: Array, upper: bool, unit: bool) -> Any:
    if a.ndim == 2 and a.shape[0] >= SCIPY_PAYS and has_scipy() and (unit or np.diagonal(a).all()):
        solve = partial(scipy("linalg", "solve_triangular").solve_triangular, a, b, lower=not upper,
                        unit_diagonal=unit, check_finite=False)
        few = a.shape[0] * b.size < SMALL
        return np.ascontiguousarray(on_one_thread(lambda _: solve(), "scipy") if few else solve())
    return _substitute(a, b, upper, unit)


def _triangle_rule(xp: Any, g: Any, x: Any, out: Any, upper: bool, unit: bool) -> Any:
    found = -xp.matmul(xp.solve_triangular(swap(xp, x), g, not upper, unit), swap(xp, out))
    return xp.triu(found, int(unit)) if upper else xp.tril(found, -int(unit))


solve_triangle = primitive("solve_triangular", _solve_triangle, settings=("upper", "unit"),
                           x=lambda xp, g, x, out, upper, unit: _triangle_rule(xp, g, x, out, upper, unit),
                           y=lambda xp, g, x, upper, unit: xp.solve_triangular(swap(xp, x), g, not upper, unit))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False,
                     out: Tensor | None = None) -> Any:
    """Return X with A @ X = B (or X @ A = B) for triangular A; the other triangle of A is not looked at.

    >>> import mutagrad as mg
    >>> mg.linalg.solve_triangular(mg.tensor([[1., 1.], [0., 2.]]), mg.tensor([[3.], [4.]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    square(A, "solve_triangular")
    matrices(B, "solve_triangular")
    one_type("solve_triangular", A, B)
    if B._array.shape[-2 if left else -1] != A._array.shape[-1]:
        raise ShapeError(f"solve_triangular: A of shape {A._array.shape} and B of shape {B._array.shape} do not fit",
                         why="B needs as many rows as A (columns with left=False)",
                         fix="check which one should be transposed")
    a, b = batched("solve_triangular", A, B)
    if left:
        found = solve_triangle(a, b, upper, unitriangular)
    else:
        found = transpose(solve_triangle(transpose(a, -2, -1), transpose(b, -2, -1), not upper, unitriangular), -2, -1)
    return write_out("solve_triangular", found, out)


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *,
                     out: Sequence[Tensor] | None = None) -> Any:
    """Return X with A @ X = b for triangular A, and a copy of A: an older `linalg.solve_triangular`.

    >>> import mutagrad as mg
    >>> x, a = mg.triangular_solve(mg.tensor([[3.], [4.]]), mg.tensor([[1., 1.], [0., 2.]]))
    >>> x
    tensor([[1.],
            [2.]])
    """
    coefficients = clone(square(A, "triangular_solve"))
    a = RECORDED.transpose(A, -2, -1) if transpose else A
    found = solve_triangular(a, b, upper=upper != transpose, unitriangular=unitriangular)
    coefficients = clone(with_batch(coefficients, found._array.shape[:-2]))
    return write_out("triangular_solve", return_types.triangular_solve(found, coefficients), out)


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Any:
    """Return the inverse with respect to `tensordot` over the first `ind` dimensions.

    >>> import mutagrad as mg
    >>> mg.linalg.tensorinv(mg.eye(6).reshape(2, 3, 6), ind=2).shape
    mutagrad.Size([6, 2, 3])
    """
    shape = floating(A, "tensorinv")._array.shape
    if ind <= 0:
        raise BadValue(f"tensorinv: ind must be positive, not {ind}", fix="ind=2")
    rows, cols = shape[:ind], shape[ind:]
    if prod(rows) != prod(cols):
        raise ShapeError(f"tensorinv: the sizes {rows} and {cols} have different products",
                         why="the matrix must be square", fix="another ind")
    return write_out("tensorinv", reshape(inv(reshape(A, prod(rows), prod(cols))), *cols, *rows), out)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Any:
    """Return X with tensordot(A, X) = B; `dims` of A are moved to its end first.

    >>> import mutagrad as mg
    >>> mg.linalg.tensorsolve(mg.eye(6).reshape(2, 3, 6), mg.ones(2, 3))
    tensor([1., 1., 1., 1., 1., 1.])
    """
    floating(A, "tensorsolve")
    floating(B, "tensorsolve")
    if dims:
        n = A._array.ndim
        moved = [d % n for d in dims]
        A = permute(A, *(d for d in range(n) if d not in moved), *moved)
    unknown = A._array.shape[B._array.ndim:]
    if prod(unknown) != B._array.size:
        raise ShapeError(f"tensorsolve: A of shape {A._array.shape} has {prod(unknown)} unknowns "
                         f"for {B._array.size} equations", fix="dims=")
    found = solve(reshape(A, B._array.size, prod(unknown)), reshape(B, -1))
    return write_out("tensorsolve", reshape(found, *unknown), out)


# --------------------------------------------------------------------------------------------------------- determinants

def _cofactors(a: Array) -> Any:
    """det(A) * inv(A).T: the derivative of the determinant, which exists for singular matrices, too.

    Those, and what is nearly singular, go by singular values: in their coordinates it is the product of all the others.
    """
    if not a.size:
        return np.zeros_like(a)
    det = matrix.det(a)
    bound = np.linalg.norm(a, axis=-1).prod(-1) * (a.shape[-1] * np.finfo(a.dtype).eps)
    if not perhaps(~(np.abs(det) > bound)):
        return det[..., None, None] * matrix.inv(a).swapaxes(-2, -1)
    u, s, vh, sign = _singular(a)
    return (sign * u.conj() * _product_without(s, 1)[..., None, :]) @ vh.conj()


def _singular(a: Array) -> tuple[Array, Array, Array, Array]:
    u, s, vh = np.linalg.svd(a)
    return u, s, vh, (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]


def _product_without(s: Array, left_out: int) -> Any:
    """For each element, or each pair, the product of all the others."""
    n = s.shape[-1]
    away = np.eye(n, dtype=bool)
    away = away if left_out == 1 else away[:, None] | away[None, :]
    spread = s[..., None, :] if left_out == 1 else s[..., None, None, :]
    return np.where(away, s.dtype.type(1), spread).prod(-1)


def _cofactors_rule(g: Array, a: Array) -> Any:
    """The second derivative of the determinant: with the products of all singular values but two."""
    u, s, vh, sign = _singular(a)
    inner = u.conj().swapaxes(-2, -1) @ g @ vh.conj().swapaxes(-2, -1)
    others = _product_without(s, 2) * ~np.eye(s.shape[-1], dtype=bool)
    diagonal = np.einsum("...ij,...j->...i", others, np.diagonal(inner, axis1=-2, axis2=-1))
    found = -inner.swapaxes(-2, -1) * others
    found += diagonal[..., None] * np.eye(s.shape[-1], dtype=s.dtype)
    return (sign * (u.conj() @ found @ vh.conj())).astype(g.dtype, copy=False)


def _third_derivative(g: Tensor, x: Tensor) -> Tensor:
    raise NotSupported("det: has no third derivative here", why="its second is computed on numbers alone",
                       fix="mutagrad.exp(mutagrad.logdet(A)) where A is regular")


RAW.cofactors_rule, RECORDED.cofactors_rule = _cofactors_rule, _third_derivative
cofactors = primitive("cofactors", _cofactors, x=lambda xp, g, x: xp.cofactors_rule(g, x))
det_values = primitive("det", matrix.det, x=lambda xp, g, x: rows(xp, rows(xp, g)) * xp.cofactors(x))


def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the determinant of square matrices; its gradient is right for singular ones, too.

    >>> import mutagrad as mg
    >>> mg.linalg.det(mg.tensor([[2., 1.], [0., 3.]]))
    tensor(6.)
    """
    return write_out("det", det_values(square(A, "det")), out)


def det(input: Tensor) -> Any:
    """Return the determinant of square matrices; its gradient is right for singular ones, too.

    >>> import mutagrad as mg
    >>> mg.det(mg.tensor([[2., 1.], [0., 3.]]))
    tensor(6.)
    """
    return linalg_det(input)


def _slogdet(a: Array) -> Any:
    sign, size = matrix.slogdet(a)
    return pack([np.asarray(sign), np.asarray(size).astype(a.dtype)])


def _slogdet_rule(xp: Any, g: Any, x: Any, out: Any) -> Any:
    """log|det| turns with the real part of trace(inv(A) dA), the sign of a complex determinant with the imaginary."""
    batch = tuple(x.shape[:-2])
    (along, size), (sign, _) = xp.unpack(g, (batch, batch)), xp.unpack(out, (batch, batch))
    weight = real_part(xp, size)
    if xp.is_complex(x):
        turned = xp.conj(along) * sign
        weight = weight - (turned - xp.conj(turned)) * 0.5
    return rows(xp, rows(xp, weight)) * adj(xp, xp.inv(x, False))


slogdet_values = with_conjugates(primitive("slogdet", _slogdet, x=lambda xp, g, x, out: _slogdet_rule(xp, g, x, out)))


def as_real(x: Tensor) -> Any:
    """Return a real result that was packed beside complex ones."""
    return x if x._array.dtype.kind != "c" else cast(x, np.dtype("f4" if x._array.dtype.char == "F" else "f8"))


def _slogdet_of(A: Tensor) -> Any:
    batch = square(A, "slogdet")._array.shape[:-2]
    sign, size = unpack(slogdet_values(A), (batch, batch))
    return return_types.linalg_slogdet(sign, as_real(size))


def linalg_slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return the sign of the determinant and the logarithm of its size, which overflow does not touch.

    >>> import mutagrad as mg
    >>> mg.linalg.slogdet(mg.tensor([[0., 2.], [3., 0.]])).logabsdet
    tensor(1.7918)
    """
    return write_out("slogdet", _slogdet_of(A), out)


def slogdet(input: Tensor) -> Any:
    """Return the sign of the determinant and the logarithm of its size, which overflow does not touch.

    >>> import mutagrad as mg
    >>> sign, logarithm = mg.slogdet(mg.tensor([[0., 2.], [3., 0.]]))
    >>> sign, logarithm
    (tensor(-1.), tensor(1.7918))
    """
    return return_types.slogdet(linalg_slogdet(input))


def logdet(input: Tensor) -> Any:
    """Return the logarithm of the determinant: nan where that is negative.

    >>> import mutagrad as mg
    >>> mg.logdet(mg.tensor([[2., 0.], [0., 3.]]))
    tensor(1.7918)
    """
    sign, size = _slogdet_of(square(input, "logdet"))
    if input._array.dtype.kind == "c":
        return log(sign) + size
    return RECORDED.where(sign < 0, float("nan"), size)


# --------------------------------------------------------------------------------------------------------------- powers

def _power(name: str, A: Tensor, n: int, out: Tensor | None) -> Any:
    shape = tensor_argument(A, name)._array.shape
    n = whole_number(n, name, "n")
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"{name}: expects square matrices, got shape {shape}", fix="A @ A.mT is square")
    check_factors(name, A)
    return write_out(name, _powered(A, n), out)


def _powered(A: Tensor, n: int) -> Any:
    """By squaring, so that it takes about log2(n) products."""
    if n < 0:
        return _powered(inv(A), -n)
    if n == 0:
        return RECORDED.where(make(np.array(False)), A, make(np.eye(A._array.shape[-1], dtype=A._array.dtype)))
    result, square_of = None, A
    while n:
        if n % 2:
            result = square_of if result is None else matmul(result, square_of)
        n //= 2
        square_of = matmul(square_of, square_of) if n else square_of
    return clone(A) if result is A else result


def linalg_matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Any:
    """Multiply the matrix with itself n times; its inverse for negative n.

    >>> import mutagrad as mg
    >>> mg.linalg.matrix_power(mg.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return _power("matrix_power", A, n, out)


def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Any:
    """Multiply the matrix with itself n times; its inverse for negative n.

    >>> import mutagrad as mg
    >>> mg.matrix_power(mg.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return _power("matrix_power", input, n, out)


# Numerator of the Padé approximant of degree 13 of exp; the denominator has the same with alternating signs.
_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)
_PADE_REACHES = 4.25  # the norm up to which it is exact to the last digit


def _matrix_exp(a: Array) -> Any:
    """Scaled until the approximant is exact, and squared again as often; each matrix by its own norm."""
    if not a.size:
        return a.copy()
    size = np.abs(a).sum(-2).max(-1)
    halvings = np.where(np.isfinite(size) & (size > 0), np.ceil(np.log2(np.maximum(size, 1e-30) / _PADE_REACHES)), 0)
    halvings = np.maximum(halvings, 0).astype(int)
    a = a / (2.0 ** halvings).astype(a.real.dtype)[..., None, None]
    eye, square_of = np.eye(a.shape[-1], dtype=a.dtype), a @ a
    odd, even, power = eye * a.dtype.type(_PADE[1]), eye * a.dtype.type(_PADE[0]), eye
    for low, high in zip(_PADE[2::2], _PADE[3::2]):
        power = power @ square_of
        even, odd = even + power * a.dtype.type(low), odd + power * a.dtype.type(high)
    odd = a @ odd
    found = matrix.solve(even - odd, even + odd)
    return RAW.squared(found, halvings)


def _squared(found: Array, times: Array) -> Any:
    """Each matrix multiplied with itself so many times."""
    for k in range(int(times.max(initial=0))):
        found = np.where((times > k)[..., None, None], found @ found, found)
    return found


RAW.squared = _squared


def _exp_rule(xp: Any, g: Any, x: Any) -> Any:
    """exp of [[A.T, g], [0, A.T]] has in its corner the derivative of exp at A.T along g."""
    n, dims = x.shape[-1], len(x.shape)
    turned = swap(xp, x)
    upper = xp.join([turned, g], dims - 1)
    lower = xp.join([turned * 0, turned], dims - 1)
    found = xp.matrix_exp(xp.join([upper, lower], dims - 2))
    return xp.narrow(xp.narrow(found, dims - 2, 0, n), dims - 1, n, n)


matrix_exp_values = primitive("matrix_exp", _matrix_exp, x=lambda xp, g, x: _exp_rule(xp, g, x))


def matrix_exp(input: Tensor) -> Any:
    """Return the exponential of square matrices: the sum of A**k / k!.

    >>> import mutagrad as mg
    >>> mg.matrix_exp(mg.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return matrix_exp_values(square(input, "matrix_exp"))
