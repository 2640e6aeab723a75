"""Sums of many numbers are as exact as PyTorch's, whose errors are recorded: reductions, scans, norms, losses and their gradients."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from accuracy_table import FLOOR, TIMES, Case, errors, evaluate, sampled

import mutagrad as mg

RECORDED: dict[str, list[float]] = json.loads((Path(__file__).parent / "accuracy.json").read_text())


@pytest.mark.parametrize("case", sampled(), ids=str)
def test_errors_are_like_those_of_pytorch(case: Case) -> None:
    if case.dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="pip install 'mutagrad[bfloat16]'")
    mine = errors(evaluate(mg, case, True), evaluate(mg, case, False), case.dtype)
    assert all(own <= max(TIMES * other, FLOOR) for own, other in zip(mine, RECORDED[str(case)], strict=True)), (mine, RECORDED[str(case)])
