"""Averages of a model's weights over training."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from math import cos, pi
from typing import Any

from ..arrays.kinds import is_replayed
from ..autograd import no_grad
from ..base.device import device
from ..base.errors import BadValue, Mismatch
from ..nn.module import Module
from ..nn.normalization import _BatchNorm
from ..ops.create.create import tensor
from ..ops.math.elementwise import where
from ..tensors.tensor import Tensor
from .optimizer import Optimizer
from .scheduler import LRScheduler, Rate, Rates, for_groups

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn"]


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise BadValue(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.",
                       fix="decay=0.999")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return a rule for `AveragedModel`: an average in which older weights count less and less.

    >>> import mutagrad as mg
    >>> rule = mg.optim.swa_utils.get_ema_avg_fn(0.9)
    >>> rule(mg.tensor(1.), mg.tensor(2.), 5)
    tensor(1.1000)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(averaged: Tensor, current: Tensor, num_averaged: int | Tensor) -> Any:
        return decay * averaged + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """Return a rule for `AveragedModel`: the mean of all weights.

    >>> import mutagrad as mg
    >>> rule = mg.optim.swa_utils.get_swa_avg_fn()
    >>> rule(mg.tensor(1.), mg.tensor(4.), 2)
    tensor(2.)
    """

    @no_grad()
    def swa_update(averaged: Tensor, current: Tensor, num_averaged: int | Tensor) -> Any:
        return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Return what `get_ema_avg_fn` does, for lists of parameters that are changed in place.

    >>> import mutagrad as mg
    >>> averages = [mg.tensor(1.)]
    >>> mg.optim.swa_utils.get_ema_multi_avg_fn(0.9)(averages, [mg.tensor(2.)], 5)
    >>> averages
    [tensor(1.1000)]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: int | Tensor) -> None:
        for mean, value in zip(averaged, current):
            _move(mean, value, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Return what `get_swa_avg_fn` does, for lists of parameters that are changed in place.

    >>> import mutagrad as mg
    >>> averages = [mg.tensor(1.)]
    >>> mg.optim.swa_utils.get_swa_multi_avg_fn()(averages, [mg.tensor(4.)], 2)
    >>> averages
    [tensor(2.)]
    """

    @no_grad()
    def swa_update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: int | Tensor) -> None:
        weight = 1 / ((num_averaged if is_replayed() else float(num_averaged)) + 1)
        for mean, value in zip(averaged, current):
            _move(mean, value, weight)

    return swa_update


def _move(mean: Tensor, value: Tensor, weight: float | Tensor) -> None:
    if isinstance(weight, Tensor):
        mean.copy_(mean + (value - mean) * weight)
    elif mean.is_floating_point() or mean.is_complex():
        mean.lerp_(value, weight)
    else:
        mean.copy_(mean * (1 - weight) + value * weight)


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of that model's over all calls of `update_parameters`.

    >>> import mutagrad as mg
    >>> model = mg.nn.Linear(1, 1)
    >>> averaged = mg.optim.swa_utils.AveragedModel(model)
    >>> for value in (1., 2., 6.):
    ...     _ = model.bias.data.fill_(value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.bias
    Parameter containing:
    tensor([3.], requires_grad=True)
    """

    def __init__(self, model: Module, device: device | str | None = None,
                 avg_fn: Callable[..., Any] | None = None, multi_avg_fn: Callable[..., None] | None = None,
                 use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise Mismatch("AveragedModel: Only one of avg_fn and multi_avg_fn should be provided",
                           fix="leave out one of them")
        self.module = deepcopy(model) if device is None else deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the present weights of `model` into the average.

        >>> import mutagrad as mg
        >>> model = mg.nn.Linear(2, 1)
        >>> averaged = mg.optim.swa_utils.AveragedModel(model)
        >>> averaged.update_parameters(model)
        >>> averaged.n_averaged
        tensor(1)
        """
        means, values = self._averaged(self.module), [v.detach() for v in self._averaged(model)]
        if is_replayed():
            self._update_replayed(means, values)
        elif self.n_averaged == 0:
            for mean, value in zip(means, values):
                mean.copy_(value)
        elif self.avg_fn is not None:
            for mean, value in zip(means, values):
                mean.copy_(self.avg_fn(mean.detach(), value, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())([m.detach() for m in means], values, self.n_averaged)
        if not self.use_buffers:
            for mean, value in zip(self.module.buffers(), model.buffers()):
                mean.copy_(value)
        self.n_averaged += 1

    def _update_replayed(self, means: list[Tensor], values: list[Tensor]) -> None:
        """The same where it is not known in Python whether there is an average already."""
        moved = [mean.detach().clone() for mean in means]
        if self.avg_fn is not None:
            moved = [self.avg_fn(mean, value, self.n_averaged) for mean, value in zip(moved, values)]
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(moved, values, self.n_averaged)
        for mean, value, new in zip(means, values, moved):
            mean.copy_(where(self.n_averaged == 0, value, new))

    def _averaged(self, module: Module) -> list[Tensor]:
        return list(chain(module.parameters(), module.buffers()) if self.use_buffers else module.parameters())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: device | str | None = None) -> None:
    """Computes the running means and variances of all batch normalizations anew, over the batches of `loader`.

    >>> import mutagrad as mg
    >>> norm = mg.nn.BatchNorm1d(1)
    >>> mg.optim.swa_utils.update_bn([mg.tensor([[1.], [3.]])], norm)
    >>> norm.running_mean
    tensor([2.])
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
            module.momentum = None
    if not momenta:
        return
    was_training = model.training
    model.train()
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


_SHARES: dict[str, Callable[[float], float]] = {"cos": lambda t: (1 - cos(pi * t)) / 2, "linear": lambda t: t}


class SWALR(LRScheduler):
    """From the present rate to `swa_lr` in `anneal_epochs` epochs, and then constant.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: Rates, anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1) -> None:
        if anneal_strategy not in _SHARES:
            raise BadValue(f"SWALR: anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise BadValue(f"SWALR: anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(for_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            final = group["swa_lr"]
            first = final if before == 1 else (group["lr"] - before * final) / (1 - before)
            rates.append(final * now + first * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """How much of the way to the last rate is done after so many steps."""
        return _SHARES[self._anneal_strategy](max(0, min(1, step / max(1, self.anneal_epochs))))
