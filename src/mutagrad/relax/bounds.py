"""The larger and the smaller of numbers, and limits to them, without corners.

The larger of two is the integral of a logistic step: x + t log(1 + exp((y - x) / t)), or log-sum-exp; see Boyd &
Vandenberghe, Convex Optimization (2004), section 3.1.5, for its bounds.
"""
from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from ..base.errors import BadArgument, BadValue
from ..tensors.tensor import Tensor
from .arguments import filled_dims, floating, operand, positive

__all__ = ["clamp", "max", "maximum", "min", "minimum"]


def maximum(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return the larger of two, rounded where they meet: too large by at most 0.7 temperatures.

    >>> import mutagrad as mg
    >>> mg.relax.maximum(mg.tensor([-2., 0., 2.]), 0.)
    tensor([0.1269, 0.6931, 2.1269])

    As the temperature goes to 0: `mutagrad.maximum(x, y)`.
    """
    x, t = floating(input, "relax.maximum"), positive(temperature, input, "relax.maximum")
    return _larger(x, operand(other, x, "relax.maximum"), t)


def _larger(x: Tensor, y: Tensor, t: Any) -> Tensor:
    """The larger, and what the smaller adds to it. From either side it is the same; from the larger one it is exact."""
    apart = (y - x) / t
    return (y + t * _log1pexp(-apart)).where(apart > 0, x + t * _log1pexp(apart))


def _log1pexp(x: Tensor) -> Tensor:
    return x.logaddexp(x.new_zeros(()))


def minimum(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return the smaller of two, rounded where they meet. As the temperature goes to 0: `mutagrad.minimum(x, y)`.

    >>> import mutagrad as mg
    >>> mg.relax.minimum(mg.tensor([1., 2.]), mg.tensor([3., 2.]))
    tensor([0.8731, 1.3069])
    """
    x, t = floating(input, "relax.minimum"), positive(temperature, input, "relax.minimum")
    return -_larger(-x, -operand(other, x, "relax.minimum"), t)


def max(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,
        temperature: Tensor | float = 1.0) -> Tensor:
    """Return the largest element, too large by at most temperature * log(n): log-sum-exp.

    Its gradient is softmax(x / temperature). As the temperature goes to 0: `mutagrad.amax(x, dim)`, whose gradient is
    shared among the largest.

    >>> import mutagrad as mg
    >>> mg.relax.max(mg.tensor([1., 3., 2.])), mg.relax.max(mg.tensor([1., 3., 2.]), temperature=0.1)
    (tensor(3.4076), tensor(3.0000))
    """
    return _largest(floating(input, "relax.max"), dim, keepdim, temperature, "relax.max")


def _largest(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool, temperature: Tensor | float,
             name: str) -> Tensor:
    t, dims = positive(temperature, input, name), filled_dims(input, dim, name)
    top = input.detach().amax(dims, True)
    top = top.where(top.isfinite(), 0.0)
    found = top + t * ((input - top) / t).logsumexp(dims, True)
    return found if keepdim else found.squeeze(dims)


def min(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,
        temperature: Tensor | float = 1.0) -> Tensor:
    """Return the smallest element, too small by at most temperature * log(n). The limit is `mutagrad.amin(x, dim)`.

    >>> import mutagrad as mg
    >>> mg.relax.min(mg.tensor([1., 3., 2.])), mg.relax.min(mg.tensor([1., 3., 2.]), temperature=0.1)
    (tensor(0.5924), tensor(1.0000))
    """
    return -_largest(-floating(input, "relax.min"), dim, keepdim, temperature, "relax.min")


def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None, *,
          temperature: Tensor | float = 1.0) -> Tensor:
    """Return elements that approach the limits and never pass them, so that the gradient dies away without a jump.

    >>> import mutagrad as mg
    >>> mg.relax.clamp(mg.tensor([-1., 0., 0.5, 1., 2.]), 0., 1., temperature=0.2)
    tensor([0.0013, 0.1373, 0.5000, 0.8627, 0.9987])

    As the temperature goes to 0: `mutagrad.clamp(x, min, max)`.
    """
    x, t = floating(input, "relax.clamp"), positive(temperature, input, "relax.clamp")
    if min is None or max is None:
        return _one_sided(x, min, max, t)
    if isinstance(min, Real) and isinstance(max, Real) and min > max:
        raise BadValue(f"relax.clamp: nothing is between {min} and {max}", fix=f"relax.clamp(x, {max}, {min})")
    low, high = operand(min, x, "relax.clamp"), operand(max, x, "relax.clamp")
    zero = x.new_zeros(())
    # Two ways to write the same; each is exact on its side, where no large numbers cancel.
    from_below = low + (_larger(x - low, zero, t) - _larger(x - high, zero, t))
    from_above = high - (_larger(high - x, zero, t) - _larger(low - x, zero, t))
    return from_above.where(x - low > high - x, from_below)


def _one_sided(x: Tensor, low: Tensor | float | None, high: Tensor | float | None, t: Any) -> Tensor:
    if low is not None:
        return _larger(x, operand(low, x, "relax.clamp"), t)
    if high is None:
        raise BadArgument("relax.clamp: needs a min, a max or both", fix="relax.clamp(x, 0., 1.)")
    return -_larger(-x, -operand(high, x, "relax.clamp"), t)
