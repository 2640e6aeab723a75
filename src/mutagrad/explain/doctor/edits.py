"""A program's text with its syntax tree: which expression made a call, and edits that leave the rest as it was written.

>>> source = Source("y = a * b  # product")
>>> product = source.tree.body[0].value
>>> apply(source.text, [Edit(source.end(product.right), source.end(product.right), ".clone()")])
'y = a * b.clone()  # product'
"""
from __future__ import annotations

import ast
import dis
import linecache
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from io import BytesIO
from types import CodeType
from typing import Any, cast

from ...base.provenance import Where, line_number
from .names import COMPREHENSIONS, Names

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What an instruction is compiled from, by how its name begins; the first that fits counts.
MADE_FROM: dict[str, tuple[type[ast.AST], ...]] = {
    "CALL": (ast.Call,),
    "BINARY_SUBSCR": (ast.Subscript,),
    "BINARY_SLICE": (ast.Subscript,),
    "STORE_SUBSCR": (ast.Subscript,),
    "STORE_SLICE": (ast.Subscript,),
    "BINARY_OP": (ast.BinOp, ast.AugAssign, ast.Subscript),
    "BINARY": (ast.BinOp,),
    "INPLACE": (ast.AugAssign,),
    "UNARY": (ast.UnaryOp,),
    "COMPARE": (ast.Compare,),
    "LOAD_ATTR": (ast.Attribute,),
    "STORE_ATTR": (ast.Attribute,),
    "UNPACK": (ast.Tuple, ast.List),
    "GET_ITER": (ast.expr, ast.For),
    "LIST_EXTEND": (ast.List, ast.Tuple, ast.Call),
}


@dataclass(frozen=True, order=True)
class Edit:
    """Text to stand in the place of a stretch of a source; an insertion where that is empty."""

    start: int
    end: int
    text: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made, which must not overlap."""
    for edit in sorted(set(edits), reverse=True):
        text = text[:edit.start] + edit.text + text[edit.end:]
    return text


def compatible(edits: Iterable[Edit], others: Iterable[Edit]) -> bool:
    """Return whether edits can be made together with others: each is one of those, or stands apart from all."""
    return all(a == b or a.end < b.start or b.end < a.start for a in edits for b in others)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def diff(path: str, old: str, new: str) -> str:
    """Return the changed lines, as `patch` reads them."""
    lines = unified_diff(old.splitlines(True), new.splitlines(True), path, path, n=0)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


# --------------------------------------------------------------------------------------------------------------- files

def read(path: str) -> str | None:
    """Return the text of a file as it is, or what Python remembers of a notebook's cell; None if there is nothing."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            data = file.read()
        try:
            return data.decode(_encoding(data))
        except (SyntaxError, UnicodeDecodeError):
            return None
    return "".join(linecache.getlines(path)) or None


def write(path: str, text: str) -> None:
    """Write a file in the encoding that it has."""
    with open(path, "rb") as file:
        encoding = _encoding(file.read())
    with open(path, "wb") as file:
        file.write(text.encode(encoding))


def _encoding(data: bytes) -> str:
    return tokenize.detect_encoding(BytesIO(data).readline)[0]


# ---------------------------------------------------------------------------------------------------------- the source

