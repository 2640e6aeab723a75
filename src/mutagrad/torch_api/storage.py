"""`torch.storage`: a tensor's memory as an object, and what pickles of PyTorch's tensors ask for to make one."""
from __future__ import annotations

import io
from typing import Any

from ..files import load
from ..tensors.typed_storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """Return the storage that these bytes are: a file within the pickle. Nothing that it names is run."""
    return load(io.BytesIO(b))
