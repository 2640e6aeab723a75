"""`make libraries`: a library is in the table once, its script exists, and a script that fails says why."""
from __future__ import annotations

import argparse
import json
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


def test_what_fails_is_what_the_other_library_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a test of which one part failed, and its last part passed; one that did not run there counts as failed."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("""
import sys, unittest
class TestIt(unittest.TestCase):
    def test_parts(self):
        for part in range(3):
            with self.subTest(part=part):
                self.assertNotEqual(part, 1)
    def test_right(self):
        pass
    def test_here_only(self):
        self.assertNotIn("mutagrad", sys.modules)
""")
    monkeypatch.setattr(runner, "WORK", tmp_path)
    library, python = Library("x", "1", tests="tests"), Path(sys.executable)
    here, whole = runner.outcomes(library, python, tmp_path, False)
    there, _ = runner.outcomes(library, python, tmp_path, True)
    assert whole and {name.split(".")[-1] for name in there} == {"test_parts", "test_here_only"}
    figures = [runner.counted(here, found) for found in (there, {}, None)]
    assert [(row["passed"], row["failed"]) for row in figures] == [(1, 1), (1, 2), (1, 2)]


def test_a_test_draws_alone_what_it_drew_among_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one that fails for few draws would fail here, and pass where it is run again."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("""
import random, sys
import numpy as np, torch
def draws():
    return str((random.random(), np.random.random(), torch.rand(1).item()))
def test_first():
    draws()
def test_second():
    assert not draws()
""")
    monkeypatch.setattr(runner, "WORK", tmp_path)
    library, python = Library("x", "1", tests="tests"), Path(sys.executable)
    said = [runner.outcomes(library, python, tmp_path, False)[0]["tests.test_it.test_second"]]
    library = Library("x", "1", tests="tests -k second")
    said += [runner.outcomes(library, python, tmp_path, False)[0]["tests.test_it.test_second"]]
    assert said[0].startswith("AssertionError") and said[0] == said[1]


def test_a_suite_without_tests_has_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.setattr(runner, "WORK", tmp_path)
    given = argparse.Namespace(suites=tmp_path, torch=False, limit=1)
    with pytest.raises(SystemExit, match="x: no tests ran"):
        runner.run_suite(Library("x", "1", tests="tests"), Path(sys.executable), given)


def test_runs_at_the_same_time_keep_each_others_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, one, other = tmp_path / "results.json", *(library.name for library in LIBRARIES[:2])
    row = {"version": "1", "passed": 3, "failed": 0, "compared": True, "reasons": []}

    def found(*_: object) -> dict[str, object]:
        results.write_text(json.dumps({other: row}))
        return row
    for name, value in {"WORK": tmp_path, "RESULTS": results, "DOCUMENT": tmp_path / "libraries.md", "run_suite": found,
                        "environment": lambda *_: Path(sys.executable)}.items():
        monkeypatch.setattr(runner, name, value)
    monkeypatch.setattr(sys, "argv", ["libraries", one])
    runner.main()
    assert json.loads(results.read_text()).keys() == {one, other}


def test_a_suite_that_was_stopped_says_after_how_long() -> None:
    library = next(library for library in LIBRARIES if library.tests)
    row = {"version": "1", "whole": False, "passed": 3, "failed": 0, "compared": True, "reasons": []}
    assert "| 3 in 60 min |" in runner.document({library.name: row})
    assert "| 3 in 20 min |" in runner.document({library.name: {**row, "minutes": 20}})
    assert "| 3 |" in runner.document({library.name: {**row, "minutes": 20, "whole": True}})


def test_the_path_on_which_this_tool_is_found_is_not_the_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative one would name the folder of a suite, in which modules may be called as others are."""
    (tmp_path / "tests/colorsys").mkdir(parents=True)
    (tmp_path / "tests/colorsys/test_it.py").write_text("")
    (tmp_path / "it.py").write_text("import colorsys\ncolorsys.rgb_to_hsv\n")
    monkeypatch.setenv("PYTHONPATH", "tests")
    monkeypatch.setattr(runner, "SCRIPTS", tmp_path)
    monkeypatch.setattr(runner, "WORK", tmp_path)
    library = Library("x", "1", script="it.py", settings={"ITS_OWN": "1"})
    assert runner.script(library, Path(sys.executable), True) == ""
    surroundings = runner.surroundings(library, Path("/somewhere/bin/python"))
    assert "PYTHONPATH" not in surroundings and surroundings["ITS_OWN"] == "1" and surroundings["PATH"].startswith("/somewhere/bin:")
