"""What all distributions have in common."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..arrays.kinds import anywhere
from ..autograd import no_grad
from ..base.errors import BadData, BadValue, NotSupported
from ..base.modes import keeps_modes
from ..core.size import Size
from ..ops.create.create import as_tensor
from ..ops.shape.shape import broadcast_tensors
from ..tensors.tensor import Tensor
from .constraints import Constraint, is_dependent
from .like import like

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Distribution", "numbers_or_tensors"]

_PACKAGE = __name__.rpartition(".")[0]


def numbers_or_tensors(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Return numbers and tensors as tensors of one shape; numbers take the type of the tensors."""
    for v in values:
        if not isinstance(v, (Tensor, Real)):
            raise BadData(f"a parameter must be a number or a tensor, not {type(v).__name__}",
                          fix="Normal(mutagrad.tensor(loc), 1.0)")
    tensors = [v for v in values if isinstance(v, Tensor)]
    given = like(tensors[0]) if tensors else {}
    return tuple(broadcast_tensors(*(v if isinstance(v, Tensor) else as_tensor(float(v), **given) for v in values)))


class Distribution:
    """A distribution over tensors of `event_shape`, one for each place of `batch_shape`.

    A subclass sets its parameters as attributes of shape batch + event, then calls this __init__, which looks at them.

    >>> import mutagrad as mg
    >>> isinstance(mg.distributions.Normal(0., 1.), mg.distributions.Distribution)
    True
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    _handed_on: tuple[str, ...] = ()  # attributes beside the parameters that `expand` hands on: tensors as they are

    def __init__(self, batch_shape: Iterable[int] = (), event_shape: Iterable[int] = (),
                 validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self._checked_constraints().items():
                known = name in self.__dict__ or isinstance(getattr(type(self), name, None), property)
                if known and not is_dependent(constraint):  # what is not known follows from others
                    self._check_values(getattr(self, name), constraint, f"parameter {name}")
        super().__init__()  # what else a subclass inherits from, such as Module

    def _checked_constraints(self) -> Mapping[str, Constraint]:
        try:
            return self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self).__name__} does not define `arg_constraints`. Please set "
                          "`arg_constraints = {}` or initialize the distribution with `validate_args=False` "
                          "to turn off validation.", stacklevel=4)
            return {}

    def _check_values(self, value: Tensor, constraint: Constraint, what: str) -> None:
        if anywhere(~constraint.check(value)._array):
            raise BadValue(f"{type(self).__name__}: Expected {what}, of shape {tuple(value.shape)}, "
                           f"to satisfy the constraint {constraint}",
                           why=f"it holds\n{value}", fix="validate_args=False leaves it unchecked")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters and values are checked where `validate_args` is not given.

        >>> import mutagrad as mg
        >>> from mutagrad.distributions import Distribution, Normal
        >>> Distribution.set_default_validate_args(False)
        >>> Normal(0., -1.).scale
        tensor(-1.)
        >>> Distribution.set_default_validate_args(True)
        """
        Distribution._validate_args = bool(value)

    @property
    def batch_shape(self) -> Size:
        """The shape of a batch of distributions: each has parameters of its own.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(mg.zeros(3), 1.).batch_shape
        mutagrad.Size([3])
        """
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution.

        >>> import mutagrad as mg
        >>> mg.distributions.MultivariateNormal(mg.zeros(2), mg.eye(2)).event_shape
        mutagrad.Size([2])
        """
        return self._event_shape

    def _unknown(self, what: str) -> NotSupported:
        return NotSupported(f"{type(self).__name__}.{what}: there is none",
                            why="it has no closed form, or it is not defined for this distribution")

    @property
    def arg_constraints(self) -> Mapping[str, Constraint]:
        """Which values the parameters may have; a class that has parameters says so in an attribute of this name.

        >>> import mutagrad as mg
        >>> sorted(mg.distributions.Normal(0., 1.).arg_constraints)
        ['loc', 'scale']
        """
        raise self._unknown("arg_constraints")

    @property
    def support(self) -> Constraint:
        """Which values a sample can have, as a constraint.

        >>> import mutagrad as mg
        >>> mg.distributions.Uniform(0., 2.).support
        Interval(lower_bound=0.0, upper_bound=2.0)
        """
        raise self._unknown("support")

    @property
    def mean(self) -> Tensor:
        """The mean.

        >>> import mutagrad as mg
        >>> mg.distributions.Uniform(0., 2.).mean
        tensor(1.)
        """
        raise self._unknown("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value.

        >>> import mutagrad as mg
        >>> mg.distributions.Gamma(3., 2.).mode
        tensor(1.)
        """
        raise self._unknown("mode")

    @property
    def variance(self) -> Tensor:
        """The variance.

        >>> import mutagrad as mg
        >>> mg.distributions.Uniform(0., 6.).variance
        tensor(3.)
        """
        raise self._unknown("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(0., 3.).stddev
        tensor(3.)
        """
        return self.variance.sqrt()

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw a sample for each place of the batch, and so many of those as `sample_shape` says.

        >>> import mutagrad as mg
        >>> _ = mg.manual_seed(0)
        >>> mg.distributions.Normal(0., 1.).sample((3,))
        tensor([ 1.5410, -0.2934, -2.1788])
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw samples through which gradients reach the parameters.

        >>> import mutagrad as mg
        >>> scale = mg.tensor(2., requires_grad=True)
        >>> mg.distributions.Normal(0., scale).rsample((3,)).sum().backward()
        >>> scale.grad is not None
        True
        """
        raise NotSupported(f"{type(self).__name__}.rsample: a draw is not a differentiable function of the parameters",
                           fix="sample()")

    def sample_n(self, n: int) -> Tensor:
        """Draw n samples: `sample((n,))` under its older name."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or of the probability, at `value`.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(0., 1.).log_prob(mg.tensor([0., 1.]))
        tensor([-0.9189, -1.4189])
        """
        raise self._unknown("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of being at most `value`.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(0., 1.).cdf(mg.tensor([0., 1.]))
        tensor([0.5000, 0.8413])
        """
        raise self._unknown("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of `cdf`.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(0., 1.).icdf(mg.tensor([0.5, 0.9]))
        tensor([0.0000, 1.2816])
        """
        raise self._unknown("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that there are, along a new first dimension.

        >>> import mutagrad as mg
        >>> mg.distributions.Bernoulli(0.3).enumerate_support()
        tensor([0., 1.])
        """
        raise self._unknown("enumerate_support")

    def entropy(self) -> Tensor:
        """Return the entropy, in units of the natural logarithm.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(0., 1.).entropy()
        tensor(1.4189)
        """
        raise self._unknown("entropy")

    def perplexity(self) -> Tensor:
        """Return e to the power of the entropy: among how many equally likely values it is as uncertain.

        >>> import mutagrad as mg
        >>> mg.distributions.Categorical(mg.ones(4)).perplexity()
        tensor(4.)
        """
        return self.entropy().exp()

    def _get_checked_instance(self, cls: type[Distribution], _instance: Any = None) -> Any:
        """An instance for `expand` to fill, for which the class must be the one that says how to."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotSupported(f"{type(self).__name__}.expand: the class has an __init__ of its own, "
                               "and so must have an expand",
                               why=f"{cls.__name__}.expand does not know its parameters")
        return object.__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """Return the same distributions, repeated to a larger batch; parameters are expanded, not copied.

        A subclass with an `__init__` of its own overrides it: it makes the instance, sets its own attributes there, and
        hands it on as `_instance`.

        >>> import mutagrad as mg
        >>> mg.distributions.Normal(0., 1.).expand((3,)).batch_shape
        mutagrad.Size([3])
        """
        return self._with_own_expanded(batch_shape, _instance)

    def _with_own_expanded(self, batch_shape: Sequence[int], _instance: Any, **parts: Any) -> Self:
        """Expand what this package's own class has: attributes of a subclass are the subclass's business.

        `parts` are set as they are, before Distribution.__init__: a subclass may look into them there.
        """
        known: Any = next(cls for cls in type(self).__mro__ if cls.__module__.startswith(_PACKAGE))
        told = [c for c in (vars(cls).get("arg_constraints") for cls in known.__mro__) if isinstance(c, Mapping)]
        if not told:
            raise self._unknown("expand")
        made = self._get_checked_instance(known, _instance)
        shape = Size(batch_shape)
        for name in dict.fromkeys(chain(*told)):
            if name in self.__dict__ or not hasattr(type(self), name) and hasattr(self, name):
                value = getattr(self, name)
                setattr(made, name, value.expand(*shape, *value.shape[len(self._batch_shape):]))
        for name in known._handed_on:
            value = getattr(self, name)
            setattr(made, name, value.expand(shape) if isinstance(value, Distribution) else value)
        for name, part in parts.items():
            setattr(made, name, part)
        Distribution.__init__(made, shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Raises unless a value can have been drawn from this."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise BadValue(f"{type(self).__name__}: the value must be a tensor, not {type(value).__name__}",
                           fix="mutagrad.tensor(value)")
        ours, given = (*self._batch_shape, *self._event_shape), tuple(value.shape)
        event = len(self._event_shape)
        if event and given[len(given) - event:] != tuple(self._event_shape):
            raise BadValue(f"{type(self).__name__}: the last dimensions of a value are {tuple(self._event_shape)}, "
                           f"got shape {given}")
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(given), reversed(ours))):
            raise BadValue(f"{type(self).__name__}: a value of shape {given} does not broadcast with {ours}",
                           why="batch_shape + event_shape is the latter")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self).__name__} does not define `support` to enable sample validation. Please "
                          "initialize the distribution with `validate_args=False` to turn off validation.",
                          stacklevel=3)
            return
        if anywhere(~support.check(value)._array):
            raise BadValue(f"{type(self).__name__}: Expected value argument (Tensor of shape {given}) "
                           f"to be within the support ({support})",
                           why=f"it holds\n{value}", fix="validate_args=False leaves it unchecked")

    def __repr__(self) -> str:
        named = [(k, self.__dict__[k]) for k in self._checked_constraints() if k in self.__dict__]
        return f"{type(self).__name__}({', '.join(f'{k}: {v if v.numel() == 1 else v.size()}' for k, v in named)})"
