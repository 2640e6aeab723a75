"""The rewrite of a loop whose state carries the graph of one step into the next: it is detached after `backward()`.

    for x in data:                            for x in data:
        h = cell(x, h)                            h = cell(x, h)
        loss(h).backward()                        loss(h).backward()
        optimizer.step()                          h = h.detach()
                                                  optimizer.step()
"""
from __future__ import annotations

import ast
from collections.abc import Iterator

from .calls import add_keyword, last_name
from .edits import Edit, Source
from .findings import Finding

LOOPS = (ast.For, ast.While)
LEAVING = {"item", "detach", "tolist", "float", "int"}  # what is made of these carries no graph


def go_back_once(source: Source, finding: Finding) -> list[Edit]:
    """Return the edit that detaches what a loop carries; where there is no such thing, one that retains the graph."""
    call = source.node_at(finding.saved_where)
    if not isinstance(call, ast.Call) or last_name(call) not in ("backward", "grad"):
        return []
    names = list(_carried(source, call)) if finding.where == finding.saved_where else []
    if names:
        code = "; ".join(f"{name} = {name}.detach()" for name in names)
        return [source.after(source.statement(call), code)]
    kept = next((k.value for k in call.keywords if k.arg == "retain_graph"), None)
    known = isinstance(kept, ast.Constant) and not kept.value
    return [add_keyword(source, call, "retain_graph", "True")] if kept is None or known else []


def _carried(source: Source, call: ast.Call) -> Iterator[str]:
    """Yield the names that a step of the loop around a call computes from what the step before has left in them."""
    loop = next((node for node in source.above(call) if isinstance(node, LOOPS)), None)
    statements = [s for s in ast.walk(loop) if isinstance(s, (ast.Assign, ast.AugAssign))] if loop is not None else []
    for statement in sorted(statements, key=lambda s: s.lineno):
        if any(last_name(c) in LEAVING for c in ast.walk(statement.value) if isinstance(c, ast.Call)):
            continue
        read = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
        if isinstance(statement, ast.AugAssign):
            read |= {statement.target.id} if isinstance(statement.target, ast.Name) else set()
        bound = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        calls = any(isinstance(n, ast.Call) for n in ast.walk(statement.value))
        yield from (name for name in bound if name in read and calls)
