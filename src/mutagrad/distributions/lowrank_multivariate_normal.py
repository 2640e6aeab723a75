"""The normal distribution of long vectors with few directions in which they vary together."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..base.errors import BadValue
from ..ops.create.create import eye
from ..ops.linalg.cholesky import linalg_cholesky as cholesky
from ..ops.linalg.solving import solve_triangular
from ..ops.random.draws import randn
from ..ops.shape.joining import broadcast_shapes
from ..tensors.tensor import Tensor
from . import constraints
from .like import like
from .multivariate_normal import WithCovariance, half_log_det, squared_distance

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(WithCovariance):
    """With the covariance cov_factor @ cov_factor.T + diag(cov_diag); systems are solved of cov_factor's width.

    >>> import mutagrad as mg
    >>> mg.distributions.LowRankMultivariateNormal(mg.zeros(2), mg.ones(2, 1), mg.ones(2)).log_prob(mg.zeros(2))
    tensor(-2.3872)
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True
    _handed_on = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        n = loc.shape[-1] if loc.ndim else 0
        if not n or cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.ndim < 1 or cov_diag.shape[-1] != n:
            raise BadValue("LowRankMultivariateNormal: loc must be a vector, cov_factor must be a batch of matrices "
                           f"with shape {n} x m and cov_diag of {n} elements, got shapes {tuple(loc.shape)}, "
                           f"{tuple(cov_factor.shape)} and {tuple(cov_diag.shape)}")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, n), cov_diag.expand(*batch, n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, (n,), validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        narrow = cov_factor.mT @ (cov_factor / cov_diag.unsqueeze(-1))  # W^T D^-1 W
        self._capacitance_tril = cholesky(narrow + eye(narrow.shape[-1], **like(narrow)))

    @cached_property
    @enable_grad()
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_cov_factor
        return self._repeated(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @cached_property
    @enable_grad()
    def precision_matrix(self) -> Tensor:
        scaled = (self._unbroadcasted_cov_factor / self._unbroadcasted_cov_diag.unsqueeze(-1)).mT
        part = solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._repeated(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - part.mT @ part)

    @cached_property
    @enable_grad()
    def scale_tril(self) -> Tensor:
        return self._repeated(cholesky(self.covariance_matrix))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        along = randn((*shape[:-1], self.cov_factor.shape[-1], 1), **like(self.loc))
        apart = randn(shape, **like(self.loc))
        return self.loc + (self.cov_factor @ along).squeeze(-1) + self.cov_diag.sqrt() * apart

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = value - self.loc
        scaled = away / self.cov_diag
        along = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        distance = (away * scaled).sum(-1) - squared_distance(self._capacitance_tril, along)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
