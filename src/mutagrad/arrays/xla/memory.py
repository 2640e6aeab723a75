"""Memory that XLA computes with: cells, whose values are exchanged, not changed, and arrays that are windows on them.

    Cell     A piece of memory. Its value is an array of JAX's, which nothing can change; writing puts another there.
    XArray   A window on a cell, and to this library an array like NumPy's (see arrays/kinds.py). Its geometry is that
             of a twin, an array of NumPy's whose elements nobody looks at, so views and overlap are NumPy's answers.
    Place    Where cells are: a device. `HOST` is NumPy's own memory, which a compiled step computes with as well.
    Trace    What is on while a step is traced. Values are JAX's tracers then, and cells from outside of the step are
             left as they are: what they hold inside is kept here, with the list of those that were read and written.

With concrete values this is an eager array on a device; inside a trace it is the front end of the compiler. In both
cases the operations of this library, its derivatives, its sweep and its optimizers run on it as they are.
"""
from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from sys import getrefcount
from typing import Any
from weakref import WeakValueDictionary, ref

import jax
import jax.numpy as jnp

from ...base.device import device, place_named
from ...base.errors import NotSupported
from ...base.locks import new_lock
from ...base.modes import call_with, mode
from ...base.operands import Array
from ...base.provenance import OURS, called_function
from ..bfloat16 import SHORT
from ..kinds import Level, Refused, raw as numpy, use
from ..twins import Twinned
from . import geometry, shardings
from .geometry import Geometry

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_use_simplified_jaxpr_constants", False)
jax.config.update("jax_traceback_filtering", "quiet_remove_frames")
OURS.update(os.path.join(folder, name) for folder, _, names in os.walk(os.path.dirname(jax.__file__))
            for name in names if name.endswith(".py"))  # a user's line is none of these, either

ndarray = numpy.ndarray
FOLDED = 1 << 16  # elements up to which what is the same in every run is computed while tracing


class NotTraced(Refused, NotSupported):
    """Something in a compiled step that needs a value which is known only when the step runs."""


class Place(Level):
    """Where memory is: `device` is JAX's; None for NumPy's memory.

    A mesh of devices is one place, whose `device` is the sharding of what all of them have a copy of: that is how what
    is made there begins. How an array is spread over the mesh is part of its value, and stays when it is written.
    """

    __slots__ = ("device", "name", "over_mesh")
    exchanges = True

    def __init__(self, device: Any, name: tuple[str, int | None]) -> None:
        super().__init__()
        self.device, self.name, self.open = device, name, False
        self.over_mesh = shardings.is_spread(device)

    def adopt(self, array: Array) -> Array:
        return array if type(array) is XArray else new(array, self)

    def adopt_as(self, array: Array, like: Any) -> Array:
        """An array that is spread over a mesh as another of its shape is."""
        made = self.adopt(array)
        if self.over_mesh and tracing() is None and made.shape == like.shape and like.is_whole():
            made.cell.held = shardings.put(made.cell.held, like.cell.value.sharding)
        return made

    def wrapped(self, value: Any) -> Array:
        """An array of JAX's as one of this place."""
        return wrap(value, self)

    def around(self, array: Array) -> list[Level]:
        return []  # a device is no call that its arrays could leave

    def has(self, order: int) -> bool:
        return False

    def move(self, array: Any, other: Place | None) -> Array:
        """The elements of an array in XLA's memory, in that of another place; None: in NumPy's."""
        if tracing() is not None:
            known = array.known
            return wrap(array.values(), other or HOST) if known is None else new(known, other or HOST)
        if other is None:
            return array.only("")
        value = array.values()
        if not other.over_mesh and value.devices() == {other.device}:  # under another name
            return wrap(jnp.copy(value), other)
        if not value.is_fully_addressable:
            value = shardings.gathered(value)
        return wrap(shardings.put(value, other.device), other)

    def refuse(self, what: str, fix: str = "") -> Refused:
        return not_traced(what, fix) if tracing() is not None else Refused(what, fix=fix)

    def doubt(self, array: Any, least: int, most: int, error: Any) -> None:
        trace = tracing()
        if trace is not None and trace.session is not None:
            trace.session.doubts.add(array, least, most, error)

    def all_values(self, array: Any) -> Array:
        found = array.known
        if found is not None:
            return found
        if tracing() is None:
            return array.only("")
        return numpy.zeros(0, array.dtype)  # nothing is known that could be wrong


