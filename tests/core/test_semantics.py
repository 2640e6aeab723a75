"""The twelve points under Semantics in docs/design.md, each with its examples."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from samples import DTYPES, PROMOTE_TYPES, WITH_NUMBER, WITH_ZERO_DIM
from tools import N, leaf, ramp, same

# ------------------------------------------------------- 1. the gradient is that of the program as it ran

# Programs on x (a vector of 40, or a 5 x 8 matrix X of the same numbers), which run on NumPy arrays as well: their finite differences are
# the expected gradient. The result is `out`.
PROGRAMS = {
    "an element overwritten": "y = x * 2; y[0] = 5.0; out = y * y",
    "a slice overwritten": "y = x * 2; y[3:9] = x[:6] * x[1:7]; out = y * y",
    "a saved input overwritten": "y = x * 1; z = y * y; y[...] = 0.0; out = z",
    "a saved result overwritten": "y = x / 40; z = y ** 2.0; w = z * z; z[:] = 7.0; out = w",
    "a saved input half overwritten": "y = x * 1; z = y * y; y[::2] = 0.0; out = z + y * y",
    "a view written": "y = x * 1; v = y[1:]; v *= 3; out = y * y",
    "a view of a view written": "y = X * 1; v = y[1:][:, ::2]; v *= y[0, 0]; out = y * y",
    "a transposed view written": "y = X * 1; y.T[2] = y.T[3] * 2; out = y * y",
    "a view read after the base was written": "y = x * 1; v = y[5:10]; y[7] = 3.0; out = v * v",
    "two views of one place": "y = x * 1; u = y[:10]; v = y[5:15]; u *= v[:1]; v += u[:1]; out = y * y",
    "a loop over elements": "y = x * 1\nfor i in range(1, 20): y[i] = y[i] * y[i - 1] / 10\nout = y",
    "a buffer reused": "b = x * 1; s = 0.0 * x\nfor k in range(4): b[...] = b * x / 10; s = s + b\nout = s",
    "rows that depend on rows": "y = X * 1\nfor t in range(1, 5): y[t] = y[t - 1] * y[t] / 5 + 1\nout = y",
    "an accumulating write": "y = x * 1; y[2:6] += y[1:5] * 2; out = y * y",
    "a value used before and after": "y = x * 1; a = y[3] * 2; y[3] = y[4] * 3; out = y * a",
    "a mask": "y = x * 1; y[y > 20] = y[0] * 2; out = y * y",
    "an index": "y = x * 1; y[[3, 5, 7]] = y[[4, 4, 2]] ** 2; out = y * y",
    "an exchange": "y = x * 1; t = y[0] * 1; y[0] = y[1]; y[1] = t; out = y * y * y",
}


def run(program: str, x: Any) -> Any:
    names: dict[str, Any] = {"x": x, "X": x.reshape(5, 8)}
    exec(program, names)
    return (names["out"] * names["out"]).sum()


def differences(f: Any, at: np.ndarray[Any, Any], h: float = 1e-5) -> Any:
    return [(f(at + h * e) - f(at - h * e)) / (2 * h) for e in np.eye(at.size)]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_gradient_of_the_program_as_it_ran(program: str) -> None:
    point = np.linspace(0.5, 4.5, N)
    x = mg.tensor(point, requires_grad=True)
    loss = run(program, x)
    assert math.isclose(loss.item(), run(program, point.copy()))
    loss.backward()
    same(x.grad, differences(lambda p: run(program, p), point), 1e-5)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_second_derivative_of_the_program_as_it_ran(program: str) -> None:
    point, direction = np.linspace(0.5, 4.5, N), np.cos(np.arange(N))

    def gradient(at: Any, **options: Any) -> Any:
        x = mg.tensor(at, requires_grad=True)
        return x, mg.autograd.grad(run(program, x), x, **options)[0]

    x, g = gradient(point, create_graph=True)
    h = 1e-5
    expected = (gradient(point + h * direction)[1].numpy() - gradient(point - h * direction)[1].numpy()) / (2 * h)
    got, = mg.autograd.grad((g * mg.tensor(direction)).sum(), x)
    np.testing.assert_allclose(got.numpy(), expected, 1e-4, 1e-4)


# ------------------------------------------------------------------------------------------------ 2. writing into leaves

def test_a_leaf_that_was_written() -> None:
    x = mg.zeros(5, requires_grad=True)
    x[[1, 3]] = 2.0
    assert not x.is_leaf and x.requires_grad
    x.sum().backward()
    same(x.grad, [1, 0, 1, 0, 1])


def test_gradient_is_with_respect_to_the_value_at_requires_grad() -> None:
    x = mg.tensor([1.0, 2.0])
    x *= 10
    x.requires_grad_()
    x *= x
    x.sum().backward()
    same(x.grad, [20, 40])


def test_an_unrecorded_write_makes_a_leaf_again() -> None:
    x = leaf(1.0, 2.0)
    x *= 3
    assert not x.is_leaf
    with mg.no_grad():
        x -= 1
    assert x.is_leaf and x.tolist() == [2, 5]
    (x * x).sum().backward()
    same(x.grad, [4, 10])


def test_training_loop() -> None:
    w = leaf(5.0)
    for _ in range(60):
        ((w - 2) ** 2).sum().backward()
        with mg.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
        assert w.is_leaf
    same(w, [2], 1e-4)


def test_a_leaf_that_was_overwritten_whole_has_no_influence() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    x.copy_(y)
    (x * x).sum().backward()
    assert x.grad is None or not x.grad.any()
    same(y.grad, [6, 8])


# ------------------------------------------------------------------- 3. autograd.grad is with respect to the tensor as it is now

def test_grad_is_with_respect_to_the_present_value() -> None:
    x = mg.zeros(5, requires_grad=True)
    x[[1, 3]] = 2.0
    same(mg.autograd.grad(x.sum(), x)[0], [1, 1, 1, 1, 1])


def test_grad_of_a_view_and_of_an_older_version() -> None:
    x = ramp(4)
    y = x * 2
    v = y[1:3]
    z = (y * y).sum()
    same(mg.autograd.grad(z, v, retain_graph=True)[0], [8, 12])
    y[0] = 1.0
    with pytest.raises(RuntimeError, match="no influence on the outputs as it is now"):
        mg.autograd.grad(z, y, retain_graph=True)
    same(mg.autograd.grad(z, x)[0], [8, 16, 24, 32])


# --------------------------------------------------------------------------------------------------------- 4. opting out

UNRECORDED = {
    "no_grad": (mg.no_grad, lambda y: y), "inference_mode": (mg.inference_mode, lambda y: y),
    "set_grad_enabled": (lambda: mg.set_grad_enabled(False), lambda y: y), ".data": (nullcontext, lambda y: y.data),
    "detach": (nullcontext, lambda y: y.detach()), "a view of detach": (nullcontext, lambda y: y.detach()[...]),
}


@pytest.mark.parametrize("size", [3, N])
@pytest.mark.parametrize(("mode", "alias"), UNRECORDED.values(), ids=UNRECORDED)
def test_unrecorded_writes_are_seen_but_are_not_part_of_the_function(mode: Any, alias: Any, size: int) -> None:
    x = ramp(size)
    y = x * 1
    z = y * y  # saves y
    with mode():
        alias(y).mul_(10)
    same(y, 10 * np.arange(1, size + 1))
    w = y * y  # of the changed value
    (z + w).sum().backward()
    same(x.grad, 2 * np.arange(1, size + 1) + 20 * np.arange(1, size + 1))


def test_straight_through() -> None:
    x = leaf(0.3, 1.7)
    y = x + (x.round() - x).detach()
    same(y, [0, 2])
    (y * y).sum().backward()
    same(x.grad, [0, 4])


def test_detached_tensors_have_a_history_of_their_own() -> None:
    x = leaf(1.0, 2.0)
    d = x.detach()
    assert not d.requires_grad and d.is_leaf and d.data_ptr() == x.data_ptr()
    d.requires_grad_()
    (d * x).sum().backward()
    same(x.grad, [1, 2])
    same(d.grad, [1, 2])
    assert x.detach()._version == x._version
    d.data[0] = 9.0
    assert x.tolist() == [9, 2] and x._version == d._version == 1


def test_detach_in_place() -> None:
    y = leaf(1.0) * 2
    assert y.detach_() is y and not y.requires_grad and y.is_leaf


# ----------------------------------------------------------------------------------------- 5. a statement reads before it writes

OVERLAPS = {
    "shifted": "x[1:] = x[:-1] * 2", "shifted without arithmetic": "x[1:] = x[:-1]", "shifted back": "x[:-1] = x[1:]",
    "an element of itself": "x *= x[0]", "an element at the end": "x *= x[-1]", "added to a shift": "x[1:] += x[:-1]",
    "a matrix by its rows": "X *= X[0]", "transposed": "S = X[:, :5]; S += S.T",
    "transposed copy": "S = X[:, :5]; S[...] = S.T", "reversed": "x[[0, 1, 2]] = x[[2, 1, 0]]", "a scaled column": "X[:, 1] = X[1, 1] * X[:, 1]",
    "by an index": "x[[1, 2, 3]] *= x[[0, 1, 2]]",
}


@pytest.mark.parametrize("statement", OVERLAPS.values(), ids=OVERLAPS)
def test_overlapping_operands(statement: str) -> None:
    """As NumPy does; on a leaf's clone and through a window on it."""
    program = f"x = x * 1; X = x.reshape(5, 8); {statement}; out = x"
    point = np.linspace(0.5, 2.5, N)
    x = mg.tensor(point, requires_grad=True)
    loss = run(program, x)
    assert math.isclose(loss.item(), run(program, point.copy()))
    loss.backward()
    same(x.grad, differences(lambda p: run(program, p), point), 1e-5)


