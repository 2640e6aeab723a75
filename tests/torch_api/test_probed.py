"""Names of PyTorch's inside that libraries import: they do what is said of them, or are not there."""
from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.torch_api.unbound import in_classes
from tools import leaf, same


def test_parameters_are_exchanged_for_a_block() -> None:
    from mutagrad.nn.utils.stateless import _reparametrize_module

    layer = mg.nn.BatchNorm1d(1)
    weight, given = layer.weight, {"weight": mg.tensor([3.0]), "running_mean": mg.zeros(1)}
    with _reparametrize_module(layer, given):
        assert layer.weight is given["weight"]
        layer.running_mean = mg.ones(1)
    assert layer.weight is weight
    same(given["running_mean"], [1])  # what the module has put in its place
    same(layer.running_mean, [0])


def test_limits_of_pythons_own_types() -> None:
    assert mg.finfo(float) == mg.finfo(mg.float64) and mg.finfo(complex).bits == 64 and mg.iinfo(int) == mg.iinfo(mg.int64)
    for wrong in (lambda: mg.finfo(int), lambda: mg.iinfo(float), lambda: mg.iinfo(bool), lambda: mg.finfo("float32")):
        with pytest.raises(TypeError):
            wrong()


def test_the_line_search_of_lbfgs() -> None:
    from mutagrad.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    x, d = mg.tensor([3.0, -2.0]), mg.tensor([-6.0, 4.0])

    def quadratic(x: Any, t: float, d: Any) -> Any:
        at = x + t * d
        return float((at * at).sum()), 2 * at

    loss, gradient = quadratic(x, 0.0, d)
    found, slope, t, evaluations = _strong_wolfe(quadratic, x, 1.0, d, loss, gradient, gradient.dot(d))
    assert found == pytest.approx(0, abs=1e-9) and t == pytest.approx(0.5) and evaluations == 2
    same(slope, [0, 0])
    assert _cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0) == pytest.approx(1.0)
    assert _cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0, bounds=(1.5, 2.0)) == 1.5


def test_unit_vectors_for_several_tensors() -> None:
    from mutagrad.autograd.functional import _construct_standard_basis_for

    first, second = _construct_standard_basis_for((mg.ones(2), mg.ones(1, dtype=mg.float64)), (2, 1))
    same(first, [[1, 0], [0, 1], [0, 0]])
    same(second, [[0], [0], [1]])
    assert second.dtype is mg.float64
    with pytest.raises(ValueError, match="as many sizes"):
        _construct_standard_basis_for((mg.ones(2),), ())


def test_what_jacobians_of_others_are_put_together_by() -> None:
    from mutagrad.autograd.functional import _as_tuple, _grad_postprocess, _tuple_postprocess

    x = mg.ones(2, requires_grad=True)
    assert _as_tuple(x)[0] is False and _as_tuple(x, "inputs", "f")[1][0] is x and _as_tuple((x, x)) == (True, (x, x))
    with pytest.raises(TypeError, match="The inputs given to f must be either a Tensor or a tuple of Tensors"):
        _as_tuple([x], "inputs", "f")
    rows = ((x * 2, x * 3), (x * 4, x * 5))
    assert _grad_postprocess(rows, create_graph=True) is rows
    found = _grad_postprocess(rows, create_graph=False)
    assert not found[1][0].requires_grad
    same(found[1][0], [4, 4])
    assert _tuple_postprocess(found, (True, True)) is found and _tuple_postprocess(found, False) is found[0]
    assert _tuple_postprocess(found, (True, False)) == (found[0][0], found[1][0])
    assert _tuple_postprocess(found, (False, False)) is found[0][0]


def test_weights_of_a_recurrent_layer_that_somebody_computes() -> None:
    layer, x = mg.nn.LSTM(2, 3), mg.ones(4, 1, 2)
    layer._flat_weights = [w * 0 for w in layer._flat_weights]
    same(layer(x)[0], np.zeros((4, 1, 3)))
    layer.weight_ih_l0 = mg.nn.Parameter(mg.ones(12, 2))
    assert layer._flat_weights[0] is layer.weight_ih_l0 and float(layer(x)[0].abs().sum()) > 0
    layer.double()  # all of its parameters are used again
    assert layer._flat_weights[1] is layer.weight_hh_l0