class Source:
    """The text of a file and its tree, which know of each other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._starts = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
        self.newline = next(iter(re.findall(r"\r\n|\r|\n", text)), "\n")
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def names(self) -> Names:
        """The variables."""
        return Names(self.tree)

    def offset(self, line: int, column: int) -> int:
        """Return the place in the text of what Python counts as a line, and a column of it in bytes of UTF-8."""
        start = self._starts[line - 1]
        if self.text[start:start + column].isascii():
            return start + column
        rest = self.text[start:start + column]
        return start + len(rest.encode()[:column].decode(errors="ignore"))

    def start(self, node: Any) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node: Any) -> str:
        return self.text[self.start(node):self.end(node)]

    def flat(self, node: Any) -> str:
        """Return an expression on one line, so that it can stand anywhere."""
        text = self.segment(node)
        return ast.unparse(node) if "\n" in text or "\r" in text else text

    def unused(self, name: str) -> str:
        """Return this name, or one like it, that is nowhere in the source."""
        while re.search(rf"\b{name}\b", self.text):
            name += "_"
        return name

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node is part of, inside out."""
        found = self.parents.get(node)
        while found is not None:
            yield found
            found = self.parents.get(found)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that a node is part of."""
        return next(n for n in (node, *self.above(node)) if isinstance(n, ast.stmt))

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements beside which a statement stands."""
        parent = self.parents[statement]
        blocks = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        return next(b for b in blocks if isinstance(b, list) and statement in b)

    def is_in_loop(self, node: ast.AST, within: ast.AST | None = None) -> bool:
        """Return whether a node may be run several times in one run of its function."""
        for n in self.above(node):
            if isinstance(n, (ast.For, ast.While, ast.AsyncFor, *COMPREHENSIONS)):
                return True
            if n is within or isinstance(n, FUNCTIONS):
                return False
        return False

    # --------------------------------------------------------------------------------------------- inserted statements

    def before(self, statement: ast.stmt, code: str) -> Edit:
        """Return the edit that puts a statement before another one."""
        first = (getattr(statement, "decorator_list", None) or [statement])[0]
        start = self.start(first) - (first is not statement)  # the @ of a decorator
        line = self._starts[first.lineno - 1]
        indent = self.text[line:start]
        text = code + self.newline + indent if not indent.strip() else f"{code}; "
        return Edit(start, start, text)

    def after(self, statement: ast.stmt, code: str) -> Edit:
        """Return the edit that puts a statement after a simple one, on a line of its own if that one has one."""
        end, indent = self.end(statement), self._indent(statement)
        if indent is None or not self._is_last_on_line(statement):
            return Edit(end, end, f"; {code}")
        line_end = self._end_of_line(statement)
        return Edit(line_end, line_end, self.newline + indent + code)

    def inside(self, statement: ast.stmt, head: str) -> list[Edit]:
        """Return the edit that puts a statement into a block of its own; none if its line has others."""
        start, indent = self.start(statement), self._indent(statement)
        if indent is None or not self._is_last_on_line(statement):
            return []
        return [Edit(start, start, f"{head}{self.newline}{indent}    ")]

    def _is_last_on_line(self, statement: ast.stmt) -> bool:
        return self.text[self.end(statement):self._end_of_line(statement)].strip()[:1] in ("", "#")

    def _indent(self, statement: ast.stmt) -> str | None:
        """Return what a statement's line begins with; None if that is another statement."""
        indent = self.text[self._starts[statement.lineno - 1]:self.start(statement)]
        return indent if not indent.strip() else None

    def _end_of_line(self, statement: ast.stmt) -> int:
        found = re.compile(r"\r\n|\r|\n|\Z").search(self.text, self.end(statement))
        assert found is not None
        return found.start()

    # ------------------------------------------------------------------------------------------------- places of calls

    def node_at(self, where: Where | None) -> ast.AST | None:
        """Return the expression or statement that an instruction was compiled from; None where that is not certain."""
        if where is None:
            return None
        kind = _kind(_instruction(where))
        if kind is None:
            return None
        place = _positions(where)
        return self._on_line(where, kind) if place is None else self._at(place, MADE_FROM[kind])

    def _at(self, place: tuple[int, int, int, int], kinds: tuple[type[ast.AST], ...]) -> ast.AST | None:
        line, end_line, column, end_column = place
        nodes: list[Any] = [n for n in ast.walk(self.tree) if isinstance(n, kinds)]
        ending = [n for n in nodes if (n.end_lineno, n.end_col_offset) == (end_line, end_column)]
        exact = [n for n in ending if (n.lineno, n.col_offset) == (line, column)]
        if ast.expr in kinds:
            return _iterated(exact[0]) if exact else None
        # The place of a method's call may begin at the method's name, if it has a line of its own.
        found = ending if kinds == (ast.Call,) else exact
        return found[0] if len(found) == 1 else None

    def _on_line(self, where: Where, kind: str) -> ast.AST | None:
        """Return the node of an instruction by counting: Python 3.10 knows only its line."""
        code, line = where[0], line_number(where)
        if kind == "GET_ITER":
            loops = [n for n in ast.walk(self.tree) if isinstance(n, (ast.For, *COMPREHENSIONS)) and n.lineno == line]
            return _iterated(loops[0]) if len(loops) == 1 else None
        scope = self._scope_of(code)
        nodes: list[Any] = [n for n in ast.walk(self.tree) if isinstance(n, MADE_FROM[kind]) and self._line(n) == line
                            and (scope is None or self._owner(n) is scope) and self._fits(n, kind)]
        nodes.sort(key=lambda n: (n.end_lineno, n.end_col_offset, -n.lineno, -n.col_offset))
        same = [i.offset for i in dis.get_instructions(code) if _kind(i.opname) == kind
                and line_number((code, i.offset)) == line]
        if len(nodes) == 1:
            return nodes[0]  # type: ignore[no-any-return]
        return nodes[same.index(where[1])] if len(nodes) == len(same) and where[1] in same else None

    def _fits(self, node: Any, kind: str) -> bool:
        """Return whether a node reads or writes as the instruction does."""
        if not hasattr(node, "ctx"):
            return True
        updated = isinstance(self.parents[node], ast.AugAssign)
        return updated or isinstance(node.ctx, ast.Store) == kind.startswith(("STORE", "UNPACK"))

    def _line(self, node: Any) -> int:
        method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        return int(node.func.end_lineno if method else node.lineno)

    def _scope_of(self, code: CodeType) -> ast.AST | None:
        if code.co_name == "<module>":
            return self.tree
        names = {"<lambda>": ast.Lambda, "<listcomp>": ast.ListComp, "<genexpr>": ast.GeneratorExp,
                 "<setcomp>": ast.SetComp, "<dictcomp>": ast.DictComp}
        kind = names.get(code.co_name, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        found = [n for n in ast.walk(self.tree) if isinstance(n, kind)  # type: ignore[arg-type]
                 and (getattr(n, "decorator_list", None) or [n])[0].lineno == code.co_firstlineno]
        return found[0] if len(found) == 1 else None

    def _owner(self, node: ast.AST) -> ast.AST:
        scopes = (*FUNCTIONS, ast.ClassDef, ast.Module, *COMPREHENSIONS)
        return next(n for n in self.above(node) if isinstance(n, scopes))


def _instruction(where: Where) -> str:
    code, offset = where  # which may lie in the space that an instruction has for its cache
    return [i.opname for i in dis.get_instructions(code) if i.offset <= max(offset, 0)][-1]


def _positions(where: Where) -> tuple[int, int, int, int] | None:
    code, offset = where
    if not hasattr(code, "co_positions"):
        return None
    place = list(code.co_positions())[max(offset, 0) // 2]
    return None if None in place else cast("tuple[int, int, int, int]", place)


def _kind(instruction: str) -> str | None:
    return next((begin for begin in MADE_FROM if instruction.startswith(begin)), None)


def _iterated(node: ast.AST) -> ast.AST | None:
    """Return what a loop or a comprehension goes over, if there is one thing only that can be meant."""
    if isinstance(node, ast.For):
        return node.iter
    if not isinstance(node, COMPREHENSIONS):
        return node
    return node.generators[0].iter if len(node.generators) == 1 else None
