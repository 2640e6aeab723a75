"""`help()` of everything public says something and shows an example, and the examples are true."""
from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.base.errors import MissingExtra
from mutagrad.core.op import DESCRIPTIONS

PLACES = ["mutagrad", "mutagrad.Tensor", *(f"mutagrad.{name}" for name in (
    "amp", "array_api", "autograd", "autograd.functional", "distributions", "distributions.constraints", "distributions.transforms", "fft",
    "func", "futures", "linalg", "masked", "nn", "nn.attention", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "optim", "optim.lr_scheduler", "optim.swa_utils", "profiler", "relax",
    "serialization", "signal.windows", "sparse", "special", "testing", "utils.checkpoint", "utils.data", "utils.flop_counter"))]

# What shows no example, and why.
WITHOUT = {name: reason for reason, names in {
    "raises here, and its docstring says so": """
        Tensor.chalf Tensor.pin_memory nn.Module.share_memory utils.checkpoint.create_selective_checkpoint_contexts
        PyTorchFileReader ScriptFunction ScriptModule SymBool SymFloat SymInt TensorType TensorType.get autograd.Function.vjp
        autograd.Function.vmap""",
    "warns that it is deprecated, and names what takes its place": """
        Tensor.resize range nn.functional.upsample nn.functional.upsample_bilinear nn.functional.upsample_nearest nn.init.constant
        nn.init.dirac nn.init.eye nn.init.kaiming_normal nn.init.kaiming_uniform nn.init.normal nn.init.orthogonal nn.init.sparse
        nn.init.uniform nn.init.xavier_normal nn.init.xavier_uniform nn.utils.clip_grad_norm nn.utils.weight_norm
        nn.utils.remove_weight_norm nn.NLLLoss2d
        distributions.Distribution.sample_n testing.assert_allclose""",
    "needs a device, several of them, or what compiles for one": """
        Tensor.cuda nn.Module.cuda nn.utils.rnn.PackedSequence.cuda Tensor.full_tensor Tensor.redistribute Tensor.to_local compile
        nn.Module.compile Event Event.elapsed_time Event.query Event.record Event.synchronize Event.wait Stream Stream.query
        Stream.record_event Stream.synchronize Stream.wait_event Stream.wait_stream profiler.emit_itt
        profiler.emit_nvtx""",
    "prints what this machine is": "show_config",
    "is there to be silenced, and never given": "serialization.SourceChangeWarning",
    "is accepted as PyTorch's, and changes nothing": """
        utils.checkpoint.set_checkpoint_debug_enabled utils.checkpoint.set_checkpoint_early_stop""",
    "is called by the package itself, in classes of which users call other methods": """
        utils.checkpoint.outer_writers TypedStorage.as_tensor autocast.changes amp.autocast.changes device.changes inference_mode.again
        inference_mode.changes set_grad_enabled.again profile.after profile.before profile.sweep_began profile.sweep_ended
        profile.visited autograd.inference_mode.again autograd.inference_mode.changes autograd.set_grad_enabled.again
        autograd.detect_anomaly.again autograd.detect_anomaly.changes autograd.set_multithreading_enabled.again
        autograd.set_multithreading_enabled.changes autograd.set_nan_policy.again autograd.set_nan_policy.changes
        autograd.strong_zeros.again autograd.strong_zeros.changes profiler.profile.changes""",
}.items() for name in names.split()}

# The parts of an optimizer's step: they are called with arrays, by `step`, and docs/recipes.md shows how they are written.
PARTS = {"advance", "check", "check_sparse", "first_count", "first_value", "formula", "hyper", "kept", "moved", "new_state", "numbers", "step_sparse", "update"}


def public(place: str) -> dict[str, Any]:
    owner = mg.Tensor if place.endswith(".Tensor") else import_module(place)
    names = getattr(owner, "__all__", None) or [name for name in dir(owner) if not name.startswith("_")]
    found = {name: getattr(owner, name) for name in names}
    return {name: value for name, value in found.items() if callable(value) and not isinstance(value, ModuleType)
            and str(getattr(value, "__module__", "mutagrad")).startswith("mutagrad")}


def methods(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields the public methods that a class defines, and their docstrings: their own or those that they override."""
    if not isinstance(value, type) or value is mg.Tensor:
        return
    for method, held in vars(value).items():
        function = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
        of_an_optimizer = issubclass(value, mg.optim.Optimizer) and method in PARTS
        if isinstance(function, FunctionType) and not method.startswith("_") and not of_an_optimizer:
            yield f"{name}.{method}", inspect.getdoc(getattr(value, method)) or ""


def docstrings(place: str) -> dict[str, str]:
    found = {}
    for name, value in public(place).items():
        name = f"{place}.{name}".removeprefix("mutagrad.")
        found[name] = inspect.getdoc(value) or ""
        found.update(methods(name, value))
    return found


@pytest.mark.parametrize("place", PLACES)
def test_everything_public_has_a_docstring(place: str) -> None:
    assert len(public(place)) > 0
    assert [name for name, doc in docstrings(place).items() if not doc.strip() and name not in WITHOUT] == []


@pytest.mark.parametrize("place", PLACES)
def test_everything_public_shows_an_example(place: str) -> None:
    assert [name for name, doc in docstrings(place).items() if ">>>" not in doc and name not in WITHOUT] == []


def test_what_is_excused_is_there_and_shows_none() -> None:
    found = {name for place in PLACES for name, doc in docstrings(place).items() if ">>>" not in doc}
    assert set(WITHOUT) - found == set()


class Runner(doctest.DocTestRunner):
    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        if isinstance(exc_info[1], MissingExtra):
            raise exc_info[1]
        super().report_unexpected_exception(out, test, example, exc_info)


def failures(name: str, docstring: str) -> str:
    """Runs the examples of a docstring; what needs an extra that is not installed is left out."""
    test = doctest.DocTestParser().get_doctest(docstring, {"__name__": "example"}, name, None, None)
    printed: list[str] = []
    with suppress(MissingExtra):
        Runner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=printed.append)
    return "".join(printed)


SHOWN: set[str] = set()  # one docstring has many names


@pytest.mark.parametrize("place", PLACES)
def test_what_examples_show_is_true(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, doc in docstrings(place).items():
        if ">>>" in doc and doc not in SHOWN:
            SHOWN.add(doc)
            assert failures(name, doc) == ""
    assert list(tmp_path.iterdir()) == []


FORMS = {value.__name__ for value in vars(mg.Tensor).values() if isinstance(value, FunctionType)} | {"conj_"}


@pytest.mark.parametrize("name", sorted(name for name in DESCRIPTIONS if name[-1] != "_" or name in FORMS))
def test_what_docstrings_of_generated_functions_show_is_true(name: str) -> None:
    assert failures(name, DESCRIPTIONS[name]) == ""
