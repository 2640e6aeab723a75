"""What all learning rate schedulers have in common."""
from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..base.errors import BadArgument, BadValue
from ..tensors.tensor import Tensor
from .optimizer import Group, Optimizer
from .settings import plain

__all__ = ["LRScheduler"]

Rate = float | Tensor
Rates = Rate | list[Rate] | tuple[Rate, ...]  # one for all groups of parameters, or one for each

WITH_EPOCH = ("step(epoch) is deprecated: call step() once for each epoch. Where there is a closed form of the "
              "schedule, the rate is set by that.")


class ResumedWithoutRates(BadValue, KeyError):
    """A scheduler that is to go on from an epoch, of an optimizer whose first rates are not known."""

    __str__ = BadValue.__str__


def _copied(value: Rate) -> Rate:
    return value.clone() if isinstance(value, Tensor) else value


def of_groups(optimizer: Optimizer, key: str) -> list[Rate]:
    return [_copied(group[key]) for group in optimizer.param_groups]


def set_in_group(group: Group, key: str, value: Rate) -> None:
    """Sets a number of a group; where it is a tensor, that stays and gets the value."""
    if isinstance(group[key], Tensor):
        group[key].fill_(plain(value))
    else:
        group[key] = value


def for_groups(name: str, optimizer: Optimizer, value: Rates) -> list[Rate]:
    """Return a setting for each group, from one for all or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(count)]
    if len(value) != count:
        raise BadValue(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                       f"param_groups has {count}.", fix="one number for all groups, or one for each")
    return [_copied(v) for v in value]


def check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise BadArgument(f"{type(optimizer).__name__} is not an Optimizer", fix="StepLR(optimizer, ...)")


def saved_functions(functions: list[Callable[..., Any]]) -> list[Any]:
    """Return what can be saved of functions: the attributes of those that are objects."""
    return [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in functions]


class LRScheduler:
    """Base: a subclass defines `get_lr`, the rates for epoch `last_epoch`.

    A closed form of them, if any, is `_get_closed_form_lr`.

    >>> import mutagrad as mg
    >>> class Halving(mg.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate * 0.5 ** self.last_epoch for rate in self.base_lrs]
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = Halving(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _not_saved: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise ResumedWithoutRates(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                                          "scheduler with last_epoch >= 0",
                                          why="the schedule goes from the rates of the first epoch",
                                          fix="optimizer.load_state_dict(...) first")
        self.base_lrs: list[Rate] = of_groups(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler.state_dict()["last_epoch"]
        0
        """
        return {key: value for key, value in self.__dict__.items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler.load_state_dict({**scheduler.state_dict(), "gamma": 0.1})
        >>> scheduler.gamma
        0.1
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Return the rates that were set last.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler.get_last_lr()
        [1.0]
        """
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Return the rates to be set now; to look at those in use, `get_last_lr`.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> class Halving(mg.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate * 0.5 ** self.last_epoch for rate in self.base_lrs]
        >>> Halving(optimizer).get_last_lr()
        [1.0]
        """
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
        """
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("lr_scheduler.step() was called before optimizer.step(): the first learning rate of the "
                          "schedule is skipped. Call optimizer.step() first.", UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(WITH_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._inside_step():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed: Callable[[], list[Rate]] = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed()
        self._apply(rates)

    def _apply(self, rates: Sequence[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_in_group(group, "lr", rate)
        self._last_lr: list[Rate] = of_groups(self.optimizer, "lr")

    @contextmanager
    def _inside_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                          UserWarning, stacklevel=3)

    def _scaled(self, factor: float) -> list[Rate]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _unchanged(self) -> list[Rate]:
        return of_groups(self.optimizer, "lr")
