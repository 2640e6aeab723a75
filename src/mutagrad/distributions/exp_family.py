"""Distributions of the exponential family."""
from __future__ import annotations

from typing import Any

from ..autograd import enable_grad, grad
from ..base.errors import NotSupported
from ..base.modes import keeps_modes
from ..tensors.tensor import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily", "entropy_of"]


class ExponentialFamily(Distribution):
    """A density exp(<t(x), theta> - F(theta) + k(x)): a subclass gives theta and F, and the entropy follows.

    >>> import mutagrad as mg
    >>> class Waiting(mg.distributions.ExponentialFamily):
    ...     def __init__(self, rate):
    ...         super().__init__(validate_args=False)
    ...         self.rate, self._natural_params, self._mean_carrier_measure = rate, (-rate,), 0.
    ...     _natural_params = _mean_carrier_measure = None
    ...     def _log_normalizer(self, theta):
    ...         return -(-theta).log()
    >>> Waiting(mg.tensor(2.)).entropy()
    tensor(0.3069, grad_fn=<SubBackward0>)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """theta."""
        raise NotSupported(f"{type(self).__name__}: has no _natural_params",
                           why="a distribution of the exponential family says what they are")

    def _log_normalizer(self, *natural_params: Any, **settings: Any) -> Tensor:
        """F(theta)."""
        raise NotSupported(f"{type(self).__name__}: has no _log_normalizer",
                           why="a distribution of the exponential family says what it is")

    @property
    def _mean_carrier_measure(self) -> Tensor | float:
        """The mean of k(x)."""
        raise NotSupported(f"{type(self).__name__}: has no _mean_carrier_measure", why="the entropy depends on it")

    def entropy(self) -> Tensor:
        return entropy_of(self)


@keeps_modes
def slopes(p: ExponentialFamily) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
    """Return theta as leaves, F(theta), and the slopes of F, which are the means of t(x)."""
    with enable_grad():
        theta = tuple(part.detach().requires_grad_() for part in p._natural_params)
        normalizer = p._log_normalizer(*theta)
        return theta, normalizer, grad(normalizer.sum(), theta, create_graph=True)


def entropy_of(p: ExponentialFamily) -> Tensor:
    """Return the entropy by the slope of F, whatever closed form a subclass has."""
    theta, normalizer, means = slopes(p)
    found = normalizer - p._mean_carrier_measure
    for part, mean in zip(theta, means):
        found = found - (part * mean).reshape(*p.batch_shape, -1).sum(-1)
    return found
