"""Kernels that are written out, by name: for float32 and float64, some for int64, compiled when first needed."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy

from . import draws, gates, gemm, images, places, pools, rejection, rows, scans, spectra, steps, systems
from .compiler import OFTEN, USES, Kernel, choice, compiled
from .workers import INTERPRETED
from .written import Written

_INT = numpy.dtype(numpy.int64).char
_NAMES = {"f": "float32", "d": "float64", _INT: "int64"}
_C, _M, _V, _N = "{F}[:, :, ::1]", "{F}[:, ::1]", "{F}[::1]", "intp"
# Of positions, and a truth value.
_PC, _PM, _P, _B = "int64[:, :, ::1]", "int64[:, ::1]", "int64[::1]", "boolean"
_I, _W = "{F}[:, :, :, :, ::1]", "{F}[:, :, :, ::1]"  # images, and the weights of convolutions
_TABLE, _LIST = "intp[:, ::1]", "intp[::1]"
# What each takes besides the rows of a thread: matrices, vectors, and numbers.
SIGNATURES: dict[Callable[..., Any], tuple[str, ...]] = {
    rows.softmax: (_M, _M), rows.softmax_back: (_M, _M, _M),
    rows.softmax_times: (_M, _V, _M), rows.log_sums: (_M, _M),
    rows.log_softmax: (_M, _M), rows.log_softmax_back: (_M, _M, _M),
    rows.shared_losses: (_M, _M, _V), rows.log_sum_exp: (_M, _M), rows.log_sum_exp_back: (_M, _M, _M, _M),
    rows.extremes_back: (_M, _M, _M, _M), rows.centred_times: (_M, _M, _M, _M),
    rows.normalise: (_M, _V, _V, _N, "boolean", "float64", _V, _V, _M),
    rows.normalise_back: (_P, _M, _M, _V, _N, "boolean", _V, _V, "boolean", _M, _M, _M),
    rows.normalise_channels: (_C, _V, _V, "boolean", "float64", _V, _V, _C),
    rows.normalise_channels_back: (_C, _C, _V, "boolean", _V, _V, "boolean", _C, _V, _V),
    rows.normalise_columns: (_M, _N, _V, _V, "boolean", "float64", _V, _V, _M),
    rows.normalise_columns_back: (_M, _M, _N, _V, "boolean", _V, _V, "boolean", _M, _V, _V),
    scans.along: (_M, _M, _B, _B), scans.down: (_C, _C, _B, _B),
    scans.extreme_along: (_M, _M, _PM, _B), scans.extreme_down: (_C, _C, _PC, _B), scans.log_sum_exp: (_M, _M),
    scans.differences: (_M, _M, _N), scans.differences_back: (_M, _M, _N),
    places.checked: (_P, _N, _N, _P, "boolean[::1]"), places.beside: (_PC, _N, _PC, "boolean[::1]"),
    places.beside_rows: (_PM, _N, _PM, "boolean[::1]"), places.bounds: (_P, _N, _P, _PM),
    places.insert: (_M, _M, _B, _PM), places.take_beside: (_M, _PM, _PM, "boolean[::1]", _M),
    places.add_bags: (_M, _P, _P, _M), places.triangle: (_C, _N, _B, _C), places.first_of: (_M, _B, _PM),
    places.count: ("uint8[::1]", _N, _P), places.nonzero: ("uint8[::1]", _N, _P, _P, _N, _N, _P),
    places.take: (_V, _P, _V), places.take_columns: (_M, _P, _M), places.take_slices: (_C, _P, _C),
    places.put: (_P, _V, _P, _V), places.add: (_P, _V, _P, _V), places.add_columns: (_M, _P, _M),
    places.add_slices: (_C, _P, _C), places.multiply: (_P, _V, _P, _V), places.extreme: (_P, _V, _P, _V, _B),
    images.correlate: (_I, _W, _V, _N, _LIST, _TABLE, _TABLE, _TABLE, _I),
    images.correlate_weights: (_I, _I, _N, _LIST, _TABLE, _TABLE, _W),
    images.pick: (_W, _LIST, _LIST, _LIST, _W), images.surround: (_W, _N, _N, _N, "{F}", _W),
    images.sample: (_W, _C, "boolean", _N, "boolean", _C),
    images.sample_back: (_C, _W, _C, "boolean", _N, "boolean", "boolean", _C),
    pools.largest: (_W, _LIST, _W, "uint8[:, :, :, ::1]"), pools.put_back: (_M, "uint8[:, ::1]", _LIST, _LIST, _M),
    pools.largest_alone: (_W, _LIST, _W),
    pools.largest_between: (_W, *[_LIST] * 6, "intp[:, :, :, ::1]"),
    pools.averages: (_W, _LIST, _C, _W), pools.shares: (_W, _LIST, _C, _W),
    images.weigh: (_C, _TABLE, _M, _C), images.weigh_two: (_M, _TABLE, _M, _M),
    steps.lstm: (_TABLE, _N, *[_M] * 8), steps.lstm_back: (_TABLE, _N, *[_M] * 7),
    steps.attend: (_M, _N, _N, "boolean"), steps.attend_back: (_M, _M),
    steps.gru: (_TABLE, _N, _M, _M, _V, *[_M] * 5), steps.gru_back: (_TABLE, _N, *[_M] * 8),
    systems.solve_each: (_C, _C, "float64[::1]"), systems.distances: (_M, _M, "float64", _M),
    systems.cross: (_M, _M, _M), spectra.whole: (_M, _M),
    draws.normals: (_C, "float64", "float64"),
    rejection.gamma: (_P, _V, _V, _V, _V), rejection.poisson: (_P, _V, _V),
    rejection.binomial: (_P, _V, _V, _V, _V), rejection.exchange: ("int32[::1]", _P), rejection.normal_pairs: (_V,),
    gates.gated: (_M, _M), gates.gated_back: (_M, _M, _M),
    gates.ways_here: (_C, _M, _M, "float64", _C), gates.ways_on: (_C, _M, _M, "int64[::1]", "float64", _C),
}
# Those that whole numbers have, too, and those that they alone have.
WHOLE = {scans.along, scans.down, scans.extreme_along, scans.extreme_down, scans.differences, places.add,
         places.add_columns, places.add_slices, places.multiply, places.extreme, places.insert, places.first_of}
SINGLE = {draws.normals}  # for float32 alone
# For float64 alone, and every step is rounded as it stands.
DOUBLE = {rejection.gamma, rejection.poisson, rejection.binomial, rejection.normal_pairs}
POSITIONS = {places.checked, places.beside, places.beside_rows, places.bounds, places.count, places.nonzero,
             rejection.exchange}
WORTH = 1 << 12  # elements from which a kernel is worth its call
FUNCTIONS = "exp log expm1 log1p tanh sqrt erf larger smaller logaddexp"


def find(function: Callable[..., Any], dtype: Any) -> Any:
    """Return a kernel for arrays of this type; None while there is none."""
    return _kernel(function, dtype.char).get() if choice.on and dtype.char in types(function) else None


def find_for(function: Callable[..., Any], array: Any) -> Any:
    """Return a kernel that is worth it for an array of any size; for small ones it is compiled if it is used often."""
    if not choice.on or array.dtype.char not in types(function):
        return None
    return _kernel(function, array.dtype.char).get(USES if array.size >= WORTH else OFTEN)


def rows_of(array: Any, function: Callable[..., Any]) -> Any:
    """Return a kernel for the rows of a matrix, if it is one that is worth it; None otherwise."""
    plain = type(array) is numpy.ndarray and array.ndim == 2 and array.size and array.flags.c_contiguous
    return find_for(function, array) if plain else None


@cache
def types(function: Callable[..., Any]) -> str:
    """Return for which types there are kernels, each as NumPy's letter."""
    if function in SINGLE or function in DOUBLE:
        return "f" if function in SINGLE else "d"
    return _INT if function in POSITIONS else "fd" + _INT if function in WHOLE else "fd"


