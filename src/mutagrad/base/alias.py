"""A module under a second path."""
from __future__ import annotations

from importlib.machinery import ModuleSpec
from types import ModuleType


class AliasLoader:
    """Gives the import system a module that exists already, and leaves that module's own description alone."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        if self.spec is not None:
            module.__spec__ = self.spec
