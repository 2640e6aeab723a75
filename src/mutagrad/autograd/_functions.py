"""Nodes that PyTorch's own programs make by name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import GradientError, ShapeError
from ..core.graph import Leaf as AccumulateGrad
from ..tensors.tensor import Tensor
from .function import Context, Function

__all__ = ["AccumulateGrad", "DelayedError", "Resize", "UndefinedGrad"]


class Resize(Function):
    """The same elements in another shape."""

    @staticmethod
    def forward(ctx: Context, tensor: Tensor, sizes: Sequence[int]) -> Any:
        if tensor.numel() != tensor.new_empty(sizes).numel():
            raise ShapeError(f"Resize: {tensor.numel()} elements do not fit {tuple(sizes)}",
                             why="an operation cannot make more or fewer of them")
        ctx.sizes = tensor.shape
        return tensor.reshape(sizes).clone()

    @staticmethod
    def backward(ctx: Context, *grads: Tensor) -> tuple[Any, None]:
        return grads[0].reshape(ctx.sizes), None


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Context, *grads: Tensor) -> None:
        return None


class _Fails(_Undefined):
    @staticmethod
    def forward(ctx: Context, x: Tensor, message: str = "") -> Tensor:
        ctx.message = message
        return x

    @staticmethod
    def backward(ctx: Context, *grads: Tensor) -> None:
        raise GradientError(ctx.message)


class UndefinedGrad:
    """Called, a tensor as it is, through which no gradient passes."""

    def __call__(self, tensor: Tensor) -> Any:
        return _Undefined.apply(tensor)


class DelayedError:
    """Called, a tensor as it is, whose gradient is an error."""

    def __init__(self, message: str, count: int) -> None:
        self.message = message

    def __call__(self, tensor: Tensor) -> Any:
        return _Fails.apply(tensor, self.message)
