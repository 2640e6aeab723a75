"""Attention layers and transformers: masks, options, errors. (The oracle compares them with PyTorch's.)"""
from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.autograd import gradcheck, gradgradcheck


@pytest.fixture(autouse=True)
def seeded() -> None:
    mg.manual_seed(0)


def test_weights_are_an_average() -> None:
    attention = nn.MultiheadAttention(6, 3)
    x = mg.randn(4, 2, 6)
    out, weights = attention(x, x, x)
    assert out.shape == (4, 2, 6) and weights.shape == (2, 4, 4)
    np.testing.assert_allclose(weights.sum(-1).detach().numpy(), 1, atol=1e-6)
    assert attention(x, x, x, average_attn_weights=False)[1].shape == (2, 3, 4, 4)
    same, none = attention(x, x, x, need_weights=False)
    assert none is None
    np.testing.assert_allclose(same.detach().numpy(), out.detach().numpy(), atol=1e-6)


def test_batch_first_is_the_same_turned() -> None:
    one, two = nn.MultiheadAttention(6, 2), nn.MultiheadAttention(6, 2, batch_first=True)
    two.load_state_dict(one.state_dict())
    q, k = mg.randn(3, 2, 6), mg.randn(4, 2, 6)
    np.testing.assert_allclose(two(q.transpose(0, 1), k.transpose(0, 1), k.transpose(0, 1))[0].transpose(0, 1).detach().numpy(),
                               one(q, k, k)[0].detach().numpy(), atol=1e-6)


def test_a_causal_model_does_not_see_what_comes() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    x = mg.randn(2, 5, 6, requires_grad=True)
    layer(x, src_mask=mask)[:, 2].sum().backward()
    assert (x.grad[:, 3:] == 0).all() and (x.grad[:, :3] != 0).any()
    np.testing.assert_allclose(layer(x, mask, is_causal=True).detach().numpy(), layer(x, mask).detach().numpy(), atol=1e-6)


def test_padding_is_not_attended_to() -> None:
    model = nn.Transformer(6, 2, 1, 1, 8, dropout=0.0)
    source, target = mg.randn(4, 2, 6, requires_grad=True), mg.randn(3, 2, 6)
    padding = mg.tensor([[False, False, False, True], [False, False, True, True]])
    model(source, target, src_key_padding_mask=padding, memory_key_padding_mask=padding).pow(2).sum().backward()
    assert (source.grad[3] == 0).all() and (source.grad[2, 1] == 0).all() and (source.grad[:2] != 0).any()


@pytest.mark.parametrize("norm_first", [False, True])
def test_derivatives(norm_first: bool) -> None:
    layer = nn.TransformerDecoderLayer(4, 2, 3, dropout=0.0, activation="gelu", norm_first=norm_first, dtype=mg.float64)
    inputs = tuple(mg.randn(2, 1, 4, dtype=mg.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(layer, inputs)
    assert gradgradcheck(layer, inputs)


def test_dropout_is_in_training_only() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.5)
    x = mg.randn(3, 2, 8)
    assert not (layer(x) == layer(x)).all()
    layer.eval()
    assert (layer(x) == layer(x)).all()


def test_layers_of_a_stack_are_copies() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 4)
    stack = nn.TransformerEncoder(layer, 3)
    first, second = stack.layers[0], stack.layers[1]
    assert first is not layer and first.linear1.weight is not second.linear1.weight
    assert (first.linear1.weight == second.linear1.weight).all()
    assert len(list(stack.parameters())) == 3 * len(list(layer.parameters()))


def test_a_custom_encoder_and_decoder() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 1)
    model = nn.Transformer(4, 2, custom_encoder=encoder, num_decoder_layers=1, dim_feedforward=4)
    assert model.encoder is encoder
    assert model(mg.ones(3, 2, 4), mg.ones(2, 2, 4)).shape == (2, 2, 4)


def test_training_reduces_the_loss() -> None:
    """A small model learns to copy: gradients go the right way through all of it."""
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
    source, target = mg.randn(4, 3, 8), mg.randn(4, 3, 8)
    losses = []
    for _ in range(30):
        loss = (model(source, target) - source).pow(2).mean()
        losses.append(loss.item())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with mg.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    assert losses[-1] < 0.7 * losses[0]


def test_errors_say_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="divisible"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(ValueError, match="above 0"):
        nn.MultiheadAttention(4, 0)
    with pytest.raises(ValueError, match="activation"):
        nn.TransformerEncoderLayer(4, 2, activation="sin")
    with pytest.raises(TypeError):
        nn.MultiheadAttention(4, 2)([1.0], [1.0], [1.0])
    model = nn.Transformer(4, 2, 1, 1, 4)
    with pytest.raises(RuntimeError, match="batch"):
        model(mg.ones(3, 2, 4), mg.ones(3, 1, 4))
    with pytest.raises(RuntimeError, match="features"):
        model(mg.ones(3, 2, 5), mg.ones(3, 2, 5))
