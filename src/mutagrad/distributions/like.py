"""In which type a distribution makes new tensors, and where: as its parameters are."""
from __future__ import annotations

from typing import Any

from ..tensors.tensor import Tensor


def like(parameter: Tensor) -> dict[str, Any]:
    """Return the settings with which a new tensor is of the type of a parameter, and on its device."""
    return {"dtype": parameter.dtype, "device": parameter.device}
