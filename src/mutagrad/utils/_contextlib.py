"""Blocks that are decorators, too: what libraries derive their own from."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["context_decorator"]

F = TypeVar("F", bound=Callable[..., Any])


def context_decorator(ctx: Any, func: F) -> F:
    """Return a function that runs in a block at every call: in `ctx`, or in what `ctx` makes if it is a function."""
    @wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with ctx() if callable(ctx) and not hasattr(ctx, "__enter__") else ctx:
            return func(*args, **kwargs)

    return decorated  # type: ignore[return-value]


class _DecoratorContextManager:
    """A block; a subclass has `__enter__`, `__exit__`, and `clone` if its constructor has arguments."""

    def __call__(self, orig_func: F) -> F:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a block like this one."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, which decorates without being called: `@block` as well as `@block()`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
