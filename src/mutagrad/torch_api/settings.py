"""Settings of the whole library. Here they have one possible effect, or none, and say which."""
from __future__ import annotations

import warnings

from ..base.device import CPU, META, device, known, names_meta, place_named
from ..base.errors import BadArgument, BadValue
from ..base.modes import PRECISION, amend, mode
from ..core.dtypes import dtype, dtype_of_class, set_default_dtype

_deterministic, _warn_only, _warn_always = False, False, False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember it: every operation here gives the same result each time anyway.

    >>> import mutagrad as mg
    >>> mg.use_deterministic_algorithms(False)
    >>> mg.are_deterministic_algorithms_enabled()
    False
    """
    global _deterministic, _warn_only
    if not isinstance(mode, bool) or not isinstance(warn_only, bool):
        raise BadArgument("use_deterministic_algorithms: takes True or False, "
                          f"got {mode!r} and warn_only={warn_only!r}", fix="bool(mode)")
    _deterministic, _warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was last told.

    >>> import mutagrad as mg
    >>> mg.are_deterministic_algorithms_enabled()
    False
    """
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether results that may differ from run to run warn instead of raising.

    >>> import mutagrad as mg
    >>> mg.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the same as a number or word: 0 or "default", 1 or "warn", 2 or "error".

    >>> import mutagrad as mg
    >>> mg.set_deterministic_debug_mode("default")
    >>> mg.get_deterministic_debug_mode()
    0
    """
    levels = {"default": 0, "warn": 1, "error": 2}
    level = levels.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if level not in (0, 1, 2):
        raise BadValue(f"set_deterministic_debug_mode: {debug_mode!r} is none of default, warn, error",
                       fix='set_deterministic_debug_mode("error")')
    use_deterministic_algorithms(level != 0, warn_only=level == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2: nothing, a warning or an error where a result may differ from run to run.

    >>> import mutagrad as mg
    >>> mg.get_deterministic_debug_mode()
    0
    """
    return (1 if _warn_only else 2) if _deterministic else 0


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be less exact on devices that have faster ones: "high" or "medium".

    On a CPU they are computed in float32, which is what "highest" means.

    >>> import mutagrad as mg
    >>> mg.set_float32_matmul_precision("highest")
    >>> mg.get_float32_matmul_precision()
    'highest'
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"set_float32_matmul_precision: {precision!r} is none of highest, high, medium; "
                      "nothing is changed", UserWarning, stacklevel=2)
        return
    PRECISION[0] = precision


def get_float32_matmul_precision() -> str:
    """Return what was set: "highest", "high" or "medium".

    >>> import mutagrad as mg
    >>> mg.get_float32_matmul_precision()
    'highest'
    """
    return PRECISION[0]


def set_default_device(device: device | str | int | None) -> None:
    """Set where new tensors live: on the CPU, which None stands for, on another device, or on "meta".

    >>> import mutagrad as mg
    >>> mg.set_default_device("cpu")
    >>> mg.zeros(1).device
    device(type='cpu')
    """
    if device is None or (place := place_named(device)) is None and not names_meta(device):
        amend(device=None)
    else:
        amend(device=META if place is None else known(*place.name))


def get_default_device() -> device:
    """Return the device on which tensors are made.

    >>> import mutagrad as mg
    >>> mg.get_default_device()
    device(type='cpu')
    """
    return mode.now.device or CPU


def set_default_tensor_type(t: type | str | dtype) -> None:
    """Set the type of new float tensors by the name of its class: `set_default_tensor_type(mutagrad.DoubleTensor)`.

    >>> import mutagrad as mg
    >>> mg.set_default_tensor_type(mg.DoubleTensor)
    >>> mg.zeros(1).dtype
    mutagrad.float64
    >>> mg.set_default_tensor_type(mg.FloatTensor)
    """
    wanted = dtype_of_class(t)
    if not wanted.is_floating_point:
        raise BadArgument(f"set_default_tensor_type: {wanted.name} is not a floating point type",
                          fix="mutagrad.set_default_tensor_type(mutagrad.DoubleTensor)")
    set_default_dtype(wanted)


def set_warn_always(b: bool) -> None:
    """Remember it: which warnings are shown more than once is for Python's filters to say.

    >>> import mutagrad as mg
    >>> mg.set_warn_always(False)
    >>> mg.is_warn_always_enabled()
    False
    """
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """Return whether warnings that are given once are given each time.

    >>> import mutagrad as mg
    >>> mg.is_warn_always_enabled()
    False
    """
    return _warn_always


def get_num_interop_threads() -> int:
    """Return how many operations run at a time: one.

    >>> import mutagrad as mg
    >>> mg.get_num_interop_threads() >= 1
    True
    """
    return 1


def set_num_interop_threads(count: int) -> None:
    """Accept PyTorch's setting of threads between operations, of which there are none.

    >>> import mutagrad as mg
    >>> mg.set_num_interop_threads(2)
    >>> mg.get_num_interop_threads()
    1
    """
    if count < 1:
        raise BadValue(f"set_num_interop_threads: needs at least 1, got {count}",
                       fix="mutagrad.set_num_interop_threads(1)")


def set_flush_denormal(mode: bool) -> bool:
    """Return False: the processor's treatment of the smallest numbers is left as it is.

    >>> import mutagrad as mg
    >>> mg.set_flush_denormal(False)
    False
    """
    return False
