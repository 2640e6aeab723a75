"""Large arrays: elementwise work, copies and sums that are cut into spans for several threads.

A function of several steps goes over its span in pieces, so that what lies between two steps needs little memory.
Whoever cuts has to ask what NumPy asks for one call: whether writing one part changes what another has yet to read
(`read_first`).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, prod
from operator import is_not
from time import perf_counter
from typing import Any

from ..base.operands import Array
from . import pieces
from .allocator import keep_memory
from .blas import times_vector
from .compiled import loops, reductions
from .compiled.compiler import choice
from .compiled.layout import rows_of
from .compiled.moves import SHORT, move
from .copies import copy_in_order, put_runs, put_turned
from .kinds import anywhere, is_plain, raw
from .numpy import clip, np, silently
from .pieces import flat
from .recorded import SLOW as IN_STEPS
from .sizes import BLOCK, LARGE, MANY, MIDDLE, PLENTY, SHARED
from .threads import get_num_threads, in_spans, in_steps, in_turn, set_num_threads

__all__ = ["AS_UFUNC", "BLOCK", "LARGE", "MIDDLE", "PLENTY", "SHARED", "again", "apply", "assign", "compute",
           "evaluate", "every", "flat", "get_num_threads", "in_blocks", "in_shares", "in_spans", "in_steps", "in_turn",
           "is_finite", "is_much", "is_worth", "look_up", "plan_of", "reverse", "set_num_threads", "total"]

# Those that NumPy computes by wider vectors than a compiled loop.
VECTORS = {np.exp, np.log, np.tanh}
# Those that do with real and imaginary parts the same.
PAIRWISE = {np.add, np.subtract, np.negative, np.positive}
# The ufunc that is all a forward computes of floats, and what it is given; None where it is more.
AS_UFUNC: dict[Any, Callable[..., tuple[Any, Sequence[Any]] | None]] = {}
FEW_PARTS, SHORT_PART = 64, 16  # arrays that are joined one by one, of pieces that are at least so many elements
# NumPy's own that call the C library, or branch, for each element.
SLOW = {np.logaddexp, np.log1p, np.sign, np.deg2rad, np.rad2deg}


def in_shares(count: int, size: int, loop: Callable[[slice], Any]) -> list[Any]:
    """Return what a compiled loop gives for slices that cover range(count), which have `size` elements together."""
    return in_spans(count, loop) if size >= SHARED and count > 1 else [loop(slice(0, count))]


def is_worth(size: int) -> bool:
    """Whether an array of many elements is worth a compiled loop, or threads."""
    return size >= LARGE or choice.on


def is_much(size: int, *arrays: Array) -> bool:
    """The same for a function that is one of NumPy's: then more of them, unless they lie in different orders."""
    return choice.on or size >= MANY or size >= LARGE and not all(a.flags.c_contiguous for a in arrays)


