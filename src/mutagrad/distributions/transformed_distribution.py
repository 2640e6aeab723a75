"""The distribution of a function of random numbers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..autograd import no_grad
from ..base.errors import BadData, BadValue
from ..base.modes import keeps_modes
from ..core.size import Size
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .independent import Independent, sum_rightmost
from .transform import ComposeTransform, Transform

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """
    >>> import mutagrad as mg
    >>> d = mg.distributions
    >>> squashed = d.TransformedDistribution(d.Normal(0.0, 1.0), [d.TanhTransform()])
    >>> squashed.log_prob(mg.tensor(0.5))
    tensor(-0.7821)
    """

    arg_constraints: Mapping[str, Constraint] = {}
    base_dist: Any
    _handed_on = ("transforms",)

    def __init__(self, base_distribution: Distribution, transforms: Transform | Sequence[Transform],
                 validate_args: bool | None = None) -> None:
        several = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(several, (list, tuple)) or not all(isinstance(t, Transform) for t in several):
            raise BadData("TransformedDistribution: transforms must be a Transform or a list of Transforms",
                          fix="[ExpTransform()]")
        self.transforms = list(several)
        whole = ComposeTransform(self.transforms)
        before = base_distribution.batch_shape + base_distribution.event_shape
        taken, event = whole.domain.event_dim, len(base_distribution.event_shape)
        if len(before) < taken:
            raise BadValue("TransformedDistribution: base_distribution needs to have shape with size at least "
                           f"{taken}, but got {tuple(before)}")
        shape = Size(whole.forward_shape(before))
        self.base_dist = _fitted(base_distribution, Size(whole.inverse_shape(shape)), max(taken - event, 0))
        cut = len(shape) - whole.codomain.event_dim - max(event - taken, 0)
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        base = self.base_dist
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        base = base.expand(shape[:len(shape) - len(base.event_shape)])
        return self._with_own_expanded(batch_shape, _instance, base_dist=base)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        event, y = len(self.event_shape), value
        stretched: Tensor | float = 0.0
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            stretched = stretched + sum_rightmost(jacobian, event - transform.domain.event_dim)
            y = x
        return sum_rightmost(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape)) - stretched

    def _monotonize_cdf(self, probability: Tensor) -> Tensor:
        """One minus it, where the transforms together fall."""
        sign = ComposeTransform(self.transforms).sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._monotonize_cdf(value)))


def _fitted(base: Distribution, shape: Size, more: int) -> Distribution:
    """The base, repeated to the shape that the transforms broadcast to, with so many more dimensions in its event."""
    if base.batch_shape + base.event_shape != shape:
        base = base.expand(shape[:len(shape) - len(base.event_shape)])
    return Independent(base, more) if more else base
