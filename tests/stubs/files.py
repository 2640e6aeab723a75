"""The stub files: which there are, and their texts."""
from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import mutagrad as mg
from mutagrad import _lazy
from mutagrad.base import return_types
from mutagrad.base.return_types import Results

from .names import TENSOR, WIDTH, Scope, defined, folded, imports
from .observed import Table, observe, type_name
from .signatures import function_text, signatures

HOME = Path(mg.__file__).parent
# Modules of functions that are made of operations.
NAMESPACES = ("nn.functional", "torch_api.fft", "torch_api.linalg", "torch_api.special")
# Modules that are only a path to another, from which programs import names.
PATHS = ("amp", "errors", "fft", "linalg", "random", "special")
# Where operations are declared; those that are generated say that they are in the package itself.
OPERATIONS = tuple(f"mutagrad.{room}." for room in (*_lazy.ROOMS, "core"))
CONSTANTS = {"__version__": "str", "newaxis": "None"}
HEAD = """# `make stubs` writes this file from {source}.
# mypy: disable-error-code="misc, override, overload-overlap, assignment"
"""


@cache
def observed() -> Table:
    _lazy.load_all()
    return observe()


def module_text(scope: Scope, lines: list[str]) -> str:
    path = scope.module.removeprefix("mutagrad").lstrip(".").replace(".", "/")
    source = f"src/mutagrad/{path}.py" if path else "src/mutagrad/__init__.py and what it loads lazily"
    body = [line if len(line) <= WIDTH else folded(line) for line in lines]
    return "\n".join([HEAD.format(source=source), *scope.header(), "", *body]) + "\n"


# --------------------------------------------------------------------------------------------------------- the package


def public_names() -> list[str]:
    """Return the names of `mutagrad` that users may use: all but private ones and the rooms."""
    here = {name for name, value in vars(mg).items() if not name.startswith("_") and not isinstance(value, ModuleType)}
    return sorted(here | _lazy.FUNCTIONS.keys() | _lazy.WRITES | _lazy.MODULES | {"autograd", "__version__"})


def source_of(name: str) -> str:
    """Return the full name of the object that `mutagrad` has under a public name."""
    if name in _lazy.MODULES:
        return f"mutagrad.{_lazy.ALIASES.get(name, name)}"
    if name in _lazy.FUNCTIONS:
        return defined(f"mutagrad.{_lazy.FUNCTIONS[name]}", name)
    full = imports("mutagrad")[name]
    return defined(*full.rpartition(".")[::2]) if full.startswith("mutagrad.") and name != "autograd" else full


def operation(module: Any, name: str) -> Any:
    """Return a function of tensors, of which its own source says too little; None for everything else.

    No other module is loaded: some define subclasses of Tensor, and public functions are then wrapped.
    """
    if module is mg and (name in _lazy.MODULES or not _lazy.FUNCTIONS.get(name, "ops").startswith(_lazy.ROOMS)):
        return None
    value = getattr(module, name)
    home = value.__module__ if inspect.isfunction(value) else ""
    return value if home == "mutagrad" or home.startswith(OPERATIONS) else None


def functions(module: ModuleType, names: list[str]) -> str:
    """Return the stub of a module of functions: operations are declared, and all else is imported."""
    scope = Scope(module.__name__, set(names))
    declared = {name: function for name in names if (function := operation(module, name)) is not None}
    for name in names:
        if name not in declared and name not in CONSTANTS:
            source, _, last = (source_of(name) if module is mg else defined(module.__name__, name)).rpartition(".")
            scope.export(source, last, name)
    constants = CONSTANTS if module is mg else {"__all__": "list[str]"}
    lines = [f"{name}: {kind}" for name, kind in constants.items()]
    for name, function in declared.items():
        lines += function_text(name, signatures(name, function, observed()), scope)
    return module_text(scope, lines)


# ---------------------------------------------------------------------------------------------------- the class Tensor


def members() -> list[str]:
    """Return the names of what Tensor has and other objects have not: attributes, methods and operators."""
    names = {name for name in dir(mg.Tensor) if getattr(mg.Tensor, name) is not getattr(object, name, None)}
    return sorted(name for name in names - {"__init_subclass__"} if is_member(name))


def is_member(name: str) -> bool:
    """Whether it is part of the interface: slots are TensorBase's, and other names with underscores Python's."""
    value = inspect.getattr_static(mg.Tensor, name)
    if name.startswith("__"):
        return isinstance(value, (FunctionType, classmethod, staticmethod))
    return not inspect.ismemberdescriptor(value)


