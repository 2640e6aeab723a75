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
        D.MultivariateNormal(mg.tensor([1.0, -1.0]), mg.tensor([[2.0, 0.5], [0.5, 1.0]])), D.Pareto(1.0, 6.0), D.GeneralizedPareto(0.5, 1.0, 0.05), D.Weibull(2.0, 1.5),
        D.Kumaraswamy(1.5, 2.5), D.InverseGamma(7.0, 2.0), D.FisherSnedecor(5.0, 20.0), D.ContinuousBernoulli(0.3), D.ContinuousBernoulli(logits=0.001),
        D.LowRankMultivariateNormal(mg.tensor([1.0, -1.0]), mg.tensor([[1.0], [0.5]]), mg.tensor([0.5, 1.0])), D.Wishart(5.0, mg.tensor([[2.0, 0.5], [0.5, 1.0]]))]


@pytest.mark.parametrize("d", EACH, ids=lambda d: type(d).__name__)
def test_what_every_one_has(d: Any) -> None:
    event = len(d.event_shape)
    assert d.support.event_dim == event and d.support.is_discrete in (True, False)
    told = type(d).support
    if not D.constraints.is_dependent(told):
        assert told.event_dim == event and told.is_discrete == d.support.is_discrete
    wide = d.expand([4, *d.batch_shape])
    assert type(wide) is type(d) and wide.batch_shape == (4, *d.batch_shape) and wide.event_shape == d.event_shape
    drawn = wide.sample((2,))
    assert drawn.shape == (2, 4, *d.batch_shape, *d.event_shape) and mg.allclose(wide.log_prob(drawn), d.log_prob(drawn)) and bool(d.support.check(drawn).all())
    assert mg.allclose(wide.mean, d.mean.expand_as(wide.mean)) and mg.allclose(wide.variance, d.variance.expand_as(wide.variance))
    assert repr(d).startswith(type(d).__name__) and mg.allclose(d.stddev, d.variance.sqrt())
    if d.has_rsample:
        assert d.rsample((3,)).shape == (3, *d.batch_shape, *d.event_shape)


@pytest.mark.parametrize("d", EACH, ids=lambda d: type(d).__name__)
def test_draws_have_the_mean_and_the_variance(d: Any) -> None:
    mg.manual_seed(0)
    drawn = d.sample((MANY,))
    deviation = d.stddev
    assert bool(((drawn.mean(0) - d.mean).abs() < 5 * deviation / MANY ** 0.5).all())
    assert bool(((drawn.var(0) - d.variance).abs() < 0.1 * d.variance).all())
    assert not drawn.requires_grad and d.log_prob(drawn).shape == (MANY,)


@pytest.mark.parametrize("d", EACH, ids=lambda d: type(d).__name__)
def test_the_entropy_is_a_mean(d: Any) -> None:
    mg.manual_seed(0)
    try:
        entropy = d.entropy().item()
    except NotImplementedError:
        return
    surprise = -d.log_prob(d.sample((MANY,)))
    assert entropy == pytest.approx(surprise.mean().item(), abs=5 * surprise.std().item() / MANY ** 0.5 + 1e-5)


def test_categories_come_up_as_often_as_they_should() -> None:
    mg.manual_seed(0)
    drawn = D.Categorical(mg.tensor([[1.0, 3.0], [1.0, 0.0]])).sample((MANY, 2))
    assert drawn.shape == (MANY, 2, 2) and drawn.dtype == mg.int64
    assert drawn[..., 0].double().mean().item() == pytest.approx(0.75, abs=0.02) and not drawn[..., 1].any()


