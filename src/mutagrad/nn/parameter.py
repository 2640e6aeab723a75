"""Tensors that belong to a module."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..errors import BadArgument, BadValue
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

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy starts without a gradient."""
        copied = super().__deepcopy__(memo)
        copied._grad = None
        return copied

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that is part of a module's state but not trained; `persistent` says whether state_dict has it."""

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = (empty(0) if data is None else data).detach().as_subclass(cls)
        made.persistent = persistent
        return made


class _Shapeless(Tensor):
    """A tensor that a lazy module will give a shape."""

    becomes: type[Tensor]

    @property
    def shape(self) -> Any:
        raise BadValue(f"{type(self).__name__}: has no shape yet", why="a lazy module gets its shapes from the first input", fix="call the module once first")

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it a shape, and memory that is still to be filled."""
        self.data = empty(tuple(shape), device=device, dtype=self.dtype if dtype is None else dtype)
        self.__class__ = self.becomes  # type: ignore[assignment]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Shapeless, Parameter):  # type: ignore[misc,unused-ignore]
    """A parameter of a lazy module before its first call."""

    becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return empty(0, device=device, dtype=dtype).as_subclass(cls).requires_grad_(requires_grad)


class UninitializedBuffer(_Shapeless):
    """A buffer of a lazy module before its first call."""

    becomes = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Any:
        made = empty(0, device=device, dtype=dtype).as_subclass(cls)
        made.persistent = persistent
        return made


def is_lazy(value: Any) -> bool:
    """Whether it is a parameter or buffer without a shape."""
    return isinstance(value, _Shapeless)
