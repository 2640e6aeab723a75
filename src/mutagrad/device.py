"""Where tensors live: this build computes on the CPU only, and says so."""
from __future__ import annotations

from typing import Any

from .errors import NotSupported


class device:
    """`device("cpu")`."""

    __slots__ = ("type", "index")

    def __init__(self, type: Any, index: int | None = None) -> None:
        name, _, number = str(type).partition(":")
        self.type, self.index = name, int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)


CPU = device("cpu")


def check_device(wanted: Any) -> None:
    """Raises unless `wanted` is None or the CPU."""
    if wanted is not None and (wanted if isinstance(wanted, device) else device(wanted)).type != "cpu":
        raise NotSupported(f"device {wanted}: only the CPU is supported", fix='device="cpu", or leave it out')
