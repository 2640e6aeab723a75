"""How many multiply-adds a call of a known layer takes: the products with its weights, and those of attention.

Told by shapes, layer by layer. `utils.flop_counter` sees the functions that are called, and so products outside of
layers, too; but it makes every public function ask for good whether somebody counts, and a table should cost nothing
later.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from ..nn.convolution import _ConvForward, _ConvTranspose
from ..nn.linear import Bilinear, Linear
from ..nn.module import Module
from ..nn.rnn import RNNBase, RNNCellBase
from ..nn.transformer import MultiheadAttention


def multiply_adds(module: Module, inputs: tuple[Any, ...], settings: Mapping[str, Any], output: Any) -> int:
    """Return those of one call, 0 for a module that is not known."""
    count = next((count for kind, count in _COUNTS.items() if isinstance(module, kind)), None)
    return count(module, [*inputs, *settings.values()], output) if count is not None else 0


def _bilinear(module: Any, inputs: list[Any], output: Any) -> int:
    return int(output.numel() * module.in1_features * module.in2_features)


def _recurrent(module: Any, inputs: list[Any], output: Any) -> int:
    """Every matrix is multiplied once for each step and sequence."""
    steps = getattr(inputs[0], "data", inputs[0]).numel() // module.input_size
    return int(steps * sum(p.numel() for name, p in module.named_parameters() if "weight" in name))


def _attention(module: Any, inputs: list[Any], output: Any) -> int:
    """Four projections, the products of queries with keys, and of weights with values."""
    query, key, value = inputs[:3]
    width = module.embed_dim
    projections = (query.numel() + key.numel() + value.numel() + output[0].numel()) * width
    return int(projections + 2 * query.numel() * key.shape[1 if module.batch_first and key.ndim == 3 else 0])


_COUNTS: dict[type, Callable[[Any, list[Any], Any], int]] = {
    Linear: lambda module, inputs, output: int(output.numel() * module.in_features),
    Bilinear: _bilinear,
    _ConvForward: lambda module, inputs, output: int(output.numel() * prod(module.weight.shape[1:])),
    _ConvTranspose: lambda module, inputs, output: int(inputs[0].numel() * prod(module.weight.shape[1:])),
    RNNBase: _recurrent,
    RNNCellBase: _recurrent,
    MultiheadAttention: _attention,
}
