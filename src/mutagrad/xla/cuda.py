"""What a program asks about GPUs where JAX has some: `mutagrad.cuda`'s functions.

Random numbers are drawn on the CPU, by the generator that draws for it, so seeds are that generator's.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..base.device import as_device, device as device_class
from ..base.errors import BadValue
from ..ops.random.generator import default_generator
from . import devices


def _found(device: Any = None) -> Any:
    """JAX's device: the current one, or that of this number or name."""
    if isinstance(device, int):
        return devices.find(device_class("cuda", device)).device
    return devices.find(as_device("cuda" if device is None else device)).device


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    return None


def device_count() -> int:
    return len(devices.listed("cuda"))


def current_device() -> int:
    """Return the number of the device that "cuda" means."""
    return devices.current("cuda")


def set_device(device: Any) -> None:
    """Say which device "cuda" means."""
    wanted = device_class("cuda", device) if isinstance(device, int) else as_device(device)
    if wanted.type != "cuda":
        raise BadValue(f"set_device: Expected a cuda device, but got: {wanted}", fix="set_device(0)")
    devices.set_current(wanted)


class device:
    """A block in which "cuda" means another device."""

    def __init__(self, device: Any) -> None:
        self._wanted, self._before = device, 0

    def __enter__(self) -> None:
        self._before = current_device()
        if self._wanted is not None:
            set_device(self._wanted)

    def __exit__(self, *error: Any) -> None:
        set_device(self._before)


class Properties(NamedTuple):
    """What is known of a device."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_name(device: Any = None) -> str:
    return str(_found(device).device_kind)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the numbers of NVIDIA's generation of devices, (0, 0) where they are not known."""
    major, _, minor = str(getattr(_found(device), "compute_capability", "0.0")).partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device: Any = None) -> Properties:
    found = _found(device)
    return Properties(str(found.device_kind), *get_device_capability(device), mem_get_info(device)[1],
                      int(getattr(found, "core_count", 1)))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def get_arch_list() -> list[str]:
    return [f"sm_{major}{minor}" for major, minor in {get_device_capability(i) for i in range(device_count())}]


def synchronize(device: Any = None) -> None:
    """Return when all that a device was asked to compute is done."""
    devices.jax_devices().wait(_found(device))


# -------------------------------------------------------------------------------------------------------------- memory

def memory_stats(device: Any = None) -> dict[str, int]:
    """Return what XLA says of a device's memory, under its own names."""
    found: dict[str, int] = devices.jax_devices().statistics(_found(device))
    return found


def memory_allocated(device: Any = None) -> int:
    return memory_stats(device).get("bytes_in_use", 0)


def max_memory_allocated(device: Any = None) -> int:
    return memory_stats(device).get("peak_bytes_in_use", 0)


def memory_reserved(device: Any = None) -> int:
    return memory_stats(device).get("pool_bytes", memory_allocated(device))


def max_memory_reserved(device: Any = None) -> int:
    return memory_stats(device).get("peak_pool_bytes", max_memory_allocated(device))


memory_cached = memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return how many bytes are free for this program, and how many there are."""
    found = memory_stats(device)
    limit = found.get("bytes_limit", 0)
    return limit - found.get("bytes_in_use", 0), limit


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    return "\n".join(f"{name:32} {value:>20,}" for name, value in sorted(memory_stats(device).items()))


def empty_cache() -> None:
    """Do nothing: XLA keeps its memory."""


def ipc_collect() -> None:
    """Do nothing: memory is not shared between processes."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: XLA counts from the beginning."""


reset_max_memory_allocated = reset_peak_memory_stats


# --------------------------------------------------------------------------------------------------------------- seeds

def manual_seed(seed: int) -> None:
    default_generator.manual_seed(seed)


def seed() -> None:
    default_generator.seed()


manual_seed_all, seed_all = manual_seed, seed


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state(device: Any = None) -> Any:
    return default_generator.get_state()


def get_rng_state_all() -> list[Any]:
    return [get_rng_state()] * device_count()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    states: Sequence[Any] = list(new_states)
    if states:
        set_rng_state(states[0])
