"""What a program asks about NVIDIA's GPUs: there are none here, as in PyTorch's build for the CPU."""
from __future__ import annotations

from typing import Any

from ....base.errors import NoDevice, NotSupported
from ..absent import absent
from . import amp

__all__ = ["amp"]


def _none(name: str) -> NoDevice:
    return NoDevice(f"cuda.{name}: this build computes on the CPU only", fix="if mutagrad.cuda.is_available(): ...")


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def device_count() -> int:
    return 0


def get_arch_list() -> list[str]:
    return []


# Seeds wait until a GPU is first used, in PyTorch as well; here none ever is.

def manual_seed(seed: int) -> None:
    int(seed)


def manual_seed_all(seed: int) -> None:
    int(seed)


def seed() -> None:
    return None


def seed_all() -> None:
    return None


def get_rng_state_all() -> list[Any]:
    return []


def set_rng_state_all(new_states: Any) -> None:
    if len(list(new_states)):
        raise _none("set_rng_state_all")


# No memory is ever held.

def empty_cache() -> None:
    return None


def memory_allocated(device: Any = None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = memory_allocated


def memory_stats(device: Any = None) -> dict[str, Any]:
    return {}


def set_device(device: Any) -> None:
    """A negative number means no device, as in PyTorch."""
    if not isinstance(device, int) or device >= 0:
        raise _none("set_device")


class _OfADevice:
    """A class, so that programs can name it in annotations; its instances belong to a device."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise _none(type(self).__name__)


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


_needs_a_device = absent("cuda", """
    current_device current_stream default_stream get_device_capability get_device_name get_device_properties get_rng_state init
    initial_seed ipc_collect mem_get_info memory_summary reset_max_memory_allocated reset_peak_memory_stats set_rng_state stream synchronize
    utilization""")


def __getattr__(name: str) -> Any:
    """Functions that need a device exist, and say so when they are called."""
    if name.endswith("Tensor"):
        raise NotSupported(f"cuda.{name}: this build computes on the CPU only", fix=f"mutagrad.{name}")
    return _needs_a_device(name)
