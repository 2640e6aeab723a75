"""The API reference: a page for each namespace, from the signatures and docstrings of the loaded package.

Static tools see no generated function and no name that is loaded when first asked for, so the package is imported.
"""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import mutagrad
from mutagrad import _lazy

# Path, title, and the module or class whose public names it lists.
NAMESPACES = {
    "nn": "mutagrad.nn", "functional": "mutagrad.nn.functional", "init": "mutagrad.nn.init",
    "nn_utils": "mutagrad.nn.utils", "optim": "mutagrad.optim",
    "schedulers": "mutagrad.optim.lr_scheduler", "autograd": "mutagrad.autograd",
    "func": "mutagrad.func", "linalg": "mutagrad.linalg", "fft": "mutagrad.fft", "special": "mutagrad.special",
    "distributions": "mutagrad.distributions", "data": "mutagrad.utils.data", "relax": "mutagrad.relax",
    "sparse": "mutagrad.sparse"}

# Where functions of `mutagrad` are declared, and the page that has them; the first that matches.
ROOMS = {
    "mutagrad.ops.create": "create", "mutagrad.ops.random": "random", "mutagrad.ops.math": "math",
    "mutagrad.ops.reduce": "reduce", "mutagrad.ops.linalg": "matrices", "mutagrad.ops.shape": "shape",
    "mutagrad.ops.select": "select", "mutagrad.ops.nn": "layers", "mutagrad.explain": "explain", "": "other"}
TITLES = {
    "create": "Making tensors", "random": "Random numbers", "math": "Element by element", "reduce": "Reductions",
    "matrices": "Matrices", "shape": "Shapes, views, joining", "select": "Indexing, sorting, searching",
    "layers": "Functions of layers", "explain": "Explaining", "other": "Modes, types, files, devices",
    "tensor": "Tensor",
    "functional": "nn.functional", "init": "nn.init", "nn_utils": "nn.utils", "schedulers": "optim.lr_scheduler",
    "data": "utils.data"}


class Entry(NamedTuple):
    name: str  # with its path, "mutagrad.sin"
    value: Any


def pages() -> Iterator[tuple[str, str]]:
    """Yield (path, markdown) of the index and of every page."""
    grouped: dict[str, list[Entry]] = {room: [] for room in ROOMS.values()}
    for entry in _public(mutagrad):
        grouped[_room(entry)].append(entry)
    grouped["tensor"] = _public(mutagrad.Tensor)
    for path, module in NAMESPACES.items():
        grouped[path] = [e for e in _public(import_module(module)) if not isinstance(e.value, ModuleType)]
    lines = ["# API reference", "", "Generated from the docstrings, whose examples run as tests.", ""]
    for path, entries in grouped.items():
        title = TITLES.get(path, path)
        lines.append(f"- [{title}]({path}.md): {len(entries)} names")
        yield f"api/{path}.md", _page(title, entries)
    yield "api/index.md", "\n".join(lines) + "\n"


def _public(owner: Any) -> list[Entry]:
    """Return what is public and callable there and belongs to this package, by name."""
    path = owner.__name__ if isinstance(owner, ModuleType) else "mutagrad.Tensor"
    names = getattr(owner, "__all__", None) or [n for n in dir(owner) if not n.startswith("_")]
    found = [Entry(f"{path}.{name}", getattr(owner, name)) for name in sorted(names)]
    return [e for e in found if callable(e.value) and not _is_foreign(e.value)]


def _is_foreign(value: Any) -> bool:
    return not str(getattr(value, "__module__", "mutagrad")).startswith("mutagrad")


def _room(entry: Entry) -> str:
    name = entry.name.removeprefix("mutagrad.")
    module = _DECLARED.get(name) or getattr(entry.value, "__module__", "")
    return next(page for room, page in ROOMS.items() if module.startswith(room))


def _imported() -> dict[str, str]:
    """Return the module from which `mutagrad` has each name that it imports at once."""
    source = inspect.getsource(mutagrad)
    found = {}
    for module, names in re.findall(r"^from \.(\S+) import (\([^)]*\)|.*)$", source, re.M):
        for name in names.strip("()").split(","):
            found[name.split()[-1] if name.strip() else ""] = f"mutagrad.{module}"
    return found


_DECLARED = {**_imported(), **{name: f"mutagrad.{module}" for name, module in _lazy.FUNCTIONS.items()},
             **dict.fromkeys(_lazy.WRITES, "mutagrad.ops.math")}


def _page(title: str, entries: list[Entry]) -> str:
    index = " · ".join(f"[{_escaped(e.name.rpartition('.')[2])}](#{_anchor(e)})" for e in entries)
    return "\n\n".join([f"# {title}", index, *map(_described, entries)]) + "\n"


def _anchor(entry: Entry) -> str:
    return entry.name.replace(".", "-")


def _escaped(name: str) -> str:
    return name.replace("_", "\\_")


def _described(entry: Entry) -> str:
    short = entry.name.removeprefix("mutagrad.")
    methods = (_section("####", ".".join(method.name.split(".")[-2:]), method) for method in _methods(entry))
    return "\n\n".join([_section("###", short, entry), *methods])


def _methods(entry: Entry) -> Iterator[Entry]:
    """Yield the methods that a class itself describes; those that it inherits or overrides are with another class."""
    if isinstance(entry.value, type) and entry.value is not mutagrad.Tensor:  # which has a page
        for name, held in vars(entry.value).items():
            function = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
            if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
                yield Entry(f"{entry.name}.{name}", getattr(entry.value, name))


def _section(level: str, called: str, entry: Entry) -> str:
    title = called if level == "####" else called.rpartition(".")[2]
    return (f"{level} `{title}` {{ #{_anchor(entry)} }}\n\n```py\n{called}{signature(entry.value)}\n```\n\n"
            f"{_markdown(inspect.getdoc(entry.value) or '')}")


def signature(value: Callable[..., Any]) -> str:
    try:
        text = str(inspect.signature(value))
    except (ValueError, TypeError):
        return "(...)"
    return re.sub(r"'([\w\[\], .|]+)'", r"\1", text).replace("mutagrad.tensors.tensor.", "")


def _markdown(text: str) -> str:
    """Fence the sessions of a docstring."""
    paragraphs = []
    for part in re.split(r"\n\s*\n", text):
        fenced = part.lstrip().startswith(">>>")
        paragraphs.append(f"```pycon\n{inspect.cleandoc(part)}\n```" if fenced else part)
    return "\n\n".join(paragraphs)
