"""Learning rates that are lowered when nothing improves."""
from __future__ import annotations

import warnings
from math import inf
from typing import Any

from ..base.errors import BadValue
from .optimizer import Optimizer
from .scheduler import WITH_EPOCH, LRScheduler, Rates, check_optimizer, for_groups, of_groups, set_in_group
from .settings import plain

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure has not become better for `patience` epochs; `step` takes the measure.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(2, requires_grad=True)], lr=1.0)
    >>> scheduler = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (0.5, 0.4, 0.4, 0.4):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Rates = 0,
                 eps: float = 1e-8) -> None:
        if factor >= 1.0:
            raise BadValue(f"ReduceLROnPlateau: Factor should be < 1.0, got {factor}", fix="factor=0.1")
        check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise BadValue(f"ReduceLROnPlateau: mode {mode} is unknown!",
                           fix="mode='min' for a loss, 'max' for an accuracy")
        if threshold_mode not in ("rel", "abs"):
            raise BadValue(f"ReduceLROnPlateau: threshold mode {threshold_mode} is unknown!",
                           fix="threshold_mode='rel'")
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.factor, self.optimizer, self.patience, self.cooldown, self.eps = factor, optimizer, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = inf if mode == "min" else -inf
        self.last_epoch = 0
        self._last_lr = of_groups(optimizer, "lr")
        self._reset()

    def _reset(self) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was so short ago that no epoch counts as bad.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer).in_cooldown
        False
        """
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the measure of this epoch into account.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
        >>> for loss in (1., 2.):
        ...     scheduler.step(loss)
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        current = float(plain(metrics))  # a loss may well have a history
        if epoch is not None:
            warnings.warn(WITH_EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = of_groups(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise BadValue(f"ReduceLROnPlateau: The number of param groups in the `optimizer` ({len(groups)}) "
                               f"differs from when it was made ({len(self.min_lrs)})",
                               why="each group needs a smallest rate of its own", fix="scheduler.min_lrs.append(...)")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            before = float(group["lr"])
            rate = max(before * self.factor, least)
            if before - rate > self.eps:
                set_in_group(group, "lr", rate)

    def _is_better(self, value: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            least, most = best * (1.0 - self.threshold), best * (self.threshold + 1.0)
            return value < least if self.mode == "min" else value > most
        return value < best - self.threshold if self.mode == "min" else value > best + self.threshold

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.mode_worse = inf if self.mode == "min" else -inf
