"""Arrays of which `vmap` maps a function over many at once: they look like one slice and hold all of them.

A `Batched` array has a hidden leading dimension, or none as long as all slices are the same. It stands wherever NumPy's
arrays do (see kinds.py), so operations, rules, sweeps and writes run on it as they are, once for all slices. What a
function of NumPy's means here is a row of a table in batched_rules.py; one that has no row is called for each slice.

    memory     `data`, of shape (slices, *shape), or of `shape` where all slices share it. Writing values that differ
               into shared memory splits it: every slice gets its own.
    geometry   `twin`, an array of NumPy's with the shape, strides and type of one slice, whose elements nobody looks
               at. Views, overlap and contiguity are NumPy's answers for the twin.
    levels     A `Slices` is one call of `vmap`. In nested calls `data` is itself a Batched array, of the call around.

What would need the value of one slice (`if x > 0`, `x.item()`, a shape that depends on values, a write to an argument)
is refused by `OneByOne`; `vmap` then calls the function for each slice instead.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import ref

from ..base.operands import Array
from .kinds import Level, Refused, levels_of, pick, raw, window
from .numpy import silent
from .twins import Twinned

ndarray = raw.ndarray
ALL = slice(None)
next_number = count().__next__


class OneByOne(Refused):
    """Something that cannot be done for all slices at once."""

    level: Slices

    def forget(self) -> None:
        self.level.refusals.remove(self)

    def instead(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.forget()
        return RULES["each"](function, arguments)


class Slices(Level):
    """One call of `vmap`: how many slices there are, and the call around it."""

    __slots__ = ("number", "refusals", "shared", "size", "turns")
    shared: list[ref[Batched]]  # arrays that are the same for all slices
    turns: Turns  # how random numbers are drawn
    refusals: list[OneByOne]  # why the function has to be called for each slice

    def __init__(self, size: int, outer: Any, since: int, turns: Turns) -> None:
        super().__init__(outer, since)
        self.size, self.refusals = size, []
        self.number, self.shared = next_number(), []  # arrays of several levels nest by it, the newest outside
        self.turns = turns

    def adopt(self, array: Array) -> Array:
        """The same array for all slices, to which each may write."""
        if type(array) is ndarray and self.outer is not None:
            array = self.outer.adopt(array)
        return fresh(self, array, False)

    def before_user_code(self, name: str, arrays: list[Any]) -> None:
        if any(type(a) is Batched and a.level is self and a.root.split for a in arrays):
            raise self.refuse(f"{name} is the user's own, and may look at values")

    def before_write_outside(self) -> None:
        raise self.refuse("memory from outside of the function is written, once for each slice")

    def drawing(self, source: Any, owner: Any) -> Any:
        source = source if self.outer is None else self.outer.drawing(source, owner)
        self.turns.begin(source)
        return Draws(self, source)

    def all_values(self, array: Any) -> Array:
        values = array.values()[0]
        return values if type(values) is ndarray else values.level.all_values(values)

    def doubt(self, array: Any, least: int, most: int, error: Any) -> None:
        values = array.values()[0]
        values.level.doubt(values, least, most, error)

    def share(self, array: Array) -> Array:
        """An equal share for each slice of an adjoint of something that they have in common."""
        return shared(array / self.size, self)

    def outlived(self, array: Any) -> bool:
        while type(array) is Batched:
            if array.level is self:
                return array.outlived
            array = array.values()[0]
        return False

    def close(self, order: int) -> None:
        """The call is over. What the slices share and has outlived it is as good as NumPy's from here on."""
        self.open, self.until = False, order
        for reference in self.shared:
            array = reference()
            if array is not None and not array.split:
                array.frozen = True
        self.shared.clear()

    def refuse(self, what: str, fix: str = "") -> OneByOne:
        found = OneByOne(f"vmap: {what}", why="this tensor stands for all slices at once, and each has its own value",
                         fix="use it inside the function that vmap calls, or vmap's result")
        found.level = self
        self.refusals.append(found)
        return found

    def spread(self, value: Any, shape: tuple[int, ...]) -> Any:
        """A value broadcast to a shape, in every slice."""
        values, split = value.values() if type(value) is Batched and value.level is self else (value, False)
        return raw.broadcast_to(lined_up(values, len(shape)) if split else values, (self.size, *shape))

    def index_outside(self, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], int]:
        """An index that picks what all slices pick by this one, and where in the result the slices are then."""
        arrays = {d: p for d, p in enumerate(index) if isinstance(p, ndarray)}
        ndim = max(p.ndim for p in arrays.values())
        lead = min(arrays) if max(arrays) - min(arrays) + 1 == len(arrays) else 0
        spread = {d: left(p, 0, self) if self in levels_of(p) else p for d, p in arrays.items()}
        for d, p in arrays.items():
            if spread[d] is not p:
                spread[d] = spread[d].reshape((self.size,) + (1,) * (ndim - p.ndim) + p.shape)
        first = min(arrays)  # all of it, though none of the slices may differ
        shape = (self.size, *raw.broadcast_shapes(*(p.shape for p in arrays.values())))
        spread[first] = raw.broadcast_to(spread[first], shape)
        return tuple(spread.get(d, p) for d, p in enumerate(index)), lead

    def adopt_as(self, array: Any, like: Any) -> Array:
        data = like.values()[0]
        return fresh(self, array if type(data) is ndarray else data.level.adopt_as(array, data), False)

    def around(self, array: Any) -> list[Level]:
        return [self, *levels_of(array.values()[0])]

    def total(self, array: Any) -> Array:
        """The sum of an adjoint over the slices, where it leaves for something that they share."""
        values, split = array.values()
        if array.level is not self:  # inside a newer one
            return fresh(array.level, self.total(values), split)
        return raw.sum(values, 0) if split else values * self.size


