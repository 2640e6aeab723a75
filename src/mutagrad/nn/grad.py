"""The gradients of convolutions as functions, for those who write backward themselves."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..autograd import enable_grad, grad
from ..base.modes import keeps_modes
from ..ops.create.create import zeros
from ..ops.nn.conv import conv1d, conv2d, conv3d
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .common_types import _size_any_t

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Gradient = Callable[..., Any]


def _gradients(convolution: Callable[..., Any]) -> tuple[Gradient, Gradient]:
    """The two of one convolution."""

    @keeps_modes
    def differentiated(x: Tensor, weight: Tensor, wanted: Tensor, grad_output: Tensor,
                       settings: tuple[Any, ...]) -> Any:
        with enable_grad():
            out = convolution(x, weight, None, *settings)
        recorded = grad_output.requires_grad or x.requires_grad and weight.requires_grad
        return grad(out, wanted, grad_output, create_graph=recorded)[0]

    def of_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: _size_any_t = 1,
                 padding: _size_any_t = 0, dilation: _size_any_t = 1, groups: int = 1) -> Any:
        """Return the gradient of a convolution with respect to an input of this size."""
        x = zeros(tuple(input_size), dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
        return differentiated(x, weight, x, grad_output, (stride, padding, dilation, groups))

    def of_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: _size_any_t = 1,
                  padding: _size_any_t = 0, dilation: _size_any_t = 1, groups: int = 1) -> Any:
        """Return the gradient of a convolution with respect to a weight of this size."""
        weight = zeros(tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
        return differentiated(input, weight, weight, grad_output, (stride, padding, dilation, groups))

    return of_input, of_weight


conv1d_input, conv1d_weight = _gradients(conv1d)
conv2d_input, conv2d_weight = _gradients(conv2d)
conv3d_input, conv3d_weight = _gradients(conv3d)
