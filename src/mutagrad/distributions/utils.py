"""What the distributions of other libraries are written with."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import enable_grad
from ..base.modes import keeps_modes
from ..core.dtypes import dtype, finfo
from ..nn.functional import softmax
from ..ops.math.elementwise import sigmoid
from ..ops.random.draws import randn
from ..tensors.tensor import Tensor
from .distribution import numbers_or_tensors as broadcast_all
from .independent import sum_rightmost
from .tril import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
           "vec_to_tril_matrix"]

_sum_rightmost = sum_rightmost
euler_constant = 0.57721566490153286060


def _standard_normal(shape: Sequence[int], dtype: dtype | None, device: Any = None) -> Tensor:
    return randn(tuple(shape), dtype=dtype, device=device)


def clamp_probs(probs: Tensor) -> Tensor:
    """Move probabilities off zero and one by the least that their type can tell."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """A property that is computed when first asked for, with its history, and then is an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, wrapped.__name__

    @keeps_modes
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            found = self.wrapped(instance)
        setattr(instance, self.__name__, found)
        return found
