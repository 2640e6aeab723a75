"""Doctor's verdict is what PyTorch does: on programs that were written to try it, and on random ones."""
from __future__ import annotations

import warnings
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from explain import kept_programs
from explain.test_doctor import PROGRAMS, START, diagnosed
from explain.transformed_programs import REWRITTEN
from fuzz.generator import generate
from fuzz.judge import first_order, judge
from mutagrad import as_torch
from mutagrad.explain.doctor.diagnosis import Diagnosis
from mutagrad.explain.doctor.fixes import rewritten

from . import torch_rules

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

LATE = {"overwritten_saved_value", "backward_twice", "backward_of_several", "always_raises"}  # what backward() raises for
DONE = {"right": "accepts", "wrong": "wrong", "diverged": "wrong", "error": "raises"}


def outcome(source: str, library: Any) -> tuple[str, Any]:
    """What a library does with a program: "raises", or "accepts" and the gradient of x."""
    names: dict[str, Any] = {"torch": library}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, "program.py", "exec"), names)
    except Exception as error:
        return f"raises {type(error).__name__}", None
    grad = names["x"].grad
    return "accepts", None if grad is None else np.array(grad.tolist())


@pytest.mark.parametrize("name", PROGRAMS)
def test_verdict(name: str) -> None:
    source, verdict, _, _ = PROGRAMS[name]
    source = (START + source).replace("try:\n    ", "").replace("except RuntimeError:\n    pass", "")
    done, found = outcome(source, torch)
    if verdict == "raises":
        assert done.startswith("raises")
        return
    assert done == "accepts"
    _, right = outcome(source, mg)
    same = found is None and right is None or found is not None and right is not None and np.allclose(found, right)
    assert same == (verdict == "accepts")


@pytest.mark.parametrize("name", kept_programs.VALUES)
def test_values(name: str) -> None:
    """Of programs whose gradient PyTorch has right, and their values not."""
    source, verdict, _, _ = kept_programs.VALUES[name]
    sums = []
    for library in (torch, mg):
        names: dict[str, Any] = {"torch": library}
        exec(START + source, names)
        sums.append(names["y"].tolist())
    assert (sums[0] == sums[1]) == (verdict == "accepts")


@pytest.mark.parametrize("name", REWRITTEN)
def test_rewrite(name: str) -> None:
    source = START + PROGRAMS[name][0]
    _, right = outcome(source, mg)
    for _ in range(3):
        findings = diagnosed(source).findings
        source = rewritten(findings, {"program.py": source}.get).get("program.py", source)
    done, found = outcome(source, torch)
    assert done == "accepts" and np.allclose(found, right), source


def statement(seed: int) -> int | None:
    """The statement of a random program at which PyTorch raises; None if it is in backward."""
    program, line = generate(seed), None
    try:
        first_order(program, torch, program.point)
    except Exception as error:
        frames = error.__traceback__
        while frames is not None:
            if frames.tb_frame.f_code.co_filename.startswith("<program"):
                line = frames.tb_lineno
            frames = frames.tb_next
    return line


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_programs(first: int) -> None:
    """Whether it raises, at which statement if it is not in backward, and whether it is silently wrong."""
    wrong = []
    for seed in range(first, first + 50):
        program = generate(seed)
        done = DONE.get(judge(program, torch).kind)
        if done is None:
            continue
        with Diagnosis() as found:
            first_order(program, mg, program.point)
        assert not found.stumbled, (seed, found.stumbled)
        refused = [f.place[1] for f in found.findings if f.torch == "raises" and f.kind not in LATE]
        if found.findings.verdict != done or done == "raises" and statement(seed) != (refused[0] if refused else None):
            wrong.append((seed, done, found.findings.verdict, statement(seed), refused))
    assert not wrong, wrong


def test_the_test_can_fail() -> None:
    assert diagnosed(START + "x[0] = 5.").findings.verdict != "accepts"


# Where the gradient is of the program as PyTorch means it: what is written in no_grad or through .data, and not saved, is a constant.
OPTED_OUT = {"data_before_use", "no_grad_unsaved_write", "no_grad_view_write_inside", "no_grad_copy_before_use"}


@pytest.mark.parametrize("name", sorted(set(torch_rules.PROGRAMS) - OPTED_OUT))
def test_rules(name: str) -> None:
    """Every program of the corpus: the recorded outcome in PyTorch is doctor's verdict."""
    found = Diagnosis()
    with suppress(mg.MutagradError), as_torch(), redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with found:
            exec(compile(torch_rules.PROGRAMS[name], f"{name}.py", "exec"), {"__name__": "__main__"})
    assert found.findings.verdict == torch_rules.recorded()["programs"][name]["outcome"], [f.message for f in found.findings]
    assert not found.stumbled and not found.unknown
