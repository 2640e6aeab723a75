"""Samples of grids, stacks, pieces, and copies of views. (New tensors, and other windows in place, are in test_arrange.py.)"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from .base import Array, R, elsewhere, op


def block_diag(*blocks: Array) -> Array:
    height, width = np.cumsum([np.atleast_2d(b).shape for b in blocks], 0)[-1]
    found, at = np.zeros((height, width), blocks[0].dtype), np.zeros(2, int)
    for b in map(np.atleast_2d, blocks):
        found[at[0]:at[0] + b.shape[0], at[1]:at[1] + b.shape[1]] = b
        at += b.shape
    return found


def rows_of(x: Array, picks: Any) -> Array:
    return np.array([[x[i] for i in p] for p in picks], x.dtype)


op("meshgrid", R(3), R(4), R(2), indexing="ij", view=True, ref=lambda *x, indexing: np.meshgrid(*x, indexing=indexing))
op("meshgrid", R(3), R(4), indexing="xy", view=True, ref=lambda *x, indexing: np.meshgrid(*x, indexing=indexing))
op("cartesian_prod", R(3), R(4), ref=lambda *x: np.array(list(product(*x)), x[0].dtype))
op("combinations", R(5), ref=lambda x: rows_of(x, combinations(range(5), 2)))
op("combinations", R(4), 3, True, ref=lambda x, r, again: rows_of(x, combinations_with_replacement(range(4), r)))
op("block_diag", R(3, 4), R(5), R(2, 1), ref=block_diag)
op("repeat_interleave", R(5, 7), 3, ref=np.repeat)
op("repeat_interleave", R(5, 7), 2, dim=1, ref=lambda x, repeats, dim: np.repeat(x, repeats, dim))
op("repeat_interleave", R(5, 7), np.array([1, 0, 2, 3, 1]), 0, ref=np.repeat)
op("repeat_interleave", np.array([1, 0, 2]), grad=False, ref=lambda n: np.repeat(np.arange(3), n))

for name, ref in (("atleast_1d", np.atleast_1d), ("atleast_2d", np.atleast_2d), ("atleast_3d", np.atleast_3d)):
    for shape in ((), (5,), (5, 7)):
        op(name, R(*shape), view=True, ref=ref)
    op(name, [R(), R(3)], view=True, ref=lambda x, f=ref: f(*x))
for name, ref in (("hstack", np.hstack), ("vstack", np.vstack), ("dstack", np.dstack), ("column_stack", np.column_stack)):
    op(name, [R(4), R(4)], ref=ref)
    op(name, [R(5, 7), R(5, 7)], ref=ref)
op("row_stack", [R(3), R(2, 3)], ref=np.vstack)

op("tensor_split", R(5, 7), 3, 1, view=True, ref=np.array_split)
op("tensor_split", R(5, 7), (1, -2, 9), view=True, ref=lambda x, at: np.split(x, list(at)))
op("tensor_split", R(5, 7), np.array([2, 3]), dim=1, view=True, ref=lambda x, at, dim: np.split(x, at, dim))
op("hsplit", R(6), 2, view=True, ref=np.hsplit)
op("hsplit", R(5, 7), (2, 3), view=True, ref=np.hsplit)
op("vsplit", R(6, 5), 3, view=True, ref=np.vsplit)
op("dsplit", R(2, 3, 4), 2, view=True, ref=np.dsplit)
op("split_with_sizes", R(5, 7), (1, 4), view=True, ref=lambda x, s: np.split(x, [1]))
op("unsafe_split", R(5, 7), 3, 1, view=True, ref=lambda x, n, dim: np.split(x, [3, 6], dim))
op("unsafe_chunk", R(6, 7), 2, view=True, ref=np.split)
op("slice", R(5, 7), 1, 1, 6, 2, view=True, ref=lambda x, dim, a, b, step: x[:, a:b:step])

for k in (-1, 0, 1, 2, 3):
    op("rot90", R(5, 7), k, (0, 1), ref=np.rot90)
op("rot90", R(2, 3, 4), 1, (2, 0), ref=np.rot90)
op("fliplr", R(5, 7), ref=np.fliplr)
op("flipud", R(5, 7), ref=np.flipud)
op("fill", R(5, 7), 2.5, ref=np.full_like)
op("fill", R(5, 7), R(), ref=lambda x, v: np.full_like(x, v))

op("alias_copy", R(5, 7), ref=np.copy)
op("as_strided_copy", R(5, 7), (3, 4), (7, 2), 1, ref=lambda x, size, steps, at: x.reshape(-1)[at + np.add.outer(np.arange(3) * 7, np.arange(4) * 2)])
op("diagonal_copy", R(5, 7), 1, ref=np.diagonal)
op("expand_copy", R(5, 1), (5, 7), ref=np.broadcast_to)
op("narrow_copy", R(5, 7), 1, 2, 3, ref=lambda x, dim, start, length: x[:, start:start + length])
op("permute_copy", R(2, 3, 4), (2, 0, 1), ref=np.transpose)
op("select_copy", R(5, 7), 1, 3, ref=lambda x, dim, i: x[:, i])
op("slice_copy", R(5, 7), 0, 1, 4, ref=lambda x, dim, a, b: x[a:b])
op("split_copy", R(5, 7), 4, ref=lambda x, n: np.split(x, [n]))
op("split_with_sizes_copy", R(5, 7), (1, 4), ref=lambda x, s: np.split(x, [1]))
op("squeeze_copy", R(5, 1, 7), ref=np.squeeze)
op("t_copy", R(5, 7), ref=np.transpose)
op("transpose_copy", R(5, 7), 0, 1, ref=np.swapaxes)
op("unbind_copy", R(5, 7), ref=tuple)
op("unfold_copy", R(5, 7), 1, 3, 2, ref=lambda x, dim, size, step: np.lib.stride_tricks.sliding_window_view(x, size, dim)[:, ::step])
op("unsqueeze_copy", R(5, 7), 1, ref=np.expand_dims)
op("view_copy", R(5, 7), (7, 5), ref=np.reshape)

elsewhere("enter_slices leave_slices same_for_slices total_of_slices")  # tests/func/test_vmap.py
elsewhere("broadcast_shapes empty_permuted empty_strided scalar_tensor as_strided_ new_empty_strided resize_ resize_as_ set_ swapaxes_ swapdims_")
