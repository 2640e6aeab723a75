"""Elementwise choices."""
from __future__ import annotations

from typing import Any

import numpy

from ...arrays.xla.memory import XArray
from ...core.op import kernel


@kernel("where", XArray)
def where(mask: Any, x: Any, y: Any) -> Any:
    return numpy.where(mask, x, y)
