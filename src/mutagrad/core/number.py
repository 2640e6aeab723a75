"""Numbers: what may be given where a number is meant, taken by its value when the function is called.

>>> import mutagrad as mg
>>> mg.nn.functional.elu(mg.tensor([-1.]), alpha=mg.tensor(2.))
tensor([-1.2642])

A tensor that requires a gradient is refused there: a number has no history, and the gradient would be lost silently.

>>> try:
...     mg.nn.functional.elu(mg.tensor([-1.]), alpha=mg.tensor(2., requires_grad=True))
... except TypeError as error:
...     print(error.what)
elu: alpha must be a number, and this tensor requires a gradient

Three places see to it. Generated functions take their settings through `number`. A tensor of which this package itself
takes the value, by `float(x)` or by giving it to NumPy, asks `check_taken`; so a function composed of others either
computes with the tensor, and is differentiated, or raises. And a function that decides by the value (`if beta == 0`)
calls `number` first. tests/core/test_numbers.py tries every numeric argument of every function.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..arrays import np
from ..base.errors import BadArgument
from ..base.modes import mode
from ..base.provenance import OURS
from .storage import TensorBase

# Files whose functions stand between the one that asks and the one that is meant.
BETWEEN = {os.path.join(os.path.dirname(os.path.dirname(__file__)), *path.split("/"))
            for path in ("base/modes.py", "core/number.py", "explain/watching.py", "tensors/protocols.py",
                         "torch_api/torch_function.py", "xla/devices.py")}

# What generated functions take as it is. None stands for a bound that was left out.
PLAIN = frozenset({float, int, bool, complex, type(None)})


def number(value: Any) -> Any:
    """Return a setting as Python's number: that of a 0-d tensor by value, so that a later write changes nothing."""
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, (TensorBase, np.generic, np.ndarray)):
        array = value._array if isinstance(value, TensorBase) else value
        if not array.ndim and array.dtype.kind in "biufcV":
            check_lost(value)
            return array.item()
    elif isinstance(value, (int, float, complex)):
        return value
    function, name = argument_of(value)
    name = name or "x"
    kind = f"a tensor of shape {value._array.shape}" if isinstance(value, TensorBase) else type(value).__name__
    raise BadArgument(f"{function}: {name} must be a number, not {kind}", fix=f"{name}=0.5")


def whole_number(value: Any, name: str, what: str) -> int:
    """Return an argument that must be an integer; raise where it is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise BadArgument(f"{name}: {what} must be an integer, not {type(value).__name__}", why=f"got {value!r}",
                          fix=f"{what}=2")
    return int(value.__index__())


def check_lost(value: Any) -> None:
    """Raise if taking the value of this tensor would lose a gradient. Unrecorded, there is none to lose."""
    if isinstance(value, TensorBase) and value._storage.writer is not None and mode.grad:
        function, name = argument_of(value)
        said = name or "what it computes with"
        raise BadArgument(f"{function}: {said} must be a number, and this tensor requires a gradient",
                          why="a number has no history: the gradient would be lost without a word",
                          fix=f"float({name or 'x'}), or {name or 'x'}.detach(), if that is what you want")


def taken_here() -> bool:
    """Return whether it is this package that asks Python or NumPy for a tensor's value; users may do as they like."""
    return next(_our_frames(sys._getframe(2)), None) is not None


def check_taken(tensor: TensorBase) -> None:
    """Raise if this package is about to lose the gradient of a tensor: to be called by what Python and NumPy call."""
    if tensor._storage.writer is not None and next(_our_frames(sys._getframe(2)), None) is not None:
        check_lost(tensor)


def _our_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of this package from here to the user's program, through those of NumPy's and SciPy's functions."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name in OURS:
            if name not in BETWEEN:
                yield frame
        elif frame.f_globals.get("__name__", "").partition(".")[0] not in ("numpy", "scipy"):
            return
        frame = frame.f_back


def argument_of(value: Any) -> tuple[str, str]:
    """Return the function that the user called with this value, the outermost of ours that has it, and the argument.

    If none has, because it was computed from an argument, the outermost of all, without a name.
    """
    function = found = ""
    for frame in _our_frames(sys._getframe(2)):
        code = frame.f_code
        called = code.co_name if code.co_name != "__init__" else type(frame.f_locals.get("self")).__name__
        function = function if found else called
        for name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            given = frame.f_locals.get(name)
            if given is value or given.__class__ in (list, tuple) and any(part is value for part in given):
                function, found = called, name
    return function, found
