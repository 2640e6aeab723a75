"""Tracing: a function is called with stand-ins for its arguments, and what it does with them is written down."""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ...base.errors import BadArgument, BadValue
from ...base.locks import new_lock
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...ops.shape.introspection import _assert
from ...tensors.tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .node import Target, has_side_effect
from .proxy import Proxy, TracerBase, _tracer_of

has_side_effect(_assert)

__all__ = ["Tracer", "symbolic_trace", "wrap"]

_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # names in modules whose calls are steps of their own
_lock = new_lock()  # while something is traced, modules are called in another way


def wrap(fn_or_name: Any) -> Any:
    """Have calls of a function of this module be one step of a graph, whatever the function does."""
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise BadArgument("wrap: expects a function of the module, or its name", fix='fx.wrap("function")')
    names = sys._getframe(1).f_globals
    _wrapped[id(names), name] = names
    return fn_or_name


def _as_step(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = _tracer_of((args, kwargs))
        if tracer is None:
            return function(*args, **kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)

    return call


class Tracer(TracerBase):
    """What traces a module or a function. Modules of this package's own are steps, those of a program are gone into."""

    def __init__(self, autowrap_modules: tuple[Any, ...] = (), autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False) -> None:
        self.autowrap_functions = autowrap_functions
        self.scope: Any = None
        self.module_stack = {}
        self.root: Module = Module()

    # ------------------------------------------------------------------------------------- what subclasses may decide

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one step, and not gone into."""
        return m.__module__.startswith(("mutagrad.nn", "torch.nn")) and type(m).__name__ != "Sequential"

    def path_of_module(self, mod: Module) -> str:
        """Return the name of a module within the root."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError(f"fx: {type(mod).__name__} is not installed as a submodule of {type(self.root).__name__}")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a module inside gives: a step of the graph, or its own steps."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return what a module's attribute is in the traced program: for a parameter, its stand-in."""
        if not isinstance(attr_val, Parameter):
            return attr_val
        for name, p in self.root.named_parameters():
            if p is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """Tensors are attributes of the root: of their own name, or of a new one for those that have none."""
        if isinstance(a, Tensor):
            name = self._tensors.get(id(a))
            if name is None:
                number = sum(n.startswith("_tensor_constant") for n in self._tensors.values())
                name = f"_tensor_constant{number}"
                setattr(self.root, name, a)
                self._tensors[id(a)] = name
                self._kept.append(a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    # ---------------------------------------------------------------------------------------------------------- tracing

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function; arguments that are given here have these values."""
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.root_module_name = type(self.root).__name__
        self._kept: list[Any] = []
        self._tensors = {id(value): f"{path}.{name}" if path else name for path, module in self.root.named_modules()
                         for table in (vars(module), module._buffers, module._parameters)
                         for name, value in table.items() if isinstance(value, Tensor)}
        args, kwargs = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with _lock, self._patched(function):
            result = function(*args, **kwargs)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return stand-ins for the arguments of what is traced."""
        given = concrete_args or {}
        parameters = list(inspect.signature(root_fn).parameters.values())
        args: list[Any] = [self.root] if is_module else []
        kwargs: dict[str, Any] = {}
        for p in parameters[len(args):]:
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            if p.name in given:
                value: Any = given[p.name]
            else:
                default = () if p.default is p.empty else (p.default,)
                value = self.create_proxy("placeholder", stars + p.name, default, {},
                                          type_expr=None if p.annotation is p.empty else p.annotation)
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = value
            elif not stars:
                args.append(value)
        return args, kwargs

    @contextmanager
    def _patched(self, function: Callable[..., Any]) -> Iterator[None]:
        """A block in which calls of modules, and their parameters, go through this tracer."""
        call, get = Module.__call__, Module.__getattr__
        cache: dict[str, Any] = {}

        def call_traced(module: Module, *args: Any, **kwargs: Any) -> Any:
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def get_traced(module: Module, name: str) -> Any:
            return self.getattr(name, get(module, name), cache)

        changed = [(names, name, names[name]) for (_, name), names in _wrapped.items() if name in names]
        own = getattr(inspect.unwrap(function), "__globals__", {})
        alone = {id(function) for function in self.autowrap_functions}
        changed += [(own, name, value) for name, value in own.items() if id(value) in alone]
        try:
            Module.__call__ = call_traced  # type: ignore[method-assign,assignment]
            Module.__getattr__ = get_traced  # type: ignore[method-assign]
            for names, name, value in changed:
                names[name] = _as_step(value)
            yield
        finally:
            Module.__call__, Module.__getattr__ = call, get  # type: ignore[method-assign]
            for names, name, value in changed:
                names[name] = value

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None, proxy_factory_fn: Any = None) -> Proxy:
        return super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module that does what a module or a function does, call by call.

    What the program decides by values, or by sizes, cannot be traced.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    if callable(root) and not isinstance(root, Module) and not hasattr(root, "__name__"):
        raise BadValue("symbolic_trace: expects a module or a function")
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
