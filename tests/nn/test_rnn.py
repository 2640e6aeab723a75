"""Recurrent layers: their options, their errors, what they cost, and packed sequences. (The oracle compares them with PyTorch's.)"""
from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.autograd import gradcheck, gradgradcheck
from mutagrad.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

KINDS = ["RNN", "LSTM", "GRU"]


@pytest.fixture(autouse=True)
def seeded() -> None:
    mg.manual_seed(0)


def nodes(result: Any) -> int:
    """How many recorded operations a result depends on."""
    seen: set[int] = set()
    waiting = [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in seen and hasattr(node, "next_functions"):
            seen.add(id(node))
            waiting += [f for f, _ in node.next_functions]
    return len(seen)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_nodes_does_not_grow_with_the_sequence(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4)
    assert nodes(layer(mg.randn(50, 2, 3))[0]) == nodes(layer(mg.randn(2, 2, 3))[0]) <= 12


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_a_loop_of_its_cell(kind: str) -> None:
    layer, cell = getattr(nn, kind)(3, 4, dtype=mg.float64), getattr(nn, f"{kind}Cell")(3, 4, dtype=mg.float64)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = mg.randn(6, 2, 3, dtype=mg.float64)
    state, outputs = None, []
    for step in x:
        state = cell(step, state)
        outputs.append(state[0] if kind == "LSTM" else state)
    out, _ = layer(x)
    np.testing.assert_allclose(out.detach().numpy(), mg.stack(outputs).detach().numpy(), rtol=1e-12, atol=1e-13)
    (out * out).sum().backward()
    (mg.stack(outputs) ** 2).sum().backward()
    for name, p in cell.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), getattr(layer, f"{name}_l0").grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_first_and_second_derivatives(kind: str) -> None:
    layer = getattr(nn, kind)(2, 3, num_layers=2, bidirectional=True, dtype=mg.float64)
    x = mg.randn(3, 2, 2, dtype=mg.float64, requires_grad=True)
    assert gradcheck(lambda x: layer(x)[0], (x,))
    assert gradgradcheck(lambda x: layer(x)[0], (x,))


def test_a_result_written_over_keeps_the_gradient_right() -> None:
    """What the reverse needs is not in the results that the caller may write into."""
    layer = nn.LSTM(2, 3, dtype=mg.float64)
    x = mg.randn(4, 2, 2, dtype=mg.float64)

    def gradient(write: bool) -> Any:
        layer.zero_grad()
        out, (_, c) = layer(x)
        value = (out * 3).sum() + c.sum()
        if write:
            out[1:3] = 7.0
            c.zero_()
        value.backward()
        return layer.weight_hh_l0.grad.clone()

    assert (gradient(True) == gradient(False)).all()


