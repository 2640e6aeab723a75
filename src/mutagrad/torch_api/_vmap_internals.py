"""PyTorch's older path to `vmap`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..func.mapping import vmap

__all__ = ["_vmap", "vmap"]


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
          allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """Return a function that maps another over a dimension of its arguments."""
    return vmap(func, in_dims, out_dims)
