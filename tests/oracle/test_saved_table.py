"""The table of what PyTorch keeps for backward is what PyTorch answers today, call by call."""
from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="make oracle installs it")

from mutagrad.explain import torch_saves
from mutagrad.explain.torch_calls import by_slot
from mutagrad.explain.torch_saves import saved_by

from . import saved_table
from .saved_calls import all_calls
from .saved_probe import Call, attempt, backward_is_defined, masks, read_saved, refused, tensors_of, torch

pytestmark = pytest.mark.oracle
PARTS = 8  # of the table, so that processes can share the work
HIDDEN = {"__setitem__"}  # an assignment records CopySlices, which does not show the node inside it


@functools.cache
def calls() -> dict[str, list[Call]]:
    return all_calls()


def part(number: int) -> list[str]:
    return sorted(calls())[number::PARTS]


@pytest.mark.parametrize("number", range(PARTS))
def test_table_is_what_pytorch_answers(number: int) -> None:
    """`make saves` writes it anew."""
    wrong = [name for name in part(number) if json.loads(json.dumps(saved_table.row(calls()[name]))) != torch_saves.table().get(name)]
    assert not wrong


def test_table_has_no_other_functions() -> None:
    assert set(torch_saves.table()) <= set(calls())


def answers(call: Call) -> Iterator[tuple[Any, set[str], set[str]]]:
    """For each choice of arguments that require a gradient: what the query says, what backward refuses, what the nodes name."""
    for mask in masks(call):
        made = attempt(call, mask)
        if made is None or not backward_is_defined(made, mask, {}):
            continue
        needing = {id(t) for slot, t in tensors_of(by_slot(call.args, call.kwargs, call.parameters)).items() if slot in mask}
        yield saved_by(call.name, call.args, call.kwargs, lambda t: id(t) in needing, made.results), read_saved(made), set(refused(made))


@pytest.mark.parametrize("number", range(PARTS))
def test_query_says_what_backward_refuses(number: int) -> None:
    """On some of each function's calls: a memory that is written afterwards makes backward raise exactly where the query says kept."""
    wrong = []
    for name in part(number):
        for call in calls()[name][::6] if name in torch_saves.table() else ():
            for told, named, kept in answers(call):
                if told is None or told.saves != kept and not ("saves" in told.depends and told.saves >= kept):
                    wrong.append((name, call.kwargs, told and set(told.saves), kept))
                if not kept <= named and name not in HIDDEN:
                    wrong.append((name, "kept, but no node names it", kept - named))
    assert not wrong


def test_a_row_that_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """sqrt keeps its result; a table that says its input would be caught."""
    call = calls()["sqrt"][0]
    (told, named, kept), = answers(call)
    assert told.saves == named == kept == {"out"}
    monkeypatch.setitem(torch_saves.table(), "sqrt", ["input", {"saves": {"0": "*"}}])
    assert next(answers(call))[0].saves == {"0"}


WRITTEN = [  # programs that users write: which of x and y may be written before backward
    ("y = x * w", "xw"), ("y = x * 2", ""), ("y = x.sqrt()", "y"), ("y = x.exp()", "y"), ("y = x.relu()", "y"), ("y = x.sin()", "x"), ("y = x + w", ""), ("y = x / w", "xw"), ("y = x ** 2", "x"), ("y = x @ w", "xw"),
    ("y = x.clamp(0.2)", "x"), ("y = torch.where(x > 0.5, x, w)", ""), ("y = x.softmax(0)", "y"), ("y = x[0:2]", ""), ("y = x[[0, 1]]", ""), ("y = x.abs()", "x"), ("y = x.max()", "xy"), ("y = x.norm()", "xy"),
    ("y = x.tanh()", "y"), ("y = x.sum()", ""), ("y = torch.cat([x, w])", ""), ("y = x.prod()", "xy"), ("y = x.var()", "x"), ("y = x.std()", "xy"), ("y = 1 / x", ""), ("y = x - w", ""), ("y = -x", ""), ("y = 2 ** x", "xy"),
]


@pytest.mark.parametrize(("line", "refused_after_write"), WRITTEN, ids=[line for line, _ in WRITTEN])
def test_plain_writes_are_refused(line: str, refused_after_write: str) -> None:
    """The same by plain programs, with a write that is recorded, not by a raised version."""
    for written in "xwy":
        x, w = (torch.tensor([0.4, 0.6, 0.9], requires_grad=True) for _ in "xw")
        names = {"torch": torch, "x": x.clone(), "w": w.clone()}
        exec(line, names)
        loss = (names["y"] * 1).sum() if written != "y" else names["y"].sum()
        names[written].add_(0)
        raised = False
        try:
            loss.backward()
        except RuntimeError as error:
            raised = "modified by an inplace operation" in str(error)
        assert raised == (written in refused_after_write), written
