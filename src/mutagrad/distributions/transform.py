"""Functions of random numbers that can be undone: what all have in common, and how they are put together."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import ref

from ..base.errors import BadValue, NotSupported
from ..core.size import Size
from ..ops.create.create import zeros_like
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .independent import sum_rightmost

__all__ = ["ComposeTransform", "IndependentTransform", "ReshapeTransform", "Transform", "identity_transform"]


class Transform:
    """Called, it maps; `inv` maps back. With `cache_size=1` the last value is mapped back to just what it came from.

    >>> import mutagrad as mg
    >>> exp = mg.distributions.ExpTransform()
    >>> exp.inv(exp(mg.tensor([0.5, 2.])))
    tensor([0.5000, 2.0000])
    """

    domain: Constraint
    codomain: Constraint
    bijective: bool = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise BadValue(f"{type(self).__name__}: cache_size must be 0 or 1, not {cache_size}",
                           why="one value is remembered, or none")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)
        self._inv: Any = None
        super().__init__()  # what else a subclass inherits from, such as Module

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_cached_x_y": (None, None)}

    @property
    def event_dim(self) -> int:
        """How many dimensions are mapped at once.

        >>> import mutagrad as mg
        >>> mg.distributions.SoftmaxTransform().event_dim
        1
        """
        if self.domain.event_dim != self.codomain.event_dim:
            raise BadValue(f"{type(self).__name__}: takes values of {self.domain.event_dim} dimensions "
                           f"and gives {self.codomain.event_dim}",
                           fix="use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The same, the other way round.

        >>> import mutagrad as mg
        >>> mg.distributions.ExpTransform().inv(mg.tensor([1.]))
        tensor([0.])
        """
        found: Transform | None = self._inv and self._inv()
        if found is None:
            found = _InverseTransform(self)
            self._inv = ref(found)
        return found

    @property
    def sign(self) -> Tensor | int:
        """1 where it rises and -1 where it falls.

        >>> import mutagrad as mg
        >>> mg.distributions.AffineTransform(0., -2.).sign
        -1
        """
        raise NotSupported(f"{type(self).__name__}.sign: there is none", why="it does not only rise or only fall")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same, with a memory for the last value or without.

        >>> import mutagrad as mg
        >>> mg.distributions.ExpTransform().with_cache(1)
        ExpTransform()
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is not Transform.__init__:
            raise NotSupported(f"{type(self).__name__}.with_cache: the class has an __init__ of its own, "
                               "and so must have a with_cache")
        return type(self)(cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of |det dy / dx|.

        >>> import mutagrad as mg
        >>> exp, x = mg.distributions.ExpTransform(), mg.tensor([0.5, 2.])
        >>> exp.log_abs_det_jacobian(x, exp(x))
        tensor([0.5000, 2.0000])
        """
        raise NotImplementedError

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of what it makes of something of this shape.

        >>> import mutagrad as mg
        >>> mg.distributions.StickBreakingTransform().forward_shape((3,))
        (4,)
        """
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of what it makes something of this shape of.

        >>> import mutagrad as mg
        >>> mg.distributions.StickBreakingTransform().inverse_shape((4,))
        (3,)
        """
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A transform the other way round.

    >>> import mutagrad as mg
    >>> mg.distributions.ExpTransform().inv(mg.tensor([1.]))
    tensor([0.])
    """

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return self._inv.codomain

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Tensor | int:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv  # type: ignore[no-any-return]

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


def _widened(constraint: Constraint, event_dim: int) -> Constraint:
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Several, one after the other.

    >>> import mutagrad as mg
    >>> exp, scale = mg.distributions.ExpTransform(), mg.distributions.AffineTransform(0., 10.)
    >>> mg.distributions.ComposeTransform([exp, scale])(mg.tensor([0., 1.]))
    tensor([10.0000, 27.1828])
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _widened(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, dims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Tensor | int:
        sign: Tensor | int = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        found: Transform | None = self._inv and self._inv()
        if found is None:
            found = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, found._inv = ref(found), lambda: self
        return found

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    __call__ = _call

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total: Any = zeros_like(x) if not self.parts else 0
        dims = self.domain.event_dim
        for k, part in enumerate(self.parts):
            end = y if k == len(self.parts) - 1 else part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, end), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = end
        return total

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inner = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {inner}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """The same map, of which the last dimensions count as one value.

    >>> import mutagrad as mg
    >>> exp, x = mg.distributions.ExpTransform(), mg.tensor([0.5, 2.])
    >>> mg.distributions.IndependentTransform(exp, 1).log_abs_det_jacobian(x, exp(x))
    tensor(2.5000)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Tensor | int:
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        self._check(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y, self.codomain)
        return self.base_transform._inv_call(y)

    def _check(self, value: Tensor, constraint: Constraint) -> None:
        if value.ndim < constraint.event_dim:
            raise BadValue(f"IndependentTransform: Too few dimensions on input: {value.ndim} of {constraint.event_dim}")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """The last dimensions in another shape.

    >>> import mutagrad as mg
    >>> mg.distributions.ReshapeTransform((4,), (2, 2))(mg.zeros(3, 4)).shape
    mutagrad.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise BadValue("ReshapeTransform: in_shape, out_shape have different numbers of elements: "
                           f"{tuple(in_shape)} and {tuple(out_shape)}")
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[:x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _exchanged(shape, self.out_shape, self.in_shape)


def _exchanged(shape: Sequence[int], old: Size, new: Size) -> Size:
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise BadValue("ReshapeTransform: Shape mismatch or Too few dimensions on input: expected a shape that ends in "
                       f"{tuple(old)}, got {tuple(shape)}")
    return Size((*shape[:cut], *new))
