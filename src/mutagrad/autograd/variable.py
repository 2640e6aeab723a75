"""`Variable`, from when tensors had no derivatives of their own."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import BadArgument, NotSupported
from ..base.operands import kind_name
from ..core.backward import running
from ..core.factory import detached
from ..core.storage import TensorBase
from ..tensors.tensor import Tensor


class _IsTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TensorBase)


class _Engine:
    """What runs a sweep, by PyTorch's name for it."""

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Call a function when the sweep that is running is over."""
        running().call_later(callback)


class Variable(metaclass=_IsTensor):
    """Called, a tensor over the same memory; every tensor is an instance."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:
        if volatile:
            raise NotSupported("Variable: volatile is no longer a property of tensors",
                               fix="with mutagrad.no_grad(): ...")
        if not isinstance(data, TensorBase):
            raise BadArgument(f"Variable: expects a tensor, got {kind_name(data)}",
                              fix="mutagrad.tensor(data, requires_grad=True)")
        return detached(data).requires_grad_(requires_grad)
