"""A name that PyTorch's own programs use."""
from __future__ import annotations

from contextlib import nullcontext


def no_dispatch() -> nullcontext[None]:
    """Return a block in which nothing is dispatched, as nothing is anywhere."""
    return nullcontext()
