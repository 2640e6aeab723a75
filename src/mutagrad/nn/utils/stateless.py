"""`nn.utils.stateless.functional_call`, PyTorch's older path to `func.functional_call`."""
from __future__ import annotations

from typing import Any

from .. import stateless
from ..module import Module

__all__ = ["functional_call"]


def functional_call(module: Module, parameters_and_buffers: dict[str, Any], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Calls a module with other tensors in the place of its parameters and buffers, given by name."""
    return stateless.functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights,
                                     strict=strict)
