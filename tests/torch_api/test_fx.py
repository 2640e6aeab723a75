"""Graphs of calls: traced, written by hand, rewritten, and run."""
from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import fx
from tools import leaf, same

nn = mg.nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
        self.scale = nn.Parameter(mg.full((3,), 2.0))
        self.register_buffer("shift", mg.ones(3))

    def forward(self, x: Any, factor: float = 1.0) -> Any:
        return self.rest(self.first(x)) * self.scale * factor + self.shift + mg.ones(3)


def described(graph: fx.Graph) -> list[str]:
    return [f"{node.op} {node.name}" for node in graph.nodes]


def test_a_function_is_traced_as_pytorch_traces_it() -> None:
    def function(x: Any, y: Any) -> Any:
        x = x + y
        z = mg.sin(x) + 1 - y.sum(dim=0)
        a, b = z.split(1)
        return 2 * z[0].shape[0], a, -b

    traced = fx.symbolic_trace(function)
    assert described(traced.graph) == [  # the names that PyTorch 2.13 gives
        "placeholder x", "placeholder y", "call_function add", "call_function sin", "call_function add_1", "call_method sum_1",
        "call_function sub", "call_method split", "call_function getitem", "call_function getitem_1", "call_function getitem_2",
        "call_function getattr_1", "call_function getitem_3", "call_function mul", "call_function neg", "output output"]
    x, y = mg.rand(2, 2), mg.rand(2, 2)
    for found, expected in zip(traced(x, y), function(x, y)):
        same(mg.as_tensor(found), mg.as_tensor(expected))
    assert "operator.add(x, y)" in traced.code and "x.split" not in str(traced.graph)


def test_a_module_is_traced_and_shares_its_parameters() -> None:
    module = Net()
    traced = fx.symbolic_trace(module)
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["first", "rest.0", "rest.1"]
    assert [n.target for n in traced.graph.nodes if n.op == "get_attr"] == ["scale", "shift", "_tensor_constant0"]
    x = mg.rand(4, 2)
    same(traced(x, factor=3.0), module(x, 3.0).detach())
    traced(x).sum().backward()
    assert module.scale.grad is not None and dict(traced.named_parameters()).keys() == dict(module.named_parameters()).keys()
    for other in (copy.deepcopy(traced), fx.Transformer(traced).transform()):
        same(other(x), traced(x).detach())
    assert not isinstance(module(x), fx.Proxy)  # modules are called as ever


def test_graph_modules_are_pickled() -> None:
    traced = fx.symbolic_trace(Net())
    again = pickle.loads(pickle.dumps(traced))
    x = mg.rand(1, 2)
    same(again(x), traced(x).detach())
    assert described(again.graph) == described(traced.graph)


def test_writes_are_steps_too() -> None:
    def function(x: Any) -> Any:
        y = x * 1
        y[0] = 5.0
        y += 1
        return y

    traced = fx.symbolic_trace(function)
    assert not traced.graph.eliminate_dead_code()
    x = leaf(1.0, 2.0)
    same(traced(x), [6, 3])
    traced(x).sum().backward()
    same(x.grad, [0, 1])


def test_a_graph_written_by_hand() -> None:
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x = fx.Proxy(graph.placeholder("x"), tracer)
    w = fx.Proxy(graph.get_attr("weight"), tracer)
    graph.output((mg.einsum("ij,jk->ik", x, w).relu()).node)
    graph.lint()
    made = fx.GraphModule({"weight": mg.eye(2)}, graph, "Product")
    same(made(mg.tensor([[1.0, -2.0]])), [[1, 0]])
    assert type(made).__name__ == "Product" and isinstance(made, fx.GraphModule)
    with pytest.raises(ValueError, match="weight"):
        fx.GraphModule({}, graph)


def test_a_graph_is_rewritten() -> None:
    traced = fx.symbolic_trace(lambda x: mg.sin(x) + 1)
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target == mg.sin:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(mg.cos, node.args)
            with pytest.raises(ValueError, match="is used by"):
                traced.graph.erase_node(node)
            assert node.replace_all_uses_with(new)[0].target is operator.add
            assert traced.graph.eliminate_dead_code()
    traced.recompile()
    same(traced(mg.zeros(1)), [2])
    assert "cos" in traced.code and "sin" not in traced.code


