"""One table of what sums many numbers: reductions, scans, norms, losses, and gradients that are sums.

An entry is an expression in `m`, the library, `F`, its functions of networks, and tensors drawn here. What is measured is how far its
value and its gradients in a type are from the same in float64, where the rounded numbers are exact. `tests/arrays/test_accuracy.py` measures
mutagrad, `tests/oracle/test_accuracy.py` PyTorch beside it.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
KINDS = ("mixed", "positive", "offset")
TIMES = 4  # how much larger than PyTorch's an error may be,
FLOOR = 3  # but so many units in the last place are always allowed: below, it is a matter of luck

# What is differentiated: by their shapes, what is summed along rows, down columns and over everything.
SHAPES: dict[str, tuple[int, ...]] = {
    "v": (1_000_000,), "x": (700, 400), "tall": (60_000, 5), "wide": (5, 60_000), "cube": (30, 90, 90), "small": (60, 40), "image": (8, 8, 24, 24),
    "batch": (10_000, 10), "rows": (100, 2000)}


class Case(NamedTuple):
    """An expression, the kind of numbers in it, and the type that they are rounded to."""

    expression: str
    kind: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.expression} | {self.kind} | {self.dtype}"


# ------------------------------------------------------------------------------------------------------------ the table

FORMS = (("v", "0"), ("x", "0"), ("x", "1"), ("tall", "0"), ("wide", "1"), ("cube", "1"), ("x.t()", "0"), ("x.t()", "1"), ("x[:, ::2]", "0"), ("x[:, ::2]", "1"),
         ("x.flip(0)", "0"), ("small", "0"))
SEVERAL = (("x", "(0, 1)"), ("cube", "(0, 2)"), ("cube", "(0, 1)"), ("cube.permute(2, 0, 1)", "(1, 2)"), ("x[::2, ::3]", "(0, 1)"))

# Along one dimension, and along several.
REDUCED = """
{x}.sum({d}); {x}.mean({d}); {x}.var({d}); {x}.std({d}, keepdim=True); {x}.nansum({d}); {x}.nanmean({d}); {x}.norm(dim={d}); {x}.norm(1, dim={d}); {x}.norm(3, dim={d})
m.linalg.vector_norm({x}, 0.5, dim={d}); m.logsumexp({x} * 0.01, {d}); m.var_mean({x}, {d})[1]
"""
# Along one dimension.
SCANNED = """
{x}.cumsum({d}); ({x} * 1e-6 + 1).cumprod({d}); ({x} * 0.01).logcumsumexp({d}); F.softmax({x}, {d}); F.log_softmax({x}, {d}); ({x} * 1e-6 + 1).prod({d})
F.normalize({x}, dim={d}); F.cosine_similarity({x}, {x}.flip(0), {d}); m.trapezoid({x}, dim={d}); m.cumulative_trapezoid({x}, dim={d})
"""
OTHERS = """
F.layer_norm(x, (400,), x[0], x[1]); F.layer_norm(rows, (2000,)); F.layer_norm(wide, (60000,)); F.layer_norm(tall, (5,), tall[0], tall[1])
F.rms_norm(x, (400,)); F.rms_norm(tall, (5,), tall[0]); F.rms_norm(wide, (60000,)); F.group_norm(image, 4, image[0, :, 0, 0], image[1, :, 0, 0])
F.instance_norm(image); F.group_norm(cube, 5); F.batch_norm(image, None, None, image[0, :, 0, 0], image[1, :, 0, 0], True)
F.batch_norm(batch, None, None, None, None, True); F.batch_norm(tall, None, None, tall[0], tall[1], True); F.batch_norm(cube, None, None, cube[0, :, 0], cube[1, :, 0], True)
F.cross_entropy(batch, classes); F.cross_entropy(batch, classes, reduction="sum"); F.cross_entropy(batch, F.softmax(batch, 1))
F.cross_entropy(batch, classes, label_smoothing=0.1); F.cross_entropy(batch, classes, ignore_index=3); F.nll_loss(F.log_softmax(batch, 1), classes)
F.mse_loss(v, v.flip(0)); F.mse_loss(x, x.flip(0), reduction="sum"); F.l1_loss(v, v.flip(0)); F.smooth_l1_loss(v, v.flip(0)); F.huber_loss(v, v.flip(0))
F.binary_cross_entropy_with_logits(v * 0.01, v.sigmoid().detach()); F.binary_cross_entropy((v * 0.001).sigmoid(), (v * 0.001).sigmoid().detach().flip(0))
F.kl_div(F.log_softmax(x, 1), F.softmax(x.flip(0), 1), reduction="batchmean"); F.gaussian_nll_loss(v, v.flip(0), v.detach().abs() + 0.1)
F.poisson_nll_loss(v * 0.001, v.flip(0)); F.soft_margin_loss(v * 0.01, v.detach().flip(0).sign()); F.triplet_margin_loss(x, x.flip(0), x.flip(1))
F.multilabel_soft_margin_loss(batch * 0.01, (batch.detach() > 0).to(batch.dtype)); F.cosine_embedding_loss(x, x.flip(0), x[:, 0].detach() * 0 + 1)
m.cov(wide); m.corrcoef(wide); m.cdist(x[:20], x[20:40]); m.cdist(x[:50], x[50:110], 1.0); m.cdist(x[:50], x[50:110], 3.0); F.pdist(x[:60])
F.pairwise_distance(x, x.flip(0)); m.dist(x, x.flip(0)); m.renorm(x, 2, 0, 1.0); m.linalg.matrix_norm(x); m.linalg.matrix_norm(x, 1)
m.linalg.matrix_norm(x, float("inf")); m.linalg.norm(v); m.linalg.matrix_norm(small, "nuc")
m.dot(v, v.flip(0)); x @ x.t(); m.einsum("ij,ij->i", x, x.flip(0)); m.einsum("ij,ij->j", x, x.flip(0)); m.einsum("ij->j", x); m.einsum("ijk->j", cube)
m.einsum("ij,ik->jk", tall, tall); m.mv(x, x[0]); m.matmul(cube, cube.transpose(1, 2)); F.linear(batch, batch[:50], batch[:50, 0]); F.linear(tall, tall[:3], tall[:3, 0])
m.addmm(batch[0][:3], batch, batch[:10, :3]); F.bilinear(batch, batch, batch[:30].reshape(3, 10, 10), batch[:3, 0])
F.conv2d(image, image[:4, :, :3, :3], image[0, :4, 0, 0]); F.conv1d(cube[:, :16], cube[:6, :16, :5], cube[0, :6, 0])
F.conv_transpose2d(image, image.transpose(0, 1)[:, :4, :3, :3], image[0, :4, 0, 0]); F.avg_pool2d(image, 24); F.adaptive_avg_pool2d(image, 5)
F.avg_pool1d(wide.unsqueeze(0), 30000); F.lp_pool2d(image, 2, 8); F.interpolate(image, size=(7, 7), mode="area")
m.zeros(50, dtype=v.dtype).index_add(0, places, v); m.zeros(50, dtype=v.dtype).scatter_add(0, places, v); m.zeros(50, dtype=v.dtype).scatter_reduce(0, places, v, "mean")
m.zeros(50, 400, dtype=x.dtype).index_add(0, rows_of, x); m.zeros(40, 400, dtype=x.dtype).scatter_add(0, few, x); v[:50][places]; x[rows_of]; v[:50].gather(0, places)
F.embedding(spots, tall[:50]); m.bincount(places, v.detach()); F.embedding_bag(spots.reshape(1000, 200), tall[:50], mode="mean"); m.histc(v, 10)
F.embedding_bag(spots.reshape(10, 20000), tall[:50], mode="sum"); m.segment_reduce(x, "mean", lengths=lengths, axis=0)
x * x[0]; x * x[:, :1]; v * v[:1]; cube * cube[:1, :, :1]; tall * tall[0]; m.where(mask, x, x[0]); F.prelu(image, image[0, :, 0, 0]); x / x[0]
tall[0].expand(60000, 5).clone(); x.masked_fill(mask, 0.0).sum(0); m.trapezoid(v, times.to(v.dtype)); m.cumulative_trapezoid(v, times.to(v.dtype))
F.scaled_dot_product_attention(cube * 0.01, cube * 0.01, cube); m.cumsum(x, 0).var(0); x * 1e-6; x / 3e5; m.diff(x, dim=0).square().sum(0)
"""

# What is left out: words of a case, and why nothing can be learnt from it.
CANCELS, OVERFLOWS = "one sum of what cancels: how large it is, is chance", "beyond what the type holds"
LEFT_OUT = {
    **dict.fromkeys([("v.sum(0)", "mixed"), ("v.mean(0)", "mixed"), ("v.nansum(0)", "mixed"), ("v.nanmean(0)", "mixed"), ("m.var_mean(v, 0)[1]", "mixed"),
                     ("(0, 1)) |", "mixed"), ("(0, 1))[1]", "mixed"), ("m.dot(v", "mixed"), ("m.trapezoid(v", "mixed")], CANCELS),
    **dict.fromkeys([("offset", "float16"), ("vector_norm", "float16"), (".norm(1", "float16"), ("histc", "16"), ("(v * 1e-6 + 1)", "offset")], OVERFLOWS),
    ("m.histc(v, 10)", "positive"): "a value on the edge of two bins",
    ("m.matmul(cube, cube.transpose(1, 2))", "offset"): "the BLAS libraries differ",
}


def _listed(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";")]


EXPRESSIONS = [*(form.format(x=x, d=d) for form in _listed(REDUCED) for x, d in FORMS + SEVERAL),
               *(form.format(x=x, d=d) for form in _listed(SCANNED) for x, d in FORMS), *_listed(OTHERS)]


def cases(expression: str) -> Iterator[Case]:
    """Of an expression: every kind of numbers in float32, and one in either of the short types."""
    number = EXPRESSIONS.index(expression)
    found = [Case(expression, kind, "float32") for kind in KINDS]
    found += [Case(expression, KINDS[(number + k) % 2], dtype) for k, dtype in enumerate(("float16", "bfloat16"))]
    return (case for case in found if not any(all(word in str(case) for word in words) for words in LEFT_OUT))


ONLY_LONG = ("cdist", "pdist", "nuc")  # what PyTorch has not for short types


def sampled() -> list[Case]:
    """One case of every expression, each kind and type in turn: those whose errors in PyTorch are recorded."""
    return [_one_of([case for case in cases(expression) if case.dtype == "float32" or not any(word in expression for word in ONLY_LONG)], number)
            for number, expression in enumerate(EXPRESSIONS)]


def _one_of(found: list[Case], number: int) -> Case:
    return found[number % len(found)]


# ------------------------------------------------------------------------------------------------------------- measuring

@cache
def _drawn(kind: str) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {name: rng.random(shape) if kind == "positive" else rng.standard_normal(shape) + 1000 * (kind == "offset") for name, shape in SHAPES.items()}


@cache
def _constants() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    return {"classes": rng.integers(0, 10, 10_000), "places": rng.integers(0, 50, 1_000_000), "spots": rng.integers(0, 50, 200_000), "few": rng.integers(0, 40, (700, 400)),
            "rows_of": rng.integers(0, 50, 700), "lengths": np.full(70, 10), "mask": rng.random((700, 400)) < 0.2, "times": np.sort(rng.random(1_000_000))}


@cache
def _names(expression: str) -> frozenset[str]:
    return frozenset(compile(expression, "", "eval").co_names)


def _leaf(m: Any, a: Any, dtype: str, wide: bool) -> Any:
    """A leaf with these numbers rounded to a type; the same numbers in float64 if `wide`."""
    t = m.tensor(a.astype(np.float32)).to(getattr(m, dtype))
    return (t.double() if wide else t).requires_grad_()


def _array(t: Any) -> Any:
    return t.detach().double().numpy()


def evaluate(m: Any, case: Case, wide: bool) -> list[Any]:
    """The value of a case, and the gradient of each of its tensors, as arrays of float64; computed in float64 if `wide`."""
    names = _names(case.expression)
    leaves = {name: _leaf(m, a, case.dtype, wide) for name, a in _drawn(case.kind).items() if name in names}
    constants = {name: m.tensor(a) for name, a in _constants().items() if name in names}
    result = eval(case.expression, {"m": m, "F": m.nn.functional, **leaves, **constants})
    found = [_array(result)]
    if result.requires_grad:
        seed = np.random.default_rng(13).standard_normal(tuple(result.shape)).astype(np.float32)
        seed = m.tensor(seed).to(getattr(m, case.dtype))
        result.backward(seed.double() if wide else seed)
        found += [_array(t.grad) for t in leaves.values() if t.grad is not None]
    return found


def errors(exact: list[Any], found: list[Any], dtype: str) -> list[float]:
    """The largest error of each array, relative to its largest element, in units in the last place of one."""
    return [_error(e, f) / EPS[dtype] for e, f in zip(exact, found, strict=True)]


def _error(exact: Any, found: Any) -> float:
    finite = np.isfinite(exact)
    if not np.isfinite(found[finite]).all():
        return float("inf")
    scale = np.abs(exact[finite]).max(initial=0)
    return float(np.abs(exact - found)[finite].max(initial=0) / scale) if scale else 0.0
