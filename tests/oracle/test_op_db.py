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
from copy import deepcopy
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
torch.set_num_threads(1)  # samples are small: where cores are busy, waiting for its threads takes PyTorch twenty times as long as the work

# Element types, and whether to take PyTorch's long list of samples (odd strides, extreme values) or its short one.
TYPES = {torch.float64: True, torch.int64: True, torch.float32: False, torch.bool: False, torch.complex64: False}
LARGEST = 2000  # elements in a sample; PyTorch has some of a million, which say no more
FEW = 4  # samples of an entry that has only larger ones
MOST = 150  # samples of an entry and type, taken evenly from all
OUT_SAMPLES = 3  # so many with `out=` for each type
# Below zero, both libraries sum as many terms as the input is large: inputs of millions would take seconds, so they are raised to this.
LOWEST = {"polygamma": -1000.25, "special.polygamma": -1000.25}

# Results are whatever the memory or the generator held: only shape and type are compared.
UNDETERMINED = {"empty_permuted", "empty_strided", "new_empty_strided", "empty", "empty_like", "new_empty", "rand_like", "randint", "randint_like", "randn", "randn_like", "bernoulli", "cauchy", "exponential",
                "geometric", "log_normal", "multinomial", "normal", "uniform", "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
                "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
                "nn.functional.fractional_max_pool3d", "svd_lowrank"}
# Results are sparse: they are compared as dense ones.
TO_DENSE = {"to_sparse"}
# Entries that are the in-place form only, under a name without the underscore.
ONLY_IN_PLACE = {"cauchy", "exponential", "geometric", "log_normal", "uniform"}
# PyTorch leaves the order of equal elements open: the positions must only lead to the same values.
ANY_ORDER = {"sort", "argsort", "topk", "kthvalue"}
# Vectors are determined only up to sign or phase: the table says which function of the results is to be compared.
UP_TO_PHASE = {"linalg.eig", "linalg.eigh", "linalg.svd", "pca_lowrank", "svd"}
# Sums of hundreds of products in another order: in single precision, what cancels leaves other remainders.
LONG_SUMS = {"grid_sampler_2d", "nn.functional.grid_sample", *(f"nn.functional.conv{kind}{n}d" for kind in ("", "_transpose") for n in (2, 3))}
LOOSE = 3e-5, 1e-3
# Badly conditioned samples: in single precision, two ways to compute the derivative share only so many digits.
FEW_DIGITS = {"linalg.householder_product", "linalg.lstsq", "linalg.pinv", "linalg.svd", "linalg.tensorsolve", "ormqr", "pca_lowrank", "svd"}
VERY_LOOSE = 1e-2, 1e-2
# Entries whose arguments come in an order of their own.
ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "einsum": lambda f: lambda tensors, equation: f(equation, tensors),
    "linalg.lstsq-grad_oriented": lambda f: lambda a, b, driver: f(a, b, driver=driver)[:2],
    "linalg.pinv-singular": lambda f: lambda a, b: f(a @ b.mT),
    "pca_lowrank": lambda f: lambda a, b, **settings: f(a @ b.mT, **settings),
    "svd_lowrank": lambda f: lambda a, b, **settings: f(a @ b.mT, **settings),
    "polygamma": lambda f: lambda x, n: f(n, x),
    "special.polygamma": lambda f: lambda x, n: f(n, x),
    "where": lambda f: lambda x, condition, other: f(condition, x, other),
    "nn.functional.triplet_margin_with_distance_loss": lambda f: lambda *xs, distance_function=None, **settings: f(*xs, **settings),  # PyTorch's own module
    "zero_": lambda f: lambda x: f(x.clone()),
    "normal-in_place": lambda f: mg.Tensor.normal_,
    "normal-number_mean": lambda f: lambda std, mean, *size, **settings: f(mean, std, *size, **settings),
    **dict.fromkeys(("nn.functional.embedding", "nn.functional.embedding_bag"), lambda f: lambda table, index, **settings: f(index, table, **settings)),
}

# What we refuse although PyTorch takes it.
PARTLY = {
    **dict.fromkeys(("nn.functional.linear_cross_entropy-chunked", "nn.functional.linear_cross_entropy-chunked_none"), "options: the logits in chunks"),
    "logaddexp": "complex numbers",
    **dict.fromkeys(("sparse.mm-reduce", "sparse.sampled_addmm"), "its samples, which are sparse, in this table: tests/oracle/test_sparse.py has others"),
    "chalf": "complex numbers of half precision",
}


class Deliberate(NamedTuple):
    """A difference that is meant: failures of this entry with these words in them are not failures."""

    entry: str
    words: str
    reason: str


