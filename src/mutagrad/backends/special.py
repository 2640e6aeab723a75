"""Special functions that NumPy lacks: SciPy's where it is installed, else the standard library's, element by element."""
from __future__ import annotations

import math
from functools import cache
from typing import Any

from .host import np


@cache
def _find(name: str) -> Any:
    try:
        import scipy.special  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return np.frompyfunc(getattr(math, name), 1, 1)
    return getattr(scipy.special, name)


def erf(a: Any) -> Any:
    return np.asarray(_find("erf")(a)).astype(a.dtype, copy=False)
