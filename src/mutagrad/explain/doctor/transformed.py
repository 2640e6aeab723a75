"""Rewrites inside of functions that `torch.func` calls: copies of arguments, tensors that differ from slice to slice.

    def f(x):                 def f(x):               def f(x):                 def f(x):
        x.mul_(2)                 x = x.clone()           y = torch.zeros(3)        y = x.new_zeros(3)
                                  x.mul_(2)               y[0] = x                  y[0] = x
"""
from __future__ import annotations

import ast

from .calls import is_function, last_name, operand
from .edits import Edit, Source
from .findings import Finding

MAKERS = {"zeros", "ones", "empty", "full"}


def copy_argument(source: Source, finding: Finding) -> list[Edit]:
    """Return the edit that lets a function write to a copy of its argument."""
    node = source.node_at(finding.where)
    written = operand(source, node, str(finding.facts.get("name", "")), "0")
    while isinstance(written, (ast.Subscript, ast.Attribute)):
        written = written.value
    function = None if node is None else _function(source, node)
    if not isinstance(written, ast.Name) or not isinstance(function, ast.FunctionDef):
        return []
    if written.id not in _parameters(function):
        return []
    has_text = ast.get_docstring(function) is not None and len(function.body) > 1
    return [source.before(function.body[has_text], f"{written.id} = {written.id}.clone()")]


def copy_returned(source: Source, finding: Finding) -> list[Edit]:
    """Return the same edit for a layer that overwrites what the one before has kept, if it returns what it writes."""
    node = source.node_at(finding.where)
    function = None if node is None else _function(source, node)
    returned = [n for r in ast.walk(function) if isinstance(r, ast.Return) and r.value is not None
                for n in ast.walk(r.value) if isinstance(n, ast.Name)] if function is not None else []
    edits = copy_argument(source, finding)
    return edits if any(f"{name.id} = {name.id}.clone()" in edit.text for name in returned for edit in edits) else []


def make_mapped(source: Source, finding: Finding) -> list[Edit]:
    """Return the edit that makes a tensor from the function's first argument, which vmap maps."""
    call = source.node_at(finding.saved_where)
    function = None if call is None else _function(source, call)
    if not isinstance(call, ast.Call) or function is None or not is_function(source, call):
        return []
    parameters = _parameters(function)
    if last_name(call) not in MAKERS or not parameters:
        return []
    return [Edit(source.start(call.func), source.end(call.func), f"{parameters[0]}.new_{last_name(call)}")]


def _function(source: Source, node: ast.AST) -> ast.FunctionDef | ast.Lambda | None:
    return next((n for n in source.above(node) if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)


def _parameters(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args) if argument.arg != "self"]
