"""Attention and transformers, beside PyTorch's with the same weights."""
from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

import mutagrad as mg
from oracle.compare import ours, torch
from oracle.test_rnn import compare, draw, twins

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def mask_for(library: Any, mask: Any) -> Any:
    return mask if library is torch or mask is None else ours(mask)


CAUSAL = torch.ones(3, 4).triu(1).bool()
PADDING = torch.tensor([[False, False, False, True], [False, True, False, False]])


@pytest.mark.parametrize(("batch_first", "bias"), [(False, True), (True, False)])
@pytest.mark.parametrize(("need_weights", "average"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("settings", [{}, {"kdim": 3, "vdim": 5}, {"add_bias_kv": True}, {"add_zero_attn": True},
                                      {"add_bias_kv": True, "add_zero_attn": True, "vdim": 5}], ids=str)
def test_attention(batch_first: bool, bias: bool, need_weights: bool, average: bool, settings: Any) -> None:
    mine, theirs = twins("MultiheadAttention", 6, 2, bias=bias, batch_first=batch_first, **settings)
    inputs = [draw(2, 3, 6), draw(2, 4, settings.get("kdim", 6)), draw(2, 4, settings.get("vdim", 6))]
    inputs = inputs if batch_first else [x.transpose(0, 1).contiguous() for x in inputs]
    masks = [(None, None), (CAUSAL, None), (None, PADDING), (CAUSAL, PADDING), (draw(3, 4), None), (draw(4, 3, 4), draw(2, 4)),
             (CAUSAL.expand(4, 3, 4), None)]
    for attn_mask, padding in masks:
        mine.zero_grad()
        theirs.zero_grad()
        compare(mine, theirs, inputs, lambda layer, library, xs: layer(
            *xs, key_padding_mask=mask_for(library, padding), need_weights=need_weights, attn_mask=mask_for(library, attn_mask),
            average_attn_weights=average))


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_without_batch(batch_first: bool) -> None:
    mine, theirs = twins("MultiheadAttention", 6, 3, batch_first=batch_first)
    compare(mine, theirs, [draw(3, 6), draw(4, 6), draw(4, 6)], lambda layer, library, xs: layer(
        *xs, key_padding_mask=mask_for(library, PADDING[0]), attn_mask=mask_for(library, CAUSAL)))


def test_attention_in_float32_to_itself() -> None:
    mine, theirs = twins("MultiheadAttention", 8, 4, dtype="float32")
    compare(mine, theirs, [draw(5, 3, 8, dtype="float32")], lambda layer, _, xs: layer(xs[0], xs[0], xs[0], need_weights=False), "float32")


def test_causal_attention() -> None:
    mine, theirs = twins("MultiheadAttention", 6, 2)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    compare(mine, theirs, [draw(4, 2, 6)], lambda layer, library, xs: layer(
        xs[0], xs[0], xs[0], attn_mask=mask_for(library, mask), need_weights=False, is_causal=True))


OPTIONS = list(itertools.product([False, True], [False, True], [False, True], ["relu", "gelu"]))


@pytest.mark.parametrize(("batch_first", "norm_first", "bias", "activation"), OPTIONS)
def test_layers(batch_first: bool, norm_first: bool, bias: bool, activation: str) -> None:
    settings = {"dim_feedforward": 7, "dropout": 0.0, "activation": activation, "layer_norm_eps": 1e-3, "batch_first": batch_first,
                "norm_first": norm_first, "bias": bias}
    shape = (2, 4, 6) if batch_first else (4, 2, 6)
    for training in (True, False):
        mine, theirs = twins("TransformerEncoderLayer", 6, 2, **settings)
        mine.train(training)
        theirs.train(training)
        compare(mine, theirs, [draw(*shape)], lambda layer, library, xs: layer(xs[0], src_key_padding_mask=mask_for(library, PADDING)))
    mine, theirs = twins("TransformerDecoderLayer", 6, 2, **settings)
    causal = torch.ones(3, 3).triu(1).bool()
    compare(mine, theirs, [draw(2, 3, 6) if batch_first else draw(3, 2, 6), draw(*shape)], lambda layer, library, xs: layer(
        *xs, tgt_mask=mask_for(library, causal), memory_key_padding_mask=mask_for(library, PADDING)))


def with_activation(library: Any, which: str) -> Any:
    return {"module": library.nn.GELU("tanh"), "function": library.tanh}[which]


@pytest.mark.parametrize("which", ["module", "function"])
def test_activations_that_are_no_string(which: str) -> None:
    theirs = torch.nn.TransformerEncoderLayer(6, 2, 7, 0.0, with_activation(torch, which), dtype=torch.float64)
    mine = mg.nn.TransformerEncoderLayer(6, 2, 7, 0.0, with_activation(mg, which), dtype=mg.float64)
    mine.load_state_dict({name: ours(value) for name, value in theirs.state_dict().items()})
    assert repr(mine) == repr(theirs)
    compare(mine, theirs, [draw(4, 2, 6)], lambda layer, _, xs: layer(xs[0]))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch", [True, False])
def test_transformer(batch_first: bool, norm_first: bool, batch: bool) -> None:
    mine, theirs = twins("Transformer", 6, 2, 2, 2, 7, 0.0, batch_first=batch_first, norm_first=norm_first)
    source, target = ((2, 4, 6), (2, 3, 6)) if batch_first else ((4, 2, 6), (3, 2, 6))
    if not batch:
        source, target = (4, 6), (3, 6)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    compare(mine, theirs, [draw(*source), draw(*target)], lambda layer, library, xs: layer(*xs, tgt_mask=mask_for(library, causal)))
    mine.zero_grad()
    theirs.zero_grad()
    if batch:
        compare(mine, theirs, [draw(*source), draw(*target)], lambda layer, library, xs: layer(
            *xs, src_key_padding_mask=mask_for(library, PADDING), memory_key_padding_mask=mask_for(library, PADDING), memory_mask=mask_for(library, CAUSAL)))


@pytest.mark.parametrize("norm", [False, True])
def test_stacks(norm: bool) -> None:
    def made(library: Any) -> tuple[Any, Any]:
        nn = library.nn
        settings = {"dtype": library.float64}
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 7, 0.0, **settings), 2, nn.LayerNorm(6, **settings) if norm else None)
        return encoder, nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 7, 0.0, **settings), 2, nn.LayerNorm(6, **settings) if norm else None)

    for number, (mine, theirs) in enumerate(zip(made(mg), made(torch))):
        mine.load_state_dict({name: ours(value) for name, value in theirs.state_dict().items()})
        assert repr(mine) == repr(theirs)
        compare(mine, theirs, [draw(4, 2, 6), draw(3, 2, 6)][:1 + number], lambda layer, _, xs: layer(*xs))


