"""Short programs in both libraries: writes that PyTorch allows, too, and the autograd API around them."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

from .compare import attempt, difference

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A program takes the library and returns whatever is to be the same in both."""
    PROGRAMS[function.__name__] = function
    return function


def leaf(m: Any, *shape: int, seed: int = 0) -> Any:
    return m.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


# ------------------------------------------------------------------------------------------------------------------- writes

IN_PLACE = """
add_(y); add_(2); add_(y, alpha=3); add_(row); sub_(y); sub_(1.5); mul_(y); mul_(2); mul_(row); div_(y); div_(4); div_(3, rounding_mode="floor")
pow_(2); pow_(3.0)
neg_(); abs_(); exp_(); sin_(); cos_(); tanh_(); sigmoid_(); relu_(); square_(); floor_(); ceil_(); round_(); trunc_(); frac_(); sign_(); erf_()
expm1_(); reciprocal_(); atan_()
clamp_(-0.5, 0.5); clamp_(min=0); clamp_(max=y); clamp_min_(0.1); clamp_max_(0.1); zero_(); fill_(3); fill_(s); copy_(y); copy_(row); copy_(s)
remainder_(0.7); fmod_(0.7); lerp_(y, 0.3)
addcmul_(y, y, value=2); addcdiv_(y, y.exp()); masked_fill_(y > 0, 1.0); masked_fill_(y > 0, s); masked_scatter_(y > 0, y); index_fill_(1, i, 2.0)
index_add_(1, i, y[:, :2]); index_copy_(1, i, y[:, :2])
index_put_((i, i), s); index_put_((m.tensor([0, 0]),), y, accumulate=True); scatter_(1, i.expand(2, 2), y[:, :2]); scatter_(1, i.expand(2, 2), 5.0)
scatter_add_(1, i.expand(2, 2), y[:, :2]); put_(i, row[:2]); put_(i * 0, row[:2], accumulate=True)
scatter_reduce_(1, i.expand(2, 2), y[:, :2], "prod"); scatter_reduce_(1, i.expand(2, 2), y[:, 1:], "amax", include_self=False); cumsum_(1)
cumprod_(0); eq_(y); lt_(0); atan2_(y); hypot_(y); sqrt_(); log1p_(); rsqrt_(); deg2rad_()
"""

# Each is assigned to the index of a computed tensor.
ASSIGNED = """
z[0] = 5.0; z[0] = row; z[:, 1] = s; z[0, 1] = row[0]; z[...] = y; z[:] = 0.0; z[1:] = y[:1]; z[:, ::2] = y[:, :2]; z[y > 0] = 1.0
z[y > 0] = y[y > 0]; z[[1, 0]] = y; z[i, i] = row[:2]; z[None] = y
z[0] += 1; z[0] *= row; z[:, i] += y[:, :2]; z[y > 0] *= 2; z[..., -1] -= s; z.t()[0] = row[:2]; z.view(-1)[3] = s; z.diagonal().mul_(2)
z.select(1, 2).add_(1); z[0][1] = 7.0; z.narrow(1, 0, 2).copy_(y[:, 1:])
z[1:] = z[:-1] * 2; z[:, 0] = z[:, 1] * 3; z.data[0] = 9.0; z.detach().mul_(3); z.squeeze_().add_(1); z.unsqueeze_(0).mul_(2); z.t_().mul_(s)
z.transpose_(0, 1).mul_(2)
"""


def run_writing(m: Any, statement: str) -> list[Any]:
    x, y, row, s = leaf(m, 2, 3), leaf(m, 2, 3, seed=1), leaf(m, 3, seed=2), leaf(m, seed=3)
    z = x * 1
    exec(statement, {"m": m, "z": z, "y": y, "row": row, "s": s, "i": m.tensor([0, 1])})
    weight = m.tensor(np.random.default_rng(9).standard_normal(tuple(z.shape)))
    loss = (z * weight).sum()
    loss.backward(m.ones_like(loss))  # which may be nan: told so, we differentiate it all the same
    return [z.detach(), [t.grad if t.grad is not None else m.zeros_like(t) for t in (x, y, row, s)]]


def parts(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split("; ")]


