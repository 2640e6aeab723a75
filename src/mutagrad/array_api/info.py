"""What the namespace says of itself."""
from __future__ import annotations

from typing import Any

from ..base.device import CPU, check_device, device
from ..core.dtypes import dtype, get_default_dtype, int64
from .kinds import KINDS, isdtype


class Info:
    """What this library can do, as the standard asks it."""

    def capabilities(self) -> dict[str, Any]:
        """Return whether shapes may depend on values, and how many axes there can be."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> device:
        """Return the device of new tensors."""
        return CPU

    def devices(self) -> list[device]:
        """Return the devices that there are."""
        return [CPU]

    def default_dtypes(self, *, device: device | str | None = None) -> dict[str, dtype]:
        """Return the types of new tensors."""
        check_device(device)
        real = get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": int64, "indexing": int64}

    def dtypes(self, *, device: device | str | None = None,
               kind: str | tuple[str, ...] | None = None) -> dict[str, dtype]:
        """Return the types of a kind, by name."""
        check_device(device)
        known = KINDS["bool"] + KINDS["numeric"]
        return {d.name: d for d in known if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> Info:
    """What this library can do.

    >>> import mutagrad as mg
    >>> xp = mg.ones(1).__array_namespace__()
    >>> xp.__array_namespace_info__().default_dtypes()["real floating"]
    mutagrad.float32
    """
    return Info()
