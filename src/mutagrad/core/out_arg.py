"""Results written into `out`, for operations that have no in-place form of their own."""
from __future__ import annotations

from typing import Any

from ..base.errors import BadArgument
from .op import RECORDED
from .write import check_cast, check_resizable, check_writable, resize_out


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
        check_resizable(name, o, r._array.shape)
    written = []
    for r, o in zip(results, outs):
        resize_out(o, r._array.shape)
        written.append(RECORDED.copy_into(o, r))
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written) if several else written[0]