class _Host(Place):
    """NumPy's memory."""

    __slots__ = ()
    on_host = True


HOST = _Host(None, ("cpu", None))
_PLACES: WeakValueDictionary[Any, Place] = WeakValueDictionary()


def place_of(device: Any, name: tuple[str, int | None]) -> Place:
    """Return the place of a device of JAX's, or of a sharding."""
    found = _PLACES.get((device, name))
    if found is None:
        found = _PLACES[device, name] = Place(device, name)
        use(found)
    return found


_RETURN = "return the tensor, and ask for its value outside of the step"
_CHOOSE = "mutagrad.where(condition, a, b), x.masked_fill(condition, a), or mutagrad.cond(condition, f, g, (x,))"
_SIZES = ("a size that depends on values is none that a program can have: x.narrow(0, i, 2), or all of x and a mask, "
          "mutagrad.where(mutagrad.arange(len(x)) < n, x, 0.0); rounds of a loop: mutagrad.loop, mutagrad.while_loop")
# What a program does that asks for a value, by the name of the function that it calls; and the way to write it.
_ASKED = {
    "as_bool": ("what runs depends on a value: if, while, and, or, not, assert", _CHOOSE),
    "contains": ("`in` asks for values", _CHOOSE),
    "as_index": ("a value is used as a size, a bound or a number of rounds", _SIZES),
    "getitem": ("a part is taken whose size depends on a value", _SIZES),
    "setitem": ("a part is written whose size depends on a value", _SIZES),
    "as_int": ("int(x) asks for a value", _RETURN), "as_float": ("float(x) asks for a value", _RETURN),
    "item": ("item() asks for a value", _RETURN), "tolist": ("tolist() asks for values", _RETURN),
    "numpy": ("numpy() asks for values", _RETURN), "as_array": ("NumPy asks for values", _RETURN),
    "__format__": ("a value is printed", _RETURN)}


def not_traced(what: str, fix: str = "") -> NotTraced:
    """Return the error for something that needs values while a step is traced."""
    known = _ASKED.get(called_function())
    if known is not None and not fix:
        what, fix = known
    return NotTraced(f"compile: {what}",
                     why="while a step is traced, its tensors have no values yet: the program is compiled once for all "
                         "values that they will have",
                     fix=f"{fix or _CHOOSE}; compile(step, fallback=True) runs such a step as it is")


# ------------------------------------------------------------------------------------------------------------- tracing

