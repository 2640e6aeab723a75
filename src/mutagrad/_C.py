"""Names of PyTorch's C++ library that Python programs ask for, where the answer is known: that there is no such thing here."""
from __future__ import annotations

from typing import Any


class Graph:
    """A compiled program; there are none."""


class Value:
    """A value in a compiled program; there are none."""


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> Any:
    """No program is traced."""
    return None


def _are_functorch_transforms_active() -> bool:
    """Whether values are stand-ins for others: under `vmap` and `grad` they are tensors like any other."""
    return False
