"""Whose variable a name is: the scopes of a source, what binds a variable, and who reads it.

>>> names = Names(ast.parse("x = 1; f = lambda y: x + y"))
>>> variable = Variable(names.tree, "x")
>>> [name.col_offset for name in names.uses(variable)]
[21]
"""
from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Variable:
    """A name in the scope that it belongs to."""

    scope: ast.AST
    name: str


class Names:
    """The scopes of a tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.scope_of: dict[ast.AST, ast.AST] = {}
        self._outer: dict[ast.AST, ast.AST | None] = {tree: None}
        self._bound: dict[ast.AST, dict[str, list[ast.AST]]] = {tree: {}}
        self.declared: dict[tuple[ast.AST, str], str] = {}  # global, nonlocal
        self._walk(tree.body, tree)
        self._uses: dict[Variable, list[ast.Name]] = {}
        for node in self.scope_of:
            if isinstance(node, ast.Name) and not self._is_binding(node):
                self._uses.setdefault(self.variable(node), []).append(node)

    # --------------------------------------------------------------------------------------------------- what it knows

    def variable(self, node: ast.Name | ast.arg) -> Variable:
        """Return the variable that a name stands for; one that nobody binds belongs to the module."""
        return self.lookup(self.scope_of[node], node.arg if isinstance(node, ast.arg) else node.id)

    def lookup(self, scope: ast.AST, name: str) -> Variable:
        found: ast.AST | None = scope
        while found is not None:
            told = self.declared.get((found, name))
            if told == "global":
                return Variable(self.tree, name)
            visible = found is scope or not isinstance(found, ast.ClassDef)
            if told is None and visible and name in self._bound[found]:
                return Variable(found, name)
            found = self._outer[found]
        return Variable(self.tree, name)

    def uses(self, variable: Variable) -> list[ast.Name]:
        """Return where a variable is read or changed in place (`x += 1`), wherever that is."""
        return self._uses.get(variable, [])

    def bindings(self, variable: Variable) -> list[ast.AST]:
        """Return what binds a variable: names that are assigned, parameters, definitions, imports."""
        found = list(self._bound[variable.scope].get(variable.name, []))
        for (scope, name), _ in self.declared.items():
            if name == variable.name and self.lookup(scope, name) == variable:
                found += self._bound[scope].get(name, [])
        return found

    def function_of(self, node: ast.AST) -> ast.AST:
        """Return the function (or module, or class) in which a node is run."""
        scope = self.scope_of[node]
        while isinstance(scope, COMPREHENSIONS):
            outer = self._outer[scope]
            assert outer is not None
            scope = outer
        return scope

    # -------------------------------------------------------------------------------------------------------- the walk

    def _is_binding(self, name: ast.Name) -> bool:
        return any(name is n for n in self._bound[self.scope_of[name]].get(name.id, ()))

    def _bind(self, scope: ast.AST, name: str, node: ast.AST) -> None:
        self._bound[scope].setdefault(name, []).append(node)

    def _enter(self, node: ast.AST, outer: ast.AST) -> None:
        self._outer[node], self._bound[node] = outer, {}

    def _walk(self, nodes: Iterable[Any], scope: ast.AST) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self.scope_of[node] = scope
                getattr(self, f"_{type(node).__name__}", self._children)(node, scope)

    def _children(self, node: ast.AST, scope: ast.AST) -> None:
        self._walk(ast.iter_child_nodes(node), scope)

    def _Name(self, node: ast.Name, scope: ast.AST) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._bind(scope, node.id, node)

    def _AugAssign(self, node: ast.AugAssign, scope: ast.AST) -> None:
        """`x += 1` makes x local where nothing else does, but is a use: tensors are changed in place."""
        self._walk([node.value, node.op], scope)
        if not isinstance(node.target, ast.Name):
            self._walk([node.target], scope)
            return
        self.scope_of[node.target] = scope
        self._bound[scope].setdefault(node.target.id, [])

    def _NamedExpr(self, node: ast.NamedExpr, scope: ast.AST) -> None:
        self._walk([node.value], scope)
        inner = scope
        while isinstance(inner, COMPREHENSIONS):
            outer = self._outer[inner]
            assert outer is not None
            inner = outer
        self._walk([node.target], inner)

    def _FunctionDef(self, node: Any, scope: ast.AST) -> None:
        self._bind(scope, node.name, node)
        arguments = node.args
        self._walk([*node.decorator_list, *arguments.defaults, *arguments.kw_defaults, node.returns], scope)
        self._enter(node, scope)
        self._parameters(arguments, node)
        self._walk(node.body, node)

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda, scope: ast.AST) -> None:
        self._walk([*node.args.defaults, *node.args.kw_defaults], scope)
        self._enter(node, scope)
        self._parameters(node.args, node)
        self._walk([node.body], node)

    def _parameters(self, arguments: ast.arguments, scope: ast.AST) -> None:
        given = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
        for one in given:
            if one is not None:
                self.scope_of[one] = scope
                self._bind(scope, one.arg, one)

    def _ClassDef(self, node: ast.ClassDef, scope: ast.AST) -> None:
        self._bind(scope, node.name, node)
        self._walk([*node.decorator_list, *node.bases, *node.keywords], scope)
        self._enter(node, scope)
        self._walk(node.body, node)

    def _comp(self, node: Any, scope: ast.AST) -> None:
        self._enter(node, scope)
        first, *others = node.generators
        self._walk([first.iter], scope)
        self.scope_of[first] = scope
        self._walk([first.target, *first.ifs, *others], node)
        self._walk([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], node)

    _ListComp = _SetComp = _DictComp = _GeneratorExp = _comp

    def _Global(self, node: ast.Global, scope: ast.AST) -> None:
        self.declared |= {(scope, name): "global" for name in node.names}

    def _Nonlocal(self, node: ast.Nonlocal, scope: ast.AST) -> None:
        self.declared |= {(scope, name): "nonlocal" for name in node.names}

    def _Import(self, node: Any, scope: ast.AST) -> None:
        for alias in node.names:
            self._bind(scope, (alias.asname or alias.name).partition(".")[0], node)

    _ImportFrom = _Import

    def _ExceptHandler(self, node: ast.ExceptHandler, scope: ast.AST) -> None:
        if node.name:
            self._bind(scope, node.name, node)
        self._children(node, scope)

    def _MatchAs(self, node: Any, scope: ast.AST) -> None:
        if node.name:
            self._bind(scope, node.name, node)
        self._children(node, scope)

    _MatchStar = _MatchAs
