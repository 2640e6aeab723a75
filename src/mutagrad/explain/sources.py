"""The user's source as a page shows it: lines with what stands around them, and the expression that was computed."""
from __future__ import annotations

import ast
import linecache
import os
from functools import lru_cache
from types import CodeType
from typing import Any

from ..base.provenance import Where, line_number
from ..nn.module import Module
from .recording import Lane

AROUND = 4  # lines that are shown before and after one


def columns(where: Where) -> tuple[int, int] | None:
    """Return where in its line an instruction's expression stands; None where Python does not say, or it is longer."""
    code, offset = where
    if not hasattr(code, "co_positions"):  # Python 3.10
        return None
    found = _positions(code)[offset // 2: offset // 2 + 1]
    line, end_line, start, end = found[0] if found else (None, None, None, None)
    if line is None or line != end_line or start is None or end is None:
        return None
    return start, end


@lru_cache(256)
def _positions(code: Any) -> list[Any]:
    return list(code.co_positions())


def around(filename: str, line: int) -> list[tuple[int, str]]:
    """Return lines of a file around one, with their numbers; none where the source is not known."""
    lines = range(max(line - AROUND, 1), line + AROUND + 1)
    return [(n, text.rstrip("\n")) for n in lines if (text := linecache.getline(filename, n))]


def source_at(where: Where) -> str:
    return linecache.getline(where[0].co_filename, line_number(where)).rstrip("\n")


def expression(where: Where) -> str:
    """Return the text of the expression that an instruction computes; the whole line where that is not known."""
    text, found = source_at(where), columns(where)
    if found is None:
        return text.strip()
    encoded = text.encode()
    return encoded[found[0]:found[1]].decode(errors="replace")


def variable(where: Where) -> str:
    """Return the name that the line gives to what it computes at this place: `y` of `y = x * 2`; "" if none."""
    return _variable(source_at(where).strip(), None if columns(where) is None else expression(where))


@lru_cache(4096)
def _variable(text: str, expression: str | None) -> str:
    try:
        statement = ast.parse(text).body[0]
    except (SyntaxError, IndexError, ValueError):
        return ""
    if isinstance(statement, ast.Assign):
        value: Any = statement.value
        target: Any = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        value, target = statement.value, statement.target
    else:
        return ""
    names = isinstance(target, (ast.Name, ast.Attribute)) and value is not None
    return ast.unparse(target) if names and expression in (None, ast.get_source_segment(text, value)) else ""


def operand(where: Where, operation: str, position: int) -> str:
    """Return the name of an argument as the program calls it: `x` of `x * 2` or `x.mul(2)` for position 0."""
    return _operand(expression(where), operation, position)


@lru_cache(4096)
def _operand(expression: str, operation: str, position: int) -> str:
    try:
        statement: Any = ast.parse(expression).body[0]
    except (SyntaxError, IndexError, ValueError):
        return ""
    operands = _operands(getattr(statement, "value", statement), statement, operation)
    named = position < len(operands) and isinstance(operands[position], (ast.Name, ast.Attribute))
    return ast.unparse(operands[position]) if named else ""


def _operands(value: Any, statement: Any, operation: str) -> list[Any]:
    """Return the operands of an operator, or the arguments of a call of this very operation."""
    if isinstance(statement, ast.AugAssign):
        return [statement.target, statement.value]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return [statement.targets[0].value, None, value]
    if isinstance(value, ast.BinOp):
        return [value.left, value.right]
    if isinstance(value, ast.Subscript):
        return [value.value]
    function, name = getattr(value, "func", None), operation.rpartition(".")[2]
    if isinstance(function, ast.Attribute) and function.attr == name:
        return [function.value, *value.args] if operation.startswith("Tensor.") else value.args
    return value.args if isinstance(function, ast.Name) and function.id == name else []


def global_name(tensor: Any, names: dict[str, Any]) -> str:
    """Return the name that a program's module has for a tensor, be it as a parameter of a model; "" if it has none."""
    for name, value in list(names.items()):
        if value is tensor and not name.startswith("_"):
            return name
    for name, value in list(names.items()):
        if isinstance(value, Module):
            for inner, part in (*value.named_parameters(), *value.named_buffers()):
                if part is tensor:
                    return f"{name}.{inner}"
    return ""


def lane_name(lane: Lane) -> str:
    """Return what the program calls a storage: its variable, or how it was computed."""
    made_at = None if lane.site is None else lane.site[0]
    return (lane.name or (_named_by_line(*lane.site, lane.leaf) if lane.site is not None else "")
            or (operand(*lane.seen_as) if lane.seen_as is not None else "")
            or (shortened(expression(made_at)) if made_at is not None else ""))


def _named_by_line(where: Where, operation: str, leaf: bool) -> str:
    """Return the variable that a line makes; with the operation where the line calls something that does several."""
    name = variable(where)
    inside = name and not leaf and _called(expression(where)) not in ("", operation.rpartition(".")[2])
    return f"{name}: {operation.rpartition('.')[2]}" if inside else name


@lru_cache(4096)
def _called(expression: str) -> str:
    """Return the name of the function that an expression calls; "" if it is no call, or the call of an operator."""
    try:
        value = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    function = value.func if isinstance(value, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def file_name(filename: str) -> str:
    """Return a file name as a reader knows it: relative to where they are, if it is below."""
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive, on Windows
        return filename
    return filename if relative.startswith("..") or filename.startswith("<") else relative


def function_name(code: CodeType) -> str:
    return "" if code.co_name == "<module>" else code.co_name
