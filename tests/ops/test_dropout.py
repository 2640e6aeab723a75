"""Functions of layers that draw random numbers; their `inplace=`; and what they and the losses refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.nn import functional as F

ONES = {"dropout": (400, 30), "dropout1d": (40, 30, 4), "dropout2d": (40, 30, 2, 2), "dropout3d": (40, 30, 1, 2, 2),
        "alpha_dropout": (400, 30), "feature_alpha_dropout": (40, 30, 4)}


def drop(name: str, x: Any, p: float, **settings: Any) -> Any:
    return getattr(F, name)(x, p, training=True, **settings)


# ----------------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("name", [n for n in ONES if "alpha" not in n])
def test_so_many_are_dropped_and_the_mean_stays(name: str) -> None:
    mg.manual_seed(1)
    y = drop(name, mg.ones(ONES[name]), 0.25).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], 1e-6)
    assert abs(y.mean() - 1) < 0.06


@pytest.mark.parametrize("name", [n for n in ONES if "alpha" in n])
def test_alpha_dropout_keeps_mean_and_variance(name: str) -> None:
    mg.manual_seed(2)
    y = drop(name, mg.randn(2000, 40) if name == "alpha_dropout" else mg.randn(2000, 40, 1), 0.3).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"])
def test_whole_channels_are_dropped(name: str) -> None:
    y = drop(name, mg.ones(ONES[name]), 0.5).numpy()
    flat = y.reshape(*y.shape[:2], -1)
    assert (flat == flat[:, :, :1]).all() and len(np.unique(flat)) == 2
    assert len(np.unique(flat[0, :, 0])) == 2 and len(np.unique(flat[:, 0, 0])) == 2


@pytest.mark.parametrize(("name", "shape"), [("dropout1d", (50, 4)), ("dropout3d", (50, 2, 2, 2))])
def test_without_a_batch_the_first_dimension_is_channels(name: str, shape: tuple[int, ...]) -> None:
    y = drop(name, mg.ones(shape), 0.5).numpy().reshape(50, -1)
    assert (y == y[:, :1]).all() and len(np.unique(y)) == 2


@pytest.mark.parametrize("name", ONES)
def test_the_gradient_is_zero_where_something_was_dropped(name: str) -> None:
    shape = (4, 5, 3, 2, 2)[: len(ONES[name])]
    x = mg.randn(shape, dtype=mg.float64, requires_grad=True)
    state = mg.get_rng_state()
    drop(name, x, 0.5).backward(mg.ones(shape, dtype=mg.float64))
    mg.set_rng_state(state)
    slope = drop(name, mg.ones(shape, dtype=mg.float64), 0.5) - 0.0
    mg.set_rng_state(state)
    slope -= drop(name, mg.zeros(shape, dtype=mg.float64), 0.5)
    np.testing.assert_allclose(x.grad.numpy(), slope.numpy())
    assert 0 < (slope == 0).sum() < slope.numel()


@pytest.mark.parametrize("name", ONES)
def test_the_seed_decides(name: str) -> None:
    x = mg.ones(ONES[name])
    results = [drop(name, x, 0.5, generator=mg.Generator().manual_seed(s)) for s in (3, 3, 4)]
    assert mg.equal(results[0], results[1]) and not mg.equal(results[0], results[2])


@pytest.mark.parametrize("name", ONES)
def test_without_training_it_is_the_input(name: str) -> None:
    x = mg.ones(ONES[name])
    assert getattr(F, name)(x, 0.5, training=False) is x
    assert drop(name, x, 0.0) is x
    assert (drop(name, x, 1.0) == 0).all()


@pytest.mark.parametrize("name", ONES)
def test_in_place(name: str) -> None:
    """The write is recorded, and gives what the other form gives."""
    source = mg.ones(ONES[name], requires_grad=True)
    x = source * 2
    state = mg.get_rng_state()
    expected = drop(name, x, 0.5)
    mg.set_rng_state(state)
    assert drop(name, x, 0.5, inplace=True) is x
    assert mg.equal(x, expected) and x._version > 0
    found, = mg.autograd.grad(x.sum(), source, retain_graph=True)
    assert mg.equal(found, mg.autograd.grad(expected.sum(), source)[0])


def test_short_names_write_too() -> None:
    for name in ("dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"):
        x = mg.ones(20, 30)
        assert getattr(mg, name)(x, 0.5, True) is x and len(np.unique(x.numpy())) == 2
    y = mg.feature_dropout(mg.ones(20, 30, 2), 0.5, True)
    assert mg.equal(y[..., 0], y[..., 1])


def test_native_dropout_returns_the_mask() -> None:
    x = mg.ones(20, 30, requires_grad=True)
    y, mask = mg.native_dropout(x, 0.25, True)
    assert mask.dtype is mg.bool and mg.equal(y != 0, mask)
    assert mg.equal(mg.autograd.grad(y.sum(), x)[0], mg.native_dropout_backward(mg.ones(20, 30), mask, 1 / 0.75))
    y, mask = mg.native_dropout(x, 0.25, False)
    assert mg.equal(y, x) and mask.all()


@pytest.mark.parametrize("name", ONES)
@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_probabilities_out_of_range_are_refused(name: str, p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        drop(name, mg.ones(ONES[name]), p)


# ---------------------------------------------------------------------------------------------------------- other chance


def test_rrelu_draws_slopes_between_the_bounds() -> None:
    x = -mg.ones(1000, requires_grad=True)
    y = F.rrelu(x, 0.2, 0.4, training=True)
    slopes = -y.detach().numpy()
    assert 0.2 <= slopes.min() < 0.22 and 0.38 < slopes.max() <= 0.4
    assert np.array_equal(mg.autograd.grad(y.sum(), x)[0].numpy(), slopes)
    assert mg.equal(F.rrelu(mg.ones(9), training=True), mg.ones(9))
    z = -mg.ones(9)
    assert F.rrelu_(z, 0.2, 0.4, training=True) is z and (z > -0.5).all()


def test_gumbel_softmax_chooses_as_often_as_softmax_says() -> None:
    mg.manual_seed(5)
    logits = mg.tensor([0.1, 0.6, 0.3]).log().expand(4000, 3)
    hard = F.gumbel_softmax(logits, hard=True)
    np.testing.assert_allclose(hard.mean(0).numpy(), [0.1, 0.6, 0.3], atol=0.03)
    np.testing.assert_allclose(F.gumbel_softmax(logits, tau=2.0).sum(1).numpy(), 1, 1e-5)


def test_a_hard_choice_has_the_gradient_of_the_soft_one() -> None:
    grads = []
    for hard in (True, False):
        mg.manual_seed(6)
        x = mg.arange(6.0).reshape(2, 3).requires_grad_()
        (F.gumbel_softmax(x, hard=hard, dim=0) * mg.arange(6.0).reshape(2, 3)).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(*grads, 1e-5)


# ---------------------------------------------------------------------------------------------------------------- inplace=

IN_PLACE = ["relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardsigmoid", "hardswish", "rrelu"]


@pytest.mark.parametrize("name", [*IN_PLACE, "threshold"])
def test_inplace_writes_into_the_input(name: str) -> None:
    settings = (0.25, -1.0) if name == "threshold" else ()
    x = mg.linspace(-4, 4, 40, requires_grad=True)
    found = []
    for inplace in (False, True):
        y = x * 1.5
        z = getattr(F, name)(y, *settings, inplace=inplace)
        assert (z is y) == inplace
        found.append((z.detach().numpy().copy(), mg.autograd.grad((z * z).sum(), x)[0].numpy()))
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------------------------------------------------- what is refused

T = mg.tensor
REFUSED = {
    "class out of bounds": (lambda: F.cross_entropy(mg.zeros(2, 3), T([0, 3])), IndexError, "target 3 is out of bounds for 3 classes"),
    "negative class": (lambda: F.nll_loss(mg.zeros(2, 3), T([0, -1])), IndexError, "target -1 is out of bounds for 3 classes"),
    "float indices": (lambda: F.cross_entropy(mg.zeros(2, 3), T([0.0, 1.0])), ValueError, "they must have one shape"),
    "wrong index type": (lambda: F.cross_entropy(mg.zeros(2, 3), T([0, 1]).int()), RuntimeError, "must be int64, not int32"),
    "wrong batch": (lambda: F.cross_entropy(mg.zeros(2, 3), T([0, 1, 2])), ValueError, r"target of shape \(3,\) for x of shape \(2, 3\)"),
    "integer x": (lambda: F.cross_entropy(mg.zeros(2, 3).long(), T([0, 1])), RuntimeError, "floating point"),
    "reduction": (lambda: F.mse_loss(mg.zeros(2), mg.zeros(2), reduction="average"), ValueError, "'average' is not 'none', 'mean' or 'sum'"),
    "smoothing": (lambda: F.cross_entropy(mg.zeros(2, 3), T([0, 1]), label_smoothing=2.0), RuntimeError, "from 0 to 1"),
    "weight": (lambda: F.cross_entropy(mg.zeros(2, 3), T([0, 1]), mg.ones(2)), RuntimeError, "for 3 classes"),
    "weight that wants a gradient": (lambda: F.nll_loss(mg.zeros(2, 3), T([0, 1]), mg.ones(3, requires_grad=True)), RuntimeError, "weight.detach"),
    "probabilities out of range": (lambda: F.binary_cross_entropy(mg.full((2,), 1.5), mg.ones(2)), RuntimeError, "from 0 to 1"),
    "shapes that differ": (lambda: F.binary_cross_entropy_with_logits(mg.zeros(2), mg.zeros(2, 1)), ValueError, "one shape"),
    "a list": (lambda: F.relu([1.0]), TypeError, "expects a tensor, got list"),
    "an array for a target": (lambda: F.mse_loss(mg.zeros(2), np.zeros(2)), TypeError, "expects a tensor, got ndarray"),
    "integers": (lambda: F.gelu(T([1, 2])), RuntimeError, "not defined for int64"),
    "gelu": (lambda: F.gelu(mg.ones(2), "fast"), RuntimeError, "neither 'none' nor 'tanh'"),
    "linear": (lambda: F.linear(mg.ones(2, 3), mg.ones(3, 4)), RuntimeError, "cannot be multiplied"),
    "linear's types": (lambda: F.linear(mg.ones(2, 3), mg.ones(4, 3).double()), RuntimeError, "products do not promote"),
    "linear's bias": (lambda: F.linear(mg.ones(2, 3), mg.ones(4, 3), mg.ones(3)), RuntimeError, "bias of shape"),
    "one_hot": (lambda: F.one_hot(T([3]), 3), RuntimeError, "index 3 is out of range for 3 classes"),
    "ctc label": (lambda: F.ctc_loss(mg.zeros(4, 1, 3), T([[3]]), [4], [1]), RuntimeError, "label 3 is out of bounds for 3 classes"),
    "ctc length": (lambda: F.ctc_loss(mg.zeros(4, 1, 3), T([[1]]), [5], [1]), RuntimeError, r"input_lengths \[5\]"),
    "options": (lambda: F.linear_cross_entropy(mg.ones(2, 3), mg.ones(4, 3), T([0, 1]), options=1), NotImplementedError, "options=None"),
    "dropout of integers": (lambda: F.dropout(T([1, 2])), RuntimeError, "not defined for int64"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words) as caught:
        call()
    assert isinstance(caught.value, mg.MutagradError)


def test_targets_that_are_broadcast_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="incorrect results due to broadcasting. Please ensure they have the same size"):
        F.mse_loss(mg.zeros(3, 1), mg.zeros(3))
    with pytest.warns(UserWarning, match="Give dim=-1"):
        F.softmax(mg.zeros(3, 2))


def test_of_ignored_targets_alone_the_mean_is_nan() -> None:
    x = mg.zeros(2, 3, requires_grad=True)
    assert F.cross_entropy(x, T([-100, -100])).isnan()
    assert F.cross_entropy(x, T([-100, -100]), reduction="sum") == 0


def test_targets_that_cannot_be_spelled() -> None:
    x = mg.zeros(2, 1, 3, requires_grad=True)
    assert F.ctc_loss(x, T([[1, 1]]), [2], [2]) == float("inf")
    loss = F.ctc_loss(x, T([[1, 1]]), [2], [2], zero_infinity=True)
    loss.backward()
    assert loss == 0 and (x.grad == 0).all()


def test_indices_may_change_after_the_loss() -> None:
    x, t = mg.randn(4, 3, requires_grad=True), T([0, 1, 2, 0])
    loss = F.cross_entropy(x, t)
    expected, = mg.autograd.grad(loss, x, retain_graph=True)
    t.zero_()
    loss.backward()
    assert mg.equal(x.grad, expected)


def test_one_node_each() -> None:
    """The operations that every network spends its time in save little and are one node."""
    x, w, b = mg.randn(6, 4, requires_grad=True), mg.randn(3, 4, requires_grad=True), mg.randn(3, requires_grad=True)
    for y in (F.linear(x, w, b), F.gelu(x), F.cross_entropy(x, T([0] * 6)), F.nll_loss(x, T([0] * 6)), F.silu(x)):
        assert all(n.__class__.__name__ == "Leaf" or "Accumulate" in n.name() for n, _ in y.grad_fn.next_functions if n is not None)


def test_gelu_in_single_precision_is_as_exact_as_it_can_be() -> None:
    """Many elements go through a polynomial, few through erf, as all do in double precision."""
    values = np.concatenate([np.linspace(-12, 12, 2001), [1e10, -1e10, np.inf]])
    results = []
    for dtype in (mg.float32, mg.float64):
        x = mg.tensor(values.astype(np.float32), dtype=dtype, requires_grad=True)
        y = F.gelu(x)
        y.sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    for single, double in zip(*results):
        np.testing.assert_allclose(single[:-1], double[:-1], 1e-6, 1e-6)
    assert results[0][0][-1] == np.inf


def test_softmax_backward_data_is_the_adjoint_of_softmax() -> None:
    x, g = mg.randn(4, 3, requires_grad=True), mg.randn(4, 3)
    y = x.softmax(1)
    y.backward(g)
    np.testing.assert_allclose(mg._softmax_backward_data(g, y.detach(), 1, mg.float32).numpy(), x.grad.numpy(), 1e-5, 1e-6)
