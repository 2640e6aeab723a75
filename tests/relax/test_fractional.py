"""Reading and writing between the elements: values against loops, exact at integers, gradients of positions, what is outside."""
from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import relax
from mutagrad.autograd import gradcheck, gradgradcheck
from mutagrad.func import grad, vmap
from tools import leaf, same

SIZES = (5, 4, 6)


def keys(distance: float) -> float:
    """The kernel of cubic convolution, as in Keys' paper."""
    s = abs(distance)
    return 1.5 * s ** 3 - 2.5 * s ** 2 + 1 if s < 1 else -0.5 * s ** 3 + 2.5 * s ** 2 - 4 * s + 2 if s < 2 else 0.0


KERNELS = {"linear": lambda d: max(0.0, 1 - abs(d)), "cubic": keys}


def shares(position: float, size: int, mode: str, outside: str) -> dict[int, float]:
    """The weight of every element at a position along one dimension, by the definition."""
    if outside in ("clamp", "error"):
        position = min(max(position, 0.0), size - 1.0)
    found: dict[int, float] = {}
    for i in range(math.floor(position) - 2, math.floor(position) + 4):
        place = i % size if outside == "wrap" else min(max(i, 0), size - 1) if outside != "zero" else i
        if 0 <= place < size and (weight := KERNELS[mode](position - i)):
            found[place] = found.get(place, 0.0) + weight
    return found


def around(point: Any, shape: Any, mode: str, outside: str) -> dict[tuple[int, ...], float]:
    each = [shares(p, n, mode, outside) for p, n in zip(point, shape)]
    return {places: math.prod(s[i] for s, i in zip(each, places)) for places in itertools.product(*each)}


def drawn(dims: int, count: int, spread: float = 0.0, seed: int = 0) -> list[Any]:
    draws = np.random.default_rng(seed)
    return [draws.uniform(-spread, n - 1 + spread, count) for n in SIZES[:dims]]


def tensors(arrays: Any) -> tuple[Any, ...]:
    return tuple(mg.tensor(a, dtype=mg.float64) for a in arrays)


every_way = pytest.mark.parametrize(("mode", "outside"), list(itertools.product(("linear", "cubic"), ("error", "clamp", "zero", "wrap"))))
every_dim = pytest.mark.parametrize("dims", [1, 2, 3])


@every_dim
@every_way
def test_reading_and_adding_are_sums_of_shares(dims: int, mode: Any, outside: Any) -> None:
    x = np.random.default_rng(1).normal(size=SIZES)
    points, values = drawn(dims, 8, 0.0 if outside == "error" else 7.0), np.random.default_rng(2).normal(size=(8, *SIZES[dims:]))
    read, added = np.zeros((8, *SIZES[dims:])), x.copy()
    for k, point in enumerate(zip(*points)):
        for place, weight in around(point, SIZES, mode, outside).items():
            read[k] += weight * x[place]
            added[place] += weight * values[k]
    same(relax.read(mg.tensor(x), tensors(points), mode=mode, outside=outside), read)
    same(relax.add_(mg.tensor(x), tensors(points), mg.tensor(values), mode=mode, outside=outside), added)


@every_dim
@pytest.mark.parametrize("outside", ["error", "clamp", "zero", "wrap"])
def test_writing_goes_from_the_first_to_the_last(dims: int, outside: Any) -> None:
    for seed, count in itertools.product(range(3), (1, 3, 40)):
        points = drawn(dims, count, 0.0 if outside == "error" else 2.0, seed)
        if seed == 2:
            points = [np.round(p) for p in points]
        written = np.random.default_rng(1).normal(size=SIZES)
        x, values = mg.tensor(written), np.random.default_rng(2).normal(size=(count, *SIZES[dims:]))
        for point, value in zip(zip(*points), values):
            for place, weight in around(point, SIZES, "linear", outside).items():
                written[place] = (1 - weight) * written[place] + weight * value
        assert relax.write_(x, tensors(points), mg.tensor(values), outside=outside) is x
        same(x, written)


