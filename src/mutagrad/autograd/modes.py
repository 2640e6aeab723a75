"""Switching recording on and off, for a block or a function."""
from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import BadArgument, BadValue, NotSupported
from ..base.modes import Block, Modes, amend, call_with, mode as current
from ..base.provenance import OURS
from ..core.evidence import not_recording

if TYPE_CHECKING:
    from typing_extensions import Self

F = TypeVar("F", bound=Callable[..., Any])
_GENERATOR = 0x20  # the flag of a generator's code object, as inspect names it


def _called_by_user() -> bool:
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame.f_code.co_filename not in OURS


class _Mode(Block):
    """A context manager that is also a decorator."""

    grad = True

    def __new__(cls, function: Any = None, *arguments: Any, **settings: Any) -> Any:
        made = super().__new__(cls)
        if callable(function):  # @no_grad without parentheses
            made.__init__()  # type: ignore[misc]
            return made(function)
        return made

    def __init__(self, function: Any = None) -> None:
        pass

    def changes(self) -> dict[str, Any]:
        return {"recorded": self.grad}

    def check(self) -> None:
        """Raise where the mode cannot be entered."""
        if current.now.dual is not None and not self.grad and _called_by_user():
            raise NotSupported(f"{type(self).__name__}: not supported inside dual_level",
                               why="what is not recorded has no tangent",
                               fix="open dual_level inside the block, or detach() what shall have no derivative")

    def __enter__(self) -> None:
        self.check()
        if not self.grad:
            not_recording()
        self.enter()

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            return self._around_making(function)  # type: ignore[no-any-return]
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _GENERATOR:
            return self._around_generator(function)

        @functools.wraps(function)
        def wrapped(*arguments: Any, **settings: Any) -> Any:
            self.check()
            if not self.grad:
                not_recording()
            return call_with(self.changes(), function, *arguments, **settings)

        return wrapped  # type: ignore[return-value]

    def _around_making(self, made: Any) -> Any:
        """A class: the mode holds while an instance is made."""
        warnings.warn("Decorating classes is deprecated: it acts on __init__ alone; decorate that",
                      FutureWarning, stacklevel=3)
        made.__init__ = self(made.__init__)
        return made

    def _around_generator(self, function: F) -> F:
        """The mode holds while the generator runs, not while it waits."""
        @functools.wraps(function)
        def wrapped(*arguments: Any, **settings: Any) -> Any:
            generator = function(*arguments, **settings)
            resume: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    with self.again():
                        answer = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    resume = functools.partial(generator.send, (yield answer))
                except GeneratorExit:
                    with self.again():
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)

        return wrapped  # type: ignore[return-value]

    def again(self) -> _Mode:
        return type(self)()


class no_grad(_Mode):
    """Nothing is recorded inside; writes made there are not part of the differentiated program.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> with mg.no_grad():
    ...     x -= 0.5
    >>> x
    tensor([0.5000, 0.5000], requires_grad=True)
    """

    grad = False


class enable_grad(_Mode):
    """Recording is on inside, whatever it was outside.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> with mg.no_grad(), mg.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """


class _Setting(_Mode):
    """Sets a mode at once; as a context manager, for the block alone; as a decorator, inside the function."""

    def __new__(cls, *arguments: Any, **settings: Any) -> Self:
        return object.__new__(cls)

    _at: Modes | None = None

    def _set(self) -> None:
        self._found = {name: getattr(current.now, name) for name in self.changes()}
        amend(**self.changes())
        self._at = current.now

    def _unset(self) -> None:
        """Take back what making this object has set: it is for a block or a function only."""
        if current.now is self._at:
            amend(**self._found)
        self._at = None

    def __enter__(self) -> None:
        self._unset()
        if not self.grad:
            not_recording()
        self.enter()

    def __exit__(self, *error: Any) -> None:
        if self._at is not None and not self.__dict__.get("_entries"):  # left without a block: what it has set
            self._at = current.now
            self._unset()
        else:
            self.leave()

    def __call__(self, function: F) -> F:
        self._unset()
        return super().__call__(function)


class set_grad_enabled(_Setting):
    """Sets recording at once; as a context manager, for the block alone; as a decorator, inside the function.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> with mg.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise BadArgument(f"set_grad_enabled: mode must be True or False, not {type(mode).__name__}",
                              fix="set_grad_enabled(True)")
        self.grad = bool(mode)
        if not self.grad:
            not_recording()
        self._set()

    def again(self) -> _Mode:
        return enable_grad() if self.grad else no_grad()


class inference_mode(_Mode):
    """As no_grad: saved values are protected all the same, so there is no more to switch off; off, as enable_grad.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> with mg.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        self.wanted, self.grad = bool(mode), not mode

    def changes(self) -> dict[str, Any]:
        return {"recorded": self.grad, "inference": self.wanted}

    def again(self) -> inference_mode:
        return inference_mode(self.wanted)


