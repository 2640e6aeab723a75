"""Elementwise results lie in memory as their operands do, whatever their size and whoever computes them."""

import numpy as np
import pytest

import mutagrad as mg
import mutagrad.nn.functional as F

SIZES = [(3, 4, 5), (32, 40, 50), (64, 64, 80)]  # NumPy's own call; a few pieces; several threads
ORDER = 2, 0, 1

KEEP = {
    "x * y": lambda x, y: x * y, "2 - x": lambda x, y: 2 - x, "x.exp()": lambda x, y: x.exp(), "x > y": lambda x, y: x > y,
    "where": lambda x, y: mg.where(x > 0, x, y), "where number": lambda x, y: mg.where(x > 0, x, 0.0),
    "gelu": lambda x, y: F.gelu(x), "relu": lambda x, y: F.relu(x), "double": lambda x, y: x.double(), "long": lambda x, y: x.long(),
    "flip": lambda x, y: x.flip(0, 2), "clone": lambda x, y: x.clone(), "ones_like": lambda x, y: mg.ones_like(x), "empty_like": lambda x, y: mg.empty_like(x).zero_(),
    "chain": lambda x, y: (x.sin() * y).add_(1).tanh(), "+ scalar tensor": lambda x, y: x + y[0, 0, 0], "logical": lambda x, y: (x > 0) & (y > 0),
    "x * contiguous": lambda x, y: x * y.contiguous(), "row + x * contiguous": lambda x, y: y[0, 0] + x * y.contiguous(),
    "where contiguous": lambda x, y: mg.where(x > 0, x, y.contiguous()),
}
MIXED = {
    "contiguous * x": lambda x, y: x.contiguous() * y, "contiguous()": lambda x, y: x.contiguous(), "sum": lambda x, y: x.sum(0),
    "contiguous_format": lambda x, y: x.clone(memory_format=mg.contiguous_format), "softmax": lambda x, y: F.softmax(x, 0),
}


def operands(shape, **settings):
    rng = np.random.default_rng(0)
    return [mg.tensor(rng.normal(size=shape), dtype=mg.float32, **settings) for _ in range(2)]


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("name", KEEP | MIXED)
def test_result(name, shape):
    plain = [x.permute(ORDER) for x in operands(shape)]
    function = (KEEP | MIXED)[name]
    found, expected = function(*plain), function(*(x.contiguous() for x in plain))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    assert expected.is_contiguous()
    assert found.stride() == (plain[0].stride() if name in KEEP else expected.stride())


@pytest.mark.parametrize("shape", SIZES[:1] + SIZES[2:])
@pytest.mark.parametrize("name", [name for name in KEEP if name not in ("x > y", "logical", "long", "ones_like", "empty_like")])
def test_gradients(name, shape):
    leaves, copies = operands(shape, requires_grad=True), operands(shape, requires_grad=True)
    found = KEEP[name](*(x.permute(ORDER) for x in leaves))
    expected = KEEP[name](*(x.permute(ORDER).contiguous() for x in copies))
    weights = mg.rand(*found.shape)
    for y, xs in ((found, leaves), (expected, copies)):
        first, = mg.autograd.grad((y * y * weights).sum(), xs[0], create_graph=True)
        (first * first).sum().backward()
    for a, b in zip(leaves, copies):
        assert (a.grad is None) == (b.grad is None)
        assert a.grad is None or np.allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_left_out_of_an_operand_is_left_out_of_the_result():
    x = mg.zeros(6, 8).t()
    assert x[::2].abs().stride() == (1, 4) and x.narrow(1, 1, 3).abs().stride() == (1, 8) and mg.zeros(6, 8)[:, ::2].abs().stride() == (4, 1)
    assert (x + mg.zeros(6)).stride() == (1, 8) and (x + mg.zeros(8, 1)).stride() == (1, 8) and (mg.zeros(6, 1).expand(6, 4).t() + 0).stride() == (6, 1)


def test_writes_into_a_result_and_its_history():
    x = mg.arange(6.).reshape(2, 3).requires_grad_()
    y = x.t() * 2
    y[0] = 5.
    y[1:].mul_(y[1:])
    with mg.no_grad():
        assert (x.t() * 2).stride() == (1, 3) and not (x.t() * 2).requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [[0, 8, 16], [0, 32, 40]]
    assert y.reshape(-1).tolist() == [5, 5, 4, 64, 16, 100]


