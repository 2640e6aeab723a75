"""The distribution of correlation matrices by Lewandowski, Kurowicka and Joe, as Cholesky factors."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..base.errors import BadValue
from ..ops.create.create import arange
from ..ops.math.special import mvlgamma
from ..ops.random.draws import randn
from ..tensors.tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution, numbers_or_tensors
from .like import like

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors of correlation matrices with a density in proportion to det ** (concentration - 1).

    >>> import mutagrad as mg
    >>> mg.distributions.LKJCholesky(2, 1.).log_prob(mg.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _handed_on = ("dim",)

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise BadValue(f"LKJCholesky: a correlation matrix has at least two rows, got dim={dim}")
        self.dim = dim
        self.concentration, = numbers_or_tensors(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    @cached_property
    @enable_grad()
    def _beta(self) -> Beta:
        """How far rows go from the last axis."""
        offsets = (arange(self.dim, **like(self.concentration)) - 1).clamp(min=0)  # the first row's is not used
        top = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2)
        return Beta(offsets + 0.5, top - 0.5 * offsets, validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw by the onion method.

        Rows are points on spheres: how far each goes from the last axis is beta distributed, its direction uniform.

        >>> import mutagrad as mg
        >>> mg.distributions.LKJCholesky(3, 1.).sample().shape
        mutagrad.Size([3, 3])
        """
        length = self._beta.sample(sample_shape)[..., 1:].unsqueeze(-1)
        normal = randn(self._extended_shape(sample_shape), **like(self.concentration)).tril(-1)[..., 1:, :]
        factor = normal.new_zeros(self._extended_shape(sample_shape))
        factor[..., 1:, :] = length.sqrt() * normal / normal.norm(dim=-1, keepdim=True)
        diagonal = (1 - factor.pow(2).sum(-1)).clamp(min=0.0).sqrt()
        return factor + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        last = self.dim - 1
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - arange(2, self.dim + 1, device=value.device)
        unnormalized = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * last
        normalizer = 0.5 * last * math.log(math.pi) + mvlgamma(alpha - 0.5, last) - alpha.lgamma() * last
        return unnormalized - normalizer
