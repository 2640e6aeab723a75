"""Random programs on arrays that several threads share: values as NumPy has them, gradients as on one thread, the same bits always."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mutagrad as mg

from . import mirror
from .generator import generate
from .judge import first_order
from .programs import names_of
from .settings import in_one_piece, in_pieces

SIZES, SIDES = [300_000, 800_000, 1_000_002], [(600, 600), (1000, 1000)]
REPEATS = 3

VECTORS = [
    "x[:-1].mul_(x[1:])", "x[1:].mul_(x[:-1])", "mg.exp(x[1:], out=x[:-1])\nx.tanh_()", "mg.tanh(x[:-1], out=x[1:])", "x.div_(x[0])", "x.mul_(x[7:8])", "x.sub_(x[-1])",
    "x.add_(x.flip(0), alpha=0.3)", "x[::2] += x[1::2] * 0.5", "mg.sin(x, out=y)", "y.copy_(x)", "x.mul_(x)", "x[:x.shape[0] // 2].copy_(x[x.shape[0] // 2:])",
    "x[1:].copy_(x[:-1])", "x[3:].add_(y[:-3], alpha=0.4)", "y[1:].sub_(y[:-1] * x[1:])", "x.sin_()", "y *= x", "x[5:-5] = y[10:] * 0.7", "mg.cos(y[2:], out=y[:-2])",
    "x = mg.sin(x) * y", "y = x.clone()", "y = mg.where(x > 0.7, x, y)", "y = mg.where(x > 0.7, x, 0.4)", "x = mg.where(x > 0.7, 0.6, x)", "x = mg.clamp(x, 0.1, 0.9)", "y = mg.maximum(x, y)",
    "x /= y * y + 1.0", "x = mg.lerp(x, y, 0.3)", "x = x.softmax(0) * x.shape[0]", "x = x - x.mean()", "x = 0.5 / (x + 2.0)"]
MATRICES = [
    "m.copy_(m.T)", "m.add_(m.T, alpha=0.3)", "m.mul_(m[0])", "m.sub_(m[:, :1])", "m[1:].copy_(m[:-1])", "m.T.tanh_()", "m[:-1] *= m[1:]", "m = m.T.clone()", "m = m.softmax(1) * 3.0",
    "m.div_(m[0, 0])", "mg.sin(m[1:], out=m[:-1])", "m.copy_(m.T.flip(0))", "m[:, 1:].add_(m[:, :-1])"]


def written(seed):
    """The lines of a program, and the shape of what it starts from."""
    r = random.Random(f"large {seed}")
    matrix = r.random() < 0.35
    lines = r.choices(MATRICES if matrix else VECTORS, k=r.randint(2, 6))
    name, shape = ("m", r.choice(SIDES)) if matrix else ("x", (r.choice(SIZES),))
    return [*(["m = z * 1.0"] if matrix else ["x = z * 1.0", "y = z * z"]), *lines, f"loss = ({name} * w).sum()"], shape


def test_a_number_takes_the_place_of_a_tensor():
    """Of an operation with three operands, the first of which is of another type."""
    x = np.random.default_rng(0).uniform(-1, 1, SIZES[0])
    for found, expected in ((mg.where(mg.tensor(x) > 0, mg.tensor(x), -0.5), np.where(x > 0, x, -0.5)),
                            (mg.where(mg.tensor(x) > 0, 0.25, mg.tensor(x)), np.where(x > 0, 0.25, x))):
        assert found.dtype is mg.float64 and np.array_equal(found.numpy(), expected)


def run(library, lines, values):
    names = dict(names_of(library), z=values, w=None)
    names["w"] = library.tensor(np.cos(np.arange(values.numel() if hasattr(values, "numel") else values.a.size)).reshape(values.shape))
    exec("\n".join(lines), names)
    return names


def on_tensors(lines, array):
    z = mg.tensor(array, requires_grad=True)
    names = run(mg, lines, z)
    names["loss"].backward()
    last = names.get("m", names.get("x"))
    return last.detach().numpy().copy(), z.grad.numpy().copy()


@pytest.fixture
def four_threads():
    before = mg.get_num_threads()
    mg.set_num_threads(4)
    yield
    mg.set_num_threads(before)


def check(seed):
    lines, shape = written(seed)
    array = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    with np.errstate(all="ignore"):
        names = run(mirror, lines, mirror.Mirror(array.copy()))
    expected = names.get("m", names.get("x")).a
    with in_one_piece():
        _, gradient = on_tensors(lines, array)
    found = [on_tensors(lines, array) for _ in range(REPEATS)]
    for value, slope in found:
        np.testing.assert_allclose(value, expected, 1e-9, 1e-12, err_msg="\n".join(lines))
        np.testing.assert_allclose(slope, gradient, 1e-7, 1e-9 * np.abs(gradient).max(), err_msg="\n".join(lines))
        assert np.array_equal(slope, found[0][1]), "another time, other bits:\n" + "\n".join(lines)


@pytest.mark.parametrize("seed", range(16))
def test_large_programs(seed, four_threads):
    check(seed)


@pytest.mark.parametrize("families", [(), ("rooms",)], ids=["core", "rooms"])
def test_the_order_in_which_parts_are_done_does_not_matter(families):
    """To the last bit."""
    for seed in range(2000, 2030):
        program = generate(seed, families=families)
        found = []
        for order in (1, 2, 3):
            with in_pieces(order):
                found.append(first_order(program, mg, program.point))
        for loss, gradient in found[1:]:
            assert loss == found[0][0] and np.array_equal(gradient, found[0][1]), program.source


def layers():
    """Whose gradients sum over rows that threads have shared among them."""
    m, weight, bias = (mg.randn(*shape, generator=mg.Generator().manual_seed(i)).requires_grad_() for i, shape in enumerate([(4096, 256), (256,), (256,)]))
    normal = mg.nn.functional.layer_norm(m, (256,), weight, bias)
    (normal * normal.cos()).sum().backward()
    return [x.grad.numpy().copy() for x in (m, weight, bias)]


def test_layers_give_the_same_bits(four_threads):
    first = layers()
    for _ in range(10):
        assert all(np.array_equal(a, b) for a, b in zip(layers(), first))
