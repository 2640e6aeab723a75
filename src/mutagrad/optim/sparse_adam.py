"""SparseAdam, for gradients that there are none of."""
from __future__ import annotations

from typing import Any

from ..errors import NotSupported
from .optimizer import Optimizer


class SparseAdam(Optimizer):
    """Refuses: gradients are never sparse here."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False) -> None:
        raise NotSupported("SparseAdam: is not supported", why="it is for sparse gradients, and all gradients here are dense",
                           fix="mutagrad.optim.Adam(params, lr)")
