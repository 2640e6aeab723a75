"""The rewrite of a branch that is computed and not taken: a harmless argument in its place.

    torch.where(x > 0, x.sqrt(), 0.)          torch.where(x > 0, torch.where(x > 0, x, 0.5).sqrt(), 0.)
    x.log() * (x > 0)                         torch.where(x > 0, x, 0.5).log() * (x > 0)
"""
from __future__ import annotations

import ast
from typing import Any

from .calls import is_function, is_method, last_name, operand, torch_name
from .edits import Edit, Source
from .findings import Finding

HARMLESS = {"acosh": "2.0"}  # where one half will not do
GUILTY = {"div": "1", "true_divide": "1", "remainder": "1", "fmod": "1"}  # which operand is, where it is not the first


def take_harmless(source: Source, finding: Finding) -> list[Edit]:
    """Return the edits for a function that stands inside of `where`, or of a product with a comparison."""
    name, torch, node = str(finding.facts["name"]), torch_name(source), source.node_at(finding.where)
    argument = operand(source, node, name, GUILTY.get(name, "0"))
    found = None if node is None else _condition(source, node)
    if argument is None or torch is None or found is None or isinstance(argument, (ast.Constant, ast.Starred)):
        return []
    condition, taken = found
    number, start, end = HARMLESS.get(name, "0.5"), source.start(argument), source.end(argument)
    before, after = ("", f", {number}") if taken else (f"{number}, ", "")
    return [Edit(start, start, f"{torch}.where({source.flat(condition)}, {before}"), Edit(end, end, f"{after})")]


def _condition(source: Source, node: ast.AST) -> tuple[ast.expr, bool] | None:
    """Return what decides whether a value is taken, and whether it is where that is true."""
    inner: Any = node
    for outer in source.above(node):
        if isinstance(outer, ast.stmt):
            return None
        if isinstance(outer, ast.Call) and last_name(outer) == "where":
            return _branch(source, outer, inner)
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Mult):
            other = outer.right if outer.left is inner else outer.left
            if isinstance(other, ast.Compare) and _is_plain(other):
                return other, True
        inner = outer
    return None


def _branch(source: Source, call: ast.Call, inner: ast.AST) -> tuple[ast.expr, bool] | None:
    """Return the condition of a call of `where`, and which branch an expression is part of."""
    if is_function(source, call) and len(call.args) == 3:
        condition, taken, other = call.args
    elif is_method(source, call) and isinstance(call.func, ast.Attribute) and len(call.args) == 2:
        condition, taken, other = call.args[0], call.func, call.args[1]
    else:
        return None
    return (condition, inner is taken) if inner in (taken, other) and _is_plain(condition) else None


def _is_plain(node: ast.AST) -> bool:
    """Return whether an expression can be written twice."""
    return not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in ast.walk(node))
