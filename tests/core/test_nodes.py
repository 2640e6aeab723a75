"""Hooks on recorded operations, places in the graph, and what a sweep tells while it runs."""
from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.autograd import Function, graph
from tools import leaf, same


class Double(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class TwoAndThree(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, label: str) -> Any:
        return x * 2, label, x * 3

    @staticmethod
    def backward(ctx: Any, g2: Any, label: Any, g3: Any) -> Any:
        return g2 * 2 + g3 * 3, None


@pytest.mark.parametrize("double", [Double.apply, lambda x: x * 2], ids=["function", "operation"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_before_and_after_an_operation(double: Any, create_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    y = double(x)
    seen: list[Any] = []
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    y.grad_fn.register_prehook(lambda g: seen.append(g[0].tolist()))
    y.grad_fn.register_hook(lambda grads, g: seen.append((grads[0].tolist(), g[0].tolist())))
    y.grad_fn.register_hook(lambda grads, g: tuple(None if d is None else d + 1 for d in grads))
    y.sum().backward(create_graph=create_graph)
    assert seen == [[5, 5], ([10, 10], [5, 5])]
    same(x.grad, [11, 11])


def test_hooks_see_gradients_of_the_inputs_shapes_and_writes() -> None:
    x, seen = leaf(1.0), []
    y = mg.zeros(3)
    y[1:] = x + mg.ones(2)
    y.grad_fn.register_hook(lambda grads, g: seen.append((grads[0].tolist(), g[0].tolist())))
    (y * mg.tensor([5.0, 6.0, 7.0])).sum().backward()
    assert seen == [([13], [6, 7])]
    same(x.grad, [13])
    y = leaf(1.0, 2.0) * 1
    y += 5.0
    y.grad_fn.register_prehook(lambda g: seen.append("added"))
    y.sum().backward()
    assert seen[-1] == "added"


def test_hooks_on_a_function_with_several_outputs() -> None:
    x, seen = leaf(1.0), []
    a, label, b = TwoAndThree.apply(x, "label")
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr, label) == (0, 2, "label")
    b.grad_fn.register_prehook(lambda g: (seen.append(g), (g[0] * 10, None, g[2] * 100))[1])
    (a + b).sum().backward()
    assert seen[0][1] is None
    same(x.grad, [320])


def test_hooks_at_a_leaf_come_after_those_on_it() -> None:
    x, seen = leaf(1.0, 2.0), []
    end = (x * 1).grad_fn.next_functions[0][0]
    end.register_hook(lambda grads, g: seen.append(("added", grads, g[0].tolist(), x.grad.tolist())))
    end.register_prehook(lambda g: (g[0] + 1,))
    x.register_hook(lambda g: g * 10)
    handle = end.register_hook(lambda grads, g: seen.append("removed"))
    handle.remove()
    x.sum().backward()
    assert seen == [("added", (), [11, 11], [11, 11])]


def test_the_same_hook_twice_is_two_hooks() -> None:
    x, seen = leaf(1.0), []
    hook = lambda *g: seen.append(1)
    y = x * 2
    for register in (y.grad_fn.register_hook, y.grad_fn.register_prehook, x.register_post_accumulate_grad_hook):
        register(hook)
        register(hook).remove()
    y.backward()
    assert len(seen) == 3


def test_a_hook_that_removes_itself_does_not_hide_the_next() -> None:
    x, seen = leaf(1.0), []
    first = x.register_hook(lambda g: first.remove())
    x.register_hook(lambda g: seen.append(1))
    (x * 2).backward()
    assert seen == [1]


def test_what_a_hook_may_return() -> None:
    y = leaf(1.0, 2.0) * 2
    y.grad_fn.register_prehook(lambda g: (g[0], g[0]))
    with pytest.raises(TypeError, match="1 gradients, not 2"):
        y.sum().backward()
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(TypeError, match="return None"):
        (x * 2).backward()
    for answer, error in ((lambda g: g.sum(), RuntimeError), (lambda g: 1.0, TypeError)):
        y = leaf(1.0, 2.0) * 2
        y.register_hook(answer)
        with pytest.raises(error, match="hook"):
            y.sum().backward()


def test_retained_gradients_are_those_that_hooks_left() -> None:
    y = leaf(1.0) * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 7)
    y.sum().backward()
    same(y.grad, [7])


def test_hooks_after_accumulation_are_called_for_given_inputs() -> None:
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 3).backward(inputs=[x])
    assert seen == [3]


def test_hooks_die_with_the_graph() -> None:
    class Kept:
        pass

    kept = Kept()
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(lambda grads, g, kept=kept: None)
    seen = weakref.ref(kept)
    del kept
    gc.collect()
    assert seen() is not None
    del y
    gc.collect()
    assert seen() is None


def test_calling_a_node_and_reading_what_it_saved() -> None:
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    z = x * y
    first, second = z.grad_fn(mg.ones(2))
    same(first, [5, 7])
    same(second, [2, 3])
    assert z.grad_fn._saved_other.tolist() == [5, 7] and x.exp().grad_fn._saved_result is not None
    with pytest.raises(TypeError, match="expected 1"):
        z.grad_fn()
    z.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = z.grad_fn._saved_self


def test_edges_are_places_in_the_graph() -> None:
    x = leaf(2.0, 3.0)
    y = x * 1
    before = graph.get_gradient_edge(y)
    y *= 5
    old, new, same_old = mg.autograd.grad((y * y).sum(), (before, y, graph.GradientEdge(before.node, before.output_nr)), retain_graph=True)
    same(old, [100, 150])
    same(new, [20, 30])
    same(same_old, [100, 150])
    g, = mg.autograd.grad(before, x, mg.tensor([1.0, 10.0]), retain_graph=True)
    same(g, [1, 10])
    mg.autograd.backward(before, mg.ones(2), inputs=[graph.get_gradient_edge(x)])
    same(x.grad, [1, 1])
    unused = graph.get_gradient_edge(leaf(1.0) * 1)
    with pytest.raises(RuntimeError, match="materialize_grads"):
        mg.autograd.grad((y * 1).sum(), unused, materialize_grads=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        graph.get_gradient_edge(mg.ones(1))


def test_an_edge_in_a_loop_over_elements() -> None:
    """The sweep runs down such a loop in one go, but stops where somebody wants the adjoint."""
    x = mg.tensor([2.0, 3.0], requires_grad=True)
    y = mg.zeros(6)
    y[0] = x[0]
    y[1] = y[0] * 2
    edge = graph.get_gradient_edge(y)
    for i in range(2, 6):
        y[i] = y[i - 1] * x[1]
    by_edge, by_leaf = mg.autograd.grad(y.sum(), [edge, x])
    assert by_edge.tolist() == [1.0, 1 + 3 + 9 + 27 + 81, 0, 0, 0, 0]
    assert by_leaf.tolist() == [1 + 2 * 121, 4 * (1 + 2 * 3 + 3 * 9 + 4 * 27)]


def test_an_edge_of_one_of_several_outputs() -> None:
    x = leaf(1.0)
    a, _, b = TwoAndThree.apply(x, "")
    edge = graph.GradientEdge(b.grad_fn, b.output_nr)
    g, = mg.autograd.grad((a + 10 * b).sum(), edge)
    same(g, [10])


def test_one_hook_for_several_tensors() -> None:
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    handle = graph.register_multi_grad_hook((x, y, z), lambda grads: seen.append([None if g is None else g.item() for g in grads]))
    first = graph.register_multi_grad_hook((x, y), lambda g: seen.append(g.item()), mode="any")
    (x * y).backward()
    assert sorted(map(str, seen)) == ["1.0", "[2.0, 1.0, None]"] or sorted(map(str, seen)) == ["2.0", "[2.0, 1.0, None]"]
    first.remove()
    (x * y).backward(inputs=[y])
    assert seen[-1] == [None, 1, None] and len(seen) == 3
    handle.remove()
    (x * y).backward()
    assert len(seen) == 3
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((x,), print, mode="some")


def test_callbacks_at_the_end_of_a_sweep() -> None:
    engine = mg.autograd.Variable._execution_engine
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: engine.queue_callback(lambda: (seen.append(x.grad.item()), engine.queue_callback(lambda: seen.append("last")))[0]))
    (x * 4).backward()
    assert seen == [4, "last"]
    with pytest.raises(RuntimeError, match="during the backward pass"):
        engine.queue_callback(print)


def test_names_of_the_graph() -> None:
    x = leaf(1.0)
    assert all(isinstance(node, graph.Node) for node in ((x * 2).grad_fn, (x * 2).grad_fn.next_functions[0][0], x[:1].grad_fn))
    assert not isinstance(x, graph.Node) and issubclass(graph.Node, graph.Node)
    version = x._version
    graph.increment_version([x])
    assert x._version == version + 1
    with graph.allow_mutation_on_saved_tensors(), graph.save_on_cpu():
        y = x * 1
        z = (y * y).sum()
        y.zero_()
        z.backward()
    same(x.grad, [2])


# ------------------------------------------------------------------------------------------------- saved values packed by the user

HALVED = (lambda t: t * 2, lambda t: t / 2)


def test_saved_values_go_through_the_hooks_of_the_innermost_block() -> None:
    a, b, c = leaf(1.0, 2.0), leaf(1.0, 2.0), leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t * 3, lambda t: t):
        with graph.saved_tensors_hooks(lambda t: t * 5, lambda t: t):
            x = a * a
        y = b.exp()
    z = c * c
    assert x.grad_fn._saved_self.tolist() == [5, 10]
    (x + y + z).sum().backward()
    same(a.grad, [10, 20])
    same(b.grad, 3 * b.exp().detach())
    same(c.grad, [2, 4])


