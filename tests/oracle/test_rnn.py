"""Recurrent layers and packed sequences, beside PyTorch's with the same weights."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from oracle.compare import ours, torch
from test_rnn_document import forward

pytestmark = pytest.mark.oracle
KINDS = ["RNN", "LSTM", "GRU"]
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def flat(value: Any) -> list[Any]:
    """All tensors in a result."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [] if value is None else [value]


def close(a: Any, b: Any, what: str, tolerance: float) -> None:
    assert tuple(a.shape) == tuple(b.shape), what
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance, err_msg=what)


def twins(library_name: str, *arguments: Any, dtype: str = "float64", **settings: Any) -> tuple[Any, Any]:
    """The same layer of both libraries, with PyTorch's state loaded into ours."""
    theirs = getattr(torch.nn, library_name)(*arguments, dtype=getattr(torch, dtype), **settings)
    mine = getattr(mg.nn, library_name)(*arguments, dtype=getattr(mg, dtype), **settings)
    state = {name: ours(value) for name, value in theirs.state_dict().items()}
    assert list(mine.state_dict()) == list(state)
    assert str(mine.load_state_dict(state)) == "<All keys matched successfully>"
    assert repr(mine) == repr(theirs)
    return mine, theirs


def compare(mine: Any, theirs: Any, inputs: list[Any], call: Any, dtype: str = "float64") -> None:
    """Results, and the gradients of inputs and parameters of the sum of all results, each element with a weight of its own."""
    tolerance = TOLERANCE[dtype]
    theirs_in = [t.clone().requires_grad_() for t in inputs]
    mine_in = [ours(t.detach()).requires_grad_() for t in inputs]
    expected, got = flat(call(theirs, torch, theirs_in)), flat(call(mine, mg, mine_in))
    expected, got = ([t for t in found if t.is_floating_point()] for found in (expected, got))
    assert len(expected) == len(got)
    for k, (a, b) in enumerate(zip(got, expected)):
        close(a, b, f"result {k}", tolerance)
    factors = [torch.linspace(-1, 1, t.numel(), dtype=t.dtype).reshape(t.shape) for t in expected]
    sum((t * f).sum() for t, f in zip(expected, factors)).backward()
    sum((t * ours(f)).sum() for t, f in zip(got, factors)).backward()
    for k, (a, b) in enumerate(zip(mine_in, theirs_in)):
        close(a.grad, b.grad, f"gradient of input {k}", tolerance)
    for (name, a), (_, b) in zip(mine.named_parameters(), theirs.named_parameters()):
        close(a.grad, b.grad, f"gradient of {name}", tolerance)


def draw(*shape: int, dtype: str = "float64") -> Any:
    return torch.randn(*shape, dtype=getattr(torch, dtype))


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


