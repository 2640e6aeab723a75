"""An adjoint that is exactly zero stays zero where the derivative is infinite or undefined: for every elementwise operation of the table."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.numpy import fp_error
from mutagrad.core.op import TABLE
from samples import SAMPLES, Sample, named

# Where functions have poles, edges and kinks, and where they have none.
POINTS = [-3.0, -2.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0]
UNARY = [s for s in SAMPLES if s.elementwise and s.grad and len(s.draws) == 1 and not s.settings and s.draws[0].shape == (5, 7)]
BINARY = [s for s in SAMPLES if s.elementwise and s.grad and len(s.draws) == 2 and not s.settings and [d.shape for d in s.draws] == [(5, 7), (5, 7)]]


def function(sample: Sample) -> Any:
    return named(mg, sample.name) or getattr(mg.Tensor, sample.name)


def check(f: Any, points: list[np.ndarray[Any, Any]], repeat: int, **options: Any) -> None:
    """Masking what is not finite leaves the rest of the gradient, and zeros."""
    arrays = [np.tile(p, repeat) for p in points]
    plain = [mg.tensor(a, requires_grad=True) for a in arrays]
    y = f(*plain)
    with mg.autograd.strong_zeros(False):
        expected = [g.detach().numpy() for g in mg.autograd.grad(y.sum(), plain, materialize_grads=True)]
    good = np.logical_and.reduce([np.isfinite(g) for g in expected]) & np.isfinite(y.detach().numpy())
    xs = [mg.tensor(a, requires_grad=True) for a in arrays]
    found = mg.autograd.grad(mg.where(mg.tensor(good), f(*xs), 0.0).sum(), xs, materialize_grads=True, **options)
    for g, e in zip(found, expected):
        assert np.array_equal(g.detach().numpy(), np.where(good, e, 0.0))
    if options and any(g.requires_grad for g in found):
        for second in mg.autograd.grad(sum((g * g).sum() for g in found), xs, materialize_grads=True):
            assert np.isfinite(second.numpy()[~good]).all()


@pytest.mark.parametrize("repeat", [1, 20_000], ids=["small", "large"])
@pytest.mark.parametrize("sample", UNARY, ids=lambda s: s.name)
def test_functions_of_one(sample: Sample, repeat: int) -> None:
    check(function(sample), [np.array(POINTS)], repeat)


@pytest.mark.parametrize("sample", BINARY, ids=lambda s: s.name)
def test_functions_of_two(sample: Sample) -> None:
    x, y = np.meshgrid(POINTS, POINTS)
    check(function(sample), [x.ravel(), y.ravel()], 1)


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "log", "reciprocal", "asin", "acosh", "atanh", "logit"])
def test_second_order(name: str) -> None:
    """The second sweep must not meet the infinities of the first."""
    check(getattr(mg, name), [np.array(POINTS)], 1, create_graph=True)


@pytest.mark.parametrize("name", ["div", "pow", "atan2", "hypot"])
def test_second_order_of_two(name: str) -> None:
    x, y = np.meshgrid(POINTS, POINTS)
    check(getattr(mg, name), [x.ravel(), y.ravel()], 1, create_graph=True)


def test_a_zero_adjoint_is_no_constant() -> None:
    """The Hessian of (sqrt(x) - 2)^2 at 4 is 1/8, although the adjoint is zero there and the alarm rings elsewhere."""
    x = mg.tensor([0.0, 4.0], requires_grad=True)
    g, = mg.autograd.grad(((x.sqrt() - 2) ** 2).sum(), x, create_graph=True)
    assert mg.autograd.grad(g[1], x)[0][1].item() == pytest.approx(1 / 8)


def test_true_infinities_stay() -> None:
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    x.sqrt().sum().backward()
    assert x.grad.tolist() == [np.inf, 0.5]


def test_in_place_and_elements() -> None:
    x = mg.tensor([0.0, 4.0], requires_grad=True)
    y = x * 1
    y.sqrt_()
    y[0] = 7.0
    y[1] = y[1] + x[0].sqrt() * 0.0
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_switch() -> None:
    x = mg.tensor([0.0, 4.0], requires_grad=True)

    def gradient() -> Any:
        return mg.autograd.grad(mg.where(x > 0, x.sqrt(), 0.0).sum(), x)[0].tolist()

    assert gradient() == [0.0, 0.25]
    with mg.autograd.strong_zeros(False):
        assert np.isnan(gradient()[0])
    assert gradient() == [0.0, 0.25]
    assert np.isnan(mg.autograd.strong_zeros(False)(gradient)()[0])
    mg.autograd.strong_zeros(False)
    try:
        assert np.isnan(gradient()[0])
        seen: list[Any] = []
        other = threading.Thread(target=lambda: seen.append(gradient()))
        other.start()
        other.join()
        assert seen == [[0.0, 0.25]], "the switch is the thread's"
    finally:
        mg.autograd.strong_zeros(True)


def test_the_alarm_is_free_where_nothing_is_singular() -> None:
    """No array is looked at: the rules run as often as without."""
    calls: list[Any] = []
    op = TABLE["log"]
    original = op.reverse
    op.reverse = lambda *a: calls.append(a) or original(*a)
    try:
        x = mg.tensor([1.0, 2.0], requires_grad=True)
        x.log().sum().backward()
    finally:
        op.reverse = original
    assert len(calls) == 1 and not fp_error.raised


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("place", [0, -1])
def test_they_do_not_depend_on_which_thread_meets_the_singularity(strong: bool, place: int) -> None:
    """Of a large array the caller computes the first part, and a helper the last; both under the caller's error state."""
    before = mg.get_num_threads()
    mg.set_num_threads(2)
    try:
        x = mg.ones(1_000_000, dtype=mg.float64)
        x[place] = 0.0
        x.requires_grad_()
        for _ in range(5):
            x.grad = None
            with mg.autograd.strong_zeros(strong):
                mg.where(x > 0, mg.sqrt(x), 0.0).sum().backward()
            assert x.grad[place].isnan().item() is not strong
            assert x.grad[1].item() == 0.5
    finally:
        mg.set_num_threads(before)