def test_the_subsequent_mask() -> None:
    mine, theirs = (library.nn.Transformer.generate_square_subsequent_mask(4) for library in (mg, torch))
    assert mine.tolist() == theirs.tolist()


def test_whole_transformer_defaults() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert repr(mg.nn.Transformer(16, 4, 1, 1, 8)) == repr(torch.nn.Transformer(16, 4, 1, 1, 8))


ERRORS = [
    lambda lib: lib.nn.MultiheadAttention(5, 2), lambda lib: lib.nn.MultiheadAttention(0, 2),
    lambda lib: lib.nn.TransformerEncoderLayer(4, 2, activation="tanh"),
    lambda lib: lib.nn.Transformer(4, 2, 1, 1, 4)(lib.zeros(3, 2, 4), lib.zeros(3, 1, 4)),
    lambda lib: lib.nn.Transformer(4, 2, 1, 1, 4)(lib.zeros(3, 2, 5), lib.zeros(3, 2, 4)),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.zeros(3, 2, 4)] * 3, attn_mask=lib.zeros(2, 2)),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(*[lib.zeros(3, 2, 4)] * 3, key_padding_mask=lib.zeros(3, 2)),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(lib.zeros(3, 2, 4), lib.zeros(3, 2, 4), lib.zeros(4, 2, 4)),
    lambda lib: lib.nn.MultiheadAttention(4, 2)(lib.zeros(3, 2, 4), lib.zeros(3, 4), lib.zeros(3, 4)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    with pytest.raises(Exception) as expected:
        ERRORS[number](torch)
    with pytest.raises(mg.errors.MutagradError) as found:
        ERRORS[number](mg)
    asserted = expected.type is AssertionError  # nobody catches these
    assert asserted or isinstance(found.value, expected.type), (found.value, expected.value)
