"""Divergences between distributions of different kinds, from what the second one's density is an expectation of.

The divergence is -entropy(p) - E log q(x). For an exponential q that takes the mean of p, for a normal one the
variance, too, for a gamma one the mean of log x, and for a Gumbel one that of exp(-x / scale).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..nn.functional import softplus
from ..ops.create.create import full_like
from ..ops.math.elementwise import erf, where
from ..ops.math.special import digamma, lgamma, xlogy
from ..tensors.tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import EULER, Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform

_INFINITE = float("inf")


# ----------------------------------------------------------------------------------------- expectations under the first

def _x_log_x(x: Tensor) -> Tensor:
    return xlogy(x, x)


MEAN_LOG: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -EULER - p.rate.log(),
    Gamma: lambda p: digamma(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1,
}
MEAN_EXP: dict[type, Callable[[Any, Any], Tensor]] = {  # of exp(-x / scale)
    Exponential: lambda p, scale: p.rate * scale / (p.rate * scale + 1),
    Gamma: lambda p, scale: (1 + 1 / (p.rate * scale)) ** -p.concentration,
    Normal: lambda p, scale: (-p.loc / scale + 0.5 * (p.scale / scale) ** 2).exp(),
    Uniform: lambda p, scale: scale * ((-p.low / scale).exp() - (-p.high / scale).exp()) / (p.high - p.low),
}


# ------------------------------------------------------------------------------------------- where the second is finite

def _to_exponential(p: Distribution, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_normal(p: Distribution, q: Normal) -> Tensor:
    return (-p.entropy() + 0.5 * (2 * math.pi * q.variance).log()
            + 0.5 * (p.variance + (p.mean - q.loc) ** 2) / q.variance)


def _to_gamma(p: Distribution, q: Gamma) -> Tensor:
    mean_log = MEAN_LOG[_kind(p, MEAN_LOG)](p)
    return (-p.entropy() + lgamma(q.concentration) - q.concentration * q.rate.log()
            - (q.concentration - 1) * mean_log + q.rate * p.mean)


def _to_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    mean_exp = MEAN_EXP[_kind(p, MEAN_EXP)](p, q.scale)
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * mean_exp


def _to_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits + softplus(q.logits) - q._cont_bern_log_norm()


def _kind(p: Distribution, table: dict[type, Any]) -> type:
    return next(kind for kind in type(p).__mro__ if kind in table)


def _beyond(outside: Tensor, found: Tensor) -> Tensor:
    """Infinite where p can be where q cannot."""
    return where(outside, _INFINITE, found)


ALWAYS: list[tuple[tuple[type, ...], type, Callable[[Any, Any], Tensor]]] = [
    ((Beta, ContinuousBernoulli, Gamma, Pareto), Exponential, _to_exponential),
    ((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto), Normal, _to_normal),
    ((Beta, Exponential, Pareto), Gamma, _to_gamma),
    ((Exponential, Gamma, Normal, Uniform), Gumbel, _to_gumbel),
    ((Beta,), ContinuousBernoulli, _to_continuous_bernoulli),
]
for _kinds_of_p, _kind_of_q, _rule in ALWAYS:
    for _kind_of_p in _kinds_of_p:
        register_kl(_kind_of_p, _kind_of_q)(_rule)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    away = p.loc - q.loc
    ratio = away / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * (-0.5 * ratio ** 2).exp() + away * erf(math.sqrt(0.5) * ratio)
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - p.probs * q.rate.log() + q.rate


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Distribution, q: Uniform) -> Tensor:
    return _beyond((q.high < 1) | (q.low > 0), -p.entropy() + (q.high - q.low).log())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    low = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    high = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = lgamma(q.concentration1) + lgamma(q.concentration0) - lgamma(q.concentration1 + q.concentration0)
    return _beyond((p.high > 1) | (p.low < 0), high - low + normalizer - width.log())


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return _beyond((p.high > 1) | (p.low < 0), _to_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _beyond(p.low < 0, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _beyond(p.low < 0, _to_gamma(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    found = (q.alpha + 1) * MEAN_LOG[Uniform](p) - q.alpha.log() - q.alpha * q.scale.log() - (p.high - p.low).log()
    return _beyond(p.low < q.scale, found)


# ---------------------------------------------------------------------------------------------------- where it never is

def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return full_like(p.mean + q.mean, _INFINITE)


INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _kind_of_p, _kinds_of_q in INFINITE.items():
    for _kind_of_q in _kinds_of_q:
        register_kl(_kind_of_p, _kind_of_q)(_infinite)
