"""What a program asks about NVIDIA's GPUs: there are none here, as in PyTorch's build for the CPU."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....base.errors import NotSupported
from ..devices import answers, needing, no_device
from . import amp

__all__ = ["amp"]

globals().update(answers("cuda"))
_needs_a_device = needing("cuda")


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    if len(list(new_states)):
        raise no_device("cuda", "set_rng_state_all")


def set_device(device: Any) -> None:
    """Raise, unless it is a negative number, which means no device as in PyTorch."""
    if not isinstance(device, int) or device >= 0:
        raise no_device("cuda", "set_device")


class _OfADevice:
    """A class, so that programs can name it in annotations; its instances belong to a device."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise no_device("cuda", type(self).__name__)


class CUDAGraph(_OfADevice):
    """Work of a device, recorded."""


class Event(_OfADevice):
    """A moment in the work of a device."""


class Stream(_OfADevice):
    """A sequence of work of a device."""


class StreamContext(_OfADevice):
    """A block whose work is in one stream."""


class graph(_OfADevice):
    """A block whose work is recorded."""


def __getattr__(name: str) -> Any:
    """Find a function that needs a device: it says so when it is called."""
    if name.endswith("Tensor"):
        raise NotSupported(f"cuda.{name}: this build computes on the CPU only", fix=f"mutagrad.{name}")
    return _needs_a_device(name)