class Trace(Level):
    """One tracing of a step, or of the body of a loop in one."""

    __slots__ = ("made", "place", "read", "rounds", "session", "touched", "turn", "values")
    replays = True
    session: Any  # what the step sees of tensors from outside; xla/session.py says
    turn: Any  # the number of the round, in the body of a loop
    rounds: int  # and how many there are
    touched: Any  # by a part of a step that is traced by itself: storages from outside of that

    def __init__(self, outer: Any = None, session: Any = None, place: Place = HOST) -> None:
        super().__init__(outer)
        self.open, self.place, self.session, self.turn, self.rounds = False, place, session, None, 0
        self.values: dict[Cell, Any] = {}  # of cells from outside that were written: what they hold here
        self.read: dict[Cell, Any] = {}  # of cells from outside that were read: what they held before
        self.made: list[ref[Cell]] = []
        self.touched = None

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return self.touched is not None

    def adopt(self, array: Array) -> Array:
        return array if type(array) is XArray else new(array, self.place)

    def has(self, order: int) -> bool:
        return False

    def refuse(self, what: str, fix: str = "") -> Refused:
        return not_traced(what, fix)

    def drawing(self, source: Any, owner: Any) -> Any:
        return self.session.drawing(owner)

    def before_offset(self, array: Any) -> None:
        if type(array) is XArray and array.cell.partial:
            raise BeyondPart(array.cell)

    def lasting(self, function: Any, *arguments: Any) -> Any:
        with jax.ensure_compile_time_eval():
            return call_with({"kind": None}, function, *arguments)

    def each_run(self, function: Any, course: Any = None) -> Any:
        return self.session.each_run(function, course)

    def value_of(self, cell: Cell) -> Any:
        if cell in self.values:
            return self.values[cell]
        if cell not in self.read:
            outer = tracing(self.outer)
            if outer is None:
                self.read[cell] = self.distinct(cell.settled())
            else:
                self.read[cell] = cell.value_in(outer)
        return self.read[cell]

    def distinct(self, value: Any) -> Any:
        """A value that no other cell has: inputs are told apart by it."""
        if any(value is other for other in self.read.values()):
            with jax.ensure_compile_time_eval():
                return jnp.array(value, copy=True)
        return value


writing = new_lock()  # while values are given to XLA to be changed in place; two threads must not give the same


def tracing(level: Any = mode) -> Trace | None:
    """Return the innermost trace that is on."""
    if level is mode:
        level = mode.now.kind
    while level is not None and type(level) is not Trace:
        level = level.outer
    return level


# What runs of programs have to tell of their checks, and who is told; see xla/doubts.py.
OUTCOMES: deque[tuple[Any, Callable[[Any], None]]] = deque()


def look_at_ended() -> None:
    """Raise what a run that has ended has to tell."""
    while OUTCOMES and OUTCOMES[0][0].is_ready():
        outcome, told = OUTCOMES.popleft()
        told(outcome)


class BeyondPart(Exception):
    """A step has touched memory beyond the part of it that it was given."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell


class Cell:
    """See the top of this file. `known`: NumPy's array of its elements, while they are the same in every run.

    `partial`: it is part of a memory of NumPy's, as a batch is of a data set. `short`: the same values in a type of two
    bytes, of which these were made: products of short floats are exact in float32, and far faster as what they are.
    """

    __slots__ = ("__weakref__", "born", "held", "known", "partial", "place", "seen", "short", "twin")

    def __init__(self, value: Any, twin: Any, place: Place, known: Any = None, partial: bool = False) -> None:
        self.held, self.twin, self.place, self.known, self.partial = value, twin, place, known, partial
        self.short: Any = None
        self.seen: dict[Any, Any] = {}  # the windows through which it was read while it was traced
        self.born = tracing()
        if self.born is not None:
            self.born.made.append(ref(self))

    def settled(self) -> Any:
        """What it holds, once another thread that is writing has finished; or what is the same in every run."""
        with writing:
            if self.held is None:
                self.held = constant(self.known)
            return self.held

    @property
    def value(self) -> Any:
        """What it holds: inside a trace, there."""
        return self.value_in(tracing())

    @value.setter
    def value(self, new: Any) -> None:
        trace = tracing()
        if trace is None or self.born is trace:
            if self.place.over_mesh and self.held is not None:
                new = shardings.kept(new, self.held)
            self.held, self.known, self.short = new, None, None
        else:
            trace.value_of(self)
            trace.values[self] = new

    def value_in(self, trace: Trace | None) -> Any:
        if trace is not None and self.born is not trace:
            return trace.value_of(self)
        held = self.held
        if trace is None and self.born is not None:
            raise NotTraced("compile: a tensor is used that a step has made which could not be traced",
                            why="it never got a value", fix="make it anew")
        if held is not None:
            return held
        if trace is not tracing():  # a constant of the step around, which this one has its own of
            return constant(self.known)
        return self.settled()


def constant(array: Array) -> Any:
    """Return an array of JAX's with these elements. Where all are the same, that is no data that a program carries."""
    if array.size > 64:
        first = array.reshape(-1)[:1]
        if array.dtype.kind in "fiub" and (array == first).all() and not numpy.signbit(first).any():
            return jnp.full(array.shape, first[0], array.dtype)
    return jnp.array(array)