@pytest.mark.parametrize("write", ["y[::2] = y[:20]", "y[::2].copy_(y[:20])", "y[::2] = y.view(5, 8).view(-1)[:20]", "mg.add(y[:20], 0, out=y[::2])"])
def test_strides_that_overlap(write: str) -> None:
    """Where NumPy 2.4 itself reads what it has just written: `a[::2] = a[:20]` gives 0, 1, 1, 3, 1, ... there."""
    x = ramp(N)
    y = x * 1
    exec(write, {"y": y, "mg": mg})
    same(y, [i // 2 + 1 if i % 2 == 0 else i + 1 for i in range(N)])
    (y * y).sum().backward()
    same(x.grad, [2 * (i + 1) * ((i < 20) + i % 2) for i in range(N)])


# --------------------------------------------------------------------------------- 6. writes through windows that overlap themselves

SELF_OVERLAPPING = {"expand": lambda x: x[:1].expand(5), "expand_as": lambda x: x[0].expand_as(x), "unfold": lambda x: x.unfold(0, 3, 1),
                    "as_strided": lambda x: x.as_strided((3, 3), (1, 1)), "broadcast_to": lambda x: mg.broadcast_to(x[:1], (2, 3))}


WRITES = {
    "mul_": lambda v: v.mul_(2), "setitem": lambda v: v.__setitem__(..., 1.0), "masked": lambda v: v.__setitem__(v > 0, 1.0),
    "fill_": lambda v: v.fill_(1), "copy_": lambda v: v.copy_(mg.zeros(())), "index_fill_": lambda v: v.index_fill_(0, mg.tensor([0]), 1.0),
    "out=": lambda v: mg.sin(mg.zeros_like(v), out=v), "normal_": lambda v: v.normal_(), "+=": lambda v: v.__iadd__(1),
}


@pytest.mark.parametrize("make", SELF_OVERLAPPING)
@pytest.mark.parametrize("write", WRITES)
def test_writes_through_windows_that_overlap_themselves_raise(make: str, write: str) -> None:
    if write == "fill_" and make in ("expand", "expand_as", "broadcast_to"):
        pytest.skip("every repetition gets the same value: see the next test")
    make, write = SELF_OVERLAPPING[make], WRITES[write]
    x = ramp(5).detach()
    with pytest.raises(RuntimeError, match="clone"):
        write(make(x))
    assert x.tolist() == [1, 2, 3, 4, 5] and x._version == 0
    write(make(x).clone())


@pytest.mark.parametrize("fill", [lambda v, c: v.fill_(c), lambda v, c: v.zero_().fill_(c)])
def test_what_was_expanded_can_be_filled(fill: Any) -> None:
    x, c = ramp(4), mg.tensor(3.0, requires_grad=True)
    y = x.reshape(2, 2) * 1
    repeated = y[:, :1].expand(2, 5)
    assert fill(repeated, c) is repeated
    same(y, [[3, 2], [3, 4]])
    (y * mg.tensor([[1.0, 2], [3, 4]])).sum().backward()
    same(x.grad, [0, 2, 0, 4])
    same(c.grad, 4)


def test_an_overlap_that_numpy_gets_wrong() -> None:
    """NumPy reads elements that it has just written where one-dimensional windows differ in step."""
    x = mg.arange(40.0, requires_grad=True)
    y = x * 1
    y[::2] = y[:20]
    assert y[::2].tolist() == list(range(20))
    (y * mg.arange(40.0)).sum().backward()
    same(x.grad, [(i % 2) * i + (2 * i if i < 20 else 0) for i in range(40)])


# ----------------------------------------------------------------------------------------------------- 7. duplicate indices

@pytest.mark.parametrize("size", [4, N])
def test_the_last_of_duplicates_wins(size: int) -> None:
    index = [2, 0, 2, 2] + [1] * (size - 4)
    x, v = mg.zeros(3, requires_grad=True), ramp(size).float().detach().requires_grad_()
    y = x * 1
    y[index] = v
    assert y[2].item() == v[3].item()
    (y * y).sum().backward()
    expected = np.zeros(size)
    for winner in {1, 3, size - 1}:
        expected[winner] = 2 * (winner + 1)
    same(v.grad, expected)
    assert not x.grad.any()


def test_accumulate_counts_every_duplicate() -> None:
    x, v = mg.zeros(3, requires_grad=True), leaf(1.0, 2.0, 3.0)
    y = (x * 1).index_put_((mg.tensor([2, 0, 2]),), v, accumulate=True)
    assert y.tolist() == [2, 0, 4]
    (y * y).sum().backward()
    same(v.grad, [8, 4, 8])
    same(x.grad, [4, 0, 8])


def test_reading_duplicates_adds_up() -> None:
    x = leaf(1.0, 2.0)
    x[[0, 0, 1]].sum().backward()
    same(x.grad, [2, 1])


# ----------------------------------------------------------------------------------------- 8. integer and boolean results

@pytest.mark.parametrize("expression", ["x.argmax()", "x.argsort()", "x > 2", "x.isnan()", "x.sort().indices", "x.topk(2).indices", "x.nonzero()", "x.long()",
                                        "x.bool()", "x.max(0).indices", "x.logical_not()"])
def test_integers_and_booleans_never_require_grad(expression: str) -> None:
    result = eval(expression, {"x": ramp(4)})
    assert not result.requires_grad and result.grad_fn is None and result.is_leaf
    with pytest.raises(RuntimeError):
        result.requires_grad_()


def test_results_as_indices() -> None:
    x = leaf(3.0, 1.0, 2.0)
    x[x.argmax()] = 0.0
    (x[x.argsort()] * mg.tensor([1.0, 10.0, 100.0])).sum().backward()
    same(x.grad, [0, 10, 100])


@pytest.mark.parametrize("size", [3, N])
def test_index_tensors_changed_later_change_nothing(size: int) -> None:
    x, index, mask = ramp(size), mg.zeros(size, dtype=mg.int64), mg.ones(size) > 0
    y = x * 1
    picked, selected, gathered = y[index], y[mask], y.gather(0, index)
    y[index] = 0.0 * picked
    index.fill_(1)
    mask.logical_not_()
    (picked + selected + gathered).sum().backward()
    expected = np.ones(size)
    expected[0] += 2 * size
    same(x.grad, expected)


# ------------------------------------------------------------------------------------------ 9. backward of several elements

def test_backward_of_several_elements_differentiates_their_sum() -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward()
    same(x.grad, [2, 4])


# ------------------------------------------------------------------------------------------ 10. saved values are freed

def test_a_second_backward_names_both_lines() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()  # where the values were saved
    y.backward()  # where they were freed
    here = inspect.currentframe().f_lineno
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    message = str(caught.value)
    assert f"test_semantics.py:{here - 2}: y = (x * x).sum()" in message
    assert f"test_semantics.py:{here - 1}: y.backward()" in message
    assert "retain_graph=True" in message
    same(x.grad, [2, 4])


def test_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    for _ in range(3):
        y.backward(retain_graph=True)
    y.backward()
    same(x.grad, [8, 16])
    with pytest.raises(RuntimeError):
        y.backward()


def test_what_needs_no_saved_values_can_be_swept_again() -> None:
    x = leaf(1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    same(x.grad, [2, 2])


def test_parts_of_a_graph_that_were_not_swept_are_not_freed() -> None:
    x = leaf(1.0, 2.0)
    a, b = x * x, x * x * x
    a.backward()
    b.backward()
    same(x.grad, [5, 16])


# --------------------------------------------------------------------------------------------------- 11. types and errors

@pytest.mark.parametrize(("a", "b"), PROMOTE_TYPES)
def test_promotion(a: str, b: str) -> None:
    x, y = getattr(mg, a), getattr(mg, b)
    assert mg.promote_types(x, y).name == PROMOTE_TYPES[a, b]
    assert mg.result_type(mg.ones(1, dtype=x), mg.ones(1, dtype=y)).name == PROMOTE_TYPES[a, b]
    assert mg.result_type(mg.ones(1, dtype=x), mg.ones((), dtype=y)).name == WITH_ZERO_DIM[a, b]
    assert (mg.ones(1, dtype=x) * mg.ones(1, dtype=y)).dtype.name == PROMOTE_TYPES[a, b]
    assert (mg.ones(1, dtype=x) * mg.ones((), dtype=y)).dtype.name == WITH_ZERO_DIM[a, b]
    assert (mg.ones((), dtype=x) * mg.ones((), dtype=y)).dtype.name == PROMOTE_TYPES[a, b]


@pytest.mark.parametrize(("dtype", "number"), WITH_NUMBER)
@pytest.mark.parametrize("shape", [(1,), ()], ids=str)
def test_promotion_with_numbers(dtype: str, number: str, shape: tuple[int, ...]) -> None:
    value = {"a bool": True, "an int": 1, "a float": 1.0, "a complex": 1j}[number]
    x = mg.ones(shape, dtype=getattr(mg, dtype))
    assert mg.result_type(x, value).name == (x * value).dtype.name == (value * x).dtype.name == WITH_NUMBER[dtype, number]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_have_torch_names_and_numpy_sizes(dtype: str) -> None:
    d = getattr(mg, dtype)
    assert repr(d) == f"mutagrad.{dtype}" and mg.zeros(2, dtype=d).dtype is d and d.itemsize == np.dtype(dtype).itemsize
    assert d.is_floating_point == dtype.startswith("float") and d.is_complex == dtype.startswith("complex") and d.is_signed == (dtype[0] not in "bu")
    assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d


def test_names_of_dtypes() -> None:
    assert (mg.float, mg.double, mg.half, mg.int, mg.long, mg.short) == (mg.float32, mg.float64, mg.float16, mg.int32, mg.int64, mg.int16)
    assert mg.finfo(mg.float32).eps == np.finfo(np.float32).eps and mg.iinfo(mg.uint8).max == 255
    assert mg.can_cast(mg.int64, mg.float16) and not mg.can_cast(mg.float32, mg.int64)


def test_default_dtype() -> None:
    assert mg.get_default_dtype() is mg.float32 and mg.tensor([1.0]).dtype is mg.float32 and mg.tensor([1]).dtype is mg.int64
    mg.set_default_dtype(mg.float64)
    try:
        assert mg.tensor([1.0]).dtype is mg.zeros(1).dtype is mg.rand(1).dtype is (mg.tensor([1]) / 2).dtype is mg.float64
    finally:
        mg.set_default_dtype(mg.float32)
    with pytest.raises(RuntimeError):
        mg.set_default_dtype(mg.int64)


WRONG = {
    "x + mg.ones(4)": RuntimeError, "x @ mg.ones(4)": RuntimeError, "x @ mg.ones(3, dtype=mg.float64)": RuntimeError, "x.view(2)": RuntimeError,
    "x[3]": IndexError, "x[-4]": IndexError, "x[0, 0]": IndexError, "x[[5]]": IndexError, "x[mg.ones(2) > 0]": IndexError, "x[1.5]": IndexError,
    "x[[0.5]]": IndexError, "x.__setitem__(9, 1.0)": IndexError, "x.__setitem__(0, mg.ones(2))": RuntimeError,
    "x.__setitem__(slice(2), mg.ones(3))": RuntimeError, "x.__setitem__(0, 'a')": TypeError, "x.sum(2)": IndexError,
    "x.sum(dim=(0, 0))": (RuntimeError, ValueError), "x.sum('a')": TypeError, "x.squeeze(3)": IndexError, "x.transpose(0, 1)": IndexError,
    "x.permute(0, 0)": RuntimeError, "x.expand(2)": RuntimeError, "x.reshape(2, -1)": RuntimeError,
    "mg.cat([])": (RuntimeError, TypeError, ValueError), "mg.cat([x, mg.ones(1, 2)])": RuntimeError, "mg.stack([x, mg.ones(2)])": RuntimeError,
    "x.item()": RuntimeError, "bool(x)": RuntimeError, "x.gather(0, mg.tensor([5]))": (IndexError, RuntimeError),
    "x.topk(9)": (RuntimeError, ValueError), "x.long().requires_grad_()": RuntimeError, "mg.tensor([1], requires_grad=True)": RuntimeError,
    "x.backward()": RuntimeError, "x.long().mean()": RuntimeError, "x.masked_fill(mg.ones(3), 0.0)": (RuntimeError, IndexError),
    "x.long().add_(0.5)": RuntimeError, "x.unsqueeze(5)": IndexError, "x.narrow(0, 2, 5)": (RuntimeError, IndexError), "mg.tensor('a')": TypeError,
    "x + 'a'": TypeError, "x + None": TypeError, "x + [1]": TypeError, "mg.zeros(-1)": RuntimeError,
    "mg.zeros(1 << 60)": (RuntimeError, MemoryError), "mg.einsum('ij->i', x)": RuntimeError,
    "mg.einsum('i,j', x)": (RuntimeError, TypeError, ValueError), "x.to('cuda')": (RuntimeError, NotImplementedError),
    "mg.from_numpy([1])": TypeError, "x.index_select(0, mg.tensor([7]))": (IndexError, RuntimeError), "x.copy_(mg.ones(2))": RuntimeError,
    "mg.ones(0).max()": (RuntimeError, IndexError), "mg.ones(0).argmax()": (RuntimeError, IndexError), "x.numpy(3)": TypeError,
    "int(x)": (TypeError, RuntimeError, ValueError),
}


@pytest.mark.parametrize("expression", WRONG)
def test_errors_are_what_torch_raises_and_change_nothing(expression: str) -> None:
    x = mg.tensor([1.0, 2.0, 3.0])
    with pytest.raises(WRONG[expression]):
        eval(expression, {"mg": mg, "x": x})
    assert x.tolist() == [1, 2, 3] and x._version == 0


def test_an_error_says_what_where_why_and_the_fix() -> None:
    with pytest.raises(mg.MutagradError) as caught:
        mg.ones(3, 2) + mg.ones(3)  # the line
    error = caught.value
    assert "(3, 2)" in error.what and "(3,)" in error.what and "the line" in error.where and error.why and error.fix
    assert isinstance(error, RuntimeError)


# ---------------------------------------------------------------------------------------------------------- 12. threads

def in_thread(f: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(f).result()


def test_grad_mode_is_per_thread() -> None:
    with mg.no_grad():
        assert in_thread(mg.is_grad_enabled) and not mg.is_grad_enabled()
    assert in_thread(lambda: mg.set_grad_enabled(False) and None) is None
    assert mg.is_grad_enabled()


def test_sweeps_of_threads_over_one_graph_do_not_disturb_each_other() -> None:
    x = ramp(N)
    y = x * 1
    for i in range(1, N):
        y[i] = y[i] * y[i - 1] / (i + 1)
    loss = (y * y).sum()
    expected = mg.autograd.grad(loss, x, retain_graph=True)[0].tolist()
    barrier = threading.Barrier(4)

    def sweep(_: int) -> list[Any]:
        barrier.wait()
        return [mg.autograd.grad(loss, x, retain_graph=True)[0].tolist() for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(sweep, range(4)):
            assert all(g == expected for g in found)
