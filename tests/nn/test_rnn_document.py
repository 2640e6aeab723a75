"""The program in the documentation of PyTorch's nn.RNN, which writes each layer's state into one tensor, differentiated.

There it only says what the layer computes: PyTorch refuses to differentiate it, because the states that the weights' derivatives
need are overwritten at the next step.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

STEPS, BATCH, FEATURES, HIDDEN, LAYERS = 4, 2, 3, 5, 2


def forward(params: dict[str, Any], num_layers: int, x: Any, hx: Any = None, batch_first: bool = False, library: Any = mg, copies: bool = True) -> Any:
    """Loops over time and layers that write into `h_t`. The documentation keeps a copy of the state before each step; without
    `copies` the state is overwritten while it is read."""
    if batch_first:
        x = x.transpose(0, 1)
    seq_len, batch_size, _ = x.shape
    if hx is None:
        hx = library.zeros((num_layers, batch_size, params["weight_hh_l0"].shape[1]), dtype=x.dtype)
    clone = library.Tensor.clone if hasattr(library, "Tensor") else np.copy
    h_t_minus_1, h_t = clone(hx), clone(hx)
    output = []
    for t in range(seq_len):
        for layer in range(num_layers):
            input_t = x[t] if layer == 0 else h_t[layer - 1]
            before = (h_t_minus_1 if copies else h_t)[layer]
            h_t[layer] = library.tanh(input_t @ params[f"weight_ih_l{layer}"].T + before @ params[f"weight_hh_l{layer}"].T
                                      + params[f"bias_hh_l{layer}"] + params[f"bias_ih_l{layer}"])
        output.append(clone(h_t[-1]))
        h_t_minus_1 = clone(h_t)
    output = library.stack(output)
    return output.transpose(0, 1) if batch_first else output, h_t


def made() -> tuple[Any, dict[str, Any]]:
    """Our layer, and its weights once more as tensors of their own."""
    mg.manual_seed(0)
    layer = mg.nn.RNN(FEATURES, HIDDEN, LAYERS, dtype=mg.float64)
    return layer, {name: value.clone().requires_grad_() for name, value in layer.state_dict().items()}


def inputs() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(STEPS, BATCH, FEATURES)), rng.normal(size=(LAYERS, BATCH, HIDDEN))


def loss(output: Any, last: Any) -> Any:
    """Of every element with a weight of its own."""
    factors = np.linspace(-1, 1, STEPS * BATCH * HIDDEN).reshape(STEPS, BATCH, HIDDEN)
    return (output * (mg.tensor(factors) if isinstance(output, mg.Tensor) else factors)).sum() + (last * last).sum()


def close(found: Any, expected: Any, what: str, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_it_gives_what_the_layer_gives(given: bool, copies: bool) -> None:
    layer, params = made()
    found = []
    for run in (lambda x, h: layer(x, h), lambda x, h: forward(params, LAYERS, x, h, copies=copies)):
        x, h = (mg.tensor(a, requires_grad=True) for a in inputs())
        output, last = run(x, h if given else None)
        loss(output, last).backward()
        found.append([output, last, x.grad] + [h.grad] * given)
    for what, a, b in zip(("output", "last state", "gradient of x", "gradient of hx"), *found):
        close(a, b, what)
    for name, p in layer.named_parameters():
        close(params[name].grad, p.grad, f"gradient of {name}")


@pytest.mark.parametrize("copies", [True, False])
def test_its_gradients_are_those_of_finite_differences(copies: bool) -> None:
    _, params = made()
    x, h = (mg.tensor(a, requires_grad=True) for a in inputs())
    loss(*forward(params, LAYERS, x, h, copies=copies)).backward()
    tensors = {"x": x, "h": h, **params}
    arrays = {name: t.detach().numpy().copy() for name, t in tensors.items()}

    def value() -> float:
        return float(loss(*forward(arrays, LAYERS, arrays["x"], arrays["h"], library=np)))

    for name, array in arrays.items():
        slopes = np.empty(array.shape)
        for place in np.ndindex(*array.shape):
            kept = array[place]
            values = []
            for step in (1e-6, -1e-6):
                array[place] = kept + step
                values.append(value())
            array[place] = kept
            slopes[place] = (values[0] - values[1]) / 2e-6
        np.testing.assert_allclose(tensors[name].grad.numpy(), slopes, rtol=1e-6, atol=1e-7, err_msg=name)


def test_batch_first() -> None:
    layer, params = made()
    layer.batch_first = True
    x = mg.tensor(inputs()[0]).transpose(0, 1)
    for a, b in zip(layer(x), forward(params, LAYERS, x, batch_first=True)):
        close(a, b, "batch first")
