"""Tensors where numbers are meant. Every numeric argument of every public function, method and layer is tried:

- a tensor that requires a gradient is differentiated, as finite differences say, or refused by a TypeError of ours: its
  gradient is never lost without a word;
- a 0-d tensor that does not require one gives what the number gives, or is refused by an error of ours;
- it is taken by its value at the call: a later write to it does not change a derivative.

The calls are those of the table in `samples/`, with each of their numbers exchanged in turn, and for arguments that no
sample gives, one of them with the argument's default value added. What has no sample is called in `CALLS` below.
"""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import distributions as D, nn, optim
from mutagrad.errors import MissingExtra
from samples import ALIASES, SAMPLES, Sample, listed, named
from test_modules import LAYERS
from test_ops import public

pytestmark = [pytest.mark.filterwarnings("ignore:range is deprecated"),
              pytest.mark.filterwarnings("ignore:gumbel_softmax. eps has no effect")]
STEP = 1e-6


class Case(NamedTuple):
    """A call with a number to exchange: what is called, which argument, its value, `call(value, *inputs)`."""

    name: str
    argument: str
    value: float
    call: Callable[..., Any]
    inputs: tuple[Any, ...] = ()

    def results(self, value: Any, leaves: bool = False) -> list[Any]:
        """The tensors that it gives, on inputs that are leaves or constants, always with the same random numbers."""
        mg.manual_seed(0)
        found = self.call(value, *(mg.tensor(a, requires_grad=leaves and a.dtype.kind == "f") for a in self.inputs))
        return [r for r in listed(found) if isinstance(r, mg.Tensor)]


def weigh(results: list[Any]) -> Any:
    """A number to differentiate: every element counts, and none as much as another. None if there are only integers."""
    real = [p for r in results for p in ((r.real, r.imag) if r.is_complex() else (r,))]
    parts = [p for p in real if p.is_floating_point() and p.numel()]
    if not parts:
        return None
    return sum((p * mg.linspace(0.5, 1.5, p.numel(), dtype=p.dtype).reshape(p.shape)).sum() for p in parts)


# ----------------------------------------------------------------------------------------------------- calls of samples

