"""Tracing: a function is called with stand-ins for its arguments, and what it does with them is written down."""
from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...base.errors import BadArgument, BadValue
from ...base.locks import new_lock
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...ops.shape.introspection import _assert
from ...tensors.tensor import Tensor
from ..unavailable.symbols import ScriptObject
from .graph import Graph
from .graph_module import GraphModule
from .node import Target, has_side_effect
from .proxy import Proxy, TracerBase, _tracer_of

has_side_effect(_assert)

# What is not public is for tracers of libraries' own, which write `Tracer.trace` anew.
__all__ = ["FunctionType", "Proxy", "ScriptObject", "Tracer", "compatibility", "functools", "symbolic_trace", "wrap"]

_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # names in modules whose calls are steps of their own
_lock = new_lock()  # while something is traced, modules are called in another way
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__
_ABSENT = object()


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """Return a decorator that leaves a function as it is: in PyTorch, what it says is asked by PyTorch's tests."""
    return lambda function: function


def wrap(fn_or_name: Any) -> Any:
    """Have calls of a function of this module be one step of a graph, whatever the function does."""
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise BadArgument("wrap: expects a function of the module, or its name", fix='fx.wrap("function")')
    names = sys._getframe(1).f_globals
    _wrapped[id(names), name] = names
    return fn_or_name


def _as_step(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = _tracer_of((args, kwargs))
        if tracer is None:
            return function(*args, **kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)

    return call


class _Patcher:
    """A block in which names of classes and modules mean something else. Other threads that trace wait for its end."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._changed: set[tuple[int, str]] = set()
        self._searched: set[int] = set()

    def _once(self, owner: Any, name: str, deduplicate: bool) -> bool:
        new = (id(owner), name) not in self._changed
        self._changed.add((id(owner), name))
        return new or not deduplicate

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Callable[..., Any],
              deduplicate: bool = True) -> None:
        """Have a name in a module's dict mean `new_fn` until the block ends; with `deduplicate`, only once."""
        if self._once(frame_dict, name, deduplicate):
            before = frame_dict.get(name, _ABSENT)
            self._undo.append(lambda: frame_dict.pop(name) if before is _ABSENT else frame_dict.update({name: before}))
            frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True) -> None:
        """Have a method of a class, its own or an inherited one, be `new_fn` until the block ends."""
        if self._once(cls, name, deduplicate):
            before = vars(cls).get(name, _ABSENT)
            self._undo.append(lambda: delattr(cls, name) if before is _ABSENT else setattr(cls, name, before))
            setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Whether it is asked for the first time about a thing."""
        new = id(thing) not in self._searched
        self._searched.add(id(thing))
        return new

    def __enter__(self) -> _Patcher:
        _lock.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            while self._undo:
                self._undo.pop()()
        finally:
            self._changed.clear()
            self._searched.clear()
            _lock.release()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Have calls of functions that `wrap` named be steps."""
    for (_, name), names in _wrapped.items():
        if name in names:
            patcher.patch(names, name, _as_step(names[name]))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Have calls of these functions be steps, under whatever public name a module's dict has them."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _as_step(value))


class Tracer(TracerBase):
    """What traces a module or a function. Modules of this package's own are steps, those of a program are gone into."""

    def __init__(self, autowrap_modules: tuple[Any, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False) -> None:
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_function_ids = {id(function) for function in autowrap_functions}
        self._autowrap_function_ids |= {id(value) for module in autowrap_modules for name, value in vars(module).items()
                                        if not name.startswith("_") and callable(value)}
        self.tensor_attrs: dict[Any, str] = {}
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
            name = self._name_of(a)
            if name is None:
                number = sum(n.startswith("_tensor_constant") for n in self.tensor_attrs.values())
                self.tensor_attrs[a] = name = f"_tensor_constant{number}"
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _name_of(self, tensor: Tensor) -> str | None:
        for named in (self.root.named_parameters, self.root.named_buffers):
            for name, value in named():
                if value is tensor:
                    return name
        return self.tensor_attrs.get(tensor)

    # ---------------------------------------------------------------------------------------------------------- tracing

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function; arguments that are given here have these values."""
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.root_module_name = type(self.root).__name__
        self.tensor_attrs = {value: f"{path}.{name}" if path else name for path, module in self.root.named_modules()
                             for name, value in vars(module).items() if isinstance(value, Tensor)}
        names = getattr(inspect.unwrap(function), "__globals__", {})
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        cache: dict[str, Any] = {}

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            names = getattr(getattr(module, "forward", module), "__globals__", {})
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            return self.call_module(module, lambda *a, **k: _orig_module_call(module, *a, **k), args, kwargs)

        def get(module: Module, name: str) -> Any:
            return self.getattr(name, _orig_module_getattr(module, name), cache)

        with _Patcher() as patcher:
            patcher.patch_method(Module, "__call__", call, deduplicate=False)
            patcher.patch_method(Module, "__getattr__", get, deduplicate=False)
            _patch_wrapped_functions(patcher)
            for found in (names, *(vars(module) for module in self._autowrap_search)):
                _autowrap_check(patcher, found, self._autowrap_function_ids)
            result = function(*args)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: dict[str, Any] | None = None) -> tuple[Callable[..., Any], list[Any]]:
        """Return what is traced as a function of positional arguments, and stand-ins for these."""
        given = concrete_args or {}
        parameters = list(inspect.signature(root_fn).parameters.values())
        args: list[Any] = [self.root] if is_module else []
        by_name: dict[str, Any] = {}
        for p in parameters[len(args):]:
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            if p.name in given:
                value: Any = given[p.name]
            else:
                default = () if p.default is p.empty else (p.default,)
                value = self.create_proxy("placeholder", stars + p.name, default, {},
                                          type_expr=None if p.annotation is p.empty else p.annotation)
            if p.kind is p.KEYWORD_ONLY:
                by_name[p.name] = value
            elif not stars:
                args.append(value)
        return functools.partial(root_fn, **by_name) if by_name else root_fn, args

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
