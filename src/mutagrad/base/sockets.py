"""Sockets: what a room asks of a room above it, which it must not import. The top of the package plugs them in.

Each is needed rarely (a subclass with `__torch_function__`, a tensor without data), so the module behind it is loaded
when it is first asked.
"""
from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

_modules: dict[str, str] = {}


def plug_in(modules: Mapping[str, str]) -> None:
    """Say which module answers each socket."""
    _modules.update(modules)


def socket(name: str) -> ModuleType:
    """Return the module that answers: one of those that `_lazy.py` lists, or "top", the package itself."""
    return import_module(_modules[name])
