"""Attention by several heads, and the layers that are made of it.

PyTorch has a second way through an encoder outside training, in which padding is left out and comes back as zeros;
here what stands at padded positions is what the layers compute there, as in training.
"""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.errors import BadSetting, BadValue, ShapeError
from ..core.dtypes import dtype
from ..ops.create.create import full
from ..ops.shape.shape import tensor_argument
from ..tensors.tensor import Tensor
from . import functional as F, init
from .common import make_parameter
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer"]

Activation = str | Callable[[Any], Any]


class NonDynamicallyQuantizableLinear(Linear):
    """The last projection of attention; the name is what PyTorch shows."""


class MultiheadAttention(Module):
    """For each query an average of the values, weighted by how well it matches the keys, by several heads at once.

    >>> import mutagrad as mg
    >>> attention = mg.nn.MultiheadAttention(4, num_heads=2, batch_first=True)
    >>> x = mg.ones(3, 5, 4)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (mutagrad.Size([3, 5, 4]), mutagrad.Size([3, 5, 5]))

    `forward` gives the result and the weights, or None for these where `need_weights` is False, which is quicker.
    In masks True blocks.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise BadValue(f"MultiheadAttention: embed_dim={embed_dim} and num_heads={num_heads} must be above 0",
                           fix="MultiheadAttention(8, 2)")
        if embed_dim % num_heads:
            raise BadSetting(f"MultiheadAttention: embed_dim={embed_dim} must be divisible by num_heads={num_heads}",
                             why="each head gets an equal part",
                             fix=f"embed_dim={num_heads * (embed_dim // num_heads + 1)}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(
            ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight"))
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * embed_dim, embed_dim)
        else:
            shapes |= {"q_proj_weight": (embed_dim, embed_dim), "k_proj_weight": (embed_dim, self.kdim),
                       "v_proj_weight": (embed_dim, self.vdim)}
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        shapes |= dict.fromkeys(("bias_k", "bias_v"), (1, 1, embed_dim) if add_bias_kv else None)
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else make_parameter(shape, device, dtype))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and tensor_argument(query, "MultiheadAttention").ndim == 3
        if turned:
            query, key, value = (x.transpose(0, 1) if tensor_argument(x, "MultiheadAttention").ndim == 3 else x
                                 for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal)
        return out.transpose(0, 1) if turned else out, weights


# --------------------------------------------------------------------------------------------------------------- layers

def _get_activation_fn(activation: Activation) -> Callable[[Any], Any]:
    known: dict[str, Callable[[Any], Any]] = {"relu": F.relu, "gelu": F.gelu}
    if not isinstance(activation, str):
        return activation
    if activation not in known:
        raise BadValue(f"activation must be 'relu', 'gelu' or a function, not {activation!r}", fix="activation='relu'")
    return known[activation]


class _Layer(Module):
    """What encoder and decoder layers share: attention of a sequence to itself, and two linear layers."""

    def __init__(self, attention: tuple[str, ...], d_model: int, nhead: int, dim_feedforward: int, dropout: float,
                 activation: Activation, layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool,
                 device: DeviceLike | None, dtype: dtype | None) -> None:
        super().__init__()
        for name in attention:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first,
                                                   device=device, dtype=dtype))
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm_first = norm_first
        numbers = range(1, len(attention) + 2)
        for k in numbers:
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype))
        for k in numbers:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _add(self, x: Tensor, norm: Module, block: Callable[[Any], Any]) -> Any:
        """x and what a block makes of it, normalised before the block or after the sum."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _attend(self, attention: Module, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None,
                causal: bool) -> Any:
        return attention(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False,
                         is_causal=causal)[0]

    def _feed(self, x: Tensor) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear layers for each element.

    >>> import mutagrad as mg
    >>> layer = mg.nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, batch_first=True)
    >>> layer(mg.zeros(2, 5, 4)).shape
    mutagrad.Size([2, 5, 4])
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__(("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                         batch_first, norm_first, bias, device, dtype)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Any:
        x = self._add(src, self.norm1, lambda x: self.dropout1(
            self._attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)))
        return self._add(x, self.norm2, lambda x: self.dropout2(self._feed(x)))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, attention to what an encoder gave, then two linear layers for each element.

    >>> import mutagrad as mg
    >>> layer = mg.nn.TransformerDecoderLayer(d_model=4, nhead=2, dim_feedforward=8, batch_first=True)
    >>> layer(mg.zeros(2, 5, 4), mg.zeros(2, 7, 4)).shape
    mutagrad.Size([2, 5, 4])
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__(("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation,
                         layer_norm_eps, batch_first, norm_first, bias, device, dtype)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Any:
        x = self._add(tgt, self.norm1, lambda x: self.dropout1(
            self._attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)))
        x = self._add(x, self.norm2, lambda x: self.dropout2(
            self._attend(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)))
        return self._add(x, self.norm3, lambda x: self.dropout3(self._feed(x)))


# --------------------------------------------------------------------------------------------------------------- stacks

def _get_clones(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other.

    >>> import mutagrad as mg
    >>> layer = mg.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    >>> mg.nn.TransformerEncoder(layer, num_layers=2)(mg.zeros(2, 5, 4)).shape
    mutagrad.Size([2, 5, 4])
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers, self.num_layers = _get_clones(encoder_layer, num_layers), num_layers
        self.norm = norm
        self.enable_nested_tensor, self.use_nested_tensor, self.mask_check = enable_nested_tensor, False, mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=bool(is_causal), src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other.

    >>> import mutagrad as mg
    >>> layer = mg.nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
    >>> mg.nn.TransformerDecoder(layer, num_layers=2)(mg.zeros(2, 5, 4), mg.zeros(2, 7, 4)).shape
    mutagrad.Size([2, 5, 4])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers, self.num_layers = _get_clones(decoder_layer, num_layers), num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                        tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that attends to what the encoder gave.

    >>> import mutagrad as mg
    >>> model = mg.nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
    >>> model(mg.ones(5, 3, 8), mg.ones(4, 3, 8)).shape
    mutagrad.Size([4, 3, 8])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
                 custom_encoder: Module | None = None, custom_decoder: Module | None = None,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                    device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = (TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm())
                        if custom_encoder is None else custom_encoder)
        self.decoder = (TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm())
                        if custom_decoder is None else custom_decoder)
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Any:
        batch = 0 if self.batch_first else 1
        shapes = [tuple(tensor_argument(x, "Transformer").shape) for x in (src, tgt)]
        if src.ndim == 3 and (tgt.ndim != 3 or src.shape[batch] != tgt.shape[batch]):
            raise ShapeError(f"Transformer: src and tgt of shapes {shapes[0]} and {shapes[1]} differ in their batch",
                             fix="as many sequences in both")
        if any(shape[-1] != self.d_model for shape in shapes):
            raise ShapeError(f"Transformer: src and tgt of shapes {shapes[0]} and {shapes[1]} must have "
                             f"{self.d_model} features", fix=f"d_model={shapes[0][-1]}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: DeviceLike | None = None,
                                        dtype: dtype | None = None) -> Any:
        """Return a mask to add to scores: -inf where a key comes after the query, 0 elsewhere.

        >>> import mutagrad as mg
        >>> mg.nn.Transformer.generate_square_subsequent_mask(3)
        tensor([[0., -inf, -inf],
                [0., 0., -inf],
                [0., 0., 0.]])
        """
        return full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)
