"""Where tensors live: on the CPU, on a device of XLA's, or nowhere, as those of the device "meta", which have no data.

A device other than the CPU is found by xla/devices.py, which is loaded when one is first named.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Any

from .errors import BadArgument, BadValue, NoDevice
from .modes import Block
from .sockets import socket

# What PyTorch knows a name for. That there is such a device is another matter.
TYPES = frozenset(["cpu", "cuda", "fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "meta", "mkldnn", "mps", "mtia",
                   "opencl", "opengl", "privateuseone", "ve", "vulkan", "xla", "xpu"])


class device(Block):
    """The name of a place where tensors can live: `device("cpu")`, `device("cuda:0")`, `device("cuda", 0)`.

    >>> import mutagrad as mg
    >>> mg.device("cuda:0").index, mg.zeros(2, device="cpu").device
    (0, device(type='cpu'))
    """

    __module__ = "mutagrad"
    __slots__ = ("type", "index", "place")
    place: Any  # of a tensor over a mesh: the mesh, so that what is made on its device is there

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        if isinstance(type, int) and not isinstance(type, bool):
            if not socket("devices").available("cuda"):
                raise NoDevice(f"device {type}: there is no accelerator that a number could mean", fix='device("cpu")')
            index = type
            type = "cuda"
        if not isinstance(type, (str, device)):
            raise BadArgument(f"device: expects a name, got {type.__class__.__name__}", fix='device("cpu")')
        name, colon, number = str(type).partition(":")
        if name not in TYPES:
            raise BadValue(f"device: {name!r} is no type of device", why="known are " + ", ".join(sorted(TYPES)),
                           fix='device("cpu")')
        if colon and not (number.isdecimal() and index is None) or index is not None and index < 0:
            raise BadValue(f"device: {str(type)!r} with index {index} names no device",
                           why="an index is a number from 0, given once", fix=f'device("{name}:0")')
        self.type, self.index, self.place = name, int(number) if number else index, getattr(type, "place", None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        """`with device("meta"):` makes new tensors there."""
        place_named(self)
        self.enter()
        return self

    def changes(self) -> dict[str, Any]:
        return {"device": self}


CPU, META = device("cpu"), device("meta")


@lru_cache(maxsize=64)
def known(type: str, index: int | None) -> device:
    """Return the name of a device that is there."""
    return device(type, index)


def on_mesh(place: Any) -> device:
    """Return the device of what is on a mesh: of the type of its devices, without a number."""
    made = device(*place.name)
    made.place = place
    return made


def as_device(wanted: device | str | int) -> device:
    return wanted if isinstance(wanted, device) else device(wanted)


def check_device(wanted: device | str | int | None) -> None:
    """Raise unless `wanted` is None or the CPU."""
    if wanted is not None and as_device(wanted).type != "cpu":
        raise NoDevice(f"device {wanted}: only the CPU is supported", fix='device="cpu", or leave it out')


def names_meta(wanted: device | str | int | None) -> bool:
    """Whether this names the device of tensors without data; raises if it names one that is not there."""
    if wanted is None or wanted is CPU:
        return False
    place_named(wanted)
    return as_device(wanted).type == "meta"


def place_named(wanted: device | str | int | None) -> Any:
    """Return where the arrays of a device are: None for the CPU and for "meta"; raise if it is not there."""
    wanted = CPU if wanted is None else as_device(wanted)
    if wanted.place is not None:
        return wanted.place
    return None if wanted.type in ("cpu", "meta") else socket("devices").find(wanted)
