"""Names in annotations: from the source of a module to full names, and from those to the names in a stub file."""
from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import TypeVar

TENSOR = "mutagrad.tensors.tensor.Tensor"
WIDTH = 120
RESULTS = "mutagrad.base.return_types"
# Rooms below the class Tensor name it by what it is made of; their type of arrays has no instances.
STANDS_FOR = {
    "mutagrad.core.storage.TensorBase": TENSOR, "mutagrad.base.operands.Operand": TENSOR,
    "mutagrad.base.operands.Array": "typing.Any"}


@cache
def imports(module: str) -> dict[str, str]:
    """Return the full names of what a module imports from others, by the names that it has there."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    package = module if spec.submodule_search_locations else module.rpartition(".")[0]
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update({a.asname: a.name for a in node.names if a.asname})
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            source = resolve_name("." * node.level + (node.module or ""), package)
            found.update({a.asname or a.name: f"{source}.{a.name}" for a in node.names})
    return found


def defined(module: str, name: str) -> str:
    """Return the full name of what a module calls `name`, in the module that defines it."""
    full = imports(module).get(name, f"{module}.{name}")
    source, _, last = full.rpartition(".")
    return full if source == module or not source.startswith("mutagrad") else defined(source, last)


def full_name(module: str, name: str) -> str:
    """Return the full name of a type that an annotation in a module names."""
    here = vars(import_module(module))
    if name not in imports(module) and name not in here and hasattr(builtins, name):
        return f"builtins.{name}"
    if isinstance(here.get(name), TypeVar):
        return TENSOR
    found = defined(module, name)
    return STANDS_FOR.get(found, found)


class _Qualifier(ast.NodeTransformer):
    def __init__(self, full: Callable[[str], str]) -> None:
        self.full = full

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.full(node.id), ast.Load())


def qualified(annotation: str, full: Callable[[str], str]) -> str:
    """Return an annotation with `full(name)` in place of every name."""
    return ast.unparse(_Qualifier(full).visit(ast.parse(annotation, mode="eval")))


class Scope:
    """The names of one stub file: types get short ones, and those that the file itself defines are avoided."""

    def __init__(self, module: str, taken: set[str]) -> None:
        self.module, self.taken = module, taken
        self.imports: dict[str, set[tuple[str, str]]] = {}
        self.exports: dict[str, set[tuple[str, str]]] = {}

    def short(self, annotation: str) -> str:
        """Return an annotation with this file's names in place of full names, which will be imported."""
        return re.sub(r"(?<![\w'\"])[A-Za-z_]\w*(?:\.\w+)+", lambda found: self._local(found[0]), annotation)

    def _local(self, full: str) -> str:
        module, _, name = full.rpartition(".")
        if module == self.module:
            return name
        if module == RESULTS:
            return f"{self._local(RESULTS)}.{name}"
        if module == "builtins":
            return name if name not in self.taken else f"{self._import('', 'builtins')}.{name}"
        return self._import(module, name)

    def _import(self, module: str, name: str) -> str:
        if (name, name) in self.exports.get(module, ()):
            return name
        local = f"_{name}" if name in self.taken else name
        self.imports.setdefault(module, set()).add((name, local))
        return local

    def header(self) -> list[str]:
        """Return the import statements: of what `short` has used, and of what `export` shows to other files."""
        lines = [f"import {name}" for name, _ in sorted(self.imports.get("", ()))]
        for kept, is_export in ((self.imports, False), (self.exports, True)):
            lines += [import_text(module, names, is_export) for module, names in sorted(kept.items()) if module]
        return lines

    def export(self, module: str, name: str, local: str) -> None:
        """Let this file have a name of another module, for all to see."""
        self.exports.setdefault(module, set()).add((name, local))


def import_text(module: str, names: set[tuple[str, str]], export: bool = False) -> str:
    """Return one import statement; `x as x` exports x, for type checkers."""
    in_order = sorted(names, key=lambda pair: pair[1])
    listed = ", ".join(n if n == local and not export else f"{n} as {local}" for n, local in in_order)
    line = f"from {module} import {listed}"
    return line if len(line) <= WIDTH else folded(f"from {module} import ({listed})")


def folded(line: str) -> str:
    """Return a statement on several lines, broken at commas between its parentheses."""
    head, _, tail = line.rpartition(")")
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    bound = re.sub(r"(?<!,) ", "\0", head) + ")" + tail.replace(" ", "\0")
    lines = textwrap.wrap(bound, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")
