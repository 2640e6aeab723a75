"""Decompositions of matrices: by SciPy's LAPACK where it is installed and the matrices are not small, else by NumPy's.

NumPy computes float32 in double, and in OpenBLAS both of them spend most of a decomposition of a few hundred rows on
handing tiny products to threads. So SciPy is given the type that there is, and decompositions that consist of such
products are made on one thread, by either. What cannot be decomposed is NumPy's LinAlgError.

LAPACK has matrices in columns: those in rows are given to it transposed, without a copy, where the result allows that.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.operands import Array
from .blas import on_one_thread
from .compiled import library, systems
from .numpy import np
from .scipy import has_scipy, lapack

PAYS = 32  # rows and columns from which a call for each matrix is faster than NumPy's for all
SMALL = 31  # rows up to which many matrices are solved by a loop of our own
ALONE = 768  # rows or columns up to which one thread decomposes faster than several


def _usable(a: Array) -> bool:
    return (type(a) is np.ndarray and a.dtype.char in "fdFD" and min(a.shape[-2:]) >= PAYS and a.size > 0
            and has_scipy())


def _failed(info: int) -> None:
    if info:
        raise np.linalg.LinAlgError


def _each(function: Callable[..., Any], a: Array, *others: Array) -> Any:
    """What a function of matrices gives for those of batches: an array, or a tuple of them."""
    if a.ndim == 2:
        return function(a, *others)
    batch = a.shape[:-2]
    found = [function(a[at], *(b[at] for b in others)) for at in np.ndindex(batch)]
    if isinstance(found[0], tuple):
        return tuple(np.stack(parts).reshape(batch + parts[0].shape) for parts in zip(*found))
    return np.stack(found).reshape(batch + np.shape(found[0]))


def _alone(work: Callable[[], Any], a: Array, library: str = "scipy") -> Any:
    return on_one_thread(lambda _: work(), library) if PAYS <= max(a.shape[-2:]) <= ALONE else work()


def _numpy(work: Callable[[], Any], a: Array) -> Any:
    """NumPy's function on one thread, unless matrices are large."""
    return _alone(work, a, "numpy") if type(a) is np.ndarray and a.ndim > 1 else work()


# ---------------------------------------------------------------------------------------------- many small ones at once

def _small(a: Array, b: Array | None) -> Any:
    """The solutions for batches of small matrices, and determinants, by a compiled loop; None where that cannot be."""
    n = a.shape[-1]
    if (a.ndim < 3 or n > SMALL or a.size < library.WORTH or type(a) is not np.ndarray or a.dtype.char not in "fd"
            or (loop := library.find(systems.solve_each, a.dtype)) is None):
        return None
    work = a.reshape(-1, n, n).copy()
    right = np.empty((len(work), n, 0), a.dtype) if b is None else b.reshape(len(work), n, -1).copy()
    dets = np.empty(len(work))
    loop.share(len(work), a.size, work, right, dets)
    return right, dets


def _small_solutions(a: Array, b: Array) -> Any:
    """None, too, where a matrix is singular."""
    found = _small(a, b)
    return None if found is None or not found[1].all() else found[0].reshape(b.shape)


# ------------------------------------------------------------------------------------------------------------------- LU

def _factors(a: Array) -> tuple[Array, Array, int, int]:
    """LU of a matrix or of its transpose, whichever needs no copy; pivots, info, and which it was."""
    turned = 0 if a.flags.f_contiguous else 1
    return *lapack("getrf", a.dtype, "lu")(a.T if turned else a), turned


def inv(a: Array) -> Any:
    def one(a: Array) -> Any:
        factors, pivots, info, turned = _factors(a)
        _failed(info)
        found, info = lapack("getri", a.dtype, "inv")(factors, pivots, overwrite_lu=1)
        _failed(info)
        return found.T if turned else np.ascontiguousarray(found)

    if _usable(a):
        return _each(one, a)
    found = _small_solutions(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))
    return np.linalg.inv(a) if found is None else found


def solve(a: Array, b: Array) -> Any:
    def one(a: Array, b: Array) -> Any:
        factors, pivots, info, turned = _factors(a)
        _failed(info)
        return np.ascontiguousarray(lapack("getrs", a.dtype, "solve")(factors, pivots, b, trans=turned)[0])

    if _usable(a) and type(b) is np.ndarray and b.size:
        return _each(one, a, b)
    found = _small_solutions(a, b) if type(b) is np.ndarray else None
    return np.linalg.solve(a, b) if found is None else found


def _pivots(a: Array) -> tuple[Array, int]:
    """What the determinant is the product of: elements, in double, and a sign."""
    factors, exchanged, _, _ = _factors(a)
    diagonal = np.diagonal(factors).astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    return diagonal, -1 if np.count_nonzero(exchanged != np.arange(len(exchanged))) % 2 else 1


def det(a: Array) -> Any:
    def one(a: Array) -> Any:
        diagonal, sign = _pivots(a)
        return (np.multiply.reduce(diagonal) * sign).astype(a.dtype)

    if _usable(a):
        return _each(one, a)
    found = _small(a, None)
    return np.linalg.det(a) if found is None else found[1].astype(a.dtype).reshape(a.shape[:-2])


