"""The Wishart distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..arrays.kinds import anywhere
from ..autograd import enable_grad
from ..base.errors import BadValue
from ..ops.create.create import arange, as_tensor
from ..ops.linalg.cholesky import cholesky_solve, linalg_cholesky as cholesky
from ..ops.linalg.matrices import tril_indices
from ..ops.linalg.solving import slogdet
from ..ops.math.elementwise import where
from ..ops.math.special import digamma, mvlgamma
from ..ops.random.draws import randn
from ..ops.shape.joining import broadcast_shapes
from ..tensors.tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .gamma import Chi2
from .like import like
from .logits import one_of
from .multivariate_normal import WithCovariance, half_log_det

__all__ = ["Wishart", "mvdigamma"]


def mvdigamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of mvlgamma(x, p)."""
    return digamma(x.unsqueeze(-1) - arange(p, **like(x)) / 2).sum(-1)


class Wishart(WithCovariance, ExponentialFamily):
    """The sum of the outer squares of `df` normal vectors with this covariance.

    >>> import mutagrad as mg
    >>> mg.distributions.Wishart(3., mg.eye(2)).log_prob(mg.eye(2))
    tensor(-3.5310)
    """

    arg_constraints = {"covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
                       "df": constraints.greater_than(0)}
    support = constraints.positive_definite
    _mean_carrier_measure = 0.0
    has_rsample = True

    def __init__(self, df: Tensor | float, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        name, matrix = one_of(self, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                              scale_tril=scale_tril)
        if matrix.ndim < 2:
            raise BadValue(f"Wishart: {name} must be at least two-dimensional, got shape {tuple(matrix.shape)}")
        freedom = df.to(matrix.dtype) if isinstance(df, Tensor) else as_tensor(float(df), dtype=matrix.dtype)
        batch, n = broadcast_shapes(freedom.shape, matrix.shape[:-2]), matrix.shape[-1]
        self.df = freedom.expand(*batch)
        setattr(self, name, matrix.expand(*batch, n, n))
        super().__init__(batch, (n, n), validate_args)
        if anywhere((self.df <= n - 1)._array):
            raise BadValue(f"Wishart: Value of df={freedom} expected to be greater than ndim - 1 = {n - 1}.",
                           why="the matrices would be singular")
        self._factorize(name, matrix)

    def _df(self) -> Tensor:
        return self.df[..., None, None]

    @cached_property
    @enable_grad()
    def _dist_chi2(self) -> Chi2:
        """Of the squared lengths."""
        return Chi2(self.df.unsqueeze(-1) - arange(self._event_shape[0], **like(self.df)), validate_args=False)

    @property
    def _batch_dims(self) -> list[int]:
        return [-1 - d for d in range(len(self._batch_shape))]

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[0] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[0]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - slogdet(-2 * x)[1]) + mvlgamma(half, n)

    @property
    def mean(self) -> Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df() - self._event_shape[0] - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        return self._df() * (self.covariance_matrix ** 2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw by Bartlett's way: a triangle of normal numbers, the lengths of ever shorter vectors on its diagonal.

        >>> import mutagrad as mg
        >>> mg.distributions.Wishart(mg.tensor(3.), mg.eye(2)).rsample().shape
        mutagrad.Size([2, 2])
        """
        self._bartlett_sampling(sample_shape)  # PyTorch takes regular draws for singular ones, and draws once more
        return self._bartlett_sampling(sample_shape)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw a triangle of normal numbers, the lengths of ever shorter vectors on its diagonal."""
        factor = self._unbroadcasted_scale_tril @ self._triangle(sample_shape)
        return factor @ factor.mT

    def _triangle(self, sample_shape: Sequence[int]) -> Tensor:
        shape, n = self._extended_shape(sample_shape), self._event_shape[0]
        found = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        rows, columns = tril_indices(n, n, -1)
        found[..., rows, columns] = randn((*shape[:-2], n * (n - 1) // 2), **like(self.df))
        return found

    def _normalizer(self) -> Tensor:
        n = self._event_shape[0]
        return n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, half = self._event_shape[0], self.df / 2
        trace = cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (-self.df * self._normalizer() - mvlgamma(half, n)
                + (self.df - n - 1) * half_log_det(cholesky(value)) - trace / 2)

    def entropy(self) -> Tensor:
        n, half = self._event_shape[0], self.df / 2
        return ((n + 1) * self._normalizer() + mvlgamma(half, n)
                - (self.df - n - 1) / 2 * mvdigamma(half, n) + self.df * n / 2)