@pytest.mark.parametrize("n", [3, 100])
def test_packed_values_survive_writes_and_second_derivatives(n: int) -> None:
    x = mg.arange(1.0, n + 1).requires_grad_()
    kept: list[Any] = []
    with graph.saved_tensors_hooks(lambda t: (kept.append(t.clone()), len(kept) - 1)[1], lambda i: kept[i]):
        y = x * 1
        z = mg.zeros(n)
        z[1:] = y[1:] ** 3
        w = (z * y).sum()
        y.zero_()
        z += 1
    g, = mg.autograd.grad(w, x, create_graph=True)
    same(g[1:], 4 * x.detach()[1:] ** 3)
    same(mg.autograd.grad(g.sum(), x)[0][1:], 12 * x.detach()[1:] ** 2)
    assert kept


def test_what_a_function_saves_is_packed() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, nothing = ctx.saved_tensors
            assert nothing is None
            return 2 * x * g

    x = leaf(3.0)
    with graph.saved_tensors_hooks(lambda t: t * 7, lambda t: t):
        y = Square.apply(x)
    y.backward()
    same(x.grad, [42])


def test_numbers_are_not_packed() -> None:
    seen: list[Any] = []
    with graph.saved_tensors_hooks(lambda t: seen.append(t), lambda t: t):
        _ = leaf(1.0, 2.0) * 3
    assert seen == []


