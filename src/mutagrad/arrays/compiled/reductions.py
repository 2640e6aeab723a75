"""Sums, products and extremes of many elements, by compiled loops: along the memory, or down its columns.

A reduction takes something of each element (itself, its square, ...) and adds, multiplies, or compares that. Sums of
floats are kept in double but for short runs, products of floats in double, and integers in 64 bits. The largest and the
smallest are nan where there is one. Floats of two bytes are read as float32.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from math import prod
from typing import Any

import numpy

from ..sizes import SHARED
from ..threads import get_num_threads
from . import folds
from .compiler import Kernel, choice
from .layout import address
from .moves import SHORT, bits
from .written import LETTERS, Written

WORTH = 1 << 12  # elements from which a kernel is worth its call
PIECE = 1 << 12  # elements of a vector that are reduced as one row
NARROW, WIDE = 16, 512  # columns that are worth going down side by side, and how many at most

STORED = {"f": "float32", "d": "float64", "e": "uint16", "E": "uint16", "l": "int64", "q": "int64", "i": "int32",
          "h": "int16", "b": "int8", "B": "uint8", "?": "boolean"}
READ = {"e": "of_half({})", "E": "of_bfloat16({})", "?": "np.int64({})"}
ADD, MULTIPLY, LARGER, SMALLER = "a + b", "a * b", "max(a, b)", "min(a, b)"
# What is taken of an element v, and what is done with two of these.
REDUCTIONS = {"sum": ("v", ADD), "squares": ("v * v", ADD), "sizes": ("abs(v)", ADD),
              "not nan": ("v if v == v else F(0)", ADD), "product": ("W(v)", MULTIPLY), "nonzero": ("P(v != 0)", ADD),
              "numbers": ("P(v == v)", ADD),
              "largest": ("key(v)", LARGER), "smallest": ("key(v)", SMALLER)}
COUNTS = ("nonzero", "numbers")
FOLLOWED_BY = {ADD: numpy.add, MULTIPLY: numpy.multiply, LARGER: numpy.maximum, SMALLER: numpy.minimum}

_HEAD = """
F, P, W, EMPTY = np.{own}, np.{short}, np.{wide}, {empty}


@njit(error_model='numpy', forceinline=True)
def key(x):
    {key}


@njit(error_model='numpy', fastmath={{'contract'}}, forceinline=True)
def take(x):
    v = {read}
    return {take}


@njit(error_model='numpy', fastmath={{'contract', 'reassoc'}}, forceinline=True)
def join(a, b):
    return {join}


@njit(error_model='numpy', forceinline=True)
def result(x):
    return {result}

