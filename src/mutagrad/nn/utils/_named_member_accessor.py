"""A module's tensors by name, whatever they are registered as."""
from __future__ import annotations

from typing import Any

from ...base.errors import BadArgument
from ...tensors.tensor import Tensor
from ..module import Module

__all__ = ["swap_tensor"]


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a parameter, a buffer or an attribute; return the one that was there."""
    if not isinstance(module, Module):
        raise BadArgument(f"swap_tensor: {module!r} is not a Module")
    for table in (module._parameters, module._buffers):
        if name in table:
            before = table[name]
            if tensor is None and allow_missing:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(module, name, None)
    if before is None and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute {name!r}")
    if before is not None and not isinstance(before, Tensor):
        raise BadArgument(f"swap_tensor: {name!r} of {type(module).__name__} is not a tensor")
    if tensor is not None:
        setattr(module, name, tensor)
    elif before is not None:
        delattr(module, name)
    return before
