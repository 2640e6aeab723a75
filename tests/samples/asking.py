"""Samples of the functions that PyTorch has at the top and that are other forms of `nn.functional`'s; the rest have a table in test_asking."""
from __future__ import annotations

import numpy as np

from .base import R, elsewhere, op


def _shuffled(a: np.ndarray, groups: int) -> np.ndarray:
    n, channels, *rest = a.shape
    return a.reshape(n, groups, channels // groups, *rest).swapaxes(1, 2).reshape(a.shape)


op("native_channel_shuffle", R(2, 6, 3), 3, ref=_shuffled)

elsewhere("""
    adaptive_max_pool1d batch_norm binary_cross_entropy_with_logits conv_tbc convolution cosine_embedding_loss ctc_loss embedding frobenius_norm
    hinge_embedding_loss instance_norm kl_div margin_ranking_loss norm_except_dim nn.functional.conv_tbc nuclear_norm poisson_nll_loss segment_reduce
    triplet_margin_loss apply_ dim_order get_device is_inference is_nonzero is_pinned is_same_size is_set_to is_shared is_signed map2_ map_ pin_memory
    range storage_type to_dlpack fake_quantize_per_channel_affine fake_quantize_per_tensor_affine""")
