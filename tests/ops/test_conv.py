"""Convolutions that are large enough to be cut into blocks, chunks and threads; and what is said about bad arguments."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.ops.nn import conv as room
from samples import conv as reference

F = mg.nn.functional


@pytest.mark.parametrize(("x", "w", "settings"), [
    ((9, 8, 20, 20), (40, 8, 3, 3), {}),  # blocks of columns, several threads
    ((70, 8, 5, 5), (300, 8, 3, 3), {"padding": 1}),  # blocks of rows
    ((9, 8, 21, 20), (40, 4, 3, 3), {"groups": 2, "padding": 2, "dilation": 2}),
    ((9, 8, 40, 40), (40, 8, 3, 3), {"stride": 2}),
    ((9, 96, 12, 12), (32, 96, 1, 1), {}),
], ids=str)
def test_large_convolutions(x: tuple[int, ...], w: tuple[int, ...], settings: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_CHUNK", 1 << 16)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=x), rng.normal(size=w)
    image, weight = mg.tensor(a, requires_grad=True), mg.tensor(b, requires_grad=True)
    out = F.conv2d(image, weight, **settings)
    expected = reference.conv(a, b, **settings)
    np.testing.assert_allclose(out.detach().numpy(), expected, 1e-9, 1e-9)
    g = rng.normal(size=expected.shape)
    out.backward(mg.tensor(g))
    for leaf, moved in ((image, lambda d: reference.conv(d, b, **settings)), (weight, lambda d: reference.conv(a, d, **settings))):
        direction = rng.normal(size=leaf.shape)  # convolution is linear in each: g · conv(direction) is the slope along it
        np.testing.assert_allclose((leaf.grad.numpy() * direction).sum(), (g * moved(direction)).sum(), 1e-9)


def test_nothing_but_input_and_weight_is_saved() -> None:
    x, w = mg.randn(4, 3, 9, 9, requires_grad=True), mg.randn(5, 3, 3, 3, requires_grad=True)
    saved = [v for v in F.conv2d(x, w, padding=1).grad_fn.saved if isinstance(v, np.ndarray)]
    assert all(np.shares_memory(v, x._array) or np.shares_memory(v, w._array) for v in saved) and len(saved) == 2


@pytest.mark.parametrize(("call", "words"), [
    (lambda x, w: F.conv2d(x, w[:, :1]), r"1 channels, the input has 2"),
    (lambda x, w: F.conv2d(x, w, mg.ones(7)), r"\(3,\), got \(7,\)"),
    (lambda x, w: F.conv2d(x, mg.ones(3, 2, 9, 9)), r"\(4 x 5\).*\(9 x 9\).*greater than actual input size"),
    (lambda x, w: F.conv2d(x, w, groups=2), "groups=2"),
    (lambda x, w: F.conv2d(x, w, stride=2, padding="same"), "stride of 1"),
    (lambda x, w: F.conv2d(x, w, stride=0), "stride"),
    (lambda x, w: F.conv2d(x, w.double()), "float32, float64"),
    (lambda x, w: F.conv2d(x[0, 0], w), r"\[4, 5\]"),
    (lambda x, w: F.conv_transpose2d(x, w), "3 channels, the input has 2"),
    (lambda x, w: F.conv_transpose2d(x, mg.ones(2, 3, 2, 2), output_padding=1), "output_padding"),
    (lambda x, w: F.fold(x[0], 4, 3), "fold"),
    (lambda x, w: F.unfold(x, 6), r"\(6, 6\)"),
])
def test_bad_arguments_say_what_would_fit(call: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words) as caught:
        call(mg.ones(1, 2, 4, 5), mg.ones(3, 2, 2, 2))
    assert caught.value.fix


@pytest.mark.parametrize("call", [lambda: F.conv2d([1.0], mg.ones(1, 1, 1, 1)), lambda: F.conv2d(mg.ones(1, 1, 3, 3), np.ones((1, 1, 1, 1))),
                                  lambda: F.conv2d(mg.ones(1, 1, 3, 3), mg.ones(1, 1, 1, 1), stride=1.5)])
def test_arguments_of_the_wrong_kind(call: Any) -> None:
    with pytest.raises(TypeError):
        call()


def test_convolutions_under_other_names() -> None:
    x, w, b = mg.randn(2, 3, 7), mg.randn(4, 3, 2), mg.randn(4)
    assert mg.allclose(mg.convolution(x, w, b, [2], [1], [1], False, [0], 1), F.conv1d(x, w, b, 2, 1))
    assert mg.allclose(mg.convolution(x, w.transpose(0, 1), None, [2], [1], [1], True, [1], 1), F.conv_transpose1d(x, w.transpose(0, 1), None, 2, 1, 1))
    assert mg.allclose(mg.conv_tbc(x.permute(2, 0, 1), w.permute(2, 1, 0), b, 1), F.conv1d(x, w, b, padding=1).permute(2, 0, 1), atol=1e-6)
    with pytest.raises(RuntimeError, match="3 dimensions"):
        F.conv_tbc(x, w[0], b)


@pytest.mark.parametrize("settings", [{}, {"padding": 1}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"stride": (1, 2)}])
@pytest.mark.parametrize("size", [(20, 21), (80, 90)])
def test_channels_by_themselves_are_what_separate_convolutions_give(settings: dict[str, Any], size: tuple[int, int]) -> None:
    """On a large image the sums of the gradient by the weight are made in pieces."""
    rng = np.random.default_rng(0)
    kernels = mg.get_kernels()
    mg.set_kernels("numpy")
    try:
        x = mg.tensor(rng.standard_normal((3, 4, *size)), requires_grad=True)
        weight = mg.tensor(rng.standard_normal((4, 1, 3, 3)), requires_grad=True)
        found = F.conv2d(x, weight, groups=4, **settings)
        parts = mg.cat([F.conv2d(x[:, c:c + 1], weight[c:c + 1], **settings) for c in range(4)], 1)
        g = mg.tensor(rng.standard_normal(tuple(found.shape)))
        assert mg.allclose(found, parts)
        for ours, exact in zip(mg.autograd.grad(found, (x, weight), g), mg.autograd.grad(parts, (x, weight), g)):
            assert mg.allclose(ours, exact)
    finally:
        mg.set_kernels(kernels)
