"""Sums of many numbers are as exact as PyTorch's: no error is more than four times its own.

What PyTorch's errors are is kept for tests/arrays/test_accuracy.py, which runs without it; to write them anew:
`PYTHONPATH=tests .venv-oracle/bin/python -m oracle.test_accuracy`.
"""
from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from accuracy_table import EXPRESSIONS, FLOOR, TIMES, Case, cases, errors, evaluate, sampled

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)  # where cores are busy, waiting for its threads takes longer than the work


def measured(case: Case) -> tuple[Any, list[float]]:
    """PyTorch's result in float64, and its errors in the type of the case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = evaluate(torch, case, True)
        return exact, errors(exact, evaluate(torch, case, False), case.dtype)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_errors_are_like_those_of_pytorch(expression: str) -> None:
    compared = 0
    for case in cases(expression):
        try:
            exact, theirs = measured(case)
        except RuntimeError as error:  # a few have no form for short types there
            assert case.dtype != "float32" and ("not implemented" in str(error) or "not supported" in str(error)), error
            continue
        mine = errors(exact, evaluate(mg, case, False), case.dtype)
        assert all(own <= max(TIMES * other, FLOOR) for own, other in zip(mine, theirs, strict=True)), f"{case}: {mine}, PyTorch {theirs}"
        compared += 1
    assert compared


RECORD = Path(__file__).parent.parent / "accuracy.json"


def test_every_expression_is_recorded() -> None:
    assert list(json.loads(RECORD.read_text())) == [str(case) for case in sampled()]


def record() -> None:
    lines = [f"{json.dumps(str(case))}: {[math.ceil(min(error, 1e9) * 10) / 10 for error in measured(case)[1]]}" for case in sampled()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
