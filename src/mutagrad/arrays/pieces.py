"""Functions of several steps, piece by piece: what one step leaves in the cache of the core, the next finds there.

The steps are found out once (`recorded.py`) and kept, as a function that is written for them. What lies between them
has a few blocks of memory that are used again and again. Each step of each piece is a call, so pieces are no smaller
than they have to be: a step's operands lie in the cache, those of all steps need not.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from threading import get_ident
from typing import Any, NamedTuple

from ..base.operands import Array
from .compiled.expressions import Unknown, Valued
from .kinds import raw as numpy
from .recorded import SHORT, Operand, Record, Value, convert, given as _given, rounded, widened
from .sizes import PIECE
from .threads import in_turn

MOST = 1 << 9  # functions that are kept, with their settings
ROOM = 1 << 21  # bytes of a piece, of all operands and blocks together
LEAST, STEP = 1 << 15, 1 << 10  # elements of the smallest piece, and what pieces are multiples of

SHORT_ROW = 1 << 6  # elements of a row that take less time than NumPy does to set out for it


class Program(NamedTuple):
    """What a function computes of one piece: `compute(arrays, numbers, blocks, targets)`."""

    compute: Callable[..., None]
    arrays: tuple[int, ...]  # which of the values given are arrays
    numbers: tuple[int, ...]  # which are numbers
    blocks: tuple[tuple[int, Any], ...]  # pieces of memory, as which types the steps see them
    pieces: int  # how many there are
    item: int  # bytes of an element of each


_programs: dict[Any, Any] = {}
_BY_VALUE: Any = object()  # there is a program for each value of the numbers


def run(function: Callable[..., Any], traced: Callable[[list[Any]], Sequence[Any]], given: Sequence[Any],
        wanted: Any, targets: Sequence[Array]) -> bool:
    """Do `targets = traced(given)` piece by piece; False, with nothing done, where the function has other steps.

    Arrays among what is given broadcast to the shape of the targets. A single target may be one of them.
    """
    given, targets = _laid(given, targets)
    program = _program(function, traced, given, wanted, targets)
    if program is None:
        return False
    _go(program, [given[i] for i in program.arrays], [given[i] for i in program.numbers], targets)
    return True


def flat(array: Any, shape: tuple[int, ...]) -> Any | None:
    """Return an array as a vector to cut spans from: one element where all are the same, None if it cannot be cut."""
    if not isinstance(array, numpy.ndarray):
        return array
    if array.size == 1:
        return array.reshape(())
    if array.shape != shape:
        return None
    if array.flags.c_contiguous:
        return array.reshape(-1)
    return array[(0,) * array.ndim] if not any(array.strides) else None


def _laid(given: Sequence[Any], targets: Sequence[Array]) -> tuple[list[Any], list[Array]]:
    """The same as vectors, if that can be; else with as many dimensions each, of which the first is cut."""
    shape, ndim = targets[0].shape, targets[0].ndim
    vectors = [flat(v, shape) for v in given]
    if all(v is None or w is not None for v, w in zip(given, vectors)) and all(t.flags.c_contiguous for t in targets):
        return vectors, [t.reshape(-1) for t in targets]
    axis = 0 if targets[0].size // shape[0] <= PIECE else shape.index(max(shape))
    found = [v.reshape((1,) * (ndim - v.ndim) + v.shape) if _is_array(v) and v.size > 1 else w
             for v, w in zip(given, vectors)]
    return ([numpy.moveaxis(v, axis, 0) if isinstance(v, numpy.ndarray) and v.ndim else v for v in found],
            [numpy.moveaxis(t, axis, 0) for t in targets])


def _go(program: Program, arrays: list[Array], numbers: list[Any], targets: Sequence[Array]) -> None:
    mine: dict[tuple[int, int], tuple[list[Array], dict[int, Array]]] = {}  # memory, by thread and length of a piece
    count, *rest = targets[0].shape

    def work(part: slice) -> None:
        about = get_ident(), part.stop - part.start
        shape = (about[1], *rest)
        if about not in mine:
            mine[about] = _blocks(program, shape), {}
        blocks, loaded = mine[about]
        given = [_loaded(a, part, count, shape, loaded, i) for i, a in enumerate(arrays)]
        program.compute(given, numbers, blocks, [t[part] for t in targets])

    each = targets[0].size // count
    room = sum([a.itemsize for a in (*arrays, *targets)]) + program.pieces * program.item
    piece = min(max(ROOM // room // STEP * STEP, LEAST), PIECE)
    in_turn(count, PIECE // max(piece // each, 1), work)


def _loaded(array: Array, part: slice, count: int, shape: tuple[int, ...], loaded: dict[int, Array], i: int) -> Array:
    """A piece of an operand. Short rows that all pieces have in common are laid out once: each would be a beginning."""
    if array.shape[0] == count:
        return array[part]
    if shape[-1] > SHORT_ROW:
        return array
    if i not in loaded:
        loaded[i] = numpy.empty(shape, array.dtype)
        numpy.copyto(loaded[i], array)
    return loaded[i]


def _blocks(program: Program, shape: tuple[int, ...]) -> list[Array]:
    size = prod(shape)
    memory = [numpy.empty(size * program.item, numpy.uint8) for _ in range(program.pieces)]
    return [memory[block][:size * dtype.itemsize].view(dtype).reshape(shape) for block, dtype in program.blocks]


def _program(function: Any, traced: Callable[[list[Any]], Sequence[Any]], given: Sequence[Any], wanted: Any,
             targets: Sequence[Array]) -> Program | None:
    types = tuple([t.dtype for t in targets])
    key: Any = function, wanted, types, *[_about(v) for v in given]
    try:
        program = _programs.get(key, _programs)
        if program is _BY_VALUE:
            key = key, *[(v.dtype, v.tobytes()) for v in given if _is_array(v) and not v.ndim]
            program = _programs.get(key, _programs)
    except TypeError:  # a setting that is no key
        return None
    if program is _programs:
        if len(_programs) >= MOST:
            _programs.clear()
        program = _programs[key] = _made(traced, given, types, key[0].__class__ is tuple)
        if program is _BY_VALUE:
            return _program(function, traced, given, wanted, targets)
    return program  # type: ignore[no-any-return]


def _is_array(value: Any) -> bool:
    return isinstance(value, (numpy.ndarray, numpy.generic))


def _about(value: Any) -> Any:
    if _is_array(value):
        return value.dtype, value.ndim > 0
    return value.__class__, (repr(value) if value.__class__ is float else value)  # 0.0 and -0.0 are equal


def _made(traced: Callable[[list[Any]], Sequence[Any]], given: Sequence[Any], types: tuple[Any, ...],
          by_value: bool) -> Any:
    """A program; None if there can be none, or _BY_VALUE."""
    arrays = [i for i, v in enumerate(given) if _is_array(v)]
    if any(given[i].dtype.char not in _KNOWN for i in arrays):
        return None
    record, values = Record(), list(given)
    for i in arrays:
        values[i] = record.given(given[i].dtype, min(given[i].ndim, 1))
    try:
        found = traced([_operand(v, given[i], by_value) if i in arrays else v for i, v in enumerate(values)])
        results = [_result(f, dtype) for f, dtype in zip(found, types)]
    except Valued:
        return None if by_value else _BY_VALUE
    except Exception:  # whatever a function does with what is no array
        return None
    return _compiled(record, results, arrays, given)


_KNOWN = "?bBhHiIlLqQfdeE"


def _operand(value: Value, given: Any, by_value: bool) -> Any:
    """What a function is given for an array: floats of two bytes are computed in float32."""
    short = given.dtype.char in SHORT
    if by_value and not given.ndim:
        return numpy.asarray(given, numpy.float32 if short else None)
    return widened(value) if short else value


def _result(value: Any, dtype: Any) -> Value:
    if not isinstance(value, Value) or not value.ndim:
        raise Unknown("no array")
    return value if value.dtype == dtype else rounded(value, dtype) if dtype.char in SHORT else value.astype(dtype)


# ---------------------------------------------------------------------------------------------------- writing the steps


def _compiled(record: Record, results: list[Value], given: list[int], values: Sequence[Any]) -> Program:
    text = _Text(record, [r.at for r in results])
    arrays = tuple([i for i in given if values[i].ndim])
    numbers = tuple([i for i in given if not values[i].ndim])
    places = {k: f"a[{arrays.index(i)}]" if i in arrays else f"n[{numbers.index(i)}]" for k, i in enumerate(given)}
    text.write(places)
    compute = _factory(text.source())(*text.constants)
    item = max([dtype.itemsize for _, dtype in text.blocks], default=1)
    return Program(compute, arrays, numbers, tuple(text.blocks), text.count, item)


@lru_cache(MOST)
def _factory(source: str) -> Callable[..., Any]:
    """Steps of one form have the same source, which is compiled once."""
    found: dict[str, Any] = {"__name__": None}  # see core/codegen.py
    exec(source, found)
    return found["build"]  # type: ignore[no-any-return]


class _Text:
    """The source of a program, and which memory each value lies in."""

    def __init__(self, record: Record, results: list[Operand]) -> None:
        self.record, self.results = record, results
        self.lines: list[str] = []
        self.constants: list[Any] = []
        self.names: dict[Any, str] = {}  # of values as a type, and of constants
        self.blocks: list[tuple[int, Any]] = []
        self.count = 0
        self.free: list[int] = []
        self.block_of: dict[int, int] = {}
        self.last: dict[int, int] = {}  # the step that reads a value last

    def source(self) -> str:
        body = "".join(f"        {line}\n" for line in self.lines)
        given = ", ".join(f"c{i}" for i in range(len(self.constants)))
        return f"def build({given}):\n    def compute(a, n, b, t):\n{body}    return compute\n"

    def write(self, places: dict[int, str]) -> None:
        steps = self.record.steps
        needed = self._needed()
        for k in needed:
            for operand in steps[k].operands:
                if operand.__class__ is Operand:
                    self.last[operand.made] = k
        ends = {}  # the step that can write a result into its place
        for r, operand in enumerate(self.results):
            if steps[operand.made].function is not _given and steps[operand.made].ndim and operand.made not in ends:
                ends[operand.made] = r
        for k, place in places.items():
            self._name(Operand(k, steps[k].dtype), place)
        for k in needed:
            if steps[k].function is not _given:
                self._step(k, ends.get(k))
        for r, operand in enumerate(self.results):
            if ends.get(operand.made) != r:
                self.lines.append(f"{self._constant(convert)}({self._read(operand)}, t[{r}])")

    def _needed(self) -> list[int]:
        """The steps that results depend on, in their order."""
        wanted = {o.made for o in self.results}
        for k in range(len(self.record.steps) - 1, -1, -1):
            if k in wanted:
                wanted |= {o.made for o in self.record.steps[k].operands if o.__class__ is Operand}
        return sorted(wanted)

    def _step(self, k: int, result: int | None) -> None:
        step = self.record.steps[k]
        given = ", ".join([self._read(o) if o.__class__ is Operand else self._constant(o) for o in step.operands])
        function = self._constant(step.function)
        out = Operand(k, step.dtype)
        if not step.ndim:
            self.lines.append(f"v{k} = {function}({given})")
            self.names[out] = f"v{k}"
            return
        read = {o.made for o in step.operands if o.__class__ is Operand and self.last[o.made] == k}
        done = [self.block_of[made] for made in read if made in self.block_of]
        in_place = all(o.__class__ is not Operand or not self.record.steps[o.made].ndim
                       or o.dtype.itemsize == step.dtype.itemsize for o in step.operands)
        if in_place:
            self.free += done
        if result is not None:
            seen = self.results[result].dtype == step.dtype
            self._name(out, f"t[{result}]" + ("" if seen else f".view({self._constant(step.dtype)})"))
        else:
            block = self.free.pop() if self.free else self._new_block()
            self.block_of[k] = block
            self._name_block(out, block)
        if not in_place:
            self.free += done
        self.lines.append(f"{function}({given}, out={self.names[out]})")

    def _new_block(self) -> int:
        self.count += 1
        return self.count - 1

    def _name(self, operand: Operand, text: str) -> None:
        name = f"v{operand.made}"
        self.lines.append(f"{name} = {text}")
        self.names[operand] = name

    def _name_block(self, operand: Operand, block: int) -> None:
        about = block, operand.dtype
        if about not in self.blocks:
            self.blocks.append(about)
        self.names[operand] = f"b[{self.blocks.index(about)}]"

    def _read(self, operand: Operand) -> str:
        """The name of a value, seen as a type of the same size."""
        name = self.names.get(operand)
        if name is not None:
            return name
        if operand.made in self.block_of:
            self._name_block(operand, self.block_of[operand.made])
            return self.names[operand]
        made = Operand(operand.made, self.record.steps[operand.made].dtype)
        name = self.names[operand] = f"v{operand.made}{operand.dtype.char.replace('?', 'o')}"
        self.lines.append(f"{name} = {self.names[made]}.view({self._constant(operand.dtype)})")
        return name

    def _constant(self, value: Any) -> str:
        about = value if callable(value) or isinstance(value, numpy.dtype) else (value.dtype, value.tobytes())
        name = self.names.get(about)
        if name is None:
            name = self.names[about] = f"c{len(self.constants)}"
            self.constants.append(value)
        return name
