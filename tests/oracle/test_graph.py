"""Hooks, places in the graph, dual numbers and packed values beside PyTorch's: what is called, when, and with what."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="compares with PyTorch")
pytestmark = pytest.mark.oracle


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return np.round(value.detach().numpy().astype(float), 4).tolist() if hasattr(value, "detach") else value


def leaves(lib: Any) -> tuple[Any, Any]:
    return lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([3.0, 5.0], requires_grad=True)


def double(lib: Any) -> Any:
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, label: str) -> Any:
            ctx.save_for_backward(x)
            return x * 2, label, x * x

        @staticmethod
        def backward(ctx: Any, g: Any, label: Any, h: Any) -> Any:
            return g * 2 + 2 * ctx.saved_tensors[0] * h, None

    return Double.apply


def order_of_hooks(lib: Any) -> Any:
    (x, y), seen = leaves(lib), []
    z = x * y
    end = z.grad_fn.next_functions[0][0]
    end.register_prehook(lambda g: seen.append(("end before", plain(g))))
    end.register_hook(lambda grads, g: seen.append(("end after", plain(grads), plain(g))))
    z.grad_fn.register_prehook(lambda g: (seen.append(("before", plain(g))), (g[0] * 3,))[1])
    z.grad_fn.register_hook(lambda grads, g: (seen.append(("after", plain(grads), plain(g))), tuple(d + 1 for d in grads))[1])
    z.retain_grad()
    z.register_hook(lambda g: (seen.append(("tensor", plain(g))), g * 2)[1])
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", plain(t.grad))))
    x.register_hook(lambda g: (seen.append(("leaf", plain(g))), g * 10)[1])
    z.sum().backward()
    return [*(s for s in seen), z.grad, x.grad, y.grad]


def several_outputs(lib: Any) -> Any:
    x, _ = leaves(lib)
    seen: list[Any] = []
    a, _, b = double(lib)(x, "label")
    a.grad_fn.register_prehook(lambda g: seen.append(plain(g)))
    a.grad_fn.register_hook(lambda grads, g: seen.append((plain(grads), plain(g))))
    (a + 3 * b).sum().backward()
    return [*seen, x.grad, a.output_nr, b.output_nr, a.grad_fn.name(), type(b.grad_fn).__name__]


def edges(lib: Any) -> Any:
    x, y = leaves(lib)
    z = x * y
    edge = lib.autograd.graph.get_gradient_edge(z)
    w = (z * z).sum()
    g = lib.autograd.grad(w, (edge, x), retain_graph=True)
    lib.autograd.backward(edge, lib.tensor([1.0, 10.0]), inputs=[y])
    return [*g, y.grad, x.grad]


def one_hook_for_many(lib: Any) -> Any:
    x, y = leaves(lib)
    seen: list[Any] = []
    lib.autograd.graph.register_multi_grad_hook((x, y), lambda grads: seen.append(plain(grads)))
    (x * y).sum().backward()
    (x * y).sum().backward(inputs=[y])
    (x * 2).sum().backward()
    return seen


def packed(lib: Any) -> Any:
    x, y = leaves(lib)
    seen: list[Any] = []
    with lib.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(plain(t)), t * 2)[1], lambda t: t):
        z = (x * y).sin().exp() + double(lib)(x, "")[2]
    z.sum().backward()
    return [sorted(seen), x.grad, y.grad]


def duals(lib: Any) -> Any:
    ad = lib.autograd.forward_ad
    x, y = leaves(lib)
    with ad.dual_level():
        a = ad.make_dual(x.detach(), lib.tensor([1.0, 10.0]))
        b = ad.make_dual(y, lib.tensor([0.0, 1.0]))
        z = lib.zeros(3)
        z[1:] = a * b
        z[0] = a.prod()
        z *= 2
        value, tangent = ad.unpack_dual(z)
        tangent.sum().backward()
        return [value, tangent, y.grad, ad.unpack_dual(a)[1], ad.unpack_dual(x)[1]]


def tangents_of_a_function(lib: Any) -> Any:
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(x: Any, n: int = 3) -> Any:
            return x ** n, n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(inputs[0])
            ctx.n = inputs[1]

        @staticmethod
        def jvp(ctx: Any, dx: Any, nothing: Any) -> Any:
            x, = ctx.saved_tensors
            return ctx.n * x ** (ctx.n - 1) * dx, None

    ad = lib.autograd.forward_ad
    with ad.dual_level():
        out, n = Cube.apply(ad.make_dual(lib.tensor([2.0]), lib.tensor([5.0])))
        return [*ad.unpack_dual(out), n]


PROGRAMS = [order_of_hooks, several_outputs, edges, one_hook_for_many, packed, duals, tangents_of_a_function]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_as_in_pytorch(program: Any) -> None:
    assert plain(program(mg)) == plain(program(torch))
