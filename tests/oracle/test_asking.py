"""The tables of `tests/ops/test_asking.py` hold for PyTorch itself: the same answers, the same refusals."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import test_asking as asked

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

NAMES = {"mg": torch, "np": np, "PACKED": asked.PACKED, "X": torch.arange(6.0).reshape(2, 3), "OWNER": torch.zeros(2, 3),
         "BYTES": torch.tensor([255, 44], dtype=torch.uint8)}


def answer(program: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(program, dict(NAMES))


@pytest.mark.parametrize("question", asked.ANSWERS)
def test_answers(question: str) -> None:
    wanted = asked.ANSWERS[question]
    found = answer(question)
    assert found == wanted or str(found) == str(wanted).replace("mutagrad", "torch")


@pytest.mark.parametrize("program", asked.REFUSED)
def test_refused(program: str) -> None:
    with pytest.raises(asked.REFUSED[program]):
        answer(program)
