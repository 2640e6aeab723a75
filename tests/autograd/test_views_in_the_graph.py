"""What a program that walks the graph meets where PyTorch has nodes of views: names, the same objects, hooks, places."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.autograd import Function, graph
from tools import leaf, same


def names(tensor: Any) -> str:
    """The nodes from a tensor to the end of the graph along first inputs, each without Backward0."""
    found, node = [], tensor.grad_fn
    while node is not None:
        found.append(type(node).__name__.replace("Backward0", ""))
        assert node.name().split("::")[-1] == type(node).__name__ and isinstance(node, graph.Node)
        node = node.next_functions[0][0] if node.next_functions else None
    return " ".join(found)


def computed() -> Any:
    return mg.arange(24.0).reshape(2, 3, 4).requires_grad_() * 2


# A view, and what PyTorch 2.13 tells of it, before Mul and AccumulateGrad.
AS_PYTORCH: dict[str, Callable[[Any], Any]] = {
    "Select": lambda y: y[0], "Slice": lambda y: y[:, 1:], "Select Select": lambda y: y[0, :, 1],
    "Select Select Select": lambda y: y[0][1][2], "Slice Slice": lambda y: y[1:, 1:], "View Slice": lambda y: y[..., 0:1].view(2, 3),
    "Expand": lambda y: y.expand(5, 2, 3, 4), "Slice View": lambda y: y.view(-1)[3:], "Unfold": lambda y: y.unfold(2, 2, 1),
    "View Slice View": lambda y: y.view(-1)[3:7].view(2, 2), "Transpose Select": lambda y: y[0].transpose(0, 1),
    "Permute Slice": lambda y: y[:, 1:].permute(2, 0, 1)}
READ = [name for name in AS_PYTORCH if "Select" in name and "Transpose" not in name or name in ("Slice", "Slice View", "Expand")]


@pytest.mark.parametrize("expected", AS_PYTORCH)
def test_views_of_results_and_of_leaves_have_pytorchs_names(expected: str) -> None:
    y = computed()
    assert names(AS_PYTORCH[expected](y)) == f"{expected} Mul AccumulateGrad"
    leaf = mg.zeros(2, 3, 4, requires_grad=True)
    assert names(AS_PYTORCH[expected](leaf)) == f"{expected} AccumulateGrad"


@pytest.mark.parametrize("expected", READ)
def test_so_have_views_that_an_operation_read(expected: str) -> None:
    assert names(AS_PYTORCH[expected](computed()) * 3) == f"Mul {expected} Mul AccumulateGrad"


@pytest.mark.oracle
@pytest.mark.parametrize("expected", AS_PYTORCH)
def test_these_are_pytorchs_names(expected: str) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    y = torch.arange(24.0).reshape(2, 3, 4).requires_grad_() * 2
    found, node = [], AS_PYTORCH[expected](y).grad_fn
    while node.next_functions:
        found.append(node.name().replace("Backward0", ""))
        node = node.next_functions[0][0]
    assert " ".join(found) == f"{expected} Mul"


def test_what_is_all_that_an_operation_wrote_is_told_by_the_operation() -> None:
    y = computed()
    assert names(y.transpose(0, 1) * 2) == names(y * 2) == "Mul Mul AccumulateGrad"
    assert {names(y), names(y.view(6, 4)), names(y.permute(2, 0, 1)), names(y[None])} == {"Mul AccumulateGrad"}
    assert [names(part) for part in mg.linalg.qr(y)] == ["Qr Mul AccumulateGrad"] * 2
    assert names(mg.linalg.svd(y)[1][0]) == "Slice Svd Mul AccumulateGrad"
    assert names(y[mg.tensor([0, 1])]) == "Index Mul AccumulateGrad" and names(y.view(6, 4)[[0]]) == "Index View Mul AccumulateGrad"
    z = mg.zeros(4)
    part = z[1:]
    part.add_(leaf(1.0, 2.0, 3.0))
    assert part.grad_fn is z.grad_fn and names(z[0]).startswith("Select Add")
    assert names(y[:0]) and names(mg.complex(y, y).real) == "ViewAsReal Complex Mul AccumulateGrad"


def test_the_end_of_the_graph_is_reached_through_views_of_parameters() -> None:
    p = mg.nn.Parameter(mg.ones(3))
    seen: list[Any] = []
    for view in (p.expand_as(p), p.view_as(p), p[:], p.expand(2, 3)):
        end = view.grad_fn.next_functions[0][0]
        assert end.variable is p and end.next_functions == ()
    handle = end.register_hook(lambda *grads: seen.append(grads))
    (p * 2).sum().backward()
    assert len(seen) == 1
    handle.remove()


def test_who_walks_meets_the_same_objects_as_long_as_it_has_them() -> None:
    y = computed()
    z = y[0] + y[0] * y[1]
    first, second = (node for node, _ in z.grad_fn.next_functions)
    assert first is y[0].grad_fn is z.grad_fn.next_functions[0][0] and first.next_functions[0][0] is y.grad_fn
    assert second.next_functions[0][0] is first and second.next_functions[1][0] is not first
    between = y[0, 1].grad_fn.next_functions[0][0]
    assert between is y[0, 1].grad_fn.next_functions[0][0] and between.next_functions[0][0] is y.grad_fn
    gone = [weakref.ref(v) for v in (first, y.grad_fn)]
    del y, z, first, second, between
    gc.collect()
    assert [v() for v in gone] == [None, None]


def test_printing_a_graph_with_its_saved_values() -> None:
    """As torchviz does."""
    layer, x = mg.nn.Linear(4, 2), mg.ones(3, 4, requires_grad=True)
    waiting, seen, saved, variables = [layer(x[1:]).tanh()[:, 0].sum().grad_fn], set(), set(), []
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        saved |= {(node.name(), name) for name in dir(node) if name.startswith("_saved_") and getattr(node, name) is not None}
        if hasattr(node, "variable"):
            variables.append(node.variable)
        waiting += [before for before, _ in node.next_functions if before is not None]
    assert ("TanhBackward0", "_saved_result") in saved and ("SumBackward0", "_saved_self") not in saved
    assert len(variables) == 3 and any(v is layer.weight for v in variables) and any(v is layer.bias for v in variables)


def test_results_of_a_function_are_told_by_number() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x * 2)[1:], x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return mg.cat([g[:1] * 0, g * 2]) + h

    rows, total = Two.apply(leaf(1.0, 2.0, 3.0))
    assert rows.grad_fn.name() == total.grad_fn.name() == "TwoBackward" and total.grad_fn is rows.grad_fn
    assert rows[0].grad_fn.next_functions == ((rows.grad_fn, 0),) and (total * 2).grad_fn.next_functions[0] == (total.grad_fn, 1)


def test_a_hook_before_a_view_sees_and_changes_what_reached_it() -> None:
    x, seen = leaf(1.0, 2.0, 3.0), []
    view = (x * 2)[1:]
    handle = view.grad_fn.register_prehook(lambda grads: seen.append(grads[0].clone()))
    (view * 3).sum().backward()
    handle.remove()
    same(seen[0], [3, 3])
    x.grad = None
    z = (x * 2)[1:] * 3
    z.grad_fn.next_functions[0][0].register_prehook(lambda grads: (grads[0] * 10,))
    z.sum().backward()
    same(x.grad, [0, 60, 60])
    y = x[1:]
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    x.grad = None
    (y * 2).sum().backward()
    same(x.grad, [0, 20, 20])


def test_a_view_is_a_place_in_the_graph() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    z = y[1:] ** 2
    node = z.grad_fn.next_functions[0][0]
    g, = mg.autograd.grad(z.sum(), graph.GradientEdge(node, 0), create_graph=True)
    same(g, [8, 12])
    same(mg.autograd.grad(g.sum(), x)[0], [0, 4, 4])
    assert node._input_metadata[0].shape == (2,) and node._input_metadata[0].dtype is x.dtype and node.metadata == {}
    edge = graph.get_gradient_edge(y[0])
    assert edge.node is y[0].grad_fn and edge.output_nr == 0


def test_what_a_view_cannot_tell_is_refused() -> None:
    y = computed()
    for ask in (lambda: y[0].grad_fn.register_hook(print), lambda: y[0].grad_fn(mg.ones(3, 4)),
                lambda: y[0, 1].grad_fn.next_functions[0][0].register_prehook(print), lambda: y.expand(2, 2, 3, 4).grad_fn._input_metadata,
                lambda: y.unfold(2, 2, 1).grad_fn.register_prehook(print),
                lambda: mg.autograd.grad(y[0, 1].sum(), graph.GradientEdge(y[0, 1].grad_fn.next_functions[0][0], 0))):
        with pytest.raises(NotImplementedError, match="stands for a view"):
            ask()


def test_a_view_in_another_shape_remembers_only_its_own_memory() -> None:
    x = mg.zeros(2, 6, requires_grad=True)
    view = (x * 2)[:, :1].view(2)
    assert names(view) == "View Slice Mul AccumulateGrad"
    view.detach_()
    view.add_((x * 3)[:, 0])
    assert names(view) == "Add" and names(view[:1]) == "Slice Select Add"
    rows = (x * 2)[1].view(2, 3)
    rows.t_()
    assert names(rows) == "View Select Mul AccumulateGrad" and rows.shape == (3, 2)


def test_graphs_inside_transformations_can_be_walked() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(str((x * 2)[0].grad_fn))
        return (x * 2)[0].sum()

    mg.func.vmap(mg.func.grad(f))(mg.ones(3, 2, 2))
    assert seen
