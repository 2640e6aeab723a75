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
    """Given by a covariance, by its inverse or by its Cholesky factor; the others follow.

    The factor is kept as it was given, before it was repeated for the batch, under the name that PyTorch's subclasses
    know it by.
    """

    _handed_on: tuple[str, ...] = ("_unbroadcasted_scale_tril",)
    _unbroadcasted_scale_tril: Tensor

    def _repeated(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self._batch_shape, *matrix.shape[-2:])

    @cached_property
    @enable_grad()
    def covariance_matrix(self) -> Tensor:
        return self._repeated(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @cached_property
    @enable_grad()
    def precision_matrix(self) -> Tensor:
        return self._repeated(cholesky_inverse(self._unbroadcasted_scale_tril))

    @cached_property
    @enable_grad()
    def scale_tril(self) -> Tensor:
        return self._repeated(self._unbroadcasted_scale_tril)

    def _factorize(self, given: str, matrix: Tensor) -> None:
        """Makes the Cholesky factor out of the matrix of this name."""
        if given != "scale_tril":
            matrix = (cholesky if given == "covariance_matrix" else factor_of_precision)(matrix)
        self._unbroadcasted_scale_tril = matrix


class MultivariateNormal(WithCovariance):
    """Given by its mean and one of: the covariance, its inverse, or its Cholesky factor.

    >>> import mutagrad as mg
    >>> mg.distributions.MultivariateNormal(mg.zeros(2), mg.eye(2)).log_prob(mg.zeros(2))
    tensor(-1.8379)
    """

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
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))
        super().__init__(batch, (n,), validate_args)
        self._factorize(name, matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = randn(self._extended_shape(sample_shape), **like(self.loc))
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = squared_distance(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        spread = half_log_det(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + spread).expand(self._batch_shape)