def test_an_interpreter_may_do_something_else() -> None:
    class Doubled(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(mg.mul if target is operator.add else target, args, kwargs)

    same(Doubled(fx.symbolic_trace(lambda x: x + 3)).run(mg.ones(2)), [3, 3])


def helper(x: Any) -> Any:
    return x + 1 if float(x.sum()) > 0 else x - 1


fx.wrap("helper")


def test_a_function_that_is_one_step() -> None:
    traced = fx.symbolic_trace(lambda x: helper(x) * 2)
    assert described(traced.graph)[1] == "call_function helper"
    same(traced(mg.ones(1)), [4])
    same(helper(-mg.ones(1)), [-2])


def test_an_assertion_is_a_step() -> None:
    def function(x: Any) -> Any:
        mg._assert(x.shape[0] == 2, "two are wanted")
        return x + 1

    traced = fx.symbolic_trace(function)
    assert not traced.graph.eliminate_dead_code()
    same(traced(mg.zeros(2)), [1, 1])
    with pytest.raises(AssertionError, match="two are wanted"):
        traced(mg.zeros(3))


def test_what_depends_on_values_is_not_traced() -> None:
    def condition(x: Any) -> Any:
        return x if x > 0 else -x

    for function in (condition, list, lambda x: len(x)):
        with pytest.raises(ValueError, match="trac"):
            fx.symbolic_trace(function)
    assert nn.Linear(1, 1)(mg.ones(1)).shape == (1,)


def test_paths_of_pytorch() -> None:
    with mg.as_torch():
        import torch.fx.graph_module
        from torch.fx.node import Argument, Node, Target, map_arg
        from torch.fx.proxy import GraphAppendingTracer

        assert torch.fx.graph_module.GraphModule is fx.GraphModule and torch.fx.node.Node is Node
        assert torch.functional.einsum == torch.einsum
        assert None not in (Argument, Target, map_arg, GraphAppendingTracer)
        with pytest.raises(ImportError):
            import torch.fx.passes.shape_prop


def test_a_tracer_of_a_librarys_own_puts_its_calls_in_the_places_of_modules() -> None:
    import mutagrad.fx._symbolic_trace as st

    class Summed:  # no module, but called like one
        def __call__(self, x: Any) -> Any:
            raise AssertionError("it is a step")

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.factor = nn.Linear(2, 2), nn.Parameter(mg.ones(2))

        def forward(self, x: Any, *, power: int = 2) -> Any:
            return summed(self.inner(x) * self.factor ** power)

    class Tracer(fx.Tracer):
        @st.compatibility(is_backward_compatible=True)
        def trace(self, root: Any, concrete_args: Any = None) -> fx.Graph:
            self.root, self.graph, parameters = root, fx.Graph(tracer_cls=type(self)), {}
            function, args = self.create_args_for_root(type(root).forward, True, concrete_args)

            @st.functools.wraps(st._orig_module_getattr)
            def get(module: Any, name: str) -> Any:
                return self.getattr(name, st._orig_module_getattr(module, name), parameters)

            @st.functools.wraps(st._orig_module_call)
            def call(module: Any, *args: Any, **kwargs: Any) -> Any:
                return self.call_module(module, lambda *a: st._orig_module_call(module, *a), args, kwargs)

            with st._Patcher() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", get, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                patcher.patch_method(Summed, "__call__", lambda self, x: x.sum(), deduplicate=False)
                patcher.patch_method(Summed, "__call__", get)  # once is enough
                st._patch_wrapped_functions(patcher)
                st._autowrap_check(patcher, type(root).forward.__globals__, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(function(*args)),), {})
            return self.graph

    summed, outer = Summed(), Outer()
    before = dict(vars(nn.Module)), vars(Summed)["__call__"]
    graph = Tracer().trace(outer)
    assert described(graph) == ["placeholder x", "placeholder power", "call_module inner", "get_attr factor", "call_function pow_1",
                                "call_function mul", "call_method sum_1", "output output"]
    assert (dict(vars(nn.Module)), vars(Summed)["__call__"]) == before
    x = mg.rand(3, 2)
    same(fx.GraphModule(outer, graph)(x), (outer.inner(x) * outer.factor ** 2).sum().detach())
    assert not isinstance(x, st.ScriptObject)


def test_functions_of_math_are_steps() -> None:
    graph = fx.Tracer().trace(lambda x: math.sqrt(x.sum()))
    assert described(graph) == ["placeholder x", "call_method sum_1", "call_function sqrt", "output output"]
    assert math.sqrt(4.0) == 2.0 and not isinstance(math.sqrt(4.0), fx.Proxy)


def test_a_place_for_new_nodes_holds_from_the_call_on() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.inserting_after(x)
    for function in (mg.sin, mg.cos):
        graph.call_function(function, (x,))
    with graph.inserting_before(x):
        graph.placeholder("y")
    graph.call_function(mg.tan, (x,))
    assert [node.name for node in graph.nodes] == ["y", "x", "tan", "cos", "sin"]  # as PyTorch 2.13 has them