@every_dim
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("outside", ["error", "clamp", "zero", "wrap"])
def test_integers_are_the_exact_operation(dims: int, mode: Any, outside: Any) -> None:
    """The limit: `x[i]`, `x.index_put_` with and without accumulate, to the last bit; the last of equal positions wins."""
    index = tuple(mg.randint(0, n, (30,), generator=mg.Generator().manual_seed(n)) for n in SIZES[:dims])
    exact, values = mg.randn(*SIZES), mg.randn(30, *SIZES[dims:])
    at = tuple(i.float() for i in index)
    assert mg.equal(relax.read(exact, at, mode=mode, outside=outside), exact[index])
    assert mg.equal(relax.write_(exact.clone(), at, values, outside=outside), exact.clone().index_put_(index, values))
    assert mg.allclose(relax.add_(exact.clone(), at, values, mode=mode, outside=outside), exact.clone().index_put_(index, values, accumulate=True), atol=1e-6)


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_near_an_integer_it_is_nearly_that(distance: float) -> None:
    x, at = mg.tensor([3.0, -1.0, 2.0, 0.5, 1.0, 4.0], dtype=mg.float64), mg.tensor([2 + distance, 4 - distance], dtype=mg.float64)
    for mode in ("linear", "cubic"):
        same(relax.read(x, at, mode=mode), x[[2, 4]], 5 * distance)  # type: ignore[arg-type]
    same(relax.write_(x.clone(), at, 9.0), x.index_put((mg.tensor([2, 4]),), mg.tensor(9.0, dtype=mg.float64)), 20 * distance)


@every_dim
@every_way
def test_gradients_reach_the_values_the_tensor_and_the_positions(dims: int, mode: Any, outside: Any) -> None:
    x, values = mg.randn(*(3, 2, 4)[:dims], dtype=mg.float64, requires_grad=True), mg.randn(2, dtype=mg.float64, requires_grad=True)
    at = tuple(mg.tensor([0.3, n - 1.4 if outside == "error" else n + 0.6], dtype=mg.float64, requires_grad=True) for n in x.shape)
    assert gradcheck(lambda x, *at: relax.read(x, at, mode=mode, outside=outside), (x, *at))
    assert gradcheck(lambda x, v, *at: relax.add_(x.clone(), at, v, mode=mode, outside=outside), (x, values, *at))
    if mode == "linear":
        assert gradcheck(lambda x, v, *at: relax.write_(x.clone(), at, v, outside=outside), (x, values, *at))


def test_gradients_of_writes_that_meet_and_second_derivatives() -> None:
    x, values = mg.randn(4, dtype=mg.float64, requires_grad=True), mg.randn(5, dtype=mg.float64, requires_grad=True)
    at = mg.tensor([1.2, 1.7, 0.4, 1.5, 1.3], dtype=mg.float64, requires_grad=True)
    for function in (lambda x, at, v: relax.write_(x.clone(), at, v), lambda x, at, v: relax.add_(x.clone(), at, v, mode="cubic"),
                     lambda x, at, v: relax.read(x, at, mode="cubic") * v):
        assert gradcheck(function, (x, at, values)) and gradgradcheck(function, (x, at, values))


def test_a_write_is_part_of_the_program() -> None:
    """What was there is read before, its gradient is what the write left of it, and a later write takes that away."""
    x, at = leaf(1.0, 2.0, 3.0, 4.0), leaf(1.25)
    y = x * 10
    before = y.sum()
    relax.write_(y, at, 100.0)
    y[0] = 7.0
    (before + y.sum()).backward()
    same(y, [7, 80, 47.5, 40]), same(x.grad, [10, 10 + 2.5, 10 + 7.5, 20]), same(at.grad, [-(100 - 20) + (100 - 30)])


def test_writing_into_a_leaf_and_through_a_view() -> None:
    x = mg.ones(3, 4, requires_grad=True)
    relax.write_(x.T, mg.tensor([0.5]), mg.tensor([[1.0, 2.0, 3.0]]))
    same(x[:, 0], [1, 1.5, 2])
    x.sum().backward()
    same(x.grad, [[0.5, 0.5, 1, 1]] * 3)


def test_values_may_be_what_is_written() -> None:
    x = mg.arange(6.0)
    relax.write_(x, mg.arange(6.0), x.flip(0))
    same(x, [5, 4, 3, 2, 1, 0])
    y = mg.arange(4.0)
    relax.write_(y, mg.tensor([0.0, 0.0, 1.0, 1.0]), y)
    same(y, [1, 3, 2, 3])