@cache
def _kernel(function: Callable[..., Any], char: str) -> Kernel:
    name, bits = _NAMES[char], numpy.dtype(char).itemsize * 8
    wide = "int64" if char == _INT else "float64"
    alike = "".join(f"{one} = {one}_{bits}\n" for one in FUNCTIONS.split())
    more = ""
    if function.__module__ in (images.__name__, steps.__name__):
        more = ("from mutagrad.arrays.compiled.tiles import *\n"
                f"find_corners, times = find_corners_{bits}, times_{bits}\n")
    if function.__module__ == rows.__name__:
        more = f"TOGETHER = {rows.TOGETHER}\n"
    if function in DOUBLE:
        more = rejection.source()
    source = (f"import math\n{more}F, W = np.{name}, np.{wide}\n{alike}"
              f"largest, total_of = largest_{bits}, total_{bits}\n\n\n"
              + import_module("inspect").getsource(function).replace(f"def {function.__name__}(", "def kernel(", 1))
    takes = tuple([taken.format(F=name) for taken in SIGNATURES[function]])
    make: Callable[[], Any] = partial(Written, source, takes)
    if function in DOUBLE:
        make = partial(compiled, source, f"void(intp, intp, {', '.join(takes)})", exact=True)
    return Kernel(f"{name}: {function.__name__}", make)


def warm_up() -> list[Kernel]:
    """Compile all that is written out, now; what is compiled already is loaded."""
    found = [_kernel(function, char) for function in SIGNATURES for char in types(function)]
    found += [] if INTERPRETED else map(gemm.kernel_of, "fd")
    for kernel in found:
        kernel.compile()
    return found