# E[f(draw)] has a known derivative by the parameter: mean of x, or of its logarithm.
PATHS = [
    (lambda p: D.Normal(p, 1.0), 0.5, 1.0), (lambda p: D.Exponential(p), 2.0, -0.25), (lambda p: D.Gamma(p, 2.0), 1.5, 0.5), (lambda p: D.Gamma(p, 1.0), 0.4, 1.0),
    (lambda p: D.Uniform(0.0, p), 2.0, 0.5), (lambda p: D.Laplace(p, 1.0), 0.0, 1.0), (lambda p: D.Beta(p, 2.0), 2.0, 2.0 / 16.0),
    (lambda p: D.Independent(D.Normal(p.expand(1), 1.0), 1), 0.5, 1.0), (lambda p: D.Pareto(p, 4.0), 2.0, 4 / 3), (lambda p: D.GeneralizedPareto(p, 1.0, 0.1), 1.0, 1.0),
    (lambda p: D.Weibull(p, 1.0), 2.0, 1.0), (lambda p: D.InverseGamma(4.0, p), 2.0, 1 / 3), (lambda p: D.LowRankMultivariateNormal(p.expand(2), mg.ones(2, 1).double(), mg.ones(2).double()), 0.3, 1.0),
    (lambda p: D.Wishart(5.0, p * mg.eye(2).double()), 1.5, 2.5), (lambda p: D.RelaxedBernoulli(mg.tensor(1e-4).double(), logits=p), 0.0, None), (lambda p: D.LogisticNormal(p.expand(1), mg.tensor(1e-6).double()), 0.0, 0.0),
    (lambda p: D.FisherSnedecor(p, 8.0), 3.0, 0.0)]


@pytest.mark.parametrize("make, at, expected", PATHS)
def test_gradients_go_through_draws(make: Any, at: float, expected: float) -> None:
    mg.manual_seed(0)
    p = mg.tensor(at, dtype=mg.float64, requires_grad=True)
    make(p).rsample((MANY,)).mean().backward()
    assert p.grad.isfinite() if expected is None else p.grad.item() == pytest.approx(expected, abs=0.03)


def test_what_cannot_be_differentiated_says_so() -> None:
    for d in (D.Bernoulli(0.5), D.Poisson(1.0), D.Categorical(mg.ones(3))):
        with pytest.raises(NotImplementedError, match="not a differentiable function"):
            d.rsample()
    straight = D.OneHotCategoricalStraightThrough(logits=mg.zeros(3, requires_grad=True))
    assert straight.rsample().requires_grad
    with pytest.raises(NotImplementedError, match=r"cdf"):
        D.Dirichlet(mg.ones(2)).cdf(mg.ones(2))
    with pytest.raises(NotImplementedError, match="not known for Normal and StudentT"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.StudentT(1.0))


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


L, M = mg.tensor([[1.2, 0.0], [0.3, 1.1]]), mg.tensor([[1.5, 0.0], [-0.2, 0.8]])
PAIRS = [(D.Wishart(5.0, scale_tril=L), D.Wishart(6.5, scale_tril=M)), (D.LowRankMultivariateNormal(mg.zeros(2), L[:, :1], mg.ones(2)), D.MultivariateNormal(mg.ones(2), scale_tril=M)),
         (D.ContinuousBernoulli(0.3), D.ContinuousBernoulli(0.6)), (D.Pareto(1.0, 3.0), D.Pareto(0.8, 2.0)), (D.Beta(2.0, 3.0), D.Gamma(1.5, 2.0)), (D.Gamma(2.0, 3.0), D.Gumbel(0.5, 1.0)),
         (D.Uniform(0.2, 0.7), D.Beta(2.0, 3.0)), (D.Normal(0.5, 1.0), D.Laplace(0.0, 2.0)), (D.Weibull(1.0, mg.tensor(1.5)), D.Weibull(1.0, mg.tensor(1.5))),
         (D.LogisticNormal(mg.zeros(2), mg.ones(2)), D.LogisticNormal(mg.ones(2), 2 * mg.ones(2)))]


@pytest.mark.parametrize("p, q", PAIRS, ids=lambda d: type(d).__name__)
def test_divergences_are_means(p: Any, q: Any) -> None:
    mg.manual_seed(0)
    x = p.sample((MANY,))
    each = p.log_prob(x) - q.log_prob(x)
    assert D.kl_divergence(p, q).item() == pytest.approx(each.mean().item(), abs=5 * each.std().item() / MANY ** 0.5 + 1e-6)


