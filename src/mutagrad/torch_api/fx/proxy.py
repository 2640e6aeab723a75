"""Stand-ins for values: what is done with one becomes a node of a graph."""
from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...base.device import device
from ...base.errors import NotSupported
from ...base.layout import layout, memory_format
from ...core.dtypes import dtype
from ...core.size import Size
from ...tensors.tensor import Tensor
from ..torch_function import watch
from .graph import Graph
from .node import Argument, Node, Target, base_types, has_side_effect

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

watch()  # functions are to ask their arguments from now on: tables of them are made by what imports this


class TraceError(NotSupported, ValueError):
    """A program that depends on a value, which a stand-in does not have."""


_CONSTANTS = (*base_types, dtype, device, layout, memory_format, range, type(None), type(...))


class TracerBase:
    """What makes nodes and their stand-ins."""

    graph: Graph
    record_stack_traces = False
    module_stack: dict[str, Any] = {}

    def create_node(self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Return a new node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Return the stand-in for a node's result."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:
        """Return the stand-in for the result of a new node."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """Return a value as an argument of a node: stand-ins as their nodes."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, Size):
            return tuple(a)
        if isinstance(a, tuple):
            found = [self.create_arg(v) for v in a]
            return type(a)(*found) if hasattr(a, "_fields") else tuple(found)
        if isinstance(a, list):
            return [self.create_arg(v) for v in a]
        if isinstance(a, dict):
            return {name: self.create_arg(v) for name, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        if isinstance(a, (_CONSTANTS, Node)) or callable(a):
            return a
        raise NotSupported(f"fx: {type(a).__name__} cannot be an argument of a node",
                           fix="numbers, texts, types, tensors of the module, and containers of them")

    def to_bool(self, obj: Proxy) -> bool:
        raise TraceError("fx: symbolically traced variables cannot be used as inputs to control flow",
                         why="a stand-in has no value", fix="mutagrad.where, or fx.wrap for the function around it")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return as many parts as are unpacked; how many a loop would take is not known."""
        frame = sys._getframe(2)
        code, count = frame.f_code, None
        for step in dis.get_instructions(code):
            if step.offset == frame.f_lasti and step.opname == "UNPACK_SEQUENCE":
                count = step.arg
        if count is None:
            raise TraceError("fx: a Proxy object cannot be iterated", why="how often is not known while tracing",
                             fix="for i in range(n): x[i]")
        return iter([operator.getitem(obj, i) for i in range(count)])  # type: ignore[call-overload]

    def keys(self, obj: Proxy) -> Any:
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer for a graph that is written call by call."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _tracer_of(values: Iterable[Any]) -> TracerBase | None:
    for value in values:
        found = value.tracer if isinstance(value, Proxy) else _tracer_of(value) if isinstance(value, (list, tuple)) \
            else _tracer_of(value.values()) if isinstance(value, dict) else None
        if found is not None:
            return found
    return None


class Proxy:
    """The stand-in for the result of a node."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node, self.tracer = node, tracer or GraphAppendingTracer(node.graph)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise TraceError("fx: 'len' is not supported in symbolic tracing by default", why="a stand-in has no size",
                         fix="x.shape[0], or fx.wrap('len')")

    def __index__(self) -> int:
        raise TraceError("fx: a stand-in has no value to be an index", fix="x.shape[0] where it is used")

    def keys(self) -> Any:
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Become a node of the graph in the place of a call."""
        kwargs = kwargs or {}
        tracer = _tracer_of((args, kwargs))
        assert tracer is not None
        name = getattr(func, "__name__", "")
        if vars(Tensor).get(name) is func and name.strip("_") != name:  # an operator, or a form in place
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs)


class ParameterProxy(Proxy):
    """The stand-in for a parameter, whose shape is known."""


class Attribute(Proxy):
    """The stand-in for an attribute, or for a method that is about to be called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:  # most are methods, for which nothing is read
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(name: str, reflected: bool) -> Any:
    function = getattr(operator, name)

    def operate(self: Proxy, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        tracer = _tracer_of(operands)
        assert tracer is not None
        return tracer.create_proxy("call_function", function, operands, {})

    return operate


# Forms in place keep their meaning, and stay in a graph though nobody uses their results.
_IN_PLACE = "iadd isub imul itruediv setitem"
_BOTH = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
_ONE = "neg pos invert abs eq ne lt le gt ge getitem"
for _name in _BOTH.split():
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name, False))
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(_name, True))
for _name in (*_ONE.split(), *_IN_PLACE.split()):
    setattr(Proxy, f"__{_name}__", _operator(_name, False))
for _name in _IN_PLACE.split():
    has_side_effect(getattr(operator, _name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
