"""Compiling: a function runs as it is, and `compile` gives it back.

>>> import mutagrad as mg
>>> @mg.compile
... def double(x):
...     return x * 2
>>> double(mg.ones(2))
tensor([2., 2.])
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, TypeVar

from ..base.errors import BadArgument, NotSupported

F = TypeVar("F")


class _NotCallable(BadArgument, AssertionError):
    """PyTorch asserts that it is given something to call."""


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: str | Callable[..., Any] = "inductor", mode: str | None = None,
            options: dict[str, Any] | None = None, disable: bool = False, recompile_limit: int | None = None,
            **settings: Any) -> Any:
    """Return the function or module itself: its results are those that a compiled one would have. A decorator, too."""
    if fullgraph and not disable:
        raise NotSupported("compile: fullgraph=True asks for a proof that all of it was compiled",
                           why="there is no compiler; programs run as they are", fix="mutagrad.compile(function)")
    if model is None:
        return lambda function: compile(function)
    if not callable(model):
        raise _NotCallable(f"compile: expects something to call, got {type(model).__name__}",
                           fix="mutagrad.compile(function)")
    return model


def is_compiling() -> bool:
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: F) -> F:
    return fn


assume_constant_result = allow_in_graph


def is_compile_supported(device_type: str) -> bool:
    """Whether a compiler could be used on such a device: there is none."""
    return False


def reset() -> None:
    return None


def cudagraph_mark_step_begin() -> None:
    return None


def list_backends(exclude_tags: Iterable[str] = ()) -> list[str]:
    return []


class TransformGetItemToIndex(nullcontext[None]):
    """A block in which a compiler would look at indexing in another way."""
