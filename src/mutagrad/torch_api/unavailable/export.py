"""Programs import this to export a model when they are asked to. Nothing is exported here."""
from __future__ import annotations

from typing import Any, NoReturn

from ...base.errors import NotSupported

__all__ = ["Dim", "ExportedProgram", "export"]


class ExportedProgram:
    """A program that was exported; there are none."""


class Dim:
    """A size of an exported program that is not fixed."""

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.min, self.max = name, min, max


def export(*arguments: Any, **settings: Any) -> NoReturn:
    """Raise: there is no graph of a whole program."""
    raise NotSupported("export: models are not exported", why="programs run as they are, line by line",
                       fix="save(model.state_dict(), path)")
