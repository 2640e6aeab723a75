"""Opting out by hand: what is written under `no_grad`, through `.data` or `detach()` is not part of the function."""

import numpy as np
import pytest

import mutagrad as mg


def f64(values, **options):
    return mg.tensor(values, dtype=mg.float64, **options)


def scale_under_no_grad(y):
    with mg.no_grad():
        y.mul_(0.0)


UNRECORDED = {
    "no_grad": scale_under_no_grad,
    "data": lambda y: y.data.zero_(),
    "detach": lambda y: y.detach().zero_(),
    "a window of data": lambda y: y.data[:].zero_(),
    "a window under detach": lambda y: y[:].detach().fill_(0.0),
}


@pytest.fixture(params=UNRECORDED, ids=str)
def clear(request):
    return UNRECORDED[request.param]


def test_a_saved_value_is_protected(clear):
    x, y = f64([1.0, 2.0], requires_grad=True), f64([3.0, 4.0], requires_grad=True)
    z = x * y
    clear(y)
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad.tolist() == [1.0, 2.0]
    assert y.tolist() == [0.0, 0.0]


def test_a_saved_value_is_protected_in_second_order(clear):
    x = f64([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = (y * y * y).sum()
    clear(y)
    z.backward(create_graph=True)
    g, x.grad = x.grad, None
    g.sum().backward()
    assert g.tolist() == [3.0, 12.0]
    assert x.grad.tolist() == [6.0, 12.0]


def test_a_later_read_sees_the_value_and_the_old_history(clear):
    x = f64([1.0, 2.0], requires_grad=True)
    y = x * 2
    clear(y)
    (y * y + 5 * y).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


def test_straight_through():
    x = f64([0.2, 1.7], requires_grad=True)
    y = x * 3
    y.data.copy_(f64([1.0, 5.0]))
    (y * f64([2.0, 7.0])).sum().backward()
    assert y.tolist() == [1.0, 5.0]
    assert x.grad.tolist() == [6.0, 21.0]


def test_gradient_descent_by_hand():
    x = f64([5.0, -3.0], requires_grad=True)
    for _ in range(60):
        loss = (x * x).sum()
        loss.backward()
        with mg.no_grad():
            x -= 0.2 * x.grad
        x.grad = None
        assert x.is_leaf and x.requires_grad
    np.testing.assert_allclose(x.tolist(), [0.0, 0.0], atol=1e-6)


def test_an_update_before_backward_does_not_change_the_gradient():
    x = f64([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    with mg.no_grad():
        x += 10.0
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_detach_shares_memory_but_no_history():
    x = f64([1.0, 2.0], requires_grad=True)
    y = x * 2
    d = y.detach()
    y.mul_(5.0)
    assert d.tolist() == [10.0, 20.0] and not d.requires_grad
    (d * x + y).sum().backward()
    assert x.grad.tolist() == [20.0, 30.0]


def test_a_recorded_write_after_an_unrecorded_one():
    x = f64([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y.data[0] = 100.0
    y[1] = y[0] * 3
    y.sum().backward()
    assert y.tolist() == [100.0, 300.0, 6.0]
    assert x.grad.tolist() == [8.0, 0.0, 2.0]
