"""Copies of arrays that lie in memory in any two orders, and are of any two types, by a compiled loop.

Dimensions that lie in both arrays as if they were one are counted as one. The innermost of the target is gone along
element by element, another one row by row, and the others are found by division. Where neighbours of the target are far
apart in the source and the other way round, as in a transposed matrix, tiles are copied: each line of the cache is then
read once and written once, and rows a power of two apart do not drive each other out.
"""
from __future__ import annotations

from functools import lru_cache, partial
from struct import Struct
from typing import Any, NamedTuple

import numpy

from ...base.operands import Array
from ..sizes import SHARED
from ..threads import get_num_threads
from .compiler import Kernel, choice
from .layout import address
from .workers import Shared

TILE = 16
NARROW = 16  # elements of a row below which another dimension is gone along, if it has more
LINE = 64  # bytes: and if its elements are no further apart, as each would bring a line of the cache of its own
FEW = 16  # rows that are not shared out evenly: their elements are instead
SHORT = {"e": "half", "E": "bfloat16"}  # floats of two bytes
# By NumPy's letter: how memory.py calls such elements, and what they are to Numba. Complex numbers are only copied.
_ELEMENTS = {"?": ("b", "bool"), "b": ("y", "int8"), "B": ("b", "uint8"), "h": ("h", "int16"), "i": ("i", "int32"),
             numpy.dtype(numpy.int64).char: ("q", "int64"), "f": ("f", "float32"), "d": ("d", "float64"),
             **{char: (char, name) for char, name in SHORT.items()}, "F": ("q", "complex64")}


class _Plan(NamedTuple):
    kernel: Kernel
    number: int  # of rows, of tiles, or of the elements of few rows
    words: tuple[int, ...]  # what the kernel is given besides the addresses
    shift: tuple[int, int]  # bytes from the first elements of target and source to where it begins


def bits(array: Any) -> Any:
    """A short array as integers, over the same memory."""
    return array.view(numpy.uint16)


def move(target: Array, source: Array) -> bool:
    """Do `target[...] = source`; False, with nothing done, while there is no loop for it. They share no memory."""
    if not choice.on or target.shape != source.shape and source.ndim:
        return False
    strides = source.strides if source.ndim else (0,) * target.ndim
    plan = _plan(target.shape, target.strides, strides, target.dtype, source.dtype)
    shared: Any = None if plan is None else plan.kernel.get()
    if shared is None:
        return False
    _, count, words, shift = plan  # type: ignore[misc]
    memory = bytearray(8 * (len(words) + 2))
    Struct(f"{len(words) + 2}q").pack_into(memory, 0, address(target) + shift[0], address(source) + shift[1], *words)
    shared(count, numpy.frombuffer(memory, numpy.int64), get_num_threads() if target.size >= SHARED else 1)
    return True


