"""How a tensor lies along a dimension of a mesh: in parts, or as copies."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Equal parts of a dimension of the tensor."""

    dim: int

    def __init__(self, dim: Any) -> None:
        object.__setattr__(self, "dim", int(dim))


@dataclass(frozen=True)
class Replicate(Placement):
    """A copy on each device."""


@dataclass(frozen=True)
class Partial(Placement):
    """Terms of a sum. XLA has such values inside of a program only: no tensor can be placed so."""

    reduce_op: str = "sum"
