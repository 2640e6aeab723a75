"""NumPy, set up for this library.

`token = hush(QUIET); ...; unhush(token)` computes without floating point warnings, as PyTorch does. With `ALARM.setting` instead
it is as quiet, but `ALARM.rung` is no longer empty once something was divided by zero or undefined: the processor
notices that for free.
"""
from __future__ import annotations

from threading import local
from typing import Any

import numpy

np: Any = numpy  # untyped on purpose: other array libraries will stand here, and their stubs differ

__all__ = ["ALARM", "KNOWN", "QUIET", "add_at", "constant", "hush", "np", "unhush"]


_CALL = {"divide": "call", "invalid": "call", "over": "ignore", "under": "ignore"}

try:
    # A context variable of NumPy's holds the error state; setting it directly costs a tenth of `np.errstate`, which is more
    # than a small operation itself. The user's own NumPy code keeps its settings: every use is reset at once.
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    QUIET: Any = _make_extobj(all="ignore")
    hush: Any = _extobj_contextvar.set
    unhush: Any = _extobj_contextvar.reset
except ImportError:  # a NumPy that keeps it elsewhere
    QUIET, _make_extobj = {"all": "ignore"}, dict

    def hush(setting: Any) -> Any:
        state = np.errstate(**setting)
        state.__enter__()
        return state

    def unhush(state: Any) -> None:
        state.__exit__()


class _Alarm(local):
    """Of one thread: the setting that rings, and whether it has rung."""

    def __init__(self) -> None:
        self.rung: list[bool] = []
        self.setting = _make_extobj(**_CALL, call=lambda *_: self.ring())

    def ring(self) -> None:
        self.rung[:] = (True,)


ALARM = _Alarm()


def _wrapped(value: bool | int | float | complex, dtype: Any) -> Any:
    """A number in a type that may be too small for it: integers wrap and floats become inf, as in PyTorch."""
    token = hush(QUIET)
    try:
        return np.array(value, dtype)
    except OverflowError:
        return np.array(value).astype(dtype)
    finally:
        unhush(token)


# Python numbers as 0-d arrays, remembered: NumPy takes twice as long over a Python number as over an array. By the size of
# the float type, then by value; never zero, because -0.0 == 0.0.
KNOWN: dict[int, dict[float, Any]] = {2: {}, 4: {}, 8: {}}


def constant(value: bool | int | float | complex, dtype: Any) -> Any:
    """A Python number as a read-only 0-d array."""
    made = np.array(value, dtype)
    made.flags.writeable = False
    if value and dtype.kind == "f":
        known = KNOWN[dtype.itemsize]
        if len(known) > 4096:
            known.clear()
        known[value] = made  # type: ignore[index]
    return made


def add_at(array: Any, index: tuple[Any, ...], values: Any) -> None:
    """`array[index] += values` with every duplicate counted.

    NumPy is seven times as fast over positions in a vector as over several indices, so those are combined where they can be.
    """
    if len(index) == array.ndim > 1 and array.flags.c_contiguous and all(isinstance(part, np.ndarray) for part in index):
        places = index[0]
        for part, size in zip(index[1:], array.shape[1:]):
            places = places * size + part
        array, index, values = array.reshape(-1), (places.reshape(-1),), np.broadcast_to(values, places.shape).reshape(-1)
    np.add.at(array, index, values)
