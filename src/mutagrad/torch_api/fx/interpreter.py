"""Running a graph node by node."""
from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Any

from ...base.errors import BadValue
from ...nn.module import Module
from .graph import Graph
from .node import Argument, Node, Target, map_arg
from .proxy import GraphAppendingTracer, Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """What runs a graph; a subclass does something else for some of its nodes."""

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module, self.garbage_collect_values = module, garbage_collect_values
        self.graph: Graph = module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Return what the graph gives for these arguments."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator[Any] = iter(args)
        last = self._last_uses() if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            for used in last.get(node, ()):
                self.env.pop(used, None)
        return None

    def run_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return it for arguments that are given as those of a function."""
        kinds = {"**": Parameter.VAR_KEYWORD, "*": Parameter.VAR_POSITIONAL}
        parameters = []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                name = str(node.target).lstrip("*")
                kind = kinds.get(str(node.target)[:-len(name)], Parameter.POSITIONAL_OR_KEYWORD)
                default = node.args[0] if node.args else Parameter.empty
                parameters.append(Parameter(name, kind, default=default))
        bound = Signature(parameters).bind(*args, **kwargs)
        bound.apply_defaults()
        return self.run(*bound.arguments.values())

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Return it for arguments in a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def _last_uses(self) -> dict[Node, list[Node]]:
        """For each node those whose results nobody needs after it."""
        seen: set[Node] = set()
        last: dict[Node, list[Node]] = {}
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        return last

    def run_node(self, n: Node) -> Any:
        """Return the result of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values that a node is called with."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Return arguments with the values of the nodes among them."""
        return map_arg(args, self.env.__getitem__)

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module, by its path."""
        found: Any = self.module
        for part in target.split("."):
            found = getattr(found, part)
        return found

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            if str(target).startswith("**"):
                return next(self.args_iter, {})
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise BadValue(f"fx: an argument is missing for {target}") from None

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]


class Transformer(Interpreter):
    """What makes another graph by running one with stand-ins."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.tracer = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        return Proxy(self.new_graph.placeholder(str(target), default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> Any:
        """Return a module with the new graph."""
        result = super().run()
        self.new_graph.output(map_arg(_nodes_of(result), lambda node: node))
        made = type(self.module).__mro__[1] if getattr(type(self.module), "_of_graph", False) else type(self.module)
        return made(self.module, self.new_graph)


def _nodes_of(value: Any) -> Any:
    if isinstance(value, Proxy):
        return value.node
    if isinstance(value, (tuple, list)):
        return type(value)(_nodes_of(v) for v in value)
    return value
