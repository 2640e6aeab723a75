"""Kernels that are written out, by name: for float32 and float64, compiled when they are first needed."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy

from . import gates, rows, spectra, systems
from .compiler import Kernel, choice, compiled

_NAMES = {"f": "float32", "d": "float64"}
_C, _M, _V, _N = "{F}[:, :, ::1]", "{F}[:, ::1]", "{F}[::1]", "intp"
# What each takes besides the rows of a thread: matrices, vectors, and numbers.
SIGNATURES: dict[Callable[..., Any], tuple[str, ...]] = {
    rows.softmax: (_M, _M), rows.softmax_back: (_M, _M, _M),
    rows.softmax_times: (_M, _V, _M), rows.log_sums: (_M, _M),
    rows.log_softmax: (_M, _M), rows.log_softmax_back: (_M, _M, _M),
    rows.log_sum_exp: (_M, _M), rows.log_sum_exp_back: (_M, _M, _M, _M),
    rows.normalise: (_M, _V, _V, _N, "boolean", "float64", _V, _V, _M),
    rows.normalise_back: (_M, _M, _V, _N, "boolean", _V, _V, "boolean", _M, _V, _V),
    rows.normalise_channels: (_C, _V, _V, "boolean", "float64", _V, _V, _C),
    rows.normalise_channels_back: (_C, _C, _V, "boolean", _V, _V, "boolean", _C, _V, _V),
    systems.solve_each: (_C, _C, "float64[::1]"), systems.distances: (_M, _M, "float64", _M),
    systems.cross: (_M, _M, _M), spectra.whole: (_M, _M),
    gates.gated: (_M, _M), gates.gated_back: (_M, _M, _M),
    gates.ways_here: (_C, _M, _M, "float64", _C), gates.ways_on: (_C, _M, _M, "int64[::1]", "float64", _C),
}
WORTH = 1 << 12  # elements from which a kernel is worth its call
FUNCTIONS = "exp log expm1 log1p tanh sqrt erf larger smaller logaddexp"


def find(function: Callable[..., Any], dtype: Any) -> Callable[..., Any] | None:
    """Return a kernel for arrays of this type; None while there is none."""
    return _kernel(function, dtype.char).get() if choice.on and dtype.char in _NAMES else None


def rows_of(array: Any, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a kernel for the rows of a matrix, if it is one that is worth it; None otherwise."""
    plain = type(array) is numpy.ndarray and array.ndim == 2 and array.size >= WORTH and array.flags.c_contiguous
    return find(function, array.dtype) if plain else None


@cache
def _kernel(function: Callable[..., Any], char: str) -> Kernel:
    name, bits = _NAMES[char], numpy.dtype(char).itemsize * 8
    alike = "".join(f"{one} = {one}_{bits}\n" for one in FUNCTIONS.split())
    source = (f"import math\nF = np.{name}\n{alike}largest, total_of = largest_{bits}, total_{bits}\n\n\n"
              + import_module("inspect").getsource(function).replace(f"def {function.__name__}(", "def kernel(", 1))
    types = ", ".join(SIGNATURES[function]).format(F=name)
    return Kernel(f"{name}: {function.__name__}", partial(compiled, source, f"void(intp, intp, {types})", sums=True))


def warm_up() -> list[Kernel]:
    """Compile all that is written out, now; what is compiled already is loaded."""
    found = [_kernel(function, char) for function in SIGNATURES for char in _NAMES]
    for kernel in found:
        kernel.compile()
    return found