def in_blocks(count: int, size: int, work: Callable[[slice], Any], threads: bool = True, parts: int = 1) -> list[Any]:
    """Return what `work` gives for slices of about BLOCK elements that cover range(count) items of `size`, in order.

    For work that goes over the same items several times: what one step leaves in the cache, the next finds there. (If
    it goes over an item in `parts`, blocks are that much larger.) Its many steps make the threads wait for each other,
    so there has to be more of it than of a single step.
    """
    return in_steps(count, max(BLOCK * parts // max(size, 1), 1), work, threads and count * size >= 2 * LARGE)


def part_of(value: Any, part: slice) -> Any:
    return value[part] if isinstance(value, np.ndarray) and value.ndim else value


def read_first(array: Any, target: Array) -> Any:
    """Return an operand that can be read after parts of `target` were written: a copy, where it shares other parts."""
    if not isinstance(array, np.ndarray) or not np.may_share_memory(array, target):
        return array
    same = (array.shape == target.shape and array.strides == target.strides
            and array.__array_interface__["data"] == target.__array_interface__["data"])
    return array if same else array.copy()


def apply(function: Callable[..., Any], arrays: tuple[Array, ...], settings: tuple[Any, ...], out: Array,
          fresh: bool = False) -> bool:
    """Do `out[...] = function(*arrays, *settings)` on several threads; False, with nothing done, where that cannot be.

    Operands may share memory with `out` in any way, unless it is `fresh`: all is as if they were read before anything
    is written.
    """
    if not is_plain(out, *arrays):
        return False
    if (check := getattr(function, "check", None)) is not None:
        check(*arrays)
    keep_memory()
    if not fresh:
        arrays = tuple([a if a is out else read_first(a, out) for a in arrays])
    if function in VECTORS and out.size >= 2 * LARGE and out.dtype.char in "fd" and out.flags.c_contiguous and all(
            flat(a, out.shape) is not None for a in arrays):
        return _apply_by_numpy(function, arrays, settings, out)
    loop = loops.forward(function, arrays, settings, out, fresh)
    if loop is None and choice.on:
        near = [_near(a, out) for a in arrays]
        loop = loops.forward(function, near, settings, out, fresh) if any(map(is_not, near, arrays)) else None
    if loop is not None and loop.run(get_num_threads() if out.size >= SHARED else 1):
        return True
    return out.size >= LARGE and _apply_by_numpy(function, arrays, settings, out)


def assign(target: Array, value: Array) -> None:
    """Do `target[...] = value`, on several threads if that is large; the value shares no memory with it."""
    if target.size < MIDDLE or not is_plain(target, value):
        target[...] = value
        return
    if value.ndim and value.shape != target.shape:
        value = np.broadcast_to(value, target.shape)
    if move(target, value) or put_runs(target, value) or put_turned(target, value):
        return
    if target.size < LARGE:
        target[...] = value
        return
    plain = value.dtype is target.dtype and target.dtype.kind in "fciu"
    if not plain or not choice.on or not apply(np.positive, (value,), (), target, True):
        _in_rows(lambda v, out: out.__setitem__(..., v), (value,), target)


def join(arrays: Sequence[Array], dim: int) -> Any:
    """Do as np.concatenate; large ones part by part, on several threads."""
    first = arrays[0]
    if first.size * len(arrays) < PLENTY:
        return np.concatenate(arrays, dim)
    shape = list(first.shape)
    shape[dim] = sum(a.shape[dim] for a in arrays if a.ndim == first.ndim)
    alike = all(a.ndim == first.ndim and a.dtype is first.dtype and a.shape[:dim] == first.shape[:dim]
                and a.shape[dim + 1:] == first.shape[dim + 1:] for a in arrays)
    if (len(arrays) > FEW_PARTS or not alike or not is_plain(*arrays)
            or min(prod(a.shape[dim:]) for a in arrays) < SHORT_PART):
        return np.concatenate(arrays, dim)
    keep_memory()
    out = raw.empty(shape, first.dtype)
    start = 0
    for a in arrays:
        end = start + a.shape[dim]
        assign(out[(slice(None),) * dim + (slice(start, end),)], a)
        start = end
    return out


def _apply_by_numpy(function: Callable[..., Any], arrays: Sequence[Any], settings: tuple[Any, ...],
                    out: Array) -> bool:
    if function in AS_UFUNC and out.dtype.char in "fd" and (found := AS_UFUNC[function](*arrays, *settings)):
        (function, arrays), settings = found, ()
    direct = isinstance(function, np.ufunc)
    if out.dtype.char in SHORT and (
            _by_bits(function, arrays, settings, out) or _by_table(function, arrays, settings, out)):
        return True
    computed = getattr(function, "of", function)  # of short floats, which are computed in float32 here, too
    vectors = [flat(a, out.shape) for a in arrays] if out.flags.c_contiguous else [None]
    are_flat = all(v is not None for v in vectors)
    as_they_are = out.dtype.char in SHORT and computed is function or direct and function not in IN_STEPS and (
        are_flat or out.shape[-1] > pieces.SHORT_ROW or not _has_rows(arrays, out))
    if not as_they_are and pieces.run(
            computed, lambda given: [computed(*given)], (*arrays, *settings), None, [out]):
        return True
    if not are_flat:
        if direct:
            _in_rows(function, arrays, out)
        return direct
    return _in_pieces(function, vectors, settings, out.reshape(-1))


def _has_rows(arrays: Sequence[Any], out: Array) -> bool:
    """Whether an operand is the same for all of the first dimension."""
    return any(isinstance(a, np.ndarray) and a.size > 1 and (a.ndim < out.ndim or len(a) != len(out)) for a in arrays)


def _by_bits(function: Callable[..., Any], arrays: Sequence[Any], settings: tuple[Any, ...], out: Array) -> bool:
    """Bounds of short floats that are not negative: bits are in the order of numbers, and negative below zero."""
    known = AS_UFUNC.get(getattr(function, "of", function))
    found = None if known is None else known(*arrays, *settings)
    if found is None or found[0] is not clip:
        return False
    a, least, most = found[1]
    if not 0 <= least <= most or a.shape != out.shape or not (a.flags.c_contiguous and out.flags.c_contiguous):
        return False
    bits, target = a.view(np.int16).reshape(-1), out.view(np.int16).reshape(-1)
    low, high = np.array([abs(least), most], out.dtype).view(np.int16)
    if bits.max() > INF[out.dtype.char] or bits.view(np.uint16).max() > INF[out.dtype.char] + (1 << 15):  # nan
        return False
    in_turn(out.size, 1, lambda part: clip(bits[part], low, high, out=target[part]), True)
    return True


INF = {"e": 0x7C00, "E": 0x7F80}  # the bits of it; those of minus infinity have one more
_tables: dict[Any, Array | None] = {}
TABLES = 16  # that are kept
QUICK = 4e-5  # seconds for so many elements in which they are looked up


def _by_table(function: Callable[..., Any], arrays: Sequence[Any], settings: tuple[Any, ...], out: Array) -> bool:
    """A function of one array of two-byte floats, by what it is for each of them: there are only 65,536."""
    of = [a for a in arrays if a.ndim]
    if len(of) != 1 or of[0].dtype is not out.dtype or of[0].shape != out.shape or not out.flags.c_contiguous:
        return False
    about = (getattr(function, "of", function), out.dtype, repr(settings),
             *[None if a.ndim else (a.dtype, a.tobytes()) for a in arrays])
    table: Any = _tables.get(about, _tables)
    if table is _tables:
        table = _table(function, [every(out.dtype) if a.ndim else a for a in arrays], settings)
        if len(_tables) >= TABLES:
            _tables.clear()
        _tables[about] = table
    if table is None:
        return False
    look_up(table, of[0], out)
    return True


def _table(function: Callable[..., Any], arrays: Sequence[Any], settings: tuple[Any, ...]) -> Array | None:
    """What a function gives for all floats of a type; None where NumPy has vectors of it, which are quicker."""
    if isinstance(function, np.ufunc):
        given, seconds = [_usual(a.dtype) if a.ndim else a for a in arrays], []
        out = function(*given)
        for _ in range(3):
            begin = perf_counter()
            function(*given, out=out)
            seconds.append(perf_counter() - begin)
        if min(seconds) < QUICK:
            return None
    return function(*arrays, *settings).view(np.uint16)  # type: ignore[no-any-return]


def _usual(dtype: Any) -> Array:
    """As many numbers as there are, from 1/64 to 8 and below zero, in no order: where a function branches, it shows."""
    mixed = every(np.uint16) * np.uint16(40503)
    least, count = {"e": (0x2400, 0x2400), "E": (0x3C80, 0x480)}[dtype.char]
    return ((mixed & 0x7FFF) % count + least | mixed & 0x8000).astype(np.uint16).view(dtype)  # type: ignore[no-any-return]


def every(dtype: Any) -> Array:
    """Return all floats of a type of two bytes, by their bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def look_up(table: Array, array: Array, out: Array) -> None:
    """Write for each float of two bytes what a table has in the place of its bits, as two bytes."""
    given = array if array.flags.c_contiguous else copy_in_order(array)
    places, target = given.view(np.uint16).reshape(-1), out.view(np.uint16).reshape(-1)
    in_turn(out.size, 1, lambda part: table.take(places[part], mode="wrap", out=target[part]), True)


def _near(array: Any, out: Array) -> Any:
    """An operand for a loop: copied, if its rows lie across those of the result."""
    rows = rows_of(out.shape, (array, out)) if isinstance(array, np.ndarray) and array.ndim > 1 else None
    return array if rows is None or rows.kinds[0] != "far" else copy_in_order(array)


def _in_pieces(function: Callable[..., Any], vectors: Sequence[Any], settings: tuple[Any, ...], target: Array) -> bool:
    direct = isinstance(function, np.ufunc)

    def work(part: slice) -> None:
        given = [part_of(v, part) for v in vectors]
        if direct:
            function(*given, out=target[part])
        else:
            target[part] = function(*given, *settings)

    in_turn(target.size, 1, work, direct)
    return True


def _in_rows(function: Callable[..., Any], arrays: Sequence[Any], out: Array) -> None:
    """Call `function(*arrays, out=out)` for parts of the first dimension, if there are enough of them."""
    n = out.shape[0]
    if n < loops.FEW:
        function(*arrays, out=out)
        return
    cut = [isinstance(a, np.ndarray) and a.ndim == out.ndim and a.shape[0] == n for a in arrays]

    def work(part: slice) -> None:
        function(*[a[part] if c else a for a, c in zip(arrays, cut)], out=out[part])

    in_turn(n, out.size // n, work, True)


def evaluate(function: Callable[..., Any], arrays: tuple[Array, ...], settings: tuple[Any, ...],
             shape: tuple[int, ...], kind: Any) -> Any:
    """Return `function(*arrays, *settings)`, which has this shape and type, on several threads where that can be."""
    out = raw.empty(shape, kind)
    if out.dtype.kind != "c":
        done = apply(function, arrays, settings, out, True)
    else:
        done = function in PAIRWISE and all(type(a) is np.ndarray and a.dtype is kind and a.shape == shape
                                            and a.flags.c_contiguous for a in arrays)
        parts = out.real.dtype
        done = done and apply(function, tuple([a.view(parts) for a in arrays]), (), out.view(parts), True)
    return out if done else function(*arrays, *settings)


def plan_of(function: Callable[..., Any], arrays: tuple[Array, ...], out: Array) -> loops.Plan | None:
    """Return how `evaluate` has computed a result, for the next arrays of the same types and layouts."""
    if function in VECTORS or not choice.on or hasattr(function, "check"):  # which asks for values
        return None
    return loops.plan_of(function, arrays, out)


def again(plan: loops.Plan, arrays: tuple[Array, ...], shape: tuple[int, ...], kind: Any) -> Array | None:
    """Return the same for other arrays; None where it has to be evaluated anew."""
    if not choice.on:
        return None
    out: Array = raw.empty(shape, kind)
    loop = loops.by_plan(plan, (*arrays, out))
    return out if loop is not None and loop.run(get_num_threads() if out.size >= SHARED else 1) else None


def compute(function: Callable[..., Any], arrays: tuple[Array, ...]) -> Array | None:
    """Return `function(*arrays)`, computed on several threads, as a fresh array; None where they cannot be cut."""
    out: Array = raw.empty(arrays[0].shape, arrays[0].dtype)
    return out if apply(function, arrays, (), out, True) else None


def reverse(rules: Callable[..., Sequence[Array | None]], xp: Any, g: Array, saved: Sequence[Any],
            inputs: Sequence[Any]) -> list[Array | None] | None:
    """Return the adjoints that an operation's rules give, on several threads; None where they cannot be cut."""
    if not is_plain(g, *saved):
        return None
    shape = g.shape
    outs = [None if k is None else raw.empty(shape, g.dtype) for k in inputs]
    loop = loops.backward(rules, xp, g, saved, inputs, outs)
    if loop is None and choice.on:
        first = next(o for o in outs if o is not None)
        near = [_near(v, first) for v in (g, *saved)]
        if any(map(is_not, near, (g, *saved))):
            loop = loops.backward(rules, xp, near[0], near[1:], inputs, outs)
    if loop is not None and loop.run(get_num_threads() if g.size >= SHARED else 1):
        return outs
    if g.size < LARGE:
        return None
    wanted = tuple([o is not None for o in outs])

    def traced(given: list[Any]) -> list[Any]:
        found = rules(xp, given[0], given[1:], [True if w else None for w in wanted])
        return [f for f, w in zip(found, wanted) if w]

    if pieces.run(rules, traced, (g, *saved), wanted, [o for o in outs if o is not None]):
        return outs
    vectors = [flat(v, shape) if isinstance(v, np.ndarray) else v for v in saved]
    incoming = flat(g, shape)
    if g.dtype.char in SHORT or incoming is None or any(v is None and s is not None for v, s in zip(vectors, saved)):
        return None
    targets = [None if o is None else o.reshape(-1) for o in outs]

    def work(part: slice) -> None:
        given = [part_of(v, part) for v in vectors]
        for target, found in zip(targets, rules(xp, part_of(incoming, part), given, inputs)):
            if target is not None:
                target[part] = found

    in_turn(g.size, 1, work)
    return outs


ROW = 256  # elements that a sum takes in one go; the sums of such rows are added in double, which keeps rounding small


def total(array: Array) -> Any:
    """Sum all elements of a C-contiguous array of floats, in double: by a loop, or rows of them by BLAS."""
    if (found := reductions.whole("sum", array)) is not None:
        return found.reshape(())
    vector = array.reshape(-1)
    end = vector.size // ROW * ROW
    found = np.add.reduce(times_vector(vector[:end].reshape(-1, ROW), np.ones(ROW, array.dtype)), dtype=np.float64)
    return found if end == vector.size else found + np.add.reduce(vector[end:], dtype=np.float64)


def is_finite(array: Array) -> bool:
    """Return whether all elements are finite; of many, by their sum, which is finite as a rule if they are."""
    if array.size >= BLOCK and is_plain(array) and array.dtype.char in "fd":
        array = array[tuple([slice(None) if stride else slice(1) for stride in array.strides])]  # what is not repeated
        if array.flags.c_contiguous and isfinite(silently(total, array)):
            return True
    return not anywhere(~np.isfinite(array))
