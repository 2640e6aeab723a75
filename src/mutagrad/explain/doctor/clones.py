"""Rewrites that keep a value where it is saved: `y * y.clone()`, so that nothing written later can change it.

A clone never changes what a program means: who holds the tensor itself goes on with it.
"""
from __future__ import annotations

import ast
from typing import Any

from .calls import (
    ATOMS,
    call_on,
    drop_keyword,
    is_around,
    is_direct,
    is_method,
    last_name,
    operand,
    operator,
    repeatable,
)
from .edits import Edit, Source
from .findings import Finding
from .transformed import copy_argument, copy_returned

LAYERS = {"ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "Hardtanh", "Hardswish", "Hardsigmoid", "SiLU", "Mish",
          "Threshold", "RReLU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"}


def keep_saved(source: Source, finding: Finding) -> list[Edit]:
    """Return the edits that clone what the call at `saved_where` keeps."""
    node = source.node_at(finding.saved_where)
    if node is None:
        return []
    if finding.facts.get("inside"):
        return copy_returned(source, finding)
    function, slot = str(finding.facts.get("function", "")), finding.slot
    if finding.where == finding.saved_where and isinstance(node, ast.Call) and is_around(source, node, function):
        return out_of_place_layers(source)
    if function == "checkpoint" and isinstance(node, ast.Call):
        return _keep_argument(source, node, finding)
    if slot.startswith("out"):
        return _keep_result(source, node, slot)
    return clone(source, operand(source, node, function, slot))


def _keep_argument(source: Source, call: ast.Call, finding: Finding) -> list[Edit]:
    """Clone an argument that a checkpoint keeps: for the call, or inside the function, if that writes to it."""
    slot, saved = finding.slot, finding.saved_where
    if saved is not None and saved[0] is not finding.where[0]:
        return copy_argument(source, finding)
    return clone(source, call.args[int(slot)]) if slot.isdigit() and int(slot) < len(call.args) else []


def keep_operand(source: Source, finding: Finding) -> list[Edit]:
    """Return the edit that clones what the call at `where` reads of the memory that it writes."""
    node = source.node_at(finding.where)
    return clone(source, operand(source, node, str(finding.facts.get("name", "")), finding.slot))


def keep_written(source: Source, finding: Finding) -> list[Edit]:
    """Return the edit that computes out of place, and then copies, what a call at `where` writes and keeps."""
    node = source.node_at(finding.where)
    return _keep_result(source, node, "out") if isinstance(node, (ast.Call, ast.AugAssign)) else []


def clone(source: Source, expression: ast.expr | None) -> list[Edit]:
    """Return the edits that clone an expression; none if it is cloned already, or no tensor to be seen."""
    if expression is None or isinstance(expression, (ast.Constant, ast.Starred, ast.List, ast.Tuple, ast.Slice)):
        return []
    if isinstance(expression, ast.Call) and last_name(expression) == "clone":
        return []
    if getattr(source.parents[expression], "attr", "") == "clone":
        return []
    return call_on(source, expression, "clone()")


# -------------------------------------------------------------------------------------------------------- kept results

def _says_inplace(call: ast.Call) -> bool:
    return any(k.arg == "inplace" and ast.unparse(k.value) == "True" for k in call.keywords)


def _keep_result(source: Source, node: Any, slot: str) -> list[Edit]:
    if slot.startswith("out."):
        return _keep_one_of_results(source, node, slot)
    if isinstance(node, ast.AugAssign):
        return _updated_out_of_place(source, node)
    if isinstance(node, ast.Call) and (_says_inplace(node) or is_direct(source, node) and _writes(node)):
        return _copied_back(source, node)
    if isinstance(source.parents[node], ast.Expr):
        return _copied_from_layer(source, node)
    return clone(source, node) if isinstance(node, ast.expr) else []


def _copied_from_layer(source: Source, node: ast.AST) -> list[Edit]:
    """A layer that writes its input, `relu(h)`, becomes `h.copy_(relu(h.clone()))`."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or not repeatable(node.args[0]):
        return []
    start, end, given = source.start(node), source.end(node), node.args[0]
    return [Edit(start, start, f"{source.segment(given)}.copy_("), *clone(source, given), Edit(end, end, ")")]


def _writes(call: ast.Call) -> bool:
    name = last_name(call)
    return name.endswith("_") and not name.endswith("__")


def _keep_one_of_results(source: Source, node: Any, slot: str) -> list[Edit]:
    """Clone the one of several results that is kept: by the name it gets, or where it is taken from the tuple."""
    parent, index = source.parents[node], slot.split(".")[1]
    if isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
        return clone(source, parent)
    targets = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    if not isinstance(targets, (ast.Tuple, ast.List)) or any(isinstance(t, ast.Starred) for t in targets.elts):
        return []
    target = targets.elts[int(index)] if index.isdigit() and int(index) < len(targets.elts) else None
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return []
    name = source.segment(target)
    return [source.after(source.statement(node), f"{name} = {name}.clone()")]


def _updated_out_of_place(source: Source, node: ast.AugAssign) -> list[Edit]:
    """`y **= w` becomes `y.copy_(y ** w)`: the same memory gets a value that is not the one that is kept."""
    if not repeatable(node.target):
        return []
    target, value = source.segment(node.target), source.segment(node.value)
    value = value if isinstance(node.value, (*ATOMS, ast.Constant)) else f"({value})"
    return [Edit(source.start(node), source.end(node), f"{target}.copy_({target} {operator(node)} {value})")]


def _copied_back(source: Source, call: ast.Call) -> list[Edit]:
    """`y.sigmoid_()` becomes `y.copy_(y.sigmoid())`: the same memory gets a value that is not the one that is kept."""
    method = is_method(source, call)
    target = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    if target is None:
        return []
    edits = [drop_keyword(source, call, "inplace")] if _says_inplace(call) else []
    edits += [Edit(source.end(call.func) - 1, source.end(call.func), "")] if _writes(call) else []
    text = source.segment(target)
    if not repeatable(target):
        name = source.unused("written")
        edits.append(Edit(source.start(target), source.end(target), name))
        text = f"({name} := {text})"
    return [Edit(source.start(call), source.start(call), f"{text}.copy_("), *edits,
            Edit(source.end(call), source.end(call), ")")]


# ----------------------------------------------------------------------------------------------------- layers in place

def out_of_place_layers(source: Source) -> list[Edit]:
    """Take `inplace=True` from the layers of the source: one overwrote what the layer before it keeps."""
    calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and last_name(n) in LAYERS]
    return [drop_keyword(source, call, "inplace") for call in calls if _says_inplace(call)]