class strong_zeros(_Setting):
    """Whether an adjoint that is exactly zero stays zero where the derivative is infinite or undefined: on, unless set.

    Sets it at once; as a context manager, restores it afterwards. Off, gradients are PyTorch's, nan included.

    >>> import mutagrad as mg
    >>> x = mg.tensor([0., 4.], requires_grad=True)
    >>> mg.where(x > 0, x.sqrt(), 0.).sum().backward()
    >>> x.grad
    tensor([0.0000, 0.2500])
    >>> with mg.autograd.strong_zeros(False):
    ...     mg.autograd.grad(mg.where(x > 0, x.sqrt(), 0.).sum(), x)[0]
    tensor([   nan, 0.2500])
    """

    def __init__(self, mode: bool = True) -> None:
        self.wanted = bool(mode)
        self._set()

    def changes(self) -> dict[str, Any]:
        return {"strong_zeros": self.wanted}

    def again(self) -> strong_zeros:
        return strong_zeros(self.wanted)


class set_nan_policy(_Setting):
    """What `backward()` does about a loss, or a gradient to start from, that is nan: "ignore", "warn" or "raise".

    Sets it at once; as a context manager, for the block alone. A warning comes once for each line of the program, and
    says where the first nan was made.

    >>> import mutagrad as mg
    >>> x = mg.tensor([-1., 4.], requires_grad=True)
    >>> with mg.autograd.set_nan_policy("raise"):
    ...     try:
    ...         x.log().sum().backward()
    ...     except RuntimeError as error:
    ...         print(error.what)
    backward: the loss is nan
    """

    def __init__(self, policy: str) -> None:
        if policy not in ("ignore", "warn", "raise"):
            raise BadValue(f"set_nan_policy: {policy!r} is none of 'ignore', 'warn', 'raise'",
                           fix="set_nan_policy('warn')")
        self.wanted = policy
        self._set()

    def changes(self) -> dict[str, Any]:
        return {"nan_policy": self.wanted}

    def again(self) -> set_nan_policy:
        return set_nan_policy(self.wanted)


def get_nan_policy() -> str:
    """Return what `set_nan_policy` was last told.

    >>> import mutagrad as mg
    >>> mg.autograd.get_nan_policy()
    'warn'
    """
    return current.now.nan_policy


class detect_anomaly(_Mode):
    """Inside, the first nan that a sweep makes is an error that names the operation and its line.

    >>> import mutagrad as mg
    >>> x = mg.tensor(1., requires_grad=True)
    >>> with mg.autograd.detect_anomaly():
    ...     try:
    ...         (x * 0).sqrt().backward()
    ...     except RuntimeError as error:
    ...         print(error.what)
    detect_anomaly: Function 'MulBackward0' returned nan values in its 0th output
    """

    def __new__(cls, check_nan: bool = True) -> Self:
        return object.__new__(cls)

    def __init__(self, check_nan: bool = True) -> None:
        self.on, self.wanted = True, bool(check_nan)

    def changes(self) -> dict[str, Any]:
        return {"anomaly": self.on, "anomaly_checks_nan": self.wanted or not self.on}

    def again(self) -> detect_anomaly:
        return detect_anomaly(self.wanted)


class set_detect_anomaly(_Setting, detect_anomaly):
    """The same, from now on; as a context manager, until the block ends.

    >>> import mutagrad as mg
    >>> with mg.autograd.set_detect_anomaly(True):
    ...     mg.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.on, self.wanted = bool(mode), bool(check_nan)
        self._set()


def is_anomaly_enabled() -> bool:
    """Return whether `detect_anomaly` is on.

    >>> import mutagrad as mg
    >>> mg.is_anomaly_enabled()
    False
    """
    return current.now.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether, where anomalies are detected, nan is one.

    >>> import mutagrad as mg
    >>> mg.is_anomaly_check_nan_enabled()
    True
    """
    return current.now.anomaly_checks_nan


def is_grad_enabled() -> bool:
    """Return whether operations are recorded on this thread.

    >>> import mutagrad as mg
    >>> mg.is_grad_enabled()
    True
    >>> with mg.no_grad():
    ...     mg.is_grad_enabled()
    False
    """
    return current.grad


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in inference mode.

    >>> import mutagrad as mg
    >>> mg.is_inference_mode_enabled()
    False
    """
    return current.now.inference


class set_multithreading_enabled(_Mode):
    """Accepted as PyTorch's: a sweep runs on the thread that asked for it, either way.

    >>> import mutagrad as mg
    >>> x = mg.ones(1, requires_grad=True)
    >>> with mg.autograd.set_multithreading_enabled(False):
    ...     x.sum().backward()
    >>> x.grad
    tensor([1.])
    """

    def __new__(cls, mode: bool) -> Self:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self.wanted = bool(mode)

    def changes(self) -> dict[str, Any]:
        return {}

    def again(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.wanted)
