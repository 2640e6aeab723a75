"""Where values decide: nan, ties, ignored targets, singular matrices, empty arrays, wrong shapes. As without a step."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import stepping

import mutagrad as mg
from mutagrad.arrays.xla.memory import NotTraced
from mutagrad.core.factory import make

F = mg.nn.functional
RNG = np.random.default_rng(0)
ODD = RNG.standard_normal((2, 3, 8, 9))
HOLES = ODD.copy()
HOLES[0, 0, 1, 1], HOLES[0, 0, 4:6, 4:6] = np.nan, -np.inf
MINORS = np.stack([np.eye(3), [[1, 2, 0], [2, 1, 0], [0, 0, 1]], [[4, 2, 0], [2, 3, 1], [0, 1, -5]], np.diag([-1., 1, 1])])
SINGULAR = np.stack([np.eye(3), [[1, 2, 3], [2, 4, 6], [0, 0, 1]], [[0, 1, 0], [1, 0, 0], [0, 0, 2]], np.zeros((3, 3))])
ROWS, TARGETS, WEIGHT = RNG.standard_normal((5, 4)), np.array([0, -100, 3, 1, -100]), np.array([0.5, 1, 2, 3])
MIXED = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e300, 2.5, -2.5])
NUMBERS = RNG.integers(-9, 9, (3, 4))


def with_gradients(function: Any) -> Any:
    def run(*tensors: Any) -> Any:
        inputs = [t.clone().requires_grad_() if t.dtype.is_floating_point else t for t in tensors]
        result = function(*inputs)
        result.sum().backward()
        return [result.detach(), *(x.grad for x in inputs if x.grad is not None)]

    return run


def written(key: Any) -> Any:
    def run(x: Any, mask: Any) -> Any:
        x = x.clone()
        x[key(mask)] = 7.0
        return x

    return run


CASES: dict[str, tuple[Any, ...]] = {
    "max_pool2d of nan": (lambda x: F.max_pool2d(x, 2, return_indices=True), HOLES),
    "max_pool2d at borders": (lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), HOLES),
    "max_pool2d of ties": (lambda x: F.max_pool2d((x * 0).nan_to_num(), 3, 2, 1, return_indices=True), HOLES),
    "max_pool2d beyond the end": (lambda x: F.max_pool2d(x, 2, 3, 1, 2, ceil_mode=True, return_indices=True), ODD),
    "max_pool2d overlapping": (with_gradients(lambda x: F.max_pool2d(x, 3, 1, 1)), ODD),
    "max_pool1d of integers": (lambda x: F.max_pool1d(x[None], 2, return_indices=True), NUMBERS),
    "avg_pool2d beyond the end": (with_gradients(lambda x: F.avg_pool2d(x, 3, 2, 1, True, False)), ODD),
    "interpolate of nan": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), HOLES),
    "cross_entropy": (with_gradients(lambda x, t, w: F.cross_entropy(x, t, w.detach())), ROWS, TARGETS, WEIGHT),
    "cross_entropy, none": (with_gradients(lambda x, t: F.cross_entropy(x, t, reduction="none")), ROWS, TARGETS),
    "cross_entropy, smooth": (with_gradients(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1)), ROWS, TARGETS),
    "cross_entropy of nothing": (lambda x, t: F.cross_entropy(x, t), ROWS, np.full(5, -100)),
    "nll_loss": (with_gradients(lambda x, t, w: F.nll_loss(x, t, w.detach(), ignore_index=-100)), ROWS, TARGETS, WEIGHT),
    "ctc_loss": (with_gradients(lambda x, t, steps, lengths: F.ctc_loss(x.log_softmax(-1), t, steps, lengths)),
                 RNG.standard_normal((6, 3, 5)), RNG.integers(1, 5, (3, 4)), np.array([6, 5, 4]), np.array([2, 3, 1])),
    "ctc_loss of what cannot be": (lambda x, t, steps, lengths: F.ctc_loss(x.log_softmax(-1), t, steps, lengths, reduction="none"),
                                   RNG.standard_normal((6, 3, 5)), RNG.integers(1, 5, (3, 4)), np.array([6, 1, 0]), np.array([2, 3, 0])),
    "attention to nothing": (lambda q, m: F.scaled_dot_product_attention(q, q, q, m), ROWS, np.zeros((5, 5), bool)),
    "attention of nothing": (lambda q: F.scaled_dot_product_attention(q, q, q), np.zeros((2, 0, 3))),
    "layer_norm of nothing": (lambda x: F.layer_norm(x, (3,)), np.zeros((0, 3))),
    "conv2d of nothing": (lambda x: F.conv2d(x, mg.ones(2, 3, 2, 2, dtype=x.dtype)), np.zeros((0, 3, 4, 4))),
    "conv1d of integers": (lambda x: F.conv1d(x[None], mg.ones(2, 3, 2, dtype=x.dtype)), NUMBERS),
    "cholesky_ex": (lambda a: mg.linalg.cholesky_ex(a), MINORS),
    "inv_ex": (lambda a: mg.linalg.inv_ex(a), SINGULAR),
    "solve_ex": (lambda a: mg.linalg.solve_ex(a, a[:, :, :2]), SINGULAR),
    "lu_factor_ex": (lambda a: mg.linalg.lu_factor_ex(a), SINGULAR),
    "det": (with_gradients(lambda a: mg.linalg.det(a)), SINGULAR),
    "matrix_exp": (lambda a: mg.matrix_exp(a * 30), SINGULAR[:3]),
    "cumprod": (with_gradients(lambda x: x.cumprod(0)), np.array([1.0, 0, 2, 0, 3])),
    "logcumsumexp": (with_gradients(lambda x: x.logcumsumexp(0)), np.array([-1000.0, 3, 1000, 2])),
    "cummax of booleans": (lambda x: mg.cummax(x > 0, 1), ROWS),
    "a mask behind a slice": (written(lambda mask: (slice(None), mask[0] > 0)), ROWS, ROWS),
    "a mask behind a number": (written(lambda mask: (1, mask[0] > 0)), ROWS, ROWS),
    "a mask of rows": (written(lambda mask: mask[:, 0] > 0), ROWS, ROWS),
    **{f"{name} of anything": (lambda x, name=name: getattr(mg, name)(x), MIXED) for name in (
        "abs", "exp", "log", "sqrt", "sign", "signbit", "round", "floor", "sigmoid", "relu", "nan_to_num", "sort", "argsort", "max",
        "argmax", "amin", "sum", "median", "cos", "tanh", "log1p", "rsqrt")},
    **{f"{name} of pairs": (lambda x, y, name=name: getattr(mg, name)(x, y), MIXED[:, None], MIXED) for name in (
        "maximum", "fmin", "fmod", "remainder", "floor_divide", "atan2", "copysign", "logaddexp", "pow", "div", "lt", "xlogy")},
    **{f"{name} of integers": (lambda x, name=name: getattr(x, name)(abs(x) + 1), NUMBERS) for name in (
        "__floordiv__", "__mod__", "__truediv__", "__pow__", "__and__", "__xor__", "__lt__", "fmod", "maximum")},
}


SIGNED_ZEROS = {name for name in CASES if name.endswith((" of anything", " of pairs"))} - {"maximum of pairs", "fmin of pairs"}


def arrays(found: Any) -> list[Any]:
    return [np.array(t.detach()._array) for t in (found if isinstance(found, (tuple, list)) else (found,))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_edges(name: str) -> None:
    function, *given = CASES[name]
    expected = arrays(function(*(make(np.array(a)) for a in given)))

    def listed(*tensors: Any) -> Any:
        found = function(*tensors)
        return found if isinstance(found, (tuple, list)) else (found,)

    got, = stepping.executed([(stepping.traced(listed, *given), given)])
    for g, e in zip(got, expected, strict=True):
        assert g.shape == e.shape and g.dtype == e.dtype
        np.testing.assert_allclose(g, e, 1e-9, 1e-12)
        if g.dtype.kind == "f" and name in SIGNED_ZEROS:
            np.testing.assert_array_equal(np.signbit(g[e == 0]), np.signbit(e[e == 0]))


REFUSED = {
    "one_hot": lambda x: F.one_hot(x.long().abs()), "unique": lambda x: mg.unique(x), "x[x > 0]": lambda x: x[x > 0],
    "if": lambda x: x if x.sum() > 0 else -x, "item": lambda x: x * x.sum().item(), "nonzero": lambda x: x.nonzero(),
    "repeat_interleave": lambda x: x.repeat_interleave(x[:, 0].long().abs(), 0), "range": lambda x: mg.zeros(int(x[0, 0])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_values_says_so(name: str) -> None:
    with pytest.raises(NotTraced, match="compile: "):
        stepping.traced(lambda x: [REFUSED[name](x)], ROWS)


WRONG: dict[str, tuple[Any, ...]] = {
    "matmul": (lambda x, y: x @ y, ROWS, ROWS), "add": (lambda x, y: x + y, ROWS, ROWS.T),
    "cat": (lambda x, y: mg.cat([x, y]), ROWS, ROWS.T), "stack": (lambda x, y: mg.stack([x, y]), ROWS, ROWS.T),
    "linear": (lambda x, y: F.linear(x, y), ROWS, ROWS.T), "einsum": (lambda x, y: mg.einsum("ij,jk->ik", x, y), ROWS, ROWS),
    "index": (lambda x: x[7], ROWS), "reshape": (lambda x: x.reshape(3, 3), ROWS), "expand": (lambda x: x.expand(7, 4), ROWS),
    "where": (lambda x, y: mg.where(x > 0, x, y), ROWS, ROWS.T), "solve": (lambda x: mg.linalg.solve(x, x), ROWS),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes(name: str) -> None:
    """The same error as without a step, and none of JAX's."""
    function, *given = WRONG[name]
    with pytest.raises(mg.MutagradError) as expected:
        function(*(make(np.array(a)) for a in given))
    with pytest.raises(expected.type):
        stepping.traced(lambda *tensors: [function(*tensors)], *given)
