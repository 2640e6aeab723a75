"""The von Mises distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad, no_grad
from ..base.modes import keeps_modes
from ..core.dtypes import float64
from ..ops.create.create import zeros
from ..ops.math.elementwise import where
from ..ops.math.special import i0e, i1e
from ..ops.random.draws import rand
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around `loc`, the closer the larger the `concentration`.

    >>> import mutagrad as mg
    >>> mg.distributions.VonMises(0., 1.).log_prob(mg.tensor(0.))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = numbers_or_tensors(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The direction of the mean.

        >>> import mutagrad as mg
        >>> mg.distributions.VonMises(0.5, 1.).mean
        tensor(0.5000)
        """
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """How far the mean point of the circle is from the circle.

        >>> import mutagrad as mg
        >>> mg.distributions.VonMises(0.5, 1.).variance
        tensor(0.5536)
        """
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            return ((self._drawn(shape) + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @cached_property
    @enable_grad()
    def _loc(self) -> Tensor:
        return self.loc.double()

    @cached_property
    @enable_grad()
    def _concentration(self) -> Tensor:
        return self.concentration.double()

    @cached_property
    @enable_grad()
    def _proposal_r(self) -> Tensor:
        """How far the wrapped Cauchy distribution is spread that is drawn from."""
        concentration = self._concentration
        tau = 1 + (1 + 4 * concentration ** 2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
        return where(concentration < 1e-5, 1 / concentration + concentration, (1 + rho ** 2) / (2 * rho))

    def _drawn(self, shape: Sequence[int]) -> Tensor:
        """Angles around 0, by Best and Fisher's rejection from a wrapped Cauchy distribution (1979).

        All are drawn again as long as one is refused, and the last one that was accepted counts: as in PyTorch.
        """
        r, concentration = self._proposal_r, self._concentration
        found, done = zeros(shape, dtype=float64), None
        while done is None or not done.all():
            turn, chance, side = rand(3, *shape, dtype=float64).unbind()
            z = (math.pi * turn).cos()
            cosine = (1 + r * z) / (r + z)
            c = concentration * (r - cosine)
            accepted = (c * (2 - c) - chance > 0) | ((c / chance).log() + 1 - c >= 0)
            found = where(accepted, (side - 0.5).sign() * cosine.acos(), found)
            done = accepted if done is None else done | accepted
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (value - self.loc).cos() - 1
        return self.concentration * away - math.log(2 * math.pi) - i0e(self.concentration).log()
