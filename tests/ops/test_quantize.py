"""Is a number rounded to the steps of a quantized type, with the straight-through derivative?"""

from __future__ import annotations

import pytest

import mutagrad as mg


def test_beyond_the_steps_the_value_is_the_last_and_the_derivative_zero() -> None:
    x = mg.tensor([-9.0, -0.9, 0.125, 0.375, 2.0, float("inf")], requires_grad=True)
    y = mg.fake_quantize_per_tensor_affine(x, 0.25, 1, -4, 3)
    y.sum().backward()
    assert y.tolist() == [-1.25, -1.0, 0.0, 0.5, 0.5, 0.5] and x.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


def test_each_channel_has_a_scale() -> None:
    x = mg.tensor([[0.3, 0.3], [0.6, 9.0]], requires_grad=True)
    y = mg.fake_quantize_per_channel_affine(x, mg.tensor([0.25, 0.5]), mg.zeros(2, dtype=mg.int32), 1, -8, 7)
    y.sum().backward()
    assert y.tolist() == [[0.25, 0.5], [0.5, 3.5]] and x.grad.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert mg.equal(mg.fake_quantize_per_tensor_affine(x, mg.tensor(0.5), mg.tensor(0), -8, 7)[:, 1], y[:, 1])


@pytest.mark.parametrize("settings", [(0.1, 9, -8, 7), (0.1, 0, 8, -7), (mg.ones(2), 0, -8, 7)])
def test_settings_that_make_no_sense_are_refused(settings: tuple[object, ...]) -> None:
    with pytest.raises(RuntimeError):
        mg.fake_quantize_per_tensor_affine(mg.ones(2), *settings)


def test_what_has_no_derivative_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="no derivative"):
        mg.fake_quantize_per_tensor_affine(mg.ones(2), mg.ones((), requires_grad=True), 0, -8, 7)
    with pytest.raises(NotImplementedError, match="floating"):
        mg.fake_quantize_per_tensor_affine(mg.ones(2, dtype=mg.int64), 0.1, 0, -8, 7)
    with pytest.raises(RuntimeError):
        mg.fake_quantize_per_channel_affine(mg.ones(2, 3), mg.ones(2), mg.zeros(3), 0, -8, 7)
