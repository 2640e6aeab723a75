"""Short ways that small tensors take give what the long ones do, errors too."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg


@pytest.mark.parametrize("shape", [(-2, 3), (-1, -1), (4,), (0, -1), (2**70,), (-3,)])
@pytest.mark.parametrize("name", ["reshape", "view"])
def test_shapes_that_do_not_fit(name: str, shape: tuple[int, ...]) -> None:
    for x in (mg.arange(6), mg.arange(12)[::2]):
        with pytest.raises(mg.MutagradError, match="is invalid for input of size 6"):
            getattr(x, name)(shape)


@pytest.mark.parametrize("order", [(0,), (0, 0), (0, 2), (-3, 1), (), (0, 1, 2)])
def test_orders_that_are_none(order: tuple[int, ...]) -> None:
    with pytest.raises(mg.MutagradError):
        mg.zeros(2, 3).permute(order)


def test_dimensions_move() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    x = mg.tensor(a)
    for source in range(-3, 3):
        for to in range(-3, 3):
            np.testing.assert_array_equal(x.movedim(source, to).numpy(), np.moveaxis(a, source, to))
    assert mg.tensor(1.0).movedim(0, -1).shape == ()
    with pytest.raises(IndexError):
        x.movedim(3, 0)


def test_parts_are_views_of_their_place() -> None:
    x = mg.arange(24.0).reshape(4, 6)[1:, 1:]
    for dim in (0, 1):
        for parts in (x.split(2, dim), x.chunk(2, dim), x.unbind(dim), x.split([1, 0, x.shape[dim] - 1], dim)):
            joined = mg.stack(parts, dim) if parts[0].ndim == 1 else mg.cat(parts, dim)
            np.testing.assert_array_equal(joined.numpy(), x.numpy())
    for k, part in enumerate(x.unbind(1)):
        part.fill_(k)
    np.testing.assert_array_equal(x.numpy(), np.tile(np.arange(5.0), (3, 1)))
    for offset in range(-4, 6):
        np.testing.assert_array_equal(x.diagonal(offset, 1, 0).numpy(), x.numpy().diagonal(offset, 1, 0))


@pytest.mark.parametrize("data", [[1.0, 2.0], [[1, 2], [3, 4]], [True, False], 3, 2.5, [1, 2.0], [[1.0], [2]], [], [[], []], [2**62, 1], (1.0, 2.0), [1e300]])
def test_data(data: Any) -> None:
    found = mg.tensor(data)
    kind = np.array(data).dtype.kind
    assert found.dtype is {"f": mg.float32, "i": mg.int64, "b": mg.bool}[kind]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.numpy(), np.array(data).astype(found.numpy().dtype))


@pytest.mark.parametrize("data", [[2**63], [[1.0], [2.0, 3.0]], [1, "a"], [[1], 2]])
def test_data_that_no_tensor_holds(data: Any) -> None:
    with pytest.raises(mg.MutagradError):
        mg.tensor(data)


def test_short_default_types() -> None:
    mg.set_default_dtype(mg.bfloat16)
    try:
        assert mg.tensor([1.0, 2.0]).tolist() == [1.0, 2.0] and mg.tensor([1.0]).dtype is mg.bfloat16
        assert mg.full((2,), 1.5).dtype is mg.bfloat16 and mg.ones(2).tolist() == [1.0, 1.0]
    finally:
        mg.set_default_dtype(mg.float32)


@pytest.mark.parametrize("arguments", [(10,), (3, 10), (10, 3, -2), (0,), (5, 5), (2**40, 2**40 + 3), (0, 7, 3), (-3,), (3, 1), (1, 2, 0), (2**63,)])
def test_ranges(arguments: tuple[int, ...]) -> None:
    try:
        found = mg.arange(*arguments)
    except mg.MutagradError:
        first, last, step = (0, *arguments, 1) if len(arguments) == 1 else (*arguments, 1)[:3]
        assert not step or (last - first) * step < 0 or last >= 2**63
    else:
        np.testing.assert_array_equal(found.numpy(), np.arange(*arguments))
        assert found.dtype is mg.int64


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)])
def test_eye(shape: tuple[int, int]) -> None:
    np.testing.assert_array_equal(mg.eye(*shape).numpy(), np.eye(*shape))


def test_stack_is_differentiated_through_windows_and_into_others() -> None:
    x = mg.arange(12.0).reshape(3, 4).requires_grad_()
    weights = mg.arange(24.0).reshape(3, 2, 4)
    out = mg.zeros(3, 2, 4)
    mg.stack([x * 2, x.flip(0)], 1, out=out)
    (out * weights).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * weights[:, 0].numpy() + weights[:, 1].numpy()[::-1])
    g, = mg.autograd.grad((mg.stack([x[0], x[2] ** 2, x[0]], -1) ** 2).sum(), x, create_graph=True)
    gg, = mg.autograd.grad(g.sum(), x)
    expected = np.zeros((3, 4))
    expected[0], expected[2] = 4, 12 * x.detach().numpy()[2] ** 2
    np.testing.assert_allclose(gg.numpy(), expected)


@pytest.mark.parametrize("index", [[0, -1, 2], [[0, 1], [-3, 2]], []])
def test_positions(index: list[Any]) -> None:
    a = np.arange(12.0).reshape(3, 4)
    places = mg.tensor(index, dtype=mg.int64)
    for array in (a, a.T[:3], a[:, 1]):
        x = mg.tensor(array)
        np.testing.assert_array_equal(x[places].numpy(), array[np.array(index, int)])
    x = mg.tensor(a, requires_grad=True)
    y = x * 1
    y[places] = 7.0
    with pytest.raises(IndexError):
        y[mg.tensor([0, 3])]
    places.fill_(0)
    y.sum().backward()
    expected = np.ones((3, 4))
    expected[np.array(index, int)] = 0
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0])
def test_powers_of_one_number(exponent: float) -> None:
    x = mg.tensor(1.5, dtype=mg.float64, requires_grad=True)
    x.pow(exponent).backward()
    assert x.grad is not None and x.grad.item() == pytest.approx(exponent * 1.5 ** (exponent - 1))


def test_tensors_of_one_element_are_numbers_in_a_list() -> None:
    one, two, number = mg.tensor([1.0]), mg.tensor([[2.0]]), mg.tensor(3.0)
    for data in ([one, two, number], [one, 2.0, number], [1.0, two, 3]):
        for make in (mg.tensor, mg.as_tensor, mg.zeros(1).new_tensor):
            assert make(data).tolist() == [1, 2, 3]
    assert mg.tensor([[one, two], [number, one]]).tolist() == [[1, 2], [3, 1]]
    assert mg.tensor([mg.tensor([True]), mg.tensor([False])]).dtype is mg.bool
    row = np.array([4.0])
    for rows in ([one, [number]], [[number], one], [one, (5.0,)], [row, one], [row, row]):  # beside a row, a row
        assert mg.tensor(rows).shape == (2, 1)
    assert mg.tensor([np.array(1.0), 2.0]).tolist() == [1, 2]


def test_arrays_of_one_element_are_rows_in_a_list() -> None:
    assert mg.tensor([np.array([1.0])]).shape == (1, 1)
    assert mg.tensor([np.ones((1, 1)), np.zeros((1, 1))]).shape == (2, 1, 1)
    for data in ([np.array([1.0]), 2.0], [2.0, np.array([1.0])]):
        with pytest.raises(mg.MutagradError, match="equal lengths"):
            mg.tensor(data)


def test_bools_after_a_size_are_sizes() -> None:
    assert mg.zeros(2, True).shape == mg.rand((2, True)).shape == mg.zeros(2).reshape(2, True).shape == (2, 1)
    assert mg.ones(2, False).shape == (2, 0)
    for wrong in ((True,), (True, 2)):
        with pytest.raises(mg.MutagradError, match="expects an integer, got bool"):
            mg.zeros(wrong)