def from_outside(twin: Any, partial: bool) -> Cell:
    """Return a cell for memory of NumPy's that a step computes with. Its value is that of the memory in each run."""
    with jax.ensure_compile_time_eval():
        some = shardings.put(numpy.empty(twin.shape, twin.dtype), None)  # jnp.empty would be compiled for each shape
        return call_with({"kind": None}, Cell, some, twin, HOST, None, partial)


def new(array: Array, place: Place) -> XArray:
    """Return an array over a cell of its own, with the elements of one of NumPy's."""
    if not array.flags.c_contiguous:
        array = numpy.ascontiguousarray(array).reshape(array.shape)
    if tracing() is not None:  # as long as it is only read, and perhaps for good, it stays NumPy's
        cell = Cell(None, numpy.empty(array.shape, array.dtype), place, array)
    else:
        held = shardings.put(array, place.device)
        cell = Cell(held, numpy.empty(array.shape, array.dtype), place)
    return XArray(cell, cell.twin)


def wrap(value: Any, place: Place) -> Any:
    """Return results of JAX's as arrays."""
    if isinstance(value, jax.Array):
        cell = Cell(value, numpy.empty(value.shape, value.dtype), place)
        return XArray(cell, cell.twin)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(wrap(v, place) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(wrap(v, place) for v in value)
    return value


def unwrap(value: Any) -> Any:
    """Return arguments as JAX's functions take them."""
    kind = type(value)
    if kind is XArray:
        return value.values()
    if kind is tuple or kind is list:
        return kind([unwrap(v) for v in value])
    return value


def arrived(value: Any, place: Place) -> Any:
    """Return values that are written to a place as an array of JAX's, which shares no memory with NumPy's."""
    value = unwrap(value)
    if isinstance(value, jax.Array):
        return value
    if tracing() is not None:
        return jnp.array(value)
    return shardings.put(numpy.asarray(value), place.device)


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def may_overlap(a: Any, b: Any) -> bool:
    try:
        return bool(numpy.may_share_memory(a, b) and numpy.shares_memory(a, b, max_work=10_000))
    except numpy.exceptions.TooHardError:
        return True


class XArray(Twinned):
    """See the top of this file."""

    __slots__ = ("cell",)
    level = property(lambda self: self.cell.place)
    base = property(lambda self: None if self.twin is self.cell.twin else self.cell)

    def __init__(self, cell: Cell, twin: Any) -> None:
        self.cell, self.twin = cell, twin

    # --------------------------------------------------------------------------------------------------------- memory

    def through(self, twin: Any) -> XArray:
        """The view that is to this array as `twin` is to its twin."""
        return XArray(self.cell, twin)

    def geometry(self) -> Geometry:
        """Of this window on its cell, in elements of its own type."""
        whole, item = self.cell.twin, self.twin.itemsize
        offset = _address(self.twin) - _address(whole) if self.twin.size else 0
        strides = tuple([s // item if n != 1 else 0 for n, s in zip(self.twin.shape, self.twin.strides)])
        if self.cell.partial:
            low, high = numpy.lib.array_utils.byte_bounds(self.twin)
            first, end = numpy.lib.array_utils.byte_bounds(whole)
            if self.twin.size and not first <= low <= high <= end:
                raise BeyondPart(self.cell)
        return Geometry(whole.nbytes // item, offset // item, self.twin.shape, strides)

    def is_whole(self) -> bool:
        twin, whole = self.twin, self.cell.twin
        if twin is whole or twin.nbytes != whole.nbytes or not twin.flags.c_contiguous or twin.dtype != whole.dtype:
            return twin is whole
        return not self.cell.partial or _address(twin) == _address(whole)

    def values(self) -> Any:
        """The elements, as an array of JAX's."""
        cell, twin = self.cell, self.twin
        value = cell.value
        if twin is cell.twin:
            return value
        if self.is_whole():
            return value.reshape(twin.shape)
        if twin.dtype != cell.twin.dtype:
            value = geometry.retyped(value.reshape(-1), twin.dtype)
        window = self.geometry()
        eager = tracing() is None
        if not eager:
            cell.seen.setdefault(window, twin)
        return geometry.read(value, window, eager)

    def assign(self, value: Any) -> None:
        """Write values, broadcast to the window."""
        cell, twin = self.cell, self.twin
        if self.known is not None and (given := known_of(value)) is not None and cell.twin.size <= FOLDED:
            self.writable()[...] = given
            return
        new = arrived(value, cell.place)
        if new.dtype != twin.dtype:
            new = cast(new, twin.dtype)
        if new.shape != twin.shape:
            if new.ndim > twin.ndim and set(new.shape[:new.ndim - twin.ndim]) == {1}:
                new = new.reshape(new.shape[new.ndim - twin.ndim:])
            new = jnp.broadcast_to(new, twin.shape)
        if self.is_whole():
            cell.value = new.reshape(cell.twin.shape)
            return
        if not twin.size:
            return
        window, eager = self.geometry(), tracing() is None
        if eager and twin.dtype == cell.twin.dtype:
            with writing:
                cell.held = _update(cell, window, new)
            return
        old = cell.value
        flat = geometry.retyped(old.reshape(-1), twin.dtype) if twin.dtype != cell.twin.dtype else old
        apart = not any(seen != window and may_overlap(other, twin) for seen, other in cell.seen.items())
        found = geometry.written(flat, window, new, eager, apart)
        if flat is not old:
            found = geometry.retyped(found.reshape(-1), cell.twin.dtype)
        cell.value = found.reshape(cell.twin.shape)

    def accumulate(self, value: Any) -> None:
        """Add to the elements; zeros are added to those beside the window, so that no one is negative any more."""
        cell, window = self.cell, self.geometry()
        value = jnp.broadcast_to(cast(jnp.asarray(unwrap(value)), self.dtype), self.shape)
        if tracing() is None or self.dtype != cell.twin.dtype or self.is_whole():
            self.assign(self.values() + value)
        else:
            cell.value = geometry.added(cell.value, window, value)

    @property
    def known(self) -> Any:
        """NumPy's array of the elements, where they are the same in every run; else None."""
        found = self.cell.known
        if found is None or tracing() is not self.cell.born:
            return None
        offset = _address(self.twin) - _address(self.cell.twin) if self.twin.size else 0
        return ndarray(self.twin.shape, self.twin.dtype, found, offset, self.twin.strides)

    def writable(self) -> Any:
        """Its known elements, to be changed: somebody may have those that were there before."""
        self.cell.known, self.cell.held = self.cell.known.copy(), None
        return self.known

    def only(self, what: str) -> Array:
        found = self.known
        if found is None:
            if tracing() is not None:
                raise not_traced(what)
            found = shardings.gathered(self.values()) if self.cell.place.over_mesh else numpy.asarray(self.values())
            look_at_ended()
        return numpy.array(found)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, (self.only("it is pickled"), *self.level.name)

    def __index__(self) -> int:
        return int(self.only("a value is used as a size, a place or a count"))

    # ------------------------------------------------------------------------------------------------------- indexing

    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(p, (ndarray, list, numpy.generic)) and _picks(p) for p in parts):
            return RULES["getitem"](self, parts)
        twin = self.twin[key]
        return self.through(twin) if type(twin) is ndarray else self.through(self.twin[parts + (...,)]).copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(p, (ndarray, list, numpy.generic)) and _picks(p) for p in parts):
            RULES["setitem"](self, parts, value)
        else:
            self.through(self.twin[parts if any(p is Ellipsis for p in parts) else (*parts, ...)]).assign(value)

    # ------------------------------------------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        return unwatched(RULES["ufunc"], ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        return unwatched(RULES["function"], function, arguments, settings)

    # -------------------------------------------------------------------------------------------------- NumPy's methods

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        dtype = numpy.dtype(dtype)
        if not copy and self.dtype == dtype:
            return self
        found = self.known
        if found is not None:
            return new(found.astype(dtype), self.level)
        values = self.values()
        found = wrap(cast(values, dtype), self.level)
        if dtype == numpy.float32 and self.dtype.char in SHORT:
            found.cell.short = values
        return found

    def copy(self, order: str = "C") -> Any:
        """The elements as they are now. Nothing is copied where they are all of the memory: values never change."""
        found = self.known
        if found is not None:
            return new(found, self.level)
        made = wrap(self.values(), self.level)
        made.cell.short = self.short_values()
        return made

    def short_values(self) -> Any:
        """The elements in the type of two bytes that they were made of; None if they were not."""
        cell = self.cell
        if cell.short is None or cell.born is not tracing() or self.dtype != numpy.float32:
            return None
        return cell.short.reshape(self.shape) if self.is_whole() else geometry.read(
            cell.short, self.geometry(), cell.born is None)

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        self.assign(numpy.sort(self, axis))

    def __repr__(self) -> str:
        values = self.cell.held if self.is_whole() else "..."
        return f"XArray({self.level.name[0]}, {self.dtype}, {self.shape}: {values})"


def unwatched(rule: Any, *arguments: Any) -> Any:
    """Call a rule without the profiler that looks what a traced step asks for: most calls are JAX's own, in there."""
    watcher = sys.getprofile()
    if not callable(watcher):
        return rule(*arguments)
    sys.setprofile(None)
    try:
        return rule(*arguments)
    finally:
        sys.setprofile(watcher)


def restored(array: Array, type: str, index: int | None) -> Any:
    """Return a pickled array: on the device that it was on, which must be there."""
    place = place_named(device(type, index))
    return array if place is None else place.adopt(array)


def known_of(value: Any) -> Any:
    """Return NumPy's form of a value that is the same in every run; None if it is not."""
    if type(value) is XArray:
        return value.known
    return None if isinstance(value, jax.Array) else value


def _picks(part: Any) -> bool:
    """Whether a part of an index is an array that picks, or a number."""
    return isinstance(part, list) or part.ndim > 0 or part.dtype == bool or type(part) is XArray


def cast(value: Any, dtype: Any) -> Any:
    """Return values in another element type, as NumPy converts them."""
    if value.dtype.kind == "c" and dtype.kind not in "cb":
        value = value.real
    if value.dtype.kind in "fV" and dtype.kind in "iu" and dtype.itemsize < 4:
        value = value.astype(numpy.int32)  # beyond their range NumPy's short integers wrap around
    return value.astype(dtype)


def _update(cell: Cell, window: Geometry, new: Any) -> Any:
    """A cell's value after an eager write. It is changed in place where nobody else holds it."""
    if cell.held is None:
        cell.settled()
    cell.short = None
    held, cell.held, cell.known = cell.held, None, None  # who reads it from here on waits; who has read it holds it
    try:
        if getrefcount(held) <= 2 and isinstance(cell.place.device, jax.Device):
            return geometry.written_in_place(held, window, new)
        found = geometry.written(held, window, new, True, True)
        return shardings.kept(found, held) if cell.place.over_mesh else found
    except BaseException:
        cell.held = held
        raise


RULES: dict[str, Any] = {}  # filled in by rules.py
