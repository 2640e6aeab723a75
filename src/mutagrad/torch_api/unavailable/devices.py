"""What programs ask about devices: a table of what each module answers.

Only the CPU is here. For the rest, a module says that there is none, holds no memory and forgets its seeds, as PyTorch
does until a device is first used. Its functions that need a device exist, and say so when they are called.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...base.errors import NoDevice

Answers = dict[str, Callable[..., Any]]  # functions by name


def manual_seed(seed: int) -> None:
    """Wait until a device is first used, which none is."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Wait until a device is first used, which none is."""
    int(seed)


class Device(NamedTuple):
    """A module: its functions, and the names of those that need a device."""

    answers: Answers
    needing: str = ""


_NONE: Answers = {"is_available": lambda: False, "device_count": lambda: 0}
_SEEDS: Answers = {"manual_seed": manual_seed, "seed": lambda: None}
_MEMORY: Answers = {"empty_cache": lambda: None, "memory_allocated": lambda device=None: 0}

DEVICES = {
    "accelerator": Device(
        {**_NONE, "current_accelerator": lambda check_available=False: None},
        """current_device_index current_device_idx current_stream empty_cache memory_allocated set_device_index
           set_device_idx set_stream synchronize"""),
    "cpu": Device(
        {"is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: "cpu",
         "synchronize": lambda device=None: None, "set_device": lambda device: None}),
    "cuda": Device(
        {**_NONE, **_SEEDS, **_MEMORY, "is_initialized": lambda: False,
         "is_bf16_supported": lambda including_emulation=True: False, "get_arch_list": lambda: [],
         "manual_seed_all": manual_seed_all, "seed_all": lambda: None, "get_rng_state_all": lambda: [],
         "max_memory_allocated": lambda device=None: 0, "memory_reserved": lambda device=None: 0,
         "max_memory_reserved": lambda device=None: 0, "memory_cached": lambda device=None: 0,
         "memory_stats": lambda device=None: {}},
        """current_device current_stream default_stream get_device_capability get_device_name get_device_properties
           get_rng_state init initial_seed ipc_collect mem_get_info memory_summary reset_max_memory_allocated
           reset_peak_memory_stats set_rng_state stream synchronize utilization"""),
    "mps": Device(
        {**_NONE, **_SEEDS},
        "synchronize empty_cache set_per_process_memory_fraction get_rng_state set_rng_state"),
    "xpu": Device(
        {**_NONE, **_SEEDS, **_MEMORY},
        "synchronize set_device current_device get_device_name get_device_properties current_stream"),
}


def answers(module: str) -> Answers:
    """Return what a module holds, by the table: its functions, and the `__getattr__` that finds those in need."""
    device = DEVICES[module]
    for name, function in device.answers.items():
        function.__name__ = function.__qualname__ = name
    return {**device.answers, "__getattr__": needing(module)} if device.needing else dict(device.answers)


def needing(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module some of whose functions need a device."""
    known = frozenset(DEVICES[module].needing.split())

    def find(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module 'mutagrad.{module}' has no attribute {name!r}")

        def unavailable(*arguments: Any, **settings: Any) -> Any:
            raise no_device(module, name)

        return unavailable

    return find


def no_device(module: str, name: str) -> NoDevice:
    """Return the error of a function that needs a device."""
    return NoDevice(f"{module}.{name}: this build computes on the CPU only",
                    fix=f"if mutagrad.{module}.is_available(): ...")
