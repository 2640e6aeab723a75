"""What was recorded of PyTorch's rules for writes is what it does today."""
from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("torch", reason="make oracle installs it")

from . import torch_rules

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", torch_rules.PROGRAMS)
def test_program_does_what_was_recorded(name: str) -> None:
    assert torch_rules.outcome(name) == torch_rules.recorded()["programs"].get(name), "python -m oracle.torch_rules records it anew"


@pytest.mark.parametrize("statement", torch_rules.statements())
def test_version_rises_as_was_recorded(statement: str) -> None:
    assert torch_rules.version_steps(statement) == torch_rules.recorded()["versions"][statement]


def test_every_outcome_is_frequent() -> None:
    found = Counter(told["outcome"] for told in torch_rules.recorded()["programs"].values())
    assert len(torch_rules.recorded()["programs"]) == len(torch_rules.PROGRAMS) and min(found[o] for o in ("accepts", "wrong", "raises")) >= 12


def test_finite_differences_see_a_wrong_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What PyTorch accepts is compared with the truth: a gradient that is off by a factor is called wrong."""
    monkeypatch.setitem(torch_rules.PROGRAMS, "leaf_clone", torch_rules.PROGRAMS["leaf_clone"].replace("print", "x.grad.mul_(2)\nprint"))
    assert torch_rules.outcome("leaf_clone") == {"outcome": "wrong", "grad": [0.0, 2.0, 2.0], "true": [0.0, 1.0, 1.0]}
