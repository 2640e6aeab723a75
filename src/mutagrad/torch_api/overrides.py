"""Classes that take over functions called with them: what a library needs to take part in `__torch_function__`.

Loading this module is what makes functions ask classes that are no subclasses of Tensor.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from typing import Any

from ..base.modes import Block, mode, push
from ..base.package_name import called
from ..tensors.tensor import Tensor
from .torch_function import MAKERS, NAMES, NAMESPACES, answer, foreign, takes_over, unchanged, watch

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions",
           "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]

watch()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode, or the class of one of these, takes over functions that are called with it.

    >>> import mutagrad as mg
    >>> mg.overrides.has_torch_function((mg.ones(1),))
    False
    """
    now = mode.now
    if now.dispatch_off < 2 and now.function_modes:
        return True
    return now.dispatch_off == 0 and any(takes_over(type(value)) for value in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """Do as `has_torch_function` for one argument.

    >>> import mutagrad as mg
    >>> mg.overrides.has_torch_function_unary(mg.ones(1))
    False
    """
    return has_torch_function((obj,))


def has_torch_function_variadic(*objs: Any) -> bool:
    """Do as `has_torch_function` for arguments one by one.

    >>> import mutagrad as mg
    >>> mg.overrides.has_torch_function_variadic(mg.ones(1), 2)
    False
    """
    return has_torch_function(objs)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any,
                          **kwargs: Any) -> Any:
    """Return what the classes of the relevant arguments make of a call of `public_api`."""
    return answer(public_api, foreign(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for functions that classes can take over; `dispatcher` gives the arguments that are asked.

    >>> import mutagrad as mg
    >>> @mg.overrides.wrap_torch_function(lambda x: (x,))
    ... def twice(x):
    ...     return 2 * x
    >>> twice(mg.ones(2))
    tensor([2., 2.])
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if not has_torch_function(relevant):
                return function(*args, **kwargs)
            return answer(call, foreign(relevant), args, kwargs)

        return call

    return decorate


class TorchFunctionMode(Block):
    """A block in which `__torch_function__` of this object is asked about every call of a public function.

    >>> import mutagrad as mg
    >>> class Counting(mg.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Counting() as counting:
    ...     _ = mg.ones(2) + 1
    >>> counting.calls
    2
    """

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        raise NotImplementedError

    def changes(self) -> dict[str, Any]:
        return {"function_modes": push(self)}


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets everything happen as it would.

    >>> import mutagrad as mg
    >>> with mg.overrides.BaseTorchFunctionMode():
    ...     mg.ones(2) + 1
    tensor([2., 2.])
    """

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    return mode.now.function_modes[-1] if mode.now.function_modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(mode.now.function_modes)


# -------------------------------------------------------------------------------------------------------- what there is

def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or of a class with `__torch_function__`.

    >>> import mutagrad as mg
    >>> mg.overrides.is_tensor_like(mg.ones(1)), mg.overrides.is_tensor_like([1.])
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return the name of a function that `__torch_function__` was given.

    >>> import mutagrad as mg
    >>> mg.overrides.resolve_name(mg.add)
    'mutagrad.add'
    """
    name = NAMES.get(f)
    return None if name is None else called(name)


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that classes can take over, by where they are.

    >>> import mutagrad as mg
    >>> mg.overrides.get_overridable_functions()[mg.Tensor] != []
    True
    """
    found: dict[Any, list[Callable[..., Any]]] = {}
    for space in (*(module for path, module in NAMESPACES.items() if path != "ops.recurrent"), Tensor):
        inside = (value for name, value in vars(space).items() if space is Tensor or _is_overridable(name))
        reachable = (value.__get__ if isinstance(value, property) else value for value in inside)
        found[space] = [value for value in reachable if _hashable(value) and value in NAMES]
    return found


def _is_overridable(name: str) -> bool:
    return not name.startswith("_") and not name.endswith("_") and name not in MAKERS


def _hashable(value: Any) -> bool:
    return type(value).__hash__ is not None


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return the functions that make tensors of data, which no class can take over.

    >>> import mutagrad as mg
    >>> mg.zeros in mg.overrides.get_ignored_functions()
    True
    """
    makers = {vars(space)[name] for space in NAMESPACES.values() for name in MAKERS if name in vars(space)}
    return makers | {Tensor.as_subclass}


def get_default_nowrap_functions() -> set[Any]:
    """Return the functions whose results `Tensor.__torch_function__` does not turn into tensors of the subclass.

    >>> import mutagrad as mg
    >>> len(mg.overrides.get_default_nowrap_functions()) > 0
    True
    """
    return unchanged()


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., int]]:
    """Return, for each function that classes can take over, one with the same parameters that returns -1.

    >>> import mutagrad as mg
    >>> mg.overrides.get_testing_overrides()[mg.add](1, 2)
    -1
    """
    return {function: _stub(function) for functions in get_overridable_functions().values() for function in functions}


def _stub(function: Callable[..., Any]) -> Callable[..., int]:
    def stub(*args: Any, **kwargs: Any) -> int:
        return -1

    with suppress(TypeError, ValueError):  # the reader of a property has none
        stub.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return stub


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or the reader of one of its properties.

    >>> import mutagrad as mg
    >>> mg.overrides.is_tensor_method_or_property(mg.Tensor.add)
    True
    """
    return func in get_overridable_functions()[Tensor] or getattr(func, "__name__", "") == "__get__"
