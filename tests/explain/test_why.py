"""`why` names the true cause and the right line, in programs that are read and run as a user's are."""
from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from explain.why_cases import CASES, Case


def ask(source: str, path: Path) -> Any:
    """The answer of a program that is in a file."""
    path.write_text(source)
    return runpy.run_path(str(path), run_name="program")["answer"]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_cause_and_the_line_are_named(case: Case, tmp_path: Path) -> None:
    answer = ask(case.source, tmp_path / "program.py")
    assert answer.cause == case.cause, answer
    for number, line in enumerate(case.source.splitlines(), 1):
        if line.endswith("#!"):
            assert f"program.py:{number}: {line.strip()}" in str(answer), f"not line {number}:\n{answer}"