"""
# The order of floats is that of their bits as integers, if those below zero are turned round; nan is put at the end.
_KEY = """bits = {of}({x})
    order = {I}(bits ^ ((bits >> {I}({last})) & {I}({ones})))
    return order if x == x else {I}(EMPTY ^ -1)"""
_VALUE = "{to}({I}(x ^ ((x >> {I}({last})) & {I}({ones}))))"


def _head(name: str, char: str, ties: bool) -> tuple[str, str]:
    """What the names in folds.py mean, and the type of results; `ties`: -0.0 is as large as 0.0, not less."""
    take, join = REDUCTIONS[name]
    double, of_floats = char == "d", char in "fdeE"
    own = "float64" if double else "float32" if of_floats else "int64" if char == "?" else STORED[char]
    wide = "float64" if of_floats and name not in COUNTS else "int64"
    short = own if of_floats and name not in ("product", *COUNTS) else wide
    key, result, empty = "return x", "x", "1" if join is MULTIPLY else "0"
    if join in (LARGER, SMALLER):
        short = wide = ("int64" if double else "int32") if of_floats else own
        least, most = int(numpy.iinfo(short).min), int(numpy.iinfo(short).max)
        empty = str(least if join is LARGER else most)
        if of_floats:
            names = {"x": "x + F(0)" if ties else "x", "I": f"np.{short}", "last": 63 if double else 31, "ones": most,
                     "of": "l_of_d" if double else "i_of_f", "to": "d_of_l" if double else "f_of_i"}
            key, result = _KEY.format(**names), _VALUE.format(**names)
    text = _HEAD.format(own=own, short=short, wide=wide, empty=empty, key=key, take=take, join=join, result=result,
                        read=READ.get(char, "{}").format("x"))
    return text, own if join in (LARGER, SMALLER) else wide


@cache
def _kernel(name: str, char: str, loop: Callable[..., Any]) -> tuple[Kernel, Any]:
    """A loop for a reduction of elements of a type; and the type of its results."""
    head, found = _head(name, char, ties=loop is folds.places)
    outs = {folds.rows: (f"{found}[::1]",), folds.far_rows: (*("intp",) * 3, f"{found}[::1]"),
            folds.columns: ("intp", f"{found}[:, ::1]"),
            folds.places: ("intp", "int64[:, ::1]"), folds.spread: ("float64[::1]",) * 3}
    shape = "[:, ::1]" if loop in (folds.rows, folds.spread) else "[:, :, ::1]"
    source = head + import_module("inspect").getsource(loop).replace(f"def {loop.__name__}(", "def kernel(", 1)
    takes = (*(() if loop is folds.far_rows else (f"{STORED[char]}{shape}",)), *outs[loop])
    if loop is folds.far_rows:
        source = f"row_at = row_{LETTERS[STORED[char]]}\n{source}"
    kernel = Kernel(f"{STORED[char] if char not in SHORT else SHORT[char]}: {name} of {loop.__name__}",
                    partial(Written, source, takes))
    return kernel, numpy.dtype(found)


def _usable(array: Any) -> bool:
    return (choice.on and array.size >= WORTH and type(array) is numpy.ndarray and array.dtype.char in STORED
            and array.dtype.isnative)


def reduce(name: str, array: Any, dims: tuple[int, ...], keepdim: bool = False) -> Any:
    """Reduce an array along dimensions; None where NumPy has to.

    Extremes have the type of the elements (of short ones float32), all else has 64 bits.
    """
    if not dims or not _usable(array):
        return None
    shape = array.shape
    if len(dims) == len(shape) and array.flags.c_contiguous:  # most of them, without what follows
        found = whole(name, array)
        return None if found is None else found.reshape((1,) * len(shape) if keepdim else ())
    order = list(range(array.ndim))
    if not array.flags.c_contiguous:
        order.sort(key=lambda d: -abs(array.strides[d]))
        array = array.transpose(order)
        if not array.flags.c_contiguous:
            found = _of_window(name, array, {order.index(d) for d in dims})
            return found.reshape([1 if d in dims else n for d, n in enumerate(shape)]) if (
                keepdim and found is not None) else found
    places = sorted(order.index(d) for d in dims)
    end = places[-1] + 1
    start = next(d for d in range(end - 1, -1, -1) if d == 0 or d - 1 not in places)
    found = _neighbours(name, array, start, end)
    if found is None:
        return None
    if places[0] < start:
        found = FOLLOWED_BY[REDUCTIONS[name][1]].reduce(found, tuple(d for d in places if d < start))
    rest = [d for d in order if d not in dims]
    found = found.transpose([rest.index(d) for d in sorted(rest)])
    return found.reshape([1 if d in dims else n for d, n in enumerate(shape)]) if keepdim else found


def _of_window(name: str, array: Any, dims: set[int]) -> Any:
    """The same of a part of a matrix, each of whose rows lies in one piece."""
    if (array.ndim != 2 or 1 not in dims or array.shape[1] < NARROW or array.strides[1] != array.itemsize
            or array.strides[0] <= 0):
        return None
    kernel, dtype = _kernel(name, array.dtype.char, folds.far_rows)
    if (loop := kernel.get()) is None:
        return None
    n = array.shape[1]
    found = numpy.empty(len(array), dtype)
    loop.share(len(array), array.size, address(array), array.strides[0], n, found)
    return found if len(dims) == 1 else numpy.asarray(FOLLOWED_BY[REDUCTIONS[name][1]].reduce(found))


def whole(name: str, array: Any) -> Any:
    """Reduce all of a contiguous array to one element of a vector; None where NumPy has to."""
    if not _usable(array):
        return None
    char = array.dtype.char
    return _whole(name, char, (bits(array) if char in SHORT else array).reshape(-1))


def _neighbours(name: str, array: Any, start: int, end: int) -> Any:
    """Reduce a contiguous array along the dimensions from `start` to before `end`."""
    shape, char = array.shape, array.dtype.char
    outer, n, inner = prod(shape[:start]), prod(shape[start:end]), prod(shape[end:])
    values = bits(array) if char in SHORT else array
    if inner > 1:
        found = _down(name, char, values.reshape(outer, n, inner))
    elif outer > 1:
        found = _along(name, char, values.reshape(outer, n))
    else:
        found = _whole(name, char, values.reshape(-1))
    return None if found is None else found.reshape(shape[:start] + shape[end:])


def _along(name: str, char: str, rows: Any) -> Any:
    kernel, dtype = _kernel(name, char, folds.rows)
    loop = kernel.get()
    return None if loop is None else _of_rows(loop, dtype, rows)


def _of_rows(loop: Written, dtype: Any, rows: Any) -> Any:
    out = numpy.empty(len(rows), dtype)
    loop.share(len(rows), rows.size, rows, out)
    return out


def _whole(name: str, char: str, vector: Any) -> Any:
    """In pieces that are rows: what is found of these does not depend on the number of threads."""
    kernel, dtype = _kernel(name, char, folds.rows)
    if (loop := kernel.get()) is None:  # asked once: another thread may choose other kernels meanwhile
        return None
    if vector.size < SHARED:
        return _of_rows(loop, dtype, vector.reshape(1, -1))
    head = vector.size // PIECE * PIECE
    found = _of_rows(loop, dtype, vector[:head].reshape(-1, PIECE))
    if head < vector.size:
        found = numpy.concatenate([found, _of_rows(loop, dtype, vector[head:].reshape(1, -1))])
    return FOLLOWED_BY[REDUCTIONS[name][1]].reduce(found, keepdims=True)


def _down(name: str, char: str, cube: Any, loop: Callable[..., Any] = folds.columns) -> Any:
    outer, _, inner = cube.shape
    if inner < NARROW:
        return _down_narrow(name, char, cube) if loop is folds.columns else None
    kernel, dtype = _kernel(name, char, loop)
    if (share := kernel.get()) is None:
        return None
    width = min(max(-(-inner // get_num_threads()), NARROW), WIDE) if outer < get_num_threads() else min(inner, WIDE)
    out = numpy.empty((outer, inner), dtype if loop is folds.columns else numpy.int64)
    units = outer * -(-inner // width)
    share.share(units, cube.size, cube, width, out)
    return out


def _down_narrow(name: str, char: str, cube: Any) -> Any:
    """The same for few columns: some rows are seen as one, and the halves of what is found of these are joined."""
    outer, n, inner = cube.shape
    together = 1
    while inner * together < 2 * NARROW and n % (2 * together) == 0:
        together *= 2
    if inner * together < NARROW or n < 4 * together:
        return None
    width = inner * together
    found = _down(name, char, cube.reshape(outer, n // together, width))
    while found is not None and width > inner:
        width //= 2
        found = FOLLOWED_BY[REDUCTIONS[name][1]](found[:, :width], found[:, width:])
    return found


def place(name: str, array: Any, dim: int) -> Any:
    """Find where along a dimension the largest or smallest is; None where NumPy has to."""
    if not _usable(array):
        return None
    if not array.flags.c_contiguous:
        if array.ndim != 2 or not array.flags.f_contiguous:
            return None
        array, dim = array.T, 1 - dim
    if dim == array.ndim - 1:
        return None
    shape = array.shape
    values = bits(array) if array.dtype.char in SHORT else array
    cube = values.reshape(prod(shape[:dim]), shape[dim], prod(shape[dim + 1:]))
    found = _down(name, array.dtype.char, cube, folds.places)
    return None if found is None else found.reshape(shape[:dim] + shape[dim + 1:])


def spread(rows: Any, middle: Any) -> Any:
    """Sum squares of what the elements of each row lie away from its middle, and how far; None where NumPy has to."""
    if not _usable(rows) or not rows.flags.c_contiguous or (
            loop := _kernel("sum", rows.dtype.char, folds.spread)[0].get()) is None:
        return None
    squares, left = numpy.empty(len(rows)), numpy.empty(len(rows))
    loop.share(len(rows), rows.size, rows, middle, squares, left)
    return squares, left
