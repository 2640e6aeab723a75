"""Every operation of the table gives the same in a traced step as by itself, with its gradients; or says why it cannot."""
from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import refused  # noqa: E402
import stepping  # noqa: E402

import mutagrad as mg  # noqa: E402
from mutagrad.arrays.xla.memory import NotTraced  # noqa: E402
from mutagrad.core.factory import make  # noqa: E402
from samples import SAMPLES, Sample  # noqa: E402
from samples.base import words  # noqa: E402

PICKS = "how many elements a mask picks depends on values"
# What cannot be in a step, whatever it is given.
REFUSED = {
    "allclose": "a Python bool", "equal": "a Python bool", "argwhere": PICKS, "nonzero": PICKS,
    "bincount": "the largest number says how long the result is",
}
# What can be, if the indices, masks or sizes are made in the step, and no arguments of it.
LITERAL = {
    "masked_select": PICKS, "__getitem__": PICKS, "__setitem__": "several values for as many as a mask picks",
    "index_put": "several values for as many as a mask picks",
    "repeat_interleave": "how often is a size", "tensor_split": "where it is cut is a size",
    **dict.fromkeys(["lstm", "gru", "rnn_tanh", "rnn_relu"], "the lengths of packed sequences are sizes"),
}
EXECUTED = 2  # samples of an operation, or all of them: MUTAGRAD_ALL_SAMPLES=1; all are traced
DRAWS = {"a function of pca_lowrank", "a function of svd_lowrank"}  # random numbers, so there is nothing to compare with
NAMES = sorted({s.name for s in SAMPLES if s.draws} - DRAWS)


class Case:
    """A sample, what it gives, and the program that it becomes (or why there is none)."""

    def __init__(self, sample: Sample, dtype: Any = np.float64) -> None:
        self.sample, self.draws = sample, sample.arrays(dtype)
        self.fixed = [a.astype(dtype) if a.dtype.kind == "f" else a for a in stepping.fixed_arrays(sample)]
        given = [make(a.copy()) for a in self.draws], [make(a.copy()) for a in self.fixed]
        self.expected = [np.array(t.detach()._array) for t in stepping.run(sample, *given)]
        self.program, self.literal, self.why = self._traced()

    def _traced(self) -> tuple[Any, bool, str]:
        n = len(self.draws)
        why = ""
        for literal in (False, True):
            arguments = self.draws if literal else [*self.draws, *self.fixed]

            def function(*tensors: Any, literal: bool = literal) -> list[Any]:
                return stepping.run(self.sample, tensors[:n], [make(a.copy()) for a in self.fixed] if literal else tensors[n:])

            try:
                return (stepping.traced(function, *arguments), arguments), literal, why
            except NotTraced as error:
                why = str(error)
        return None, True, why


@cache
def cases(name: str) -> list[Case]:
    return [Case(s) for s in SAMPLES if s.name == name and s.draws]


