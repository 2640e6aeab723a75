"""Steps, comparisons, bounds and stairs: values between the exact ones, and where they meet."""
from __future__ import annotations

import math

import pytest

import mutagrad as mg
from mutagrad import relax
from tools import leaf, same

LINE = mg.linspace(-4, 4, 161, dtype=mg.float64)


def test_steps_are_halfway_where_the_exact_one_jumps() -> None:
    zero = mg.zeros(1)
    for t in (1e-6, 0.3, 5.0):
        assert relax.step(zero, temperature=t).item() == relax.gt(zero, 0.0, temperature=t).item() == relax.le(zero, 0.0, temperature=t).item() == 0.5
        assert relax.sign(zero, temperature=t).item() == 0 and relax.eq(zero, 0.0, temperature=t).item() == 1 and relax.ne(zero, 0.0, temperature=t).item() == 0


def test_comparisons_with_tensors_broadcast_and_promote() -> None:
    x, y = mg.tensor([[0.0], [1.0]]), mg.tensor([0, 1, 2])
    assert mg.equal(relax.gt(x, y, temperature=1e-3) > 0.5, x > y) and mg.equal(relax.eq(x, y, temperature=1e-3) > 0.5, x == y)
    assert relax.lt(x, y.double()).dtype == mg.float64


def test_the_derivative_of_a_step_is_an_even_bump_that_integrates_to_one() -> None:
    x = mg.linspace(-20, 20, 4001, dtype=mg.float64, requires_grad=True)
    relax.step(x, temperature=0.5).sum().backward()
    assert x.grad.sum().item() * 0.01 == pytest.approx(1) and mg.allclose(x.grad, x.grad.flip(0))


def test_where_moves_both_values_and_the_threshold() -> None:
    score, x, y = leaf(0.2), leaf(3.0), leaf(5.0)
    relax.where(score, x, y, temperature=0.5).backward()
    p = 1 / (1 + math.exp(-0.4))
    same(x.grad, [p]), same(y.grad, [1 - p]), same(score.grad, [(3 - 5) * p * (1 - p) / 0.5])


def test_where_does_not_touch_what_it_does_not_choose() -> None:
    score, x, y = leaf(-200.0, 200.0), leaf(math.inf, 1.0), leaf(1.0, math.nan)
    out = relax.where(score, x, y)
    out.sum().backward()
    same(out, [1, 1]), same(score.grad, [0, 0]), same(x.grad, [0, 1]), same(y.grad, [1, 0])


def test_where_says_what_a_score_is() -> None:
    with pytest.raises(TypeError, match="expects a score") as raised:
        relax.where(mg.tensor([True]), 1.0, 0.0)
    assert "relax.where(a - b, x, y)" in raised.value.fix


@pytest.mark.parametrize("t", [0.01, 0.5, 3.0])
def test_the_larger_is_too_large_by_no_more_than_is_said(t: float) -> None:
    excess = relax.maximum(LINE, 0.3, temperature=t) - LINE.clamp(min=0.3)
    assert excess.min() >= 0 and excess.max() <= t * math.log(2) + 1e-12
    lack = LINE.clamp(max=0.3) - relax.minimum(LINE, 0.3, temperature=t)
    assert lack.min() >= 0 and lack.max() <= t * math.log(2) + 1e-12
    assert 0 <= relax.max(LINE, temperature=t) - LINE.max() <= t * math.log(len(LINE))
    assert 0 <= LINE.min() - relax.min(LINE, temperature=t) <= t * math.log(len(LINE))


def test_infinite_ones_are_the_largest_and_the_smallest() -> None:
    low, high = mg.full((3,), -math.inf), mg.tensor([math.inf, 1.0])
    assert relax.max(low).item() == -math.inf and relax.max(high).item() == math.inf and relax.min(-low).item() == math.inf


