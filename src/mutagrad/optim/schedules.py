"""Learning rates that follow from the epoch: step by step, and most in closed form, too."""
from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from math import cos, floor, log, pi
from typing import Any

from ..base.errors import BadArgument, BadValue
from .optimizer import Optimizer
from .scheduler import LRScheduler, Rate, check_optimizer, saved_functions

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "StepLR"]

ByEpoch = Callable[[int], float]


class _ByFunction(LRScheduler):
    """A function of the epoch for each group, or one for all."""

    def __init__(self, optimizer: Optimizer, lr_lambda: ByEpoch | list[ByEpoch] | tuple[ByEpoch, ...],
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(functions) != count:
            raise BadValue(f"Expected {count} lr_lambdas, but got {len(functions)}",
                           why="there must be one for each parameter group, or one for all")
        for f in functions:
            if not callable(f):
                raise BadArgument(f"lr_lambda should be a function, but got {type(f).__name__}",
                                  fix="lambda epoch: 0.95 ** epoch")
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer and functions; of objects that are called, their attributes."""
        return super().state_dict() | {"lr_lambdas": saved_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                f.__dict__.update(attributes)


class LambdaLR(_ByFunction):
    """The first rate times a function of the epoch.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.5
    0.3333
    0.25
    """

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_ByFunction):
    """The present rate times a function of the epoch.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.5
    0.25
    0.125
    """

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        if self._is_initial:
            return self._unchanged()
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, self.optimizer.param_groups)]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    1.0
    0.1
    0.1
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        stays = self.last_epoch == 0 or self.last_epoch % self.step_size
        return self._unchanged() if stays else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each of the milestones.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.1)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.1
    0.1
    0.01
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._unchanged()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma ** passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times `factor` for the first `total_iters` epochs.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.5
    1.0
    1.0
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise BadValue(f"ConstantLR: Constant multiplicative factor expected to be between 0 and 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._unchanged() if self.last_epoch != self.total_iters else self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [rate * factor for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.75
    1.0
    1.0
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1:
            raise BadValue("LinearLR: Starting multiplicative factor expected to be greater than 0 and less or equal "
                           f"to 1, got {start_factor}",
                           why="the rates that follow are computed from it by division", fix="start_factor=1e-6")
        if not 0 <= end_factor <= 1:
            raise BadValue(f"LinearLR: Ending multiplicative factor expected to be between 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        rise = self.end_factor - self.start_factor
        return self._scaled(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[Rate]:
        done = min(self.total_iters, self.last_epoch)
        factor = self.start_factor + (self.end_factor - self.start_factor) * done / self.total_iters
        return [rate * factor for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.5
    0.25
    0.125
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        return self._unchanged() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [rate * self.gamma ** self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero in `total_iters` epochs, as a power of what is left.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.75
    0.5
    0.25
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        left, left_before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((left / left_before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [rate * factor for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate to `eta_min` in `T_max` epochs, then back.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.8536
    0.5
    0.1464
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the bottom: the quotient below is undefined
            return [group["lr"] + (rate - self.eta_min) * (1 - cos(pi / self.T_max)) / 2
                    for rate, group in zip(self.base_lrs, groups)]
        quotient = (1 + cos(pi * self.last_epoch / self.T_max)) / (1 + cos(pi * (self.last_epoch - 1) / self.T_max))
        return [quotient * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        height = 1 + cos(pi * self.last_epoch / self.T_max)
        return [self.eta_min + (rate - self.eta_min) * height / 2 for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine again and again: the first in `T_0` epochs, each next one `T_mult` times as long.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.5
    1.0
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected float or int eta_min, but got {eta_min} of type "
                           f"{type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        height = 1 + cos(pi * self.T_cur / self.T_i)
        return [self.eta_min + (rate - self.eta_min) * height / 2 for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next epoch, or to any time, such as 3.5 epochs.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> [round(rate, 4) for rate in scheduler.get_last_lr()]
        [0.5]
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected non-negative epoch, but got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = floor(epoch)
        with self._inside_step():
            rates = self.get_lr()
        self._apply(rates)

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult ** restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult ** restarts
