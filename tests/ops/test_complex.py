"""Complex numbers: real and imaginary parts as views that are written through, what makes them, and that they have no order."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

STEP = 1e-6


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def leaf(array: Any) -> Any:
    return mg.tensor(array, requires_grad=True)


def differences(f: Any, array: Any) -> Any:
    """dL/dRe + i dL/dIm of a number f(array), by central differences; for real arrays only the first."""
    slope = np.zeros_like(array)
    for i in np.ndindex(array.shape):
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            ends = []
            for h in (STEP, -STEP):
                moved = array.copy()
                moved[i] += h * unit
                ends.append(f(moved))
            slope[i] += unit * (ends[0] - ends[1]) / (2 * STEP)
    return slope


def check(program: Any, array: Any) -> None:
    """The same statements on a tensor and on an array; `program` changes its argument and returns a number."""
    x = leaf(array)
    loss = program(x * 1, mg)
    loss.backward()
    expected = differences(lambda a: float(program(a.copy(), np)), array)
    np.testing.assert_allclose(x.grad.numpy(), expected, 1e-6, 1e-6)

    def squared(at: Any) -> Any:
        g, = mg.autograd.grad(program(at * 1, mg), at, create_graph=True)
        return ((g * g.conj()).real * 0.5).sum()

    second, = mg.autograd.grad(squared(leaf_ := leaf(array)), leaf_, allow_unused=True, materialize_grads=True)
    expected = differences(lambda a: squared(leaf(a)).item(), array)
    np.testing.assert_allclose(second.numpy(), expected, 2e-5, 2e-5)


def _write_one_part(z: Any, m: Any) -> Any:
    z.real[0] = 3.0
    return (abs(z) ** 2 * z.imag).sum()


def _double_one_part(z: Any, m: Any) -> Any:
    z.imag[...] = z.imag * 2
    return (z.real * z.imag ** 2).sum() + (z.real ** 3)[1].sum()


def _in_place(z: Any, m: Any) -> Any:
    part = z.imag
    part *= 2
    part += z.real
    z *= 1 + 2j
    return (z.real * z.imag * part).sum()


def _element_by_element(z: Any, m: Any) -> Any:
    for i in range(3):
        z.real[i + 1] = z.real[i] * z.imag[i + 1]
        z[i] = z[i] * z[i + 1]
    return (z.real + z.imag * z.imag).sum()


def _one_element(z: Any, m: Any) -> Any:
    last = z[3:]
    last.real[0] = last.imag[0] * last.imag[0]
    return z.real[3] * z.imag[0] + (z.real * z.real).sum()


def _picked(z: Any, m: Any) -> Any:
    part = z.imag
    part[[0, 2]] = z.real[[1, 3]] * 2
    return (part[[0, 0, 1]] ** 2).sum() + (z.real * part).sum()


def _repeated(z: Any, m: Any) -> Any:
    wide = m.broadcast_to(z.real, (3, 4))
    return (wide * wide).sum() + (wide[1:] ** 3 * z.imag).sum()


@pytest.mark.parametrize("program", [_write_one_part, _double_one_part, _in_place, _element_by_element, _one_element, _picked, _repeated])
def test_programs_that_write_through_parts(program: Any) -> None:
    check(program, numbers(4))


@pytest.mark.parametrize("program", [_write_one_part, _double_one_part, _in_place])
def test_parts_of_matrices(program: Any) -> None:
    check(program, numbers(2, 3))
    check(lambda z, m: program(z.T, m), numbers(2, 3))
    check(lambda z, m: program(z[:, 1:], m), numbers(2, 3))


def test_overlapping_windows_of_parts() -> None:
    x = leaf(numbers(6))
    (x.imag.unfold(0, 3, 1) * mg.arange(12.0, dtype=mg.float64).reshape(4, 3)).sum().backward()
    w = np.arange(12.0).reshape(4, 3)
    expected = np.zeros(6)
    for i in range(4):
        expected[i:i + 3] += w[i]
    assert np.array_equal(x.grad.numpy(), 1j * expected)


def test_view_as_real_and_back() -> None:
    a = numbers(5, 8)
    x = leaf(a)
    y = x * 2
    pairs = mg.view_as_real(y)
    pairs[0] = 1.0
    pairs[1, :, 0] *= 3
    w = np.random.default_rng(1).normal(size=(5, 8, 2))
    (mg.view_as_real(y) * mg.tensor(w)).sum().backward()
    expected = 2 * w
    expected[0] = 0
    expected[1, :, 0] *= 3
    np.testing.assert_allclose(x.grad.numpy(), expected[..., 0] + 1j * expected[..., 1])

    r = leaf(np.random.default_rng(2).normal(size=(5, 2)))
    z = mg.view_as_complex(r * 1)
    z[2] = 1j
    z[0] = z[0] * z[1]
    (z.abs() ** 2).sum().backward()

    def loss(v: Any) -> float:
        u = v[:, 0] + 1j * v[:, 1]
        u[2] = 1j
        u[0] = u[0] * u[1]
        return float((np.abs(u) ** 2).sum())

    np.testing.assert_allclose(r.grad.numpy(), differences(loss, r.detach().numpy().copy()), 1e-6, 1e-6)


def test_saved_values_are_moved_aside_when_a_part_is_written() -> None:
    x = leaf(numbers(40))
    y = x * 1
    before = y.detach().clone()
    loss = (y * y).real.sum()
    y.real.zero_()
    y.imag = mg.ones(40, dtype=mg.float64)
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * before.numpy().conj())


def test_a_part_as_a_leaf() -> None:
    z = mg.zeros(3, dtype=mg.complex128)
    part = z.imag.requires_grad_()
    (part ** 2 + 3 * part).sum().backward()
    assert part.grad.dtype is mg.float64 and part.grad.tolist() == [3.0, 3.0, 3.0]
    assert not z.requires_grad
    part.grad = None
    (part * part).sum().backward(create_graph=True)
    assert part.grad.dtype is mg.float64


def test_gradient_with_respect_to_a_part() -> None:
    x = leaf(numbers(3))
    y = x * 2
    part = y.imag
    g, = mg.autograd.grad((y * y).real.sum(), part, retain_graph=True)
    np.testing.assert_allclose(g.numpy(), -4 * x.detach().numpy().imag)
    seen: list[Any] = []
    part.register_hook(lambda v: seen.append(v) or v * 0)
    (y * y).real.sum().backward()
    assert seen[0].dtype is mg.float64
    np.testing.assert_allclose(x.grad.numpy(), 8 * x.detach().numpy().real)


def test_memory_is_shared_and_real_tensors_are_their_own_real_part() -> None:
    z = mg.tensor([1 + 2j, 3 + 4j])
    z.real, z.imag = mg.tensor([5.0, 6.0]), 0.0
    assert z.tolist() == [5, 6] and z._version == 2
    x = mg.ones(2)
    assert x.real is x and mg.real(x) is x
    for wrong in (lambda: x.imag, lambda: mg.view_as_real(x), lambda: mg.view_as_complex(mg.ones(3)), lambda: mg.view_as_complex(mg.ones(2, 2).T),
                  lambda: mg.view_as_complex(mg.ones(4)[1:3]), lambda: mg.view_as_complex(mg.ones(2, dtype=mg.int64))):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(TypeError):
        mg.real([1.0])
    with mg.no_grad():
        assert not leaf(numbers(2)).real.requires_grad


def test_parts_are_copied_and_pickled() -> None:
    z = mg.tensor([1 + 2j, 3 + 4j])
    for made in (copy.deepcopy(z.imag), pickle.loads(pickle.dumps(z.imag))):
        assert made.tolist() == [2, 4] and made.dtype is mg.float32


def test_complex_and_polar() -> None:
    rng = np.random.default_rng(3)
    a, b, seed = rng.normal(size=(5, 7)), rng.normal(size=7), numbers(5, 7, seed=4)
    for name, ref in (("complex", lambda x, y: x + 1j * y), ("polar", lambda x, y: x * np.exp(1j * y))):
        x, y = leaf(a), leaf(b)
        result = getattr(mg, name)(x, y)
        np.testing.assert_allclose(result.detach().numpy(), ref(a, b))
        g = mg.autograd.grad(result, (x, y), mg.tensor(seed), create_graph=True)
        for got, k in zip(g, (0, 1)):
            expected = differences(lambda v, k=k: (seed.conj() * ref(*((v, b) if k == 0 else (a, v)))).real.sum(), (a, b)[k])
            np.testing.assert_allclose(got.detach().numpy(), expected, 1e-6, 1e-6)
        if name == "polar":
            second, = mg.autograd.grad((g[0] * g[0]).sum(), y)
            expected = differences(lambda v: float(((seed.conj() * np.exp(1j * v)).real ** 2).sum()), b)
            np.testing.assert_allclose(second.numpy(), expected, 1e-6, 1e-6)
        out = mg.empty(5, 7, dtype=mg.complex128)
        assert getattr(mg, name)(x, y, out=out) is out
    for wrong in ((mg.ones(2), mg.ones(2).double()), (mg.ones(2).long(), mg.ones(2).long()), (mg.ones(2), mg.ones(3))):
        with pytest.raises(RuntimeError):
            mg.complex(*wrong)
    with pytest.raises(TypeError):
        mg.complex(1.0, mg.ones(2))


def test_large_complex_numbers() -> None:
    """Arrays that are split between threads."""
    x, y = mg.ones(1 << 18, requires_grad=True), mg.ones(1 << 18, requires_grad=True)
    z = mg.complex(x, y * 2)
    (z.angle() * 5 + z.real * z.imag).sum().backward()
    assert x.grad[0].item() == pytest.approx(0) and y.grad[-1].item() == pytest.approx(4)


def test_angle_at_zero_and_of_real_numbers() -> None:
    z = mg.tensor([0j, 1j], requires_grad=True)
    z.angle().sum().backward()
    assert z.grad.tolist() == [0, -1]
    x = mg.tensor([-1.0, 2.0], requires_grad=True)
    x.angle().sum().backward()
    assert x.grad.tolist() == [0, 0] and x.angle().tolist() == pytest.approx([np.pi, 0])


def test_marks_that_are_never_there() -> None:
    z = mg.tensor([1j]).conj()
    assert not z.is_conj() and not mg.is_neg(z.imag) and z.resolve_conj() is z and mg.resolve_neg(z) is z
    assert z.conj_physical_() is z and z.tolist() == [1j]
    with pytest.raises(NotImplementedError, match="half"):
        z.chalf()


# ------------------------------------------------------------------------------------------------- bytes as another type


def test_bytes_as_another_type() -> None:
    x = mg.ones(2, 4)
    for to in ("int32", "int16", "uint8", "float64", "complex64", "complex128"):
        assert np.array_equal(x.view(getattr(mg, to)).numpy(), x.numpy().view(to))
    bits = x.view(mg.int32)
    bits[0, 0] = 0
    assert x[0, 0].item() == 0 and x._version == 1
    assert x.T.view(mg.int32).shape == (4, 2) and x.view(mg.float32) is x
    for wrong in (lambda: x.T.view(mg.int16), lambda: mg.ones(3).view(mg.float64), lambda: mg.ones(()).view(mg.int16), lambda: mg.ones(5)[1:].view(mg.float64)):
        with pytest.raises(RuntimeError, match="cannot be read"):
            wrong()


def test_bytes_with_a_gradient() -> None:
    x = mg.ones(4, requires_grad=True)
    z = (x * 1).view(mg.complex64)
    z *= 1j
    (z.real * mg.tensor([1.0, 2.0]) + z.imag * 10).sum().backward()
    assert x.grad.tolist() == [10, -1, 10, -2]
    with pytest.raises(NotImplementedError, match="no derivative"):
        x.view(mg.int32)
    y = mg.ones(3)
    bits = y.view(mg.int32)
    y.requires_grad_()
    assert not bits.requires_grad


# ------------------------------------------------------------------------------------------------------------- no order


@pytest.mark.parametrize("expression", [
    "z < z", "z <= z", "z > 1", "1 >= z", "x < z", "z < 1j", "z.clone().lt_(z)", "m.maximum(z, z)", "m.minimum(x, z)", "m.fmax(z, z)", "m.fmin(z, z)",
    "z.relu()", "z.clone().relu_()", "z.sign()", "z.clamp(0, 1)", "z.clamp(min=z)", "z.max()", "z.min(0)", "z.amax()", "z.amin(0)", "z.argmax()",
    "z.argmin(0)", "m.aminmax(z)", "z.sort()", "z.argsort()", "z.topk(1)", "m.floor(z)", "z % z",
])
def test_complex_numbers_have_no_order(expression: str) -> None:
    with pytest.raises(NotImplementedError):
        eval(expression, {"m": mg, "x": mg.ones(2), "z": mg.tensor([1j, 2.0])})


def test_the_conjugate_of_real_numbers_is_the_tensor_itself() -> None:
    x = mg.ones(2)
    assert x.conj() is x and mg.conj(x) is x and mg.conj_physical(x) is not x
    z = mg.tensor([1 + 2j])
    assert z.conj() is not z and z.conj().item() == 1 - 2j