def test_what_overflows_over_the_temperature_has_its_derivatives() -> None:
    x = leaf(1e35, -1e35, math.inf, -math.inf, 2.0)
    for function, slope in ((relax.maximum, [1, 0, 1, 0, 1]), (relax.minimum, [0, 1, 0, 1, 0])):
        first = mg.autograd.grad(function(x, 0.0, temperature=1e-6).sum(), x, create_graph=True)[0]
        same(first, slope), same(mg.autograd.grad(first.sum(), x)[0], [0] * 5)
        same(mg.func.jvp(lambda v: function(v, 0.0, temperature=1e-6), (x.detach(),), (mg.ones(5),))[1], slope)


def test_the_gradient_of_the_largest_is_softmax() -> None:
    x = leaf(1.0, 2.0, 4.0)
    relax.max(x, temperature=0.7).backward()
    same(x.grad, (x.detach() / 0.7).softmax(0))


def test_equal_ones_share_the_gradient_and_the_curvature() -> None:
    x, y = leaf(2.0, dtype=mg.float64), leaf(2.0, dtype=mg.float64)
    first = mg.autograd.grad(relax.maximum(x, y, temperature=0.5).sum(), x, create_graph=True)[0]
    same(first, [0.5]), same(mg.autograd.grad(first.sum(), x)[0], [0.25 / 0.5])


def test_limits_are_never_passed_and_infinity_reaches_them() -> None:
    for t in (1e-6, 0.2, 4.0):
        out = relax.clamp(LINE * 100, -1.0, 2.0, temperature=t)
        assert out.min() >= -1 and out.max() <= 2 and bool((out[1:] >= out[:-1]).all())
    x = leaf(math.inf, -math.inf, 1e30, -1e30)
    out = relax.clamp(x, -1.0, 2.0)
    out.sum().backward()
    same(out, [2, -1, 2, -1]), same(x.grad, [0, 0, 0, 0])
    x = leaf(math.inf, -math.inf)
    relax.maximum(x, 0.0).sum().backward()
    same(x.grad, [1, 0])


def test_limits_may_be_tensors_that_are_learned() -> None:
    low, high = leaf(0.0), leaf(1.0)
    relax.clamp(mg.tensor([-5.0, 0.5, 5.0]), low, high, temperature=0.1).sum().backward()
    assert 0.99 < low.grad.item() < 1.01 and 0.99 < high.grad.item() < 1.01


def test_a_small_number_beside_a_large_one_is_not_lost() -> None:
    assert relax.maximum(mg.tensor(-1e30), 1.0).item() == 1 and relax.minimum(mg.tensor(1e30), 1.0).item() == 1
    assert relax.clamp(mg.tensor(1e30), 0.0, 1.0).item() == 1 and relax.max(mg.tensor([-1e30, 1.0])).item() == 1


def test_bad_limits() -> None:
    with pytest.raises(ValueError, match="nothing is between 2"):
        relax.clamp(LINE, 2.0, 1.0)
    with pytest.raises(TypeError, match="needs a min, a max or both"):
        relax.clamp(LINE)
    with pytest.raises(TypeError, match="expects a tensor or a number, got str"):
        relax.maximum(LINE, "0")  # type: ignore[arg-type]


@pytest.mark.parametrize("t", [1e-3, 0.1, 1.0])
def test_stairs_pass_integers_and_halves_and_rise_without_a_jump(t: float) -> None:
    halves = mg.arange(-6, 7, dtype=mg.float64) / 2
    same(relax.round(halves, temperature=t), halves), same(relax.floor(halves, temperature=t), halves - 0.5), same(relax.ceil(halves, temperature=t), halves + 0.5)
    x = mg.linspace(0, 2, 2001, dtype=mg.float64, requires_grad=True)
    y = relax.round(x, temperature=t)
    y.sum().backward()
    assert bool((y[1:] >= y[:-1]).all()) and float(x.grad[999:1002].max() - x.grad[999:1002].min()) < 0.02


def test_warm_stairs_are_a_slope() -> None:
    same(relax.round(LINE, temperature=1e3), LINE, 1e-5), same(relax.floor(LINE, temperature=1e3), LINE - 0.5, 1e-5)
