"""Modules for devices that are not here: their functions exist, and say so when they are called."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.errors import NoDevice


def absent(module: str, names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of which these functions need a device."""
    known = frozenset(names.split())

    def find(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module 'mutagrad.{module}' has no attribute {name!r}")

        def unavailable(*arguments: Any, **settings: Any) -> Any:
            raise NoDevice(f"{module}.{name}: this build computes on the CPU only", fix=f"if mutagrad.{module}.is_available(): ...")

        return unavailable

    return find
