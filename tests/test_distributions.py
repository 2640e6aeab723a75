"""Draws from distributions, and gradients through them. (Densities are compared with PyTorch's in tests/oracle.)"""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg
from mutagrad import distributions as D

MANY = 20000
EACH = [D.Normal(1.0, 2.0), D.LogNormal(0.2, 0.5), D.Uniform(-1.0, 2.0), D.Exponential(2.0), D.Laplace(1.0, 0.5), D.HalfNormal(2.0), D.Gumbel(1.0, 0.5), D.StudentT(8.0, 1.0, 2.0), D.Gamma(2.5, 1.5), D.Gamma(0.5, 1.0),
        D.Chi2(mg.tensor(3.0)), D.Beta(2.0, 3.0), D.Dirichlet(mg.tensor([0.5, 2.0, 3.0])), D.Bernoulli(0.3), D.Bernoulli(logits=0.5), D.Geometric(0.3),
        D.Binomial(7, 0.4), D.Poisson(3.0), D.OneHotCategorical(mg.tensor([0.2, 0.3, 0.5])), D.Multinomial(5, mg.tensor([0.2, 0.3, 0.5])),
        D.MixtureSameFamily(D.Categorical(mg.tensor([0.2, 0.8])), D.Normal(mg.tensor([0.0, 2.0]), 1.0)),
        D.MultivariateNormal(mg.tensor([1.0, -1.0]), mg.tensor([[2.0, 0.5], [0.5, 1.0]]))]


@pytest.mark.parametrize("d", EACH, ids=lambda d: type(d).__name__)
def test_draws_have_the_mean_and_the_variance(d: Any) -> None:
    mg.manual_seed(0)
    drawn = d.sample((MANY,))
    deviation = d.stddev
    assert bool(((drawn.mean(0) - d.mean).abs() < 5 * deviation / MANY ** 0.5).all())
    assert bool(((drawn.var(0) - d.variance).abs() < 0.1 * d.variance).all())
    assert not drawn.requires_grad and d.log_prob(drawn).shape == (MANY,)


def test_categories_come_up_as_often_as_they_should() -> None:
    mg.manual_seed(0)
    drawn = D.Categorical(mg.tensor([[1.0, 3.0], [1.0, 0.0]])).sample((MANY, 2))
    assert drawn.shape == (MANY, 2, 2) and drawn.dtype == mg.int64
    assert drawn[..., 0].double().mean().item() == pytest.approx(0.75, abs=0.02) and not drawn[..., 1].any()


# E[f(draw)] has a known derivative by the parameter: mean of x, or of its logarithm.
PATHS = [
    (lambda p: D.Normal(p, 1.0), 0.5, 1.0), (lambda p: D.Exponential(p), 2.0, -0.25), (lambda p: D.Gamma(p, 2.0), 1.5, 0.5), (lambda p: D.Gamma(p, 1.0), 0.4, 1.0),
    (lambda p: D.Uniform(0.0, p), 2.0, 0.5), (lambda p: D.Laplace(p, 1.0), 0.0, 1.0), (lambda p: D.Beta(p, 2.0), 2.0, 2.0 / 16.0),
    (lambda p: D.Independent(D.Normal(p.expand(1), 1.0), 1), 0.5, 1.0)]


@pytest.mark.parametrize("make, at, expected", PATHS)
def test_gradients_go_through_draws(make: Any, at: float, expected: float) -> None:
    mg.manual_seed(0)
    p = mg.tensor(at, dtype=mg.float64, requires_grad=True)
    make(p).rsample((MANY,)).mean().backward()
    assert p.grad.item() == pytest.approx(expected, abs=0.03)