class Turns:
    """How the slices of a `vmap` take turns at generators of random numbers: `same`, each draws the same numbers."""

    def __init__(self, same: bool) -> None:
        self.same = same
        self.states: dict[int, tuple[Any, Any]] = {}  # of each generator that has drawn: it, and its state before

    def begin(self, source: Any) -> None:
        """A generator is about to draw."""
        while type(source) is Draws:
            source = source.source
        self.states.setdefault(id(source), (source, source.state))

    def again(self) -> None:
        """From the beginning: all of them as they were before."""
        for source, state in self.states.values():
            source.state = state


class Draws:
    """A generator of random numbers that draws once for all slices, or for each its own."""

    def __init__(self, level: Slices, source: Any) -> None:
        self.level, self.source = level, source

    @property
    def state(self) -> Any:
        return self.source.state

    @state.setter
    def state(self, state: Any) -> None:
        self.source.state = state

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.source, name)
        return lambda *arguments: self.draw(method, arguments)

    def draw(self, method: Callable[..., Any], arguments: Any) -> Any:
        mine = any(type(a) is Batched and a.level is self.level for a in arguments)
        same = self.level.turns.same
        if same and not mine:
            return method(*arguments)
        state = self.state

        def drawn(*arguments: Any) -> Any:
            if same:
                self.state = state
            return method(*arguments)

        drawn.__name__ = method.__name__
        return RULES["each"](drawn, arguments, self.level)


def entered(a: Any, dim: int, level: Slices) -> Batched:
    """An array as one whose slices lie along a dimension."""
    if type(a) is Batched and a.level.number > level.number:
        values, split = a.values()
        return fresh(a.level, entered(values, dim + split, level), split)
    return fresh(level, raw.moveaxis(a, dim, 0).copy(), True)


def left(a: Any, dim: int, level: Slices) -> Any:
    """An array with its slices along a dimension."""
    if type(a) is Batched and a.level.number > level.number:
        values, split = a.values()
        return fresh(a.level, left(values, dim + split, level), split)
    values, split = a.values() if type(a) is Batched and a.level is level else (a, False)
    values = values if split else raw.broadcast_to(values, (level.size, *values.shape))
    return raw.moveaxis(values, 0, dim).copy()


def shared(a: Any, level: Slices) -> Batched:
    """An array that is the same for all slices."""
    if type(a) is Batched and a.level.number > level.number:
        values, split = a.values()
        return fresh(a.level, shared(values, level), split)
    return fresh(level, a.copy(), False)