DELIBERATE = (
    *(Deliberate(f"special.{name}", "values", "PyTorch's own is right to seven digits in double precision")
      for name in ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1")),
    Deliberate("special.log_ndtr", "gradient", "PyTorch's cancels far to the left"),
    Deliberate("special.zeta", "values [0.0], not [nan]", "the limit"),
    Deliberate("digamma", "gradient", "PyTorch's trigamma is right to eight digits"),
    *(Deliberate(f"polygamma-polygamma_n_{n}", "values [-0.0, -0.0, -0.0], not [nan", "the limit at infinity") for n in (1, 2, 3, 4)),
    *(Deliberate(entry, "values [nan, nan], not [", "nan in, nan out, beside infinity too") for entry in ("igamma", "igammac")),
    Deliberate("copysign", "not [nan, nan, nan", "the sign of an infinite number turns it over, too"),
    Deliberate("addcdiv", "bfloat16[5, 5], float32[1, 5]", "PyTorch rounds the numerator to bfloat16 on its way to a float32 gradient"),
    Deliberate("polar", "gradient [0]", "PyTorch's is zero at zero, and of the wrong sign below"),
    Deliberate("addbmm", "cannot be written into a tensor of shape", "a write in place never changes the shape of its target"),
    Deliberate("cholesky_inverse", "gradient [0]", "the other triangle of the factor is not read, so it has no gradient"),
    Deliberate("cholesky_solve", "gradient [1]", "the other triangle of the factor is not read, so it has no gradient"),
    Deliberate("linalg.eig", "complex64[1, 1, 5, 5]", "eigenvalues come in no order, and LAPACKs differ"),
    Deliberate("linalg.eigvals", "complex64[1, 1, 5, 5]", "eigenvalues come in no order, and LAPACKs differ"),
    Deliberate("nn.functional.celu", "alpha=0.8): gradient [0]", "PyTorch divides by alpha in single precision"),
    Deliberate("nn.functional.hardsigmoid", "): gradient [0]", "PyTorch multiplies by a sixth in single precision"),
    Deliberate("nn.functional.margin_ranking_loss", "not [nan]", "a zero adjoint stays zero beside an infinite difference"),
    Deliberate("nn.functional.ctc_loss", "gradient [0]", "PyTorch gives the gradient for what log_softmax was taken of, not for its result"),
    Deliberate("abs", "In-place abs is not supported for complex", "the real result is written into the complex tensor"),
    Deliberate("as_strided_scatter", "gradient [0]", "what was written over has no influence on the result"),
    Deliberate("signal.windows.kaiser", "beta=100", "PyTorch computes in float32, where this overflows"),
    Deliberate("renorm", "not [(nan+nanj)", "PyTorch's gradient of a complex infinity norm is nan"),
    Deliberate("cov", "complex64[3, 2], correction=1, fweights=None, aweights=float32[2]", "two weights have no influence: what is left is rounding"),
    *(Deliberate("logcumsumexp", f"({kind}[5, 5, 5]", "beside 10000 PyTorch's gradient loses digits, as it goes through logarithms")
      for kind in ("float32", "complex64")),
    Deliberate("index_copy", "gradient [1]", "of duplicate indices the last wins, and the gradient goes to the winner only"),
    *(Deliberate(f"nn.functional.max_unpool{n}d", "gradient [0]", "of duplicate indices the last wins, and the gradient goes to the winner only")
      for n in (1, 2, 3)),
    Deliberate("native_layer_norm", "float32[1", "in float32 PyTorch loses more digits of nearly equal elements than the tolerance allows"),
    Deliberate("nn.functional.scaled_dot_product_attention", "dropout_p=0.5", "dropout draws other numbers"),
    Deliberate("nn.functional.multi_head_attention_forward", "[0] values", "dropout, which every sample has, draws other numbers"),
    Deliberate("nn.functional.scaled_dot_product_attention", "function float32", "in float32 large scores leave few digits of the gradient's differences"),
)

# Bad inputs that are good here: words of PyTorch's error, and the reason.
LENIENT = {
    "must be Tensor, not": "a number is taken for a 0-d tensor",
    "invalid combination of arguments": "a number is taken for a 0-d tensor",
    "must be tuple of Tensors, not Tensor": "a tensor is the sequence of its rows",
    "the written-to tensor refer to a single memory location": "a statement reads before it writes",
    "doesn't apply to a 'int' object": "a number is taken for a 0-d tensor",
    "'int' object has no attribute 'reciprocal'": "a number is taken for a 0-d tensor",
    "Trying to resize storage that is not resizable": "out without elements takes the shape of the result",
    "Expected out tensor to have dtype": "a result is converted to the type of out where that loses nothing",
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
    if name in ONLY_IN_PLACE:
        return our_method(name + "_")
    return found if callable(found) else our_method(name)


def namespace(op: Any) -> str:
    """Where PyTorch has the entry: "torch", "linalg", "nn.functional"."""
    return "torch.ops" if op.name.startswith("torch.ops.") else op.name.rpartition(".")[0] or "torch"


def our_method(name: str) -> Any:
    found = getattr(mg.Tensor, name, None)
    return found.fget if isinstance(found, property) else found


class Form(NamedTuple):
    """One way to call an entry, in both libraries."""

    name: str
    theirs: Callable[..., Any]
    ours: Callable[..., Any]


def forms(op: Any) -> Iterator[Form]:
    adapted = ADAPTERS.get(entry_id(op)) or ADAPTERS.get(op.name, lambda f: f)
    function, method = our_function(op.name), our_method(op.name)
    if op.name in TO_DENSE:
        yield Form("function", dense(op.op), dense(function))
        return
    yield Form("function", op.op, adapted(function))
    if method is not None and method is not function and op.method_variant is not None:
        yield Form("method", op.method_variant, method)
    written = our_method(op.name + "_")
    if written is not None and op.inplace_variant is not None:
        yield Form("in place", on_copy(op.inplace_variant), on_copy(written))


def dense(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **settings: f(*arguments, **settings).to_dense()


def on_copy(write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *arguments, **settings: write(x.clone(), *arguments, **settings)


HERE = [op for op in op_db if any(dtype in op.supported_dtypes("cpu") for dtype in TYPES)]  # the rest is for other devices
CLAIMED = [op for op in HERE if our_function(op.name) is not None]


# ------------------------------------------------------------------------------------------------------------- the samples

class Sample(NamedTuple):
    theirs: tuple[Any, tuple[Any, ...], dict[str, Any]]
    ours: tuple[Any, tuple[Any, ...], dict[str, Any]]
    determined: Callable[[Any], Any]

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
    for s in drawn if op.name in LOWEST else ():
        if bool((s.input.detach() < LOWEST[op.name]).any()):
            s.input.detach().clamp_(min=LOWEST[op.name])
    small = [s for s in drawn if sum(t.numel() for t in tensors((s.input, s.args, s.kwargs))) <= LARGEST] or drawn[:FEW]
    return [found for s in small[::len(small) // MOST + 1] if (found := both(s)) is not None]


def both(s: Any) -> Sample | None:
    """A sample of PyTorch's in either library; None where we have no such tensor."""
    if any(isinstance(t, torch.Tensor) and t.layout is not torch.strided for t in tensors((s.input, s.args, s.kwargs))):
        return None
    parts = deepcopy((leaf(s.input), leaf(s.args), leaf(s.kwargs)))  # samples may share a tensor that the entry writes to
    converted, error = attempt(lambda: tuple(map(ours, parts)))
    if error is not None and not isinstance(error, (Unmapped, ValueError, mg.MutagradError)):
        raise error
    return None if error is not None else Sample(parts, converted, s.output_process_fn_grad)


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
    if not verdict.compared and not verdict.failures and not verdict.missing:
        verdict.missing["tensors like those of the samples"] += 1
    return verdict


def judge_call(verdict: Verdict, op: Any, form: Form, sample: Sample, dtype: str) -> None:
    (x, arguments, settings), (our_x, our_arguments, our_settings) = sample.theirs, sample.ours
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
    if op.name in UP_TO_PHASE:
        expected, found = sample.determined(expected), sample.determined(found)
    loose = LOOSE if op.name in LONG_SUMS else VERY_LOOSE if op.name in FEW_DIGITS else None
    loose = loose if loose and sample.theirs[0].dtype in (torch.float32, torch.complex64) else None
    text = any_order(expected, found, sample) if op.name in ANY_ORDER else difference(expected, found, op.name not in UNDETERMINED, loose)
    return text or ("" if op.name in UNDETERMINED else gradient_difference(expected, found, sample.theirs, sample.ours, loose))


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
    if positions.ndim < x.ndim:
        positions, read = positions.unsqueeze(dim), read.unsqueeze(dim)
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
    missing = [op for op in HERE if our_function(op.name) is None]
    spaces = Counter(map(namespace, missing))
    record_property("op_db_missing", f"{len(missing)} of {len(HERE)}: " + ", ".join(f"{n} {space}" for space, n in spaces.most_common()))
    record_property("op_db_deliberate", [f"{meant.entry}: {meant.reason}" for meant in DELIBERATE])
    assert len(missing) + len(CLAIMED) == len(HERE)


@pytest.mark.parametrize("op", [op for op in CLAIMED if op.error_inputs_func is not None], ids=entry_id)
def test_bad_inputs(op: Any) -> None:
    drawn, refused = attempt(lambda: [e.sample_input for e in op.error_inputs("cpu")], quiet=True)
    assert refused is None, refused
    form = next(forms(op))
    failed = []
    for sample in filter(None, map(both, drawn)):
        (x, arguments, settings), (our_x, our_arguments, our_settings) = sample.theirs, sample.ours
        _, theirs = attempt(lambda: form.theirs(x, *arguments, **settings), quiet=True)
        _, mine = attempt(lambda: form.ours(our_x, *our_arguments, **our_settings))
        if theirs is None or any(words in str(theirs) for words in LENIENT) or "unexpected keyword argument" in str(mine):
            continue
        if mine is None or not stands_for(theirs, mine) or not isinstance(mine, mg.MutagradError):
            failed.append(f"({sample}): {mine!r}, where PyTorch raised {type(theirs).__name__}: {theirs}")
    assert not failed, "\n".join(failed[:5])
