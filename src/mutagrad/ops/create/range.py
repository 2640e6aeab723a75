"""`range`, which counts up to and including its end: PyTorch's older form of `arange`."""
from __future__ import annotations

import warnings
from math import floor
from typing import Any

from ...arrays import np
from ...base.device import device as Device
from ...base.errors import BadValue
from ...core.dtypes import as_dtype, dtype as DType, get_default_dtype
from ...core.number import number
from ..math.elementwise import Value
from .create import in_order

FUNCTIONS = "range"


def range(start: Value = 0, end: Value | None = None, step: Value = 1, *, dtype: DType | None = None,
          device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return numbers from start (0 if left out) up to and including end; `arange` leaves it out and keeps integers."""
    warnings.warn("range is deprecated: arange(start, end) is what Python calls range", stacklevel=2)
    first, last, step = map(number, (0, start, step) if end is None else (start, end, step))
    if not step or (last - first) * step < 0:
        raise BadValue(f"range: from {first} to {last} in steps of {step}: "
                       "upper bound and lower bound inconsistent with step sign",
                       why="the step must be nonzero and point from start to end",
                       fix=f"mutagrad.arange({first}, {last})")
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    values = first + step * np.arange(floor((last - first) / step) + 1)
    return in_order(values.astype(to.array_type), requires_grad, device, "range", **settings)
