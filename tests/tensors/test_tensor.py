"""Tensors as Python objects: how they are made, what they say about themselves, how they are copied and leave."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from samples import DTYPES
from tools import N, leaf, ramp, same

# ------------------------------------------------------------------------------------------------------ creation of tensors

CREATED = {
    "mg.tensor([1, 2])": ([1, 2], "int64"), "mg.tensor([1, 2.5])": ([1, 2.5], "float32"), "mg.tensor([True])": ([True], "bool"),
    "mg.tensor([])": ([], "float32"), "mg.tensor(3)": (3, "int64"), "mg.tensor(1j)": (1j, "complex64"),
    "mg.tensor(np.ones(2))": ([1, 1], "float64"), "mg.tensor(np.float32(2))": (2, "float32"), "mg.tensor([np.float64(2)])": ([2], "float64"),
    "mg.tensor(range(3))": ([0, 1, 2], "int64"), "mg.tensor([[1, 2], (3, 4)])": ([[1, 2], [3, 4]], "int64"),
    "mg.tensor([mg.tensor(1.), mg.tensor(2.)])": ([1, 2], "float32"), "mg.tensor([1, 2], dtype=mg.float16)": ([1, 2], "float16"),
    "mg.tensor([1.9], dtype=mg.int64)": ([1], "int64"), "mg.tensor([1, 2], dtype=float)": ([1, 2], "float64"),
    "mg.Tensor([1, 2])": ([1, 2], "float32"), "mg.as_tensor([1, 2])": ([1, 2], "int64"),
    "mg.as_tensor(np.arange(2), dtype=mg.float32)": ([0, 1], "float32"), "mg.zeros(2)": ([0, 0], "float32"),
    "mg.zeros((1, 2))": ([[0, 0]], "float32"), "mg.zeros([2], dtype=mg.int8)": ([0, 0], "int8"), "mg.zeros(())": (0, "float32"),
    "mg.zeros(size=(2,))": ([0, 0], "float32"), "mg.ones(2, 1)": ([[1], [1]], "float32"),
    "mg.ones(mg.Size([2]), dtype=mg.bool)": ([True, True], "bool"), "mg.full((2,), 3)": ([3, 3], "int64"),
    "mg.full((2,), 3.0)": ([3, 3], "float32"), "mg.full((2,), True)": ([True, True], "bool"), "mg.full((), 7, dtype=mg.float64)": (7, "float64"),
    "mg.zeros_like(mg.ones(2, dtype=mg.int16))": ([0, 0], "int16"), "mg.ones_like(mg.zeros(2), dtype=mg.int64)": ([1, 1], "int64"),
    "mg.full_like(mg.ones(2, dtype=mg.int64), 5)": ([5, 5], "int64"), "mg.arange(3)": ([0, 1, 2], "int64"),
    "mg.arange(1, 6, 2)": ([1, 3, 5], "int64"), "mg.arange(5, 0, -2)": ([5, 3, 1], "int64"),
    "mg.arange(0, 1, 0.25)": ([0, 0.25, 0.5, 0.75], "float32"), "mg.arange(2.0)": ([0, 1], "float32"),
    "mg.arange(3, dtype=mg.float64)": ([0, 1, 2], "float64"), "mg.arange(0)": ([], "int64"),
    "mg.linspace(0, 1, 5)": ([0, 0.25, 0.5, 0.75, 1], "float32"), "mg.linspace(3, 4, 1)": ([3], "float32"),
    "mg.logspace(0, 2, 3)": ([1, 10, 100], "float32"), "mg.eye(2)": ([[1, 0], [0, 1]], "float32"),
    "mg.eye(2, 3, dtype=mg.int64)": ([[1, 0, 0], [0, 1, 0]], "int64"), "mg.ones(1, dtype=mg.float64).new_zeros(2)": ([0, 0], "float64"),
    "mg.ones(1, dtype=mg.float64).new_ones((2,))": ([1, 1], "float64"), "mg.ones(1, dtype=mg.float64).new_full((2,), 3)": ([3, 3], "float64"),
    "mg.ones(1, dtype=mg.float64).new_tensor([1, 2])": ([1, 2], "float64"), "mg.from_numpy(np.arange(3.0)[::2])": ([0, 2], "float64"),
    "mg.from_numpy(np.arange(4.0).reshape(2, 2).T)": ([[0, 2], [1, 3]], "float64"), "mg.from_numpy(np.arange(3)[::-1])": ([2, 1, 0], "int64"),
}


@pytest.mark.parametrize("expression", CREATED)
def test_creation(expression: str) -> None:
    values, dtype = CREATED[expression]
    made = eval(expression, {"mg": mg, "np": np})
    assert made.dtype.name == dtype and made.is_leaf and not made.requires_grad
    assert made.shape == np.asarray(values).shape
    np.testing.assert_allclose(made.numpy(), values)


@pytest.mark.parametrize("make", [
    "zeros(2, 3)", "ones(2, 3)", "empty(2, 3)", "rand(2, 3)", "randn(2, 3)", "full((2, 3), 1.)", "zeros_like(x)", "ones_like(x)", "empty_like(x)",
    "rand_like(x)", "randn_like(x)", "full_like(x, 2.)", "eye(2, 3)", "tensor(x.tolist())", "linspace(0, 1, 6)", "arange(6.)", "logspace(0, 1, 6)"])
def test_creation_with_settings(make: str) -> None:
    call = make[:-1] + ", dtype=mg.float64, requires_grad=True)"
    made = eval("mg." + call, {"mg": mg, "x": mg.ones(2, 3)})
    assert made.dtype is mg.float64 and made.requires_grad and made.is_leaf and made.numel() == 6 and made.device == mg.device("cpu")
    eval("mg." + make[:-1] + ", device='cpu')", {"mg": mg, "x": mg.ones(2, 3)})
    with pytest.raises((RuntimeError, NotImplementedError)):
        eval("mg." + make[:-1] + ", device='cuda')", {"mg": mg, "x": mg.ones(2, 3)})


@pytest.mark.parametrize("steps", [2, 127, 128, 3 << 16])
def test_numbers_between_are_counted_from_the_nearer_end_in_their_own_step(steps: int) -> None:
    """As PyTorch counts them, so that x[1] - x[0] is the step that the others were made with."""
    first, last = np.float32(-1.2190476), np.float32(0.7)
    step, i = np.float64((last - first) / np.float32(steps - 1)), np.arange(steps)
    expected = np.where(i < steps // 2, first + i * step, last - (steps - 1 - i) * step).astype(np.float32)
    assert np.array_equal(mg.linspace(float(first), float(last), steps).numpy(), expected)
    inside = mg.vmap(lambda x: x + mg.linspace(float(first), float(last), steps))(mg.zeros(2, 1))
    assert np.array_equal(inside[1].numpy(), expected)


@pytest.mark.parametrize("call", ["mg.linspace(0, 300, 3, dtype=mg.uint8)", "mg.linspace(-2, 5, 3, dtype=mg.uint8)", "mg.linspace(0, 1e30, 3, dtype=mg.int64)",
                                  "mg.linspace(0, float('inf'), 3, dtype=mg.int32)", "mg.logspace(float('nan'), 2, 3, dtype=mg.int32)"])
def test_whole_numbers_between_what_their_type_does_not_hold_are_refused(call: str) -> None:
    with pytest.raises(RuntimeError, match="cannot be stored as"):
        eval(call)


def test_random_numbers() -> None:
    mg.manual_seed(3)
    a = [mg.rand(1000), mg.randn(1000), mg.randint(2, 9, (1000,)), mg.randperm(50)]
    mg.manual_seed(3)
    b = [mg.rand(1000), mg.randn(1000), mg.randint(2, 9, (1000,)), mg.randperm(50)]
    assert all(mg.equal(x, y) for x, y in zip(a, b)) and not mg.equal(mg.rand(9), mg.rand(9))
    uniform, normal, integers, order = a
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05 and abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1
    assert set(integers.tolist()) == set(range(2, 9)) and integers.dtype is mg.int64 and sorted(order.tolist()) == list(range(50))
    assert mg.randint(4, (3,)).max() < 4 and mg.randint_like(order, 5).shape == (50,)


def test_generators_have_their_own_state() -> None:
    g = mg.Generator().manual_seed(7)
    first = mg.rand(3, generator=g)
    state = g.get_state()
    second, normal = mg.rand(3, generator=g), mg.empty(3).normal_(generator=g)
    g.set_state(state)
    assert mg.equal(mg.rand(3, generator=g), second) and mg.equal(mg.empty(3).normal_(generator=g), normal)
    assert mg.equal(first, mg.rand(3, generator=mg.Generator().manual_seed(7))) and g.initial_seed() == 7
    mg.manual_seed(5)
    state, numbers = mg.get_rng_state(), mg.rand(3)
    mg.set_rng_state(state)
    assert mg.equal(mg.rand(3), numbers) and mg.initial_seed() == 5
    assert isinstance(mg.seed(), int)


def test_filling_with_random_numbers_is_a_write() -> None:
    x = ramp(N)
    y = x * 1
    z = y * y
    y[: N // 2].uniform_(5, 6)
    assert y[: N // 2].min() >= 5 and y[: N // 2].max() <= 6
    (z + y).sum().backward()
    same(x.grad, 2 * np.arange(1, N + 1) + (np.arange(N) >= N // 2))


def test_tensors_are_copied_and_arrays_shared() -> None:
    array = np.zeros(3)
    copied, shared, also = mg.tensor(array), mg.from_numpy(array), mg.as_tensor(array)
    array[0] = 5
    assert copied[0] == 0 and shared[0] == also[0] == 5
    shared[1] = 7
    assert array[1] == 7
    x = mg.ones(2)
    assert mg.as_tensor(x) is x and mg.tensor(x).data_ptr() != x.data_ptr()
    array.flags.writeable = False
    safe = mg.from_numpy(array)
    safe.zero_()
    assert array[0] == 5
    strided = mg.from_numpy(np.arange(6.0).reshape(2, 3).T)
    strided[0, 1] = 9
    assert strided.stride() == (1, 3) and strided.tolist()[0] == [0, 9]


# ---------------------------------------------------------------------------------------------- tensors as Python objects

def test_size() -> None:
    size = mg.ones(2, 3).shape
    assert isinstance(size, mg.Size) and isinstance(size, tuple) and size == (2, 3) and size.numel() == 6 and size[0] == 2
    assert isinstance(size[:1], mg.Size) and isinstance(size + (4,), mg.Size) and size + (4,) == (2, 3, 4) and repr(size) == "mutagrad.Size([2, 3])"
    assert pickle.loads(pickle.dumps(size)) == size and mg.ones(2, 3).size() == size and mg.ones(2, 3).size(-1) == 3


def test_device() -> None:
    assert mg.device("cpu") == mg.ones(1).device and str(mg.device("cpu")) == "cpu" and repr(mg.device("cpu")) == "device(type='cpu')"
    assert mg.device("cpu:0").index == 0 and mg.device("cpu").type == "cpu" and hash(mg.device("cpu")) == hash(mg.device("cpu"))
    x = mg.ones(1)
    assert x.to("cpu") is x and x.to(mg.device("cpu")) is x and x.cpu() is x and not x.is_cuda
    with pytest.raises(NotImplementedError):
        x.cuda()


def test_facts_about_a_tensor() -> None:
    x = mg.zeros(2, 3, dtype=mg.float64)
    assert (x.ndim, x.dim(), x.ndimension(), x.numel(), x.nelement(), x.element_size(), x.itemsize, x.nbytes) == (2, 2, 2, 6, 6, 8, 8, 48)
    assert x.stride() == (3, 1) and x.T.stride() == (1, 3) and x.stride(0) == 3 and x[1, 1:].storage_offset() == 4
    assert x.is_contiguous() and not x.T.is_contiguous() and x.is_floating_point() and not x.is_complex() and x.is_signed()
    assert x.type() == "mutagrad.DoubleTensor"
    assert mg.is_tensor(x) and not mg.is_tensor(1) and mg.numel(x) == 6 and mg.is_floating_point(x) and not mg.is_complex(x)
    assert x[1].data_ptr() == x.data_ptr() + 24


def test_iteration_len_in_bool_index() -> None:
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    first, second = x
    (first * second).sum().backward()
    same(x.grad, [[3, 4], [1, 2]])
    assert 3.0 in x and 9 not in x and bool(mg.tensor([1])) and not mg.tensor(0.0)
    assert [10, 20, 30][mg.tensor(1)] == 20 and list(range(mg.tensor(2))) == [0, 1]
    assert int(mg.tensor(2.7)) == 2 and float(mg.tensor([1.5])) == 1.5 and complex(mg.tensor(2)) == 2
    for wrong in (lambda: len(mg.tensor(1)), lambda: iter(mg.tensor(1)), lambda: [1][mg.tensor(0.0)]):
        with pytest.raises(TypeError):
            wrong()
    assert len({x, x, mg.ones(1)}) == 2
    rows = list(x.detach())
    rows[0][0] = 9.0
    assert x[0, 0] == 9


def test_comparison_with_anything() -> None:
    x = mg.tensor([1.0, 2.0])
    assert (x == 1).tolist() == [True, False] and (x != np.array([1, 2])).tolist() == [False, False]
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    assert mg.equal(x, x) and not mg.equal(x, x[:1]) and mg.allclose(x, x + 1e-9) and x.allclose(x)


def test_formatting() -> None:
    assert f"{mg.tensor(1.23456):.2f}" == "1.23" and f"{mg.tensor(7):3d}" == "  7" and f"{mg.tensor([1.0])}" == "tensor([1.])"
    assert str(mg.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    x = leaf(1.0, 2.0)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)" and repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    with pytest.raises(TypeError):
        f"{mg.ones(2):.2f}"


def test_leaving_tensors() -> None:
    x = mg.tensor([[1, 2], [3, 4]])
    assert x.tolist() == [[1, 2], [3, 4]] and mg.tensor(5).tolist() == 5 and mg.tensor([2.5]).item() == 2.5 and mg.tensor(True).item() is True
    assert type(mg.tensor(1).item()) is int and type(mg.tensor(1.0).item()) is float
    array = x.T.numpy()
    array[0, 1] = 9
    assert x.tolist() == [[1, 2], [9, 4]] and np.asarray(x).dtype == np.int64 and np.asarray(x, dtype=np.float32).dtype == np.float32
    assert np.shares_memory(np.asarray(x), x.numpy()) and not np.shares_memory(np.array(x), x.numpy())
    y = leaf(1.0)
    for wrong in (y.numpy, lambda: np.asarray(y), lambda: np.array(y)):
        with pytest.raises(RuntimeError, match="detach"):
            wrong()
    assert y.numpy(force=True).tolist() == [1]
    assert np.from_dlpack(mg.arange(3)).tolist() == [0, 1, 2]


def test_numpy_functions_of_tensors_are_differentiable_tensors() -> None:
    x = leaf(1.0, 2.0)
    y = np.exp(x) + np.maximum(x, 1.5) + np.multiply(np.array([1.0, 2.0]), x) + np.power(x, 2)
    assert isinstance(y, mg.Tensor)
    y.sum().backward()
    same(x.grad, [math.e + 0 + 1 + 2, math.e**2 + 1 + 2 + 4], 1e-5)
    assert isinstance(np.add(mg.ones(2), mg.ones(2)), mg.Tensor) and isinstance(np.float64(2) * x, mg.Tensor)
    assert np.add.reduce(mg.ones(3)).item() == 3 and np.cbrt(mg.tensor([8.0])).tolist() == [2]
    with pytest.raises(RuntimeError):
        np.cbrt(x)  # not ours: NumPy would lose the history
    target = np.zeros(2)
    np.add(mg.ones(2), 1, out=target)
    assert target.tolist() == [2, 2]


def test_subclasses() -> None:
    class Named(mg.Tensor):
        pass

    x = Named([1.0, 2.0])
    assert isinstance(x, Named) and isinstance(mg.ones(2).as_subclass(Named), Named)
    x.requires_grad_()
    x.label = "weights"
    (x * x).sum().backward()
    same(x.grad, [2, 4])


# ------------------------------------------------------------------------------------------------------- pickles and copies

@pytest.mark.parametrize("duplicate", [lambda v: pickle.loads(pickle.dumps(v)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_copies_keep_what_tensors_are_and_share(duplicate: Any) -> None:
    base = mg.arange(6.0).reshape(2, 3).clone()
    column, transposed, detached = base[:, 1], base.T, base.detach()
    x = leaf(1.0, 2.0)
    copied = duplicate({"base": base, "column": column, "transposed": transposed, "detached": detached, "x": x, "again": x})
    assert copied["x"] is copied["again"] and copied["x"].requires_grad and copied["x"].is_leaf and not copied["base"].requires_grad
    assert copied["transposed"].stride() == transposed.stride() and copied["column"].tolist() == [1, 4]
    copied["column"][0] = 50.0
    assert copied["base"][0, 1] == copied["transposed"][1, 0] == copied["detached"][0, 1] == 50 and base[0, 1] == 1
    for dtype in DTYPES:
        assert duplicate(mg.ones(2, dtype=getattr(mg, dtype))).dtype is getattr(mg, dtype)
    assert duplicate(mg.tensor(3.0)).item() == 3 and duplicate(mg.zeros(0, 2)).shape == (0, 2)


def test_deepcopy_of_leaves() -> None:
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    y = copy.deepcopy(x)
    same(y.grad, [3, 3])
    y.grad.zero_()
    same(x.grad, [3, 3])
    (y * y).sum().backward()
    same(y.grad, [2, 4])
    assert mg.equal(copy.copy(x), x)
    with pytest.raises(RuntimeError):
        copy.deepcopy(x * 2)
    for loaded in (pickle.loads(pickle.dumps(x * 2)), copy.copy(x * 2)):
        assert loaded.is_leaf and loaded.requires_grad and loaded.tolist() == [2, 4]


# ------------------------------------------------------------------------------------------------ forms that change the window

def test_shapes_change_in_place() -> None:
    x = ramp(1, 6)
    y = x * 1
    assert y.squeeze_() is y and y.shape == (6,) and y.unsqueeze_(1).shape == (6, 1) and y.t_().shape == (1, 6) and y.transpose_(0, 1).shape == (6, 1)
    y[0, 0] = 0.0
    (y * y).sum().backward()
    same(x.grad, [[0, 4, 6, 8, 10, 12]])


def test_views_refuse_what_only_a_copy_could_be() -> None:
    x = mg.ones(2, 3).T
    with pytest.raises(RuntimeError, match="reshape"):
        x.view(6)
    assert x.reshape(6).shape == (6,) and x.contiguous().view(6).shape == (6,) and x.contiguous() is not x
    y = mg.ones(2)
    assert y.contiguous() is y


def test_storage_is_the_memory_behind_the_window() -> None:
    x = mg.arange(6.0).reshape(2, 3)
    row = x[1]
    assert row.storage().data_ptr() == x.storage().data_ptr() == x.data_ptr()
    assert len(row.storage()) == row.storage().size() == 6 and row.storage().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert row.untyped_storage().nbytes() == len(row.untyped_storage()) == 24 and row.storage()[-1] == 5.0
    assert x.clone().storage().data_ptr() != x.storage().data_ptr() and x.storage().dtype is mg.float32
    with pytest.raises(IndexError):
        x.storage()[6]
    y = x.requires_grad_().square().sum()
    x.storage()[0] = 9.0
    assert x[0, 0] == 9.0 and mg.autograd.grad(y, x)[0][0, 0] == 0.0  # what was saved is protected from this write, too


def test_numbers_too_large_for_integers_and_lists_that_hold_themselves() -> None:
    assert mg.tensor(2**64, dtype=mg.float32).item() == 2.0**64 and mg.tensor([2**70, 0, float("nan")], dtype=mg.bool).tolist() == [True, False, True]
    with pytest.raises(RuntimeError):
        mg.tensor(2**64)
    endless: list[Any] = [0]
    endless.append(endless)
    with pytest.raises(TypeError, match="self-referential"):
        mg.tensor(endless)


@pytest.mark.parametrize("call", [lambda x: np.choose(x, np.array([[1, 2], [3, 4]])), lambda x: np.cumsum(x, 0), lambda x: np.take(x, [0]),
                                  lambda x: np.linalg.inv(x), lambda x: np.transpose(x), lambda x: np.repeat(x, 2)])
def test_what_numpy_makes_of_a_tensor_by_a_method_is_a_tensor(call: Any) -> None:
    """As `__array_wrap__` makes it in PyTorch."""
    x = mg.tensor([[0, 1], [1, 0]])
    result = call(x)
    assert type(result) is mg.Tensor and np.array_equal(result.numpy(), call(x.numpy()))


@pytest.mark.parametrize("call", [np.modf, np.frexp, lambda x: np.divmod(x, 2)])
def test_each_result_of_a_function_of_numpy_is_a_tensor(call: Any) -> None:
    x = mg.tensor([1.5, -2.0])
    for result, expected in zip(call(x), call(x.numpy())):
        assert type(result) is mg.Tensor and np.array_equal(result.numpy(), expected)
    given = np.zeros(2, np.float32)
    found = np.modf(x, given)
    assert found[0] is given and type(found[1]) is mg.Tensor
