"""The Laplace distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.dtypes import finfo
from ..ops.random.draws import rand
from ..tensors.tensor import Tensor
from .like import like
from .location_scale import LocationScale

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Exponential to both sides of `loc`.

    >>> import mutagrad as mg
    >>> mg.distributions.Laplace(0., 1.).log_prob(mg.tensor(1.))
    tensor(-1.6931)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return 2 ** 0.5 * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        tiny = finfo(self.loc.dtype).eps
        side = rand(self._extended_shape(sample_shape), **like(self.loc)) * (2 - tiny) + (tiny - 1)
        return self.loc - self.scale * side.sign() * (-side.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * (-2 * away.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
