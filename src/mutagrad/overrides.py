"""Classes that take the place of tensors: `__torch_function__`, which nothing here looks at, and tensors without memory."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._tensor import Tensor


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of these takes over functions that are called with it: none does."""
    return False


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(inp, Tensor)


class FakeTensor:
    """A tensor without memory, as compilers use it; there are none."""


def is_fake(x: Any) -> bool:
    """Whether it is a tensor without memory: none is."""
    return False
