"""Results written into `out`, for operations that have no in-place form of their own."""
from __future__ import annotations

from typing import Any

from ..base.errors import BadArgument, ShapeError
from .op import RECORDED
from .write import check_cast, check_writable, make_room


def write_out(name: str, result: Any, out: Any) -> Any:
    """Return the result, written into `out` where that is given; several results into several."""
    if out is None:
        return result
    several = isinstance(result, tuple)
    results, outs = (result, out) if several else ((result,), (out,))
    if several and not (isinstance(outs, (tuple, list)) and len(outs) == len(results)):
        raise BadArgument(f"{name}: out must be a tuple of {len(results)} tensors",
                          fix=f"out=({', '.join(getattr(result, '_fields', 'ab'))})")
    for r, o in zip(results, outs):  # all that can fail fails before anything is written
        check_writable(o, name)
        check_cast(name, r._array.dtype, o._array.dtype)
        if o._array.size and o._array.shape != r._array.shape:
            raise ShapeError(f"{name}: a result of shape {r._array.shape} cannot be written "
                             f"into out of shape {o._array.shape}",
                             fix="out=mutagrad.empty_like(...) of the result's shape")
    written = []
    for r, o in zip(results, outs):
        make_room(o, r._array.shape)
        written.append(RECORDED.copy_into(o, r))
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written) if several else written[0]