def fresh(level: Slices, data: Any, split: bool) -> Batched:
    """An array over memory of its own."""
    made = object.__new__(Batched)
    if not isinstance(data, ndarray):
        data = raw.asarray(data)
    if not data.flags.c_contiguous:
        data = data.copy()
    made.level, made.data, made.split, made.base, made.frozen = level, data, split, None, False
    made.twin = geometry(data[0, ...] if split else data)
    if not split and level.open:
        level.shared.append(ref(made))
    return made


def geometry(array: Any) -> Any:
    return array.twin if hasattr(type(array), "level") else array


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _is_mask(part: Any) -> bool:
    return isinstance(part, ndarray) and part.dtype == bool


def lined_up(values: Any, ndim: int) -> Any:
    """Slices with as many dimensions as the result has, so that their first one meets the first of others."""
    missing = ndim + 1 - values.ndim
    return values.reshape(values.shape[:1] + (1,) * missing + values.shape[1:]) if missing > 0 else values


class Batched(Twinned):
    """See the top of this file. `base` is the array whose memory this is a view of, None if it has its own."""

    __slots__ = ("base", "data", "frozen", "level", "split")
    base: Batched | None
    level: Slices
    data: Any  # not of a view
    split: bool  # not of a view
    frozen: bool  # not of a view: memory of an argument, which a slice must not write to; or that has outlived the call

    # --------------------------------------------------------------------------------------------------------- memory

    @property
    def outlived(self) -> bool:
        """Whether this is not part of the call any more: all slices had the same, and somebody has kept it."""
        root = self.root
        return root.frozen and not root.split

    @property
    def root(self) -> Batched:
        """The array that has the memory."""
        return self if self.base is None else self.base

    def values(self) -> tuple[Any, bool]:
        """All slices as an array of the level around, and whether it has the leading dimension."""
        root, twin = self.base, self.twin
        if root is None:
            return self.data, self.split
        offset = _address(twin) - _address(root.twin) if twin.size else 0
        if root.split:
            shape, strides = (root.level.size, *twin.shape), (root.twin.nbytes, *twin.strides)
            return window(root.data, shape, twin.dtype, offset, strides), True
        return window(root.data, twin.shape, twin.dtype, offset, twin.strides), False

    def through(self, twin: Any) -> Batched:
        """The view that is to this array as `twin` is to its twin."""
        made = object.__new__(Batched)
        made.level, made.base, made.twin = self.level, self.root, twin
        return made

    def separate(self) -> None:
        """Give every slice memory of its own."""
        root = self.root
        if not root.split:
            root.data = raw.broadcast_to(root.data, (root.level.size, *root.data.shape)).copy()
            root.split = True

    def writable(self, split: bool) -> tuple[Any, bool]:
        """All slices, to be written to: with values that differ between them, if `split`."""
        root = self.root
        if root.frozen and root.split:
            raise root.level.refuse("the function writes to its argument")
        if split:
            self.separate()
        return self.values()

    def operand(self, value: Any) -> tuple[Any, bool]:
        """A value as one of the level around, and whether it has a leading dimension."""
        return value.values() if type(value) is Batched and value.level is self.level else (value, False)

    def assign(self, value: Any) -> None:
        value, split = self.operand(value)
        self.writable(split)[0][...] = lined_up(value, self.ndim) if split else value

    # ------------------------------------------------------------------------------------------------------- indexing

    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(p, (ndarray, list)) for p in parts):
            if self.outlived:
                return pick(self.values()[0], key)
            view, index = self.prepared(parts)
            return view.read(index)
        twin = self.twin[key]
        if type(twin) is ndarray:
            return self.through(twin)
        values, split = self.values()  # of numbers for all dimensions NumPy makes a copy
        if self.outlived:
            return values[key]
        return fresh(self.level, values[(ALL,) + parts].copy() if split else values[key].copy(), split)

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(p, (ndarray, list)) for p in parts):
            mask, differs = self.operand(parts[0])
            if len(parts) == 1 and differs and mask.dtype == bool and not raw.ndim(value):
                chosen = parts[0].reshape(parts[0].shape + (1,) * (self.ndim - parts[0].ndim))
                self.assign(raw.where(chosen, value, self))
                return
            view, index = self.prepared(parts)
            view.put(index, value)
        else:
            self.through(self.twin[parts if Ellipsis in parts else (*parts, ...)]).assign(value)

    def prepared(self, parts: tuple[Any, ...]) -> tuple[Batched, list[Any]]:
        """The view that slices and None in an index make, and for each of its dimensions an array or a full slice."""
        parts = tuple(raw.asarray(p) if isinstance(p, list) else p for p in parts)
        if any(_is_mask(p) and self.operand(p)[1] for p in parts):
            raise self.level.refuse("how many elements a mask picks depends on the slice")
        used = sum(p.ndim if _is_mask(p) else p is not None and p is not Ellipsis for p in parts)
        dots = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
        parts = (*parts[:dots], *[ALL] * (self.ndim - used), *parts[dots + 1:])
        plain: list[Any] = []
        index: list[Any] = []
        for p in parts:
            if p is None or isinstance(p, slice):
                plain.append(p)
                index.append(ALL)
            else:
                found = raw.nonzero(self.operand(p)[0]) if _is_mask(p) else [p]
                plain += [ALL] * len(found)
                index += found
        return self.through(self.twin[tuple(plain)]), index

    def across(self, index: list[Any]) -> tuple[tuple[Any, ...], tuple[int, ...], tuple[Any, Any]]:
        """How slices are indexed by arrays that differ between them: the index, one slice's shape, where dimensions go.

        With the numbers of the slices as one more array NumPy puts what is picked first, after these; in a slice it
        comes where the arrays are, if they stand together.
        """
        arrays = {d: self.operand(p) for d, p in enumerate(index) if p is not ALL}
        ndim = max(raw.ndim(v) - split for v, split in arrays.values())
        picked = raw.broadcast_shapes(*(raw.shape(v)[split:] for v, split in arrays.values()))
        together = max(arrays) - min(arrays) + 1 == len(arrays)
        lead = min(arrays) if together else 0
        numbers = raw.arange(self.level.size).reshape((-1,) + (1,) * ndim)
        lined = {d: lined_up(v, ndim) if split else v for d, (v, split) in arrays.items()}
        key = (numbers, *(lined.get(d, ALL) for d in range(len(index))))
        rest = [n for d, n in enumerate(self.shape) if d not in arrays]
        moved = tuple(range(1, 1 + ndim)), tuple(range(1 + lead, 1 + lead + ndim))
        return key, (*rest[:lead], *picked, *rest[lead:]), moved

    def read(self, index: list[Any]) -> Batched:
        values, split = self.values()
        if not split and not any(self.operand(p)[1] for p in index):
            return fresh(self.level, values[tuple(self.operand(p)[0] for p in index)], False)
        if not split:
            values = raw.broadcast_to(values, (self.level.size, *values.shape))
        key, _, (found, wanted) = self.across(index)
        return fresh(self.level, raw.moveaxis(values[key], found, wanted), True)

    def put(self, index: list[Any], given: Any) -> None:
        values, split = self.writable(any(self.operand(p)[1] for p in (given, *index)))
        if not split:
            values[tuple(self.operand(p)[0] for p in index)] = self.operand(given)[0]
            return
        key, shape, (found, wanted) = self.across(index)
        values[key] = raw.moveaxis(self.level.spread(given, shape), wanted, found)

    # ---------------------------------------------------------------------------------------------- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        return silent().run(RULES["ufunc"], ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        return silent().run(RULES["function"], function, arguments, settings)

    # ------------------------------------------------------------------------------------------------ NumPy's methods

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        values, split = self.values()
        if self.outlived:
            return values.astype(dtype, copy=copy)
        if not copy and self.dtype == dtype:
            return self
        return fresh(self.level, values.astype(dtype, order="C"), split)

    def copy(self, order: str = "C") -> Any:
        values, split = self.values()
        return values.copy() if self.outlived else fresh(self.level, values.copy(), split)

    def __repr__(self) -> str:
        values, split = self.values()
        return f"Batched({self.level.size if split else 'all'} slices of shape {self.shape}: {values!r})"

    @property
    def __array_interface__(self) -> Any:
        return self.only("its memory is asked for").__array_interface__

    def only(self, what: str) -> Any:
        """The one value that all slices have."""
        values, split = self.values()
        if split:
            raise self.level.refuse(what)
        return values


RULES: dict[str, Callable[..., Any]] = {}  # filled in by batched_rules.py
