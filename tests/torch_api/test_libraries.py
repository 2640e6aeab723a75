"""What libraries written for PyTorch ask of it beyond its documented operations."""
from __future__ import annotations

import gc
import hashlib
import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.torch_api.futures import Future, collect_all, wait_all
from tools import leaf, same


class Scaled(mg.autograd.Function):
    """A gradient that has not been summed to the shape of the smaller input."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any) -> Any:
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, factor = ctx.saved_tensors
        return g * factor, g * x


def test_a_gradient_is_summed_to_the_shape_of_its_input() -> None:
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    scalar, row = mg.tensor(2.0, requires_grad=True), leaf(1.0, 2.0)
    Scaled.apply(x, scalar).sum().backward()
    Scaled.apply(x, row).sum().backward()
    same(scalar.grad, 10)
    same(row.grad, [4, 6])
    with pytest.raises(RuntimeError, match="invalid gradient"):
        Bad.apply(row).sum().backward()


class Bad(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return mg.ones(3)


def test_a_computed_tensor_keeps_its_history_when_its_data_is_set() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.data = mg.tensor([5.0, 7.0])
    (y * y).sum().backward()
    same(x.grad, [20, 28])
    for new in (mg.ones(3), mg.ones(4)[::2]):
        y = x * 2
        with pytest.raises(NotImplementedError, match="data"):
            y.data = new


def test_a_computed_view_keeps_its_history_when_its_data_is_set() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    view, memory = y[1:], mg.tensor([5.0, 6.0, 7.0, 8.0])
    view.data = memory[:2]
    (view * view).sum().backward()
    same(x.grad, [0, 20, 24])
    same(y, [2, 4, 6])  # what it was a view of has not changed
    view[0] = 1.0
    same(memory, [1, 6, 7, 8])
    x.grad, row = None, (x * 3)[:2]
    row.data = mg.tensor([1.0, 2.0])
    row *= row
    row.sum().backward()
    same(x.grad, [6, 12, 0])
    x.grad, y = None, x * 2
    with pytest.raises(RuntimeError, match="set_"):
        y.set_(mg.ones(3))
    with mg.no_grad():
        assert y.set_(mg.tensor([5.0, 6.0, 7.0])) is y
    (y * y).sum().backward()
    same(x.grad, [20, 24, 28])


def test_gradients_for_many_rows_at_once() -> None:
    x, unused = leaf(1.0, 2.0), leaf(1.0)
    y = x ** 3
    found, nothing = mg.autograd.grad(y, (x, unused), mg.eye(2), is_grads_batched=True, create_graph=True, allow_unused=True)
    assert nothing is None
    same(found, [[3, 0], [0, 12]])
    same(mg.autograd.grad(found.sum(), x)[0], [6, 12])
    same(mg.autograd.grad(x ** 2, x, mg.eye(2), is_grads_batched=True)[0], [[2, 0], [0, 4]])
    for rows in (None, mg.tensor(1.0), [mg.ones(0, 2)]):
        with pytest.raises(RuntimeError, match="first dimension"):
            mg.autograd.grad(x ** 2, x, rows, is_grads_batched=True)


def test_subclasses_and_old_constructors() -> None:
    class Point(mg.nn.Parameter):
        def __new__(cls, data: Any) -> Any:
            return mg.Tensor._make_subclass(cls, data, True)

    x = mg.ones(2)
    p = Point(x)
    assert type(p) is Point and p.requires_grad and p.is_leaf and p.data_ptr() == x.data_ptr()
    half = mg.ones(1, dtype=mg.float16)
    assert half.new(2, 3).shape == (2, 3) and half.new().numel() == 0 and half.new(mg.Size([4])).shape == (4,)
    same(half.new([1, 2]), [1, 2])
    assert half.new([1, 2]).dtype is mg.float16 and half.is_cpu and not half.is_mps
    assert mg.ones(2).view(dtype=mg.int32).dtype is mg.int32 and mg.ones(4).view(size=(2, 2)).shape == (2, 2)


def test_a_module_list_may_have_gaps() -> None:
    modules = mg.nn.ModuleList([None, mg.nn.Linear(1, 1)])
    assert modules[0] is None and len(list(modules.parameters())) == 2
    with pytest.raises(TypeError):
        mg.nn.ModuleList([3])


# ------------------------------------------------------------------------------------------------------ memory from elsewhere

def test_memory_is_shared_with_other_libraries() -> None:
    array = np.zeros(2, np.float32)
    mg.from_dlpack(array).add_(1)
    mg.asarray(array).add_(1)
    assert array.tolist() == [2, 2]
    mg.from_dlpack(array, copy=True).zero_()
    mg.asarray(array, copy=True).zero_()
    assert array.tolist() == [2, 2]
    with pytest.raises(TypeError, match="__dlpack__"):
        mg.from_dlpack([1])
    assert np.from_dlpack(mg.ones(2)).tolist() == [1, 1]


class FirstForm:
    """An array of a library that knows only the first form of DLPack, which takes no settings."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, *, stream: object = None) -> object:
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("take", [mg.from_dlpack, mg.array_api.from_dlpack])
def test_memory_of_libraries_that_speak_the_first_dlpack_is_shared(take: Callable[..., mg.Tensor]) -> None:
    array = np.zeros((2, 3))
    take(FirstForm(array[:, ::2])).add_(1)
    assert array.tolist() == [[1, 0, 1], [1, 0, 1]]
    take(FirstForm(array), copy=True).zero_()
    assert array.tolist() == [[1, 0, 1], [1, 0, 1]]
    kept = take(FirstForm(np.arange(1000.0)))  # nobody but the tensor holds it now
    gc.collect()
    same(kept, np.arange(1000.0))