def slogdet(a: Array) -> Any:
    def one(a: Array) -> Any:
        diagonal, sign = _pivots(a)
        size = np.abs(diagonal)
        turned = np.multiply.reduce(diagonal / size) * sign if size.all() else 0.0
        return np.asarray(turned).astype(a.dtype), np.add.reduce(np.log(size)).astype(a.real.dtype)

    return _each(one, a) if _usable(a) else np.linalg.slogdet(a)


# ------------------------------------------------------------------------------------------------------- decompositions

def cholesky(a: Array) -> Any:
    """Return the lower factor; the lower triangle is read."""
    def one(a: Array) -> Any:
        found, info = lapack("potrf", a.dtype, "cholesky")(a.T, lower=0)
        _failed(info)
        return found.T

    return _each(one, a) if _usable(a) else np.linalg.cholesky(a)


def cholesky_or_order(a: Array) -> tuple[Array, int]:
    """Return the factor of one matrix and 0; or nan and the order of its first minor that is not positive definite."""
    try:
        return cholesky(a), 0
    except np.linalg.LinAlgError:
        if _usable(a):
            order = max(int(lapack("potrf", a.dtype, "cholesky")(a.T, lower=0)[1]), 1)
        else:
            order = _first_bad_order(a)
        return np.full(a.shape, np.nan, a.dtype), order


def _first_bad_order(a: Array) -> int:
    """Of a matrix that is not positive definite: where a minor is, all smaller ones are."""
    good, bad = 0, len(a)
    while bad - good > 1:
        order = (good + bad) // 2
        try:
            np.linalg.cholesky(a[:order, :order])
            good = order
        except np.linalg.LinAlgError:
            bad = order
    return bad


def qr(a: Array, form: str) -> Any:
    """Return Q and R; R alone for the form "r"."""
    def one(a: Array) -> Any:
        (m, n), k = a.shape, min(a.shape)
        size = 64 * max(m, n)
        packed, tau, _, info = lapack("geqrf", a.dtype, "qr")(a, lwork=size)
        _failed(info)
        r = np.triu(packed[:m if form == "complete" else k])
        if form == "r":
            return r
        columns = packed[:, :k]
        if form == "complete" and m > k:
            columns = np.zeros((m, m), a.dtype, order="F")
            columns[:, :k] = packed[:, :k]
        q, _, info = lapack("ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype, "qr")(columns, tau, lwork=size)
        _failed(info)
        return q, r

    if _usable(a):
        return _alone(lambda: _each(one, a), a)
    return _numpy(lambda: np.linalg.qr(a, form), a)


def svd(a: Array, full: bool) -> Any:
    def one(a: Array) -> Any:
        u, s, vh, info = lapack("gesdd", a.dtype, "svd")(a, full_matrices=int(full))
        _failed(info)
        return u, s, vh

    return _alone(lambda: _each(one, a), a) if _usable(a) else _numpy(lambda: np.linalg.svd(a, full), a)


def svdvals(a: Array) -> Any:
    def one(a: Array) -> Any:
        _, s, _, info = lapack("gesdd", a.dtype, "svdvals")(a, compute_uv=0)
        _failed(info)
        return s

    if _usable(a):
        return _alone(lambda: _each(one, a), a)
    return _numpy(lambda: np.linalg.svd(a, compute_uv=False), a)


def eigh(a: Array, lower: bool) -> Any:
    return _numpy(lambda: np.linalg.eigh(a, "L" if lower else "U"), a)


def eigvalsh(a: Array, lower: bool) -> Any:
    return _numpy(lambda: np.linalg.eigvalsh(a, "L" if lower else "U"), a)


def eigvals(a: Array) -> Any:
    """Return the eigenvalues of any square matrices, as complex numbers."""
    def one(a: Array) -> Any:
        *values, _, _, info = lapack("geev", a.dtype, "eigvals")(a, compute_vl=0, compute_vr=0)
        _failed(info)
        return values[0] if len(values) == 1 else values[0] + values[1] * a.dtype.type(1) * 1j

    return _alone(lambda: _each(one, a), a) if _usable(a) else _numpy(lambda: np.linalg.eigvals(a), a)


def least_squares(a: Array, b: Array, rcond: float) -> Any:
    """Return X for which a @ X comes nearest to b, and the rank of a, by LAPACK's gelsy; None without SciPy."""
    if not _usable(a) or a.ndim > 2 or type(b) is not np.ndarray or not b.size:
        return None
    m, n = a.shape
    right = np.zeros((max(m, n), b.shape[1]), b.dtype, order="F")
    right[:m] = b
    size = 64 * (max(m, n) + b.shape[1]) + 3 * n + 1

    def work() -> Any:
        found = lapack("gelsy", a.dtype, "lstsq")(a, right, np.zeros(n, np.int32), rcond, size, overwrite_b=1)
        _failed(found[-1])
        return np.ascontiguousarray(found[1][:n]), found[3]

    return _alone(work, a)
