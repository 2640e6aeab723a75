"""The seam for other kinds of array: what this package asks of memory beyond what NumPy's functions do.

An array of another kind looks like NumPy's to whoever uses it. It answers NumPy's functions by `__array_ufunc__` and
`__array_function__`, and `isinstance(array, np.ndarray)` by `__class__`; only `type(array)` tells, and only arrays/
asks. Besides, it has a method `window` (a view by shape, strides and offset in bytes) and an attribute `level`: what it
belongs to, a call of `vmap` for example. While a level is on (`mode.now.kind`), arrays that are made anew are of its
kind, too.

A kind is in use from the first time on that `use` is called; until then this module costs nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from typing import Any
from weakref import ref

from ..base.errors import NotSupported
from ..base.modes import OTHER_KIND, call_with, mode
from ..base.operands import Array
from .numpy import np
from .openblas_env import numpy

raw: Any = numpy  # as it is, whatever kinds there are
ndarray: Any = raw.ndarray


class Refused(NotSupported):
    """Something that arrays of another kind cannot do as they are."""

    def forget(self) -> None:
        """Another way was found."""

    def instead(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the function gives, found in another way, for each slice perhaps; or raise this."""
        raise self


class Level:
    """What arrays of another kind belong to. `since` is the order of the first node that was recorded in it."""

    __slots__ = ("__weakref__", "open", "outer", "since", "until")
    replays = False  # what runs while it is on is recorded, and runs again without Python
    repeats = False  # that is part of a program which runs as often as the program likes: a round, a branch
    exchanges = False  # writing to its arrays gives their memory another value, which nothing changes
    name: tuple[str, int | None] | None = None  # of a device: its type and number
    on_host = False  # this is NumPy's memory
    over_mesh: bool = False  # over the devices of a mesh

    def __init__(self, outer: Level | None = None, since: int = 0) -> None:
        self.outer, self.since, self.until = outer, since, 0  # orders: of the first node inside, of the first after
        self.open = True  # it is still on

    @property
    def on_device(self) -> bool:
        """Whether it only says where arrays are made, which every call of the user's decides anew."""
        return self.name is not None

    @property
    def real(self) -> Any:
        """The innermost level around that has arrays of its own: this one, as a rule."""
        return self

    def adopt(self, array: Array) -> Array:
        """An array of this kind with the values of one of NumPy's, whose memory it may take."""
        raise NotImplementedError

    def adopt_as(self, array: Array, like: Array) -> Array:
        """The same, for an array that belongs to this level and perhaps to others."""
        return self.adopt(array)

    def around(self, array: Array) -> list[Level]:
        """All levels that an array of this one belongs to, the newest first."""
        return [self]

    def refuse(self, what: str, fix: str = "") -> Refused:
        """An error that says what arrays of this kind cannot do."""
        return Refused(what, fix=fix)

    def before_write_outside(self) -> None:
        """Memory that is older than this level is about to change. Raise Refused if it must not."""

    def before_user_code(self, name: str, arrays: list[Array]) -> None:
        """Raise Refused if a custom Function of this name, which may look at values, must not be called with these."""

    def drawing(self, source: Any, owner: Any) -> Any:
        """NumPy's generator of random numbers as one that draws for arrays of this kind."""
        return source

    def before_offset(self, array: Array) -> None:
        """Where an array begins in its memory is about to be asked."""
        if self.outer is not None:
            self.outer.before_offset(array)

    def lasting(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives whose arrays stay when this is over."""
        if self.outer is not None:
            return self.outer.lasting(function, *arguments)
        return call_with({"kind": None}, function, *arguments)

    def each_run(self, function: Callable[[], tuple[Any, Callable[[], None]]],
                 course: Any = None) -> Any:
        """The numbers that a function of Python's gives, and its effect done.

        Where they are computed again in each run of a program, `course` knows those of the runs to come.
        """
        if self.outer is not None:
            return self.outer.each_run(function, course)
        numbers, commit = function()
        commit()
        return numbers

    def all_values(self, array: Array) -> Array:
        """All elements as one of NumPy's arrays, to check them."""
        raise NotImplementedError

    def doubt(self, array: Array, least: int, most: int, error: Callable[[Any, Any], Exception]) -> None:
        """Check elements that are not known yet when the program runs. See `check_range`."""

    def has(self, order: int) -> bool:
        """Whether a node of this order was recorded inside. Later ones have smaller numbers."""
        return self.until < order < self.since

    def share(self, array: Array) -> Array:
        """What an adjoint from outside means inside: what `total` makes it again."""
        raise NotImplementedError

    def outlived(self, array: Array) -> bool:
        """Whether an array was made inside, and is not part of this level any more."""
        return False

    def index_outside(self, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], int]:
        """What an index with arrays of this kind means outside, and along which dimension adjoints lie there."""
        raise NotImplementedError

    def total(self, array: Array) -> Array:
        """What an adjoint of this kind means to something outside of the level."""
        raise NotImplementedError