OPTIONS = list(itertools.product([1, 2], [True, False], [False, True], [False, True]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("num_layers", "bias", "batch_first", "bidirectional"), OPTIONS)
def test_options(kind: str, num_layers: int, bias: bool, batch_first: bool, bidirectional: bool) -> None:
    for given in (False, True):
        mine, theirs = twins(kind, 3, 4, num_layers=num_layers, bias=bias, batch_first=batch_first, bidirectional=bidirectional)
        states = [draw(num_layers * (1 + bidirectional), 2, 4) for _ in range(given * (1 + (kind == "LSTM")))]
        compare(mine, theirs, [draw(2, 5, 3) if batch_first else draw(5, 2, 3), *states], lambda layer, _, xs: layer(xs[0], *hx(xs[1:])))


def hx(states: list[Any]) -> list[Any]:
    return [] if not states else [states[0] if len(states) == 1 else tuple(states)]


@pytest.mark.parametrize("kind", KINDS)
def test_float32(kind: str) -> None:
    mine, theirs = twins(kind, 6, 8, num_layers=2, bidirectional=True, dtype="float32")
    compare(mine, theirs, [draw(7, 3, 6, dtype="float32")], lambda layer, _, xs: layer(xs[0]), "float32")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_projection(bias: bool, bidirectional: bool) -> None:
    mine, theirs = twins("LSTM", 3, 5, num_layers=2, bias=bias, bidirectional=bidirectional, proj_size=2)
    count = 2 * (1 + bidirectional)
    compare(mine, theirs, [draw(4, 3, 3), draw(count, 3, 2), draw(count, 3, 5)], lambda layer, _, xs: layer(xs[0], (xs[1], xs[2])))


def test_relu() -> None:
    mine, theirs = twins("RNN", 3, 4, 2, "relu")
    compare(mine, theirs, [draw(5, 2, 3)], lambda layer, _, xs: layer(xs[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_without_batch(kind: str, batch_first: bool) -> None:
    mine, theirs = twins(kind, 3, 4, batch_first=batch_first, bidirectional=True)
    states = [draw(2, 4) for _ in range(1 + (kind == "LSTM"))]
    compare(mine, theirs, [draw(5, 3), *states], lambda layer, _, xs: layer(xs[0], *hx(xs[1:])))
    mine.zero_grad()
    theirs.zero_grad()
    compare(mine, theirs, [draw(5, 3)], lambda layer, _, xs: layer(xs[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("lengths", [[5, 4, 2, 1], [2, 5, 1, 5]])
def test_packed(kind: str, given: bool, lengths: list[int]) -> None:
    mine, theirs = twins(kind, 3, 4, num_layers=2, bidirectional=True)
    in_order = lengths == sorted(lengths, reverse=True)

    def call(layer: Any, library: Any, xs: list[Any]) -> Any:
        rnn = library.nn.utils.rnn
        packed = rnn.pack_padded_sequence(xs[0], lengths, enforce_sorted=in_order)
        out, last = layer(packed, *hx(xs[1:]))
        padded, sizes = rnn.pad_packed_sequence(out, padding_value=-1.0)
        assert sizes.tolist() == lengths
        return padded, last, out.data

    states = [draw(4, 4, 4) for _ in range(given * (1 + (kind == "LSTM")))]
    compare(mine, theirs, [draw(5, 4, 3), *states], call)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(3,), ()])
@pytest.mark.parametrize("given", [True, False])
def test_cells(kind: str, bias: bool, batch: tuple[int, ...], given: bool) -> None:
    mine, theirs = twins(kind, 3, 4, bias=bias)
    states = [draw(*batch, 4) for _ in range(given * (1 + (kind == "LSTMCell")))]
    compare(mine, theirs, [draw(*batch, 3), *states], lambda layer, _, xs: layer(xs[0], *hx(xs[1:])))


def test_cell_relu() -> None:
    mine, theirs = twins("RNNCell", 3, 4, nonlinearity="relu")
    compare(mine, theirs, [draw(2, 3), draw(2, 4)], lambda layer, _, xs: layer(xs[0], xs[1]))


def test_a_loop_of_cells() -> None:
    mine, theirs = twins("LSTMCell", 3, 4)

    def call(cell: Any, library: Any, xs: list[Any]) -> Any:
        h, c = xs[1], xs[2]
        outputs = []
        for x in xs[0]:
            h, c = cell(x, (h, c))
            outputs.append(h)
        return library.stack(outputs), c

    compare(mine, theirs, [draw(5, 2, 3), draw(2, 4), draw(2, 4)], call)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivative(kind: str) -> None:
    """Of the squared norm of the input's gradient."""
    mine, theirs = twins(kind, 3, 4, num_layers=2, bidirectional=True)

    def call(layer: Any, library: Any, xs: list[Any]) -> Any:
        out = layer(xs[0])[0]
        g, = library.autograd.grad((out * out).sum(), xs[0], create_graph=True)
        return (g * g).sum()

    compare(mine, theirs, [draw(4, 2, 3)], call)


@pytest.mark.parametrize("kind", KINDS)
def test_functions(kind: str) -> None:
    """The functions behind the layers, called as PyTorch's."""
    mine, theirs = twins(kind, 3, 4)
    name = {"RNN": "rnn_tanh", "LSTM": "lstm", "GRU": "gru"}[kind]
    pair = kind == "LSTM"

    def call(layer: Any, library: Any, xs: list[Any]) -> Any:
        states = (xs[1], xs[1]) if pair else xs[1]
        return getattr(library, name)(xs[0], states, list(layer.parameters()), True, 1, 0.0, False, False, False)

    compare(mine, theirs, [draw(4, 2, 3), draw(1, 2, 4)], call)


def test_the_program_in_the_documentation_of_rnn() -> None:
    """PyTorch refuses to differentiate what its own documentation says that the layer computes; ours gives the layer's gradients."""
    mine, theirs = twins("RNN", 3, 4, 2)
    x = draw(5, 2, 3)
    results = [forward(dict(layer.named_parameters()), 2, given, library=library) for layer, given, library in ((theirs, x, torch), (mine, ours(x), mg))]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        results[0][0].sum().backward()
    results[1][0].sum().backward()
    theirs(x)[0].sum().backward()
    for (name, a), (_, b) in zip(mine.named_parameters(), theirs.named_parameters()):
        close(a.grad, b.grad, name, 1e-10)


# ---------------------------------------------------------------------------------------------------------------- errors

LAYER_ERRORS = {
    "features": (("RNN", 3, 4), lambda layer, lib: layer(lib.zeros(5, 2, 4))),
    "dimensions": (("GRU", 3, 4), lambda layer, lib: layer(lib.zeros(5))),
    "type": (("LSTM", 3, 4), lambda layer, lib: layer(lib.zeros(5, 2, 3, dtype=lib.float64))),
    "state": (("GRU", 3, 4), lambda layer, lib: layer(lib.zeros(5, 2, 3), lib.zeros(1, 3, 4))),
    "state dimensions": (("RNN", 3, 4), lambda layer, lib: layer(lib.zeros(5, 2, 3), lib.zeros(2, 4))),
    "cell state": (("LSTM", 3, 4), lambda layer, lib: layer(lib.zeros(5, 2, 3), (lib.zeros(1, 2, 4), lib.zeros(1, 2, 5)))),
    "steps": (("GRU", 3, 4), lambda layer, lib: layer(lib.zeros(0, 2, 3))),
    "cell": (("GRUCell", 3, 4), lambda layer, lib: layer(lib.zeros(2, 4))),
    "cell's state": (("LSTMCell", 3, 4), lambda layer, lib: layer(lib.zeros(2, 3), (lib.zeros(2, 5), lib.zeros(2, 4)))),
    "cell's dimensions": (("RNNCell", 3, 4), lambda layer, lib: layer(lib.zeros(2, 2, 3))),
}


@pytest.mark.parametrize("case", LAYER_ERRORS)
def test_errors(case: str) -> None:
    (kind, *sizes), call = LAYER_ERRORS[case]
    with pytest.raises(Exception) as expected:
        call(getattr(torch.nn, kind)(*sizes), torch)
    with pytest.raises(mg.errors.MutagradError) as found:
        call(getattr(mg.nn, kind)(*sizes), mg)
    assert isinstance(found.value, expected.type), (found.value, expected.value)


SETTING_ERRORS = [
    lambda nn: nn.RNN(3, 4, nonlinearity="gelu"), lambda nn: nn.LSTM(0, 4), lambda nn: nn.LSTM(3, -1), lambda nn: nn.GRU(3, 4, num_layers=0),
    lambda nn: nn.GRU(3.0, 4), lambda nn: nn.GRU(3, 4, bias=1), lambda nn: nn.LSTM(3, 4, dropout=1.5), lambda nn: nn.LSTM(3, 4, proj_size=4),
    lambda nn: nn.LSTM(3, 4, batch_first=1),
]


@pytest.mark.parametrize("number", range(len(SETTING_ERRORS)))
def test_settings_that_make_no_sense(number: int) -> None:
    with pytest.raises(Exception) as expected:
        SETTING_ERRORS[number](torch.nn)
    with pytest.raises(expected.type):
        SETTING_ERRORS[number](mg.nn)


# -------------------------------------------------------------------------------------------------------------- sequences

def as_lists(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [as_lists(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("rest", [(), (2,), (2, 3)])
def test_packing(batch_first: bool, rest: tuple[int, ...]) -> None:
    x = torch.arange(4 * 4 * int(np.prod(rest))).reshape(4, 4, *rest)

    def call(library: Any, x: Any) -> Any:
        rnn = library.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, [1, 4, 2, 2], batch_first, enforce_sorted=False)
        padded = rnn.pad_packed_sequence(packed, batch_first, padding_value=-7, total_length=6)
        unpadded = rnn.unpad_sequence(padded[0].clone(), padded[1], batch_first)  # PyTorch turns its argument in place
        return packed, padded, rnn.unpack_sequence(packed), unpadded

    assert as_lists(call(mg, ours(x))) == as_lists(call(torch, x))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padding(side: str, batch_first: bool) -> None:
    sequences = [torch.randn(n, 2) for n in (3, 1, 4)]

    def call(library: Any, sequences: Any) -> Any:
        rnn = library.nn.utils.rnn
        return rnn.pad_sequence(sequences, batch_first, 5.0, side), rnn.pack_sequence(sequences, enforce_sorted=False)

    assert as_lists(call(mg, ours(sequences))) == as_lists(call(torch, sequences))


def test_the_text_of_a_packed_sequence() -> None:
    packed = [lib.nn.utils.rnn.pack_sequence([lib.tensor([1, 2]), lib.tensor([3])]) for lib in (mg, torch)]
    assert repr(packed[0]) == repr(packed[1])


@pytest.mark.parametrize("lengths", [[1, 2], [2, 0], [2], [[2, 1]]])
def test_lengths_that_do_not_fit(lengths: Any) -> None:
    with pytest.raises(Exception) as expected:
        torch.nn.utils.rnn.pack_padded_sequence(torch.zeros(2, 2), torch.tensor(lengths))
    with pytest.raises(expected.type):
        mg.nn.utils.rnn.pack_padded_sequence(mg.zeros(2, 2), mg.tensor(lengths))
