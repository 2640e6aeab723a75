"""Figures in a file, which has every row as soon as it is measured: a run that is cut off loses nothing, and can go on.

    figures = Figures(path, machine, resume=True)
    figures.add({"name": "small_mul", ...})   # the file has it now
    "small_mul" in figures.rows
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Where = dict[str, str | int]


class Figures:
    """Rows by name, in the order in which they were added; without a path they are in no file.

    To resume is to begin with the rows that the file has, if the same versions measured them on the same machine.
    """

    def __init__(self, path: Path | None, machine: Where, resume: bool = False) -> None:
        self.path, self.machine = path, machine
        before, rows = read(path) if resume and path and path.exists() else (machine, {})
        self.rows: dict[str, dict[str, Any]] = rows if before == machine else {}

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["name"]] = row
        if self.path is not None:
            beside = self.path.with_suffix(".part")
            beside.write_text(json.dumps({"machine": self.machine, "rows": list(self.rows.values())}, indent=1) + "\n")
            beside.replace(self.path)


def read(path: Path) -> tuple[Where, dict[str, dict[str, Any]]]:
    found = json.loads(path.read_text())
    return found["machine"], {r["name"]: r for r in found["rows"]}
