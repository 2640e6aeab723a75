"""Names of reductions as the numbers that PyTorch's C++ library knows, for losses of libraries' own."""
from __future__ import annotations

from ..ops.nn.loss import reduction_of

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number of a reduction."""
    return _NUMBERS[reduction_of("get_enum", reduction, more=("elementwise_mean",))]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the name of the reduction that PyTorch's two older arguments stand for."""
    return reduction_of("legacy_get_string", "mean", size_average, reduce)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return its number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
