"""Devices other than the CPU: JAX's, under PyTorch's names.

"xla" is what JAX takes by default, "cuda" its GPUs. JAX is loaded when one of them is first named, and for "cuda" only
where a plugin for GPUs is installed. From the first on, functions that are called with tensors look where these are:
what such a function makes anew belongs to the same device, and tensors of two devices are an error (`placed`).

    >>> import mutagrad as mg
    >>> x = mg.ones(2, device="xla")
    >>> (x * 2).device
    device(type='xla', index=0)
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..arrays import np
from ..arrays.kinds import device_of, moved
from ..base.device import device
from ..base.errors import BadValue, MissingExtra, NoDevice
from ..base.modes import DISPATCHING, call_with, mode
from ..core.storage import TensorBase
from ..ops.shape.places import at
from ..torch_api import torch_function

PLATFORMS: dict[str, str | None] = {"xla": None, "cuda": "cuda"}  # whose devices a name means, as JAX calls them
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13")
_current: dict[str, int] = {}  # by type: the device that a name without a number means

# --------------------------------------------------------------------------------------------------- which there are


def _jax(wanted_by: str) -> Any:
    """The module of this package that knows JAX's devices."""
    try:
        import_module("jax")
    except ImportError:
        raise MissingExtra(f"{wanted_by}: needs JAX, which is not installed",
                           why="XLA's devices are reached through it", fix="pip install 'mutagrad[xla]'") from None
    return import_module("mutagrad.arrays.xla.devices")


def jax_devices(wanted_by: str = "device") -> Any:
    """Return the module that asks JAX's devices."""
    return _jax(wanted_by)


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it would be in
        return False


@cache
def _listed(platform: str | None) -> tuple[Any, ...]:
    return tuple(_jax("device").devices(platform))


def listed(type: str) -> tuple[Any, ...]:
    """Return JAX's devices of a type; none where JAX need not even be asked."""
    if type not in PLATFORMS:
        return ()
    if PLATFORMS[type] == "cuda" and not (_installed("jax") and any(map(_installed, PLUGINS))):
        return ()
    return _listed(PLATFORMS[type])


def available(type: str) -> bool:
    """Return whether there are devices of this type."""
    return bool(listed(type))


def current(type: str) -> int:
    """Return the number of the device that a name without one means."""
    return _current.get(type, 0)


def set_current(wanted: device) -> None:
    """Say which device a name without a number means."""
    _current[wanted.type] = find(wanted).name[1]


def find(wanted: device) -> Any:
    """Return the place of a device, or raise if it is not there."""
    found = listed(wanted.type)
    if not found:
        raise NoDevice(f"device {wanted}: only the CPU is supported", fix='device="cpu", or leave it out')
    index = current(wanted.type) if wanted.index is None else wanted.index
    if index >= len(found):
        raise NoDevice(f"device {wanted}: invalid device ordinal", why=f"there are {len(found)} of this type",
                       fix=f'device="{wanted.type}:{len(found) - 1}"')
    begin()
    return _jax("device").place_of(found[index], (wanted.type, index))


def begin() -> None:
    """Have functions look where their arguments are, from now on and on every thread."""
    if placed in torch_function.PLACING:
        return
    import_module("mutagrad.xla.kernels")  # as which operations are computed there
    torch_function.watch()
    torch_function.PLACING[:] = [placed]
    DISPATCHING.add(-1)  # no thread's mark, so none takes it back


# ---------------------------------------------------------------------------------------------------- calls on devices

# Functions that tensors of several devices may be given to, or whose results are where they say.
_FREE = """
    to cpu cuda type_as to_device copy_ backward set_ set_data is_set_to is_same_size tensor_split numpy __array__
    pack_padded_sequence pad_packed_sequence network padded register_hook retain_grad requires_grad_ as_tensor
    asarray __reduce_ex__ __deepcopy__ storage untyped_storage full_tensor to_local"""
_ANYWHERE = frozenset(_FREE.split())
# Those whose arguments after the first may be indices in the CPU's memory.
_INDEXING = frozenset(["getitem", "index_put", "index_put_", "setitem", "_unsafe_index"])


def tensors(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among arguments, in containers too."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)
        elif isinstance(value, dict):
            yield from tensors(value.values())


def placed(raw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], looks: bool) -> Any:
    """Call a function so that what it makes anew is on the device of its arguments."""
    now = mode.now
    kind = now.kind
    if kind is not None and not kind.on_device:  # vmap or a trace, which knows that itself
        return raw(*args, **kwargs) if now.cast is None else now.cast(raw, args, kwargs)
    name = raw.__name__
    place = None
    if looks and name not in _ANYWHERE:
        place = common_place(name, (*args, *kwargs.values()))
        if place is not None:
            args, kwargs = _joined(args, place), _joined(kwargs, place)
    found = (_called(now.cast, raw, args, kwargs) if place is kind
             else call_with({"kind": place}, _called, now.cast, raw, args, kwargs))
    return found if place is None or "device" in kwargs else _settled(found, place)


def _called(cast: Any, raw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return raw(*args, **kwargs) if cast is None else cast(raw, args, kwargs)


def common_place(name: str, values: Iterable[Any]) -> Any:
    """Return the device that tensors are on, None for the CPU; raise if they are on several.

    Single numbers may be in the CPU's memory, and so may indices.
    """
    found: list[Any] = []
    on_cpu = False
    for x in tensors(values):
        place = device_of(x._array)
        if place is None:
            on_cpu = on_cpu or x._array.ndim > 0 and not (name in _INDEXING and found)
        elif place not in found:
            found.append(place)
    if len(found) > 1 or found and on_cpu:
        raise two_devices(name, found)
    return found[0] if found else None


def two_devices(name: str, found: list[Any]) -> BadValue:
    names = [_told(place) for place in found] + ["cpu"]
    return BadValue(f"{name}: Expected all tensors to be on the same device, but found at least two devices, "
                    f"{names[0]} and {names[1]}!", why="what is computed on a device is computed of what is there",
                    fix="distribute_tensor(x, mesh)" if found[0].over_mesh else f'x.to("{names[0]}"), or y.cpu()')


def _told(place: Any) -> str:
    kind, index = place.name
    return f"a mesh of {kind}" if place.over_mesh else f"{kind}:{index}"


def _joined(values: Any, place: Any) -> Any:
    """Arguments, with numbers from the CPU on the device if a gradient has to find its way back to them."""
    if isinstance(values, TensorBase):
        away = values._storage.writer is not None and device_of(values._array) is not place
        return at(values, place) if away else values
    if isinstance(values, dict):
        return {name: _joined(value, place) for name, value in values.items()}
    if type(values) in (list, tuple):
        return type(values)([_joined(value, place) for value in values])
    return values


def _settled(found: Any, place: Any) -> Any:
    """Results on a device, where a library that knows only NumPy's memory has computed them."""
    if isinstance(found, TensorBase):
        if type(found._array) is np.ndarray and found._offset is None and found._storage.root is None:
            found._array = found._storage.buffer = moved(found._array, place)
    elif isinstance(found, (list, tuple)):
        for one in found:
            _settled(one, place)
    return found

