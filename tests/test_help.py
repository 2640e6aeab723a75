"""`help()` of everything public says something, and the examples in the docstrings of generated functions are true."""
from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.core.op import DESCRIPTIONS

PLACES = ["mutagrad", "mutagrad.Tensor", *(f"mutagrad.{name}" for name in (
    "autograd", "autograd.functional", "distributions", "fft", "func", "linalg", "nn", "nn.functional", "nn.init", "nn.utils",
    "nn.utils.rnn", "optim", "optim.lr_scheduler", "relax", "sparse", "special", "utils.checkpoint", "utils.data"))]


def public(place: str) -> dict[str, Any]:
    owner = mg.Tensor if place.endswith(".Tensor") else import_module(place)
    names = getattr(owner, "__all__", None) or [name for name in dir(owner) if not name.startswith("_")]
    found = {name: getattr(owner, name) for name in names}
    return {name: value for name, value in found.items()
            if callable(value) and str(getattr(value, "__module__", "mutagrad")).startswith("mutagrad")}


@pytest.mark.parametrize("place", PLACES)
def test_everything_public_has_a_docstring(place: str) -> None:
    found = public(place)
    assert len(found) > 3
    assert [name for name, value in found.items() if not (inspect.getdoc(value) or "").strip()] == []


FORMS = {value.__name__ for value in vars(mg.Tensor).values() if isinstance(value, FunctionType)} | {"conj_"}


@pytest.mark.parametrize("name", sorted(name for name in DESCRIPTIONS if name[-1] != "_" or name in FORMS))
def test_what_docstrings_of_generated_functions_show_is_true(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(DESCRIPTIONS[name], {}, name, None, None)
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=printed.append)
    assert printed == []