@pytest.mark.parametrize("statement", [f"z.{call}" for call in parts(IN_PLACE)] + parts(ASSIGNED))
def test_write(statement: str) -> None:
    expected, refused = attempt(lambda: run_writing(torch, statement), quiet=True)
    if refused is not None and "inplace version" in str(refused):
        pytest.skip("PyTorch has no derivative of this form")
    assert refused is None, f"PyTorch raised {refused!r}"
    assert difference(expected, run_writing(mg, statement)) == ""


# ----------------------------------------------------------------------------------------------------------------- autograd

@program
def gradients_accumulate(m: Any) -> Any:
    x = leaf(m, 3)
    (x * x).sum().backward()
    first = x.grad.clone()
    (x * 2).sum().backward()
    held = x.grad
    x.grad = None
    x.sin().sum().backward()
    return first, held, x.grad


@program
def a_retained_graph(m: Any) -> Any:
    x = leaf(m, 3)
    y = (x ** 3).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def a_seed(m: Any) -> Any:
    x = leaf(m, 3)
    (x * x).backward(m.tensor([1.0, 0.0, 2.0], dtype=m.float64))
    return x.grad


@program
def only_some_inputs(m: Any) -> Any:
    x, y = leaf(m, 3), leaf(m, 3, seed=1)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def several_outputs(m: Any) -> Any:
    x, y = leaf(m, 3), leaf(m, 3, seed=1)
    m.autograd.backward([(x * y).sum(), x.sum()])
    return x.grad, y.grad, m.autograd.grad([x.exp().sum(), (x * y).sum()], [x, y])


@program
def unused_inputs(m: Any) -> Any:
    x, y = leaf(m, 3), leaf(m, 3, seed=1)
    found = m.autograd.grad(x.sum(), [x, y], allow_unused=True)
    return found[0], found[1], m.autograd.grad(x.sum(), [y], materialize_grads=True)


@program
def second_derivatives(m: Any) -> Any:
    x = leaf(m, 3)
    (g,) = m.autograd.grad((x ** 4).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x, create_graph=True)
    h.sum().backward()
    return g.detach(), h.detach(), x.grad, g.requires_grad


@program
def backward_with_a_graph(m: Any) -> Any:
    x = leaf(m, 3)
    (x ** 3).sum().backward(create_graph=True)
    penalty = (x.grad ** 2).sum()
    first = x.grad.detach().clone()
    x.grad = None
    penalty.backward()
    return first, x.grad


@program
def hooks_change_and_see(m: Any) -> Any:
    x, seen = leaf(m, 3), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()))
    y.register_hook(lambda g: g * 10)
    handle = x.register_hook(lambda g: g + 1)
    (y * y).sum().backward(retain_graph=True)
    handle.remove()
    first = x.grad.clone()
    (y * y).sum().backward()
    return first, x.grad, seen


