"""`why` names the true cause and the right line, in programs that are read and run as a user's are."""
from __future__ import annotations

import linecache
import runpy
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from explain.why_cases import CASES, START, Case
from fuzz.generator import generate


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


def test_there_are_many_cases() -> None:
    assert len(CASES) > 80
    assert len({case.cause for case in CASES}) > 20


def test_an_answer_has_parts(tmp_path: Path) -> None:
    answer = ask(START + "x = mg.ones(2, requires_grad=True)\n(x * mg.zeros(2)).sum().backward()\nanswer = x.why()\n",
                 tmp_path / "program.py")
    assert answer.where == f"{tmp_path / 'program.py'}:5"
    assert answer.verdict == "x.grad is zero: mul multiplies by exactly zero"
    assert str(answer).splitlines()[0] == answer.verdict and repr(answer) == str(answer)
    assert "factor" in answer.fix
    assert [(operation, norm) for _, operation, norm in answer.stages][-1] == ("here", 0.0)


@pytest.mark.skipif(not hasattr(ask.__code__, "co_positions"), reason="Python knows columns since 3.11")
def test_the_part_of_the_line_is_pointed_at(tmp_path: Path) -> None:
    answer = ask(START + "x = mg.ones(2, requires_grad=True)\n(x.exp() * mg.zeros(2)).sum().backward()\nanswer = x.why()\n",
                 tmp_path / "program.py")
    line, carets = str(answer).splitlines()[1:3]
    assert line[carets.index("^"):].startswith("x.exp() * mg.zeros(2)") and carets.count("^") == len("x.exp() * mg.zeros(2)")


def test_cells_of_a_notebook_are_named_by_cell_and_line() -> None:
    source = "x = mg.ones(2, requires_grad=True)\nw = mg.ones(2, requires_grad=True)\n(x.detach() * w).sum().backward()\n"
    name, names = "<ipython-input-3-7f>", {"mg": mg}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), names)
    answer = eval("mg.why(x)", names)
    assert answer.cause == "detached" and answer.where == f"{name}:3"


def test_a_session_without_source_is_answered_by_line() -> None:
    names: dict[str, Any] = {"mg": mg}
    exec("x = mg.ones(2, requires_grad=True)\n(x * 2 > 1).float().mul(mg.ones(2, requires_grad=True)).sum().backward()", names)
    answer = eval("x.why()", names)
    assert answer.cause == "no_derivative" and answer.where == "<string>:2"


def test_a_model_has_an_answer_for_each_parameter() -> None:
    model = mg.nn.ModuleDict({"used": mg.nn.Linear(2, 1), "forgotten": mg.nn.Linear(2, 1)})
    model["used"](mg.ones(1, 2)).sum().backward()
    answers = mg.why(model)
    assert [answer.cause for answer in answers.values()] == ["ok", "ok", "not_reached", "not_reached"]
    assert len(str(answers).splitlines()) == 4


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="expects a tensor or a module, not int"):
        mg.why(3)
    with pytest.raises(TypeError, match="the loss must be a tensor"):
        mg.why(mg.ones(2), 3)  # type: ignore[arg-type]


def test_asking_changes_nothing() -> None:
    x = mg.ones(3, requires_grad=True)
    loss = (x * x).sum()
    before = mg.why(x, loss)
    loss.backward()
    grad = x.grad.clone()
    for _ in range(3):
        mg.why(x), mg.why(x[0]), mg.why(loss)
    assert before.cause == "not_swept" and x.grad.equal(grad) and len(x.grad_fn or ()) == 0


@pytest.mark.parametrize("family", ["rooms", "aliases", "hooks", "scalars"])
def test_programs_of_all_kinds_are_answered(family: str) -> None:
    """Whatever the program does, an element has a gradient exactly where `why` says so."""
    for seed in range(12):
        program = generate(seed, families=(family,))
        try:
            leaves, names = program.start(mg, program.point)
            program.run(mg, names)["loss"].backward()
        except mg.MutagradError:  # some are meant to be refused
            continue
        for x in leaves:
            answer = mg.why(x)
            assert str(answer)
            if x.grad is not None and x.is_contiguous():
                causes = [mg.why(x.reshape(-1)[i]).cause for i in range(x.numel())]
                found = [cause in ("ok", "vanished", "exploded", "nan") for cause in causes]
                assert found == [bool(g) for g in x.grad.reshape(-1) != 0], (seed, causes)
