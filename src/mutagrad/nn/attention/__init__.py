"""Which kernel computes attention: a choice that PyTorch has. Here there is one, and every choice gives it."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

from ...base.errors import BadArgument

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's kernels for `scaled_dot_product_attention`.

    >>> import mutagrad as mg
    >>> mg.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Accepts the choice of one or several kernels, for code that makes it; the result is the same for all.

    >>> import mutagrad as mg
    >>> q = mg.ones(1, 2, 4)
    >>> with mg.nn.attention.sdpa_kernel(mg.nn.attention.SDPBackend.MATH):
    ...     mg.nn.functional.scaled_dot_product_attention(q, q, q).shape
    mutagrad.Size([1, 2, 4])
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in chosen):
        raise BadArgument(f"sdpa_kernel: expects a SDPBackend or a list of them, got {backends!r}",
                          fix="sdpa_kernel(SDPBackend.MATH)")
    yield
