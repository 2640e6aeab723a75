"""The von Mises distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..arrays import np
from ..autograd import no_grad
from ..base.modes import keeps_modes
from ..core.factory import make
from ..ops.math.special import i0e, i1e
from ..ops.random.generator import source
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around `loc`, the closer the larger the `concentration`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = numbers_or_tensors(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The direction of the mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """How far the mean point of the circle is from the circle."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            concentration = self.concentration._array.astype(np.float64)
            drawn = source(None).vonmises(0.0, concentration, self._extended_shape(sample_shape))
            return (make(np.asarray(drawn, self.loc._array.dtype)) + (math.pi + self.loc)) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (value - self.loc).cos() - 1
        return self.concentration * away - math.log(2 * math.pi) - i0e(self.concentration).log()