def member_text(name: str, scope: Scope) -> list[str]:
    """Return the lines that declare one member of Tensor."""
    value = inspect.getattr_static(mg.Tensor, name)
    if isinstance(value, property):
        return property_text(name, value, scope)
    if isinstance(value, (classmethod, staticmethod)):
        decorator = [] if name == "__new__" else [f"@{scope.short(f'builtins.{type(value).__name__}')}"]
        owner = "cls" if isinstance(value, classmethod) or name == "__new__" else ""
        found = signatures(name, value.__func__, observed())
        found = [s.replace(return_annotation="typing_extensions.Self") for s in found] if name == "__new__" else found
        return [*decorator, *function_text(name, found, scope, owner)]
    if isinstance(value, FunctionType):
        return function_text(name, signatures(name, value, observed()), scope, "self")
    return [f"{name}: {scope.short(type_name(value))}"]


def property_text(name: str, value: property, scope: Scope) -> list[str]:
    found = signatures(name, value.fget, observed())  # type: ignore[arg-type]
    if "Any" in found[0].return_annotation and name not in ("grad_fn", "_base", "device_mesh", "placements"):
        example = mg.ones(2, 2, dtype=mg.complex64)
        found = [found[0].replace(return_annotation=type_name(getattr(example, name)))]
    lines = [f"@{scope.short('builtins.property')}", *function_text(name, found, scope, "self")]
    for accessor, function in (("setter", value.fset), ("deleter", value.fdel)):
        if function is not None:
            found = signatures(name, function, observed())
            lines += [f"@{name}.{accessor}", *function_text(name, found, scope, "self")]
    return lines


def tensor() -> str:
    observed()
    module, names = TENSOR.rpartition(".")[0], members()
    scope = Scope(module, {*names})
    body = [line for name in names for line in member_text(name, scope)]
    base = scope.short("mutagrad.core.storage.TensorBase")
    others = [line for name in ("disabled_torch_function", "incomparable", "is_tensor", "numel")
              for line in function_text(name, signatures(name, vars(import_module(module))[name], observed()), scope)]
    unknown = "__getattr__: None  # TensorBase has one for type checkers, by which all names would be known"
    return module_text(scope, [f"class Tensor({base}):", *(f"    {line}" for line in (unknown, *body)), "", *others])


# -------------------------------------------------------------------------------------------------------- named tuples


def results() -> str:
    """The named tuples, whose fields are what was observed."""
    module = return_types.__name__
    found = {kind.__name__: kind for kind in Results.__subclasses__()}
    scope = Scope(module, {*found})
    any_, self_ = scope.short("typing.Any"), scope.short("typing_extensions.Self")
    lines = ["class Results:", "    _fields: tuple[str, ...]", "    n_fields: int", "    n_sequence_fields: int",
             "    n_unnamed_fields: int", f"    def __new__(cls, *results: {any_}) -> {self_}: ..."]
    for name, value in sorted(found.items()):
        seen = observed().fields.get(value, set())
        kinds = next(iter(seen)) if len(seen) == 1 else ("typing.Any",) * value.n_fields
        kinds = tuple(map(scope.short, kinds))
        lines += ["", f"class {name}(Results, tuple[{', '.join(kinds)}]):"]
        for field, kind in zip(value._fields, kinds):
            lines += ["    @property", f"    def {field}(self) -> {kind}: ..."]
    return module_text(scope, lines)


def path_to(name: str) -> str:
    """Return the stub of a module that is another's public path."""
    source = f"mutagrad.{_lazy.ALIASES[name]}"
    module = import_module(source)
    names = getattr(module, "__all__", None) or [n for n, value in vars(module).items() if n[0] != "_" and isinstance(
        value, (type, FunctionType)) and value.__module__ in (source, f"mutagrad.{name}")]
    scope = Scope(f"mutagrad.{name}", set(names))
    for each in sorted(names):
        scope.export(source, each, each)
    return module_text(scope, [])


def all_files() -> dict[Path, str]:
    """Return the texts of all stub files."""
    return {
        HOME / "__init__.pyi": functions(mg, public_names()),
        HOME / "tensors" / "tensor.pyi": tensor(),
        HOME / "base" / "return_types.pyi": results(),
        **{(HOME / path.replace(".", "/")).with_suffix(".pyi"): functions(module, sorted(module.__all__))
           for path in NAMESPACES for module in [import_module(f"mutagrad.{path}")]},
        **{HOME / f"{name}.pyi": path_to(name) for name in PATHS},
    }
