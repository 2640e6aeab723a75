"""The house: a room imports only the rooms before it, however the import is written, and no files import each other in a circle."""
from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import mutagrad as mg
from mutagrad import _lazy
from mutagrad.base import sockets

HOME = Path(mg.__file__).parent
ORDER = ("base", "arrays", "core", "ops", "tensors", "autograd", "distributed", "nn", "optim", "utils", "distributions", "sparse", "func", "array_api",
         "files", "interop", "torch_api", "relax", "explain", "xla", "")
MODULES = {".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix("__init__").rstrip("."): path for path in sorted(HOME.rglob("*.py"))}


def room(module: str) -> str:
    """The folder that a module is in; "" for the top level."""
    return module.partition(".")[0] if "." in module or MODULES[module].name == "__init__.py" else ""


def longest(name: str) -> str | None:
    """The module that a dotted name of this package begins with."""
    while name not in MODULES:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return name


def imported(module: str) -> Iterator[str]:
    """What a module imports of this package: by statements anywhere in it, and by text that names a module."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name.removeprefix("mutagrad").lstrip(".") for a in node.names if a.name.partition(".")[0] == "mutagrad"]
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").partition(".")[0] == "mutagrad"):
            above = package[:len(package) - node.level + 1] if node.level else []
            base = ".".join([*filter(None, above), *((node.module or "").removeprefix("mutagrad").lstrip(".") or "").split(".")]).strip(".")
            names = [f"{base}.{a.name}".lstrip(".") if longest(f"{base}.{a.name}".lstrip(".")) == f"{base}.{a.name}".lstrip(".") else base for a in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called in ("import_module", "__import__"):
                names = [a.value.removeprefix("mutagrad").lstrip(".") for a in node.args
                         if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value.partition(".")[0] in ("mutagrad", "")]
        for name in names:
            found = longest(name) if name else ""
            if found is not None and found != module:
                yield found


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports. Not when this file is collected, which every process of a run does."""
    return {module: set(imported(module)) for module in MODULES}


def test_every_room_has_its_place() -> None:
    assert {room(m) for m in MODULES} == set(ORDER)
    design = (HOME.parents[1] / "docs" / "design.md").read_text(encoding="utf-8").partition("## Rooms")[2]
    assert tuple(re.findall(r"^    (\w+)/ ", design, re.M)) == ORDER[:-1], "docs/design.md lists other rooms, or in another order"


@pytest.mark.parametrize("name", ORDER)
def test_a_room_imports_only_rooms_before_it(name: str) -> None:
    allowed = ORDER[:ORDER.index(name) + 1]
    wrong = {(m, found) for m in MODULES if room(m) == name for found in imports()[m] if room(found) not in allowed}
    assert not wrong, sorted(wrong)


def test_no_files_import_each_other_in_a_circle() -> None:
    done: set[str] = set()
    for start in MODULES:
        trail: list[tuple[str, Iterator[str]]] = [(start, iter(imports()[start]))] if start not in done else []
        open_now = {start}
        while trail:
            module, rest = trail[-1]
            found = next((f for f in rest if f not in done), None)
            if found is None:
                trail.pop()
                open_now.discard(module)
                done.add(module)
            else:
                assert found not in open_now, [*(m for m, _ in trail), found]
                open_now.add(found)
                trail.append((found, iter(imports()[found])))


def test_the_check_sees_hidden_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "hidden.py"
    hidden.write_text('from importlib import import_module\n\ndef f():\n    from ..nn import module\n    return import_module("mutagrad.files.limits")\n')
    monkeypatch.setitem(MODULES, "core.hidden", hidden)
    assert set(imported("core.hidden")) == {"nn.module", "files.limits"}


def test_only_the_rooms_of_arrays_and_the_bridges_name_an_array_library() -> None:
    foreign = re.compile(r"^\s*(?:import|from)\s+(numpy|scipy|ml_dtypes|cupy|jax|torch)\b", re.M)
    assert not [m for m, path in MODULES.items() if room(m) not in ("arrays", "interop", "xla") and foreign.search(re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8")))]


# ------------------------------------------------------------------------------------------------------------------ names

@pytest.mark.parametrize("alias", sorted(_lazy.ALIASES))
def test_an_alias_is_the_module_itself(alias: str) -> None:
    found = importlib.import_module(f"mutagrad.{alias}")
    assert found is importlib.import_module(f"mutagrad.{_lazy.ALIASES[alias]}") and sys.modules[f"mutagrad.{alias}"] is found
    assert found.__name__ == found.__spec__.name == f"mutagrad.{_lazy.ALIASES[alias]}"


def test_what_is_below_an_alias_is_loaded_once() -> None:
    first, second = importlib.import_module("mutagrad.cuda.amp"), importlib.import_module("mutagrad.torch_api.unavailable.cuda.amp")
    assert first is second and mg.cuda.amp is first


def test_the_finder_answers_for_this_package_only() -> None:
    finder = _lazy.AliasFinder()
    assert not any(finder.find_spec(name) for name in ("jit", "torch.jit", "mutagrad", "mutagrad.nn", "mutagrad.no_such_module", "mutagradx.jit"))
    assert sum(isinstance(f, _lazy.AliasFinder) for f in sys.meta_path) == 1


def test_names_that_load_late_are_where_they_are_said_to_be() -> None:
    for name, module in _lazy.FUNCTIONS.items():
        assert hasattr(importlib.import_module(f"mutagrad.{module}"), name), (module, name)
    for name, module in _lazy.METHODS.items():
        assert hasattr(importlib.import_module(f"mutagrad.{module}"), name) and hasattr(mg.Tensor, name), (module, name)


def test_no_name_is_declared_twice() -> None:
    for kind in ("FUNCTIONS", "METHODS"):
        seen: dict[str, str] = {}
        for module, declared, names in _lazy._declared():
            if declared == kind:
                assert not (twice := seen.keys() & set(names)), (module, twice)
                seen.update(dict.fromkeys(names, module))


def test_sockets_are_few_and_lead_to_modules() -> None:
    """Each is an import upwards."""
    asked = {name for path in MODULES.values() for name in re.findall(r'\bsocket\("(\w+)"\)', path.read_text(encoding="utf-8"))}
    assert asked == set(_lazy.SOCKETS) == {
        "array_api", "compile", "cuda", "devices", "loops", "mesh", "meta", "norms", "processes", "sparse", "top", "torch_function", "trace"}
    missing = {"compile", "loops", "mesh", "processes"} if importlib.util.find_spec("jax") is None else set()
    assert all(sockets.socket(name).__name__ == module for name, module in _lazy.SOCKETS.items() if name not in missing)
