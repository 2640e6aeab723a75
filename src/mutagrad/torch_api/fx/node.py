"""One step of a graph: what is called, with what, and by which steps its result is used."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Union

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Union[Callable[..., Any], str]
Argument = Any
base_types = (str, int, float, bool, complex)
KINDS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_impure: set[Callable[..., Any]] = set()


def has_side_effect(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have calls of a function stay in a graph though nobody uses their results."""
    _impure.add(function)
    return function


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Any:
    """Return containers of the same kind, with `fn` of everything in them."""
    if isinstance(a, tuple):
        found = [map_aggregate(v, fn) for v in a]
        return type(a)(*found) if hasattr(a, "_fields") else tuple(found)
    if isinstance(a, list):
        return [map_aggregate(v, fn) for v in a]
    if isinstance(a, dict):
        return {name: map_aggregate(v, fn) for name, v in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(v, fn) for v in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Any:
    """Return the same arguments with `fn` of every node in them."""
    return map_aggregate(a, lambda v: fn(v) if isinstance(v, Node) else v)


class Node:
    """A step: `op` says what kind of call it is, `target` what is called. Steps are linked to those around them."""

    def __init__(self, graph: Any, name: str, op: str, target: Target, args: tuple[Argument, ...],
                 kwargs: dict[str, Argument], return_type: Any = None) -> None:
        assert op in KINDS
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._prev = self._next = self
        self._erased = False
        self._use(args, kwargs)

    def _use(self, args: Iterable[Argument], kwargs: dict[str, Argument]) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._args, self._kwargs = tuple(args), dict(kwargs)
        self._inputs = {}
        map_arg((self._args, self._kwargs), self._inputs.setdefault)
        for node in self._inputs:
            node.users[self] = None

    @property
    def args(self) -> tuple[Argument, ...]:
        return self._args

    @args.setter
    def args(self, given: Iterable[Argument]) -> None:
        self._use(given, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, given: dict[str, Argument]) -> None:
        self._use(self._args, given)

    @property
    def all_input_nodes(self) -> list[Node]:
        return list(self._inputs)

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Exchange one argument."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Exchange one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def prepend(self, x: Node) -> None:
        """Move a node to before this one."""
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Move a node to behind this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True,
                              *, propagate_meta: bool = False) -> list[Node]:
        """Have all that use this node use another; return them."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Exchange one node among the arguments."""
        def exchanged(node: Node) -> Node:
            return new_input if node is old_input else node

        self._use(map_arg(self._args, exchanged), map_arg(self._kwargs, exchanged))

    def is_impure(self) -> bool:
        """Whether it does something besides giving its result."""
        if self.op in ("placeholder", "output") or self.op == "call_function" and self.target in _impure:
            return True
        return self.op in ("call_method", "call_function") and str(self.called_name()).endswith("_")

    def called_name(self) -> str:
        """Return the name of what is called, with that of its module."""
        if isinstance(self.target, str):
            return self.target
        name, home = getattr(self.target, "__name__", repr(self.target)), getattr(self.target, "__module__", None) or ""
        return name if home in ("", "builtins") else f"{home.lstrip('_')}.{name}"

    def format_node(self) -> str:
        """Return the step as a line of text."""
        if self.op == "output":
            return f"return {self._args[0]}"
        return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={self.called_name()}]" \
               f"(args = {self._args}, kwargs = {self._kwargs})"

    def __repr__(self) -> str:
        return self.name