def some(found: list[Case]) -> list[Case]:
    """The first, and another that differs from one operation to the next."""
    if os.environ.get("MUTAGRAD_ALL_SAMPLES") or len(found) <= EXECUTED:
        return found
    return [found[0], found[1 + sum(map(ord, found[0].sample.name)) % (len(found) - 1)]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_operation(name: str) -> None:
    known = some([c for c in cases(name) if c.program is not None])
    assert any(c.program is None for c in cases(name)) == (name in REFUSED)
    assert any(c.program is not None and c.literal and c.why for c in cases(name)) == (name in LITERAL)
    for case, found in zip(known, stepping.executed([c.program for c in known]) if known else ()):
        for got, expected in zip(found, case.expected, strict=True):
            assert got.shape == expected.shape and got.dtype == expected.dtype, str(case.sample)
            np.testing.assert_allclose(got, expected, 1e-8, 1e-9, err_msg=str(case.sample))


@pytest.mark.filterwarnings("ignore")
def test_nearly_all_run() -> None:
    found = [c for name in NAMES for c in cases(name)]
    assert sum(c.program is not None for c in found) >= 0.99 * len(found)
    assert sum(c.program is not None and not c.literal for c in found) >= 0.97 * len(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_says_so(name: str) -> None:
    assert all(c.why.startswith("compile: ") for c in cases(name) if c.program is None)


# ---------------------------------------------------------------------------------------------------------- short floats

SHORT = words("""abs add sub mul div exp log tanh sigmoid sqrt pow maximum where clamp sum mean amax var std norm cumsum prod matmul
    einsum softmax log_softmax logsumexp cross_entropy nll_loss mse_loss layer_norm group_norm batch_norm rms_norm gelu silu
    relu linear conv2d conv_transpose2d max_pool2d avg_pool2d scaled_dot_product_attention embedding index_select gather
    scatter_add __getitem__ sort topk cat interpolate lstm gru ctc_loss""")
PRECISION = {mg.float32: 2e-5, mg.float16: 4e-3, mg.bfloat16: 3e-2}


def short_cases(name: str, dtype: Any) -> list[Case]:
    samples = [s for s in SAMPLES if s.name.rpartition(".")[2] == name and s.draws]
    return [c for s in samples[:1] if (c := Case(s, mg.zeros(0, dtype=dtype)._array.dtype)).program is not None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", PRECISION, ids=str)
@pytest.mark.parametrize("name", SHORT)
def test_short_floats(name: str, dtype: Any) -> None:
    """In the type's own precision, of the largest number."""
    if dtype is mg.bfloat16:
        pytest.importorskip("ml_dtypes")
    known, near = short_cases(name, dtype), PRECISION[dtype]
    assert known
    for case, found in zip(known, stepping.executed([c.program for c in known])):
        for got, expected in zip(found, case.expected, strict=True):
            assert got.shape == expected.shape and got.dtype == expected.dtype, str(case.sample)
            got, expected = got.astype(np.float64), expected.astype(np.float64)
            largest = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
            np.testing.assert_allclose(got, expected, near, near * largest, err_msg=str(case.sample))


# ------------------------------------------------------------------------------------------------------------ equations

def floats(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.float32)


def whole(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.int64)


F = mg.nn.functional
HEADS, IMAGE, ROWS = (8, 8, 512, 64), (8, 16, 64, 64), (8, 512, 512)
# A call at sizes as they are in networks, and the most equations that it may become, forward and back. Some 30 are the loss.
LARGE: dict[str, tuple[int, Any, list[Any]]] = {
    "exp": (50, lambda x: x.exp(), [floats(*ROWS)]),
    "sum": (40, lambda x: x.sum(0), [floats(*ROWS)]),
    "var": (70, lambda x: x.var(-1), [floats(*ROWS)]),
    "amax": (60, lambda x: x.amax(-1), [floats(*ROWS)]),
    "cumsum": (50, lambda x: x.cumsum(1), [floats(*ROWS)]),
    "cumprod": (70, lambda x: x.cumprod(1), [floats(*ROWS)]),
    "sort": (70, lambda x: x.sort(-1)[0], [floats(*ROWS)]),
    "topk": (100, lambda x: x.topk(5)[0], [floats(*ROWS)]),
    "softmax": (60, lambda x: F.softmax(x, -1), [floats(*ROWS)]),
    "log_softmax": (60, lambda x: F.log_softmax(x, -1), [floats(*ROWS)]),
    "gelu": (70, lambda x: F.gelu(x), [floats(*ROWS)]),
    "linear": (70, lambda x, w, b: F.linear(x, w, b), [floats(*ROWS), floats(512, 512), floats(512)]),
    "embedding": (65, lambda i, w: F.embedding(i, w), [whole(8, 512), floats(1000, 512)]),
    "cross_entropy": (90, lambda x, t: F.cross_entropy(x, t), [floats(4096, 1000), whole(4096)]),
    "nll_loss": (75, lambda x, t: F.nll_loss(x, t), [floats(4096, 1000), whole(4096)]),
    "layer_norm": (95, lambda x, w, b: F.layer_norm(x, (512,), w, b), [floats(*ROWS), floats(512), floats(512)]),
    "rms_norm": (85, lambda x, w: F.rms_norm(x, (512,), w), [floats(*ROWS), floats(512)]),
    "group_norm": (95, lambda x, w, b: F.group_norm(x, 4, w, b), [floats(*IMAGE), floats(16), floats(16)]),
    "batch_norm": (105, lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [floats(*IMAGE), floats(16), floats(16)]),
    "attention": (85, lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [floats(*HEADS)] * 3),
    "causal attention": (90, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [floats(*HEADS)] * 3),
    "masked attention": (90, lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > 0), [*[floats(*HEADS)] * 3, whole(512, 512)]),
    "conv1d": (55, lambda x, w, b: F.conv1d(x, w, b, padding=1), [floats(8, 16, 512), floats(16, 16, 3), floats(16)]),
    "conv2d": (55, lambda x, w, b: F.conv2d(x, w, b, 2, 1), [floats(*IMAGE), floats(16, 16, 3, 3), floats(16)]),
    "grouped conv2d": (55, lambda x, w: F.conv2d(x, w, None, 1, 2, 2, 4), [floats(*IMAGE), floats(16, 4, 3, 3)]),
    "conv3d": (55, lambda x, w: F.conv3d(x, w, padding=1), [floats(2, 4, 16, 16, 16), floats(4, 4, 3, 3, 3)]),
    "conv_transpose2d": (55, lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1), [floats(*IMAGE), floats(16, 8, 3, 3)]),
    "unfold": (75, lambda x: F.unfold(x, 3, padding=1), [floats(*IMAGE)]),
    "max_pool2d": (190, lambda x: F.max_pool2d(x, 3, 2, 1), [floats(*IMAGE)]),
    "avg_pool2d": (50, lambda x: F.avg_pool2d(x, 2), [floats(*IMAGE)]),
    "adaptive_avg_pool2d": (65, lambda x: F.adaptive_avg_pool2d(x, 7), [floats(*IMAGE)]),
    "adaptive_max_pool2d": (100, lambda x: F.adaptive_max_pool2d(x, 7), [floats(*IMAGE)]),
    "interpolate": (75, lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [floats(*IMAGE)]),
    "grid_sample": (400, lambda x, g: F.grid_sample(x, g, align_corners=False), [floats(*IMAGE), floats(8, 64, 64, 2)]),
    "ctc_loss": (450, lambda x, t: F.ctc_loss(x, t, [512] * 8, [20] * 8), [floats(512, 8, 30), whole(8, 20)]),
    "cdist": (100, lambda x, y: mg.cdist(x, y), [floats(8, 512, 64), floats(8, 512, 64)]),
    "cholesky_solve": (120, lambda b, x: mg.cholesky_solve(b, x), [floats(64, 4), floats(64, 64)]),
    "solve": (350, lambda a, b: mg.linalg.solve(a, b), [floats(64, 64), floats(64, 4)]),
    "lstm": (280, lambda x, h, c, *w: mg.lstm(x, (h, c), w, False, 1, 0.0, True, False, False),
             [floats(100, 8, 32), floats(1, 8, 64), floats(1, 8, 64), floats(256, 32), floats(256, 64)]),
    "gru": (220, lambda x, h, *w: mg.gru(x, h, w, False, 1, 0.0, True, False, False),
            [floats(100, 8, 32), floats(1, 8, 64), floats(192, 32), floats(192, 64)]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LARGE)
def test_number_of_equations(name: str) -> None:
    most, function, arguments = LARGE[name]

    def with_gradients(*tensors: Any) -> list[Any]:
        inputs = [t.clone().requires_grad_() if t.dtype.is_floating_point else t for t in tensors]
        results = function(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        sum((r * r).sum() for r in results).backward()
        return [*results, *(x.grad for x in inputs if x.requires_grad)]

    found = stepping.equations(stepping.traced(with_gradients, *arguments).jaxpr)
    assert found <= most, f"{name} became {found} equations"


# ------------------------------------------------------------------------------------------------------ recorded sweeps

@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", words("""nn.functional.scaled_dot_product_attention conv2d conv_transpose2d max_pool2d
    nn.functional.avg_pool2d nn.functional.layer_norm nn.functional.cross_entropy gru cumprod nn.functional.grid_sample"""))
def test_second_derivatives(name: str) -> None:
    """Kernels are for raw arrays; a recorded sweep goes by the rules, through operations that have kernels again."""
    sample = next(s for s in SAMPLES if s.name == name and s.draws)
    draws, fixed = sample.arrays(), stepping.fixed_arrays(sample)

    def twice(*tensors: Any) -> list[Any]:
        inputs = [t.clone().requires_grad_() for t in tensors]
        results = stepping.call(sample, inputs, [make(a.copy()) for a in fixed])
        loss = sum((r * r * r).sum() for r in results if r.requires_grad)
        first = mg.autograd.grad(loss, inputs, create_graph=True)
        sum((g * g).sum() for g in first).backward()
        return [*(g.detach() for g in first), *(mg.zeros_like(x) if x.grad is None else x.grad for x in inputs)]

    found, = stepping.executed([(stepping.traced(twice, *draws), draws)])
    for got, expected in zip(found, twice(*(make(a.copy()) for a in draws)), strict=True):
        np.testing.assert_allclose(got, expected.numpy(), 1e-8, 1e-9)


def test_the_page_lists_what_is_refused() -> None:
    text = refused.PAGE.read_text(encoding="utf-8")
    assert refused.written(text, refused.table(REFUSED, LITERAL, len(NAMES))) == text, "make compiled"