def test_a_written_result_takes_part() -> None:
    layer = nn.GRU(2, 3, dtype=mg.float64)
    x = mg.randn(4, 2, 2, dtype=mg.float64, requires_grad=True)
    out, _ = layer(x)
    out[3] = 0.0
    out.sum().backward()
    assert (x.grad[3] == 0).all() and (x.grad[:3] != 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_types(kind: str, dtype: str) -> None:
    pytest.importorskip("ml_dtypes", reason="pip install 'mutagrad[bfloat16]'")
    layer = getattr(nn, kind)(3, 4)
    short = copy.deepcopy(layer).to(getattr(mg, dtype))
    x = mg.randn(3, 2, 3)
    out, expected = short(x.to(getattr(mg, dtype)))[0], layer(x)[0]
    assert out.dtype == getattr(mg, dtype)
    np.testing.assert_allclose(out.float().detach().numpy(), expected.detach().numpy(), atol=0.03)
    out.sum().backward()
    expected.sum().backward()
    for a, b in zip(short.parameters(), layer.parameters()):
        assert a.grad.dtype == a.dtype
        np.testing.assert_allclose(a.grad.float().numpy(), b.grad.numpy(), atol=0.1)


def test_dropout_is_between_layers_and_in_training_only() -> None:
    layer = nn.LSTM(3, 8, num_layers=2, dropout=0.9)
    x = mg.randn(5, 2, 3)
    assert not (layer(x)[0] == layer(x)[0]).all()
    assert (layer(x)[1][0][0] == layer(x)[1][0][0]).all(), "the first layer comes before any dropout"
    layer.eval()
    assert (layer(x)[0] == layer(x)[0]).all()
    with pytest.warns(UserWarning, match="only one"):
        nn.LSTM(3, 4, dropout=0.5)


def test_weights_by_name_and_by_layer() -> None:
    layer = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    assert list(layer.state_dict())[:5] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert len(layer.all_weights) == 4
    assert layer.all_weights[1][0] is layer.weight_ih_l0_reverse
    layer.flatten_parameters()
    assert all(float(p.abs().max()) <= 0.5 for p in layer.parameters())


def test_states_are_carried_from_piece_to_piece() -> None:
    layer = nn.GRU(3, 4, 2)
    x = mg.randn(6, 2, 3)
    whole, last = layer(x)
    first, state = layer(x[:4])
    second, end = layer(x[4:], state)
    np.testing.assert_allclose(mg.cat([first, second]).detach().numpy(), whole.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(end.detach().numpy(), last.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_functional_call_and_copies() -> None:
    layer = nn.LSTM(3, 4)
    x = mg.randn(2, 2, 3)
    twin = copy.deepcopy(layer)
    assert (twin(x)[0] == layer(x)[0]).all()
    zero = {name: mg.zeros_like(p) for name, p in layer.named_parameters()}
    assert (mg.func.functional_call(layer, zero, (x,))[0] == 0).all()


def test_a_list_is_no_tensor() -> None:
    with pytest.raises(TypeError):
        nn.LSTM(1, 2)([[1.0]])
    with pytest.raises(TypeError):
        nn.LSTM(1, 2)(mg.ones(2, 1, 1), mg.ones(1, 1, 2))
    with pytest.raises(TypeError):
        nn.GRUCell(1, 2)(mg.ones(1, 1), [1.0])
    with pytest.raises(TypeError):
        mg.lstm(mg.ones(2, 1, 1))


def test_functions_say_what_does_not_fit() -> None:
    with pytest.raises(RuntimeError, match="expected 4"):
        mg.gru(mg.ones(2, 1, 1), mg.ones(1, 1, 2), [mg.ones(6, 1), mg.ones(6, 2)], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="w_ih has shape"):
        mg.gru_cell(mg.ones(1, 3), mg.ones(1, 2), mg.ones(6, 1), mg.ones(6, 2))
    with pytest.raises(TypeError, match="one floating point type"):
        mg.gru_cell(mg.ones(1, 1).double(), mg.ones(1, 2), mg.ones(6, 1), mg.ones(6, 2))
    with pytest.raises(RuntimeError, match="w_hh has shape"):
        mg.gru_cell(mg.ones(1, 1), mg.ones(1, 3), mg.ones(6, 1), mg.ones(6, 3))
    with pytest.raises(RuntimeError, match="packed rows"):
        nn.GRU(2, 2)(PackedSequence(mg.ones(5, 2), mg.tensor([2, 2])))
    with pytest.raises(TypeError, match="pair"):
        mg.lstm_cell(mg.ones(1, 1), mg.ones(1, 2), mg.ones(8, 1), mg.ones(8, 2))


# -------------------------------------------------------------------------------------------------------------- sequences

def test_packing_and_back() -> None:
    a, b, c = (mg.randn(n, 2, requires_grad=True) for n in (2, 4, 1))
    packed = pack_sequence([a, b, c], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    for x, y in zip((a, b, c), unpack_sequence(packed)):
        assert (x == y).all()
    padded, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=9.0)
    assert lengths.tolist() == [2, 4, 1]
    assert padded[2, 1:].eq(9).all()
    (padded[1] * mg.arange(4)[:, None]).sum().backward()
    assert b.grad[:, 0].tolist() == [0, 1, 2, 3]
    assert a.grad is None or (a.grad == 0).all()


def test_padded_steps_have_no_influence() -> None:
    layer = nn.LSTM(2, 3, bidirectional=True)
    x = mg.randn(5, 3, 2, requires_grad=True)
    out, (h, _) = layer(pack_padded_sequence(x, [5, 3, 1]))
    (out.data.sum() + h.sum()).backward()
    assert (x.grad[3:, 1] == 0).all() and (x.grad[1:, 2] == 0).all() and (x.grad[:3, 1] != 0).all()


def test_packed_as_one_by_one() -> None:
    layer = nn.GRU(2, 3, num_layers=2, bidirectional=True, dtype=mg.float64)
    sequences = [mg.randn(n, 2, dtype=mg.float64) for n in (3, 1, 4)]
    out, last = layer(pack_sequence(sequences, enforce_sorted=False))
    assert isinstance(out, PackedSequence)
    for k, (sequence, result) in enumerate(zip(sequences, unpack_sequence(out))):
        alone, end = layer(sequence)
        np.testing.assert_allclose(result.detach().numpy(), alone.detach().numpy(), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(last[:, k].detach().numpy(), end.detach().numpy(), rtol=1e-12, atol=1e-13)


def test_lengths_that_are_too_long() -> None:
    with pytest.raises(RuntimeError, match="steps"):
        pack_padded_sequence(mg.zeros(2, 2), [3, 3])
    with pytest.raises(ValueError, match="total_length"):
        pad_packed_sequence(pack_sequence([mg.ones(3)]), total_length=2)


def test_other_types_of_packed_sequences() -> None:
    packed = pack_sequence([mg.tensor([1, 2]), mg.tensor([3])])
    assert packed.double().data.dtype == mg.float64
    assert packed.long() is packed
    assert not packed.is_cuda and not packed.is_pinned()
    assert packed.to(mg.float32).batch_sizes is packed.batch_sizes


def test_padding_is_differentiable() -> None:
    sequences = [mg.randn(n, requires_grad=True) for n in (2, 3)]
    padded = pad_sequence(sequences, padding_side="left")
    assert padded.shape == (3, 2)
    (padded * mg.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert sequences[0].grad.tolist() == [2, 3]
    assert [s.tolist() for s in unpad_sequence(pad_sequence(sequences), [2, 3])] == [s.tolist() for s in sequences]
    with pytest.raises(RuntimeError, match="differ"):
        pad_sequence([mg.zeros(2, 1), mg.zeros(2, 3)])
    with pytest.raises(TypeError):
        pad_sequence(3)
