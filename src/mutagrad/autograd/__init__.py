"""Differentiation: `grad`, `backward`, `Function`, the modes that switch recording, and what is made of these."""
from importlib import import_module
from typing import Any

from ..backward import backward, grad
from . import function
from .function import Function
from .modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
    strong_zeros,
)

__all__ = ["Function", "backward", "detect_anomaly", "enable_grad", "function", "grad", "inference_mode", "is_anomaly_enabled", "is_grad_enabled",
           "is_inference_mode_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled", "strong_zeros"]

# What is loaded when first asked for, and from where. (`gradcheck` is PyTorch's name for a module and for the function in it.)
_LATER = {"functional": ("functional",), "variable": ("Variable",), "gradcheck": ("gradcheck", "gradgradcheck", "GradcheckError")}


def __getattr__(name: str) -> Any:
    if name == "profiler":
        return import_module("..profiler", __name__)
    for module, names in _LATER.items():
        if name in names:
            loaded = import_module(f".{module}", __name__)
            globals().update({n: getattr(loaded, n, loaded) for n in names})
            return globals()[name]
    raise AttributeError(f"module 'mutagrad.autograd' has no attribute {name!r}")
