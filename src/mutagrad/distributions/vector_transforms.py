"""Transforms that map a vector or a matrix at once, or one part of a tensor in this way and another in that."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.errors import BadValue
from ..core.dtypes import finfo
from ..nn.functional import logsigmoid, pad, softplus
from ..ops.create.create import arange, eye
from ..ops.linalg.cholesky import cholesky
from ..ops.math.elementwise import sigmoid
from ..ops.reduce.softmax import softmax
from ..ops.shape.shape import cat, stack
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .independent import sum_rightmost
from .like import like
from .transform import Transform
from .tril import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = ["CatTransform", "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
           "SoftmaxTransform", "StackTransform", "StickBreakingTransform"]


class _Plain(Transform):
    """One without settings."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__

    def _check(self, shape: Sequence[int], dims: int = 1) -> None:
        if len(shape) < dims:
            raise BadValue(f"{type(self).__name__}: Too few dimensions on input: {len(shape)}, "
                           f"where at least {dims} are mapped at once")


class SoftmaxTransform(_Plain):
    """Any vector to probabilities. Many vectors have the same; the way back gives one of them.

    >>> import mutagrad as mg
    >>> mg.distributions.SoftmaxTransform()(mg.tensor([0.5, 2.]))
    tensor([0.1824, 0.8176])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        self._check(shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """Any vector to one more probabilities: each number says which part of what is left of a stick is broken off.

    >>> import mutagrad as mg
    >>> mg.distributions.StickBreakingTransform()(mg.tensor([0.5, 2.]))
    tensor([0.4519, 0.4828, 0.0653])
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _left(self, x: Tensor, count: int) -> Tensor:
        """How many pieces the rest will be broken into, as a logarithm: so that zeros give equal pieces."""
        return (count + 1 - arange(1, count + 1, **like(x))).log()

    def _call(self, x: Tensor) -> Tensor:
        part = sigmoid(x - self._left(x, x.shape[-1]))
        rest = (1 - part).cumprod(-1)
        return pad(part, (0, 1), value=1) * pad(rest, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        rest = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - rest.log() + self._left(y, first.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._left(x, x.shape[-1])
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        self._check(shape)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        self._check(shape)
        return (*shape[:-1], shape[-1] - 1)


class CorrCholeskyTransform(_Plain):
    """Any vector of n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix: rows of length one.

    >>> import mutagrad as mg
    >>> mg.distributions.CorrCholeskyTransform()(mg.tensor([0.])) + 0.
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        limit = 1 - finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-limit, limit), -1)
        rest = (1 - partial ** 2).sqrt().cumprod(-1)
        return (partial + eye(partial.shape[-1], **like(x))) * pad(rest[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = pad(1 - (y * y).cumsum(-1)[..., :-1], (1, 0), value=1)
        partial = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(rest, -1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
        return 0.5 * rest.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        self._check(shape)
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise BadValue(f"CorrCholeskyTransform: Input is not a flattened lower-diagonal number: {shape[-1]}",
                           why="a triangle has n (n - 1) / 2 elements")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        self._check(shape, 2)
        if shape[-2] != shape[-1]:
            raise BadValue(f"CorrCholeskyTransform: Input is not square: {tuple(shape)}")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class LowerCholeskyTransform(_Plain):
    """Any matrix to a lower triangle with a positive diagonal.

    >>> import mutagrad as mg
    >>> mg.distributions.LowerCholeskyTransform()(mg.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Any matrix to a positive definite one.

    >>> import mutagrad as mg
    >>> mg.distributions.PositiveDefiniteTransform()(mg.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform()._inverse(cholesky(y))


class CatTransform(Transform):
    """One transform for each part of a dimension, `lengths` long.

    >>> import mutagrad as mg
    >>> exp, scale = mg.distributions.ExpTransform(), mg.distributions.AffineTransform(0., 10.)
    >>> mg.distributions.CatTransform([exp, scale])(mg.tensor([0., 2.]))
    tensor([ 1., 20.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [part.with_cache(cache_size) for part in tseq]
        self.lengths, self.dim = [1] * len(self.transforms) if lengths is None else list(lengths), dim

    @property
    def event_dim(self) -> int:
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.transforms)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> tuple[Tensor, ...]:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != self.length:
            raise BadValue(f"CatTransform: a value of shape {tuple(value.shape)} has no {self.length} places "
                           f"along dimension {self.dim}")
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return cat([part(piece) for part, piece in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return cat([part._inv_call(piece) for part, piece in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        event = self.event_dim
        found = [sum_rightmost(part.log_abs_det_jacobian(a, b), event - part.event_dim)
                 for part, a, b in zip(self.transforms, self._parts(x), self._parts(y))]
        dim = (self.dim if self.dim < 0 else self.dim - x.ndim) + event
        return cat(found, dim) if dim < 0 else sum(found)  # type: ignore[return-value]


class StackTransform(Transform):
    """One transform for each place along a dimension.

    >>> import mutagrad as mg
    >>> exp, scale = mg.distributions.ExpTransform(), mg.distributions.AffineTransform(0., 10.)
    >>> mg.distributions.StackTransform([exp, scale])(mg.tensor([0., 2.]))
    tensor([ 1., 20.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [part.with_cache(cache_size) for part in tseq], dim

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([part.codomain for part in self.transforms], self.dim)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.transforms)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, value: Tensor) -> tuple[Tensor, ...]:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != len(self.transforms):
            raise BadValue(f"StackTransform: a value of shape {tuple(value.shape)} has no {len(self.transforms)} "
                           f"places along dimension {self.dim}")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return stack([part(piece) for part, piece in zip(self.transforms, self._slice(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return stack([part._inv_call(piece) for part, piece in zip(self.transforms, self._slice(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slice(x), self._slice(y))
        return stack([part.log_abs_det_jacobian(a, b) for part, a, b in parts], self.dim)
