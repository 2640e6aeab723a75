"""What doctor rewrites runs in PyTorch, and gives the gradient that the program has on mutagrad."""
from __future__ import annotations

import linecache
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from fuzz.generator import generate
from mutagrad.explain.doctor.diagnosis import Diagnosis
from mutagrad.explain.doctor.fixes import propose, rewritten

from .fix_programs import Program, programs

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

ROUNDS = 5
FUZZ = "import torch as mg\n\ndef f64(v):\n    return mg.tensor(v, dtype=mg.float64)\n\n"


def run(path: Path) -> tuple[dict[str, Any], Exception | None]:
    """Run a file, and return its gradients and what it raises."""
    names: dict[str, Any] = {"__name__": "__main__"}
    raised = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
        except Exception as error:
            raised = error
        return gradients(names), raised


def gradients(names: dict[str, Any]) -> dict[str, Any]:
    """Gradients of all tensors and modules that have a name, and those that the program has collected in g..."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, value in names.items():
        if id(value) in seen or isinstance(value, type):
            continue
        seen.add(id(value))
        if name.startswith("g"):
            found |= {f"{name}.{i}": np.array(t.tolist()) for i, t in enumerate(listed(value)) if hasattr(t, "tolist")}
        elif hasattr(value, "named_parameters"):
            found |= {f"{name}.{k}": np.array(p.grad.tolist()) for k, p in value.named_parameters() if p.grad is not None}
        elif hasattr(value, "requires_grad") and value.grad is not None:
            found[name] = np.array(value.grad.tolist())
    return found


def listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


def diagnosed(path: Path) -> tuple[dict[str, Any], Exception | None, Diagnosis]:
    linecache.checkcache(str(path))
    with mg.as_torch(), Diagnosis() as found:
        grads, raised = run(path)
    return grads, raised, found


def fixed(path: Path) -> tuple[dict[str, Any], Diagnosis]:
    """Rewrite a file until there is nothing left to do; return the gradients it had at first, and the last diagnosis."""
    first, raised, found = diagnosed(path)
    for _ in range(ROUNDS):
        text = rewritten(found.findings).get(str(path))
        if found.findings.verdict == "accepts" or text is None:
            break
        path.write_text(text, encoding="utf-8")
        grads, _, found = diagnosed(path)
        first = first if raised is None else grads  # what mutagrad refuses, too, has no gradient to begin with
    return first, found


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether gradients are the same; there may be more of them, of copies, and None may be zero."""
    return all(name in other and np.allclose(grad, other[name], 1e-4, 1e-6) for name, grad in one.items() if grad.any())


@pytest.mark.parametrize("program", programs(), ids=lambda p: p.name)
def test_rewrite(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program.source, encoding="utf-8")
    theirs, raised = run(path)
    expected, found = fixed(path)
    assert found.findings.verdict == "accepts", [(f.kind, f.message) for f in found.findings]
    assert expected
    done = "raises" if raised is not None else "accepts" if same(expected, theirs) else "wrong"
    assert done == program.torch, raised
    grads, raised = run(path)
    assert raised is None, f"{raised!r}\n{path.read_text(encoding='utf-8')}"
    assert same(expected, grads), f"{expected}\n{grads}\n{path.read_text(encoding='utf-8')}"
    assert (path.read_text(encoding="utf-8") == program.source) == (program.torch == "accepts")


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_rewrite_of_random_programs(first: int, tmp_path: Path) -> None:
    wrong = []
    for seed in range(first, first + 20):
        path = tmp_path / f"program{seed}.py"
        path.write_text(FUZZ + generate(seed).source + "\n", encoding="utf-8")
        expected, raised, _ = diagnosed(path)
        if raised is not None:  # a statement that mutagrad declines, or that is about a helper of the fuzz
            continue
        _, found = fixed(path)
        grads, raised = run(path)
        if found.findings.verdict != "accepts" or raised is not None or not same(expected, grads):
            wrong.append((seed, found.findings.verdict, raised))
    assert not wrong


def test_a_diff_for_each_finding(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.backward()\n")
    _, _, found = diagnosed(path)
    propose(found.findings)
    diffs = {finding.kind: finding.diff for finding in found.findings if finding.torch == "raises"}
    assert "-y = x.exp()\n+y = x.exp().clone()\n" in diffs["overwritten_saved_value"]
    assert "-y.backward()\n+y.sum().backward()\n" in diffs["backward_of_several"]
