"""Arguments of the wrong kind: an `except` clause written for PyTorch's error catches ours, and nothing of our inside comes out.

Two tables: the expressions of tests/wrong_kinds.py, and PyTorch's own table of operations, of which each argument in turn is
replaced. Where PyTorch itself lets an error of its inside out (AttributeError and the like), ours may be of any designed class.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import mutagrad as mg
from wrong_kinds import WRONG, expressions, mistakes

from .compare import Unmapped, attempt, ours
from .test_op_db import ADAPTERS

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytest.importorskip("expecttest", reason="PyTorch's table imports it; make oracle installs it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

pytestmark = pytest.mark.oracle
DESIGNED = (TypeError, RuntimeError, ValueError, IndexError)  # NotImplementedError is a RuntimeError

# Where our class is another than PyTorch's: words of the call, and why.
OTHERWISE = {
    "bytes": "PyTorch takes bytes for a string",
    "m.randint": "None stands for a bound that was left out",
    ".norm(": "what cannot be an order is not supported",
    "m.tensordot(": "an argument of the wrong kind is a TypeError",
    "m.autograd.": "an argument of the wrong kind is a TypeError",
    "unfold(": "an argument of the wrong kind is a TypeError",
    "x.unflatten(": "an argument of the wrong kind is a TypeError",
    "m.nn.Conv": "a fraction of a channel is of the wrong kind before it fails to be divisible",
    "m.nn.GroupNorm": "a fraction of a channel is of the wrong kind before it fails to be divisible",
    "pack_padded_sequence": "lengths that are not one for each sequence, whatever they are",
    "betas": "one number, or none, is a bad value",
    "m.linalg.multi_dot": "one factor is a bad value, whatever it is",
    "m.nn.init.calculate_gain": "a function that does not exist is a bad value, whatever it is",
    "m.linalg.norm(": "what cannot be an order is a bad value",
    "m.nn.functional.pad(x, (1, 1), value": "Python's own words for what is no number",
    "m.nn.Upsample(scale_factor": "Python's own words for what is no number",
}


@pytest.mark.parametrize("expression", expressions())
def test_the_class_of_the_error(expression: str) -> None:
    for mistake in mistakes(expression):
        theirs = attempt(lambda: mistake.attempt(torch), quiet=True)[1]
        mine = attempt(lambda: mistake.attempt(mg), quiet=True)[1]
        if mine is None or not isinstance(theirs, DESIGNED):
            continue
        text = f"{mistake.text} with {mistake.wrong}"
        assert isinstance(mine, type(theirs)) or any(words in text for words in OTHERWISE), f"{text}: {mine!r}, PyTorch {theirs!r}"


def replaced(arguments: tuple[Any, ...], settings: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """The arguments with each in turn of a wrong kind, too few of them, and too many."""
    for kind, wrong in WRONG.items():
        for k in range(len(arguments)):
            yield f"argument {k} is {kind}", (*arguments[:k], wrong, *arguments[k + 1:]), settings
        for name in settings:
            yield f"{name} is {kind}", arguments, {**settings, name: wrong}
    for k in range(1, len(arguments)):
        yield f"{k} arguments", arguments[:k], {}
    yield "one more argument", (*arguments, "a"), settings
    yield "an unknown setting", arguments, {**settings, "nonsense": 1}


def reached(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part, None)
    return library


def plain(value: Any) -> Any:
    """A copy without history; forms in place must not change the sample."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


ENTRIES = [op for op in op_db if not op.variant_test_name and op.name not in ADAPTERS and torch.float32 in op.dtypes and reached(mg, op.name) is not None]


@pytest.mark.parametrize("op", ENTRIES, ids=lambda op: op.name)
def test_no_error_from_inside(op: Any) -> None:
    theirs, mine = reached(torch, op.name), reached(mg, op.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = next((s for s in op.sample_inputs("cpu", torch.float32) if not isinstance(s.input, torch.Tensor) or s.input.numel() < 5000), None)
    if sample is None:
        return
    for what, arguments, settings in replaced((sample.input, *sample.args), dict(sample.kwargs)):
        given = tuple(plain(v) for v in arguments), {name: plain(v) for name, v in settings.items()}
        try:
            own = ours(given[0]), {name: ours(v) for name, v in given[1].items()}
        except Unmapped:
            continue
        if not isinstance(attempt(lambda: theirs(*given[0], **given[1]), quiet=True)[1], DESIGNED):
            continue
        error = attempt(lambda: mine(*own[0], **own[1]), quiet=True)[1]
        assert error is None or isinstance(error, (mg.MutagradError, TypeError, ValueError)), f"{op.name}, {what}: {error!r}"
