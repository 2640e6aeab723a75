"""Tensors that belong to a module."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..errors import BadArgument
from ..ops.create import empty


class Parameter(Tensor):
    """A tensor that a module lists among its parameters, as soon as it is assigned to an attribute.

    >>> import mutagrad as mg
    >>> mg.nn.Parameter(mg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        data = empty(0) if data is None else data
        if not isinstance(data, Tensor):
            raise BadArgument(f"Parameter: expects a tensor, got {type(data).__name__}", fix="nn.Parameter(mutagrad.tensor(...))")
        return data.detach().as_subclass(cls).requires_grad_(requires_grad)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that is part of a module's state but not trained; `persistent` says whether state_dict has it."""

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = (empty(0) if data is None else data).detach().as_subclass(cls)
        made.persistent = persistent
        return made
