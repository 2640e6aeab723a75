"""What a program asks about NVIDIA's GPUs: as in PyTorch's build for the CPU, unless JAX has some (xla/cuda.py)."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ....base.errors import BadValue, NotSupported
from ....base.sockets import socket
from ..devices import answers, needing, no_device
from . import amp

__all__ = ["amp"]

_needs_a_device = needing("cuda")


def _present() -> bool:
    return bool(socket("devices").available("cuda"))


def _by_device(name: str, absent: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks the GPU if there is one, and else says what it does without."""
    @wraps(absent)
    def call(*arguments: Any, **settings: Any) -> Any:
        return (getattr(socket("cuda"), name) if _present() else absent)(*arguments, **settings)

    return call


def _set_rng_state_all(new_states: Iterable[Any]) -> None:
    if len(list(new_states)):
        raise no_device("cuda", "set_rng_state_all")


def _set_device(device: Any) -> None:
    """Raise, unless it is a negative number, which means no device as in PyTorch."""
    if not isinstance(device, int) or device >= 0:
        raise no_device("cuda", "set_device")


_ABSENT: dict[str, Callable[..., Any]] = {
    **{name: function for name, function in answers("cuda").items() if name != "__getattr__"},
    "set_rng_state_all": _set_rng_state_all, "set_device": _set_device}
for _name, _function in _ABSENT.items():
    _function.__name__ = _function.__qualname__ = _name
globals().update({name: _by_device(name, function) for name, function in _ABSENT.items()})


class _OfADevice:
    """A class, so that programs can name it in annotations; its instances belong to a device."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise no_device("cuda", type(self).__name__)


class CUDAGraph(_OfADevice):
    """Work of a device, recorded."""


class Event(_OfADevice):
    """A moment in the work of a device: that at which all of it that was asked for is done, by this machine's clock."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if not _present():
            super().__init__()
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        self.synchronize()
        self._at = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time from this to another event in milliseconds."""
        if self._at is None or end_event._at is None:
            raise BadValue("elapsed_time: Both events must be recorded before calculating elapsed time.",
                           fix="start.record(), and end.record() after the work")
        return (end_event._at - self._at) * 1e3

    def synchronize(self) -> None:
        socket("cuda").synchronize()

    def wait(self, stream: Any = None) -> None:
        """Do nothing: a device does its work in one order."""

    def query(self) -> bool:
        self.synchronize()
        return True


class Stream(_OfADevice):
    """A sequence of work of a device. All streams are the same: XLA orders its work by what depends on what."""

    def __init__(self, device: Any = None, priority: int = 0, **settings: Any) -> None:
        if not _present():
            super().__init__()
        self.device, self.priority = device, priority

    def synchronize(self) -> None:
        socket("cuda").synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: they are the same."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: they are the same."""

    def record_event(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record()
        return event

    def query(self) -> bool:
        self.synchronize()
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


class StreamContext(_OfADevice):
    """A block whose work is in one stream."""

    def __init__(self, stream: Any) -> None:
        if not _present():
            super().__init__()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


class graph(_OfADevice):
    """A block whose work is recorded."""


def __getattr__(name: str) -> Any:
    """Find a function that needs a device: it says so when it is called."""
    if _present():
        if name in ("current_stream", "default_stream"):
            return lambda device=None: Stream(device)
        if name == "stream":
            return StreamContext
        if hasattr(socket("cuda"), name) and not name.startswith("_"):
            return getattr(socket("cuda"), name)
    if name.endswith("Tensor"):
        raise NotSupported(f"cuda.{name}: this build computes on the CPU only", fix=f"mutagrad.{name}")
    return _needs_a_device(name)
