"""Learning rates that change while training goes on.

A scheduler sets the rates of an optimizer's groups when it is made and each time `step()` is called, usually once an
epoch:

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

from .chained import ChainedScheduler, SequentialLR
from .cyclic import CyclicLR, OneCycleLR
from .plateau import ReduceLROnPlateau
from .scheduler import WITH_EPOCH as EPOCH_DEPRECATION_WARNING, LRScheduler
from .schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

__all__ = [
    "EPOCH_DEPRECATION_WARNING", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]

_LRScheduler = LRScheduler  # its name in old programs
