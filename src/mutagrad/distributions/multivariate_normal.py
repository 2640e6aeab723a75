"""The normal distribution of vectors."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..base.errors import BadValue
from ..ops.create.create import eye
from ..ops.linalg.cholesky import cholesky_inverse, linalg_cholesky as cholesky
from ..ops.linalg.solving import solve_triangular
from ..ops.random.draws import randn
from ..ops.shape.joining import broadcast_shapes
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .like import like
from .logits import one_of

__all__ = ["MultivariateNormal"]


def factor_of_precision(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of a matrix that is given by its inverse."""
    flipped = cholesky(precision.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).mT
    identity = eye(precision.shape[-1], **like(precision)).expand(precision.shape)
    return solve_triangular(inverse, identity, upper=False)


def half_log_det(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def squared_distance(factor: Tensor, away: Tensor) -> Tensor:
    """Return how far a vector is from zero, in standard deviations, squared."""
    batch = broadcast_shapes(factor.shape[:-2], away.shape[:-1])
    n = away.shape[-1]
    columns = away.expand(*batch, n).unsqueeze(-1)
    return solve_triangular(factor.expand(*batch, n, n), columns, upper=False).squeeze(-1).pow(2).sum(-1)


class WithCovariance(Distribution):
    """Given by a covariance, by its inverse or by its Cholesky factor; the others follow."""

    @cached_property
    @enable_grad()
    def covariance_matrix(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.mT

    @cached_property
    @enable_grad()
    def precision_matrix(self) -> Tensor:
        return cholesky_inverse(self.scale_tril)

    @cached_property
    @enable_grad()
    def scale_tril(self) -> Tensor:
        return cholesky(self.covariance_matrix)

    def _factorize(self, given: str) -> None:
        """Makes the Cholesky factor out of the matrix of this name."""
        if given != "scale_tril":
            factorize = cholesky if given == "covariance_matrix" else factor_of_precision
            self.__dict__["scale_tril"] = factorize(self.__dict__[given])


class MultivariateNormal(WithCovariance):
    """Given by its mean and one of: the covariance, its inverse, or its Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        name, matrix = one_of(self, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                              scale_tril=scale_tril)
        if loc.ndim < 1 or matrix.ndim < 2:
            raise BadValue(f"MultivariateNormal: loc must be a vector and {name} a matrix, "
                           f"got shapes {tuple(loc.shape)} and {tuple(matrix.shape)}")
        batch, n = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]), loc.shape[-1]
        self.loc = loc.expand(*batch, n)
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, (n,), validate_args)
        self._factorize(name)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.pow(2).sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = randn(self._extended_shape(sample_shape), **like(self.loc))
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        distance = squared_distance(self.scale_tril, value - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(self.scale_tril)

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det(self.scale_tril)
