"""Learning rates that change while training goes on.

A scheduler sets the rates of an optimizer's groups when it is made and each time `step()` is called, usually once an epoch:

>>> import mutagrad as mg
>>> w = mg.zeros(2, requires_grad=True)
>>> optimizer = mg.optim.SGD([w], lr=0.8)
>>> scheduler = mg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> for epoch in range(4):
...     w.sum().backward()
...     optimizer.step(); scheduler.step()
...     print(scheduler.get_last_lr())
[0.8]
[0.4]
[0.4]
[0.2]

Most compute the next rate from the present one, so that several can work on one optimizer.
"""
from __future__ import annotations

import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import cos, floor, inf, log, pi
from typing import Any

from .._tensor import Tensor
from ..errors import BadArgument, BadValue
from .optimizer import Optimizer
from .settings import plain

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
           "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]

_WITH_EPOCH = "step(epoch) is deprecated: call step() once for each epoch. Where there is a closed form of the schedule, the rate is set by that."


class ResumedWithoutRates(BadValue, KeyError):
    """A scheduler that is to go on from an epoch, of an optimizer whose first rates are not known."""

    __str__ = BadValue.__str__


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _of_groups(optimizer: Optimizer, key: str) -> list[Any]:
    return [_copied(group[key]) for group in optimizer.param_groups]


def _set(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets a number of a group; where it is a tensor, that stays and gets the value."""
    if isinstance(group[key], Tensor):
        group[key].fill_(plain(value))
    else:
        group[key] = value


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A setting for each group, from one for all or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(count)]
    if len(value) != count:
        raise BadValue(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {count}.",
                       fix="one number for all groups, or one for each")
    return [_copied(v) for v in value]


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise BadArgument(f"{type(optimizer).__name__} is not an Optimizer", fix="StepLR(optimizer, ...)")


class LRScheduler:
    """Base: a subclass defines `get_lr`, the rates for epoch `last_epoch`; a closed form of them, if any, in `_get_closed_form_lr`."""

    _get_lr_called_within_step = False
    _is_initial = False
    _not_saved: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise ResumedWithoutRates(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0",
                                          why="the schedule goes from the rates of the first epoch", fix="optimizer.load_state_dict(...) first")
        self.base_lrs: list[Any] = _of_groups(optimizer, "initial_lr")
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
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates to be set now; to look at those in use, `get_last_lr`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("lr_scheduler.step() was called before optimizer.step(): the first learning rate of the schedule is skipped. "
                          "Call optimizer.step() first.", UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_WITH_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._inside_step():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed: Callable[[], list[Any]] = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed()
        self._apply(rates)

    def _apply(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set(group, "lr", rate)
        self._last_lr: list[Any] = _of_groups(self.optimizer, "lr")

    @contextmanager
    def _inside_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=3)

    def _scaled(self, factor: float) -> list[Any]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _unchanged(self) -> list[Any]:
        return _of_groups(self.optimizer, "lr")


_LRScheduler = LRScheduler  # its name in old programs


def _saved_functions(functions: list[Any]) -> list[Any]:
    """What can be saved of functions: the attributes of those that are objects."""
    return [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in functions]


class _ByFunction(LRScheduler):
    """A function of the epoch for each group, or one for all."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(functions) != count:
            raise BadValue(f"Expected {count} lr_lambdas, but got {len(functions)}", why="there must be one for each parameter group, or one for all")
        for f in functions:
            if not callable(f):
                raise BadArgument(f"lr_lambda should be a function, but got {type(f).__name__}", fix="lambda epoch: 0.95 ** epoch")
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of objects that are called, their attributes."""
        return super().state_dict() | {"lr_lambdas": _saved_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                f.__dict__.update(attributes)


class LambdaLR(_ByFunction):
    """The first rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_ByFunction):
    """The present rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._unchanged()
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, self.optimizer.param_groups)]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return self._unchanged() if self.last_epoch == 0 or self.last_epoch % self.step_size else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._unchanged()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch) for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times `factor` for the first `total_iters` epochs."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise BadValue(f"ConstantLR: Constant multiplicative factor expected to be between 0 and 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._unchanged() if self.last_epoch != self.total_iters else self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)) for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1:
            raise BadValue(f"LinearLR: Starting multiplicative factor expected to be greater than 0 and less or equal to 1, got {start_factor}",
                           why="the rates that follow are computed from it by division", fix="start_factor=1e-6")
        if not 0 <= end_factor <= 1:
            raise BadValue(f"LinearLR: Ending multiplicative factor expected to be between 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        rise = self.end_factor - self.start_factor
        return self._scaled(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch)
        return [rate * (self.start_factor + (self.end_factor - self.start_factor) * done / self.total_iters) for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return self._unchanged() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma ** self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero in `total_iters` epochs, as a power of what is left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        left, left_before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((left / left_before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate to `eta_min` in `T_max` epochs, then back."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom, where the quotient below is undefined
            return [group["lr"] + (rate - self.eta_min) * (1 - cos(pi / self.T_max)) / 2 for rate, group in zip(self.base_lrs, groups)]
        quotient = (1 + cos(pi * self.last_epoch / self.T_max)) / (1 + cos(pi * (self.last_epoch - 1) / self.T_max))
        return [quotient * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        return [self.eta_min + (rate - self.eta_min) * (1 + cos(pi * self.last_epoch / self.T_max)) / 2 for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine again and again: the first in `T_0` epochs, each next one `T_mult` times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise BadValue(f"CosineAnnealingWarmRestarts: Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [self.eta_min + (rate - self.eta_min) * (1 + cos(pi * self.T_cur / self.T_i)) / 2 for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next epoch, or to any time, such as 3.5 epochs."""
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


