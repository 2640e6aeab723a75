"""Run by Python as it starts, where `mutagrad run` has put this folder on PYTHONPATH: torch is mutagrad there, too.

Python runs one module of this name. Where another is hidden behind this one, it is run afterwards.
"""
from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Later:
    """Loads nothing until a program imports torch: most processes that a program starts do not."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
        try:
            stand_in = importlib.import_module("mutagrad.torch_api.import_hook")
        finally:
            sys.path.pop()
        stand_in.install()
        found: ModuleSpec | None = importlib.util.find_spec(fullname)
        return found


def _run_the_hidden_one() -> None:
    others = [p for p in sys.path if os.path.abspath(p) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


sys.meta_path.insert(0, _Later())  # type: ignore[arg-type]
_run_the_hidden_one()