def test_mistakes_in_packing() -> None:
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t), pytest.raises(RuntimeError, match="in place"):
        x.exp()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x.exp()
    with pytest.raises(TypeError, match="Tensor, not int"):
        y.sum().backward()
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(*HALVED):
        pass
    with graph.saved_tensors_hooks(*HALVED), pytest.raises(RuntimeError, match="not now"), graph.disable_saved_tensors_hooks("not now"):
        pass


def test_the_graph_of_a_program_shows_views_and_ends_at_leaves():
    x = mg.ones(3, 2, requires_grad=True)
    z, leaf = x[0] * 2, (x * 1).grad_fn.next_functions[0][0]
    view = z.grad_fn.next_functions[0][0]
    assert view.name() == "SelectBackward0" and view.next_functions == ((leaf, 0),) and leaf.variable is x and isinstance(view, graph.Node)
    assert view == z.grad_fn.next_functions[0][0] and len({view, z.grad_fn.next_functions[0][0]}) == 1 and view != (x[1] * 2).grad_fn.next_functions[0][0]
    for whole in (x + 1, x + mg.ones(4, 3, 2), x.sum(), x @ mg.ones(2, 2)):  # broadcasting makes no view
        assert whole.grad_fn.next_functions[0][0] is leaf
    y = mg.zeros(3)
    y[1] = z[0] * 3
    found, waiting = set(), [(y.t() * 2).sum().grad_fn]
    while waiting:
        node = waiting.pop()
        found.add(node)
        waiting += [f for f, _ in node.next_functions if f is not None]
    assert leaf in found
