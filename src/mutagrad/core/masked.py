"""Masks of which it is not known how many elements they pick, because a step is being traced.

What a mask picks has no shape then, and cannot be read. But `x[mask] *= v` means the same as a choice at each element:
its read gives all elements of x, of which its write takes those that the mask picks.
"""
from __future__ import annotations

from dis import opmap
from math import prod
from typing import Any

from ..arrays import np
from ..base.provenance import user_frame
from .factory import make
from .op import RECORDED
from .storage import TensorBase

# What comes before the read in `x[key] op= v`: x and key are copied, for the write.
_COPIES = (opmap["DUP_TOP_TWO"],) if "DUP_TOP_TWO" in opmap else (opmap["COPY"], opmap["COPY"])


def _is_augmented() -> bool:
    """Whether the user's line is at the read of an assignment such as `x[key] *= v`."""
    frame = user_frame()
    code, at = frame.f_code.co_code, frame.f_lasti
    before = code[max(at - 2 * len(_COPIES), 0):at:2]
    arguments = code[max(at - 2 * len(_COPIES), 0) + 1:at:2]
    return tuple(before) == _COPIES and (len(_COPIES) == 1 or tuple(arguments) == (2, 2))


def read_masked(x: TensorBase, mask: TensorBase) -> Any:
    """Return what stands for `x[mask]` in `x[mask] op= v`; anywhere else it is refused.

    It has one more dimension, of size one: what has several values for the picked elements then does not fit.
    """
    if not _is_augmented():
        raise mask._array.level.refuse(  # type: ignore[attr-defined]
            "how many elements a mask picks depends on values", "mutagrad.where(mask, x, 0.0) keeps the shape; "
            "x[mask] = v, x[mask] *= v and masked_fill work")
    shape, dims = x._array.shape, mask._array.ndim
    found = RECORDED.reshape(RECORDED.clone(x), (prod(shape[:dims]), 1, *shape[dims:]))
    found.__dict__["_picked"] = x, mask
    return found


def as_everywhere(x: TensorBase, mask: TensorBase, value: Any) -> Any:
    """Return a value for each element of x, of which those are written that a mask picks."""
    shape, dims = x._array.shape, mask._array.ndim
    if not isinstance(value, TensorBase) or value._array.ndim <= len(shape) - dims:
        return value
    if (picked := value.__dict__.get("_picked")) is not None and picked[0] is x and picked[1] is mask:
        return RECORDED.reshape(value, shape)
    count = np.cumsum(mask._array.reshape(-1).astype(np.int64)) - 1  # one after the other, in order
    places = np.clip(count, 0, max(value._array.shape[0] - 1, 0)).reshape(mask._array.shape)
    return value[make(places)]  # type: ignore[index]
