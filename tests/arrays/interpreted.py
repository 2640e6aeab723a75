"""All operations, and random programs, on compiled kernels that Python runs instead of compiling them: slow, and at once.

    NUMBA_DISABLE_JIT=1 MUTAGRAD_KERNELS=numba python -m arrays.interpreted

Prints what differs from NumPy's kernels, and last how many kernels were used.
"""
from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np

import mutagrad as mg
from fuzz import table
from fuzz.generator import generate
from fuzz.judge import Discarded, OnArrays, first_order
from fuzz.settings import in_pieces
from mutagrad.arrays.compiled import library
from mutagrad.arrays.compiled.compiler import ALL
from mutagrad.base.errors import MissingExtra
from mutagrad.ops.nn import correlate

TOLERANCE = {"float32": 3e-4, "float64": 1e-10}


def values_and_gradients(key, dtype):
    sample = table.USABLE[key]
    xs = [mg.tensor(a.astype(dtype), requires_grad=True) for a in table.inputs(key)]
    results = [r for r in sample.call(mg, xs) if isinstance(r, mg.Tensor) and r.requires_grad]
    total = sum((r * mg.tensor(np.cos(np.arange(r.numel())).reshape(r.shape).astype(dtype))).sum() for r in results)
    grads = mg.autograd.grad(total, xs, materialize_grads=True)
    return [t.detach().numpy() for t in (*results, *grads)]


def with_kernels(name, function, *arguments):
    mg.set_kernels(name)
    with in_pieces(0), patch.object(library, "WORTH", 1), patch.object(correlate, "_WORTH", 1):
        return function(*arguments)


def operations():
    for key, sample in table.USABLE.items():
        if sample.complex:
            continue
        for dtype, tolerance in TOLERANCE.items():
            try:
                expected = with_kernels("numpy", values_and_gradients, key, dtype)
            except (MissingExtra, mg.MutagradError):
                continue
            found = with_kernels("numba", values_and_gradients, key, dtype)
            for a, b in zip(expected, found, strict=True):
                if not np.allclose(b, a, tolerance, tolerance, equal_nan=True):
                    print("DIFFERS", key, dtype, a.ravel()[:4], b.ravel()[:4])


def programs(seeds):
    for seed in seeds:
        program = generate(seed)
        try:
            places = OnArrays(program).places
            expected = with_kernels("numpy", first_order, program, mg, program.point, places)[1]
        except Exception as error:
            assert isinstance(error, (Discarded, MissingExtra)) or program.may_be_refused(error), error
            continue
        found = with_kernels("numba", first_order, program, mg, program.point, places)[1]
        if not np.allclose(found, expected, 1e-8, 1e-9, equal_nan=True):
            print("DIFFERS", seed)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        operations()
        programs(range(5000, 5080))
    for kernel in ALL:
        if kernel.error is not None:
            print("FAILED", kernel.name, kernel.error)
    print(sum(kernel.is_made() for kernel in ALL))