def exchanged(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same nest of arguments with `new` in one place."""
    if not path:
        return new
    if isinstance(value, dict):
        return {k: exchanged(v, path[1:], new) if k == path[0] else v for k, v in value.items()}
    return type(value)(exchanged(v, path[1:], new) if i == path[0] else v for i, v in enumerate(value))


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from numbers_in(v, (*path, i))


def forms(sample: Sample) -> dict[str, Callable[..., Any]]:
    """The function, the method, and the method in place."""
    found = sample.forms(mg)
    written = getattr(mg.Tensor, f"{sample.name}_", None)
    if "method" in found and written is not None and not sample.view:
        found["in place"] = lambda x, *given, **settings: getattr(x.clone(), f"{sample.name}_")(*given, **settings)
    return found


def sampled(sample: Sample, form: Callable[..., Any], path: tuple[Any, ...], extra: dict[str, Any]) -> Any:
    """The call of a sample with its number at `path` exchanged."""
    def call(value: Any, *tensors: Any) -> Any:
        first = (tensors[0].clone(), *tensors[1:]) if sample.writes else tensors
        arguments, settings = sample.bind(list(first), mg.tensor)
        settings |= extra
        nest = exchanged({"arguments": arguments, "settings": settings}, path, value)
        result = form(*nest["arguments"], **nest["settings"])
        return first[0] if sample.writes else result

    return call


def defaults(sample: Sample, form: str) -> Iterator[tuple[str, float]]:
    """The arguments with numbers for defaults that a sample does not give; one that may be left out counts as 0.3."""
    method = sample.name + "_" * (form == "in place")
    function = named(mg, sample.name) if form == "function" else getattr(mg.Tensor, method, None)
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
        given = signature.bind_partial(*sample.arguments, **sample.settings).arguments
    except TypeError:
        return
    for name, p in signature.parameters.items():
        if name not in given and p.kind is not p.VAR_KEYWORD and not name.startswith("_"):
            if isinstance(p.default, (int, float)) and not isinstance(p.default, bool):
                yield name, p.default
            elif p.default is None and "float" in str(p.annotation):
                yield name, 0.3


def works(case: Case) -> bool:
    """Whether the call itself, with the number, is a good one."""
    try:
        case.results(case.value)
    except Exception:
        return False
    return True


def of_samples() -> Iterator[Case]:
    seen = set()
    for s in SAMPLES:
        for form, function in forms(s).items():
            for kind, path, value, extra in [
                    *(("given", ("arguments", *path), v, {}) for path, v in numbers_in(s.arguments)),
                    *(("given", ("settings", k, *path), v, {})
                      for k, given in s.settings.items() for path, v in numbers_in(given)),
                    *(("default", ("settings", k), v, {k: v}) for k, v in defaults(s, form))]:
                argument = ".".join(map(str, path[1:]))
                case = Case(f"{s.name} {form}", argument, value, sampled(s, function, path, extra), tuple(s.arrays()))
                key = case.name, argument
                if (kind == "given" or key not in seen) and works(case):
                    seen.add(key)
                    yield case


# ---------------------------------------------------------------------------------------------------------- other calls

X = np.linspace(0.1, 0.9, 40).reshape(5, 8)
MAPS = np.linspace(0.1, 0.9, 2 * 4 * 5 * 5).reshape(2, 4, 5, 5)
SIGNS = np.where(np.arange(40).reshape(5, 8) % 3, 1.0, -1.0)
SIGN = np.where(np.arange(5) % 2, 1.0, -1.0)
F, init, windows = nn.functional, nn.init, mg.signal.windows

# Where no sample says how it is called: the function, the argument, its value, the call, and its inputs.
CALLS: list[tuple[str, str, float, Callable[..., Any], tuple[Any, ...]]] = [
    ("arange", "start", 0.5, lambda v: mg.arange(v, 3.2), ()), ("arange", "end", 2.5, lambda v: mg.arange(v), ()),
    ("arange", "step", 0.5, lambda v: mg.arange(0, 3.2, v), ()),
    ("linspace", "start", 0.5, lambda v: mg.linspace(v, 3, 4, dtype=mg.float64), ()),
    ("linspace", "end", 2.5, lambda v: mg.linspace(-1, v, 4, dtype=mg.float64), ()),
    ("linspace", "end", 2.5, lambda v: mg.linspace(1, v, 1, dtype=mg.float64), ()),
    ("linspace", "end", 2.5, lambda v: mg.linspace(1, v, 0, dtype=mg.float64), ()),
    ("linspace", "end", 2.5, lambda v: mg.linspace(1, v, 5, out=mg.zeros(5, dtype=mg.float64)), ()),
    ("logspace", "start", 0.5, lambda v: mg.logspace(v, 3, 4, dtype=mg.float64), ()),
    ("logspace", "end", 1.5, lambda v: mg.logspace(0, v, 4, dtype=mg.float64), ()),
    ("logspace", "base", 2.5, lambda v: mg.logspace(0, 2, 4, v, dtype=mg.float64), ()),
    ("range", "start", 0.5, lambda v: mg.range(v, 3.2), ()), ("range", "end", 2.5, lambda v: mg.range(0, v), ()),
    ("range", "step", 0.5, lambda v: mg.range(0, 3.2, v), ()),
    ("full", "fill_value", 0.5, lambda v: mg.full((3,), v, dtype=mg.float64), ()),
    ("full_like", "fill_value", 0.5, lambda v, x: mg.full_like(x, v), (X,)),
    ("Tensor.new_full", "fill_value", 0.5, lambda v, x: x.new_full((3,), v), (X,)),
    ("scalar_tensor", "s", 0.5, lambda v: mg.scalar_tensor(v), ()),
    ("eye", "n", 3, lambda v: mg.eye(v), ()), ("zeros", "size", 3, lambda v: mg.zeros(2, v), ()),
    ("empty", "size", 3, lambda v: mg.empty((2, v)).fill_(0), ()),
    ("Tensor.fill_", "value", 0.5, lambda v, x: x.clone().fill_(v), (X,)),
    ("Tensor.__setitem__", "value", 0.5, lambda v, x: assigned(x.clone(), v), (X,)),
    ("normal", "mean", 0.5, lambda v: mg.normal(v, 1.0, (2,)), ()),
    ("normal", "std", 0.5, lambda v: mg.normal(0.0, v, (2,)), ()),
    *((f"Tensor.{name}", argument, 0.5,
     lambda v, x, name=name, argument=argument: getattr(x.clone(), name)(**{argument: v}), (X,)) for name, argument in (
        ("normal_", "mean"), ("normal_", "std"), ("cauchy_", "median"), ("cauchy_", "sigma"),
        ("exponential_", "lambd"), ("geometric_", "p"), ("log_normal_", "mean"),
        ("log_normal_", "std"), ("uniform_", "from"), ("uniform_", "to"))),
    ("Tensor.random_", "to", 5, lambda v, x: x.clone().random_(v), (X,)),
    ("Tensor.random_", "from", 2, lambda v, x: x.clone().random_(v, 9), (X,)),
    *((f"{room}{name}{under}", "p", 0.5,
       lambda v, x, name=f"{room}{name}{under}": named(mg, name)(x.clone(), v, True),
       (MAPS[0] if "1d" in name else MAPS,))
      for room, names in (("", "dropout alpha_dropout feature_dropout feature_alpha_dropout"),
                          ("nn.functional.",
                           "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"))
      for name in names.split() for under in ("", "_") if named(mg, f"{room}{name}{under}") is not None),
    ("native_dropout", "p", 0.5, lambda v, x: mg.native_dropout(x, v, True), (X,)),
    ("native_dropout_backward", "scale", 0.5, lambda v, x: mg.native_dropout_backward(x, x > 0.5, v), (X,)),
    ("nn.functional.scaled_dot_product_attention", "dropout_p", 0.5,
     lambda v, x: F.scaled_dot_product_attention(x, x, x, dropout_p=v), (X,)),
    ("nn.functional.gumbel_softmax", "tau", 0.5, lambda v, x: F.gumbel_softmax(x, v), (X,)),
    ("nn.functional.gumbel_softmax", "eps", 0.1, lambda v, x: F.gumbel_softmax(x, 1.0, eps=v), (X,)),
    ("rrelu", "lower", 0.1, lambda v, x: mg.rrelu(-x, v, 0.3, True), (X,)),
    ("rrelu", "upper", 0.3, lambda v, x: mg.rrelu(-x, 0.1, v, True), (X,)),
    ("bartlett_window", "window_length", 5, lambda v: mg.bartlett_window(v), ()),
    ("hamming_window", "alpha", 0.5, lambda v: mg.hamming_window(5, True, v), ()),
    ("hamming_window", "beta", 0.5, lambda v: mg.hamming_window(5, True, 0.5, v), ()),
    ("kaiser_window", "beta", 0.5, lambda v: mg.kaiser_window(5, True, v), ()),
    ("signal.windows.exponential", "center", 0.5, lambda v: windows.exponential(5, center=v, sym=False), ()),
    ("signal.windows.exponential", "tau", 0.5, lambda v: windows.exponential(5, tau=v), ()),
    ("signal.windows.gaussian", "std", 0.5, lambda v: windows.gaussian(5, std=v), ()),
    ("signal.windows.general_cosine", "a", 0.5, lambda v: windows.general_cosine(5, a=[v, 0.3]), ()),
    ("signal.windows.general_hamming", "alpha", 0.5, lambda v: windows.general_hamming(5, alpha=v), ()),
    ("signal.windows.kaiser", "beta", 0.5, lambda v: windows.kaiser(5, beta=v), ()),
    ("fft.fftfreq", "d", 0.5, lambda v: mg.fft.fftfreq(5, v), ()),
    ("fft.rfftfreq", "d", 0.5, lambda v: mg.fft.rfftfreq(5, v), ()),
    ("batch_norm", "eps", 0.5, lambda v, x: mg.batch_norm(x, None, None, None, None, True, 0.1, v, False), (MAPS,)),
    ("batch_norm", "momentum", 0.5,
     lambda v, x: mg.batch_norm(x, None, None, x[0, 0, 0, :4] * 0, x[0, 0, 0, :4] * 0, True, v, 0.1, False), (MAPS,)),
    ("nn.functional.batch_norm", "momentum", 0.5,
     lambda v, x: running(lambda a, b: F.batch_norm(x, a, b, training=True, momentum=v)), (MAPS,)),
    ("nn.functional.instance_norm", "momentum", 0.5,
     lambda v, x: running(lambda a, b: F.instance_norm(x, a, b, momentum=v)), (MAPS,)),
    ("instance_norm", "eps", 0.5, lambda v, x: mg.instance_norm(x, None, None, None, None, True, 0.1, v, False),
     (MAPS,)),
    ("instance_norm", "momentum", 0.5,
     lambda v, x: running(lambda a, b: mg.instance_norm(x, None, None, a, b, True, v, 0.1, False)), (MAPS,)),
    ("native_batch_norm", "eps", 0.5, lambda v, x: mg.native_batch_norm(x, None, None, None, None, True, 0.1, v),
     (MAPS,)),
    ("native_batch_norm", "momentum", 0.5,
     lambda v, x: running(lambda a, b: mg.native_batch_norm(x, None, None, a, b, True, v, 0.1)), (MAPS,)),
    ("native_layer_norm", "eps", 0.5, lambda v, x: mg.native_layer_norm(x, [8], None, None, v), (X,)),
    ("binary_cross_entropy_with_logits", "reduction", 1,
     lambda v, x: mg.binary_cross_entropy_with_logits(x, x.detach(), None, None, v), (X,)),
    ("cosine_embedding_loss", "margin", 0.5, lambda v, x, s: mg.cosine_embedding_loss(x, x.flip(1), s, v), (X, SIGN)),
    ("hinge_embedding_loss", "margin", 1.5, lambda v, x, s: mg.hinge_embedding_loss(x, s, v), (X, SIGNS)),
    ("margin_ranking_loss", "margin", 0.5, lambda v, x, s: mg.margin_ranking_loss(x, x.flip(0), s, v), (X, SIGNS)),
    ("triplet_margin_loss", "margin", 0.5, lambda v, x: mg.triplet_margin_loss(x, x.flip(0), x.flip(1), v), (X,)),
    ("triplet_margin_loss", "p", 3.0, lambda v, x: mg.triplet_margin_loss(x, x.flip(0), x.flip(1), 2.0, v), (X,)),
    ("triplet_margin_loss", "eps", 0.5, lambda v, x: mg.triplet_margin_loss(x, x.flip(0), x.flip(1), 2.0, 2.0, v),
     (X,)),
    ("poisson_nll_loss", "eps", 0.5, lambda v, x: mg.poisson_nll_loss(x, x.flip(1), False, False, v, 1), (X,)),
    ("segment_reduce", "initial", 0.5, lambda v, x: mg.segment_reduce(x, "sum", lengths=mg.tensor([2, 3]), initial=v),
     (X,)),
    ("segment_reduce", "initial", 0.5, lambda v, x: mg.segment_reduce(x, "max", lengths=mg.tensor([2, 3]), initial=v),
     (X,)),
    ("histogramdd", "range", 0.5, lambda v, x: mg.histogramdd(x[:, :2], [2, 2], range=[0.0, v, 0.0, 1.0])[0], (X,)),
    ("fake_quantize_per_tensor_affine", "scale", 0.5, lambda v, x: mg.fake_quantize_per_tensor_affine(x, v, 0, -5, 5),
     (X,)),
    ("norm_except_dim", "pow", 2, lambda v, x: mg.norm_except_dim(x, v), (X,)),
    ("nn.functional.fractional_max_pool2d", "output_ratio", 0.6,
     lambda v, x: F.fractional_max_pool2d(x, 2, output_ratio=v), (MAPS,)),
    ("nn.functional.embedding", "max_norm", 0.5,
     lambda v, x: F.embedding(mg.tensor([0, 2]), x.detach().clone(), max_norm=v), (X,)),
    ("nn.functional.embedding", "norm_type", 1.5,
     lambda v, x: F.embedding(mg.tensor([0, 2]), x.detach().clone(), max_norm=0.5, norm_type=v), (X,)),
    ("nn.functional.embedding_bag", "max_norm", 0.5,
     lambda v, x: F.embedding_bag(mg.tensor([[0, 2]]), x.detach().clone(), max_norm=v), (X,)),
    ("nn.functional.embedding_bag", "norm_type", 1.5,
     lambda v, x: F.embedding_bag(mg.tensor([[0, 2]]), x.detach().clone(), max_norm=0.5, norm_type=v), (X,)),
    ("special.logit", "eps", 0.3, lambda v, x: mg.special.logit(x, v), (X,)),
    ("Tensor.float_power", "exponent", 1.5, lambda v, x: x.float_power(v), (X,)),
    ("float_power", "input", 1.5, lambda v, x: mg.float_power(v, x), (X,)),
    ("xlogy", "input", 1.5, lambda v, x: mg.xlogy(v, x), (X,)),
    *((f"where {k}", k, 0.5, lambda v, x, k=k: mg.where(x > 0.5, **({"input": x, "other": x} | {k: v})),
     (X,)) for k in ("input", "other")),
    ("pca_lowrank", "q", 2, lambda v, x: mg.pca_lowrank(x, v)[1], (X,)),
    ("svd_lowrank", "q", 2, lambda v, x: mg.svd_lowrank(x, v)[1], (X,)),
    ("Tensor.addmv_", "beta", 0.5, lambda v, x: x[:, 0].clone().addmv_(x, x[0], beta=v), (X,)),
    ("Tensor.addmv_", "alpha", 0.5, lambda v, x: x[:, 0].clone().addmv_(x, x[0], alpha=v), (X,)),
    ("nn.functional.cosine_similarity", "eps", 0.5, lambda v, x: F.cosine_similarity(x * 0.1, x.flip(1) * 0.1, eps=v),
     (X,)),
    *((f"linalg.{name}", k, 0.01, lambda v, x, name=name, k=k: named(mg.linalg, name)(x, **{k: v}),
     (X,)) for name in ("pinv", "matrix_rank") for k in ("rtol", "atol")),
    ("linalg.lstsq", "rcond", 0.01, lambda v, x: mg.linalg.lstsq(x, x[:, :1], rcond=v)[0], (X,)),
    ("array_api.full", "fill_value", 0.5, lambda v: mg.array_api.full((2,), v, dtype=mg.float64), ()),
    ("array_api.linspace", "stop", 0.5, lambda v: mg.array_api.linspace(0, v, 3, dtype=mg.float64), ()),
    ("array_api.arange", "stop", 2.5, lambda v: mg.array_api.arange(v), ()),
    ("_foreach_addcmul", "value", 0.5, lambda v, x: mg._foreach_addcmul([x], [x], [x], value=v)[0], (X,)),
    ("_foreach_add", "alpha", 0.5, lambda v, x: mg._foreach_add([x], [x], alpha=v)[0], (X,)),
    ("pad_sequence", "padding_value", 0.5,
     lambda v, x: nn.utils.rnn.pad_sequence([x[0], x[1, :3]], padding_value=v), (X,)),
    ("masked.var", "correction", 1, lambda v, x: mg.masked.var(x, 1, correction=v, mask=x > 0.05), (X,)),
]


def assigned(x: Any, value: Any) -> Any:
    x[1:, ::2] = value
    return x


def running(normalize: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The running statistics that a batch leaves behind."""
    statistics = mg.zeros(4, dtype=mg.float64), mg.ones(4, dtype=mg.float64)
    normalize(*statistics)
    return statistics


# Arguments where a tensor means something else than a number, as in PyTorch: of `max(x, y)` the other operand, of
# `scatter` a source that must cover the index. HuberLoss takes Python's numbers only.
ELSE = {("max", "1"), ("min", "1"), ("scatter", "3"), ("nn.HuberLoss", "delta")}


# Distributions by their numbers, with a value to ask the density of; transforms of numbers with one to transform.
DISTRIBUTIONS: dict[str, tuple[dict[str, float], float]] = {
    "Normal": ({"loc": 0.3, "scale": 1.2}, 0.7), "LogNormal": ({"loc": 0.3, "scale": 1.2}, 0.7),
    "Uniform": ({"low": -1.2, "high": 2.3}, 0.7),
    "Exponential": ({"rate": 1.3}, 0.7), "Laplace": ({"loc": 0.3, "scale": 1.2}, 0.7),
    "HalfNormal": ({"scale": 1.2}, 0.7), "HalfCauchy": ({"scale": 1.2}, 0.7),
    "Cauchy": ({"loc": 0.3, "scale": 1.2}, 0.7), "Gumbel": ({"loc": 0.3, "scale": 1.2}, 0.7),
    "StudentT": ({"df": 3.3, "loc": 0.3, "scale": 1.2}, 0.7),
    "Gamma": ({"concentration": 1.3, "rate": 1.2}, 0.7),
    "Beta": ({"concentration1": 1.3, "concentration0": 1.2}, 0.7), "Chi2": ({"df": 3.3}, 0.7),
    "Bernoulli": ({"probs": 0.3}, 1.0), "Geometric": ({"probs": 0.3}, 2.0), "Binomial": ({"probs": 0.3}, 1.0),
    "Poisson": ({"rate": 1.3}, 2.0),
    "NegativeBinomial": ({"total_count": 5.5, "probs": 0.3}, 2.0), "ContinuousBernoulli": ({"probs": 0.3}, 0.7),
    "Pareto": ({"scale": 0.3, "alpha": 1.2}, 0.7),
    "GeneralizedPareto": ({"loc": 0.1, "scale": 1.2, "concentration": 0.3}, 0.7),
    "Weibull": ({"scale": 1.2, "concentration": 1.3}, 0.7),
    "Kumaraswamy": ({"concentration1": 1.3, "concentration0": 1.2}, 0.7),
    "InverseGamma": ({"concentration": 1.3, "rate": 1.2}, 0.7),
    "FisherSnedecor": ({"df1": 3.3, "df2": 4.2}, 0.7), "VonMises": ({"loc": 0.3, "concentration": 1.2}, 0.7),
    "RelaxedBernoulli": ({"temperature": 0.8, "probs": 0.3}, 0.7)}
TRANSFORMS: dict[str, dict[str, float]] = {
    "AffineTransform": {"loc": 0.3, "scale": 1.2}, "PowerTransform": {"exponent": 1.3}}


@contextmanager
def in_doubles() -> Iterator[None]:
    mg.set_default_dtype(mg.float64)
    try:
        yield
    finally:
        mg.set_default_dtype(mg.float32)


def of_distributions() -> Iterator[Case]:
    for name, (numbers, at) in DISTRIBUTIONS.items():
        for argument, value in numbers.items():
            def density(v: Any, name: str = name, given: Any = numbers, argument: str = argument, at: Any = at) -> Any:
                with in_doubles():
                    return getattr(D, name)(**{**given, argument: v}).log_prob(mg.tensor(at))

            yield Case(f"distributions.{name}", argument, value, density)
    for name, numbers in TRANSFORMS.items():
        for argument, value in numbers.items():
            def transform(v: Any, x: Any, name: str = name, given: Any = numbers, argument: str = argument) -> Any:
                made = getattr(D.transforms, name)(**{**given, argument: v})
                return made(x), made.log_abs_det_jacobian(x, made(x))

            yield Case(f"distributions.{name}", argument, value, transform, (X,))


def of_layers() -> Iterator[Case]:
    """Every numeric argument of a layer's constructor, as it counts when the layer is called."""
    for name, (arguments, shapes) in LAYERS.items():
        signature = inspect.signature(getattr(nn, name))
        given = signature.bind(*arguments).arguments
        inputs = tuple(np.random.default_rng(i).uniform(0.2, 0.8, shape) for i, shape in enumerate(shapes))
        for argument, p in signature.parameters.items():
            value = given.get(argument, p.default)
            if value is None and "float" in str(p.annotation):
                value = 0.5
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                def made(v: Any, *x: Any, name: str = name, given: Any = given, argument: str = argument) -> Any:
                    return getattr(nn, name)(**{**given, argument: v}).double()(*x)

                case = Case(f"nn.{name}", argument, value, made, inputs)
                if works(case):
                    yield case


BY_NAME: dict[str, list[Case]] = defaultdict(list)
for case in (*of_samples(), *(Case(*given) for given in CALLS), *of_layers(), *of_distributions()):
    if (case.name.partition(" ")[0], case.argument) not in ELSE:
        BY_NAME[case.name].append(case)
each = pytest.mark.parametrize("cases", BY_NAME.values(), ids=BY_NAME)


# --------------------------------------------------------------------------------------------------------------- asking

def failed(cases: list[Case], ask: Callable[[Case], str]) -> list[str]:
    return [f"{case.name}({case.argument}={case.value}): {answer}" for case in cases if (answer := ask(case))]


def refusal(case: Case, error: Exception) -> str:
    """An error must be ours, and of a float a TypeError. (Of dimensions and counts there is no gradient to lose.)"""
    fine = isinstance(error, (TypeError, NotImplementedError)) or isinstance(case.value, int)
    return "" if fine and isinstance(error, mg.MutagradError) else f"{type(error).__name__}: {error}"


def slope(case: Case) -> float:
    """By central differences; to one side, where the number is at the end of what is allowed."""
    ends = []
    for h in (STEP, -STEP):
        try:
            ends.append((float(weigh(case.results(case.value + h))), h))
        except mg.MutagradError:
            ends.append((float(weigh(case.results(case.value))), 0.0))
    (a, to), (b, since) = ends
    return (a - b) / (to - since) if to != since else 0.0


def loses(case: Case) -> str:
    given = mg.tensor(float(case.value), dtype=mg.float64, requires_grad=True)
    try:
        results = case.results(given)
    except MissingExtra:
        raise
    except Exception as error:
        return refusal(case, error)
    total = weigh(results)
    if total is None:
        return ""
    if not total.requires_grad:  # which is right where it has no influence
        return "its gradient was lost without a word" * bool(slope(case))
    total.backward()
    expected, got = slope(case), 0.0 if given.grad is None else given.grad.item()
    same = abs(got - expected) <= 1e-4 * max(1, abs(expected)) or np.isnan(got) and np.isnan(expected)
    return "" if same else f"{got} is not {expected}"


@each
def test_a_gradient_is_right_or_refused(cases: list[Case]) -> None:
    assert not failed(cases, loses)


def differs(case: Case) -> str:
    expected = case.results(case.value)
    try:
        found = case.results(mg.tensor(case.value, dtype=mg.float64 if isinstance(case.value, float) else None))
    except MissingExtra:
        raise
    except Exception as error:
        return refusal(case, error) or "refused" * isinstance(case.value, float)
    same = len(found) == len(expected) and all(
        a.dtype is b.dtype and np.array_equal(a._array, b._array, equal_nan=a.is_floating_point())
        for a, b in zip(found, expected))
    return "" if same else f"{found} is not {expected}"


@each
def test_a_tensor_without_gradient_is_its_number(cases: list[Case]) -> None:
    assert not failed(cases, differs)


def gradients(case: Case, value: Any, then: Callable[[], Any]) -> list[Any]:
    mg.manual_seed(0)
    leaves = [mg.tensor(a, requires_grad=a.dtype.kind == "f") for a in case.inputs]
    total = weigh([r for r in listed(case.call(value, *leaves)) if isinstance(r, mg.Tensor)])
    then()
    if total is None or not total.requires_grad:
        return []
    total.backward()
    return [x.grad.numpy() for x in leaves if x.grad is not None]


def follows(case: Case) -> str:
    expected = gradients(case, case.value, lambda: None)
    given = mg.tensor(case.value, dtype=mg.float64 if isinstance(case.value, float) else None)
    try:
        found = gradients(case, given, lambda: given.add_(1))
    except MissingExtra:
        raise
    except Exception as error:
        return refusal(case, error)
    same = len(found) == len(expected) and all(
        np.allclose(a, b, 1e-10, 1e-10, equal_nan=True) for a, b in zip(found, expected))
    return "" if same else "a later write to the number changed the gradient"


@each
def test_a_number_is_taken_by_value(cases: list[Case]) -> None:
    assert not failed(cases, follows)


# ------------------------------------------------------------------------------------------------------------- complete

# Functions that this is not asked of: settings of the library; and what draws random numbers with probabilities that
# may be tensors, whose gradient is zero, as in PyTorch.
NOT_ASKED = {"compile", "set_printoptions", "bernoulli_"}
NAMESPACES = {"": mg, "nn.functional": F, "linalg": mg.linalg, "fft": mg.fft, "special": mg.special,
              "masked": mg.masked, "signal.windows": windows, "Tensor": mg.Tensor}


def floats(function: Any) -> set[str]:
    """The arguments of a function that are real numbers, by their annotations and defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return set()
    return {p.name for p in signature.parameters.values()
            if not p.name.startswith("_") and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            and (isinstance(p.default, float) or str(p.annotation) in ("float", "float | None"))}


def asked_about() -> set[tuple[str, str]]:
    """Names of functions, without namespace or `_`, and of arguments; positions are named by the signature."""
    found = set()
    for cases in BY_NAME.values():
        for case in cases:
            name, argument = case.name.partition(" ")[0], case.argument.partition(".")[0]
            function = named(mg, name) or getattr(mg.Tensor, name, None)
            if argument.isdigit() and function is not None:
                argument = dict(enumerate(inspect.signature(function).parameters)).get(int(argument), argument)
            found.add((name.rpartition(".")[2].removesuffix("_"), argument))
    return found


def stem(name: str) -> str:
    name = name.removesuffix("_")
    return ALIASES.get(name, name)


def test_every_number_is_asked_about() -> None:
    known = asked_about()
    missing = {f"{namespace}.{name}({argument})"
               for namespace, owner in NAMESPACES.items() for name in public(owner) - NOT_ASKED
               for argument in floats(getattr(owner, name)) if (stem(name), argument) not in known}
    assert not missing, f"no case for {sorted(missing)}"


# ------------------------------------------------------------------------------------------------------ what it is like

@pytest.mark.parametrize(("call", "what"), [
    (lambda t: F.softplus(mg.ones(2), beta=t), "softplus: beta"),
    (lambda t: F.leaky_relu_(mg.ones(2), t), "leaky_relu_: negative_slope"),
    (lambda t: mg.isclose(mg.ones(2), mg.ones(2), rtol=t), "isclose: rtol"),
    (lambda t: mg.full((2,), t), "full: fill_value"), (lambda t: nn.ELU(t)(mg.ones(2)), "elu: alpha"),
    (lambda t: F.interpolate(mg.ones(1, 1, 4), scale_factor=[t]), "interpolate: scale_factor"),
    (lambda t: F.layer_norm(mg.ones(2), (2,), eps=t), "layer_norm: eps"),
    (lambda t: mg.ones(2).addcmul_(mg.ones(2), mg.ones(2), value=t), "addcmul_: value"),
    (lambda t: F.scaled_dot_product_attention(mg.ones(2, 2), mg.ones(2, 2), mg.ones(2, 2), scale=t),
     "scaled_dot_product_attention: scale")])
def test_the_error_names_the_function_the_argument_and_the_fix(call: Any, what: str) -> None:
    with pytest.raises(TypeError) as raised:
        call(mg.tensor(0.5, requires_grad=True))
    argument = what.partition(": ")[2]
    assert raised.value.what == f"{what} must be a number, and this tensor requires a gradient"
    assert f"float({argument})" in raised.value.fix and f"{argument}.detach()" in raised.value.fix
    assert "test_numbers.py" in raised.value.where


def test_the_error_of_what_was_computed_from_an_argument_names_the_function() -> None:
    with pytest.raises(TypeError, match=r"^AdaptiveLogSoftmaxWithLoss: what it computes with must be a number"):
        nn.AdaptiveLogSoftmaxWithLoss(6, 10, [4], div_value=mg.tensor(2.0, requires_grad=True))
    with pytest.raises(TypeError, match=r"^GradScaler: init_scale must be a number"):
        mg.amp.GradScaler("cpu", init_scale=mg.tensor(2.0, requires_grad=True))


@pytest.mark.parametrize("value", ["a", mg.ones(1), mg.ones(2, 2), [1.0], np.ones(2)], ids=lambda v: type(v).__name__)
def test_what_is_no_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^elu: alpha must be a number, not "):
        F.elu(mg.ones(2), alpha=value)


def test_numbers_of_numpy_are_taken_by_value() -> None:
    given, x = np.array(0.5), mg.full((40,), -1.0, requires_grad=True)
    y = F.leaky_relu(x, given)
    given[...] = 7
    y.sum().backward()
    assert x.grad.tolist() == [0.5] * 40
    assert F.leaky_relu(mg.tensor([-1.0]), np.float32(0.5)).dtype is mg.float32


INIT = [(name, argument) for name in init.__all__ if name.endswith("_")
        for argument, p in inspect.signature(getattr(init, name)).parameters.items()
        if isinstance(p.default, (int, float)) and not isinstance(p.default, bool) or argument in ("val", "sparsity")]


@pytest.mark.parametrize(("name", "argument"), [(name, argument) for name, argument in INIT
                                                if argument not in ("a", "groups") or name == "uniform_"])
def test_filling_memory_is_unrecorded_and_takes_values(name: str, argument: str) -> None:
    filled = []
    for value in (0.25, mg.tensor(0.25), mg.tensor(0.25, requires_grad=True)):
        mg.manual_seed(0)
        others = {"sparsity": 0.5} if name == "sparse_" else {}
        filled.append(getattr(init, name)(mg.zeros(4, 4), **{**others, argument: value}))
    assert mg.equal(*filled[:2]) and mg.equal(*filled[1:]) and not filled[2].requires_grad


def test_where_nothing_is_recorded_a_tensor_is_its_value() -> None:
    slope = mg.tensor(0.5, requires_grad=True)
    with mg.no_grad():
        assert F.leaky_relu(mg.tensor([-1.0]), slope).tolist() == [-0.5]
        assert nn.init.normal_(mg.zeros(3), slope).shape == (3,)
    assert nn.init.constant_(mg.zeros(2), slope).tolist() == [0.5, 0.5]


def test_the_user_may_take_the_value() -> None:
    t = mg.tensor(0.5, requires_grad=True)
    assert float(t) == t.item() == complex(t) == 0.5 and int(t) == 0 and bool(t)
    assert math.sin(t) == math.sin(0.5) and f"{t:.1f}" == "0.5"
    assert np.sin(t).requires_grad and (np.ones(2) * t).requires_grad and np.float64(2) * t == 1
    for take in (np.asarray, np.cbrt, lambda t: np.array([t]), lambda t: t.__array__(), lambda t: np.isclose(t, 1),
                 np.add.reduce, lambda t: np.stack([t, t])):
        with pytest.raises(RuntimeError, match="which NumPy would lose"):
            take(t)


@pytest.mark.parametrize("make", [
    mg.tensor, lambda t: mg.tensor([[t, 1.0]]), lambda t: mg.as_tensor([t]), lambda t: mg.ones(1).new_tensor([t]),
    lambda t: mg.asarray([t])])
def test_copying_as_data_warns_of_the_history_that_is_left_behind(make: Any) -> None:
    t = mg.tensor(0.5, requires_grad=True)
    with pytest.warns(UserWarning, match="without its history") as caught:
        assert not make(t * 2).requires_grad
    assert caught[0].filename == __file__
    make((t * 2).detach())


OPTIMIZERS = [kind for kind in vars(optim).values() if inspect.isclass(kind) and issubclass(kind, optim.Optimizer)
              and kind not in (optim.Optimizer, optim.SparseAdam)]


def trained(kind: Any, **settings: Any) -> Any:
    w = mg.linspace(0.1, 1, 6, dtype=mg.float64).reshape(2, 3).requires_grad_()
    optimizer = kind([w], **({"lr": 0.1} | settings))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (w ** 2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return w.detach()


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("history", [False, True])
def test_settings_of_optimizers_are_values(kind: Any, history: bool) -> None:
    """A step is no part of the program that is differentiated, whatever its settings are."""
    for name, p in inspect.signature(kind).parameters.items():
        if isinstance(p.default, float):
            given = mg.tensor(p.default, dtype=mg.float64, requires_grad=history)
            assert mg.allclose(trained(kind, **{name: given}), trained(kind, **{name: p.default}), 1e-12), name


def test_a_measure_may_have_a_history() -> None:
    optimizer = optim.SGD([mg.ones(1, requires_grad=True)], lr=1.0)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(2):
        scheduler.step((mg.ones(1, requires_grad=True) * 3).sum())
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_pad_of_what_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match="value must be a number"):
        mg.nn.functional.pad(mg.ones(3), (1, 1), value="a")


@pytest.mark.parametrize("density", [False, True])
def test_the_weights_of_a_histogram_have_gradients(density):
    x, w = mg.tensor([0.5, 1.5, 1.7, 3.0, 9.0]).double(), mg.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=mg.float64, requires_grad=True)
    found = mg.histogram(x, 3, range=(0.0, 3.0), weight=w, density=density)[0]
    np.testing.assert_allclose(found.detach().numpy(), np.histogram(x.numpy(), 3, (0.0, 3.0), density, w.detach().numpy())[0])
    assert mg.autograd.gradcheck(lambda w: mg.histogram(x, 3, range=(0.0, 3.0), weight=w, density=density)[0], w)
    assert mg.autograd.gradcheck(lambda w: mg.histogramdd(x[:, None], [3], weight=w, density=density)[0], w)