def test_numbers_of_reductions() -> None:
    from mutagrad.nn import _reduction

    assert [_reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    assert _reduction.legacy_get_string(None, None) == "mean" and _reduction.legacy_get_enum(False, True) == 2
    with pytest.raises(ValueError, match="not a valid value"):
        _reduction.get_enum("median")


def test_what_is_known_of_a_tensor_inside_vmap() -> None:
    from mutagrad._C import _functorch
    from mutagrad._vmap_internals import _vmap

    seen = []

    def look(x: Any) -> Any:
        seen.append((_functorch.is_batchedtensor(x), _functorch.maybe_get_bdim(x), _functorch.get_unwrapped(x).shape))
        return x.sum()

    same(_vmap(look)(mg.ones(2, 3)), [3, 3])
    assert seen == [(True, 0, (2, 3))]
    plain = mg.ones(2)
    assert not _functorch.is_batchedtensor(plain) and _functorch.maybe_get_bdim(plain) == -1
    assert not _functorch.is_gradtrackingtensor(plain)
    with pytest.raises(RuntimeError, match="No wrappers"):
        _functorch.get_unwrapped(plain)


def test_small_names() -> None:
    assert mg._C._LinAlgError is mg.linalg.LinAlgError
    assert mg.backends.cpu.get_cpu_capability().isupper()
    x = mg.ones(2)
    assert x._cdata == x._cdata != x[:]._cdata
    assert mg._standard_gamma(mg.full((3,), 2.0)).shape == (3,)
    assert "inductor" not in mg._dynamo.list_backends()
    with pytest.raises(NotImplementedError):
        mg.TensorType.get()


def test_explain_tells_what_was_compiled() -> None:
    pytest.importorskip("jax", reason="pip install 'mutagrad[xla]'")
    with mg.as_torch() as torch:
        told = torch._dynamo.explain(lambda x, y: (x * y).sin())(mg.ones(2), mg.ones(2))
        assert (told.graph_count, told.graph_break_count, told.break_reasons) == (1, 0, []) and told.op_count > 0
        told = torch._dynamo.explain(lambda x: x * 2 if x.sum() > 0 else x, mg.ones(2))
    assert (told.graph_count, told.graph_break_count) == (0, 1) and "test_probed.py" in told.break_reasons[0]
    with pytest.raises(ValueError, match="wrong"):
        mg._dynamo.explain(wrong)(mg.ones(2))
    with pytest.raises(TypeError):
        mg._dynamo.explain(3)


def wrong(x: Any) -> Any:
    raise ValueError("wrong")


def test_a_gradient_that_no_sweep_sets_warns() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    for nothing in (y, y[:1], x[:1]):
        with pytest.warns(UserWarning, match="not a leaf Tensor"):
            assert nothing.grad is None
    assert x.grad is None and mg.ones(1).grad is None  # no warning
    y.retain_grad()
    assert y.grad is None
    y.add_(1)
    assert y.grad is None
    (y * y).sum().backward()
    same(y.grad, [6, 10])
    x[0] = 3.0  # a leaf that was written still reports
    x.grad = None
    assert x.grad is None


# --------------------------------------------------------------------------------------------------- out= of another shape

def resized(call: Any) -> Any:
    with pytest.warns(UserWarning, match="was resized"):
        return call()


@pytest.mark.parametrize("function", [lambda x, out: mg.add(x, 1, out=out), lambda x, out: mg.cat([x + 1], out=out),
                                      lambda x, out: mg.round(x + 1, decimals=0, out=out)], ids=["direct", "written", "setting"])
def test_out_of_another_shape_is_resized(function: Any) -> None:
    for out in (mg.zeros(2), mg.zeros(7), mg.zeros(2, 2).t(), mg.zeros(9)[4:6]):
        same(resized(lambda: function(mg.arange(3.0), out)), [1, 2, 3])
        same(out, [1, 2, 3])
    same(function(mg.arange(3.0), mg.zeros(0)), [1, 2, 3])  # no warning where there are no elements


def test_a_smaller_result_goes_into_the_same_memory() -> None:
    out = mg.zeros(2, 3)
    row = out[0]
    resized(lambda: mg.add(mg.ones(2), 1, out=out))
    assert out.shape == (2,)
    same(row, [2, 2, 0])


def test_out_may_be_an_operands_memory() -> None:
    x = mg.arange(6.0)
    resized(lambda: mg.mul(x[::2], x[3:], out=x[:2]))
    same(x, [0, 8, 20, 3, 4, 5])


def test_gradients_through_an_out_that_is_resized() -> None:
    x, out = leaf(1.0, 2.0, 3.0), mg.ones(40, 2)
    saved = leaf(5.0)
    before = (out * saved).sum()  # saves out by reference
    resized(lambda: mg.mul(x, x, out=out))
    (out * out).sum().backward()
    same(x.grad, [4, 32, 108])
    before.backward()
    same(saved.grad, [80])


def test_out_is_as_it_was_where_it_cannot_be_resized() -> None:
    x, needed = mg.ones(3), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="shape"):
        mg.add(x, 1, out=needed)
    whole = mg.zeros(2, dtype=mg.int64)
    with pytest.raises(RuntimeError, match="float"):
        mg.add(x, 0.5, out=whole)
    with pytest.raises(RuntimeError, match="broadcast"):
        mg.add(x, mg.ones(4), out=whole)
    with pytest.raises(RuntimeError, match="in place"):
        mg.ones(3).add_(mg.ones(2, 3))
    assert needed.shape == whole.shape == (2,)
    same(whole, [0, 0])