def test_capsules_are_taken_and_given() -> None:
    x = mg.zeros(3)
    mg.from_dlpack(mg.utils.dlpack.to_dlpack(x)).add_(1)
    mg.from_dlpack(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0))).add_(1)
    mg.from_dlpack(x.__dlpack__(copy=True)).add_(1)
    mg.from_dlpack(x.__dlpack__(), copy=True).add_(1)
    same(x, [2, 2, 2])
    with pytest.raises((BufferError, ValueError), match="device"):  # of some versions of NumPy it is a ValueError
        x.__dlpack__(dl_device=(2, 0))


def test_asarray_takes_anything() -> None:
    x = leaf(1.0)
    assert mg.asarray(x) is x and not mg.asarray(x, requires_grad=False).requires_grad and mg.asarray(x, requires_grad=True) is x
    assert mg.asarray([1, 2], requires_grad=False).dtype is mg.int64
    assert mg.asarray(1.0, requires_grad=True).requires_grad and mg.asarray(np.ones(2), dtype=mg.float32).dtype is mg.float32
    same(mg.asarray(bytearray(b"\1\2"), dtype=mg.uint8), [1, 2])
    with pytest.raises(ValueError, match="copy=False"):
        mg.asarray([1], copy=False)


def test_bytes_as_elements() -> None:
    data = bytearray(np.array([1.0, 2.0, 3.0], np.float32).tobytes())
    same(mg.frombuffer(data, dtype=mg.float32), [1, 2, 3])
    same(mg.frombuffer(data, dtype=mg.float32, count=1, offset=4), [2])
    mg.frombuffer(data, dtype=mg.float32).zero_()
    assert not any(data)
    for settings in ({"offset": 2}, {"count": 4}, {"count": 0}, {"offset": 12}, {"offset": -4}):
        with pytest.raises(ValueError, match="do not fit"):
            mg.frombuffer(data, dtype=mg.float32, **settings)


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(16)))
    storage = mg.UntypedStorage.from_file(str(path), nbytes=16)
    part = storage[4:8]
    assert len(storage) == 16 and len(part) == part.nbytes() == 4 and part[0] == 4 and part.data_ptr() == storage.data_ptr() + 4
    x = mg.asarray(part, dtype=mg.uint8)
    same(x, [4, 5, 6, 7])
    x.zero_()
    assert part.tolist() == [4, 5, 6, 7] and path.read_bytes() == bytes(range(16))
    with pytest.raises(NotImplementedError):
        mg.UntypedStorage.from_file(str(path), shared=True, nbytes=16)
    for wrong, kind in ((17, ValueError), (-1, RuntimeError), (1 << 62, ValueError), ("16", TypeError)):
        with pytest.raises(kind, match=r"nbytes|bytes are asked for"):
            mg.UntypedStorage.from_file(str(path), nbytes=wrong)