def test_relaxed_draws_are_nearly_whole() -> None:
    mg.manual_seed(0)
    hard = D.RelaxedOneHotCategorical(mg.tensor(0.01), probs=mg.tensor([0.2, 0.3, 0.5])).rsample((MANY,))
    assert mg.allclose(hard.sum(-1), mg.ones(1)) and mg.allclose((hard > 0.5).float().mean(0), mg.tensor([0.2, 0.3, 0.5]), atol=0.02) and (hard.amax(-1) > 0.99).float().mean() > 0.95
    bits = D.RelaxedBernoulli(0.01, probs=mg.tensor(0.3)).sample((MANY,))
    assert (bits > 0.5).float().mean().item() == pytest.approx(0.3, abs=0.02)
    angles = D.VonMises(mg.tensor([0.5, 3.0]), 4.0).sample((MANY,))
    assert bool((angles.abs() <= 3.1416).all()) and mg.allclose(mg.atan2(angles.sin().mean(0), angles.cos().mean(0)), mg.tensor([0.5, 3.0]), atol=0.03)
    soft = D.RelaxedBernoulli(mg.tensor([2.0]), logits=mg.zeros(3)).expand((4, 3))
    assert soft.temperature.tolist() == [2.0] and soft.sample().shape == (4, 3) and D.LogisticNormal(0.0, 1.0).sample().shape == (2,)


BAD = [lambda: D.Pareto(-1.0, 1.0), lambda: D.Pareto(1.0, 0.0), lambda: D.Weibull(0.0, 1.0), lambda: D.Kumaraswamy(0.0, 1.0), lambda: D.InverseGamma(-1.0, 1.0), lambda: D.VonMises(0.0, -1.0),
       lambda: D.FisherSnedecor(0.0, 1.0), lambda: D.ContinuousBernoulli(1.5), lambda: D.RelaxedBernoulli(1.0, 1.5), lambda: D.GeneralizedPareto(0.0, -1.0, 0.0), lambda: D.Wishart(0.5, mg.eye(2)),
       lambda: D.Wishart(3.0, -mg.eye(2)), lambda: D.Wishart(3.0), lambda: D.LowRankMultivariateNormal(mg.zeros(2), mg.ones(3, 1), mg.ones(2)), lambda: D.HalfNormal(-1.0),
       lambda: D.LowRankMultivariateNormal(mg.zeros(2), mg.ones(2, 1), -mg.ones(2)), lambda: D.Pareto(2.0, 1.0).log_prob(mg.tensor(1.0)), lambda: D.Weibull(1.0, 1.0).log_prob(mg.tensor(-1.0)),
       lambda: D.RelaxedOneHotCategorical(1.0, mg.ones(3)).log_prob(mg.ones(3)), lambda: D.Kumaraswamy(1.0, 1.0).log_prob(mg.tensor(2.0))]


@pytest.mark.parametrize("make", BAD)
def test_what_cannot_be(make: Any) -> None:
    with pytest.raises(ValueError):
        make()


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


def test_what_is_given_is_looked_at_and_no_more() -> None:
    with pytest.raises(ValueError, match="df"):
        D.Chi2(mg.tensor([-2.0]))
    for d in (D.Bernoulli(logits=mg.zeros(3)), D.Categorical(logits=mg.zeros(3)), D.OneHotCategorical(logits=mg.zeros(3)), D.Binomial(3, logits=mg.zeros(3))):
        d.log_prob(d.enumerate_support())
        assert "probs" not in d.__dict__
    for d in (D.Poisson(2.0), D.Gamma(1.0, 1.0), D.Binomial(3, 0.5), D.NegativeBinomial(3, 0.5), D.VonMises(0.0, 1.0), D.Wishart(mg.tensor(2), mg.tensor([[1.0]]))):
        assert d.sample().shape == d.event_shape and d.sample((2,)).shape == (2, *d.event_shape)
    for bad in (mg.exp, [mg.exp]):
        with pytest.raises(ValueError, match="Transform"):
            D.TransformedDistribution(D.Normal(0.0, 1.0), bad)


def test_a_class_that_says_nothing_is_warned_about() -> None:
    class Zero(D.Distribution):
        def log_prob(self, value: Any) -> Any:
            self._validate_sample(value)
            return value * 0

    with pytest.warns(UserWarning, match="arg_constraints"):
        zero = Zero(validate_args=True)
    with pytest.warns(UserWarning, match="support"):
        zero.log_prob(mg.ones(2))
    for name in ("mean", "variance", "mode", "support", "arg_constraints"):
        with pytest.raises(NotImplementedError):
            getattr(zero, name)


