"""Schedulers that are made of schedulers."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..base.errors import BadArgument, BadValue
from .optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler, of_groups, set_in_group

__all__ = ["ChainedScheduler", "SequentialLR"]


class _OfSchedulers(LRScheduler):
    """Schedulers that are made of schedulers."""

    _not_saved = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _check_schedulers(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise BadArgument(f"{name} at index {i} should have `optimizer` as its attribute, but is of type "
                                  f"{type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise BadValue(f"{name} does not support `ReduceLROnPlateau` scheduler, but got one at index {i}",
                               why="its step() needs the measure", fix="call its step(loss) apart from this one's")
            if scheduler.optimizer is not optimizer:
                raise BadValue(f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                               f"{type(scheduler).__name__} at index {i} has another "
                               f"{type(scheduler.optimizer).__name__}")

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer, with the states of the schedulers in it."""
        return super().state_dict() | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(saved)


class SequentialLR(_OfSchedulers):
    """One scheduler after the other: the next takes over at each milestone.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(2, requires_grad=True)], lr=1.0)
    >>> warm_up = mg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = mg.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[2])
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step(); scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
                 last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise BadValue("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check_schedulers(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise BadValue("Sequential Schedulers expects number of schedulers provided to be one more than the number "
                           f"of milestone points, but got number of schedulers {len(schedulers)} and the number of "
                           f"milestones to be equal to {len(milestones)}")
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:
            set_in_group(group, "lr", group["initial_lr"])
        _step_back(self)  # each has made its first step, and only one of them shall have
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> from mutagrad.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> parts = [ConstantLR(optimizer, 0.5), ExponentialLR(optimizer, 0.9)]
        >>> scheduler = SequentialLR(optimizer, parts, milestones=[1])
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [1.0]
        """
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _step_back(scheduler: LRScheduler) -> None:
    if hasattr(scheduler, "_schedulers"):
        for part in scheduler._schedulers:
            _step_back(part)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_OfSchedulers):
    """Several schedulers at once, each going on from the rates that the one before has set.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> from mutagrad.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> both = ChainedScheduler([ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.9)])
    >>> optimizer.step()
    >>> both.step()
    >>> both.get_last_lr()
    [0.45]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise BadValue("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        self._check_schedulers(schedulers, optimizer)
        assert optimizer is not None
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = of_groups(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> chained = mg.optim.lr_scheduler.ChainedScheduler([mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)])
        >>> optimizer.step()
        >>> chained.step()
        >>> chained.get_last_lr()
        [0.5]
        """
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = of_groups(self.optimizer, "lr")
