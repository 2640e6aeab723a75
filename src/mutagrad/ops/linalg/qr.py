"""QR factorizations of matrices, and the reflections that LAPACK makes them of."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import lapack, np
from ...base import return_types
from ...base.errors import BadValue, GradientError, ShapeError, may_need_much
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import make
from ...core.op import RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..shape.shape import narrow, pack, tensor_argument, unpack, unsqueeze
from .matrices import adjoint, tril
from .products import matmul
from .solving import adj, as_diagonal, diagonal_of, matrices, one_type, real_part, solve_right, with_conjugates

FUNCTIONS = "geqrf orgqr ormqr qr"
METHODS = "geqrf orgqr ormqr qr"


def _qr_shapes(shape: tuple[int, ...], form: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    *batch, m, n = shape
    k = m if form == "complete" else min(m, n)
    return (*batch, m, k), (*batch, k, n)


def _qr(a: Array, form: str) -> Any:
    return pack(lapack.qr(a, form))


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


qr_values = with_conjugates(primitive("qr", _qr, settings=("form",),
                                      x=lambda xp, g, x, out, form: _qr_rule(xp, g, x, out, form)))
r_values = primitive("r_of_qr", lambda a: np.ascontiguousarray(lapack.qr(a, "r")), inputs=("x",), x=None)


def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Sequence[Tensor] | None = None) -> Any:
    """Return Q with orthonormal columns and the upper R with A = Q @ R; mode "r" gives R alone, with Q empty.

    >>> import mutagrad as mg
    >>> a = mg.tensor([[3., 1.], [4., 2.]])
    >>> q, r = mg.linalg.qr(a)
    >>> mg.allclose(q @ r, a)
    True
    """
    shape = matrices(A, "qr")._array.shape
    if mode not in ("reduced", "complete", "r"):
        raise BadValue(f"qr: mode {mode!r} is not 'reduced', 'complete' or 'r'", fix="mode='reduced'")
    if mode == "r":
        return write_out("qr", return_types.linalg_qr(make(np.zeros(0, A._array.dtype)), r_values(A)), out)
    return write_out("qr", return_types.linalg_qr(*unpack(qr_values(A, mode), _qr_shapes(shape, mode))), out)


def qr(input: Tensor, some: bool = True, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return Q and R with A = Q @ R: an older form of `linalg.qr`; `some=False` is mode "complete".

    >>> import mutagrad as mg
    >>> q, r = mg.qr(mg.tensor([[3., 1.], [4., 2.]]))
    >>> mg.allclose(q @ r, mg.tensor([[3., 1.], [4., 2.]]))
    True
    """
    return return_types.qr(linalg_qr(input, "reduced" if some else "complete", out=out))


def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return QR as LAPACK keeps it: R, below it the vectors of the reflections in Q; and their factors.

    >>> import mutagrad as mg
    >>> a, tau = mg.geqrf(mg.tensor([[3., 1.], [4., 2.]]))
    >>> a.shape, tau.shape
    (mutagrad.Size([2, 2]), mutagrad.Size([2]))
    """
    shape = matrices(input, "geqrf")._array.shape
    shapes = shape, (*shape[:-2], min(shape[-2:]))
    return write_out("geqrf", return_types.geqrf(*unpack(geqrf_values(input), shapes)), out)


def _geqrf(a: Array) -> Any:
    h, tau = np.linalg.qr(a, "raw")
    return pack([h.swapaxes(-2, -1), tau])


geqrf_values = primitive("geqrf", _geqrf, inputs=("x",), x=None)


def _reflect(vectors: Tensor, tau: Tensor, x: Tensor, backwards: bool, transposed: bool) -> Tensor:
    """`x` reflected at one vector after the other: (I - tau v v.H) x."""
    below = tril(vectors, -1) + make(np.eye(*vectors._array.shape[-2:], dtype=x._array.dtype))
    factors = RECORDED.conj(tau) if transposed and tau._array.dtype.kind == "c" else tau
    count = tau._array.shape[-1]
    for i in reversed(range(count)) if backwards else range(count):
        v = narrow(below, -1, i, 1)
        x = x - matmul(v, matmul(adjoint(v), x)) * unsqueeze(narrow(factors, -1, i, 1), -1)
    return x


@may_need_much
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the first columns of the product of `geqrf`'s reflections: Q of the QR factorization.

    >>> import mutagrad as mg
    >>> mg.linalg.householder_product(*mg.geqrf(mg.tensor([[3.], [4.]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    shape = matrices(input, "householder_product")._array.shape
    one_type("householder_product", input, tensor_argument(tau, "householder_product"))
    m, n = shape[-2:]
    if m < n or n < tau._array.shape[-1] or tau._array.shape[:-1] != shape[:-2]:
        raise ShapeError(f"householder_product: shape {shape} and tau of shape {tau._array.shape} do not fit",
                         why="it needs at least as many rows as columns, and columns as factors",
                         fix="mutagrad.geqrf(A) gives both")
    start = make(np.broadcast_to(np.eye(m, n, dtype=input._array.dtype), shape).copy())
    if not tau._array.size:
        start = RECORDED.where(make(np.array(False)), input, start)  # nothing to reflect at, and a history all the same
    return write_out("householder_product", _reflect(input, tau, start, True, False), out)


def orgqr(input: Tensor, tau: Tensor) -> Any:
    """Return the first columns of the product of reflections: LAPACK's name of `linalg.householder_product`.

    >>> import mutagrad as mg
    >>> a, tau = mg.geqrf(mg.tensor([[3.], [4.]]))
    >>> mg.orgqr(a, tau)
    tensor([[-0.6000],
            [-0.8000]])
    """
    return householder_product(input, tau)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *,
          out: Tensor | None = None) -> Any:
    """Return Q @ other, the product of reflections and a matrix, or other @ Q; of Q.mH with `transpose`.

    >>> import mutagrad as mg
    >>> a, tau = mg.geqrf(mg.tensor([[3., 1.], [4., 2.]]))
    >>> mg.ormqr(a, tau, mg.eye(2)).shape
    mutagrad.Size([2, 2])
    """
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
        raise ShapeError(f"ormqr: shapes {a}, {tau} and {other} have different batches",
                         fix="one batch of matrices, vectors and matrices")
    if tau[-1] > a[-1] or a[-2] != side or tau[-1] > side:
        raise ShapeError(f"ormqr: reflections of shape {a} with {tau[-1]} factors do not fit a matrix of shape {other}",
                         fix="mutagrad.geqrf(A) gives the first two")