def test_a_storage_may_be_emptied_and_filled_again() -> None:
    x, factor = mg.ones(40), leaf(2.0)
    y = (x * factor).sum()
    memory = x.untyped_storage()
    assert memory.resize_(0) is memory and memory.size() == x.untyped_storage().nbytes() == 0 and x.shape == (40,)
    assert x.storage().resize_(40).size() == 40 and x.untyped_storage().size() == 160
    x.copy_(mg.zeros(40))
    y.backward()
    same(factor.grad, [40])  # what was saved is as it was
    with pytest.raises(NotImplementedError, match="200 bytes"):
        memory.resize_(200)
    with pytest.raises(ValueError, match="-1"):
        memory.resize_(-1)


def test_a_lazy_parameter_knows_its_device() -> None:
    assert mg.nn.LazyLinear(2).weight.device == mg.device("cpu")


# ------------------------------------------------------------------------------------------- functions as class attributes

with mg.as_torch():
    import torch

    class Holder:
        sine = torch.sin
        if torch.float32 is not None:
            product: Any = torch.mul
        einsum = torch.einsum  # in PyTorch a function of Python's


def test_a_function_as_attribute_of_a_class_is_no_method() -> None:
    held = Holder()
    same(held.sine(mg.zeros(2)), [0, 0])
    same(held.product(mg.ones(2), 3), [3, 3])
    same(Holder.sine(mg.zeros(2)), [0, 0])
    with pytest.raises(TypeError):
        held.einsum("i->", mg.ones(2))
    assert torch.sin == mg.sin and mg.sin == torch.sin and {torch.sin: 1}[mg.sin] == 1
    assert torch.sin.__name__ == "sin" and copy.deepcopy(torch.sin) == mg.sin
    assert torch.cos is mg.cos  # which no class holds: calls of it cost what they did


def test_what_classes_hold_is_read_from_their_source() -> None:
    source = b"""
class A(
    Base,
):
    f = torch.sin
    if new:
        g: Any = torch.nn.functional.gelu  # a comment
    h = staticmethod(torch.tan)
    def method(self):
        k = torch.cos
    m = exp
n = torch.log
"""
    assert in_classes(source, lambda name: True) == {"sin", "gelu", "exp"}


