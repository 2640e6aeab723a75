"""How much one distribution differs from another."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..arrays.kinds import anywhere
from ..base.errors import BadArgument, NotSupported
from ..nn.functional import softplus
from ..ops.linalg.cholesky import cholesky_solve
from ..ops.linalg.solving import solve_triangular
from ..ops.math.elementwise import where
from ..ops.math.special import digamma, lgamma, mvlgamma
from ..tensors.tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily, slopes
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import EULER, Gumbel
from .half_cauchy import HalfCauchy
from .half_normal import HalfNormal
from .independent import Independent, sum_rightmost
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, half_log_det, squared_distance
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .wishart import Wishart, mvdigamma

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Rule] = {}  # under PyTorch's name, by which torchrl enters its own
_INFINITE = float("inf")


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Return a decorator for the function that computes the divergence of two kinds of distribution.

    >>> import mutagrad as mg
    >>> class Point(mg.distributions.Normal):
    ...     pass
    >>> @mg.distributions.register_kl(Point, Point)
    ... def divergence(p, q):
    ...     return (p.loc - q.loc).abs()
    >>> mg.distributions.kl_divergence(Point(1., 1.), Point(3., 1.))
    tensor(2.)
    """
    if not (isinstance(type_p, type) and isinstance(type_q, type)):
        raise BadArgument("register_kl: expects two classes of distributions")

    def register(rule: Rule) -> Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the expectation under p of log p - log q.

    >>> import mutagrad as mg
    >>> d = mg.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _KL_REGISTRY:
                return _KL_REGISTRY[a, b](p, q)
    raise NotSupported(f"kl_divergence: not known for {type(p).__name__} and {type(q).__name__}",
                       fix="(p.log_prob(x) - q.log_prob(x)).mean() over samples x of p estimates it")


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotSupported("kl_divergence: of distributions that are transformed in different ways",
                           fix="the same transforms")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, _INFINITE, found)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return (p.mean * (p.logits - q.logits) + p._cont_bern_log_norm() - q._cont_bern_log_norm()
            + softplus(q.logits) - softplus(p.logits))


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Tensor:
    n, half = p.event_shape[0], p.df / 2
    trace = cholesky_solve(p.covariance_matrix, q.scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
    return (q.df * (half_log_det(q.scale_tril) - half_log_det(p.scale_tril)) + half * (trace - n)
            + mvlgamma(q.df / 2, n) - mvlgamma(half, n) + (p.df - q.df) / 2 * mvdigamma(half, n))


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotSupported("kl_divergence: of two different members of the exponential family is not known",
                           fix="register_kl")
    theta, normalizer, means = slopes(p)
    found = q._log_normalizer(*q._natural_params) - normalizer
    for mine, yours, mean in zip(theta, q._natural_params, means):
        found = found - sum_rightmost((yours - mine) * mean, len(q.event_shape))
    return found


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: HalfCauchy, q: HalfCauchy) -> Tensor:
    return _cauchy(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + away + ratio * EULER + (lgamma(1 + ratio) - away).exp() - (1 + EULER)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise BadArgument(f"kl_divergence: vectors of {p.event_shape[0]} and of {q.event_shape[0]} elements")
    n = p.event_shape[0]
    batch = (p.loc[..., 0] + q.loc[..., 0]).shape
    ours, theirs = p.scale_tril.expand(*batch, n, n), q.scale_tril.expand(*batch, n, n)
    spread = solve_triangular(theirs, ours, upper=False).pow(2).sum((-2, -1))
    return (half_log_det(q.scale_tril) - half_log_det(p.scale_tril)
            + 0.5 * (spread + squared_distance(q.scale_tril, q.loc - p.loc) - n))


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    return (q.concentration * (p.rate / q.rate).log() + lgamma(q.concentration) - lgamma(p.concentration)
            + (p.concentration - q.concentration) * digamma(p.concentration)
            + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    return (lgamma(a.sum(-1)) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
            + ((a - b) * (digamma(a) - digamma(a.sum(-1)).unsqueeze(-1))).sum(-1))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = where(p.probs == 0, 0.0, where(q.probs == 0, _INFINITE, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return ones + where(p.probs == 1, 0.0, where(q.probs == 1, _INFINITE, zeros))


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if anywhere((p.total_count < q.total_count)._array):
        raise NotSupported("kl_divergence: of binomials, where the second has more trials, is not known in closed form")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return where(p.total_count > q.total_count, _INFINITE, found)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0.0, where(q.probs == 0, _INFINITE, terms)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    return where((q.low > p.low) | (q.high < p.high), _INFINITE, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    away = (p.high + p.low - 2 * q.loc) / 2
    return (math.sqrt(2 * math.pi) * q.scale / width).log() + 0.5 * (width ** 2 / 12 + away ** 2) / q.scale ** 2


@register_kl(Independent, Independent)
def _independent(p: Independent[Any], q: Independent[Any]) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotSupported("kl_divergence: of Independent with different numbers of dimensions",
                           fix="the same reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
