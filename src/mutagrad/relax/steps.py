"""Decisions that change gradually: steps, comparisons, and a choice between two values by a score.

All are the logistic function of a difference over a temperature, as in logistic regression and in the gates of an LSTM.
"""
from __future__ import annotations

from ..base.errors import DTypeError
from ..tensors.tensor import Tensor
from .arguments import floating, operand, positive

__all__ = ["eq", "ge", "gt", "le", "lt", "ne", "sign", "step", "where"]


def step(input: Tensor, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return how far each element is above zero: 0 far below, 1/2 at zero, 1 far above.

    >>> import mutagrad as mg
    >>> mg.relax.step(mg.tensor([-1., 0., 1.]), temperature=0.5)
    tensor([0.1192, 0.5000, 0.8808])

    As the temperature goes to 0: `(x > 0).float()`, and 1/2 at zero: `mutagrad.heaviside(x, 0.5)`.
    """
    return logistic(floating(input, "relax.step"), temperature, "relax.step")


def logistic(x: Tensor, temperature: Tensor | float, name: str) -> Tensor:
    """Return what `step` does, for the function of this name."""
    return (x / positive(temperature, x, name)).sigmoid()


def sign(input: Tensor, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return tanh(x / temperature). As the temperature goes to 0: `mutagrad.sign(x)`.

    >>> import mutagrad as mg
    >>> mg.relax.sign(mg.tensor([-1., 0., 3.]))
    tensor([-0.7616,  0.0000,  0.9951])
    """
    return (floating(input, "relax.sign") / positive(temperature, input, "relax.sign")).tanh()


def _difference(input: Tensor, other: Tensor | float, name: str) -> Tensor:
    return floating(input, name) - operand(other, input, name)


def gt(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return how much greater than `other` each element is, from 0 to 1; 1/2 where they are equal.

    As the temperature goes to 0: `(x > other).float()` wherever they differ.

    >>> import mutagrad as mg
    >>> mg.relax.gt(mg.tensor([1., 2.]), mg.tensor([2., 2.]))
    tensor([0.2689, 0.5000])
    """
    return logistic(_difference(input, other, "relax.gt"), temperature, "relax.gt")


def lt(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return 1 - gt. As the temperature goes to 0: `(x < other).float()` wherever they differ.

    >>> import mutagrad as mg
    >>> mg.relax.lt(mg.tensor([1., 2.]), mg.tensor([2., 2.]))
    tensor([0.7311, 0.5000])
    """
    return logistic(-_difference(input, other, "relax.lt"), temperature, "relax.lt")


def ge(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return what `gt` does: the two differ at a single point only, where both are 1/2.

    >>> import mutagrad as mg
    >>> mg.relax.ge(mg.tensor([1., 2.]), mg.tensor([2., 2.]))
    tensor([0.2689, 0.5000])
    """
    return logistic(_difference(input, other, "relax.ge"), temperature, "relax.ge")


def le(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return what `lt` does: the two differ at a single point only, where both are 1/2.

    >>> import mutagrad as mg
    >>> mg.relax.le(mg.tensor([1., 2.]), mg.tensor([2., 2.]))
    tensor([0.7311, 0.5000])
    """
    return logistic(-_difference(input, other, "relax.le"), temperature, "relax.le")


def eq(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return 1 where the elements are equal, and less the farther apart they are: 4 gt lt, a bump.

    As the temperature goes to 0: `(x == other).float()`.

    >>> import mutagrad as mg
    >>> mg.relax.eq(mg.tensor([1., 1.]), mg.tensor([1., 3.]))
    tensor([1.0000, 0.4200])
    """
    return _bump(_difference(input, other, "relax.eq"), temperature, "relax.eq")


def _bump(away: Tensor, temperature: Tensor | float, name: str) -> Tensor:
    return 4 * logistic(away, temperature, name) * logistic(-away, temperature, name)


def ne(input: Tensor, other: Tensor | float, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return 1 - eq. As the temperature goes to 0: `(x != other).float()`.

    >>> import mutagrad as mg
    >>> mg.relax.ne(mg.tensor([1., 1.]), mg.tensor([1., 3.]))
    tensor([0.0000, 0.5800])
    """
    return 1 - _bump(_difference(input, other, "relax.ne"), temperature, "relax.ne")


def where(score: Tensor, input: Tensor | float, other: Tensor | float, *,
          temperature: Tensor | float = 1.0) -> Tensor:
    """Return a mixture of two values: `input` where the score is far above zero, `other` where it is far below.

    >>> import mutagrad as mg
    >>> threshold = mg.tensor(0.5, requires_grad=True)
    >>> x = mg.tensor([0., 1.])
    >>> mg.relax.where(x - threshold, x, 0., temperature=0.1).sum().backward()
    >>> threshold.grad
    tensor(-0.0665)

    As the temperature goes to 0: `mutagrad.where(score > 0, input, other)`, and the mean of both where the score is 0.
    What is not chosen at all, as far as the type can tell, may be inf or nan.
    """
    if not isinstance(score, Tensor) or not score.is_floating_point():
        raise DTypeError("relax.where: expects a score, of which the sign decides",
                         why="a condition has no derivative",
                         fix="relax.where(a - b, x, y) instead of where(a > b, x, y)")
    chosen, rest = (logistic(s, temperature, "relax.where") for s in (score, -score))
    x, y = operand(input, score, "relax.where"), operand(other, score, "relax.where")
    return chosen * x.where(chosen != 0, 0.0) + rest * y.where(rest != 0, 0.0)
