"""`range`, which counts up to and including its end: PyTorch's older form of `arange`."""
from __future__ import annotations

import warnings
from math import floor
from typing import Any

from ...arrays import np
from ...base.errors import BadValue
from ...core.dtypes import as_dtype, get_default_dtype
from ...core.number import number
from .create import in_order

FUNCTIONS = "range"


def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
          requires_grad: bool = False, **settings: Any) -> Any:
    """Numbers from start (0 if left out) up to and including end; `arange` leaves the end out and keeps integers."""
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
