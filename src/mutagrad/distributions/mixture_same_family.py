"""Mixtures of distributions of one kind."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..autograd import no_grad
from ..base.errors import BadArgument
from ..base.modes import keeps_modes
from ..ops.reduce.softmax import log_softmax, logsumexp
from ..tensors.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .constraints import Constraint
from .distribution import Distribution

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """One of the last batch dimension of `component_distribution`, chosen by `mixture_distribution`.

    >>> import mutagrad as mg
    >>> weights = mg.distributions.Categorical(mg.tensor([0.5, 0.5]))
    >>> parts = mg.distributions.Normal(mg.tensor([-1., 1.]), 1.)
    >>> mg.distributions.MixtureSameFamily(weights, parts).log_prob(mg.tensor(0.))
    tensor(-1.4189)
    """

    arg_constraints: Mapping[str, Constraint] = {}

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise BadArgument("MixtureSameFamily: the first distribution chooses, and must be a Categorical",
                              fix="Categorical(logits=weights)")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        if component_distribution.batch_shape[-1:] != mixture_distribution.param_shape[-1:]:
            raise BadArgument(f"MixtureSameFamily: {mixture_distribution.param_shape[-1]} weights for components "
                              f"of batch {tuple(component_distribution.batch_shape)}",
                              why="the last dimension of the batch is chosen from")
        super().__init__(component_distribution.batch_shape[:-1], component_distribution.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Constraint:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        components = self.component_distribution
        return self._with_own_expanded(
            batch_shape, _instance, _mixture_distribution=self.mixture_distribution.expand(batch_shape),
            _component_distribution=components.expand((*batch_shape, components.batch_shape[-1])))

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @property
    def _num_component(self) -> int:
        return self._component_distribution.batch_shape[-1]

    @property
    def _event_ndims(self) -> int:
        return len(self.event_shape)

    def _pad(self, x: Tensor) -> Tensor:
        """A value with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Something of the mixture's batch and categories with dimensions for the batch and the event of components."""
        more = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        return x.reshape(*x.shape[:-1], *(1,) * more, *x.shape[-1:], *(1,) * self._event_ndims)

    def _mixed(self, x: Tensor) -> Tensor:
        return (self._pad_mixture_dimensions(self.mixture_distribution.probs) * x).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        away = self.component_distribution.mean - self._pad(self.mean)
        return self._mixed(self.component_distribution.variance) + self._mixed(away ** 2)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        event = len(self.event_shape)
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            places = chosen.reshape(*chosen.shape, *(1,) * (1 + event)).expand(*chosen.shape, 1, *self.event_shape)
            return drawn.gather(-1 - event, places).squeeze(-1 - event)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        found = self.component_distribution.log_prob(self._pad(value))
        return logsumexp(found + log_softmax(self.mixture_distribution.logits, -1), -1)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._pad(value)) * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
