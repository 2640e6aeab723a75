"""Sums, means and extremes of pieces of a dimension."""
from __future__ import annotations

from typing import Any

from ...arrays import np
from ...arrays.kinds import anywhere
from ...base.errors import BadValue, DTypeError, NotSupported, bad_choice
from ...core.factory import make
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import where
from ..select.selecting import scatter_reduce
from ..shape.shape import expand, narrow, reshape, tensor_argument

FUNCTIONS = "segment_reduce _segment_reduce"

# The name that `scatter_reduce` has for a reduction, and what it gives of nothing.
_KINDS = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("amax", -np.inf),
          "amax": ("amax", -np.inf), "min": ("amin", np.inf), "amin": ("amin", np.inf)}


def _lengths(data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool) -> Any:
    """How long each piece is, in one row for all or in a row for each of the dimensions before the axis."""
    if lengths is None and offsets is None:
        raise BadValue("segment_reduce: needs lengths or offsets", fix="lengths=mutagrad.tensor([2, 3])")
    found = tensor_argument(lengths if offsets is None else offsets, "segment_reduce")._array
    if found.dtype.kind not in "iu":
        raise DTypeError(f"segment_reduce: lengths and offsets are integers, not {found.dtype.name}",
                         fix="lengths.long()")
    found = found if offsets is None else np.diff(found, axis=-1)
    if found.ndim != axis + 1 or anywhere(found < 0):
        raise BadValue(f"segment_reduce: lengths of shape {found.shape} do not divide dimension {axis} "
                       f"of shape {data._array.shape}",
                       why="they need the dimensions up to that one, and none may be negative",
                       fix="axis=lengths.ndim - 1")
    if not unsafe and anywhere(found.sum(-1) != data._array.shape[axis]):
        raise BadValue(f"segment_reduce: the lengths do not sum to {data._array.shape[axis]}, "
                       f"the size of dimension {axis}", fix="unsafe=True leaves out the rest")
    return found


def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
                   offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False,
                   initial: float | None = None) -> Any:
    """Reduce each piece of a dimension to one result; lengths say how long they are, or offsets where they begin.

    >>> import mutagrad as mg
    >>> mg.segment_reduce(mg.tensor([1., 2., 3., 4.]), "sum", lengths=mg.tensor([1, 3]))
    tensor([1., 9.])
    """
    array = tensor_argument(data, "segment_reduce")._array
    if reduce not in _KINDS:
        raise bad_choice(reduce, str, f"segment_reduce: reduce={reduce!r} is none of {', '.join(_KINDS)}",
                         fix="reduce='sum'")
    if array.dtype.kind not in "fV":
        raise DTypeError(f"segment_reduce: needs floating point numbers, not {array.dtype.name}", fix="data.float()")
    if indices is not None:
        raise NotSupported("segment_reduce: indices is not supported", why="PyTorch does not have it either",
                           fix="lengths=, or scatter_reduce")
    counts = _lengths(data, lengths, offsets, axis, unsafe)
    kind, nothing = _KINDS[reduce]
    before, behind, covered = array.shape[:axis], array.shape[axis + 1:], int(counts.sum(-1).max(initial=0))
    rows = [np.repeat(np.arange(counts.shape[-1]), row) for row in counts.reshape(-1, counts.shape[-1])]
    places = np.stack(rows).reshape(*before, covered)
    index = expand(reshape(make(places), *before, covered, *(1,) * len(behind)), *before, covered, *behind)
    start = make(np.full((*before, counts.shape[-1], *behind), nothing if initial is None else initial, array.dtype))
    found = scatter_reduce(start, axis, index, narrow(data, axis, 0, covered), kind)
    if reduce != "mean":
        return found
    per_piece = make(counts.reshape(*counts.shape, *(1,) * len(behind)).astype(array.dtype))
    empty = per_piece == 0
    return where(empty, float("nan") if initial is None else initial, found / where(empty, 1.0, per_piece))


_segment_reduce = segment_reduce  # as PyTorch names it, too