def test_saved_values_of_a_result_are_protected():
    x = mg.full((10, 12), 3., requires_grad=True)
    y = x.t().exp()  # saves its result
    y.zero_()
    (y + x.t().exp()).sum().backward()
    assert np.allclose(x.grad.numpy(), np.exp(3))


def test_leaves_and_data_in_another_order():
    w = (mg.arange(6.).reshape(2, 3).t() * 2).requires_grad_()
    (w * w).sum().backward()
    assert w.is_leaf and w.grad.tolist() == [[0, 12], [4, 16], [8, 20]]
    x = mg.ones(3, 2, requires_grad=True)
    y = x * 3
    y.data = mg.arange(6.).reshape(2, 3).t() * 2
    (y * y).sum().backward()
    assert y.stride() == (1, 3) and x.grad.tolist() == [[0, 36], [12, 48], [24, 60]]


def test_slices_of_vmap_and_no_elements():
    x = mg.arange(24.).reshape(2, 3, 4)
    assert mg.func.vmap(lambda a: a.t() * 2)(x).tolist() == (x.transpose(1, 2) * 2).tolist()
    assert (mg.zeros(0, 3).t() * 2).shape == (3, 0) and mg.zeros(0, 3).t().clone().shape == (3, 0)


DRAWN = {"uniform": lambda x, **settings: mg.rand_like(x, **settings), "normal": lambda x, **settings: mg.randn_like(x, **settings),
         "integers": lambda x, **settings: mg.randint_like(x, 9, **settings)}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_for_a_tensor_lies_as_that_does(name):
    x, draw = mg.zeros(3, 4, 5).permute(ORDER), DRAWN[name]
    mg.manual_seed(0)
    found = draw(x, dtype=mg.float64)
    mg.manual_seed(0)
    contiguous = draw(x, dtype=mg.float64, memory_format=mg.contiguous_format)
    assert found.stride() == x.stride() and contiguous.is_contiguous()
    if name != "normal":  # of which PyTorch has two ways
        assert found.permute(1, 2, 0).reshape(-1).equal(contiguous.reshape(-1))
    if name != "integers":
        leaf = draw(x, requires_grad=True)
        (leaf * mg.arange(60.0).reshape(5, 3, 4)).sum().backward()
        assert leaf.is_leaf and leaf.grad.equal(mg.arange(60.0).reshape(5, 3, 4))


LAST = {
    "conv2d": lambda x, w: F.conv2d(x, w, padding=1), "conv2d of a sample": lambda x, w: F.conv2d(x[:1], w, stride=2), "transposed": lambda x, w: F.conv_transpose2d(x, w),
    "weight": lambda x, w: F.conv2d(x.contiguous(), w.to(memory_format=mg.channels_last)),
    "cat": lambda x, w: mg.cat([x, x * 2], 1), "cat rows": lambda x, w: mg.cat([x, x[:1]], 0), "cat columns": lambda x, w: mg.cat([x, x], -1),
}


@pytest.mark.parametrize("name", LAST)
def test_images_with_the_channels_last_stay_so(name):
    x, w = mg.rand(2, 6, 8, 4, dtype=mg.float64, requires_grad=True), mg.rand(4, 4, 3, 3, dtype=mg.float64, requires_grad=True)
    images = x.permute(0, 3, 1, 2)
    found, plain = LAST[name](images, w), LAST[name](images.contiguous(), w)
    assert found.is_contiguous(memory_format=mg.channels_last) and not found.is_contiguous()
    assert name == "weight" or plain.is_contiguous()
    weights = mg.rand(*found.shape, dtype=mg.float64)
    for one, other in zip(*(mg.autograd.grad((y * weights).sum(), (x, w), allow_unused=True) for y in (found, plain))):
        assert (one is None) == (other is None) and (one is None or mg.allclose(one, other))


def test_images_in_different_orders_are_joined_in_c_order():
    last = mg.rand(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert mg.cat([last, last.contiguous()], 1).is_contiguous() and mg.cat([last.contiguous(), last]).is_contiguous()
    out = mg.zeros(2, 6, 4, 5)
    assert mg.cat([last, last], 1, out=out) is out and out.is_contiguous() and out[:, :3].equal(last)
