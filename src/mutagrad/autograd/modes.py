"""Switching recording on and off, for a block or a function."""
from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import NotSupported
from ..graph import mode as current
from ..where import OURS

F = TypeVar("F", bound=Callable[..., Any])
_GENERATOR = 0x20  # the flag of a generator's code object, as inspect names it


class _Blocks(threading.local):
    """Of one thread: whether it is in a block of `inference_mode`, of `forward_ad.dual_level`, or of `detect_anomaly`."""

    inference = False
    dual = False
    anomaly = False


blocks = _Blocks()


def _called_by_user() -> bool:
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame.f_code.co_filename not in OURS


class _Mode:
    """A context manager that is also a decorator; entering sets the mode and leaving restores it."""

    grad = True

    def __new__(cls, function: Any = None, *arguments: Any, **settings: Any) -> Any:
        made = super().__new__(cls)
        if callable(function):  # @no_grad without parentheses
            made.__init__()  # type: ignore[misc]
            return made(function)
        return made

    def __init__(self, function: Any = None) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        if blocks.dual and not self.grad and _called_by_user():
            raise NotSupported(f"{type(self).__name__}: not supported inside dual_level", why="what is not recorded has no tangent",
                               fix="open dual_level inside the block, or detach() what shall have no derivative")
        self._before.append(current.grad)
        current.grad = self.grad

    def __exit__(self, *error: Any) -> None:
        current.grad = self._before.pop()

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            return self._around_making(function)  # type: ignore[no-any-return]
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _GENERATOR:
            return self._around_generator(function)

        @functools.wraps(function)
        def wrapped(*arguments: Any, **settings: Any) -> Any:
            with self.again():
                return function(*arguments, **settings)

        return wrapped  # type: ignore[return-value]

    def _around_making(self, made: Any) -> Any:
        """A class: the mode holds while an instance is made."""
        warnings.warn("Decorating classes is deprecated: it acts on __init__ alone; decorate that", FutureWarning, stacklevel=3)
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
    """Recording is on inside, whatever it was outside."""


class set_grad_enabled(_Mode):
    """Sets recording at once; as a context manager, restores it afterwards; as a decorator, acts inside the function."""

    def __new__(cls, mode: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self.grad = bool(mode)
        self._before = [current.grad]
        current.grad = self.grad

    def __enter__(self) -> None:
        current.grad = self.grad

    def __exit__(self, *error: Any) -> None:
        current.grad = self._before[0]

    def __call__(self, function: F) -> F:
        current.grad = self._before[0]
        return super().__call__(function)

    def again(self) -> _Mode:
        return enable_grad() if self.grad else no_grad()


class inference_mode(_Mode):
    """As no_grad here: saved values are protected all the same, so there is no more to switch off. `mode=False` is enable_grad."""

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.wanted, self.grad = bool(mode), not mode
        self._inferred: list[bool] = []

    def __enter__(self) -> None:
        super().__enter__()
        self._inferred.append(blocks.inference)
        blocks.inference = self.wanted

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        blocks.inference = self._inferred.pop()

    def again(self) -> inference_mode:
        return inference_mode(self.wanted)


class strong_zeros(_Mode):
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

    def __new__(cls, mode: bool = True) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        self.wanted, self._before = bool(mode), [current.strong_zeros]
        current.strong_zeros = self.wanted

    def __enter__(self) -> None:
        current.strong_zeros = self.wanted

    def __exit__(self, *error: Any) -> None:
        current.strong_zeros = self._before[0]

    def __call__(self, function: F) -> F:
        current.strong_zeros = self._before[0]
        return super().__call__(function)

    def again(self) -> strong_zeros:
        return strong_zeros(self.wanted)


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

    def __new__(cls, check_nan: bool = True) -> Any:
        return object.__new__(cls)

    def __init__(self, check_nan: bool = True) -> None:
        self.on, self.wanted = True, bool(check_nan)
        self._outside: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._outside.append((blocks.anomaly, current.anomaly))
        blocks.anomaly, current.anomaly = self.on, self.on and self.wanted

    def __exit__(self, *error: Any) -> None:
        blocks.anomaly, current.anomaly = self._outside.pop()

    def again(self) -> detect_anomaly:
        return detect_anomaly(self.wanted)


class set_detect_anomaly(detect_anomaly):
    """The same, from now on; as a context manager, until the block ends."""

    def __new__(cls, mode: bool, check_nan: bool = True) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self.on = bool(mode)
        super().__enter__()

    def __enter__(self) -> None:
        blocks.anomaly, current.anomaly = self.on, self.on and self.wanted


def is_anomaly_enabled() -> bool:
    return blocks.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether, where anomalies are detected, nan is one."""
    return current.anomaly or not blocks.anomaly


def is_grad_enabled() -> bool:
    return current.grad


def is_inference_mode_enabled() -> bool:
    return blocks.inference


class set_multithreading_enabled(_Mode):
    """Accepted as PyTorch's: a sweep runs on the thread that asked for it, either way."""

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.wanted = bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None

    def again(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.wanted)
