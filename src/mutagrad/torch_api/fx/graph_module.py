"""A module whose forward is a graph."""
from __future__ import annotations

import copy
from typing import Any

from ...base.errors import BadArgument, BadValue
from ...nn.module import Module
from ...tensors.tensor import Tensor
from .graph import Graph
from .interpreter import Interpreter
from .node import Node, map_aggregate, map_arg

__all__ = ["GraphModule"]


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module with the attributes of another, for libraries that write graph modules of their own."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _find(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part)
    return root


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Put what one module has under a path to the same place in another."""
    *path, name = target.split(".")
    value = _find(from_module, target)
    _place(to_module, path, name, value)


def _place(module: Module, path: list[str], name: str, value: Any) -> None:
    for part in path:
        if not isinstance(getattr(module, part, None), Module):
            module.add_module(part, Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not isinstance(value, type(module._parameters.get(name, 0))) \
            and name not in module._parameters and type(value).__name__ != "Parameter":
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class GraphModule(Module):
    """A module that has what its graph names, and runs the graph. After changing the graph: `recompile`."""

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        if type(self) is GraphModule:
            self.__class__ = type(class_name, (GraphModule,), {"_of_graph": True})
        targets = dict.fromkeys(str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module"))
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            for target in targets if root is not self else ():
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(targets, key=lambda path: path.count(".")):
                if target not in root:
                    raise BadValue(f"GraphModule: the graph names {target!r}, which is not in root",
                                   fix=f"root={{{target!r}: ...}}")
                _place(self, target.split(".")[:-1], target.split(".")[-1], root[target])
        else:
            raise BadArgument(f"GraphModule: root must be a module or a dict, not {type(root).__name__}")
        self.__dict__["meta"] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The program. One that is assigned takes its place."""
        return self.__dict__["_graph"]  # type: ignore[no-any-return]

    @graph.setter
    def graph(self, graph: Graph) -> None:
        graph.owning_module = self
        self.__dict__["_graph"] = graph

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        return Interpreter(self).run_bound(args, kwargs)

    def recompile(self) -> Any:
        """Return the graph as text; it runs as it is, so nothing has to be compiled."""
        return self.graph.python_code("self")

    @property
    def code(self) -> str:
        """The graph as a function's text."""
        return self.graph.python_code("self").src

    def print_readable(self, print_output: bool = True, **settings: Any) -> str:
        """Print the graph as text, and return it."""
        if print_output:
            print(self.code)
        return self.code

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; return whether that was possible."""
        *path, name = target.split(".")
        _place(self, path, name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path; return whether there was one."""
        path, _, name = target.rpartition(".")
        parent = _find(self, path) if path else self
        if name not in parent._modules:
            return False
        del parent._modules[name]
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not call."""
        used = {str(n.target) for n in self.graph.nodes if n.op in ("get_attr", "call_module")}
        for name, _ in list(self.named_modules()):
            if name and not any(f"{path}.".startswith(f"{name}.") or name.startswith(f"{path}.") for path in used):
                self.delete_submodule(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = object.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k != "_graph"})
        made.graph = copy.deepcopy(self.graph)
        return made

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        nodes = [(n.name, n.op, n.target, n.args, n.kwargs, n.type) for n in self.graph.nodes]
        return _restored, (type(self).__name__, state, _flat(nodes))


class _Ref(str):
    """A node, by its name, in a file."""


def _flat(nodes: list[Any]) -> list[Any]:
    return [(name, op, target, *map_arg((args, kwargs), lambda n: _Ref(n.name)), kind)
            for name, op, target, args, kwargs, kind in nodes]


def _restored(name: str, state: dict[str, Any], nodes: list[Any]) -> GraphModule:
    graph = Graph()
    known: dict[str, Node] = {}
    for own, op, target, args, kwargs, kind in nodes:
        args, kwargs = map_aggregate((args, kwargs), lambda v: known[v] if isinstance(v, _Ref) else v)
        known[own] = graph.create_node(op, target, args, kwargs, own, kind)
    made = GraphModule({}, Graph(), name)
    made.__dict__.update(state)
    made.graph = graph
    return made
