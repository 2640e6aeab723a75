"""Products of matrices that OpenBLAS, left to itself, takes longer over than it needs to."""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ..base.operands import Array
from .allocator import keep_memory
from .blas import on_one_thread, product_address
from .compiled import gemm
from .numpy import np
from .parallel import PLENTY, evaluate
from .threads import in_spans

FEW_ROWS = range(2, 33)  # rows on the left for which a product from the other side is faster
LARGE = 1 << 18  # elements of the right factor from which that pays
WORTH_SHARING = 1 << 23  # multiplications in a batch that are worth several threads
# Multiplications in a product that OpenBLAS spreads over its threads, and from which it does that well: they sleep, and
# who waits for them spins meanwhile. Products of some ten millions took it ten times as long as one thread does.
SPREAD, SMALL = 1 << 18, 1 << 25


def multiply(a: Array, b: Array) -> Any:
    """Return `a @ b`."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return np.matmul(a, b)
    if a.ndim == 2:
        if b.size >= LARGE and b.ndim == 2 and len(a) in FEW_ROWS and not b.flags.c_contiguous and b.flags.f_contiguous:
            return np.ascontiguousarray(np.matmul(b.T, a.T).T)
        if (b.ndim == 2 and a.size * b.shape[1] >= gemm.WORTH and (loop := gemm.kernel(a, b)) is not None
                and (function := product_address(a.dtype.char))):
            return on_one_thread(lambda free: gemm.run(loop, function, a, b) if free else np.matmul(a, b))
        if b.ndim == 2 and SPREAD < a.size * b.shape[1] < SMALL:
            return on_one_thread(lambda _: np.matmul(a, b))
    elif a.ndim > 2 and a.shape[:-2] == b.shape[:-2] and a.dtype is b.dtype and a.dtype.char in "fd":
        each = a.shape[-2] * a.shape[-1] * b.shape[-1]
        if each < SMALL and prod(a.shape[:-2]) * each >= WORTH_SHARING:
            return _shared(a, b)
        if SPREAD < each < SMALL:
            return on_one_thread(lambda _: np.matmul(a, b))
    return np.matmul(a, b)


def _shared(a: Array, b: Array) -> Any:
    """Products in a batch, on our threads instead of OpenBLAS's."""
    batch, (m, _), n = a.shape[:-2], a.shape[-2:], b.shape[-1]
    out = np.empty((*batch, m, n), a.dtype)
    left, right, found = (v.reshape(-1, *v.shape[-2:]) for v in (a, b, out))

    def work(part: slice) -> None:
        np.matmul(left[part], right[part], found[part])

    on_one_thread(lambda free: in_spans(len(found), work) if free else work(slice(0, len(found))))
    return out


class _Product(NamedTuple):
    """How an einsum is one product: for each factor the order of its dimensions and the shape that it has then.

    `turned`: the second one's rows are its columns. Last the shape of what is found, and an order for its dimensions.
    """

    left: tuple[tuple[int, ...], tuple[int, ...]]
    right: tuple[tuple[int, ...], tuple[int, ...]]
    turned: bool
    shape: tuple[int, ...]
    order: tuple[int, ...] | None


def contract(terms: tuple[str, ...], result: str, arrays: tuple[Array, ...]) -> Any:
    """Return the einsum of two arrays as one product; None where it is none. All letters are in the result or twice."""
    if len(arrays) != 2 or any(type(a) is not np.ndarray for a in arrays):
        return None
    keep_memory()
    plan = _plan(*terms, result, arrays[0].shape, arrays[1].shape)
    if plan.__class__ is not _Product:
        return _side_by_side(terms, result, arrays) if plan else None
    a, b = (v.transpose(order).reshape(shape) for v, (order, shape) in zip(arrays, plan[:2]))
    found = multiply(a, b.swapaxes(-2, -1) if plan.turned else b)
    found = found if found.shape == plan.shape else found.reshape(plan.shape)
    return found if plan.order is None else found.transpose(plan.order)


@lru_cache(1024)
def _plan(left: str, right: str, result: str, left_shape: tuple[int, ...],
          right_shape: tuple[int, ...]) -> _Product | bool:
    """Return how the einsum is one product; if it is none, whether nothing is summed."""
    batch = [c for c in left if c in right and c in result]
    summed = [c for c in left if c in right and c not in result]
    rows, columns = ([c for c in own if c not in other] for own, other in ((left, right), (right, left)))
    sizes = {**dict(zip(left, left_shape)), **dict(zip(right, right_shape))}
    if not summed:
        return True
    if batch and not (rows and columns):
        return False

    def laid_out(term: str, first: list[str], second: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        order = tuple([term.index(c) for c in (*batch, *first, *second)])
        return order, (*[sizes[c] for c in batch], *[prod(sizes[c] for c in group) for group in (first, second)])

    turned, found = right[-1] in summed, [*batch, *rows, *columns]
    other = laid_out(right, columns, summed) if turned else laid_out(right, summed, columns)
    return _Product(laid_out(left, rows, summed), other, turned, tuple([sizes[c] for c in found]),
                    None if found == list(result) else tuple([found.index(c) for c in result]))


def _side_by_side(terms: tuple[str, ...], result: str, arrays: tuple[Array, ...]) -> Any:
    """The product of all pairs of elements."""
    spread = []
    for term, a in zip(terms, arrays):
        kept = [term.index(c) for c in result if c in term]
        spread.append(a.transpose(kept)[tuple(slice(None) if c in term else None for c in result)])
    shape, kind = np.broadcast_shapes(*(a.shape for a in spread)), arrays[0].dtype
    if prod(shape) < PLENTY or arrays[1].dtype is not kind:
        return np.multiply(*spread)
    return evaluate(np.multiply, tuple(spread), (), shape, kind)