def test_operations_on_lists() -> None:
    a, b = [mg.tensor([1.0, 4.0]), mg.tensor([9.0])], [mg.tensor([2.0, 2.0]), mg.tensor([3.0])]
    for found, expected in (
            (mg._foreach_sqrt(a), [[1, 2], [3]]), (mg._foreach_add(a, 1), [[2, 5], [10]]), (mg._foreach_add(a, b, alpha=2), [[5, 8], [15]]),
            (mg._foreach_mul(a, [2.0, 3.0]), [[2, 8], [27]]), (mg._foreach_mul(a, mg.tensor(2.0)), [[2, 8], [18]]), (mg._foreach_pow(2.0, b), [[4, 4], [8]]),
            (mg._foreach_addcmul(a, a, b, 2), [[5, 20], [63]]), (mg._foreach_addcdiv(a, a, b, mg.tensor([2.0, 1.0])), [[2, 8], [12]]),
            (mg._foreach_lerp(a, b, 0.5), [[1.5, 3], [6]]), (mg._foreach_maximum(a, b), [[2, 4], [9]]), (mg._foreach_norm(b, 1), [4, 3])):
        assert isinstance(found, tuple)
        for x, y in zip(found, expected):
            same(x, y)
    assert mg._foreach_mul_(a, b) is None and mg._foreach_neg_(a) is None
    same(a[0], [-2, -8])
    mg._foreach_copy_(a, b)
    same(a[1], [3])
    mg._foreach_zero_(a)
    same(a[0], [0, 0])
    with pytest.raises(RuntimeError, match="same length"):
        mg._foreach_add(a, [1.0])
    for name in ("acos", "asin", "atan", "cos", "cosh", "erf", "erfc", "expm1", "frac", "lgamma", "log10", "log1p", "log2", "sin", "sinh", "tan", "trunc"):
        x = mg.tensor([0.25, 0.5])
        same(getattr(mg, f"_foreach_{name}")([x])[0], getattr(mg, name)(x).tolist())
        getattr(mg, f"_foreach_{name}_")([y := x.clone()])
        same(y, getattr(mg, name)(x).tolist())
    same(mg._foreach_max(b)[1], 3)
    assert mg._foreach_clone(b)[0] is not b[0]
    whole = mg.tensor([1])
    with pytest.raises(RuntimeError, match="cast"):
        mg._foreach_add_([whole], 1.5)
    assert whole.item() == 1


# -------------------------------------------------------------------------------------------------------------- small modules

