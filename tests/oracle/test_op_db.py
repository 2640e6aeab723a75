"""PyTorch's own table of operations with its own sample inputs: every entry whose name we have must give what it gives there.

For each entry and element type: value, shape, type and gradient of the function, the method, the form in place and the one
with `out=`. An argument that we do not take must be refused with a TypeError or NotImplementedError; such samples count as
not implemented, and PARTLY names the entries that have any, so that none goes missing unseen. Then the table's own bad inputs:
our error must be one that an `except` clause written for PyTorch's catches.
"""
from __future__ import annotations

import inspect
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

import mutagrad as mg

from .compare import Unmapped, attempt, difference, gradient_difference, name_of, ours, stands_for, tensors

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytest.importorskip("expecttest", reason="PyTorch's table imports it; make oracle installs it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

pytestmark = pytest.mark.oracle

# Element types, and whether to take PyTorch's long list of samples (odd strides, extreme values) or its short one.
TYPES = {torch.float64: True, torch.int64: True, torch.float32: False, torch.bool: False, torch.complex64: False}
LARGEST = 2000  # elements in a sample; PyTorch has some of a million, which say no more
MOST = 150  # samples of an entry and type, taken evenly from all
OUT_SAMPLES = 3  # so many with `out=` for each type

# Results are whatever the memory or the generator held: only shape and type are compared.
UNDETERMINED = {"empty", "empty_like", "new_empty", "rand_like", "randint", "randint_like", "randn", "randn_like"}
# PyTorch leaves the order of equal elements open: the positions must only lead to the same values.
ANY_ORDER = {"sort", "argsort", "topk"}
# Entries whose arguments come in an order of their own.
ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "einsum": lambda f: lambda tensors, equation: f(equation, tensors),
    "where": lambda f: lambda x, condition, other: f(condition, x, other),
    "zero_": lambda f: lambda x: f(x.clone()),
}

# What we refuse although PyTorch takes it.
PARTLY = {
    "norm-nuc": "the nuclear norm",
    "logaddexp": "complex numbers",
    **dict.fromkeys(("clone", "contiguous", "bool", "byte", "char", "double", "float", "half", "int", "long", "short", "cdouble", "cfloat"),
                    "memory_format: a storage is always C-contiguous"),
}


class Deliberate(NamedTuple):
    """A difference that is meant: failures of this entry with these words in them are not failures."""

    entry: str
    words: str
    reason: str


DELIBERATE = (
    Deliberate("abs", "In-place abs is not supported for complex", "the real result is written into the complex tensor"),
    Deliberate("index_copy", "gradient [1]", "of duplicate indices the last wins, and the gradient goes to the winner only"),
)

# Bad inputs that are good here: words of PyTorch's error, and the reason.
LENIENT = {
    "must be Tensor, not": "a number is taken for a 0-d tensor",
    "invalid combination of arguments": "a number is taken for a 0-d tensor",
    "must be tuple of Tensors, not Tensor": "a tensor is the sequence of its rows",
    "the written-to tensor refer to a single memory location": "a statement reads before it writes",
    "doesn't apply to a 'int' object": "a number is taken for a 0-d tensor",
    "Expected self.dtype to be equal to src.dtype": "a scattered source is converted, as a written value is",
}


# -------------------------------------------------------------------------------------------------------- what we have of it

def entry_id(op: Any) -> str:
    return f"{op.name}-{op.variant_test_name}" if op.variant_test_name else op.name


def our_function(name: str) -> Any:
    """Ours under PyTorch's name: `mutagrad.name`, else the method."""
    found: Any = mg
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else our_method(name)


def our_method(name: str) -> Any:
    found = getattr(mg.Tensor, name, None)
    return found.fget if isinstance(found, property) else found


class Form(NamedTuple):
    """One way to call an entry, in both libraries."""

    name: str
    theirs: Callable[..., Any]
    ours: Callable[..., Any]


def forms(op: Any) -> Iterator[Form]:
    adapted = ADAPTERS.get(op.name, lambda f: f)
    function, method = our_function(op.name), our_method(op.name)
    yield Form("function", op.op, adapted(function))
    if method is not None and method is not function and op.method_variant is not None:
        yield Form("method", op.method_variant, method)
    written = our_method(op.name + "_")
    if written is not None and op.inplace_variant is not None:
        yield Form("in place", on_copy(op.inplace_variant), on_copy(written))


