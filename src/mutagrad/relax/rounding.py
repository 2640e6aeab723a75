"""Stairs with a slope: round, floor and ceil.

The stairs are the soft rounding of Agustsson & Theis, "Universally Quantized Neural Compression" (2020): half a period
of tanh between two integers, scaled to meet its neighbours. They are continuous with their derivative.
"""
from __future__ import annotations

import math
from typing import Any

from ..tensors.tensor import Tensor
from .arguments import floating, positive

__all__ = ["ceil", "floor", "round"]


def round(input: Tensor, *, temperature: Tensor | float = 0.1) -> Tensor:
    """Return x moved towards the nearest integer; integers stay, and so does what is halfway between two.

    >>> import mutagrad as mg
    >>> mg.relax.round(mg.tensor([1., 1.4, 1.5, 1.6, 2.]))
    tensor([1.0000, 1.1192, 1.5000, 1.8808, 2.0000])

    As the temperature goes to 0: `mutagrad.round(x)` everywhere but halfway. As it grows: x itself.
    """
    return _stairs(floating(input, "relax.round"), positive(temperature, input, "relax.round"))


def floor(input: Tensor, *, temperature: Tensor | float = 0.1) -> Tensor:
    """Return round(x - 1/2). As the temperature goes to 0: `mutagrad.floor(x)` everywhere but at integers.

    >>> import mutagrad as mg
    >>> mg.relax.floor(mg.tensor([1.5]), temperature=0.01)
    tensor([1.])
    """
    return _stairs(floating(input, "relax.floor") - 0.5, positive(temperature, input, "relax.floor"))


def ceil(input: Tensor, *, temperature: Tensor | float = 0.1) -> Tensor:
    """Return round(x + 1/2). As the temperature goes to 0: `mutagrad.ceil(x)` everywhere but at integers.

    >>> import mutagrad as mg
    >>> mg.relax.ceil(mg.tensor([1.5]), temperature=0.01)
    tensor([2.])
    """
    return _stairs(floating(input, "relax.ceil") + 0.5, positive(temperature, input, "relax.ceil"))


def _stairs(x: Tensor, t: Any) -> Tensor:
    below = x.detach().floor()
    from_middle = x - below - 0.5
    half = (0.5 / t).tanh() if isinstance(t, Tensor) else math.tanh(0.5 / t)
    return below + 0.5 + 0.5 * (from_middle / t).tanh() / half
