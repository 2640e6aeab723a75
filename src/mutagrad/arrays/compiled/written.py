"""Kernels that are written out, as Python calls them: on this thread, or shared out among several."""
from __future__ import annotations

from struct import Struct
from typing import Any

import numpy

from ..sizes import SHARED
from ..threads import get_num_threads
from .compiler import OPTIONS, compiled
from .layout import address
from .workers import Shared, bounds


def cuts(count: int, size: int) -> Any:
    """Return where parts of range(count), which are `size` elements, begin and end, for kernels that go over parts."""
    return bounds(count, get_num_threads() if size >= SHARED else 1)


class Written:
    """A compiled kernel: `kernel(start, stop, *given)`, or `kernel.share(count, size, *given)` over range(count).

    For several threads there is an entry that is given addresses (workers.py), so what is given is looked at first.
    """

    __slots__ = ("entry", "kernel", "pack", "size", "takes")

    def __init__(self, source: str, takes: tuple[str, ...]) -> None:
        self.kernel = compiled(source, f"void(intp, intp, {', '.join(takes)})", sums=True)
        self.takes = [_array_taken(t) for t in takes]
        self.entry = Shared(_entry(source, self.takes), sums=True)
        words = Struct("".join(t if t.__class__ is str else "q" * (1 + t[1]) for t in self.takes))
        self.pack, self.size = words.pack_into, words.size

    def __call__(self, start: int, stop: int, *given: Any) -> None:
        self.kernel(start, stop, *given)

    def share(self, count: int, size: int, *given: Any) -> None:
        """Go over all of them, which are `size` elements, on several threads if that is worth it."""
        if size < SHARED or count < 2 or (threads := get_num_threads()) < 2:
            self.kernel(0, count, *given)
            return
        words: list[Any] = []
        for value, taken in zip(given, self.takes):
            if taken.__class__ is str:
                words.append(value)
            elif (value.dtype, value.ndim) != taken or not value.flags.c_contiguous:
                raise TypeError(f"a kernel takes {taken}, not {value.dtype}, {value.shape}, {value.strides}")
            else:
                words.append(address(value))
                words += value.shape
        memory = bytearray(self.size)
        self.pack(memory, 0, *words)
        self.entry(count, numpy.frombuffer(memory, numpy.int64), threads)


def _array_taken(text: str) -> Any:
    """Of an array its type and number of dimensions; of a number how it is packed."""
    name, bracket, dims = text.partition("[")
    if not bracket:
        return "d" if name.startswith("float") else "q"
    return numpy.dtype({"boolean": "bool", "intp": "int64"}.get(name, name)), dims.count(",") + 1


# By the type of an array: which function of memory.py gives it.
LETTERS = {"float32": "f", "float64": "d", "int64": "q", "int32": "i", "int16": "h", "int8": "y", "uint8": "b",
            "uint16": "e", "bool": "bool", "boolean": "bool"}


def _entry(source: str, takes: list[Any]) -> str:
    """The same kernel, for who has but an address of words."""
    given: list[str] = []
    word = 0
    for taken in takes:
        if taken.__class__ is str:
            given.append(f"d_of_l(w[{word}])" if taken == "d" else f"w[{word}]")
            word += 1
        else:
            kind, ndim = taken
            sizes = "".join(f"w[{word + 1 + d}], " for d in range(ndim))
            given.append(f"row_{LETTERS[kind.name]}(w[{word}], ({sizes}))")
            word += 1 + ndim
    options = OPTIONS.format(", 'reassoc'")
    body = source.replace("def kernel(", f"@njit({options})\ndef body(", 1)
    return (f"{body}\n\ndef kernel(start, stop, given):\n    w = row_q(given, {word})\n"
            f"    body(start, stop, {', '.join(given)})\n    return 0\n")
