"""`make libraries`: a library is in the table once, its script exists, and a script that fails says why."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from libraries import __main__ as runner
from libraries.table import LIBRARIES, Library


def test_the_table() -> None:
    names = [library.name for library in LIBRARIES]
    assert len(set(names)) == len(names)
    assert all(bool(library.tests) != bool(library.script) for library in LIBRARIES)
    assert {library.script for library in LIBRARIES if library.script} == {p.name for p in runner.SCRIPTS.glob("*.py")}


def test_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "right.py").write_text("import torch\nassert torch.ones(2).sum() == 2\n")
    (tmp_path / "wrong.py").write_text("raise ValueError('3 is not 4')\n")
    (tmp_path / "silent.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(runner, "SCRIPTS", tmp_path)
    monkeypatch.setattr(runner, "WORK", tmp_path)
    said = [runner.script(Library("x", "1", script=f"{name}.py"), Path(sys.executable), False)
            for name in ("right", "wrong", "silent")]
    assert said == ["", "ValueError: 3 is not 4", "exit status 3"]


def test_rows_of_scripts() -> None:
    library = next(library for library in LIBRARIES if library.script)
    rows = [runner.document({library.name: {"version": "1", "failed": failed, "compared": compared}})
            for failed, compared in (("", True), ("", False), ("ValueError: 3", True))]
    assert f"| {library.name} | 1 | runs its script | | |  |" in rows[0]
    assert f"| {library.name} | 1 | runs its script * | | |  |" in rows[1]
    assert f"| {library.name} | 1 | fails its script | | | ValueError: 3 |" in rows[2]
