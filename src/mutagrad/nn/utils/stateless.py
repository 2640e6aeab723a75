"""PyTorch's older path to `func.functional_call`, and the block that it is made of."""
from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .. import stateless
from ..module import Module

__all__ = ["functional_call"]


def functional_call(module: Module, parameters_and_buffers: dict[str, Any], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Calls a module with other tensors in the place of its parameters and buffers, given by name."""
    return stateless.functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights,
                                     strict=strict)


def _reparametrize_module(module: Module, parameters_and_buffers: dict[str, Any], tie_weights: bool = False,
                          strict: bool = False, stack_weights: bool = False) -> AbstractContextManager[None]:
    """Return a block in which a module has other parameters and buffers; blocks leave last in, first out."""
    return stateless.swapped(module, parameters_and_buffers, tie_weights, strict)
