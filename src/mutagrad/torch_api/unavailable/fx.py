"""Symbolic tracing: there is none, and functions need no marks for it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ...base.errors import NotSupported
from ...nn.module import Module

__all__ = ["Graph", "GraphModule", "Node", "Proxy", "Tracer", "symbolic_trace", "wrap"]

F = TypeVar("F")


class _Traced:
    """What tracing would make; nothing is an instance of it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise NotSupported(f"fx.{type(self).__name__}: programs are not traced", why="they run as they are",
                           fix="call the module itself")


class Graph(_Traced):
    """A traced program."""


class Node(_Traced):
    """A step of a traced program."""


class Proxy(_Traced):
    """The stand-in for a tensor during tracing."""


class Tracer(_Traced):
    """What traces."""


class SymBool(_Traced):
    """A condition on the sizes of a traced program."""


class SymFloat(_Traced):
    """A number that depends on the sizes of a traced program."""


class SymInt(_Traced):
    """A size of a traced program."""


class GraphModule(_Traced, Module):
    """A module made of a traced program."""


def wrap(fn_or_name: F) -> F:
    """Return the function itself: there is no tracing that it could be hidden from."""
    return fn_or_name


def get_proxy_mode() -> None:
    """Return what is being traced: nothing."""


def symbolic_trace(root: Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> NoReturn:
    raise NotSupported("fx.symbolic_trace: programs are not traced", why="they run as they are",
                       fix="call the module itself")


class FakeTensor(_Traced):
    """A tensor without memory, as compilers use it; there are none."""


def is_fake(x: Any) -> bool:
    """Whether it is such a tensor: none is."""
    return False
