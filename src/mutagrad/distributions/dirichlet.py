"""The Dirichlet distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import BadValue
from ..core.dtypes import finfo, get_default_dtype
from ..nn.functional import one_hot
from ..ops.create.create import zeros_like
from ..ops.math.elementwise import where
from ..ops.math.special import digamma, lgamma, xlogy
from ..tensors.tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .gamma import standard_gamma

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Rows of probabilities; a larger concentration makes a position likelier to have more.

    >>> import mutagrad as mg
    >>> mg.distributions.Dirichlet(mg.tensor([1., 2.])).log_prob(mg.tensor([0.25, 0.75]))
    tensor(0.4055)
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise BadValue("Dirichlet: concentration must have at least one dimension",
                           fix="Dirichlet(mutagrad.tensor([1.0, 2.0]))")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, keepdim=True)
        corners = (self.concentration < 1).all(-1, keepdim=True)  # infinite at every corner: the first, as in PyTorch
        first = one_hot(zeros_like(mode[..., 0]).long(), mode.shape[-1]).to(mode.dtype)
        return where(corners, first, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total ** 2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw in doubles, as a small concentration gives less than a float can be; never quite zero or one.

        >>> import mutagrad as mg
        >>> mg.distributions.Dirichlet(mg.ones(3)).rsample().sum().round()
        tensor(1.)
        """
        kind = self.concentration.dtype if self.concentration.is_floating_point() else get_default_dtype()
        drawn = standard_gamma(self.concentration.double().expand(*self._extended_shape(sample_shape)))
        return (drawn / drawn.sum(-1, keepdim=True)).clamp(min=finfo(kind).tiny, max=1 - finfo(kind).eps).to(kind)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        c = self.concentration
        return xlogy(c - 1.0, value).sum(-1) + lgamma(c.sum(-1)) - lgamma(c).sum(-1)

    def entropy(self) -> Tensor:
        c, total, count = self.concentration, self.concentration.sum(-1), self.concentration.shape[-1]
        return lgamma(c).sum(-1) - lgamma(total) - (count - total) * digamma(total) - ((c - 1.0) * digamma(c)).sum(-1)
