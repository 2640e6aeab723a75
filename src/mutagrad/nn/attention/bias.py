"""Masks for `scaled_dot_product_attention` that let each query see the keys up to its own position."""
from __future__ import annotations

from typing import Any

from ...base.errors import BadSetting
from ...core.dtypes import bool_
from ...ops.create.create import ones
from ...ops.linalg.matrices import tril

__all__ = ["causal_lower_right", "causal_upper_left"]


def _sizes(size: tuple[int, ...], name: str) -> tuple[int, int]:
    if len(size) != 2:
        raise BadSetting(f"{name}: expects two sizes, those of queries and keys, got {size}", fix=f"{name}(5, 7)")
    return size[0], size[1]


def causal_upper_left(*size: int) -> Any:
    """Return the mask in which the first query sees the first key: what `is_causal=True` does."""
    return tril(ones(_sizes(size, "causal_upper_left"), dtype=bool_))


def causal_lower_right(*size: int) -> Any:
    """Return the mask in which the last query sees all keys: for queries after others whose keys are kept."""
    queries, keys = _sizes(size, "causal_lower_right")
    return tril(ones((queries, keys), dtype=bool_), keys - queries)