def on_copy(write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *arguments, **settings: write(x.clone(), *arguments, **settings)


CLAIMED = [op for op in op_db if our_function(op.name) is not None]


# ------------------------------------------------------------------------------------------------------------- the samples

class Sample(NamedTuple):
    theirs: tuple[Any, tuple[Any, ...], dict[str, Any]]
    ours: tuple[Any, tuple[Any, ...], dict[str, Any]]

    def __str__(self) -> str:
        x, arguments, settings = self.theirs
        text = ", ".join([*(brief(v) for v in (x, *arguments)), *(f"{k}={brief(v)}" for k, v in settings.items())])
        return text if len(text) < 200 else text[:200] + "..."


def brief(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        steps = "" if value.is_contiguous() else f" strides {value.stride()}"
        return f"{name_of(value.dtype)}{list(value.shape)}{steps}" + (f"={value.tolist()}" if value.numel() < 5 else "")
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(brief, value))})"
    return repr(value)


def samples(op: Any, dtype: Any) -> list[Sample]:
    # op.sample_inputs and op.reference_inputs seed before each sample and look for the running test, which takes longer than all else.
    torch.default_generator.manual_seed(0)
    random.seed(0)
    short, long = op.sample_inputs_func, op.reference_inputs_func
    draw = long if TYPES[dtype] and long is not None else short
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    drawn, refused = attempt(lambda: list(draw(op, "cpu", dtype, differentiable)), quiet=True)
    if refused is not None:  # some of the long lists cannot be drawn with gradients
        drawn = list(short(op, "cpu", dtype, differentiable))
    small = [s for s in drawn if sum(t.numel() for t in tensors((s.input, s.args, s.kwargs))) <= LARGEST]
    return [found for s in small[::len(small) // MOST + 1] if (found := both(s)) is not None]


def both(s: Any) -> Sample | None:
    """A sample of PyTorch's in either library; None where we have no such tensor."""
    parts = leaf(s.input), leaf(s.args), leaf(s.kwargs)
    converted, error = attempt(lambda: tuple(map(ours, parts)))
    if error is not None and not isinstance(error, (Unmapped, ValueError, mg.MutagradError)):
        raise error
    return None if error is not None else Sample(parts, converted)


def leaf(value: Any) -> Any:
    """The same as leaves of their own. Where elements share memory their gradients are one thing here and two in PyTorch."""
    if isinstance(value, torch.Tensor):
        shared = value.numel() > 1 and torch._debug_has_internal_overlap(value) != 0
        return value.detach().requires_grad_(value.requires_grad and not shared)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(leaf(v) for v in value)
    return {k: leaf(v) for k, v in value.items()} if isinstance(value, dict) else value


# ------------------------------------------------------------------------------------------------------------- the verdict

@dataclass
class Verdict:
    """What came of one entry."""

    entry: str
    compared: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    excused: Counter[Deliberate] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def fail(self, text: str) -> None:
        for meant in DELIBERATE:
            if meant.entry == self.entry and meant.words in text:
                self.excused[meant] += 1
                return
        self.failures.append(text)


def judge(op: Any) -> Verdict:
    verdict = Verdict(entry_id(op))
    for dtype in TYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        drawn = samples(op, dtype)
        for form in forms(op):
            for sample in drawn:
                judge_call(verdict, op, form, sample, name_of(dtype))
        for sample in drawn[:OUT_SAMPLES] if takes_out(op) else ():
            judge_out(verdict, op, sample, name_of(dtype))
    return verdict


def judge_call(verdict: Verdict, op: Any, form: Form, sample: Sample, dtype: str) -> None:
    (x, arguments, settings), (our_x, our_arguments, our_settings) = sample
    if form.name != "function" and not isinstance(x, torch.Tensor):
        return
    where = f"{form.name} {dtype} ({sample}): "
    expected, their_error = attempt(lambda: form.theirs(x, *arguments, **settings), quiet=True)
    found, our_error = attempt(lambda: form.ours(our_x, *our_arguments, **our_settings))
    if expected is NotImplemented:
        return
    if their_error is not None:
        if our_error is None or not stands_for(their_error, our_error):
            verdict.fail(f"{where}{our_error!r}, where PyTorch raised {type(their_error).__name__}: {their_error}")
        return
    if isinstance(our_error, (TypeError, NotImplementedError)) and is_clear(our_error):
        verdict.missing[str(our_error).splitlines()[0]] += 1
        return
    verdict.compared += 1
    text = repr(our_error) if our_error is not None else compare_results(op, sample, expected, found)
    if text:
        verdict.fail(where + text)


def is_clear(error: Exception) -> bool:
    """Ours, or Python's own about a keyword: not something from the depths of NumPy."""
    return isinstance(error, mg.MutagradError) or "unexpected keyword argument" in str(error)


def compare_results(op: Any, sample: Sample, expected: Any, found: Any) -> str:
    text = any_order(expected, found, sample) if op.name in ANY_ORDER else difference(expected, found, op.name not in UNDETERMINED)
    return text or gradient_difference(expected, found, sample.theirs, sample.ours)


def any_order(expected: Any, found: Any, sample: Sample) -> str:
    values, positions = expected if isinstance(expected, tuple) else (None, expected)
    our_positions = found if values is None else found[1]
    text = difference(positions, our_positions, values=False) or ("" if values is None else difference(values, found[0]))
    if text:
        return text
    x, arguments, settings = sample.theirs
    dims = [v for v in arguments if not isinstance(v, bool)]
    dim = settings.get("dim", dims[-1] if dims and (values is None or len(dims) > 1 or positions.shape == x.shape) else -1)
    read = torch.from_numpy(our_positions.numpy())
    return difference(x.detach().gather(dim, positions), ours(x.detach().gather(dim, read))) if x.ndim else ""


def takes_out(op: Any) -> bool:
    if not op.supports_out or op.name in ADAPTERS or op.name in UNDETERMINED:
        return False
    return "out" in inspect.signature(our_function(op.name)).parameters


def judge_out(verdict: Verdict, op: Any, sample: Sample, dtype: str) -> None:
    x, arguments, settings = sample.ours
    with mg.no_grad():
        expected, error = attempt(lambda: our_function(op.name)(x, *arguments, **settings))
        if error is not None or not isinstance(expected, mg.Tensor):
            return
        out = mg.empty_like(expected)
        found, error = attempt(lambda: our_function(op.name)(x, *arguments, **settings, out=out))
    verdict.compared += 1
    if error is not None or found is not out or not mg.allclose(out, expected, equal_nan=True):
        verdict.fail(f"out= {dtype} ({sample}): {error!r} {found}")


# --------------------------------------------------------------------------------------------------------------- the tests

@pytest.mark.parametrize("op", CLAIMED, ids=entry_id)
def test_entry(op: Any, record_property: Any) -> None:
    verdict = judge(op)
    record_property("op_db", (verdict.entry, verdict.compared, bool(verdict.failures), PARTLY.get(verdict.entry, "") if verdict.missing else ""))
    shown = "\n".join(verdict.failures[:5])
    assert not verdict.failures, f"{len(verdict.failures)} of {verdict.compared} calls differ\n{shown}"
    assert not verdict.missing or verdict.entry in PARTLY, f"not implemented: {dict(verdict.missing)}"
    assert verdict.compared or verdict.entry in PARTLY
    assert verdict.missing or verdict.entry not in PARTLY, "listed in PARTLY, and complete"
    unused = [meant for meant in DELIBERATE if meant.entry == verdict.entry and meant not in verdict.excused]
    assert not unused, f"listed in DELIBERATE, and not different: {unused}"


def test_what_is_missing(record_property: Any) -> None:
    """Counts the entries under names that are not here, for the summary."""
    missing = [op for op in op_db if our_function(op.name) is None]
    spaces = Counter(op.name.rpartition(".")[0] or "torch" for op in missing)
    record_property("op_db_missing", f"{len(missing)} of {len(op_db)}: " + ", ".join(f"{n} {space}" for space, n in spaces.most_common()))
    record_property("op_db_deliberate", [f"{meant.entry}: {meant.reason}" for meant in DELIBERATE])
    assert len(missing) + len(CLAIMED) == len(op_db)


@pytest.mark.parametrize("op", [op for op in CLAIMED if op.error_inputs_func is not None], ids=entry_id)
def test_bad_inputs(op: Any) -> None:
    drawn, refused = attempt(lambda: [e.sample_input for e in op.error_inputs("cpu")], quiet=True)
    assert refused is None, refused
    form = next(forms(op))
    failed = []
    for sample in filter(None, map(both, drawn)):
        (x, arguments, settings), (our_x, our_arguments, our_settings) = sample
        _, theirs = attempt(lambda: form.theirs(x, *arguments, **settings), quiet=True)
        _, mine = attempt(lambda: form.ours(our_x, *our_arguments, **our_settings))
        if theirs is None or any(words in str(theirs) for words in LENIENT) or "unexpected keyword argument" in str(mine):
            continue
        if mine is None or not stands_for(theirs, mine) or not isinstance(mine, mg.MutagradError):
            failed.append(f"({sample}): {mine!r}, where PyTorch raised {type(theirs).__name__}: {theirs}")
    assert not failed, "\n".join(failed[:5])