@pytest.mark.parametrize("d", [D.MixtureSameFamily(D.Categorical(mg.ones(3)), D.Normal(mg.zeros(3), 1.0)), D.Independent(D.Normal(mg.zeros(3), 1.0), 1),
                               D.TransformedDistribution(D.Normal(mg.zeros(3), 1.0), [D.ExpTransform()])])
def test_a_subclass_stays_one(d: Any) -> None:
    d.__class__ = type("Mine", (type(d),), {})
    wide = d.expand((2, *d.batch_shape))
    assert type(wide) is type(d) and wide.sample().shape == (2, *d.batch_shape, *d.event_shape)


@pytest.mark.parametrize("kind", [mg.float32, mg.float64])
def test_small_concentrations_do_not_underflow(kind: Any) -> None:
    mg.manual_seed(0)
    drawn = D.Beta(mg.tensor(0.01, dtype=kind), mg.tensor(0.01, dtype=kind)).sample((MANY,))
    assert drawn.dtype is kind and bool(((drawn > 0) & (drawn < 1)).all())
    assert (drawn < 0.1).double().mean().item() == pytest.approx(0.5, abs=0.03) and (drawn > 0.9).double().mean().item() == pytest.approx(0.5, abs=0.03)


def test_edges() -> None:
    assert D.kl_divergence(D.Uniform(0.0, 1.0), D.Beta(1.0, 1.0)).item() == 0 and repr(D.Pareto(1.0, 2.0)) == "Pareto(alpha: 2.0, scale: 1.0)"
    assert [D.Gamma(c, 1).log_prob(0).item() for c in (0.5, 1, 2)] == [float("inf"), 0.0, -float("inf")]
    assert D.Dirichlet(mg.tensor([1, 2])).log_prob(mg.tensor([0, 1])).item() == pytest.approx(0.6931, abs=1e-3)
    for logit, value in ((-1e308, 0.0), (1e308, 1.0)):
        logits = mg.tensor([logit], dtype=mg.float64, requires_grad=True)
        found = D.ContinuousBernoulli(logits=logits).log_prob(mg.tensor([value], dtype=mg.float64))
        found.backward()
        assert found.item() == pytest.approx(3.58473, abs=1e-4) and logits.grad.item() == 0
    assert D.Independent(D.Bernoulli(mg.ones(3) / 2), 0).enumerate_support().shape == (2, 3)
    with pytest.raises(NotImplementedError):
        D.Independent(D.Bernoulli(mg.ones(3) / 2), 1).enumerate_support()
    with pytest.raises(ValueError, match=r"Expected value argument .* to be within the support .*"):
        D.Beta(1.0, 1.0).log_prob(mg.tensor(float("nan")))


# What libraries' subclasses ask.


class Measured(D.Normal):
    """Has tensors of its own, which have nothing to do with the batch."""

    def __init__(self, loc: Any, scale: Any) -> None:
        self.table, self.calls = mg.arange(5.0), [1]
        super().__init__(loc, scale)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._get_checked_instance(Measured, _instance)
        made.table = self.table
        return super().expand(batch_shape, _instance=made)


class Unready(D.Normal):
    def __init__(self, loc: Any) -> None:
        super().__init__(loc, 1.0)


class Unknown(D.Distribution):
    arg_constraints: Any = {}


def test_expand_leaves_the_attributes_of_a_subclass_to_the_subclass() -> None:
    d = Measured(mg.zeros(3), 1.0)
    wide = d.expand((2, 3))
    assert type(wide) is Measured and wide.table is d.table and not hasattr(wide, "calls") and wide.scale.shape == (2, 3)
    for d in (Unready(0.0), Unknown()):
        with pytest.raises(NotImplementedError, match="expand"):
            d.expand((2,))


def test_what_was_computed_lazily_is_expanded_or_computed_again() -> None:
    d = D.Bernoulli(logits=mg.zeros(3))
    assert d.probs.shape == (3,)
    wide = d.expand((2, 3))
    assert wide.probs.shape == wide.logits.shape == (2, 3)


class Held(D.MultivariateNormal):
    """Keeps its factor where it wants to, as gpytorch's does."""

    @property
    def _unbroadcasted_scale_tril(self) -> Any:
        return self._kept_factor

    @_unbroadcasted_scale_tril.setter
    def _unbroadcasted_scale_tril(self, value: Any) -> None:
        self._kept_factor = value