class _WithMomentum(LRScheduler):
    """Schedulers that change the momentum (of Adam, the first of its betas) against the rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base_momentum: Any, max_momentum: Any, fresh: bool) -> None:
        groups, defaults = self.optimizer.param_groups, self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise BadValue("optimizer must support momentum or beta1 with `cycle_momentum` option enabled", fix="cycle_momentum=False")
        self.use_beta1 = "betas" in defaults
        self.base_momentums = for_groups("base_momentum", self.optimizer, base_momentum)
        self.max_momentums = for_groups("max_momentum", self.optimizer, max_momentum)
        if fresh:
            for most, least, group in zip(self.max_momentums, self.base_momentums, groups):
                self._set_momentum(group, most)
                group["max_momentum"], group["base_momentum"] = most, least

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


_SCALES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda gamma, x: 1.0),
    "triangular2": ("cycle", lambda gamma, x: 1 / (2.0 ** (x - 1))),
    "exp_range": ("iterations", lambda gamma, x: gamma ** x),
}


class CyclicLR(_WithMomentum):
    """Up from `base_lr` to `max_lr` and down again, in cycles; by Smith."""

    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
                 mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        if mode not in _SCALES and scale_fn is None:
            raise BadValue(f"CyclicLR: mode is invalid and scale_fn is None: {mode!r}", fix=f"one of {', '.join(_SCALES)}")
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALES[mode][0]
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                _set(group, "lr", rate)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How high the cycle (or the epoch) with this number goes."""
        return self._scale_fn_custom(x) if self._scale_fn_custom is not None else _SCALES[self.mode][1](self.gamma, x)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for least, most, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                self._set_momentum(group, most - (most - least) * height * scale)
        return [least + (most - least) * height * scale for least, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of an object that is called, its attributes."""
        f = self._scale_fn_custom
        return super().state_dict() | {"_scale_fn_custom": None if f is None else _saved_functions([f])[0]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def annealed_by_cosine(start: Any, end: Any, done: float) -> Any:
    """Between two values, along half a cosine."""
    return end + (start - end) / 2.0 * (cos(pi * done) + 1)


def _annealed_linearly(start: Any, end: Any, done: float) -> Any:
    return (end - start) * done + start


_ANNEALED = {"cos": annealed_by_cosine, "linear": _annealed_linearly}


class OneCycleLR(_WithMomentum):
    """Up to `max_lr` and then far below the first rate, once in all of training, a step for each batch; by Smith and Topin."""

    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
                 pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
                 max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer, self.total_steps = optimizer, _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise BadValue(f"OneCycleLR: Expected float between 0 and 1 pct_start, but got {pct_start}", fix="pct_start=0.3")
        if anneal_strategy not in _ANNEALED:
            raise BadValue(f"OneCycleLR: anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}", fix="anneal_strategy='cos'")
        self._anneal_func_type, self._schedule_phases = anneal_strategy, _phases(pct_start, self.total_steps, three_phase)
        max_lrs = for_groups("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for most, group in zip(max_lrs, optimizer.param_groups):
                group.update(initial_lr=most / div_factor, max_lr=most, min_lr=most / div_factor / final_div_factor)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise BadValue(f"OneCycleLR: Tried to step {step} times. The specified number of total steps is {self.total_steps}",
                           fix="total_steps=epochs * len(batches)")
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        done = (step - start) / (phase["end_step"] - start)
        anneal = _ANNEALED[self._anneal_func_type]
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], done))
        return [anneal(group[phase["start_lr"]], group[phase["end_lr"]], done) for group in groups]


def _total_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise BadValue("OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)", fix="total_steps=epochs * len(batches)")
    given = {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    product = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise BadValue(f"OneCycleLR: Expected positive integer {name}, but got {value}")
        product *= value
    return product


def _phases(pct_start: float, total_steps: int, three_phase: bool) -> list[dict[str, Any]]:
    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {"end_step": end, "start_lr": rates[0], "end_lr": rates[1], "start_momentum": momenta[0], "end_momentum": momenta[1]}

    down, up = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
    first = phase(float(pct_start * total_steps) - 1, ("initial_lr", "max_lr"), down)
    if not three_phase:
        return [first, phase(total_steps - 1, ("max_lr", "min_lr"), up)]
    return [first, phase(float(2 * pct_start * total_steps) - 2, ("max_lr", "initial_lr"), up),
            phase(total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]


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

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8) -> None:
        if factor >= 1.0:
            raise BadValue(f"ReduceLROnPlateau: Factor should be < 1.0, got {factor}", fix="factor=0.1")
        _check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise BadValue(f"ReduceLROnPlateau: mode {mode} is unknown!", fix="mode='min' for a loss, 'max' for an accuracy")
        if threshold_mode not in ("rel", "abs"):
            raise BadValue(f"ReduceLROnPlateau: threshold mode {threshold_mode} is unknown!", fix="threshold_mode='rel'")
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.factor, self.optimizer, self.patience, self.cooldown, self.eps = factor, optimizer, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = inf if mode == "min" else -inf
        self.last_epoch = 0
        self._last_lr = _of_groups(optimizer, "lr")
        self._reset()

    def _reset(self) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the measure of this epoch into account."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_WITH_EPOCH, UserWarning, stacklevel=2)
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
        self._last_lr = _of_groups(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise BadValue(f"ReduceLROnPlateau: The number of param groups in the `optimizer` ({len(groups)}) differs from when it was made "
                               f"({len(self.min_lrs)})", why="each group needs a smallest rate of its own", fix="scheduler.min_lrs.append(...)")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            before = float(group["lr"])
            rate = max(before * self.factor, least)
            if before - rate > self.eps:
                _set(group, "lr", rate)

    def _is_better(self, value: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            return value < best * (1.0 - self.threshold) if self.mode == "min" else value > best * (self.threshold + 1.0)
        return value < best - self.threshold if self.mode == "min" else value > best + self.threshold

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.mode_worse = inf if self.mode == "min" else -inf


class _OfSchedulers(LRScheduler):
    """Schedulers that are made of schedulers."""

    _not_saved = ("optimizer", "_schedulers")
    _schedulers: Sequence[Any]

    def _check_schedulers(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise BadArgument(f"{name} at index {i} should have `optimizer` as its attribute, but is of type {type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise BadValue(f"{name} does not support `ReduceLROnPlateau` scheduler, but got one at index {i}",
                               why="its step() needs the measure", fix="call its step(loss) apart from this one's")
            if scheduler.optimizer is not optimizer:
                raise BadValue(f"{name} expects all schedulers to belong to the same optimizer, but got scheduler {type(scheduler).__name__} "
                               f"at index {i} has another {type(scheduler.optimizer).__name__}")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers in it."""
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

    def __init__(self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise BadValue("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check_schedulers(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise BadValue("Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                           f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}")
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        _step_back(self)  # each has made its first step, and only one of them shall have
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _step_back(scheduler: Any) -> None:
    if hasattr(scheduler, "_schedulers"):
        for part in scheduler._schedulers:
            _step_back(part)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_OfSchedulers):
    """Several schedulers at once, each going on from the rates that the one before has set."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise BadValue("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        self._check_schedulers(schedulers, optimizer)
        assert optimizer is not None
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = _of_groups(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _of_groups(self.optimizer, "lr")