def test_the_last_element_has_a_slope_from_the_left() -> None:
    at = leaf(3.0)
    relax.read(mg.tensor([0.0, 1.0, 4.0, 9.0]), at).backward()
    same(at.grad, [5])


def test_outside_the_gradient_of_a_position_is_that_of_what_goes_on_there() -> None:
    x = mg.tensor([1.0, 2.0, 4.0])
    for outside, value, slope in (("clamp", 1.0, 0.0), ("zero", 0.75, 1.0), ("wrap", 1.75, -3.0)):
        at = leaf(-0.25)
        out = relax.read(x, at, outside=outside)  # type: ignore[arg-type]
        out.backward()
        same(out, [value]), same(at.grad, [slope])


def test_far_outside() -> None:
    x, at = mg.tensor([1.0, 2.0, 4.0]), mg.tensor([-1e30, 1e30, -301.0, 302.0])
    same(relax.read(x, at, outside="clamp"), [1, 4, 1, 4]), same(relax.read(x, at, outside="zero", mode="cubic"), [0, 0, 0, 0])
    same(relax.read(x, at[2:], outside="wrap"), [4, 4]), same(relax.read(x, at[:2], outside="wrap"), x[[int(p) % 3 for p in at[:2].tolist()]])
    same(relax.add_(x.clone(), at, 1.0, outside="zero"), x)


def test_a_dimension_of_one_element() -> None:
    for outside in ("error", "clamp", "wrap"):
        same(relax.read(mg.tensor([3.0]), mg.tensor([0.0, 0.0]), outside=outside), [3, 3])  # type: ignore[arg-type]
    same(relax.write_(mg.tensor([3.0]), 0.0, 5.0), [5]), same(relax.read(mg.tensor([4.0]), 0.5, outside="zero"), 2)


def test_shapes_follow_those_of_an_index() -> None:
    x, rows, columns = mg.randn(4, 5, 2), mg.rand(3, 1) * 3, mg.rand(6) * 4
    assert relax.read(x, rows).shape == (3, 1, 5, 2) and relax.read(x, (rows, columns)).shape == (3, 6, 2) and relax.read(x, (rows, columns, 0.5)).shape == (3, 6)
    assert relax.read(x, 1.5).shape == (5, 2) and relax.read(x, mg.zeros(0)).shape == (0, 5, 2) and relax.write_(x, mg.zeros(0), 1.0).shape == (4, 5, 2)
    relax.write_(x, (rows, columns), mg.randn(6, 2))
    relax.add_(x, (rows, 2.5), mg.randn(3, 1, 2))


def test_integers_beside_fractions_mean_their_elements() -> None:
    x, batch, at = mg.randn(3, 5), mg.arange(3), mg.tensor([0.5, 1.25, 4.0], requires_grad=True)
    expected = mg.stack([relax.read(row, p) for row, p in zip(x, at)])
    same(relax.read(x, (batch, at)), expected.detach()), same(relax.read(x, (batch - 3, at)), expected.detach())
    same(relax.read(x, (1, at)), relax.read(x[1], at).detach())
    written = relax.write_(x.clone(), (batch - 3, at.detach()), 1.0)
    same(written, mg.stack([relax.write_(row.clone(), p, 1.0) for row, p in zip(x, at.detach())]))
    twice = relax.write_(mg.zeros(3, 5), (mg.tensor([2, -1]), 1.5), mg.tensor([4.0, 8.0]))  # the same row by two names
    same(twice[2], [0, 5, 5, 0, 0])
    with pytest.raises(IndexError, match="out of bounds"):
        relax.read(x, (batch + 1, at))
    with pytest.raises(IndexError, match="out of bounds"):
        relax.write_(x, (batch + 1, at), 1.0)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_rows_with_positions_of_their_own(dim: int) -> None:
    x, index = mg.randn(3, 4, 5), mg.randint(0, 3, (2, 3, 4))
    values = mg.randn(2, 3, 4)
    same(relax.gather(x, dim, index.float()), x.gather(dim, index)), same(relax.scatter_(x.clone(), dim, index.float(), values), x.clone().scatter_(dim, index, values))
    same(relax.scatter_add_(x.clone(), dim, index.float(), values), x.clone().scatter_add_(dim, index, values))
    at = (mg.rand(2, 3, 4) * 2).double().requires_grad_()
    assert gradcheck(lambda x, at: relax.gather(x, dim, at, mode="cubic"), (x.double().requires_grad_(), at))