class Checked(D.Independent):
    """Has whether it is checked in common with what it is made of."""

    @property
    def _validate_args(self) -> bool:  # type: ignore[override]
        return self.base_dist._validate_args

    @_validate_args.setter
    def _validate_args(self, value: bool) -> None:
        self.base_dist._validate_args = value


def test_what_a_distribution_is_made_of_is_there_before_it_is_made() -> None:
    assert Checked(D.Normal(mg.zeros(3, 2), 1.0), 1).expand((4, 3)).base_dist.batch_shape == (4, 3, 2)


class Table(D.MultivariateNormal):
    """Shows its vectors as tables."""

    @property
    def event_shape(self) -> Any:
        return mg.Size([2, 2])


def test_a_subclass_may_show_its_events_in_another_shape() -> None:
    plain, table = (kind(mg.zeros(4), mg.eye(4)) for kind in (D.MultivariateNormal, Table))
    assert mg.equal(table.entropy(), plain.entropy())


def test_the_factor_of_a_covariance_is_kept_as_it_was_given() -> None:
    for kind in (D.MultivariateNormal, Held):
        d = kind(mg.zeros(4, 2), mg.eye(2) * 4)
        assert d._unbroadcasted_scale_tril.shape == (2, 2) and d.scale_tril.shape == (4, 2, 2)
        assert mg.equal(d.variance, mg.full((4, 2), 4.0)) and d.entropy().shape == (4,)
        wide = d.expand((3, 4))
        assert wide._unbroadcasted_scale_tril is d._unbroadcasted_scale_tril and wide.precision_matrix.shape == (3, 4, 2, 2)
    low = D.LowRankMultivariateNormal(mg.zeros(4, 2), mg.ones(2, 1), mg.ones(2))
    assert low._unbroadcasted_cov_factor.shape == (2, 1) and low._capacitance_tril.shape == (1, 1) and low.scale_tril.shape == (4, 2, 2)
    assert D.Wishart(mg.tensor([3.0, 4.0]), mg.eye(2))._unbroadcasted_scale_tril.shape == (2, 2)


class Learned(D.Transform, mg.nn.Module):
    domain = codomain = D.constraints.real
    bijective = True

    def __init__(self) -> None:
        super().__init__(cache_size=1)
        self.shift = mg.nn.Parameter(mg.ones(()))

    def _call(self, x: Any) -> Any:
        return x + self.shift


class Prior(D.Normal, mg.nn.Module):
    """A distribution whose parameters are buffers: attributes that can be deleted."""

    def __init__(self) -> None:
        super().__init__(mg.zeros(2), 1.0)
        for name in ("loc", "scale"):
            value = getattr(self, name)
            delattr(self, name)
            self.register_buffer(name, value.clone())

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=D.Normal.__new__(D.Normal))


def test_distributions_and_transforms_inherit_cooperatively() -> None:
    transform = Learned()
    assert [name for name, _ in transform.named_parameters()] == ["shift"]
    assert transform(mg.zeros(2)).tolist() == [1.0, 1.0]
    prior = Prior()
    assert sorted(prior.state_dict()) == ["loc", "scale"] and prior.log_prob(mg.zeros(2)).shape == (2,)
    assert prior.expand((3, 2)).loc.shape == (3, 2)


def test_what_a_class_says_of_its_support_and_of_its_transform() -> None:
    assert D.Categorical.support.is_discrete and D.Categorical.support.event_dim == 0  # type: ignore[attr-defined]
    assert not D.TransformedDistribution.support.is_discrete and D.LogNormal.has_rsample is True  # type: ignore[attr-defined]
    assert not D.AffineTransform.domain.is_discrete and not D.ComposeTransform.codomain.is_discrete
    assert D.constraints.is_dependent(D.CatTransform.domain) and issubclass(D.HalfNormal, D.TransformedDistribution)
    assert all(c.event_dim == 0 and not c.is_discrete for kind in (D.Uniform, D.Normal) for c in kind.arg_constraints.values())
    with pytest.raises(NotImplementedError):
        _ = D.Independent.support.is_discrete  # type: ignore[attr-defined]
