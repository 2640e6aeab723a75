"""Checking what an optimizer is given, before anything changes."""
from __future__ import annotations

from numbers import Real
from typing import Any

from ..arrays import np
from ..arrays.kinds import is_plain
from ..base.errors import BadArgument, BadValue, bad_choice
from ..tensors.tensor import Tensor

Betas = tuple[float | Tensor, float | Tensor]


def plain(value: Any) -> Any:
    """Return a setting as a number of Python's, if it is a tensor."""
    return value.item() if isinstance(value, Tensor) else value


def rate_of(group: dict[str, Any]) -> Any:
    """Return the learning rate of a group as a float; where it is an array, which only a program knows, that."""
    rate = plain(group["lr"])
    return rate if isinstance(rate, np.ndarray) and not is_plain(rate) else float(rate)


def number(optimizer: object, name: str, value: Any) -> Any:
    """Return a setting that has to be one number, as Python's."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise BadValue(f"{type(optimizer).__name__}: Tensor {name} must be 1-element, not of shape "
                       f"{tuple(value.shape)}")
    found = plain(value)
    if not isinstance(found, Real):
        raise BadArgument(f"{type(optimizer).__name__}: {name} must be a number, not {type(value).__name__}",
                          fix=f"{name}=0.01")
    return found


def check_positive(optimizer: object, lr: float | Tensor, **others: float | Tensor) -> None:
    """Raise unless the learning rate and the other settings are numbers of zero or more."""
    if not number(optimizer, "lr", lr) >= 0:
        raise BadValue(f"{type(optimizer).__name__}: Invalid learning rate: {lr}", why="it must be zero or more",
                       fix="maximize=True goes uphill" if number(optimizer, "lr", lr) < 0 else "lr=0.01")
    for name, value in others.items():
        if not number(optimizer, name, value) >= 0:
            shown = "epsilon" if name == "eps" else name
            raise BadValue(f"{type(optimizer).__name__}: Invalid {shown} value: {value}", why="it must be zero or more")


def check_betas(optimizer: object, betas: Betas) -> tuple[float, float]:
    """Return two numbers from zero to one, not one itself, or raise."""
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise bad_choice(betas, (tuple, list), f"{type(optimizer).__name__}: betas must be two numbers, not {betas!r}",
                         fix="betas=(0.9, 0.999)")
    for i, beta in enumerate(betas):
        if not 0 <= number(optimizer, f"betas[{i}]", beta) < 1:
            raise BadValue(f"{type(optimizer).__name__}: Invalid beta parameter at index {i}: {beta}",
                           why="it must be at least 0 and less than 1", fix="betas=(0.9, 0.999)")
    return plain(betas[0]), plain(betas[1])
