"""What the table of samples does not ask of arranging: new tensors with strides, other windows in place, refusals."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg


def test_shapes_that_broadcast() -> None:
    found = mg.broadcast_shapes((5, 1), (7,), 1)
    assert found == (5, 7) and isinstance(found, mg.Size)
    with pytest.raises(RuntimeError, match="Shape mismatch: objects cannot be broadcast to a single shape"):
        mg.broadcast_shapes((2,), (3,))


def test_new_tensors_with_strides() -> None:
    x = mg.empty_strided((2, 3), (1, 2), dtype=mg.float64)
    assert x.shape == (2, 3) and x.stride() == (1, 2) and x.dtype is mg.float64
    assert mg.empty_permuted((2, 3, 5), (0, 2, 1)).stride() == (15, 1, 3)
    assert x.new_empty_strided((4,), (2,)).dtype is mg.float64
    s = mg.scalar_tensor(3)
    assert s.shape == () and s.dtype is mg.float32 and s.item() == 3
    assert mg.scalar_tensor(2.5, dtype=mg.int64).item() == 2


def test_resize_keeps_what_fits() -> None:
    x = mg.arange(6.0)
    memory = x.data_ptr()
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]] and x.data_ptr() == memory
    assert x.resize_((8,)).tolist()[:6] == [0, 1, 2, 3, 4, 5] and x.shape == (8,)
    assert x.resize_as_(mg.ones(2, 1)).tolist() == [[0], [1]]
    with pytest.raises(RuntimeError):
        mg.ones(3, requires_grad=True).resize_(2)


def test_set_shares_memory() -> None:
    x, y = mg.zeros(3), mg.arange(4.0)
    assert x.set_(y) is x
    y[0] = 7.0
    assert x.tolist() == [7, 1, 2, 3]
    assert x.set_(y, 1, (2,)).tolist() == [1, 2]
    assert x.set_().numel() == 0
    with pytest.raises(RuntimeError):
        x.set_(mg.arange(3))
    leaf = mg.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        leaf.set_(mg.ones(2))
    with mg.no_grad():
        leaf.set_(mg.ones(3))
    (leaf * 2).sum().backward()
    assert leaf.is_leaf and leaf.tolist() == [1, 1, 1] and leaf.grad.tolist() == [2, 2, 2]


def test_other_windows_in_place_keep_the_history() -> None:
    x = mg.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 2
    assert y.swapaxes_(0, 1) is y and y.shape == (3, 2)
    y[0, 1] = 0.0
    y.as_strided_((4,), (1,), 1)
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2, 2], [0, 2, 0]]


@pytest.mark.parametrize(("call", "error"), [
    (lambda: mg.meshgrid(mg.ones(2, 2)), RuntimeError),
    (lambda: mg.meshgrid(mg.ones(2), indexing="ji"), RuntimeError),
    (lambda: mg.vstack([[1.0]]), TypeError),
    (lambda: mg.repeat_interleave(mg.ones(3), mg.tensor([1, 2])), RuntimeError),
    (lambda: mg.repeat_interleave(mg.ones(3), -1), RuntimeError),
    (lambda: mg.ones(5).hsplit(2), RuntimeError),
    (lambda: mg.ones(5).tensor_split(0), RuntimeError),
    (lambda: mg.ones(5, 5).rot90(1, (0, 0)), RuntimeError),
    (lambda: mg.ones(5).fliplr(), RuntimeError),
    (lambda: mg.t_copy([1.0]), TypeError),
    (lambda: mg.ones(3, 3).select_scatter(mg.ones(2), 0, 0), RuntimeError),
    (lambda: mg.ones(3).slice_scatter(mg.ones(3), 0, 0, 3, 0), RuntimeError),
    (lambda: mg.empty_strided((2,), (1,), layout=mg.sparse_coo), NotImplementedError),
])
def test_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, mg.MutagradError)


def test_resize_is_an_old_name_for_reshape() -> None:
    x = mg.arange(6.0).requires_grad_()
    with pytest.warns(UserWarning, match="deprecated"):
        y = x.resize(2, 3)
    y.sum().backward()
    assert y.shape == (2, 3) and x.grad.tolist() == [1.0] * 6
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="input of size 6"):
        x.resize(4)


def test_resizing_into_channels_last_and_beyond_what_can_be_addressed() -> None:
    x = mg.arange(24.0).resize_((1, 3, 2, 4), memory_format=mg.channels_last)
    assert x.is_contiguous(memory_format=mg.channels_last) and x.stride() == (24, 1, 12, 3) and x[0, 1, 0, 1].item() == 4
    with pytest.raises(RuntimeError, match="overflow"):
        mg.zeros(()).resize_([2**40, 2**40])
    with pytest.raises(RuntimeError, match="dimensions"):
        mg.zeros(4).resize_((2, 2), memory_format=mg.channels_last)


def test_empty_tensors_join_and_are_read_as_other_types() -> None:
    assert mg.cat([mg.empty(0), mg.empty(0)], dim=1).shape == (0,)
    assert mg.empty(0, 4, dtype=mg.uint8).view(mg.int32).shape == (0, 1) and mg.fft.fftfreq(0).shape == (0,)
    with pytest.raises(RuntimeError):
        mg.broadcast_shapes(1.5)
    with pytest.raises(IndexError, match="Dimension out of range"):
        mg.ones(2).sum(3)


def test_numbers_in_a_row_are_written_into_any_shape_of_as_many() -> None:
    x = mg.zeros(2, 3)
    mg.arange(0, 4, out=x.narrow(1, 1, 2))
    assert x.tolist() == [[0, 0, 1], [0, 2, 3]]
    assert mg.linspace(0, 3, 4, out=mg.zeros(2, 2)).tolist() == [[0, 1], [2, 3]]
    with pytest.warns(UserWarning, match="was resized"):
        assert mg.arange(0, 5, out=mg.zeros(2, 2)).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("stacking", [mg.hstack, mg.vstack, mg.dstack, mg.column_stack, mg.cat, mg.stack])
def test_a_tensor_is_not_taken_for_the_list_of_its_rows(stacking: Any) -> None:
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        stacking(mg.ones(2, 3))
