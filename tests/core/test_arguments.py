"""How functions are called: PyTorch's keywords, what is accepted for memory and devices, and wrong kinds of arguments."""
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

X = mg.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(("found", "expected"), [
    (X.permute(dims=(1, 0)), X.T), (mg.permute(X, (1, 0)), X.T), (X.reshape(shape=(3, 2)), X.reshape(3, 2)), (X.expand(size=(2, 2, 3)), X.expand(2, 2, 3)),
    (X.repeat(repeats=(2, 1)), X.repeat(2, 1)), (X.tile(dims=(2,)), X.tile(2)), (X.broadcast_to(size=(1, 2, 3)), X.unsqueeze(0)),
    (mg.cat([X, X], axis=1), mg.cat([X, X], 1)), (mg.stack([X, X], axis=-1), mg.stack([X, X], -1)), (mg.swapaxes(X, axis0=0, axis1=1), X.T),
    (X.transpose(dim0=0, dim1=1), X.T), (X.unsqueeze(axis=1), X.unsqueeze(1)), (X[:1].squeeze(axis=0), X[0]), (X.flip(dims=(0,)), X.flip(0)),
    (X.split(split_size=1)[1], X[1:]), (mg.split(X, split_size_or_sections=(2, 1), dim=1)[1], X[:, 2:]), (X.chunk(3, axis=1)[2], X[:, 2:]),
    (X.unbind(axis=1)[0], X[:, 0]), (mg.arange(end=3), mg.arange(3)), (mg.zeros(size=(2, 3)), mg.zeros(2, 3)),
], ids=str)
def test_keywords(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape and mg.equal(found, expected)


@pytest.mark.parametrize(("one_by_one", "together"), [
    (X.broadcast_to(4, 2, 3), X.broadcast_to((4, 2, 3))), (X[0].broadcast_to(3), X[0]),
    (X[:1, :1].squeeze(0, 1), X[:1, :1].squeeze((0, 1))), (X.count_nonzero(0, 1), X.count_nonzero((0, 1))), (X[:1].clone().squeeze_(0, 1), X[0]),
    (mg.broadcast_to(X, 4, 2, 3), X.broadcast_to(mg.Size([4, 2, 3]))), (X.flip(0, 1), X.flip([0, 1])), (X.repeat(2, 1), X.repeat([2, 1])),
], ids=str)
def test_sizes_and_dimensions_one_by_one_or_together(one_by_one: Any, together: Any) -> None:
    assert one_by_one.shape == together.shape and mg.equal(one_by_one, together)


@pytest.mark.parametrize("name", ["clone", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "t", "movedim", "expand_as", "broadcast_to",
                                  "select", "narrow", "split", "chunk", "unbind", "diagonal", "unfold", "as_strided", "repeat", "tile", "flip", "roll", "gather",
                                  "index_select", "index_add", "index_put", "masked_fill", "scatter", "scatter_add", "scatter_reduce", "take", "nonzero",
                                  "zeros_like", "randn_like", "numel", "is_complex"])
@pytest.mark.parametrize("data", [[1.0], np.ones(1)], ids=["list", "array"])
def test_data_that_is_no_tensor_is_refused_by_name(name: str, data: Any) -> None:
    index, mask = mg.tensor([0]), mg.tensor([True])
    rest: dict[str, tuple[Any, ...]] = {
        "reshape": (1,), "transpose": (0, 0), "permute": (0,), "unsqueeze": (0,), "movedim": (0, 0), "expand_as": (X,), "broadcast_to": ((1,),), "select": (0, 0),
        "narrow": (0, 0, 1), "split": (1,), "chunk": (1,), "unfold": (0, 1, 1), "as_strided": ((1,), (1,)), "repeat": (1,), "tile": (1,), "flip": (0,), "roll": (1,),
        "gather": (0, index), "index_select": (0, index), "index_add": (0, index, X), "index_put": ((index,), X), "masked_fill": (mask, 1.0),
        "scatter": (0, index, X), "scatter_add": (0, index, X), "scatter_reduce": (0, index, X, "sum"), "take": (index,)}
    with pytest.raises(TypeError, match=rf"^{name}: expects a tensor, got {type(data).__name__}") as raised:
        getattr(mg, name)(data, *rest.get(name, ()))
    assert isinstance(raised.value, mg.MutagradError)


@pytest.mark.parametrize("call", [
    lambda: mg.arange("a"), lambda: mg.arange(None), lambda: mg.randint("a", (2,)), lambda: mg.zeros("a"), lambda: mg.zeros(2.5), lambda: mg.ones([2, "a"]),
    lambda: mg.full("a", 1), lambda: mg.full((2,), "a"), lambda: mg.full((2,), None, dtype=mg.float32), lambda: mg.eye("a"), lambda: mg.linspace("a", 1, 3),
    lambda: mg.linspace(0, 1, 2.5), lambda: mg.rand("a"), lambda: mg.randperm("a"), lambda: mg.zeros(2, dtype="number"), lambda: mg.zeros(2, other=1),
    lambda: mg.zeros(2, layout="strided"), lambda: X.clone(memory_format="last"), lambda: mg.cat(3), lambda: mg.device(1.5), lambda: mg.device(None),
])
def test_wrong_kinds_are_type_errors(call: Any) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert isinstance(raised.value, mg.MutagradError)


def test_settings_of_new_tensors() -> None:
    plain = {"layout": mg.strided, "pin_memory": False, "device": "cpu", "requires_grad": True}
    for made in (mg.zeros(2, **plain), mg.ones(2, **plain), mg.empty(2, **plain), mg.full((2,), 1.0, **plain), mg.eye(2, **plain), mg.arange(2.0, **plain),
                 mg.linspace(0, 1, 2, **plain), mg.rand(2, **plain), mg.randn(2, generator=mg.Generator(), **plain), mg.zeros_like(X, **plain),
                 mg.rand_like(X, memory_format=mg.preserve_format, **plain), X.new_zeros(2, **plain), X.new_tensor([1.0], **plain)):
        assert made.requires_grad and made.is_leaf and made.layout is mg.strided
    with pytest.raises(NotImplementedError):
        mg.ones(2, layout=mg.sparse_coo)
    with pytest.raises(RuntimeError):
        mg.zeros(2, pin_memory=True)


def test_new_numbers_into_old_memory() -> None:
    target = mg.full((3,), 7.0)
    assert mg.zeros(3, out=target) is target and target.tolist() == [0, 0, 0]
    assert mg.arange(3, out=target) is target and target.tolist() == [0, 1, 2]
    assert mg.ones(3, out=mg.zeros(3, dtype=mg.int64)).dtype is mg.int64
    with pytest.warns(UserWarning, match="was resized"):
        assert mg.zeros(4, out=target) is target and target.tolist() == [0, 0, 0, 0]


def test_channels_last_is_an_order_of_memory() -> None:
    x = mg.arange(24.0).reshape(1, 2, 3, 4).requires_grad_()
    for y in (x.contiguous(memory_format=mg.channels_last), x.clone(memory_format=mg.channels_last), x.to(memory_format=mg.channels_last),
              mg.clone(x, memory_format=mg.channels_last)):
        assert y.stride() == (24, 1, 8, 2) and y.is_contiguous(memory_format=mg.channels_last) and not y.is_contiguous()
        assert mg.equal(x, y)
        grad, = mg.autograd.grad((y * x.detach()).sum(), x)
        assert mg.equal(grad, x.detach())
    assert y.contiguous(memory_format=mg.channels_last) is y
    assert x.contiguous(memory_format=mg.contiguous_format) is x
    with pytest.raises(RuntimeError):
        X.clone(memory_format=mg.channels_last)


def test_layouts_are_pickled_by_name() -> None:
    for name in ("strided", "sparse_coo", "contiguous_format", "preserve_format", "channels_last"):
        value = getattr(mg, name)
        assert repr(value) == f"mutagrad.{name}" and pickle.loads(pickle.dumps(value)) is value


def test_devices_have_names() -> None:
    assert mg.device("cuda:1") == mg.device("cuda", 1) == mg.device(type="cuda", index=1) != mg.device("cuda")
    assert repr(mg.device("mps")) == "device(type='mps')" and str(mg.device("cuda", 0)) == "cuda:0" and mg.device("meta").type == "meta"
    assert mg.device(mg.device("cpu")) == mg.device("cpu") == X.device
    for name in ("xyz", "", "cuda:x", "cuda:-1"):
        with pytest.raises(RuntimeError):
            mg.device(name)
    with pytest.raises(RuntimeError):
        mg.device("cuda:0", 1)
    for name in ("cuda", "xpu", "mps"):
        with pytest.raises(NotImplementedError):
            mg.zeros(2, device=name)


def test_shapes_stay_shapes() -> None:
    for shape in ((1,) + X.shape, X.shape + (1,), X.shape[1:], () + X.shape):
        assert isinstance(shape, mg.Size)
    with pytest.raises(TypeError):
        [1] + X.shape


@pytest.mark.filterwarnings("ignore:This overload")
def test_the_old_order_of_numbers_and_tensors() -> None:
    """Optimizers of before 2020 are written so, and PyTorch still runs them."""
    x, y, z = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0]), mg.tensor([5.0, 8.0])
    for name, old, new in (("add", (0.5, y), {"alpha": 0.5}), ("sub", (0.5, y), {"alpha": 0.5}), ("addcmul", (0.5, y, z), {"value": 0.5}), ("addcdiv", (0.5, y, z), {"value": 0.5})):
        expected = getattr(x, name)(*old[1:], **new)
        assert mg.equal(getattr(x, name)(*old), expected) and mg.equal(getattr(mg, name)(x, *old), expected) and mg.equal(getattr(x.clone(), name + "_")(*old), expected)
    with pytest.warns(UserWarning, match="deprecated"):
        x.add_(1, y)


@pytest.mark.parametrize(("array", "tensor", "dtype"), [
    (np.ones(2, np.int64), mg.ones(2), mg.float64), (np.ones(2, np.float32), mg.ones(2, dtype=mg.int64), mg.float64), (np.ones(2, bool), mg.ones(2), mg.float32),
    (np.array(2.0), mg.ones(2), mg.float64), (np.ones(2, np.float32), mg.ones(2), mg.float32), (np.ones(2, np.int32), mg.ones(2, dtype=mg.int32), mg.int32)], ids=str)
def test_a_result_of_numpys_arrays_and_tensors_is_of_numpys_type(array: Any, tensor: Any, dtype: Any) -> None:
    """PyTorch has NumPy compute it; gradients pass all the same."""
    assert (tensor * array).dtype is (array * tensor).dtype is (tensor + array).dtype is dtype
    assert (tensor / array).dtype is (array / tensor).dtype is (dtype if dtype.is_floating_point else mg.float64)
    if tensor.is_floating_point():
        leaf = tensor.clone().requires_grad_()
        (array * leaf).sum().backward()
        assert leaf.grad is not None and leaf.grad.dtype is tensor.dtype and leaf.grad.tolist() == np.broadcast_to(array, 2).astype(float).tolist()