def test_what_cannot_be_differentiated_says_so() -> None:
    for d in (D.Bernoulli(0.5), D.Poisson(1.0), D.Categorical(mg.ones(3))):
        with pytest.raises(NotImplementedError, match="not a differentiable function"):
            d.rsample()
    straight = D.OneHotCategoricalStraightThrough(logits=mg.zeros(3, requires_grad=True))
    assert straight.rsample().requires_grad
    with pytest.raises(NotImplementedError, match=r"cdf"):
        D.Dirichlet(mg.ones(2)).cdf(mg.ones(2))
    with pytest.raises(NotImplementedError, match="not known for Normal and Gamma"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Gamma(1.0, 1.0))


def test_validation_can_be_switched_off() -> None:
    D.Normal(0.0, -1.0, validate_args=False)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match=r"scale.*GreaterThan\(lower_bound=0.0\)"):
        D.Normal(0.0, -1.0)
    with pytest.raises(TypeError, match="number or a tensor"):
        D.Normal([0.0], 1.0)


def test_a_divergence_of_ones_own() -> None:
    class Mine(D.Normal):
        pass

    @D.register_kl(Mine, D.Normal)
    def rule(p: Any, q: Any) -> Any:
        return "mine"

    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == "mine"
    assert D.kl_divergence(D.Normal(0.0, 1.0), Mine(0.0, 1.0)).item() == 0


@pytest.mark.parametrize("make", [lambda p: D.Categorical(logits=p), lambda p: D.Bernoulli(logits=p), lambda p: D.OneHotCategorical(logits=p)])
def test_a_draw_before_does_not_cut_the_gradient(make: Any) -> None:
    p = mg.tensor([0.5, 1.0, -1.0], requires_grad=True)
    d = make(p)
    d.sample()
    found, = mg.autograd.grad((d.probs * d.probs).sum() + d.entropy().sum(), p)
    fresh = make(p)
    expected, = mg.autograd.grad((fresh.probs * fresh.probs).sum() + fresh.entropy().sum(), p)
    assert mg.allclose(found, expected) and found.abs().max().item() > 0.01


def test_what_other_libraries_build_distributions_with() -> None:
    utils = mg.distributions.utils

    class Twice:
        @utils.lazy_property
        def value(self) -> Any:
            self.asked = getattr(self, "asked", 0) + 1
            return mg.ones(1)

    twice = Twice()
    assert twice.value is twice.value and twice.asked == 1 and isinstance(Twice.value, utils.lazy_property)
    matrix = utils.vec_to_tril_matrix(mg.tensor([1.0, 2.0, 3.0]))
    assert matrix.tolist() == [[1, 0], [2, 3]] and utils.tril_matrix_to_vec(matrix).tolist() == [1, 2, 3]
    assert utils.vec_to_tril_matrix(mg.ones(5, 3), -1).shape == (5, 3, 3)
    probs = mg.tensor([0.25, 0.75])
    assert mg.allclose(utils.logits_to_probs(utils.probs_to_logits(probs)), probs)
    assert mg.allclose(utils.logits_to_probs(utils.probs_to_logits(probs, True), True), probs)


def test_correlation_factors_are_drawn() -> None:
    mg.manual_seed(0)
    drawn = mg.distributions.LKJCholesky(3, mg.tensor([0.7, 2.0])).sample((4000,))
    assert bool(mg.distributions.constraints.corr_cholesky.check(drawn).all())
    variance = (drawn @ drawn.mT).var(0)[:, 1, 0]
    assert mg.allclose(variance, 1 / (2 * mg.tensor([0.7, 2.0]) + 2), atol=0.02)  # each correlation is a stretched beta number
    with pytest.raises(ValueError, match="two rows"):
        mg.distributions.LKJCholesky(1)


def test_a_subclass_of_independent_stays_one_when_expanded() -> None:
    class Diagonal(mg.distributions.Independent):
        def __init__(self, loc: Any) -> None:
            super().__init__(mg.distributions.Normal(loc, 1.0), 1)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self._get_checked_instance(Diagonal, _instance))

    wide = Diagonal(mg.zeros(3)).expand((4,))
    assert type(wide) is Diagonal and wide.batch_shape == (4,) and wide.event_shape == (3,) and wide.sample().shape == (4, 3)