def test_an_image_is_read_as_grid_sample_does() -> None:
    image, rows, columns = mg.randn(5, 7), mg.rand(20) * 8 - 2, mg.rand(20) * 10 - 2
    grid = mg.stack([columns / 3 - 1, rows / 2 - 1], -1)[None, None]
    for outside, padding in (("zero", "zeros"), ("clamp", "border")):
        expected = mg.nn.functional.grid_sample(image[None, None], grid, padding_mode=padding, align_corners=True)
        same(relax.read(image, (rows, columns), outside=outside), expected[0, 0, 0], 1e-5)  # type: ignore[arg-type]


def test_numbers_of_any_kind_are_positions() -> None:
    x = mg.arange(12.0).reshape(3, 4)
    for row, column in ((1, 0.5), (np.int64(1), np.float32(0.5)), (mg.tensor(1), np.float64(0.5)), (mg.tensor(1, dtype=mg.uint8), 0.5), (-2, 0.5)):
        assert relax.read(x, (row, column)).item() == 4.5  # type: ignore[arg-type]


def test_an_index_that_is_no_integer_is_told_where_to_go() -> None:
    x, at = mg.zeros(4), mg.tensor([0.5], requires_grad=True)
    for call, name in ((lambda: x[at], "relax.read"), (lambda: x.index_put_((at,), mg.ones(1)), "relax.read"), (lambda: x.gather(0, at), "relax.gather")):
        with pytest.raises(IndexError) as raised:
            call()
        assert f"mutagrad.{name}" in raised.value.fix  # type: ignore[attr-defined]


def test_types_are_those_of_the_tensor() -> None:
    at = mg.tensor([0.5, 1.25], dtype=mg.float64)
    for dtype in (mg.float16, mg.bfloat16, mg.float32, mg.complex64):
        x = mg.arange(4).to(dtype)
        assert relax.read(x, at).dtype == relax.add_(x.clone(), at, mg.ones(2, dtype=mg.float64)).dtype == relax.write_(x.clone(), at, 1.0).dtype == dtype
        assert mg.allclose(relax.read(x, at), mg.tensor([0.5, 1.25]).to(dtype))
    x = mg.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    assert relax.read(x, 0.5).item() == 2 + 3j


def test_a_position_of_high_precision_stays_so() -> None:
    x = mg.zeros(20_000_003)
    at = mg.tensor(20_000_000.25, dtype=mg.float64)
    same(relax.add_(x, at, 1.0)[20_000_000:], [0.75, 0.25, 0])


@pytest.mark.parametrize("function", [lambda x, at, v: relax.read(x, at), lambda x, at, v: relax.write_(x.clone(), at, v), lambda x, at, v: relax.add_(x.clone(), at, v)],
                         ids=["read", "write_", "add_"])
def test_vmap_is_a_loop_and_meta_has_a_shape(function: Any) -> None:
    x, at, values = mg.randn(3, 5), mg.tensor([[0.5, 0.7], [1.0, 3.2], [3.9, 3.1]]), mg.randn(3, 2)
    loss = grad(lambda *given: (function(*given) ** 2).sum(), argnums=(0, 1, 2))
    assert mg.allclose(vmap(function)(x, at, values), mg.stack([function(*one) for one in zip(x, at, values)]))
    looped = [loss(*one) for one in zip(x, at, values)]
    assert all(mg.allclose(a, mg.stack(list(b)), atol=1e-6) for a, b in zip(vmap(loss)(x, at, values), zip(*looped)))
    assert function(*(mg.empty(*s, device="meta") for s in ((5,), (2,), (2,)))).is_meta


# ---------------------------------------------------------------------------------------------------------------- mistakes

