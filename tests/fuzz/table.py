"""The operations of `samples/` as parts of random programs: which of them, on what values, and what NumPy says.

A program names a sample by its text, as in `call("linalg.solve([6,6], [6])", a, b)`.
"""

from __future__ import annotations

import inspect
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

import mutagrad
from samples import SAMPLES, listed, named

LARGEST_INPUT = 64
SCIPY = find_spec("scipy") is not None
# Results that are their input, or that depend on how it lies in memory.
LEFT_OUT = {"as_strided_copy", "as_strided_scatter", "view_copy", "__getitem__", "__setitem__"}


def usable(sample):
    sizes = [int(np.prod(d.shape)) for d in sample.draws]
    return (sample.grad and not (sample.once or sample.view or sample.name in LEFT_OUT)
            and sizes and min(sizes) > 0 and sum(sizes) <= LARGEST_INPUT and (SCIPY or without_scipy(sample)))


def without_scipy(sample):
    """Whether NumPy alone computes it, there and here."""
    try:
        arrays = sample.arrays()
        return bool(sample.reference(arrays) and sample.call(mutagrad, [mutagrad.tensor(a) for a in arrays]))
    except (pytest.skip.Exception, mutagrad.errors.MissingExtra):
        return False


USABLE = {str(s): s for s in SAMPLES if usable(s)}
NAMES = sorted({s.name for s in USABLE.values()})
COMPLEX = sorted(key for key, s in USABLE.items() if s.complex)


@cache
def of_name(name):
    return [s for s in USABLE.values() if s.name == name]


@cache
def inputs(key):
    """The sample's own values, so far apart and well conditioned as its author made them."""
    return [a.round(4) for a in USABLE[key].arrays()]


@cache
def shapes(key):
    """Of the results that are numbers with a fraction; complex ones as pairs."""
    return [a.shape for a in on_arrays(key, inputs(key))]


def is_elementwise(name):
    """Whether results lie in memory as the operands do."""
    op = getattr(getattr(mutagrad, name, None), "op", None)
    return bool(op and op.promotes)


def pairs(a):
    """A complex array as real ones, its last dimension the parts."""
    return np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a


def on_arrays(key, arrays):
    results = USABLE[key].reference([a.copy() for a in arrays])
    return [np.array(pairs(a), order="C") for a in results if a.dtype.kind in "fc"]


def on_tensors(library, key, tensors, form):
    """As a function, or as a method where `form` says so; in C order, because what `reshape` gives depends on it."""
    sample = USABLE[key]
    arguments, settings = sample.bind(list(tensors), library.tensor)
    results = listed(sample.forms(library)[form](*arguments, **settings))
    numbers = [r.contiguous() for r in results if r.is_floating_point() or r.is_complex()]
    return [library.view_as_real(r) if r.is_complex() else r for r in numbers]


def forms(key):
    return sorted(USABLE[key].forms(mutagrad))


# Writes: the in-place form, and `out=`.

WINDOW_CHANGED = {"squeeze", "unsqueeze", "t", "transpose", "detach"}


@cache
def in_place_name(key):
    """The method or function that writes the result into the sample's first input; None where there is none."""
    sample = USABLE[key]
    if sample.writes:
        return sample.name
    if sample.name in WINDOW_CHANGED or not hasattr(mutagrad.Tensor, sample.name + "_") or sample.arguments[0] is not sample.draws[0]:
        return None
    return sample.name + "_" if shapes(key) == [sample.draws[0].shape] else None


@cache
def takes_out(key):
    function = named(mutagrad, USABLE[key].name)
    results = USABLE[key].reference(inputs(key))
    return function is not None and "out" in inspect.signature(function).parameters and len(results) == 1 and results[0].dtype.kind == "f"


def write_on_tensors(library, key, tensors):
    arguments, settings = USABLE[key].bind(list(tensors), library.tensor)
    name = in_place_name(key)
    (getattr(library.Tensor, name, None) or named(library, name))(*arguments, **settings)


def out_on_tensors(library, key, out, tensors):
    arguments, settings = USABLE[key].bind(list(tensors), library.tensor)
    named(library, USABLE[key].name)(*arguments, **settings, out=out)


# By name alone, for operands of any shape.


@cache
def references(name):
    """The samples' different references for a function."""
    found = {getattr(s.ref, "__code__", s.ref): s.ref for s in SAMPLES if s.name == name}
    return (*found.values(), *([np.linalg.cholesky] if name == "linalg.cholesky" else []))


@cache
def known_below(name):
    """Whether there are functions under this dotted name."""
    return any(s.name.startswith(name + ".") for s in SAMPLES)
