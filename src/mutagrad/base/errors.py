"""Every exception of this package: what failed, where in the user's program, why, and the corrected code.

>>> import mutagrad as mg
>>> try:
...     mg.ones(3) + mg.ones(4)
... except RuntimeError as error:
...     print(error.what)
add: shapes (3,) and (4,) do not broadcast

Each class is also the built-in class that PyTorch raises in the same place, so existing `except` clauses keep working.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pickle import PicklingError, UnpicklingError
from typing import Any, TypeVar

from .provenance import Where, called_function, carets, describe, here, is_library, program_frame

F = TypeVar("F", bound=Callable[..., Any])


class MutagradError(Exception):
    """Base of all: `what` happened, `where`, `why`, and how to `fix` it.

    >>> import mutagrad as mg
    >>> try:
    ...     mg.ones(2) + mg.ones(3)
    ... except mg.MutagradError as error:
    ...     print(error.what)
    add: shapes (2,) and (3,) do not broadcast
    """

    def __init__(self, what: str, *, why: str = "", fix: str = "", where: Where | None = None) -> None:
        self.what, self.why, self.fix = what, why, fix
        at = where or here()
        self.where, self.carets, self.called_from = describe(at), carets(at), _called_from(at)
        super().__init__(what)

    def __str__(self) -> str:
        rows = [self.what, f"  at {self.where}"]
        rows += [f"     {self.carets}"] if self.carets else []
        rows += [f"  called from {self.called_from}"] if self.called_from else []
        rows += [f"  why: {self.why}"] if self.why else []
        rows += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(rows)


def _called_from(at: Where) -> str:
    """Return the line of the user's own that led to an error at a library's."""
    frame = program_frame() if is_library(at[0].co_filename) else None
    return "" if frame is None else describe((frame.f_code, frame.f_lasti))


class ShapeError(MutagradError, RuntimeError):
    """Shapes that do not fit each other or the operation."""


class OutOfMemory(MutagradError, RuntimeError, MemoryError):
    """More memory than there is. PyTorch raises RuntimeError, Python MemoryError."""

    @classmethod
    def found_by(cls, name: str, error: BaseException) -> OutOfMemory:
        """Return the error of an operation, from what NumPy raised: it says how much was asked for."""
        return cls(f"{name}: not enough memory", why=str(error),
                   fix="smaller sizes, a smaller type such as mutagrad.float16, or a part at a time")


def may_need_much(function: F) -> F:
    """Make NumPy's error ours in a function that allocates as its arguments say. (Declared operations do so anyway.)"""
    @wraps(function)
    def allocating(*arguments: Any, **settings: Any) -> Any:
        try:
            return function(*arguments, **settings)
        except MemoryError as error:
            if isinstance(error, OutOfMemory):
                raise error from None
            raise OutOfMemory.found_by(called_function() or function.__name__, error) from None

    return allocating  # type: ignore[return-value]


class LostProcess(MutagradError, RuntimeError):
    """A process of a group that has stopped, or was never there."""


class DivisionByZero(MutagradError, RuntimeError, ZeroDivisionError):
    """An integer divided by zero. PyTorch raises RuntimeError, Python ZeroDivisionError."""


class DTypeError(MutagradError, NotImplementedError, TypeError):
    """An element type that the operation cannot take or cannot store. (NotImplementedError is a RuntimeError.)"""


class LinAlgError(MutagradError, RuntimeError):
    """A matrix for which the factorization or inverse does not exist.

    >>> import mutagrad as mg
    >>> try:
    ...     mg.linalg.inv(mg.zeros(2, 2))
    ... except mg.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


class GradientError(MutagradError, RuntimeError):
    """A derivative that was asked for and does not exist."""


class UnmarkedWrite(GradientError):
    """A Function that changes an input, neither says so nor returns it, and so has no gradient for what it was."""


class ChangedSince(GradientError):
    """A checkpointed function that does not compute the second time what it did the first."""


class BadSeed(GradientError, ValueError):
    """A gradient to start from that would make every derivative meaningless."""


class ModeError(MutagradError, RuntimeError):
    """A block that was left without having been entered, or on another thread."""


class WriteError(MutagradError, RuntimeError):
    """A write that has no defined meaning, such as one through a window that overlaps itself."""


class OverlapError(WriteError):
    """A write through a window of which several elements are the same memory."""

    is_expanded = False  # because one element stands for many, as `expand` makes it


class BadIndex(MutagradError, IndexError, RuntimeError):
    """An index out of range, of the wrong type or of the wrong shape. PyTorch raises now one class, now the other."""


class BadIndexType(BadIndex, TypeError):
    """An index of a kind that cannot be one, such as a string: NumPy raises IndexError for some, PyTorch TypeError."""


class BadArgument(MutagradError, TypeError):
    """An argument of the wrong kind."""


class BadTarget(BadArgument, AttributeError):
    """Something that is no file. PyTorch finds that out when it looks for the file's methods."""


class CannotPickle(BadArgument, PicklingError, AttributeError):
    """An object that Python cannot pickle. Python's class depends on what it was that could not be found."""


class BadValue(MutagradError, ValueError, RuntimeError):
    """An argument of the right kind with an impossible value. PyTorch raises now one class, now the other."""


def bad_choice(value: Any, kind: type | tuple[type, ...], what: str, *, why: str = "", fix: str = "") -> MutagradError:
    """Return the error for a value that is none of those to choose from: a bad value if it is of their kind."""
    return (BadValue if isinstance(value, kind) else BadArgument)(what, why=why, fix=fix)


class BadSetting(BadArgument, BadValue, AssertionError):
    """A setting that a layer cannot have. PyTorch raises one class or another for some, and asserts others."""


class BadData(BadArgument, BadValue):
    """Data that no tensor can hold. PyTorch raises one of three classes, depending on how far into it it had got."""


class Mismatch(ShapeError, BadValue, AssertionError):
    """Parts that do not fit each other, such as columns of different lengths. PyTorch asserts some of this."""


class NoSuchItem(BadIndex, ValueError):
    """An index beyond the items of a dataset."""


class MissingKey(MutagradError, KeyError):
    """A key that one of several mappings lacks."""


class WorkerError(MutagradError, RuntimeError):
    """A process that loads data has died, or does not answer in time."""


class BadFile(BadValue, UnpicklingError, EOFError):
    """A file that is damaged, of another format, or asks for what is not allowed. PyTorch's class depends on where."""


class NotSupported(MutagradError, NotImplementedError):
    """Something that PyTorch has and this library does not (yet); names the nearest supported form."""


class NoDevice(NotSupported, AssertionError):
    """A device that is not there. PyTorch's build for the CPU asserts that it is."""


class MissingExtra(MutagradError, ImportError):
    """An optional library that is not installed; names the extra that brings it."""
