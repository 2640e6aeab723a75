"""Differentiation: `grad`, `backward`, `Function`, the modes that switch recording, and what is made of these."""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.backward import backward, grad
from . import function, nodes
from .function import Function
from .modes import (
    detect_anomaly,
    enable_grad,
    get_nan_policy,
    inference_mode,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
    set_multithreading_enabled,
    set_nan_policy,
    strong_zeros,
)
from .versions import _force_original_view_tracking, _unsafe_preserve_version_counter, is_view_replay_enabled

if TYPE_CHECKING:
    from ..core.size import Size
    from ..core.storage import TensorBase

__all__ = [
    "Function",
    "_force_original_view_tracking",
    "_unsafe_preserve_version_counter",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "get_nan_policy",
    "grad",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_view_replay_enabled",
    "kineto_available",
    "no_grad",
    "nodes",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "set_nan_policy",
    "strong_zeros",
]

# What is loaded when first asked for, and from where. (`gradcheck` is PyTorch's name for a module and for a function.)
_LATER = {"functional": ("functional",), "forward_ad": ("forward_ad",), "graph": ("graph",),
          "variable": ("Variable", "variable"), "gradcheck": ("gradcheck", "gradgradcheck", "GradcheckError"),
          "profiler": ("profiler",), "grad_mode": ("grad_mode",), "anomaly_mode": ("anomaly_mode",),
          "_functions": ("_functions",)}


def _calculate_shape(output: TensorBase, grad: TensorBase, is_grads_batched: bool) -> tuple[Size, Size]:
    """Return the shapes that must agree: of an output, and of the gradient that is given for it."""
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def kineto_available() -> bool:
    """Whether PyTorch's profiler of devices is there.

    >>> import mutagrad as mg
    >>> mg.autograd.kineto_available()
    False
    """
    return False


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            loaded = import_module(f".{module}", __name__)
            globals().update({n: getattr(loaded, n, loaded) for n in names})
            return globals()[name]
    raise AttributeError(f"module 'mutagrad.autograd' has no attribute {name!r}")
