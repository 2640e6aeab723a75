"""Memory under several names and histories: no gradient is lost, permuted, or anybody else's."""

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.autograd import Function


def leaf(*values, shape=None):
    return mg.tensor(values, dtype=mg.float64).reshape(shape or (len(values),)).clone().requires_grad_()


def grad_of(x):
    return x.grad.tolist()


# Lists.


@pytest.mark.parametrize("write", ["y[:2] = [x[0] * 2, x[1] * 3]", "y[:2] = (x[0] * 2, x[1] * 3)", "y[:2].copy_([x[0] * 2, x[1] * 3])",
                                   "y[mg.tensor([0, 1])] = [x[0] * 2, x[1] * 3]", "m[0] = [x[0] * 2, x[1] * 3]; y[:2] = m[0]",
                                   "m[:] = [[x[0] * 2, 7.0], [1, x[1] * 3]]; y[0] = m[0, 0]; y[1] = m[1, 1]", "y[:2] = [y[2] + x[0] * 2, x[1] * 3]"])
def test_lists_of_tensors_keep_their_gradients(write):
    x, y = leaf(1.0, 2.0), mg.zeros(3, dtype=mg.float64)
    exec(write, {"mg": mg, "x": x, "y": y, "m": mg.zeros(2, 2, dtype=mg.float64)})
    (y * mg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert grad_of(x) == [2.0, 30.0]


# Leaves that change shape in place.


@pytest.mark.parametrize("change", ["x.t_()", "x.transpose_(0, 1)", "x.swapaxes_(0, 1)"])
@pytest.mark.parametrize("used", ["before", "after", "both"])
def test_a_leaf_that_is_transposed_in_place(change, used):
    x, w = leaf(*range(6), shape=(2, 3)), mg.arange(6.0, dtype=mg.float64).reshape(2, 3)
    loss = (x * w).sum() if used != "after" else 0.0
    exec(change)
    if used != "before":
        loss = loss + (x * w.t()).sum()
    loss.backward()
    assert x.is_leaf and grad_of(x) == (w.t() * (2 if used == "both" else 1)).tolist()


def test_the_gradient_that_a_leaf_has_already_is_transposed_with_it():
    x = leaf(*range(6), shape=(2, 3))
    w = mg.arange(6.0, dtype=mg.float64).reshape(2, 3)
    (x * w).sum().backward()
    x.t_()
    (x * w.t()).sum().backward()
    assert grad_of(x) == (2 * w.t()).tolist()


def test_squeezing_and_unsqueezing_a_leaf():
    x = leaf(1.0, 2.0, shape=(1, 2))
    loss = (x * 3).sum()
    x.squeeze_(0).unsqueeze_(1)
    (loss + (x * mg.tensor([[1.0], [2.0]])).sum()).backward()
    assert x.shape == (2, 1) and grad_of(x) == [[4.0], [5.0]]


def test_other_data_of_another_shape_does_not_take_the_old_gradient():
    x = leaf(*range(6), shape=(2, 3))
    old = (x * 2).sum()
    x.data = x.data.t()
    with pytest.raises(RuntimeError, match="cannot take a gradient of shape"):
        old.backward()
    (x * mg.arange(6.0).reshape(3, 2)).sum().backward()
    assert grad_of(x) == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_a_leaf_cannot_lose_elements_in_place():
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(RuntimeError, match="in place"):
        x.as_strided_((2,), (1,))
    assert x.tolist() == [1.0, 2.0, 3.0]


# Saved values that are written to.


class Greedy(Function):
    """Writes to what it has saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * x.mul_(2)


@pytest.mark.parametrize("size", [3, 100])
def test_what_backward_writes_to_saved_tensors_is_its_own(size):
    x = mg.arange(float(size)).requires_grad_()
    before, y, after = x * x, Greedy.apply(x), x * x * x
    loss = before.sum() + y.sum() + after.sum()
    loss.backward(retain_graph=True)
    first = x.grad.clone()
    assert x.tolist() == list(range(size))
    assert np.allclose(first.numpy(), 4 * np.arange(size) + 3 * np.arange(size) ** 2)
    loss.backward()
    assert np.allclose(x.grad.numpy(), 2 * first.numpy())


@pytest.mark.parametrize("name", ["_saved_self", "_saved_other"])
def test_what_is_written_to_saved_values_of_a_node_is_nobody_elses(name):
    x, y = mg.arange(100.0).requires_grad_(), mg.full((100,), 3.0).requires_grad_()
    z = x * y
    saved = getattr(z.grad_fn, name)
    with mg.no_grad():
        saved.zero_()
    z.sum().backward()
    assert x.tolist() == list(range(100)) and x.grad.tolist() == [3.0] * 100 and y.grad.tolist() == list(range(100))


# Leaves that are views.


@pytest.mark.parametrize("write", ["p[0] = 5.0", "p.data[0] = 5.0", "p.detach()[0] = 5.0", "flat[2] = 5.0", "flat.data[2:4] = 5.0", "p.mul_(2)", "flat.zero_()",
                                   "p.view(-1)[0] = 5.0"])
@pytest.mark.parametrize("make", ["flat[2:5].requires_grad_()", "mg.nn.Parameter(flat[2:5])"])
def test_an_unrecorded_write_makes_a_view_a_leaf_again(write, make):
    flat = mg.arange(6.0)
    p = eval(make, {"mg": mg, "flat": flat})
    p.mul_(3)
    assert not p.is_leaf
    with mg.no_grad():
        exec(write, {"p": p, "flat": flat})
    (p * 2).sum().backward()
    assert p.is_leaf and grad_of(p) == [2.0, 2.0, 2.0]


def test_an_unrecorded_write_elsewhere_does_not():
    flat = mg.zeros(4, 3)
    p, q = flat[:, 0].requires_grad_(), flat[:, 1].requires_grad_()
    p.mul_(3)
    with mg.no_grad():
        q.add_(1)
    (p * 2).sum().backward()
    assert grad_of(p) == [6.0] * 4


def test_a_parameter_is_a_leaf_again_whatever_it_is_written_through():
    p = mg.nn.Parameter(mg.ones(3))
    for write in (lambda: p.data.fill_(2.0), lambda: p.detach().fill_(2.0)):
        p.mul_(3)
        assert not p.is_leaf
        write()
        assert p.is_leaf


def test_a_recorded_write_to_the_base_is_part_of_a_leaf_that_is_a_view():
    flat = mg.zeros(4)
    p = flat[:2].requires_grad_()
    flat[0] = p[1] * 2
    p.sum().backward()
    assert grad_of(p) == [0.0, 3.0]


def test_a_recorded_write_to_a_leaf_that_is_a_view_is_part_of_the_base():
    flat = mg.ones(4)
    p = flat[1:3].requires_grad_()
    assert not flat.requires_grad
    p[0] = p[1] * 2
    flat.sum().backward()
    assert grad_of(p) == [0.0, 3.0]


def test_once_the_base_has_a_history_its_leaves_are_part_of_it():
    flat = mg.ones(4)
    p, z = flat[1:3].requires_grad_(), leaf(5.0)
    flat[1] = z[0] * 2
    flat.mul_(3)
    (p * mg.tensor([1.0, 10.0])).sum().backward()
    assert grad_of(p) == [0.0, 30.0] and grad_of(z) == [6.0]


def test_views_of_one_buffer_as_leaves_that_write_to_each_other():
    flat = mg.arange(1.0, 7.0)
    p, q = flat[:4].requires_grad_(), flat[2:].requires_grad_()  # they overlap
    q[0] = p[0] * 3  # which is p[2], too
    (p * mg.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert grad_of(p) == [301.0, 10.0, 0.0, 1000.0] and grad_of(q) == [0.0] * 4


# Functions and views.


class AsVector(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return (g * 10).view(2, 2)


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 10


def test_a_write_to_a_view_that_a_function_returned_is_a_write_to_its_input():
    x = leaf(1.0, 1.0, 1.0, 1.0, shape=(2, 2))
    a = x * 1
    y = AsVector.apply(a)
    y[0] = x[1, 1] * 7
    weights = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    ((a * weights).sum() + (y * weights.view(-1)).sum()).backward()
    assert a[0, 0].item() == 7.0
    assert grad_of(x) == [[0.0, 22.0], [33.0, 44.0 + 14.0]]


def test_a_write_to_the_input_is_a_write_to_the_view_that_a_function_returned():
    x = leaf(1.0, 1.0, 1.0, 1.0, shape=(2, 2))
    a = x * 1
    y = AsVector.apply(a)
    a[0, 0] = x[1, 1] * 7
    (y * mg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert grad_of(x) == [[0.0, 20.0], [30.0, 47.0]]


def test_an_input_that_a_function_returned_unchanged_and_that_is_then_written():
    x = leaf(1.0, 2.0)
    a = x * 1
    y = Same.apply(a)
    y *= 3
    (a.sum() + y.sum()).backward()
    assert a.tolist() == [3.0, 6.0] and grad_of(x) == [60.0, 60.0]


class Expanded(Function):
    @staticmethod
    def forward(ctx, x):
        return x.expand(5)

    @staticmethod
    def backward(ctx, g):
        ctx.shape = g.shape
        return g.sum().reshape(1)


def test_an_expanded_result_gets_a_gradient_for_each_element():
    x = leaf(1.0)
    (Expanded.apply(x) * mg.arange(5.0)).sum().backward()
    assert grad_of(x) == [10.0]


class Weighted(Function):
    """Differentiates something that reads the same view in its backward, as adjoint methods do."""

    @staticmethod
    def forward(ctx, x, view, function):
        ctx.save_for_backward(x, view)
        ctx.function = function
        return x * 1

    @staticmethod
    def backward(ctx, g):
        _, view = ctx.saved_tensors
        with mg.enable_grad():
            value = ctx.function()
        return g, mg.autograd.grad(value, view, allow_unused=True)[0], None


@pytest.mark.parametrize("shape", [(2, 2), (10, 10)])
def test_a_view_that_was_saved_comes_back_as_the_view_that_it_was(shape):
    size = shape[0] * shape[1]
    flat = mg.arange(float(size)).requires_grad_()
    view, x = flat.view(shape), mg.ones(3, requires_grad=True)
    Weighted.apply(x, view, lambda: (view * view).sum()).sum().backward()
    assert grad_of(flat) == (2 * flat).tolist()


class Keeps(Function):
    """Saves a tensor that is neither an input nor an output."""

    @staticmethod
    def forward(ctx, x, others):
        ctx.save_for_backward(x, *others)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        _, *others = ctx.saved_tensors
        return g * sum(o.sum() for o in others), None


def test_a_computed_tensor_that_was_saved_comes_back_with_its_history():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = Keeps.apply(x, [y * y, (y * 2)[:1]])
    g, = mg.autograd.grad(out.sum(), x, create_graph=True)
    g.sum().backward()
    assert grad_of(y) == [2 * (6.0 + 2), 2 * 8.0]


# Gradients that are set by hand.


@pytest.mark.parametrize("grad", ["mg.ones(1).expand(3)", "mg.ones(6)[::2]", "mg.ones(3, 3).t()[0]"])
def test_gradients_are_added_to_whatever_was_set(grad):
    x = mg.ones(3, requires_grad=True)
    x.grad = eval(grad)
    for _ in range(2):
        (x * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert grad_of(x) == [3.0, 5.0, 7.0]


# Hooks on views.


def scale_by(factor):
    def hook(g):
        g.mul_(factor)

    return hook


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_on_views_may_change_the_gradient_in_place(create_graph):
    x = mg.ones(4, requires_grad=True)
    y = x * 2
    y[:2].register_hook(scale_by(10))
    y[1:3].register_hook(lambda g: g + 1)
    y.register_hook(scale_by(2))
    y.sum().backward(create_graph=create_graph)
    assert grad_of(x) == [40.0, 44.0, 8.0, 4.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_a_hook_keeps_is_not_changed_afterwards(create_graph):
    x = mg.ones(4, requires_grad=True)
    y, seen = x * 2, []
    y.register_hook(lambda g: seen.append(g))
    y[:2].register_hook(lambda g: g * 10)
    y.sum().backward(create_graph=create_graph)
    assert seen[0].tolist() == [1.0] * 4 and grad_of(x) == [20.0, 20.0, 2.0, 2.0]


@pytest.mark.parametrize("view", [False, True])
def test_of_two_versions_the_newer_keeps_its_gradient(view):
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    v = y[1:] if view else y
    v.retain_grad()
    v *= 3
    v.retain_grad()
    (y**2).sum().backward()
    assert grad_of(v) == (2 * v).tolist()


@pytest.mark.parametrize("write", [lambda y: y.mul_(3), lambda y: y[1:].mul_(3), lambda y: y.__setitem__(0, 5.0)])
def test_a_gradient_is_kept_of_what_a_tensor_is_when_the_sweep_begins(write):
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y.retain_grad()
    write(y)
    (y**2).sum().backward()
    assert grad_of(y) == (2 * y).tolist() and y.retains_grad


def test_of_a_version_that_is_over_no_gradient_is_kept():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    loss = (y * y).sum()
    y += 1
    loss.backward()
    assert y.grad is None and grad_of(x) == [8.0, 16.0]


def test_a_written_leaf_reports_as_a_leaf_whether_or_not_it_shall_retain():
    x = leaf(1.0, 2.0)
    x *= 2
    x.retain_grad()
    (x * x).sum().backward()
    assert grad_of(x) == [8.0, 16.0]


def test_out_of_memory_in_a_sweep_says_so():
    def hook(g):
        raise MemoryError("no room")

    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(RuntimeError, match="backward") as caught:
        y.sum().backward()
    assert isinstance(caught.value, MemoryError)


# Forward mode.


def test_what_is_infinite_is_infinite_in_forward_mode():
    zero, one = mg.tensor(0.0), mg.tensor(1.0)
    assert mg.func.jvp(mg.sqrt, (zero,), (one,))[1].item() == float("inf")
    assert mg.autograd.functional.jvp(mg.sqrt, zero, one)[1].item() == float("inf")
    with mg.autograd.forward_ad.dual_level():
        assert mg.autograd.forward_ad.unpack_dual(mg.autograd.forward_ad.make_dual(zero, one).sqrt()).tangent.item() == float("inf")
    masked = mg.func.jvp(lambda x: mg.where(x > 0, x.sqrt(), 0.0), (mg.tensor([0.0, 4.0]),), (mg.ones(2),))[1]
    assert masked.tolist() == [0.0, 0.25]
    still = mg.func.jvp(mg.sqrt, (mg.tensor([0.0, 4.0]),), (mg.tensor([0.0, 1.0]),))[1]
    assert still.tolist() == [0.0, 0.25]  # a zero tangent stays zero, as a zero adjoint does


# Memory that is seen through other objects.


@pytest.mark.parametrize("write", ["x.storage()[0] = 9.0", "x.untyped_storage().fill_(0)", "x.untyped_storage()[0:40][0] = 7", "x.view(-1)._base.fill_(9.0)",
                                   "x.storage().fill_(9.0)", "mg.from_numpy(x.detach().numpy()).fill_(9.0)", "x[50:].untyped_storage().fill_(0)"])
def test_saved_values_are_protected_from_writes_through_storages(write):
    x, w = mg.full((100,), 3.0), mg.ones(100, requires_grad=True)
    part = x.untyped_storage()[0:400] if "[0:40]" in write else None
    y = (w * x).sum()
    exec(write)
    y.backward()
    assert grad_of(w) == [3.0] * 100
    del part


def test_the_storage_of_a_leaf_that_is_a_view_is_that_of_its_base():
    flat = mg.arange(6.0)
    p = flat[2:5].requires_grad_()
    assert p.storage_offset() == 2 and len(p.storage()) == 6 and p.data_ptr() == flat.data_ptr() + 8
    p.storage()[2] = 9.0
    assert p[0].item() == 9.0 and p._is_view() and p._base.tolist() == flat.tolist()
    assert p.detach().as_strided((2,), (1,)).tolist() == [9.0, 3.0] and p.detach().as_strided((2,), (1,), 3).tolist() == [3.0, 4.0]
    (p.as_strided((2, 2), (1, 2), 1) * mg.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()  # reaches beyond it
    assert grad_of(p) == [100.0, 10.0, 1000.0]
    with pytest.raises(RuntimeError, match="as_strided"):
        p.as_strided((2,), (1,), 5)


# Complex numbers and their parts.


def test_a_complex_write_is_part_of_a_real_alias():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    z, w = mg.view_as_complex(y.view(2, 2)), Same.apply(y)
    z.mul_(2.0)
    (w * w).sum().backward()
    assert grad_of(x) == [8.0, 16.0, 24.0, 32.0]


def test_a_complex_write_to_the_base_of_a_real_leaf():
    flat = mg.tensor([1.0, 2.0, 3.0, 4.0])
    a = flat[0:2].requires_grad_()
    mg.view_as_complex(flat.view(2, 2)).mul_(a[0])
    (a**2).sum().backward()
    assert grad_of(a) == [10.0, 0.0]


def test_a_leaf_that_straddles_complex_numbers():
    flat = mg.tensor([1.0, 2.0, 3.0, 4.0])
    a = flat[1:3].requires_grad_()
    mg.view_as_complex(flat.view(2, 2)).mul_(a[0])
    (a**3).sum().backward()
    assert grad_of(a) == [420.0, 0.0]


def test_a_write_to_the_parts_of_a_complex_leaf():
    flat = mg.tensor([1 + 2j, 3 + 4j])
    a = flat[:1].requires_grad_()
    flat.real.mul_(a.imag[0])
    mg.view_as_real(a).pow(2).sum().backward()
    assert a.tolist() == [2 + 2j] and grad_of(a) == [8j]


def test_a_real_write_to_the_base_of_a_complex_leaf():
    flat, z = mg.tensor([1.0, 2.0, 3.0, 4.0]), leaf(5.0)
    a = mg.view_as_complex(flat.view(2, 2)).requires_grad_()
    flat[1] = z.float()[0] * 2
    mg.view_as_real(a).pow(2).sum().backward()
    assert grad_of(z) == [40.0] and grad_of(a) == [2 + 0j, 6 + 8j]


@pytest.mark.parametrize("write", [lambda two: two[:1].mul_(2.0), lambda two: two[1:1].add_(1.0), lambda two: (two[1:1].add_(1.0), two[1:].mul_(3.0)),
                                   lambda two: [two[i].mul_(2.0) for i in range(2)], lambda two: two.mul_(2.0)])
@pytest.mark.parametrize("first", [True, False])
def test_the_gradient_of_a_leaf_that_was_written_in_part_and_is_read_through_the_whole(write, first):
    base = mg.arange(4, dtype=mg.float64) + 1
    one, two = base[:2].requires_grad_(), base[2:].requires_grad_()
    if first:
        one.mul_(2.0)
    write(two)
    g = mg.autograd.grad((base * base).sum() + two.sum(), [two])[0]
    assert g.tolist() == (2 * base[2:] + 1).tolist()
