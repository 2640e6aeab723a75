"""The rewrite of a leaf's update by its gradient: the write is not recorded.

    w -= lr * w.grad                              with torch.no_grad():
                                                      w -= lr * w.grad

To add what has no gradient leaves derivatives as they are, so a later `backward()` brings the same gradient.
"""
from __future__ import annotations

import ast

from .calls import torch_name
from .edits import Edit, Source
from .findings import Finding


def update(source: Source, finding: Finding) -> list[Edit]:
    """Return the edit that puts an update into `no_grad`; none if the write is something else."""
    node, torch = source.node_at(finding.where), torch_name(source)
    if node is None or torch is None or not finding.facts.get("shifts"):
        return []
    statement = source.statement(node)
    if not isinstance(statement, (ast.AugAssign, ast.Expr)) or not _reads_gradient(statement):
        return []
    return source.inside(statement, f"with {torch}.no_grad():")


def _reads_gradient(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(statement))
