"""Samples of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, R, op

CAUSAL = np.tri(3, 4, dtype=bool)
EMPTY_ROW = np.array([[True, False, True], [False, False, False]])


def attend(q: Array, k: Array, v: Array, attn_mask: Any = None, is_causal: bool = False, scale: Any = None, enable_gqa: bool = False) -> Array:
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ np.swapaxes(k, -2, -1) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    blocked = ~np.tri(*scores.shape[-2:], dtype=bool) if is_causal else np.zeros((), bool)
    if attn_mask is not None and attn_mask.dtype == bool:
        blocked = ~attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
    e = np.where(blocked, 0, np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf)))
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300 if q.dtype == np.float64 else 1e-30) @ v


def many_heads(q: Array, k: Array, v: Array, width: int, heads: int, w: Array, b: Array, bias_k: Any, bias_v: Any, zero: bool, dropout: float,
               out_w: Array, out_b: Array, key_padding_mask: Any = None, attn_mask: Any = None) -> Any:
    q, k, v = (x @ w[i * width:(i + 1) * width].T + b[i * width:(i + 1) * width] for i, x in enumerate((q, k, v)))
    batch = q.shape[1]
    if bias_k is not None:
        k, v = (np.concatenate([x, np.repeat(y, batch, 1)]) for x, y in ((k, bias_k), (v, bias_v)))
    q, k, v = (x.reshape(len(x), batch, heads, -1).transpose(1, 2, 0, 3) for x in (q, k, v))
    if zero:
        k, v = (np.concatenate([x, np.zeros_like(x[:, :, :1])], 2) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
    for mask in (attn_mask, None if key_padding_mask is None else key_padding_mask[:, None, None]):
        if mask is not None:
            extra = scores.shape[-1] - mask.shape[-1]
            scores = np.where(np.concatenate([mask, np.zeros((*mask.shape[:-1], extra), bool)], -1), -np.inf, scores)
    e = np.exp(scores)
    weights = e / e.sum(-1, keepdims=True)
    out = (weights @ v).transpose(2, 0, 1, 3).reshape(q.shape[2], batch, width) @ out_w.T + out_b
    return out, weights.mean(1)


name = "nn.functional.scaled_dot_product_attention"
op(name, R(3, 5), R(4, 5), R(4, 2), ref=attend)
op(name, R(2, 3, 5), R(2, 4, 5), R(2, 4, 6), ref=attend)
op(name, R(2, 2, 3, 4), R(2, 2, 4, 4), R(2, 2, 4, 4), scale=0.3, ref=attend)
op(name, R(2, 3, 5), R(2, 4, 5), R(2, 4, 6), is_causal=True, ref=attend)
op(name, R(2, 3, 5), R(2, 4, 5), R(2, 4, 6), CAUSAL, ref=attend)
op(name, R(2, 5), R(3, 5), R(3, 5), EMPTY_ROW, ref=attend)
op(name, R(2, 3, 5), R(2, 4, 5), R(2, 4, 6), R(3, 4), ref=attend)
op(name, R(2, 3, 5), R(2, 4, 5), R(2, 4, 6), R(2, 3, 4), ref=attend)
op(name, R(2, 2, 3, 5), R(2, 1, 4, 5), R(4, 6), R(1, 4), ref=attend, note=" broadcast")
op(name, R(4, 3, 4), R(2, 3, 4), R(2, 3, 5), enable_gqa=True, ref=attend)
op(name, R(2, 4, 3, 2), R(2, 2, 3, 2), R(2, 2, 3, 2), R(2, 4, 3, 3), enable_gqa=True, ref=attend)

name = "nn.functional.multi_head_attention_forward"
inputs = R(3, 2, 4), R(4, 2, 4), R(4, 2, 4), 4, 2, R(12, 4), R(12)
PADDED = np.array([[False, False, False, True], [False] * 4])
op(name, *inputs, None, None, False, 0.0, R(4, 4), R(4), ref=many_heads)
op(name, *inputs, R(1, 1, 4), R(1, 1, 4), True, 0.0, R(4, 4), R(4), key_padding_mask=PADDED, attn_mask=~CAUSAL, ref=many_heads)
