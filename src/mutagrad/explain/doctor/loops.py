"""The rewrite of a loop that fills a tensor element by element: the parts are collected, and stacked at the end.

    y = torch.zeros(n)                          y_parts = []
    for i in range(n):                          for i in range(n):
        y[i] = f(i)                                 y_parts.append(f(i))
                                                y = torch.stack(y_parts)
"""
from __future__ import annotations

import ast
from typing import Any

from .calls import last_name, torch_name
from .edits import Edit, Source
from .findings import Finding


def stack_parts(source: Source, finding: Finding) -> list[Edit]:
    """Return the edits for a loop over all rows of a tensor of its own that nothing reads before the loop is over."""
    node, torch = source.node_at(finding.where), torch_name(source)
    if not finding.facts.get("fits") or torch is None or not isinstance(node, ast.Subscript):
        return []
    assignment = source.parents[node]
    loop = source.parents[assignment]
    made = _made(source, node)
    if made is None or not isinstance(loop, ast.For) or loop.orelse or not _fills(loop, node, assignment, made.value):
        return []
    assert isinstance(node.value, ast.Name) and isinstance(assignment, ast.Assign)
    if loop not in source.block(made) or _is_read(source, node.value, loop):
        return []
    parts = source.unused(f"{node.value.id}_parts")
    value = source.segment(assignment.value)
    return [Edit(source.start(made), source.end(made), f"{parts} = []"),
            Edit(source.start(assignment), source.end(assignment), f"{parts}.append({value})"),
            source.after(loop, f"{node.value.id} = {torch}.stack({parts})")]


def _made(source: Source, node: ast.Subscript) -> Any:
    """Return the statement that makes the tensor, if there is one only."""
    if not isinstance(node.value, ast.Name):
        return None
    bindings = source.names.bindings(source.names.variable(node.value))
    found = source.parents[bindings[0]] if len(bindings) == 1 else None
    is_made = isinstance(found, ast.Assign) and len(found.targets) == 1 and isinstance(found.value, ast.Call)
    return found if is_made and last_name(found.value) in ("zeros", "empty", "ones") else None  # type: ignore[union-attr]


def _fills(loop: ast.For, node: ast.Subscript, assignment: ast.AST, made: ast.Call) -> bool:
    """Return whether a loop runs over all rows, in order, and its last statement writes the one that it is at."""
    ranged = isinstance(loop.iter, ast.Call) and last_name(loop.iter) == "range" and len(loop.iter.args) == 1
    if not ranged or not made.args or loop.body[-1] is not assignment or not isinstance(assignment, ast.Assign):
        return False
    leaves = any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(loop))
    rows = made.args[0].elts[0] if isinstance(made.args[0], ast.Tuple) else made.args[0]
    same = ast.unparse(rows) == ast.unparse(loop.iter.args[0])  # type: ignore[attr-defined]
    return same and not leaves and ast.unparse(node.slice) == ast.unparse(loop.target)


def _is_read(source: Source, name: ast.Name, loop: ast.stmt) -> bool:
    """Return whether the tensor is used before the loop is over, elsewhere than where it is written."""
    variable = source.names.variable(name)
    elsewhere = [use for use in source.names.uses(variable) if source.names.function_of(use) is not variable.scope]
    early = [use for use in source.names.uses(variable) if use is not name and source.start(use) < source.end(loop)]
    return bool(elsewhere or early)