# Those whose arrays are alive. No WeakSet: one thread may begin a level while another goes through them.
LEVELS: dict[int, ref[Level]] = {}
IN_USE: list[bool] = []  # empty as long as there is no other kind


def living_levels() -> list[Level]:
    return [level for reference in list(LEVELS.values()) if (level := reference()) is not None]


def any_open() -> bool:
    """Return whether some level is on, on whatever thread: storages of results then tell that they were made inside."""
    return any(level.open for level in living_levels())


def left_levels(order: int) -> list[Level]:
    """Return those that are over and in which the node of this order was recorded, the oldest first."""
    found = [level for level in living_levels() if not level.open and level.has(order)]
    return sorted(found, key=lambda level: -level.since)


def others() -> bool:
    """Return whether there are arrays of other kinds, which a sweep may come upon."""
    return bool(IN_USE) and len(LEVELS) > 0


def is_plain(*arrays: Any) -> bool:
    """Return whether none of these is an array of another kind."""
    return not IN_USE or not any(hasattr(type(a), "level") for a in arrays)


def kind_of(values: Iterable[Any]) -> type:
    """Return of which kind arrays are: the first that is not NumPy's."""
    return next((type(v) for v in values if hasattr(type(v), "level")), ndarray)


def window(buffer: Array, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> Array:
    """Return a view of a contiguous array by geometry, in bytes."""
    if IN_USE and type(buffer) is not ndarray:
        return buffer.window(shape, dtype, offset, strides)
    made: Array = ndarray(shape, dtype, buffer, offset, strides)
    return made


def real_kind() -> Any:
    """Return the level that is on and has arrays of its own; None if there is none on this thread."""
    level = mode.now.kind
    return None if level is None else level.real


def of_kind(array: Array) -> Array:
    """Return an array as one of the kind that is on."""
    level: Level | None = mode.now.kind
    return array if level is None or type(array) is not ndarray else level.adopt(array)


def lasting(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function whose arrays stay when the level that is on is over, as what an optimizer keeps does."""
    level: Level | None = mode.now.kind if OTHER_KIND else None
    return function(*arguments) if level is None else level.lasting(function, *arguments)


def is_replayed() -> bool:
    """Return whether what runs is being recorded as a program, which runs again without Python."""
    level: Level | None = mode.now.kind if OTHER_KIND else None
    return level is not None and level.replays


def is_repeated() -> bool:
    """Return whether what runs is being recorded as a part of a program that runs any number of times."""
    level: Level | None = mode.now.kind if OTHER_KIND else None
    return level is not None and level.repeats


def share_memory(a: Array, b: Array) -> bool:
    """Return whether an element of one is memory of the other: yes, too, where finding out would be a search."""
    try:
        return bool(np.shares_memory(a, b, max_work=10_000))
    except np.exceptions.TooHardError:
        return True


def pick(array: Array, index: tuple[Any, ...]) -> Array:
    """Return `array[index]`; of an index NumPy asks no protocol, so that is done here."""
    return (_beside(array, index if index.__class__ is tuple else (index,)) if IN_USE else array)[index]


def take_rows(array: Array, rows: Any) -> Array:
    """Return `array[rows]`, which NumPy does faster so."""
    return np.take(_beside(array, (rows,)), rows, 0)


def _beside(array: Array, index: tuple[Any, ...]) -> Array:
    """The array as one of the kind of the arrays in an index."""
    if type(array) is ndarray:
        for part in index:
            if isinstance(part, ndarray) and type(part) is not ndarray:
                return part.level.adopt_as(array, part)
    return array


def computed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of arrays gives, found in another way where their kind refuses."""
    try:
        return function(*arguments)
    except Refused as refusal:
        return refusal.instead(function, *arguments)


def all_values(array: Any) -> Any:
    """Return the elements as one of NumPy's arrays, of all slices where there are any, to check them."""
    return array.level.all_values(array) if IN_USE and hasattr(type(array), "level") else array


def remembered(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator like `lru_cache`; arrays that the function makes are NumPy's, whichever kind is on."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return lru_cache(count)(lambda *arguments: call_with({"kind": None}, function, *arguments))

    return decorate


def extremes(array: Array) -> tuple[Any, Any]:
    """Return the smallest and the largest element, of all slices where there are any."""
    plain = all_values(array)
    return (plain.min(), plain.max()) if plain.size else (0, 0)


def check_range(array: Array, least: int, most: int, error: Callable[[Any, Any], Exception]) -> tuple[Any, Any]:
    """Return the smallest and the largest element, of all slices where there are any; raise if one is out of range.

    Where they are not known yet it is raised when the program runs. `error` makes it, of an element that is out of
    range and of the place in the user's program (None: where we are).
    """
    if not array.size:
        return least, most
    low, high = extremes(array)
    if unknown(array):
        array.level.doubt(array, least, most, error)
    elif low < least or high > most:
        raise error(low if low < least else high, None)
    return low, high


def is_frozen(array: Any) -> bool:
    """Return whether an array's values never change, but are exchanged: a copy of one is free, and stays as it is."""
    return hasattr(type(array), "level") and array.level.exchanges


def is_spread(array: Any) -> bool:
    """Return whether an array is spread over a mesh of devices."""
    return hasattr(type(array), "level") and array.level.over_mesh


def unknown(array: Any) -> bool:
    """Return whether an array has no values yet, because a step is being traced; checks of values then find nothing."""
    return bool(IN_USE) and array.size > 0 and not all_values(array).size


def anywhere(condition: Array) -> bool:
    """Return whether a condition holds for some element, of whichever slice: how values are checked."""
    return bool(all_values(condition).any())


def perhaps(condition: Array) -> bool:
    """Return whether a condition holds for some element, or may once values are known: how formulas are chosen."""
    return unknown(condition) or anywhere(condition)


def accumulate(array: Array, values: Array) -> None:
    """Add to an adjoint, or to a window on one."""
    if IN_USE and is_frozen(array):
        array.accumulate(values)
    else:
        np.add(array, values, array)


def zeros(shape: tuple[int, ...], dtype: Any, like: Any = None) -> Array:
    """Return zeros of the kind of another array."""
    if like is None or type(like) is ndarray or not hasattr(type(like), "level"):
        return np.zeros(shape, dtype)
    return like.level.adopt_as(raw.zeros(shape, dtype), like)


def levels_of(array: Any) -> list[Any]:
    """Return the levels that an array belongs to, the newest first."""
    return array.level.around(array) if hasattr(type(array), "level") else []


def require_plain(why: str, *arrays: Array) -> None:
    """Refuse arrays of other kinds, for which a function would not do what it says."""
    for array in arrays:
        if hasattr(type(array), "level"):
            raise array.level.refuse(why)


def device_of(array: Any) -> Any:
    """Return the device whose memory an array is in, a Level; None for NumPy's memory."""
    while hasattr(type(array), "level"):
        level = array.level
        if level.name is not None:
            return None if level.on_host else level
        if not hasattr(type(array), "root"):
            return None
        array = array.root.data  # that of all slices
    return None


def laid_like(array: Array, other: Any) -> Array:
    """Return one of NumPy's arrays in the memory where another is: over a mesh, spread as that is."""
    device = device_of(other)
    if device is None or type(array) is not ndarray:
        return moved(array, device)
    return device.adopt_as(array, other)  # type: ignore[no-any-return]


def address_of(array: Any) -> int:
    """Return the address of the first element; of an array of another kind one that stands for it."""
    return getattr(array, "twin", array).__array_interface__["data"][0]  # type: ignore[no-any-return]


def moved(array: Array, device: Any) -> Array:
    """Return an array in the memory of a device; None: in NumPy's."""
    here = device_of(array)
    if here is device:
        return array
    if not hasattr(type(array), "level"):
        return device.adopt(raw.asarray(array))  # type: ignore[no-any-return]
    if array.level.name is None:
        raise array.level.refuse("values of each slice move to another device")
    return (here or device).move(array, device)  # type: ignore[no-any-return]


def host(array: Array, why: str) -> Array:
    """Return one of NumPy's arrays with the values of one that may be of another kind."""
    return array.only(why) if hasattr(type(array), "level") else array


class Like(Level):
    """What is on while a rule runs on adjoints of levels that may be over: what it makes anew is of their kinds."""

    def __init__(self, array: Array) -> None:
        super().__init__(mode.now.kind)
        self.array = array

    @property
    def on_device(self) -> bool:
        return self.array.level.name is not None

    def adopt(self, array: Array) -> Array:
        return self.array.level.adopt_as(array, self.array)


# ---------------------------------------------------------------------------- functions of NumPy's that ask no protocol

def _making(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function that makes an array: of the kind that is on."""
    @wraps(function)
    def make(*arguments: Any, **settings: Any) -> Array:
        made = function(*arguments, **settings)
        return of_kind(made) if OTHER_KIND else made

    return make


def _full(shape: Any, fill_value: Any, dtype: Any = None, **settings: Any) -> Array:
    if is_plain(fill_value):
        return _making(raw.full)(shape, fill_value, dtype, **settings)
    made = fill_value.level.adopt_as(raw.empty(shape, fill_value.dtype if dtype is None else dtype), fill_value)
    made[...] = fill_value
    return made


def _converting(function: Callable[..., Array],
                finish: Callable[[Array, dict[str, Any]], Array]) -> Callable[..., Array]:
    """A function that makes an array of anything."""
    @wraps(function)
    def convert(value: Any, dtype: Any = None, **settings: Any) -> Array:
        if not hasattr(type(value), "level"):
            try:
                return function(value, dtype, **settings)
            except Refused as refusal:  # there are others in a list
                if not isinstance(value, (list, tuple)):
                    raise
                refusal.forget()
                value = np.stack([v if isinstance(v, ndarray) else raw.asarray(v) for v in value])
        return finish(value if dtype is None else value.astype(dtype, copy=False), settings)

    return convert


def _ordered(array: Array) -> Array:
    return array.reshape(array.shape or 1) if array.flags.c_contiguous else array.copy()


def use(level: Level) -> None:
    """From now on arrays of another kind may turn up."""
    key = id(level)
    LEVELS[key] = ref(level, lambda _: LEVELS.pop(key, None))
    if not IN_USE:
        IN_USE.append(True)
        for name in ("zeros", "empty", "ones"):
            setattr(np, name, _making(getattr(raw, name)))
        np.full = _full
        np.array = _converting(raw.array, lambda a, settings: a.copy() if settings.get("copy", True) else a)
        np.asarray = _converting(raw.asarray, lambda a, _: a)
        np.ascontiguousarray = _converting(raw.ascontiguousarray, lambda a, _: _ordered(a))