def test_futures() -> None:
    first, second = Future[int](), Future[int]()
    both, doubled = collect_all([first, second]), first.then(lambda f: 2 * f.value())
    failed = second.then(lambda f: 1 // 0)
    first.set_result(2)
    assert first.done() and doubled.wait() == 4 and not both.done()
    second.set_result(3)
    assert wait_all(both.wait()) == [2, 3] and collect_all([]).wait() == []
    with pytest.raises(ZeroDivisionError):
        failed.wait()


def test_what_does_not_exist_has_names() -> None:
    assert not isinstance(3, (mg.SymInt, mg.fx.Proxy, mg._C.Value)) and mg.fx.get_proxy_mode() is None
    for call in (lambda: mg.SymInt(3), mg.fx.FakeTensor, lambda: mg.nn.parallel.scatter(mg.ones(2), [0])):
        with pytest.raises(NotImplementedError):
            call()
    assert mg._C._log_api_usage_once("") is mg._C._get_tracing_state() is None and not mg.fx.is_fake(mg.ones(1))
    with pytest.raises(ValueError, match="process group"):
        mg.distributed.nn.all_reduce(mg.ones(1))
    for call in (mg.distributed.rpc.rpc_sync, mg.distributed.optim.ZeroRedundancyOptimizer, mg.distributed.fsdp.FullyShardedDataParallel):
        with pytest.raises(NotImplementedError, match="by placing them"):
            call()
    with pytest.raises(AttributeError):
        mg.distributed.rpc.all_reduce  # noqa: B018
    with pytest.raises(AttributeError):
        mg._C.DispatchKey.NoSuchKey  # noqa: B018
    assert isinstance(mg.jit.ScriptModule(), mg.nn.Module) and issubclass(mg._dynamo.eval_frame.OptimizedModule, mg.nn.Module)
    assert mg.types._size and mg.utils.hooks.RemovableHandle
    assert mg._dynamo.mark_static_address(mg.ones(1)) is mg._dynamo.graph_break() is None and mg._dynamo.assume_constant_result(abs) is abs
    groups = mg.utils._foreach_utils._group_tensors_by_device_and_dtype([[mg.ones(1), mg.ones(1).half(), mg.ones(2)], [1, 2, 3]], with_indices=True)
    assert [(values[1], places) for values, places in groups.values()] == [([1, 3], [0, 2]), ([2], [1])]


def test_weights_in_the_cache_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    mg.save({"w": mg.ones(2)}, folder / "model.pth")
    same(mg.hub.load_state_dict_from_url("https://example.org/model.pth?x=1")["w"], [1, 1])


def test_weights_in_the_cache_are_what_their_name_says(tmp_path: Path) -> None:
    mg.save({"w": mg.ones(2)}, tmp_path / "model.pth")
    data = (tmp_path / "model.pth").read_bytes()
    digest = hashlib.sha256(data).hexdigest()

    def found(name: str, **settings: Any) -> Any:
        (tmp_path / name).write_bytes(data)
        return mg.hub.load_state_dict_from_url(f"https://example.org/{name}", str(tmp_path), **settings)

    for good in (f"model-{digest[:8]}.pth", f"model-{digest}.pth", "model.pth", "model-one.pth"):
        same(found(good, check_hash=True)["w"], [1, 1])
    for name, settings in (("model-00000000.pth", {}), ("any.pth", {"file_name": "model-00000000.pth"})):
        same(found(name, **settings)["w"], [1, 1])
        with pytest.raises(RuntimeError,
            match=f'invalid hash value .expected "00000000", got "{digest}".*model-00000000.pth'):
            mg.hub.load_state_dict_from_url(f"https://example.org/{name}", str(tmp_path), check_hash=True, **settings)
        assert not (tmp_path / "model-00000000.pth").exists()
        (tmp_path / "model-00000000.pth").write_bytes(data)


def test_an_optimizer_around_another() -> None:
    class Around(mg.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self.inner, self.param_groups, self.state, self.defaults = inner, inner.param_groups, inner.state, inner.defaults

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    w = leaf(1.0)
    w.grad = mg.ones(1)
    Around(mg.optim.SGD([w], lr=0.5)).step()
    same(w, [0.5])


def test_the_package_torch_has_a_version() -> None:
    with mg.as_torch() as torch:
        assert importlib.metadata.version("torch") == torch.__version__ and torch.torch is torch
        import torch.distributed.nn.functional
        import torch.fx.experimental.proxy_tensor
        from torch.nn.parallel.scatter_gather import scatter
    assert scatter is mg.nn.parallel.scatter


def test_types_that_no_tensor_has() -> None:
    assert mg.float8_e4m3fn is not mg.float8_e5m2 and mg.float8_e4m3fn.is_floating_point and repr(mg.complex32) == "mutagrad.complex32"
    assert mg.finfo(mg.float8_e4m3fn).max == 448 and mg.finfo(mg.float8_e5m2).tiny == 2.0 ** -14
    assert mg.ones(1).dtype not in (mg.float8_e4m3fn, mg.complex32)
    for call in (lambda: mg.zeros(1, dtype=mg.float8_e5m2), lambda: mg.ones(1).to(mg.float8_e5m2)):
        with pytest.raises((TypeError, RuntimeError), match="no tensor can hold"):
            call()


def test_leaves_of_a_dictionary_with_their_places() -> None:
    assert mg.utils._pytree._dict_flatten_with_keys({"a": 1, "b": 2}) == ([(("a",), 1), (("b",), 2)], ["a", "b"])


def test_classes_of_a_device_can_be_named_and_not_made() -> None:
    assert (mg.cuda.Stream | None) and (mg.cuda.CUDAGraph | mg.cuda.Event | mg.cuda.StreamContext)
    with pytest.raises(AssertionError):
        mg.cuda.Stream()


def test_what_a_compiler_would_need_can_be_named() -> None:
    with mg.as_torch():
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        from torch.autograd.graph import save_on_cpu
        from torch.nn.attention.flex_attention import BlockMask
    with TransformGetItemToIndex(), save_on_cpu(pin_memory=True):
        pass
    with pytest.raises(NotImplementedError, match="not supported"):
        BlockMask(mg.ones(1), (1, 1, 2, 2), (128, 128))


def test_declared_operations() -> None:
    library = mg.library

    @library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: mg.Tensor, factor: float = 3.0) -> mg.Tensor:
        return x * factor

    x = leaf(1.0, 2.0)
    scaled(x).sum().backward()
    same(x.grad, [3, 3])

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    library.register_autograd("tests::scaled", lambda ctx, g: (10 * g * ctx.factor, None), setup_context=save)
    library.register_fake("tests::scaled", lambda x, factor: x)
    x.grad = None
    scaled(x, factor=2.0).sum().backward()
    same(x.grad, [20, 20])
    with pytest.raises(ValueError, match="declared"):
        library.register_autograd("tests::nothing", save)


def test_operations_by_name() -> None:
    with mg.as_torch() as torch:
        library = torch.library.Library("tests", "DEF")
        library.define("tripled(Tensor x) -> Tensor")
        library.impl("tripled", lambda x: 3 * x, "CPU")
        library.impl("tripled", lambda x: 4 * x, "Meta")
        same(torch.ops.tests.tripled(mg.ones(2)), [3, 3])
        same(torch.ops.aten.add.Tensor(mg.ones(2), 1), [2, 2])
        same(torch.ops.aten.linalg_vector_norm.default(mg.ones(4)), 2)
        assert torch.ops.aten.add.Tensor is torch.ops.aten.add.Tensor and repr(torch.ops.aten.add.out) == "<op aten.add.out>"
        assert torch.ops.tests.tripled is torch.ops.tests.tripled
        for missing in (torch.ops.tests, torch.ops.torch_scatter):  # by which programs find out what is installed
            assert not hasattr(missing, "nothing")
        with pytest.raises(NotImplementedError, match="aten::nothing"):
            torch.ops.aten.nothing(1)
        library.define("later.Tensor(Tensor x) -> Tensor")
        torch.library.define("tests::soon", "(Tensor x) -> Tensor")
        for declared in (torch.ops.tests.later, torch.ops.tests.soon.default):
            with pytest.raises(NotImplementedError, match="tests::"):
                declared(mg.ones(2))
        with pytest.raises(OSError, match="C\\+\\+"):
            torch.ops.load_library("library.so")
        library._destroy()
        assert not any(hasattr(torch.ops.tests, name) for name in ("tripled", "later", "soon"))


def test_control_flow_as_functions() -> None:
    x = leaf(1.0, 2.0, 3.0)
    with mg.as_torch():
        from torch._higher_order_ops.associative_scan import associative_scan
        from torch._higher_order_ops.scan import scan
    products = associative_scan(lambda a, b: a * b, x, 0)
    products.sum().backward()
    same(products, [1, 2, 6])
    same(x.grad, [9, 4, 2])
    same(associative_scan(lambda a, b: a + b, mg.ones(2, 2), 1, reverse=True), [[2, 1], [2, 1]])
    last, results = scan(lambda carried, step: (carried + step, carried), mg.tensor(0.0), mg.tensor([1.0, 2.0]))
    same(last, 3)
    same(results, [0, 1])
    same(mg.cond(False, lambda x: x, lambda x: -x, (mg.ones(1),)), [-1])
    same(mg.while_loop(lambda x: x < 5, lambda x: (x * 2,), (mg.tensor(1.0),))[0], 8)


def test_names_that_libraries_import() -> None:
    with mg.as_torch() as torch:
        from functorch import vmap
        from torch.ao.quantization import DeQuantStub, QuantStub, fuse_modules
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter
        assert vmap is mg.vmap and torch._C._nn._parse_to("cpu", mg.float64)[:2] == (mg.device("cpu"), mg.float64)
        loader = mg.utils.data.DataLoader([1, 2])
        assert isinstance(iter(loader), _BaseDataLoaderIter) and not isinstance(iter(loader), _MultiProcessingDataLoaderIter)
    same(DeQuantStub()(QuantStub()(mg.ones(1))), [1])
    for call in (fuse_modules, FullyShardedDataParallel, mg.export.export, mg.PyTorchFileReader):
        with pytest.raises(NotImplementedError):
            call()


def test_bfloat16_is_shared_over_dlpack() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    x = mg.arange(6.0).bfloat16().reshape(2, 3)
    for given in (x, x.T, x[:, 1:], x[1, 2]):
        y = mg.from_dlpack(given)
        assert y.dtype is mg.bfloat16 and y.shape == given.shape and mg.equal(y, given)
        y.fill_(7)
        assert (given == 7).all()
    jax = pytest.importorskip("jax", reason="the extra `xla`")
    theirs = jax.numpy.ones(4, jax.numpy.bfloat16)
    assert mg.from_dlpack(theirs).dtype is mg.bfloat16 and jax.numpy.from_dlpack(mg.ones(4).bfloat16()).dtype == jax.numpy.bfloat16
    with pytest.raises(RuntimeError, match="requires a gradient"):
        mg.from_dlpack(mg.ones(2, dtype=mg.bfloat16, requires_grad=True))
