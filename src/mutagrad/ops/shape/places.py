"""Moving tensors between devices: what comes back is the adjoint, to where the input was."""
from __future__ import annotations

from typing import Any

from ...arrays.kinds import IN_USE, device_of, moved
from ...base.device import CPU, device, known, on_mesh, place_named
from ...core.codegen import primitive
from ...core.op import RECORDED
from ...core.storage import TensorBase

_move = primitive("to_device", lambda a, there, here: moved(a, there), settings=("there", "here"),
                  x=lambda xp, g, here, there: xp.to_device(g, here, there))

# How tensors are spread over a mesh; `here`: how they were, where that is known.
_lay = primitive("redistribute", lambda a, there, here: there.laid(a), settings=("there", "here"),
                 x=lambda xp, g, here, there: g if here is None else xp.redistribute(g, here, there))


def laid(x: Any, there: Any, here: Any) -> Any:
    """Return a tensor spread over a mesh, as `there` says."""
    return _lay(x, there, here)


def device_name(x: TensorBase) -> device:
    """Return the name of the device that a tensor is on."""
    place = device_of(x._array) if IN_USE else None
    if place is None:
        return CPU
    return on_mesh(place) if place.over_mesh else known(*place.name)


def at(x: Any, place: Any) -> Any:
    """Return a tensor on a device, None for the CPU: itself where it is there already."""
    here = device_of(x._array) if IN_USE else None
    return x if here is place else _move(x, place, here)


def on(x: Any, wanted: device | str | int | None) -> Any:
    """Return a tensor on the device of this name; None: where it is."""
    return x if wanted is None else at(x, place_named(wanted))


def joined(x: Any, other: TensorBase) -> Any:
    """Return a tensor on the device of another."""
    return at(x, device_of(other._array))


RECORDED.joined = joined
