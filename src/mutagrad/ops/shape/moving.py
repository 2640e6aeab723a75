"""Elements repeated, turned around and shifted: copies."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np
from ...arrays.copies import copy_in_order
from ...arrays.kinds import is_plain
from ...arrays.parallel import MIDDLE, assign
from ...base.errors import BadIndex, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import back_in_order, order_in_memory
from ...core.size import sizes
from ...core.storage import TensorBase
from .shape import Dims, clone, expand, permute, reshape, tensor_argument, whole_dim, whole_dims


def repeat(input: TensorBase, *times: int | Sequence[int], repeats: Sequence[int] | None = None) -> Any:
    """Lay the tensor out so many times along each dimension: a copy.

    >>> import mutagrad as mg
    >>> mg.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = sizes(times if repeats is None else (repeats,))
    shape = tensor_argument(input, "repeat")._array.shape
    lead = len(counts) - len(shape)
    if lead < 0:
        raise ShapeError(f"repeat: Number of dimensions of repeat dims ({len(counts)}) "
                         f"can not be smaller than number of dimensions of tensor ({len(shape)})",
                         fix=f"x.repeat{(1,) * -lead + counts}")
    shape = (1,) * lead + shape
    doubled = reshape(input, *(v for n in shape for v in (1, n)))
    wide = expand(doubled, *(v for r, n in zip(counts, shape) for v in (r, n)))
    return reshape(clone(wide), *(r * n for r, n in zip(counts, shape)))


def tile(input: TensorBase, *times: int | Sequence[int], dims: Sequence[int] | None = None) -> Any:
    """Do as repeat, with missing counts taken as 1.

    >>> import mutagrad as mg
    >>> mg.tile(mg.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    counts = sizes(times if dims is None else (dims,))
    return repeat(input, *((1,) * (tensor_argument(input, "tile")._array.ndim - len(counts)) + counts))


flip_dims = primitive("flip", lambda a, dims: copy_in_order(np.flip(a, dims)), settings=("dims",), warns=False,
                      x=lambda xp, g, dims: xp.flip(g, dims))


def flip(input: TensorBase, *axes: int | Sequence[int], dims: int | Sequence[int] = ()) -> Any:
    """Return a copy with the order along these dimensions reversed: `flip(x, 0, 1)` or `flip(x, dims=(0, 1))`.

    >>> import mutagrad as mg
    >>> mg.flip(mg.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    wanted = sizes(axes or (dims,))
    turned = whole_dims(wanted, tensor_argument(input, "flip")._array.ndim, "flip") if wanted else ()
    order = order_in_memory(input)
    if order is None:
        return flip_dims(input, turned)
    return back_in_order(flip_dims(permute(input, order), tuple([order.index(d) for d in turned])), order)


def _rolled(a: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """As NumPy's: a large array in parts that stay together, which `assign` copies faster than an index does."""
    if a.size < MIDDLE or len(set(dims)) < len(dims) or not is_plain(a):
        return np.roll(a, shifts, dims)
    out = np.empty(a.shape, a.dtype)
    parts: list[tuple[Any, Any]] = [((), ())]
    for d, n in enumerate(a.shape):
        shift = sum(s for s, rolled in zip(shifts, dims) if rolled == d) % n
        halves = [(slice(shift, n), slice(0, n - shift)), *([(slice(0, shift), slice(n - shift, n))] if shift else ())]
        parts = [((*to, new), (*source, old)) for to, source in parts for new, old in halves]
    for to, source in parts:
        assign(out[to], a[source])
    return out


roll_dims = primitive("roll", _rolled, settings=("shifts", "dims"),
                      x=lambda xp, g, shifts, dims: xp.roll(g, tuple(-s for s in shifts), dims))


def roll(input: TensorBase, shifts: int | Sequence[int], dims: Dims = None) -> Any:
    """Return a copy shifted along dimensions, what falls off coming back at the other end.

    >>> import mutagrad as mg
    >>> mg.roll(mg.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    tensor_argument(input, "roll")
    shifts = sizes((shifts,))
    whole = dims is None
    dims = (0,) if whole else tuple(whole_dim(d, input._array.ndim, "roll") for d in sizes((dims,)))
    if len(shifts) != len(dims) or not shifts or not whole and not input._array.ndim:
        raise BadIndex("roll: `shifts` required, and shifts and dimensions must align, "
                       f"got {len(shifts)} and {len(dims)}", fix="x.roll((1, 2), (0, 1))")
    if whole:
        return reshape(roll_dims(reshape(input, -1), shifts, dims), *input._array.shape)
    return roll_dims(input, shifts, dims)
