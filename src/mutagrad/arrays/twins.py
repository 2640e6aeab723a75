"""What arrays of other kinds have in common: their geometry is that of a twin, an array of NumPy's.

Nobody looks at a twin's elements. Its shape, strides and memory say what a view is, whether two arrays overlap and
whether one is contiguous; all of these are NumPy's own answers, then.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .kinds import raw

ndarray = raw.ndarray


class Twinned(raw.lib.mixins.NDArrayOperatorsMixin):  # type: ignore[misc]
    """An array that stands where NumPy's do. A kind has `level`, `through`, `assign`, `copy` and `only` of its own."""

    __slots__ = ("__weakref__", "twin")
    __class__ = property(lambda self: ndarray)  # type: ignore[assignment]
    __hash__ = object.__hash__
    twin: Any

    shape = property(lambda self: self.twin.shape)
    strides = property(lambda self: self.twin.strides)
    dtype = property(lambda self: self.twin.dtype)
    ndim = property(lambda self: self.twin.ndim)
    size = property(lambda self: self.twin.size)
    itemsize = property(lambda self: self.twin.itemsize)
    nbytes = property(lambda self: self.twin.nbytes)
    flags = property(lambda self: self.twin.flags)

    def through(self, twin: Any) -> Any:
        """Return the view that is to this array as `twin` is to its twin."""
        raise NotImplementedError

    def assign(self, value: Any) -> None:
        """Write values, broadcast to this array."""
        raise NotImplementedError

    def copy(self, order: str = "C") -> Any:
        raise NotImplementedError

    def only(self, what: str) -> Any:
        """Return one of NumPy's arrays with these elements, or refuse: `what` is done that needs them."""
        raise NotImplementedError

    def window(self, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
        """Return a view by shape, type, offset in bytes and strides, of an array without gaps."""
        return self.through(ndarray(shape, dtype, self.twin, offset, strides))

    # ------------------------------------------------------------------------------------------------ NumPy's methods

    def __copy__(self) -> Any:
        return self.copy()

    def view(self, dtype: Any = None) -> Any:
        return self.through(self.twin.view() if dtype is None else self.twin.view(dtype))

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        twin = self.twin.reshape(*shape)
        if not twin.size or raw.may_share_memory(twin, self.twin):
            return self.through(twin)
        return self.copy().reshape(*shape)

    def ravel(self, order: str = "C") -> Any:
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> Any:
        return self.copy().reshape(-1)

    def transpose(self, *axes: Any) -> Any:
        return self.through(self.twin.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> Any:
        return self.through(self.twin.swapaxes(one, other))

    def squeeze(self, axis: Any = None) -> Any:
        return self.through(self.twin.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self.through(self.twin.diagonal(offset, axis1, axis2))

    def conj(self) -> Any:
        return raw.conjugate(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def fill(self, value: Any) -> None:
        self.assign(value)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        self.twin.setflags(write, align, uic)

    @property
    def T(self) -> Any:
        return self.through(self.twin.T)

    @property
    def mT(self) -> Any:
        return self.through(self.twin.swapaxes(-1, -2))

    @property
    def real(self) -> Any:
        return self.through(self.twin.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real.assign(value)

    @property
    def imag(self) -> Any:
        return self.through(self.twin.imag) if self.dtype.kind == "c" else raw.zeros_like(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.assign(value)

    def __len__(self) -> int:
        return len(self.twin)

    def __iter__(self) -> Any:
        return (self[i] if self.ndim == 1 else self[i, ...] for i in range(len(self.twin)))  # type: ignore[index]


def _by_function(name: str) -> Callable[..., Any]:
    function = getattr(raw, name)

    def method(self: Twinned, *arguments: Any, **settings: Any) -> Any:
        return function(self, *arguments, **settings)

    return method


def _by_value(name: str, what: str) -> Callable[..., Any]:
    def method(self: Twinned, *arguments: Any, **settings: Any) -> Any:
        return getattr(self.only(what), name)(*arguments, **settings)

    return method


FUNCTIONS = """sum prod max min mean var std any all argmax argmin cumsum cumprod argsort take repeat round clip trace
    nonzero searchsorted dot compress choose ptp"""
for _name in FUNCTIONS.split():
    setattr(Twinned, _name, _by_function(_name))
for _name, _what in {
        "__array__": "it is made one of NumPy's arrays", "item": "item() is asked for",
        "tolist": "tolist() is asked for",
        "__bool__": "what runs depends on a value: if, while, and, or, not", "__int__": "int(x) is asked for",
        "__float__": "float(x) is asked for", "__complex__": "complex(x) is asked for",
        "tobytes": "its bytes are asked for", "__reduce_ex__": "it is pickled"}.items():
    setattr(Twinned, _name, _by_value(_name, _what))


# --------------------------------------------------------------------------------- functions of NumPy's that give views

def _through(function: Any) -> Callable[..., Any]:
    def rule(array: Any, *arguments: Any, **settings: Any) -> Any:
        if not hasattr(type(array), "level"):
            return function(array, *arguments, **settings)
        twin = function(array.twin, *arguments, **settings)
        if isinstance(twin, (list, tuple)):
            return [array.through(t) for t in twin]
        return array.through(twin)

    return rule


VIEWS: dict[Any, Callable[..., Any]] = {function: _through(function) for function in (
    raw.transpose, raw.moveaxis, raw.swapaxes, raw.squeeze, raw.expand_dims, raw.broadcast_to, raw.diagonal, raw.flip,
    raw.rollaxis, raw.split, raw.array_split, raw.atleast_1d, raw.atleast_2d, raw.atleast_3d,
    raw.lib.stride_tricks.sliding_window_view)}
VIEWS[raw.reshape] = lambda a, *shape, **settings: a.reshape(*shape)
VIEWS[raw.ravel] = lambda a, order="C": a.ravel()
VIEWS[raw.real] = lambda a: a.real
VIEWS[raw.imag] = lambda a: a.imag
VIEWS[raw.copy] = lambda a, order="K", subok=False: a.copy()
VIEWS[raw.broadcast_arrays] = lambda *arrays, subok=False: tuple(
    raw.broadcast_to(a, raw.broadcast_shapes(*(raw.shape(b) for b in arrays))) for a in arrays)
# Functions that ask about shapes, types and memory.
ABOUT = {raw.shape, raw.ndim, raw.size, raw.may_share_memory, raw.shares_memory, raw.iscomplexobj, raw.isrealobj,
         raw.result_type, raw.can_cast}
LIKE = {raw.zeros_like, raw.ones_like, raw.empty_like, raw.zeros, raw.ones, raw.empty}
