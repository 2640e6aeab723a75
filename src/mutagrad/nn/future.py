"""How modules change the type of their parameters: settings under PyTorch's names."""
from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]

_SETTINGS = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether `module.double()` makes new parameters instead of giving the old ones new contents."""
    _SETTINGS["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether `module.double()` makes new parameters."""
    return _SETTINGS["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether parameters keep their identity in every conversion, which they do here in any case."""
    _SETTINGS["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return what set_swap_module_params_on_conversion was last told."""
    return _SETTINGS["swap"]
