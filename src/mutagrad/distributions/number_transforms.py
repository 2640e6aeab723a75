"""Transforms that map each number by itself."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.dtypes import finfo
from ..nn.functional import softplus
from ..ops.math.elementwise import sigmoid
from ..ops.shape.joining import broadcast_shapes
from ..ops.shape.shape import broadcast_to
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .transform import Transform

__all__ = ["AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform", "PowerTransform",
           "SigmoidTransform", "SoftplusTransform", "TanhTransform"]


class _Rising(Transform):
    """One without settings, that rises everywhere."""

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective = True
    sign = 1

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class ExpTransform(_Rising):
    """y = exp(x).

    >>> import mutagrad as mg
    >>> mg.distributions.ExpTransform()(mg.tensor([0.5, 2.]))
    tensor([1.6487, 7.3891])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Rising):
    """y = 1 / (1 + exp(-x)).

    >>> import mutagrad as mg
    >>> mg.distributions.SigmoidTransform()(mg.tensor([0.5, 2.]))
    tensor([0.6225, 0.8808])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return sigmoid(x).clamp(min=finfo(x.dtype).tiny, max=1 - finfo(x.dtype).eps)

    def _inverse(self, y: Tensor) -> Tensor:
        inside = y.clamp(min=finfo(y.dtype).tiny, max=1 - finfo(y.dtype).eps)
        return inside.log() - (-inside).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Rising):
    """y = log(1 + exp(x)).

    >>> import mutagrad as mg
    >>> mg.distributions.SoftplusTransform()(mg.tensor([0.5, 2.]))
    tensor([0.9741, 2.1269])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Rising):
    """y = tanh(x).

    >>> import mutagrad as mg
    >>> mg.distributions.TanhTransform()(mg.tensor([0.5, 2.]))
    tensor([0.4621, 0.9640])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|, of which the way back takes the positive x.

    >>> import mutagrad as mg
    >>> mg.distributions.AbsTransform()(mg.tensor([0.5, 2.]))
    tensor([0.5000, 2.0000])
    """

    domain, codomain = constraints.real, constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _same(a: Any, b: Any) -> bool:
    found = a == b
    return bool(found.all()) if isinstance(found, Tensor) else bool(found)


class PowerTransform(Transform):
    """y = x ** exponent, for positive numbers.

    >>> import mutagrad as mg
    >>> mg.distributions.PowerTransform(mg.tensor(2.))(mg.tensor([0.5, 2.]))
    tensor([0.2500, 4.0000])
    """

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Tensor | int:
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else (self.exponent > 0) - (self.exponent < 0)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale * x.

    >>> import mutagrad as mg
    >>> mg.distributions.AffineTransform(1., 10.)(mg.tensor([0.5, 2.]))
    tensor([ 6., 21.])
    """

    bijective = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    @property
    def sign(self) -> Tensor | int:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, (int, float)):
            found = 0 * x.detach() + math.log(abs(self.scale))
        else:
            found = broadcast_to(self.scale.abs().log(), x.shape)
        return found.sum(tuple(range(-self._event_dim, 0))) if self._event_dim else found

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The cdf of a distribution, which makes its draws uniform.

    >>> import mutagrad as mg
    >>> mg.distributions.CumulativeDistributionTransform(mg.distributions.Uniform(0., 4.))(mg.tensor([0.5, 2.]))
    tensor([0.1250, 0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
