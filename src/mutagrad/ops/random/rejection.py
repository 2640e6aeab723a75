"""Numbers that are drawn until they are accepted, so that each takes as many uniform ones as it needs.

arrays/compiled/rejection.py says how. `each` does it for all elements of some vectors, by a kernel or in Python.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays.compiled import rejection as loops
from ...arrays.kinds import raw as np

Each = Callable[..., Any]


def gamma(concentration: Any, each: Each) -> Any:
    """Gamma numbers of rate one. What PyTorch computes in the type of the concentration, this does, too."""
    kind = concentration.dtype.type
    boosted = np.where(concentration < 1, concentration + kind(1), concentration)
    shift = boosted - kind(np.float32(1) / np.float32(3))
    return _like(concentration, each(loops.gamma, loops.one_gamma, concentration, shift, kind(1) / concentration))


def poisson(rate: Any, each: Each) -> Any:
    """Poisson numbers."""
    return _like(rate, each(loops.poisson, loops.one_poisson, rate))


def binomial(count: Any, p: Any, each: Each) -> Any:
    """Binomial numbers. What is out of range is taken for the nearest count or probability."""
    return _like(count, each(loops.binomial, loops.one_binomial, count, p, p.dtype.type(1) - p))


def _like(x: Any, found: Any) -> Any:
    return found.astype(x.dtype).reshape(x.shape)
