"""SciPy, found when first used: special functions and the linear algebra that NumPy lacks."""
from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import MissingExtra
from .host import np


@cache
def scipy(module: str, wanted_by: str) -> Any:
    """`scipy.module`, or an error that says how to get it."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError:
        raise MissingExtra(f"{wanted_by}: needs SciPy, which is not installed", why="NumPy has nothing that computes it",
                           fix="pip install 'mutagrad[scipy]'") from None


@cache
def _find(name: str) -> Any:
    """SciPy's function where it is installed, else the standard library's, element by element."""
    try:
        return getattr(import_module("scipy.special"), name)
    except ImportError:
        return np.frompyfunc(getattr(math, name), 1, 1)


def erf(a: Any) -> Any:
    return np.asarray(_find("erf")(a)).astype(a.dtype, copy=False)
