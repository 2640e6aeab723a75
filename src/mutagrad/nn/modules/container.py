"""`nn.modules.container`, PyTorch's path to the containers."""
from __future__ import annotations

from ..container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
