"""The table of what PyTorch keeps answers calls on our tensors, and says where it does not know."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg
from mutagrad.explain import torch_saves
from mutagrad.explain.torch_calls import FEATURES, SEVERAL, by_slot, results_of, tensors_of
from mutagrad.explain.torch_saves import Saved, arguments, saved_by


def t(*shape: int) -> Any:
    return mg.ones(*shape)


def ask(name: str, *args: Any, needs: Any = None, results: tuple[str, ...] = ("out",), **kwargs: Any) -> Saved:
    """The answer where these tensors require a gradient, or all."""
    found = saved_by(name, args, kwargs, lambda x: needs is None or any(x is n for n in needs), results)
    assert found is not None
    return found


def test_a_function_that_is_not_there_is_not_known() -> None:
    assert saved_by("no_such_function", (t(3),), {}, lambda x: True) is None


def test_what_is_kept_depends_on_who_requires_a_gradient() -> None:
    x, y = t(3), t(3)
    assert ask("mul", x, y).saves == {"0", "1"}
    assert ask("mul", x, y, needs=[x]).saves == {"1"}
    assert ask("mul", x, 2).saves == set()
    assert ask("add", x, y).saves == set()


def test_a_keyword_means_its_position() -> None:
    x, y = t(3), t(3)
    assert ask("mul", x, other=y, needs=[x]).saves == {"1"}
    assert ask("nn.functional.linear", t(2, 3), t(4, 3), bias=t(4)).saves == {"0", "1"}


def test_defaults_decide_where_nothing_is_given() -> None:
    x = t(3)
    assert ask("nn.functional.relu", x).writes == {} == ask("nn.functional.relu", x, inplace=False).writes
    assert ask("nn.functional.relu", x, inplace=True).writes == {"0": 1} == ask("nn.functional.relu", x, True).writes


def test_results_may_be_kept() -> None:
    assert ask("sqrt", t(3)).saves == {"out"} == ask("sqrt_", t(3)).saves
    assert ask("sort", t(3), results=("out.0", "out.1")).saves == {"out.1"}


def test_results_without_a_derivative() -> None:
    assert ask("sort", t(3), results=("out.0", "out.1")).differentiable == {"out.0": True, "out.1": False}
    assert ask("argmax", t(3)).differentiable == {"out": False}
    assert ask("mul", t(3), t(3), needs=[]).differentiable == {"out": False}


def test_views_and_several_of_them() -> None:
    basic, several = ask("__getitem__", t(3), 0), ask("unbind", t(3), results=("out.0", "out.1", "out.2"))
    assert basic.views == {"out": "0"} and not basic.multiple
    assert several.views["out.2"] == "0" and several.multiple == {"out.0", "out.1", "out.2"}
    assert ask("contiguous", t(3)).same == {"out"}


def test_indices_are_kept_where_they_are_tensors() -> None:
    i = mg.tensor([0, 1])
    assert ask("__getitem__", t(3), i).saves == {"1"} and ask("__getitem__", t(3, 3), (slice(None), i)).saves == {"1.1"}
    assert ask("__setitem__", t(3), i, t(2)).writes == {"0": 1}


def test_layout_decides_whether_a_factor_is_kept_itself() -> None:
    attention = t(2, 5, 3, 4).transpose(1, 2)
    assert ask("matmul", t(2, 3, 5, 4), t(2, 3, 4, 5)).saves == {"0", "1"}
    assert ask("matmul", attention, t(2, 3, 4, 5)).saves == {"1"}


@pytest.mark.parametrize("name", torch_saves.table())
def test_rows_are_well_formed(name: str) -> None:
    """Every row answers, names only words that are known, and ends with a case without conditions."""
    parameters, cases = torch_saves.row(name) or ("", [])
    assert isinstance(parameters, str) and cases and "if" not in cases[-1]
    for case in cases:
        assert set(case) <= {"if", "saves", "views", "writes", "needs", "raises", "missing", "depends"}
        assert {condition.split()[0] for condition in case.get("if", {})} <= {*FEATURES, *SEVERAL}


def test_operands_of_einsum_may_come_in_a_list() -> None:
    x, y = t(2, 5, 3, 4), t(2, 6, 3, 4)
    assert ask("einsum", "bqhd,bkhd->bhqk", x, y).saves == set() == ask("einsum", "bqhd,bkhd->bhqk", [x, y]).saves
    assert ask("einsum", "ij,jk->ik", [t(2, 3), t(3, 4)]).saves == {"1", "2"} == set(arguments("einsum", ("ij,jk->ik", [x, y]), {}))


def test_slots() -> None:
    x, y = t(2), t(3)
    assert list(tensors_of(by_slot(([x, y], 1), {"out": x}))) == ["0.0", "0.1", "out"]
    assert list(results_of((x, (y, x)))) == ["out.0", "out.1.0", "out.1.1"] and list(results_of(x)) == ["out"]
