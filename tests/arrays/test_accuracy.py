"""Sums of many numbers are as exact as PyTorch's, whose errors are recorded: reductions, scans, norms, losses and their gradients."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mutagrad as mg
from accuracy_table import FLOOR, TIMES, Case, errors, evaluate, sampled

RECORDED: dict[str, list[float]] = json.loads((Path(__file__).parents[1] / "accuracy.json").read_text())


@pytest.mark.parametrize("case", sampled(), ids=str)
def test_errors_are_like_those_of_pytorch(case: Case) -> None:
    if case.dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="pip install 'mutagrad[bfloat16]'")
    mine = errors(evaluate(mg, case, True), evaluate(mg, case, False), case.dtype)
    assert all(own <= max(TIMES * other, FLOOR) for own, other in zip(mine, RECORDED[str(case)], strict=True)), (mine, RECORDED[str(case)])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4])
def test_variance_far_from_zero_is_exact(offset: float, dim: int) -> None:
    x = (np.random.default_rng(0).standard_normal((300, 1100)) + offset).astype(np.float32)
    exact = x.astype(np.float64).var(dim, ddof=1)
    assert np.abs(np.asarray(mg.tensor(x).var(dim)) / exact - 1).max() < 2 * 2.0**-23  # PyTorch: half of that


def test_the_inverse_error_function_is_rounded_once() -> None:
    x = np.linspace(-0.999, 0.999, 2000, dtype=np.float32)  # few: SciPy computes them
    found, exact = (np.asarray(mg.erfinv(mg.tensor(x, dtype=dtype))).astype(np.float64) for dtype in (mg.float32, mg.float64))
    assert np.abs(found / exact - 1).max() < 2.0**-23