@program
def retained_gradients(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    y.retain_grad()
    z = y.exp()
    z.sum().backward()
    return x.grad, y.grad, y.retains_grad, x.retains_grad


@program
def hooks_after_accumulation(m: Any) -> Any:
    x, seen = leaf(m, 3), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    (x * 3).sum().backward()
    return seen


@program
def switched_off(m: Any) -> Any:
    x = leaf(m, 3)
    with m.no_grad():
        a = x * 2
        with m.enable_grad():
            b = x * 2
    with m.set_grad_enabled(False):
        c = x * 2
    with m.inference_mode():
        d = x * 2

    @m.no_grad()
    def inside() -> Any:
        return x * 2

    return [t.requires_grad for t in (a, b, c, d, inside())], m.is_grad_enabled(), (x.detach() * 2).requires_grad


@program
def an_optimizer_step(m: Any) -> Any:
    x = leaf(m, 3)
    for _ in range(3):
        (x ** 2).sum().backward()
        with m.no_grad():
            x -= 0.1 * x.grad
        x.grad.zero_()
    return x.detach(), x.is_leaf, x.requires_grad, x.grad


@program
def data_is_not_recorded(m: Any) -> Any:
    x = leaf(m, 3)
    x.data.mul_(2)
    x.data = x.data + 1
    y = (x * x).sum()
    y.backward()
    return x.detach(), x.grad, x.is_leaf


@program
def straight_through(m: Any) -> Any:
    x = leaf(m, 3)
    y = x + (x.round() - x).detach()
    (y * y).sum().backward()
    return y.detach(), x.grad


@program
def detached_memory_is_shared(m: Any) -> Any:
    x = m.ones(3)
    y = x.detach()
    y[0] = 5.0
    z = x.clone()
    z[1] = 7.0
    return x, y, z


@program
def versions(m: Any) -> Any:
    x = m.zeros(3)
    counts = [x._version]
    x += 1
    counts.append(x._version)
    x[0] = 2.0
    x.view(3).mul_(2)
    counts.append(x._version)
    return counts, x.detach()._version == x._version


@program
def leaves_and_their_flags(m: Any) -> Any:
    x = leaf(m, 3)
    y = x.detach().requires_grad_()
    z = m.ones(2, requires_grad=True) * 1
    frozen = m.ones(2).requires_grad_(True).requires_grad_(False)
    return x.is_leaf, y.is_leaf, z.is_leaf, frozen.requires_grad, x.grad_fn is None, z.grad_fn is None, (x * 2).grad_fn.name()


@program
def a_function_of_ones_own(m: Any) -> Any:
    class Cube(m.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any, scale: float) -> Any:
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * x * scale

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x * ctx.scale, None

    x = leaf(m, 3)
    y = Cube.apply(x, 2.0)
    (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return y.detach(), g.detach(), x.grad, Cube.apply(x.detach(), 1.0).requires_grad


@program
def a_function_with_two_results(m: Any) -> Any:
    class Split(m.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            low = x.argmin()
            ctx.mark_non_differentiable(low)
            return x * 2, x * 3, low

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any, low: Any) -> Any:
            return a * 2 + b * 3

    x = leaf(m, 3)
    a, b, low = Split.apply(x)
    (a * a + b).sum().backward()
    return a.detach(), low, low.requires_grad, x.grad


@program
def a_function_that_writes(m: Any) -> Any:
    class Double(m.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(m, 3)
    y = x * 1
    z = Double.apply(y)
    (z * z).sum().backward()
    return z.detach(), x.grad, z is y


@program
def needed_gradients_only(m: Any) -> Any:
    seen = []

    class Product(m.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            seen.append(tuple(ctx.needs_input_grad))
            return (g * y if ctx.needs_input_grad[0] else None), (g * x if ctx.needs_input_grad[1] else None)

    x, y = leaf(m, 3), m.ones(3, dtype=m.float64)
    Product.apply(x, y).sum().backward()
    return x.grad, y.grad, seen


@program
def views_of_a_leaf_read(m: Any) -> Any:
    x = leaf(m, 4, 4)
    total = x[0].sum() + x[:, 1].prod() + x.t()[2].exp().sum() + x.diagonal().sum() + x.view(2, 8)[1].sum() + x[x > 0].sum() + x[[0, 0]].sum()
    total.backward()
    return total.detach(), x.grad


@program
def mixed_types(m: Any) -> Any:
    x, y = leaf(m, 3), m.ones(3, requires_grad=True)
    (x * y + y.half().float()).sum().backward()
    return x.grad, y.grad


@program
def copies_and_pickles(m: Any) -> Any:
    x = leaf(m, 3)
    again = pickle.loads(pickle.dumps(x))
    deep = copy.deepcopy(x)
    base = m.arange(6)
    first, part = copy.deepcopy((base, base[2:]))
    first[3] = 9
    return again.detach(), again.requires_grad, deep.detach(), deep.is_leaf, part


@program
def arrays_share_memory(m: Any) -> Any:
    x = m.zeros(3)
    a = x.numpy()
    a[0] = 1
    x[1] = 2
    source = np.zeros(3)
    y = m.from_numpy(source)
    source[2] = 5
    y[0] = 4
    return x, y, a.tolist(), source.tolist(), np.asarray(x).tolist(), np.sin(x.detach().numpy()).tolist()


@program
def numpy_numbers_beside_tensors(m: Any) -> Any:
    x = m.ones(3, dtype=m.float64)
    return x * np.float64(2), x + np.int64(1), np.float32(2) * m.ones(2), x[np.int64(0)], x[np.array([0, 2])]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    expected, refused = attempt(lambda: PROGRAMS[name](torch), quiet=True)
    assert refused is None, f"PyTorch raised {refused!r}"
    assert difference(expected, PROGRAMS[name](mg)) == ""
