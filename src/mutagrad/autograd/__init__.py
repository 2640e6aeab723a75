"""Differentiation: `grad`, `backward`, `Function`, and the modes that switch recording."""
from ..backward import backward, grad
from . import function
from .function import Function
from .modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled, strong_zeros

__all__ = ["Function", "backward", "enable_grad", "function", "grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
           "no_grad", "set_grad_enabled", "strong_zeros"]