def test_a_module_whose_classes_hold_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "held_by_classes.py").write_text("import torch\nclass A:\n    act = torch.sigmoid\nfound = A().act(torch.zeros(1))\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with mg.as_torch():
        import held_by_classes
    same(held_by_classes.found, [0.5])


def test_they_are_asked_for_by_functions_that_take_over() -> None:
    code = """if True:
    import mutagrad as mg
    with mg.as_torch():
        import torch
        torch.sin
        from mutagrad.torch_api.import_hook import watch_for
        watch_for(b"import torch\\nclass A:\\n    f = torch.sin\\n")
        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return {torch.sin: "mine"}.get(func)
        print(torch.sin(torch.zeros(1).as_subclass(Mine)), type(torch.sin).__name__)
    """
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["mine", "Unbound"]


def test_what_is_known_of_the_machine() -> None:
    from mutagrad.utils import collect_env

    assert collect_env.run("echo it; exit 3") == (3, "it", "") and collect_env.run(["no-such-command"])[0] == 127
    assert ":" in collect_env.get_cpu_info(collect_env.run) and collect_env.get_gpu_info(collect_env.run) is None
    assert collect_env.get_gcc_version(lambda command: (0, "gcc (Any) 13.2.0\nmore", "")) == "(Any) 13.2.0"
    assert collect_env.get_gcc_version(lambda command: (1, "", "")) is None is collect_env.get_nvidia_driver_version(collect_env.run)
    assert "Architecture:" in collect_env.get_cpu_info(lambda command: (1, "", ""))


def test_names_that_libraries_import_at_their_top() -> None:
    from mutagrad.nn.parameter import UninitializedTensorMixin
    from mutagrad.utils.data.workers import _generate_state

    assert isinstance(mg.nn.LazyLinear(1).weight, UninitializedTensorMixin)
    assert _generate_state(12345678901234, 3) == [2677634501, 810098766, 226270600, 4115140591]  # as PyTorch's
    assert mg._C.DispatchKey.AutocastXPU != mg._C.DispatchKey.SparseCsrCPU
    mg.onnx.register_custom_op_symbolic("a::b", abs, 11)
    with pytest.raises(NotImplementedError):
        mg.onnx.export(mg.nn.Identity(), ())


def test_tensors_of_a_module_are_swapped_by_name() -> None:
    from mutagrad.nn.utils._named_member_accessor import swap_tensor

    layer = mg.nn.Linear(1, 1)
    weight, new = layer.weight, mg.ones(1, 1)
    assert swap_tensor(layer, "weight", new) is weight and layer.weight is new
    assert swap_tensor(layer, "other", new, allow_missing=True) is None and layer.other is new
    with pytest.raises(AttributeError, match="nothing"):
        swap_tensor(layer, "nothing", new)
    with pytest.raises(TypeError, match="not a tensor"):
        swap_tensor(layer, "in_features", new)


def test_blocks_that_are_decorators() -> None:
    from mutagrad.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

    class Noted(_DecoratorContextManager):
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            entered.append(self.name)

        def __exit__(self, *error: object) -> None:
            entered.append(f"no {self.name}")

        def clone(self) -> Any:
            return Noted(self.name)

    class Plain(_NoParamDecoratorContextManager):
        __enter__, __exit__ = Noted.__enter__, Noted.__exit__
        name = "plain"

    entered: list[str] = []
    assert Noted("a")(abs)(-3) == 3 == Plain(abs)(-3) == Plain()(abs)(-3)
    assert entered == ["a", "no a", *["plain", "no plain"] * 2]


def test_devices_by_name() -> None:
    from mutagrad._utils import _get_available_device_type, _get_device_module

    assert _get_available_device_type() is None and _get_device_module("cpu") is mg.cpu
    with pytest.raises(RuntimeError, match="no device"):
        _get_device_module("abacus")


def test_containers_of_pytorchs_own_modules() -> None:
    from mutagrad.utils import _pytree

    largest = mg.ones(3).max(0)
    assert _pytree.is_structseq(largest) and _pytree.is_structseq_instance(largest) and _pytree.is_structseq_class(type(largest))
    assert not _pytree.is_structseq((1, 2)) and not _pytree.is_structseq_instance(type(largest))
    assert _pytree._list_flatten([1, 2]) == ([1, 2], None) and _pytree._list_unflatten([1], None) == [1]
    assert _pytree._list_flatten_with_keys([5])[0] == [(_pytree.SequenceKey(0), 5)] and list in _pytree.BUILTIN_TYPES


def test_marks_for_the_compiler_of_scripts() -> None:
    from mutagrad.jit import BroadcastingList2, _copy_to_script_wrapper, _overload, boolean_dispatch

    from mutagrad.base.torch_paths import our_path

    assert our_path("torch._jit_internal") == "mutagrad.jit" and BroadcastingList2[int]
    assert _copy_to_script_wrapper(leaf) is _overload(leaf) is leaf
    pool = boolean_dispatch("both", 1, False, lambda x, both: (x, x), lambda x, both=False: x, __name__, "pool")
    assert pool(3) == pool(3, False) == 3 and pool(3, True) == pool(3, both=True) == (3, 3)
    assert pool.__name__ == "pool" and pool.__module__ == __name__
