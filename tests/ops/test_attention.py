"""Attention: dropout, the choice of kernels, large inputs, and what the module will build on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.nn.attention import SDPBackend, bias, sdpa_kernel
from mutagrad.ops.nn import attention as attention_room

F = mg.nn.functional
attention = F.scaled_dot_product_attention


def drawn(*shape: int, seed: int = 1, dtype: Any = np.float64) -> Any:
    return mg.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype), requires_grad=True)


def test_dropout_keeps_the_expectation_and_its_gradient_goes_to_what_was_kept() -> None:
    mg.manual_seed(3)
    q, k, v = drawn(1, 4, seed=1), drawn(64, 4, seed=2), drawn(64, 1, seed=3)
    mean = sum(attention(q, k, v, dropout_p=0.5).item() for _ in range(400)) / 400
    assert abs(mean - attention(q, k, v).item()) < 0.05
    out = attention(q, k, v, dropout_p=0.5)
    weights = mg.autograd.grad(out, v, retain_graph=True)[0]
    assert 10 < (weights == 0).sum().item() < 54
    np.testing.assert_allclose(out.item(), (weights * v).sum().item())
    raw = mg.autograd.grad(out, (q, k), retain_graph=True)
    for a, b in zip(raw, mg.autograd.grad(out, (q, k), create_graph=True)):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-10, 1e-12)
    assert not attention(q, k, v, dropout_p=1.0).any()


@pytest.mark.parametrize("mask", [None, "bool", "float", "causal"])
def test_large_inputs_give_what_the_recorded_rules_give(mask: Any) -> None:
    """Blocks and threads against rules that know neither."""
    q, k, v = drawn(2, 3, 200, 8, seed=1), drawn(2, 3, 210, 8, seed=2), drawn(2, 3, 210, 5, seed=3)
    bias = mg.tensor(np.random.default_rng(4).normal(size=(2, 1, 200, 210)), requires_grad=True)
    given = {"bool": {"attn_mask": bias > 0}, "float": {"attn_mask": bias}, "causal": {"is_causal": True}, None: {}}[mask]
    leaves = (q, k, v, bias) if mask == "float" else (q, k, v)
    g = drawn(2, 3, 200, 5, seed=5).detach()
    raw, recorded = (mg.autograd.grad(attention(q, k, v, **given), leaves, g, create_graph=recorded) for recorded in (False, True))
    for a, b in zip(raw, recorded):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-9, 1e-11)


def test_half_precision_is_computed_in_single() -> None:
    q, k, v = (drawn(2, 5, 4, seed=s, dtype=np.float16) for s in (1, 2, 3))
    out = attention(q * 100, k * 100, v)
    out.sum().backward()
    assert out.dtype is mg.float16 and q.grad.dtype is mg.float16 and bool(mg.isfinite(out).all())


def test_the_choice_of_a_kernel_is_accepted() -> None:
    q = drawn(3, 4)
    for chosen in (SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
        with sdpa_kernel(chosen):
            assert mg.equal(attention(q, q, q), attention(q, q, q))
    with pytest.raises(TypeError), sdpa_kernel("math"):
        pass


def heads(query: Any, key: Any, weights: tuple[Any, ...], **settings: Any) -> Any:
    width = query.shape[-1]
    w, b, out_w, out_b = weights
    return F.multi_head_attention_forward(query, key, key, width, 2, w, b, None, None, False, 0.0, out_w, out_b, **settings)


def test_heads_with_and_without_weights_agree() -> None:
    q, k = drawn(3, 2, 4), drawn(5, 2, 4, seed=2)
    weights = drawn(12, 4, seed=3), drawn(12, seed=4), drawn(4, 4, seed=5), drawn(4, seed=6)
    padded = mg.tensor([[False] * 4 + [True], [False] * 5])
    mask = mg.tensor(np.random.default_rng(7).normal(size=(4, 3, 5)))
    for given in ({}, {"key_padding_mask": padded}, {"attn_mask": mask}, {"attn_mask": mask[0] > 0.5, "key_padding_mask": padded}):
        out, seen = heads(q, k, weights, **given)
        same, none = heads(q, k, weights, need_weights=False, **given)
        assert none is None and seen.shape == (2, 3, 5)
        np.testing.assert_allclose(out.detach().numpy(), same.detach().numpy())
    separate = F.multi_head_attention_forward(q, k, k, 4, 2, None, weights[1], None, None, False, 0.0, *weights[2:], use_separate_proj_weight=True,
                                              **dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weights[0].chunk(3))))[0]
    single, seen = heads(q[:, 0], k[:, 0], weights, average_attn_weights=False)
    np.testing.assert_allclose(separate.detach().numpy()[:, 0], single.detach().numpy())
    assert single.shape == (3, 4) and seen.shape == (2, 3, 5)


def test_a_causal_hint_stands_for_the_mask() -> None:
    q = drawn(4, 2, 4)
    weights = drawn(12, 4, seed=3), drawn(12, seed=4), drawn(4, 4, seed=5), drawn(4, seed=6)
    mask = mg.ones(4, 4).triu(1).bool()
    expected = heads(q, q, weights, attn_mask=mask)[0]
    for needed in (True, False):
        np.testing.assert_allclose(heads(q, q, weights, attn_mask=mask, is_causal=True, need_weights=needed)[0].detach().numpy(), expected.detach().numpy())


@pytest.mark.parametrize(("call", "error"), [
    (lambda x: attention(x, x, x[:2]), RuntimeError),
    (lambda x: attention(x, x[:, :2], x), RuntimeError),
    (lambda x: attention(x, x.float(), x), RuntimeError),
    (lambda x: attention(x[0], x, x), RuntimeError),
    (lambda x: attention(x, x, x, mg.ones(3, 3).bool()), RuntimeError),
    (lambda x: attention(x, x, x, mg.ones(4, 4).bool(), is_causal=True), RuntimeError),
    (lambda x: attention(x, x, x, mg.ones(4, 4).long()), RuntimeError),
    (lambda x: attention(x, x, x, dropout_p=1.5), RuntimeError),
    (lambda x: attention([[1.0]], x, x), TypeError),
    (lambda x: attention(x, x, x, enable_gqa=True), RuntimeError),
    (lambda x: heads(x, x, (None, None, x, None)), RuntimeError),
    (lambda x: heads(x[:, :3], x[:, :3], (None, None, x, None)), RuntimeError),
])
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        call(drawn(4, 4))
    assert isinstance(raised.value, mg.MutagradError)


@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (7, 3), (3, 7), (1, 5), (0, 4), (4, 1)])
@pytest.mark.parametrize("wanted", ["qkv", "v", "q", "k"])
def test_causal_attention_in_stripes_is_attention_with_a_mask(queries: int, keys: int, wanted: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(attention_room, "_ROWS", 2)
    q, k, v = drawn(2, 3, queries, 4, seed=1), drawn(2, 3, keys, 4, seed=2), drawn(2, 3, keys, 5, seed=3)
    inputs = [x if name in wanted else x.requires_grad_(False) for name, x in zip("qkv", (q, k, v))]
    leaves = [x for x in inputs if x.requires_grad]
    weigh = drawn(2, 3, queries, 5, seed=4).detach()
    masked = attention(*inputs, attn_mask=mg.ones(queries, keys, dtype=mg.bool).tril())
    causal = attention(*inputs, is_causal=True)
    np.testing.assert_allclose(causal.detach().numpy(), masked.detach().numpy(), 1e-12)
    for a, b in zip(mg.autograd.grad((causal * weigh).sum(), leaves), mg.autograd.grad((masked * weigh).sum(), leaves)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-10, 1e-12)


def test_masks_aligned_at_a_corner() -> None:
    q, k = mg.randn(1, 3, 4), mg.randn(1, 5, 4)
    assert mg.equal(attention(q, k, k, bias.causal_upper_left(3, 5)), attention(q, k, k, is_causal=True))
    assert mg.allclose(attention(q, k, k, bias.causal_lower_right(3, 5))[:, -1:], attention(q[:, -1:], k, k), atol=1e-6)
    with pytest.raises(ValueError, match="two sizes"):
        bias.causal_upper_left(3)
