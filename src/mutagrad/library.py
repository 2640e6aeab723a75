"""Operations that programs declare by name.

>>> import mutagrad as mg
>>> @mg.library.custom_op("mine::double", mutates_args=())
... def double(x: mg.Tensor) -> mg.Tensor:
...     return 2 * x
>>> double(mg.ones(2))
tensor([2., 2.])
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .autograd import Function
from .errors import BadValue

__all__ = ["CustomOp", "custom_op", "register_autograd", "register_fake"]


class CustomOp:
    """A function with a name; its derivative is that of what it computes, unless one is registered."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self._function = name, function
        self._differentiable: type[Function] | None = None
        self.__doc__, self.__name__ = function.__doc__, name.rpartition("::")[2]

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        if self._differentiable is None:
            return self._function(*arguments, **settings)
        given = inspect.signature(self._function).bind(*arguments, **settings)
        given.apply_defaults()
        return self._differentiable.apply(*given.arguments.values())

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., None] | None = None) -> None:
        """Gives it a derivative: `backward(ctx, *grads)`, from what `setup_context(ctx, inputs, output)` saved."""
        function, prepare = self._function, setup_context

        class Derived(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = function(*inputs)
                if prepare is not None:
                    prepare(ctx, inputs, output)
                return output

        Derived.backward = staticmethod(backward)  # type: ignore[method-assign,assignment]
        self._differentiable = Derived

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What a compiler would call for shapes alone; nothing does."""
        return fn


_declared: dict[str, CustomOp] = {}


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any = (), device_types: Any = None, schema: str | None = None,
              tags: Any = None) -> Any:
    """Declares an operation; a decorator, too."""
    if fn is None:
        return lambda function: custom_op(name, function, mutates_args=mutates_args)
    made = _declared[name] = CustomOp(name, fn)
    return made


def _find(op: Any) -> CustomOp:
    found = op if isinstance(op, CustomOp) else _declared.get(op)
    if found is None:
        raise BadValue(f"library: no operation {op!r} is declared", fix="mutagrad.library.custom_op(name, function, mutates_args=())")
    return found


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., None] | None = None, lib: Any = None) -> None:
    """Gives a declared operation a derivative."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, allow_override: bool = False) -> Any:
    """What a compiler would call for shapes alone; nothing does."""
    return func if func is not None else lambda function: function
