"""Functions of random numbers that have an inverse, element by element."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtypes import finfo
from ..errors import NotSupported
from ..nn.functional import softplus
from ..ops.elementwise import sigmoid
from ..ops.shape import broadcast_to
from . import constraints
from .constraints import Constraint

__all__ = ["AffineTransform", "ComposeTransform", "ExpTransform", "SigmoidTransform", "TanhTransform", "Transform", "identity_transform"]


class Transform:
    """Called, it maps; `inv` maps back. With `cache_size=1` the last value is mapped back to exactly what it came from."""

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective = True
    event_dim = 0

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise NotSupported(f"{type(self).__name__}: cache_size={cache_size} is not supported", fix="cache_size=1")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)

    def __call__(self, x: Any) -> Any:
        if x is self._last[0]:
            return self._last[1]
        y = self._call(x)
        if self._cache_size:
            self._last = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if y is self._last[1]:
            return self._last[0]
        x = self._inverse(y)
        if self._cache_size:
            self._last = x, y
        return x

    @property
    def inv(self) -> Transform:
        return _InverseTransform(self)

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of |dy / dx|."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        return shape

    inverse_shape = forward_shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A transform the other way round."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform, self.domain, self.codomain = transform, transform.codomain, transform.domain

    @property
    def inv(self) -> Transform:
        return self.transform

    def __call__(self, x: Any) -> Any:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.transform.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """Several, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        total = 0 * x
        for part in self.parts:
            y = part(x)
            total = total + part.log_abs_det_jacobian(x, y)
            x = y
        return total


identity_transform = ComposeTransform([])


class ExpTransform(Transform):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return sigmoid(x).clamp(min=finfo(x.dtype).tiny, max=1 - finfo(x.dtype).eps)

    def _inverse(self, y: Any) -> Any:
        inside = y.clamp(min=finfo(y.dtype).tiny, max=1 - finfo(y.dtype).eps)
        return inside.log() - (-inside).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AffineTransform(Transform):
    """y = loc + scale * x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, (int, float)):
            found = 0 * x.detach() + math.log(abs(self.scale))
        else:
            found = broadcast_to(self.scale.abs().log(), x.shape)
        return found.sum(tuple(range(-self.event_dim, 0))) if self.event_dim else found
