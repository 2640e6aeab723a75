"""Samples of tables and bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, R, op

WORDS = np.array([[1, 4, 1], [0, 6, 4]])
STARTS = np.array([0, 2, 2, 5])


def bags(index: Array, table: Array, offsets: Any = None, mode: str = "mean", weights: Any = None, last: bool = False, padding: Any = None) -> Array:
    starts = np.arange(0, index.size, index.shape[1]) if index.ndim == 2 else offsets[:-1] if last else offsets
    ends = offsets[1:] if last else np.append(starts[1:], index.size)
    flat, weights = index.reshape(-1), None if weights is None else weights.reshape(-1)
    found = []
    for start, end in zip(starts, ends):
        kept = [i for i in range(start, end) if flat[i] != padding]
        rows = table[flat[kept]] if weights is None else table[flat[kept]] * weights[kept][:, None]
        found.append(getattr(rows, mode)(0) if kept else np.zeros(table.shape[1], table.dtype))
    return np.stack(found)


op("nn.functional.embedding", WORDS, R(7, 5), ref=lambda i, x: x[i])
op("nn.functional.embedding", WORDS[0], R(7, 5), ref=lambda i, x: x[i])
op("nn.functional.embedding", WORDS[:, :0], R(7, 5), ref=lambda i, x: x[i])
op("nn.functional.embedding_bag", WORDS, R(7, 5), ref=bags)
op("nn.functional.embedding_bag", WORDS, R(7, 5), mode="sum", per_sample_weights=R(2, 3),
   ref=lambda i, x, mode, per_sample_weights: bags(i, x, mode=mode, weights=per_sample_weights))
op("nn.functional.embedding_bag", WORDS.reshape(-1), R(7, 5), STARTS, mode="sum", ref=bags)
op("nn.functional.embedding_bag", WORDS.reshape(-1), R(7, 5), STARTS, mode="mean", ref=bags)
op("nn.functional.embedding_bag", WORDS.reshape(-1), R(7, 5), STARTS, mode="max", ref=bags, ties=True)
op("nn.functional.embedding_bag", WORDS, R(7, 5), mode="max", ref=bags, ties=True)
op("nn.functional.embedding_bag", WORDS.reshape(-1), R(7, 5), np.array([0, 2, 6]), mode="sum", include_last_offset=True,
   ref=lambda i, x, o, mode, include_last_offset: bags(i, x, o, mode, last=True))
op("nn.functional.embedding_bag", WORDS, R(7, 5), mode="mean", padding_idx=4, ref=lambda i, x, mode, padding_idx: bags(i, x, mode=mode, padding=padding_idx))
