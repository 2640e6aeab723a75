"""Optimizers, which change parameters by their gradients, and schedules of their learning rates.

>>> import mutagrad as mg
>>> w = mg.tensor([3., -1.], requires_grad=True)
>>> optimizer = mg.optim.SGD([w], lr=0.1)
>>> for _ in range(50):
...     optimizer.zero_grad()
...     loss = (w ** 2).sum()
...     loss.backward()
...     optimizer.step()
>>> loss.item() < 1e-8
True
"""
from __future__ import annotations

from . import lr_scheduler, swa_utils
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils"]