@lru_cache(4096)
def _plan(shape: tuple[int, ...], to: tuple[int, ...], source: tuple[int, ...], kind: Any, given: Any) -> _Plan | None:
    if 0 in shape or converting(given, kind) is None or any(t % kind.itemsize for t in to) or any(
            t % given.itemsize for t in source):
        return None
    axes = _merged(shape, to, source)
    shift = [0, 0]
    for k, (n, out, at) in enumerate(axes):  # both from the other end, where only the source's steps are backwards
        if at < 0 and (out != kind.itemsize or out < 0):
            axes[k] = n, -out, -at
            shift[0] += (n - 1) * out
            shift[1] += (n - 1) * at
    inner = axes.pop(0)
    middle = next((a for a in axes if a[2] == given.itemsize), None)
    turned = (middle is not None and inner[1] == kind.itemsize and abs(inner[2]) > given.itemsize
              and min(inner[0], middle[0]) >= TILE)
    if not turned:
        middle = axes[0] if axes else (1, 0, 0)
        if inner[0] < NARROW and middle[0] > inner[0] and max(abs(middle[1]), abs(middle[2])) <= LINE:
            axes[0], inner, middle = inner, middle, inner
    if axes:
        axes.remove(middle)  # type: ignore[arg-type]
    size = 1
    for n, *_ in axes:
        size *= n
    cut = -(-middle[0] // TILE) if turned else middle[0]  # type: ignore[index]
    by_rows = turned or size * cut >= FEW
    steps = () if turned else (_step(inner[1], kind), _step(inner[2], given))
    words = (by_rows, size * cut, cut, *inner, *middle, len(axes), *[v for a in axes for v in a])  # type: ignore[misc]
    kernel = _kernel(kind.char, given.char, *steps)
    return _Plan(kernel, size * cut if by_rows else inner[0], words, (shift[0], shift[1]))


def _merged(shape: tuple[int, ...], to: tuple[int, ...], source: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Sizes and strides of the dimensions that are left, the target's innermost first."""
    axes: list[tuple[int, int, int]] = []
    for n, out, at in sorted(zip(shape, to, source), key=lambda axis: abs(axis[1])):
        if axes and n > 1 and (out, at) == (axes[-1][0] * axes[-1][1], axes[-1][0] * axes[-1][2]):
            axes[-1] = n * axes[-1][0], *axes[-1][1:]
        elif n > 1:
            axes.append((n, out, at))
    return axes or [(1, 0, 0)]


def _step(stride: int, kind: Any) -> str:
    """How far apart elements of a row are, if that is part of the loop: LLVM makes vectors of these."""
    steps = stride // kind.itemsize
    return str(steps) if steps in (-1, 0, 1, 2) else "any"


def converting(given: Any, kind: Any) -> str | None:
    """How an element of one type is made out of another; None where it is not known, or not the same everywhere."""
    (_, x), (_, y) = _ELEMENTS.get(given.char, ("", "")), _ELEMENTS.get(kind.char, ("", ""))
    if not x or not y or x == y:
        return "{}" if x and x == y else None
    if {x, y} & {*SHORT.values()}:
        return f"of_{x}({{}})" if y == "float32" else f"to_{y}({{}})" if x == "float32" else None
    if "complex64" in (x, y) or given.kind == "f" and kind.kind != "f" and y != "bool":  # a float may be out of range
        return None
    number = "({} != 0)" if "bool" in (x, y) else "{}"
    return number if y == "bool" else f"np.{y}{number if x == 'bool' else '({})'}"


@lru_cache(None)
def _kernel(kind: str, given: str, *steps: str) -> Kernel:
    """One that goes along rows with these steps; without any, along tiles."""
    (y, _), (x, _) = _ELEMENTS[kind], _ELEMENTS[given]
    value = converting(_dtype(given), _dtype(kind))
    assert value is not None
    lines = _rows(x, y, value, *steps) if steps else _tiles(x, y, value)
    source = "\n".join([
        "def kernel(start, stop, words):",
        "    given = row_q(words, 12)",
        "    to, at, by_rows, number, cut, n = given[0], given[1], given[2], given[3], given[4], given[5]",
        "    to_step, step, m, to_row, row, dims = given[6], given[7], given[8], given[9], given[10], given[11]",
        "    axes = row_q(words + 96, 3 * dims)",
        "    first, last, low, high = (start, stop, 0, n) if by_rows else (0, number, start, stop)",
        *([] if steps else [f"    tile = np.empty(({TILE}, {TILE}), np.{_MEMORY[x]})"]),
        "    r = first",
        "    while r < last:",
        "        i = r // cut",
        "        k = r - i * cut",
        "        end = min(cut, k + last - r)",
        "        out, x = to, at",
        "        for d in range(dims):",
        "            rest = i // axes[3 * d]",
        "            place = i - rest * axes[3 * d]",
        "            i = rest",
        "            out += place * axes[3 * d + 1]",
        "            x += place * axes[3 * d + 2]",
        "        r += end - k",
        *(f"        {line}" for line in lines),
        "    return np.int64(0)", ""])
    return Kernel(f"{given} to {kind}, {', '.join(steps) or 'turned'}", partial(Shared, source))


_MEMORY = {"b": "uint8", "y": "int8", "h": "int16", "i": "int32", "q": "int64", "f": "float32", "d": "float64",
           "e": "uint16", "E": "uint16"}


def _dtype(char: str) -> Any:
    return numpy.dtype(char) if char != "E" else numpy.dtype("bfloat16")


def _rows(x: str, y: str, value: str, to_step: str, step: str) -> list[str]:
    def element(name: str, kind: str, step: str, stride: str) -> tuple[str, str]:
        """How a row is found, and an element of it; from its lowest address, as there are no indices below 0."""
        item = numpy.dtype(_MEMORY[kind]).itemsize
        if step == "0":
            return f"{name} = row_{kind}({name}_at, 1)", f"{name}[0]"
        if step in ("1", "2"):
            return (f"{name} = row_{kind}({name}_at + low * {stride}, (high - low - 1) * {step} + 1)",
                    f"{name}[j * {step}]" if step == "2" else f"{name}[j]")
        if step == "-1":
            return (f"{name} = row_{kind}({name}_at + (high - 1) * {stride}, high - low)",
                    f"{name}[np.uint64(high - low - 1 - j)]")
        return (f"{name} = row_{kind}({name}_at + (low if {stride} > 0 else high - 1) * {stride}, "
                f"(high - low - 1) * abs({stride}) // {item} + 1)",
                f"{name}[np.uint64((j if {stride} > 0 else high - low - 1 - j) * (abs({stride}) // {item}))]")

    out_row, out_element = element("o", y, to_step, "to_step")
    x_row, x_element = element("v", x, step, "step")
    return ["for k in range(k, end):", "    o_at = out + k * to_row", "    v_at = x + k * row", f"    {out_row}",
            f"    {x_row}", "    for j in range(high - low):", f"        {out_element} = {value.format(x_element)}"]


def _tiles(x: str, y: str, value: str) -> list[str]:
    """Rows of the source into a tile, which is then written column by column."""
    return [
        "for k in range(k, end):",
        f"    begin = k * {TILE}",
        f"    width = min({TILE}, m - begin)",
        f"    for first_j in range(0, n, {TILE}):",
        f"        height = min({TILE}, n - first_j)",
        "        for j in range(height):",
        f"            v = row_{x}(x + begin * row + (first_j + j) * step, width)",
        f"            if width == {TILE}:",
        f"                for c in range({TILE}):",
        "                    tile[j, c] = v[c]",
        "            else:",
        "                for c in range(width):",
        "                    tile[j, c] = v[c]",
        "        for c in range(width):",
        f"            o = row_{y}(out + (begin + c) * to_row + first_j * to_step, height)",
        f"            if height == {TILE}:",
        f"                for j in range({TILE}):",
        f"                    o[j] = {value.format('tile[j, c]')}",
        "            else:",
        "                for j in range(height):",
        f"                    o[j] = {value.format('tile[j, c]')}"]
