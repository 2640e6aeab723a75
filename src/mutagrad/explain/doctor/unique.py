"""The rewrite of a write with duplicate indices: only the last value of each place is written.

    y[i] = v          last = {place: n for n, place in enumerate(i.tolist())}
                      y[list(last)] = v[list(last.values())]

A dict keeps the last of equal keys, as the tensor keeps the last of the values.
"""
from __future__ import annotations

import ast
from typing import Any

from .calls import ATOMS, is_method, last_name, operator
from .edits import Edit, Source
from .findings import Finding


def write_last_values(source: Source, finding: Finding) -> list[Edit]:
    """Return the edits for an assignment or an update by one index (or several) of one dimension."""
    node = source.node_at(finding.where)
    if not finding.facts.get("flat"):
        return []
    if isinstance(node, ast.Subscript):
        return _assigned(source, node, finding)
    if isinstance(node, ast.Call) and is_method(source, node) and isinstance(source.parents[node], ast.Expr):
        return _put(source, node, finding)
    return []


def _assigned(source: Source, node: ast.Subscript, finding: Finding) -> list[Edit]:
    statement = source.statement(node)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    indices = [part for part in parts if not isinstance(part, ast.Slice)]
    if len(indices) != finding.facts.get("places") or len(indices) > 1 and len(parts) > len(indices):
        return []
    last = source.unused("last")
    before = parts.index(indices[0])  # slices, which leave as many dimensions before the one that is chosen from
    written = [_places(last, len(indices)) if part in indices else source.flat(part) for part in parts]
    target = f"{source.segment(node.value)}[{', '.join(written if len(indices) == 1 else written[:1])}]"
    value = _assigned_value(source, statement, node, finding)
    chosen = ", ".join([*[":"] * before, f"list({last}.values())"])
    lists = [n - before for n in finding.facts.get("lists", ()) if n >= before]
    return [_remember(source, statement, last, indices, lists),
            Edit(source.start(statement), source.end(statement), f"{target} = {value}[{chosen}]")] if value else []


def _assigned_value(source: Source, statement: ast.stmt, node: ast.Subscript, finding: Finding) -> str | None:
    if isinstance(statement, ast.AugAssign):
        return f"({source.flat(node)} {operator(statement)} {_atom(source, statement.value)})"
    single = isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.targets[0] is node
    return _value(source, statement.value, source.flat(node), finding) if single else None  # type: ignore[attr-defined]


def _put(source: Source, call: ast.Call, finding: Finding) -> list[Edit]:
    """`y.index_put_((i,), v)`, `y.index_copy_(0, i, v)` and `y.scatter_(0, i, v)` of one dimension."""
    statement, name = source.statement(call), last_name(call)
    assert isinstance(call.func, ast.Attribute)
    receiver = source.segment(call.func.value)
    if name == "index_put_" and len(call.args) == 2 and isinstance(call.args[0], (ast.Tuple, ast.List)):
        indices, value = call.args[0].elts, call.args[1]
    elif name in ("index_copy_", "scatter_") and len(call.args) == 3 and ast.unparse(call.args[0]) == "0":
        indices, value = [call.args[1]], call.args[2]
    else:
        return []
    accumulates = any(k.arg != "accumulate" or ast.unparse(k.value) != "False" for k in call.keywords)
    if accumulates or len(indices) != finding.facts.get("places"):
        return []
    last = source.unused("last")
    target = f"{receiver}[{_places(last, len(indices))}]"
    shape = f"{receiver}[{', '.join(source.flat(i) for i in indices)}]"
    return [_remember(source, statement, last, indices, []),
            Edit(source.start(statement), source.end(statement),
                 f"{target} = {_value(source, value, shape, finding)}[list({last}.values())]")]


def _remember(source: Source, statement: ast.stmt, last: str, indices: list[Any], lists: list[int]) -> Edit:
    """Return the line before: at which position each place comes last."""
    texts = [source.flat(e) if n in lists else f"{_atom(source, e)}.tolist()" for n, e in enumerate(indices)]
    places = texts[0] if len(texts) == 1 else f"zip({', '.join(texts)})"
    return source.before(statement, f"{last} = {{place: n for n, place in enumerate({places})}}")


def _places(last: str, count: int) -> str:
    return f"list({last})" if count == 1 else f"tuple(map(list, zip(*{last})))"


def _value(source: Source, value: ast.expr, shape: str, finding: Finding) -> str:
    text = _atom(source, value)
    return text if finding.facts.get("rows") else f"{text}.expand_as({shape})"


def _atom(source: Source, node: ast.expr) -> str:
    return source.flat(node) if isinstance(node, (*ATOMS, ast.List)) else f"({source.flat(node)})"
