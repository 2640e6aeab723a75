"""`nn.modules.module`, PyTorch's path to the base of all modules and to the hooks of all of them."""
from __future__ import annotations

from ..module import (
    Module, register_module_forward_hook, register_module_forward_pre_hook, register_module_full_backward_hook, register_module_full_backward_pre_hook,
)

__all__ = [
    "Module", "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook"]
