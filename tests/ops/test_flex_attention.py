"""Is attention with functions for scores and masks what scaled_dot_product_attention gives for the same scores?"""

from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.nn.flex_attention import AuxRequest, and_masks, create_block_mask, create_mask, flex_attention, or_masks
from mutagrad.nn.functional import scaled_dot_product_attention

DOCUMENT, SLOPE = mg.tensor([0, 0, 0, 1, 1, 1]), mg.tensor([0.5, 0.1, 0.2, 0.3])


def causal(b, h, i, j):
    return i >= j


def same_document(b, h, i, j):
    return DOCUMENT[i] == DOCUMENT[j]


def inputs(heads: int = 4) -> list[mg.Tensor]:
    rng = np.random.default_rng(1)
    return [mg.tensor(rng.normal(size=(2, n, 6, 3)), requires_grad=True) for n in (4, heads, heads)]


ROWS, COLUMNS = mg.arange(6)[:, None], mg.arange(6)[None]
BIAS = {
    "mask": ({"block_mask": create_block_mask(and_masks(causal, same_document), None, None, 6, 6)}, {"attn_mask": create_mask(and_masks(causal, same_document), 1, 1, 6, 6)}),
    "either": ({"block_mask": create_block_mask(or_masks(causal, same_document), 2, 4, 6, 6)}, {"attn_mask": (ROWS >= COLUMNS) | (DOCUMENT[ROWS] == DOCUMENT[COLUMNS])}),
    "scores": ({"score_mod": lambda s, b, h, i, j: s + SLOPE[h] * (j - i)}, {"attn_mask": (SLOPE.view(4, 1, 1) * (COLUMNS - ROWS)).double()}),
    "causal": ({"score_mod": lambda s, b, h, i, j: mg.where(i >= j, s, -float("inf")), "scale": 0.3}, {"is_causal": True, "scale": 0.3}),
}


@pytest.mark.parametrize("name", BIAS)
def test_values_and_gradients(name: str) -> None:
    given, expected = BIAS[name]
    x = inputs()
    found, wanted = flex_attention(*x, **given), scaled_dot_product_attention(*x, **expected)
    assert mg.allclose(found, wanted)
    for g, w in zip(mg.autograd.grad((found**2).sum(), x), mg.autograd.grad((wanted**2).sum(), x), strict=True):
        assert mg.allclose(g, w)


def test_heads_share_keys() -> None:
    x = inputs(2)
    assert mg.allclose(flex_attention(*x, enable_gqa=True), scaled_dot_product_attention(*x, enable_gqa=True))
    with pytest.raises(RuntimeError, match="heads"):
        flex_attention(*x)


def test_a_query_that_sees_nothing_gets_zeros() -> None:
    x = inputs()
    out, aux = flex_attention(*x, block_mask=create_block_mask(lambda b, h, i, j: (i > 0) & (j >= 0), None, None, 6, 6), return_aux=AuxRequest(lse=True))
    gradients = mg.autograd.grad(out.sum(), x, create_graph=True)
    second = mg.autograd.grad(sum((g**2).sum() for g in gradients), x)
    assert not out[:, :, 0].any() and (aux.lse[:, :, 0] == -float("inf")).all() and aux.lse[:, :, 1:].isfinite().all() and aux.max_scores is None
    assert all(g.isfinite().all() for g in (*gradients, *second)) and not gradients[0][:, :, 0].any()
    with pytest.raises(RuntimeError, match="block mask"):
        flex_attention(*x, block_mask=create_block_mask(causal, None, None, 5, 6))