X = mg.ones(4, 3)


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: relax.read(X, mg.tensor([1, 2])), TypeError, "the positions are integers"),
    (lambda: relax.read(X, X.argmax(0)), TypeError, "the positions are integers"),
    (lambda: relax.read(mg.ones(4, dtype=mg.int64), 0.5), TypeError, r"relax.read: expects a floating point tensor, got mutagrad.int64"),
    (lambda: relax.write_(mg.ones(4, dtype=mg.int64), 0.5, 1.0), TypeError, r"relax.write_: expects a floating point tensor"),
    (lambda: relax.read([1.0, 2.0], 0.5), TypeError, "relax.read: expects a tensor, got list"),
    (lambda: relax.read(X, [0.5]), TypeError, "a position must be a tensor or a number, not list"),
    (lambda: relax.read(X, (0.5, slice(None))), TypeError, "a position must be a tensor or a number, not slice"),
    (lambda: relax.read(X, mg.tensor([True])), TypeError, "a position cannot be mutagrad.bool"),
    (lambda: relax.read(X, mg.tensor([1j])), TypeError, "a position cannot be mutagrad.complex64"),
    (lambda: relax.read(X, (0.5, 0.5, 0.5)), RuntimeError, r"3 positions for a tensor of shape \(4, 3\)"),
    (lambda: relax.read(X, ()), RuntimeError, "0 positions"),
    (lambda: relax.read(mg.tensor(1.0), 0.0), RuntimeError, r"1 positions for a tensor of shape \(\)"),
    (lambda: relax.read(X, (mg.rand(2), mg.rand(3))), RuntimeError, r"positions of shapes \[\(2,\), \(3,\)\] do not broadcast"),
    (lambda: relax.read(X, mg.tensor([0.0, 3.5])), IndexError, "positions from 0 to 3.5 leave dimension 0 of size 4"),
    (lambda: relax.read(X, (0.0, -0.5)), IndexError, "leave dimension 1 of size 3"),
    (lambda: relax.read(X, float("nan")), IndexError, "a position along dimension 0 is nan or infinite"),
    (lambda: relax.read(X, mg.tensor([0.0, math.inf]), outside="clamp"), IndexError, "is nan or infinite"),
    (lambda: relax.read(mg.ones(0), 0.0), IndexError, "dimension 0 has no elements"),
    (lambda: relax.read(X, 0.5, mode="nearest"), ValueError, "mode must be 'linear' or 'cubic', not 'nearest'"),
    (lambda: relax.read(X, 0.5, mode=3), TypeError, "mode must be 'linear' or 'cubic', not 3"),
    (lambda: relax.add_(X, 0.5, 1.0, outside="border"), ValueError, "outside must be 'error', 'clamp', 'zero' or 'wrap', not 'border'"),
    (lambda: relax.add_(X, mg.tensor([0.5, 1.5]), mg.ones(3, 3)), RuntimeError, r"values of shape \(3, 3\) do not broadcast to \(2, 3\)"),
    (lambda: relax.write_(X, mg.tensor([0.5, 1.5]), mg.ones(2)), RuntimeError, r"values of shape \(2,\) do not broadcast to \(2, 3\)"),
    (lambda: relax.gather(X, 1, mg.rand(4)), RuntimeError, r"positions of shape \(4,\) do not fit shape \(4, 3\)"),
    (lambda: relax.gather(X, 1, mg.rand(5, 2)), RuntimeError, "do not fit"),
    (lambda: relax.gather(X, 1, mg.ones(4, 1, dtype=mg.int64)), TypeError, "relax.gather: expects a floating point tensor"),
    (lambda: relax.gather(X, 1, mg.full((4, 1), 2.5)), IndexError, "relax.gather: positions from 2.5 to 2.5 leave dimension 1 of size 3"),
    (lambda: relax.scatter_(X, 0, mg.full((1, 3), -0.5), 1.0), IndexError, "relax.scatter_: positions from -0.5"),
    (lambda: relax.scatter_add_(X, 0, mg.full((1, 3), 1.5), mg.ones(2, 3)), RuntimeError, r"relax.scatter_add_: values of shape \(2, 3\)"),
    (lambda: relax.gather(X, 2, mg.rand(4, 1)), IndexError, "relax.gather: Dimension out of range"),
], ids=lambda v: v.replace(" ", "_")[:40] if isinstance(v, str) else "")
def test_mistakes_say_what_is_wrong_and_change_nothing(call: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        call()
    assert isinstance(raised.value, mg.MutagradError) and "test_fractional.py" in str(raised.value) and mg.equal(X, mg.ones(4, 3))
