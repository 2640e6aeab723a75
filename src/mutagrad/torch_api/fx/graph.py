"""A program as a list of calls."""
from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...base.errors import BadValue
from .node import Argument, Node, Target, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]


class PythonCode(NamedTuple):
    """A graph as text, and what the text names."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """How a graph is called: by its placeholders, in order."""


class _Names:
    """Names that are taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """Return a name like the wanted one that is not taken."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", wanted) or "_"
        name = f"_{name}" if name[0].isdigit() else name
        stem, number = name, 0
        if counted := re.fullmatch(r"(.*)_(\d+)", name):
            stem, number = counted[1], int(counted[2])
        while name in self.taken or keyword.iskeyword(name) or hasattr(builtins, name):
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name


class _Nodes:
    """The nodes of a graph in order. The list may change while it is gone through."""

    def __init__(self, root: Node, backwards: bool = False) -> None:
        self.root, self.backwards = root, backwards

    def __iter__(self) -> Iterator[Node]:
        node = self.root._prev if self.backwards else self.root._next
        while node is not self.root:
            if not node._erased:
                yield node
            node = node._prev if self.backwards else node._next

    def __reversed__(self) -> _Nodes:
        return _Nodes(self.root, not self.backwards)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Place:
    """Where new nodes of a graph go, from when it is made; leaving its block brings back where they went before."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class Graph:
    """Calls in order: placeholders first, the output last. New ones go before the end, or where a block says."""

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None,
                 tracer_extras: dict[str, Any] | None = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._names = _Names()
        self.owning_module, self._tracer_cls, self._codegen = owning_module, tracer_cls, CodeGen()

    @property
    def nodes(self) -> _Nodes:
        return _Nodes(self._root)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes of one kind, or that call one target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """Return the last node."""
        return self.find_nodes(op="output")[-1]

    # ------------------------------------------------------------------------------------------------------- new nodes

    def create_node(self, op: str, target: Target, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """Return a new node at the place where nodes go now."""
        path = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
        node = Node(self, self._names.fresh(name or path), op, target, args or (), kwargs or {},
                    type_expr)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Return a node for an argument of the whole."""
        return self.create_node("placeholder", name, () if default_value is ... else (default_value,),
                                type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Return a node for an attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """Return a node for a call of a module inside."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """Return a node for a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None,
                      kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:
        """Return a node for a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Return the node that says what the whole returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Return a node like one of another graph, with other arguments."""
        made = self.create_node(node.op, node.target, map_arg(node.args, arg_transform),
                                map_arg(node.kwargs, arg_transform), node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all of another graph to here; return what it returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], val_map.__getitem__)
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Node] = {}
        for node in self.nodes:
            copies[node] = made.node_copy(node, copies.__getitem__)
        return made

    # --------------------------------------------------------------------------------------------------------- changes

    def inserting_before(self, n: Node | None = None) -> Any:
        """New nodes go before one: from now on, or in a `with` block until its end."""
        return _Place(self, (self._root._next if n is None else n).prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """New nodes go right behind one, the last of them first: from now on, or in a `with` block until its end."""
        return _Place(self, (self._root if n is None else n).append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses."""
        if to_erase.users:
            raise BadValue(f"erase_node: {to_erase} is used by {list(to_erase.users)}",
                           fix="node.replace_all_uses_with(other) first")
        if not to_erase._erased:
            to_erase._unlink()
            to_erase._erased = True
            to_erase.args, to_erase.kwargs = (), {}

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove what nobody uses and what has no other effect; return whether there was any."""
        kept = is_impure_node or Node.is_impure
        dead = False
        for node in reversed(self.nodes):
            if not node.users and not kept(node):
                self.erase_node(node)
                dead = True
        return dead

    def lint(self) -> None:
        """Raise if a node uses another that does not come before it."""
        seen: set[Node] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used not in seen:
                    raise BadValue(f"lint: {node} uses {used}, which does not come before it")
            seen.add(node)

    def on_generate_code(self, make_transformer: Callable[..., Any]) -> None:
        """Do nothing: a graph runs without being made into code."""

    def set_codegen(self, codegen: CodeGen) -> None:
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> tuple[Any, ...]:
        """Return the arguments as placeholders take them: as they are."""
        return args

    def process_outputs(self, out: Any) -> Any:
        return out

    # ------------------------------------------------------------------------------------------------------------ text

    def python_code(self, root_module: str, *, verbose: bool = False, **settings: Any) -> PythonCode:
        """Return the graph as a function's text, for people to read."""
        names: dict[str, Any] = {}
        lines, arguments = [], ["self"]
        for node in self.nodes:
            if node.op == "placeholder":
                arguments.append(str(node.target) + (f" = {node.args[0]!r}" if node.args else ""))
            elif node.op == "output":
                lines.append(f"    return {node.args[0]!r}")
            else:
                lines.append(f"    {node.name} = {_call_text(node, root_module or 'self', names)}")
        return PythonCode("\n".join([f"def forward({', '.join(arguments)}):", *(lines or ["    pass"]), ""]), names)

    def print_tabular(self) -> None:
        """Print the nodes, one a line."""
        print("opcode", "name", "target", "args", "kwargs")
        for node in self.nodes:
            print(node.op, node.name, node.called_name(), node.args, node.kwargs)

    def __str__(self) -> str:
        return "\n".join(["graph():", *(f"    {node.format_node()}" for node in self.nodes)])


def _call_text(node: Node, root: str, names: dict[str, Any]) -> str:
    args = [repr(a) for a in node.args]
    if node.op == "get_attr":
        return f"{root}.{node.target}"
    named = [f"{name} = {value!r}" for name, value in node.kwargs.items()]
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({', '.join(args[1:] + named)})"
    if node.op == "call_module":
        return f"{root}.{node.target}({', '.join(args + named)})"
    called = node.called_name()
    names[called] = node.target
    return f"{called}({', '.join(args + named)})"
