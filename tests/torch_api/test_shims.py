"""Names that have little to do here: other devices, compilers, process groups, settings. They answer, or say why they cannot."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.base import pytree
from tools import leaf, same


def test_importing_mutagrad_loads_none_of_them() -> None:
    names = "torch_api files nn optim utils distributed sparse func tensors.typed_tensors ops.math.special ops.nn.conv amp jit backends"
    code = f"import sys, mutagrad; mutagrad.bfloat16; print([n for n in '{names} ml_dtypes'.split() if 'mutagrad.' + n in sys.modules or n == 'ml_dtypes' and n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


# -------------------------------------------------------------------------------------------------------------- other devices

@pytest.mark.parametrize("name", ["cuda", "mps", "xpu", "accelerator"])
def test_there_is_no_other_device(name: str) -> None:
    module = getattr(mg, name)
    assert module.is_available() is False and module.device_count() == 0
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018
    with pytest.raises(mg.MutagradError, match=r"CPU only|no accelerator") as found:
        module.synchronize()
    assert isinstance(found.value, (AssertionError, RuntimeError)) and "is_available" in found.value.fix


def test_cuda_without_a_gpu() -> None:
    for call in (lambda: mg.cuda.manual_seed(1), lambda: mg.cuda.manual_seed_all(1), mg.cuda.seed, mg.cuda.seed_all, mg.cuda.empty_cache):
        assert call() is None
    assert mg.cuda.memory_allocated() == mg.cuda.max_memory_allocated() == mg.cuda.memory_reserved() == 0
    assert mg.cuda.get_rng_state_all() == [] and mg.cuda.get_arch_list() == [] and mg.cuda.memory_stats() == {}
    assert not mg.cuda.is_initialized() and not mg.cuda.is_bf16_supported()
    mg.cuda.set_device(-1)
    mg.cuda.set_rng_state_all([])
    for call in (lambda: mg.cuda.set_device(0), mg.cuda.current_device, mg.cuda.get_device_name, mg.cuda.Stream, lambda: mg.ones(2).cuda(),
                 lambda: mg.ones(2).to("cuda"), lambda: mg.zeros(2, device="cuda:1"), lambda: mg.cuda.set_rng_state_all([1])):
        with pytest.raises(AssertionError):
            call()
    with pytest.raises(NotImplementedError, match="FloatTensor"):
        mg.cuda.FloatTensor  # noqa: B018


def test_the_cpu_is_there() -> None:
    assert mg.cpu.is_available() and mg.cpu.device_count() == 1 and mg.cpu.current_device() == "cpu"
    mg.cpu.synchronize()
    mg.mps.manual_seed(1)
    mg.xpu.empty_cache()
    assert mg.accelerator.current_accelerator() is None
    with mg.device("cpu") as device:
        assert mg.zeros(1).device == device
    with pytest.raises(RuntimeError), mg.device("cuda"):
        pass


def test_switches_of_other_libraries() -> None:
    import mutagrad.backends.cudnn as cudnn

    assert mg.backends.cudnn is cudnn
    cudnn.deterministic, cudnn.benchmark = True, True
    with cudnn.flags(enabled=False):
        assert not cudnn.enabled and not cudnn.benchmark
    assert cudnn.enabled and cudnn.benchmark and cudnn.deterministic
    cudnn.set_flags(_benchmark=False, _deterministic=False)
    assert not cudnn.benchmark and cudnn.version() is None and not cudnn.is_available()
    mg.backends.cuda.matmul.allow_tf32 = True
    with mg.backends.cuda.sdp_kernel(enable_flash=False):
        assert not mg.backends.cuda.flash_sdp_enabled() and mg.backends.cuda.math_sdp_enabled()
    assert mg.backends.cuda.flash_sdp_enabled() and not mg.backends.cuda.is_built()
    mg.backends.cuda.enable_math_sdp(True)
    assert mg.backends.cuda.preferred_linalg_library("magma") == "magma"
    assert not mg.backends.mps.is_available() and not mg.backends.mps.is_built()
    with mg.backends.mkldnn.flags(enabled=False):
        assert not mg.backends.mkldnn.enabled
    assert mg.backends.mkldnn.enabled
    assert not any(getattr(mg.backends, n).is_available() for n in ("mkl", "openmp", "opt_einsum", "mkldnn"))
    with pytest.raises(AttributeError):
        mg.backends.no_such_library  # noqa: B018


# ------------------------------------------------------------------------------------------------------------ mixed precision

def test_autocast() -> None:
    x = mg.ones(2, 2, requires_grad=True)
    half = x.detach().bfloat16()
    with mg.autocast("cpu", dtype=mg.bfloat16):
        for found in (x @ x, mg.mm(x, x), mg.nn.functional.linear(x, x), mg.nn.Linear(2, 2)(x), mg.einsum("ij,jk->ik", x, x), x @ half,
                      mg.nn.Conv1d(2, 2, 1)(x), mg.nn.ConvTranspose1d(2, 2, 1)(x), mg.nn.MultiheadAttention(2, 1)(x, x, x)[0]):
            assert found.dtype is mg.bfloat16
        for found in (x * x, x + half, mg.cat([x, half]), mg.nn.functional.mse_loss(half, half), half.prod(), mg.nn.LayerNorm(2)(x)):
            assert found.dtype is mg.float32
        assert (x.double() @ x.double()).dtype is mg.float64 and mg.nn.LayerNorm(2)(half).dtype is mg.bfloat16 and half.exp().dtype is mg.bfloat16
        assert mg.is_autocast_enabled("cpu") and mg.is_autocast_cpu_enabled() and mg.get_autocast_dtype("cpu") is mg.bfloat16
        with mg.autocast("cpu", enabled=False):
            assert (x @ x).dtype is mg.float32 and not mg.is_autocast_cpu_enabled()
        (x @ x).float().sum().backward()
        lstm, gru = (layer(2, 3)(mg.nn.Linear(2, 2)(mg.ones(1, 1, 2)))[0] for layer in (mg.nn.LSTM, mg.nn.GRU))
        assert lstm.dtype is mg.bfloat16 and gru.dtype is mg.float32
    same(x.grad, [[4, 4], [4, 4]])
    assert x.grad.dtype is mg.float32 and (x @ x).dtype is mg.float32 and not mg.is_autocast_enabled() and not mg.is_autocast_cache_enabled()
    norm = mg.nn.BatchNorm1d(2)
    with mg.autocast("cpu"):
        assert norm(half + mg.eye(2).bfloat16()).dtype is mg.bfloat16
    assert norm.running_mean.abs().sum() > 0 and mg.amp.is_autocast_available("cpu") and not mg.amp.is_autocast_available("cuda")
    mg.clear_autocast_cache()


def test_autocast_that_does_nothing() -> None:
    for settings in ({"device_type": "cuda"}, {"device_type": "cpu", "dtype": mg.float32}):
        with pytest.warns(UserWarning, match="does nothing"), mg.autocast(**settings):
            assert (mg.ones(2) @ mg.ones(2)).dtype is mg.float32
    with pytest.warns(UserWarning), mg.cuda.amp.autocast():
        pass
    with pytest.raises(TypeError):
        mg.autocast(3)  # type: ignore[arg-type]


def test_autocast_of_functions() -> None:
    @mg.autocast("cpu")
    def square(x: Any) -> Any:
        return x @ x

    assert square(mg.ones(1, 1)).dtype is mg.bfloat16

    @mg.amp.custom_fwd(device_type="cpu", cast_inputs=mg.float32)  # type: ignore[untyped-decorator,unused-ignore]
    def product(x: Any) -> Any:
        return x @ x

    with mg.autocast("cpu"):
        assert product(mg.ones(1, 1).bfloat16()).dtype is mg.float32
    assert product(mg.ones(1, 1).bfloat16()).dtype is mg.bfloat16 and mg.amp.custom_bwd(device_type="cpu")(square) is square


class Descent:
    """As much of an optimizer as a scaler needs."""

    def __init__(self, *params: Any) -> None:
        self.param_groups = [{"params": list(params)}]

    def step(self) -> str:
        for p in self.param_groups[0]["params"]:
            p.data.sub_(p.grad)
        return "done"


def test_a_scaler_scales_and_skips() -> None:
    w = leaf(1.0, 2.0)
    optimizer, scaler = Descent(w), mg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scaler.scale((w * w).sum()).backward()
    same(w.grad, [16, 32])
    scaler.unscale_(optimizer)
    same(w.grad, [2, 4])
    with pytest.raises(RuntimeError, match="already"):
        scaler.unscale_(optimizer)
    assert scaler.step(optimizer) == "done"
    same(w, [-1, -2])
    scaler.update()
    assert scaler.get_scale() == 8
    w.grad = mg.tensor([float("inf"), 1.0])
    assert scaler.step(optimizer) is None
    same(w, [-1, -2])
    scaler.update()
    assert scaler.get_scale() == 4
    for _ in range(2):
        scaler.update()
    assert scaler.get_scale() == 8
    other = mg.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8 and other.get_growth_interval() == 2
    assert [float(v) for v in scaler.scale([mg.tensor(1.0), mg.tensor(2.0)])] == [8, 16]
    scaler.update(2.0)
    assert scaler.get_scale() == 2 and scaler.get_growth_factor() == 2 and scaler.get_backoff_factor() == 0.5
    with pytest.raises(ValueError):
        mg.amp.GradScaler("cpu", growth_factor=0.5)


def test_a_scaler_that_is_off_passes_through() -> None:
    with pytest.warns(UserWarning):
        assert not mg.cuda.amp.GradScaler().is_enabled()
    scaler, x = mg.amp.GradScaler(enabled=False), mg.ones(2)
    assert scaler.scale(x) is x and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    w = leaf(1.0)
    (w * 2).backward()
    optimizer = Descent(w)
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer) == "done"
    scaler.update()
    scaler.load_state_dict({})
    same(w, [-1])


# ------------------------------------------------------------------------------------------------------ compilers and processes

def test_a_compiled_module_is_one_without_jax_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[mg.compile.__module__], "find_spec", lambda name: None)
    layer = mg.nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="JAX is not installed"):
        compiled = mg.compile(layer)
    assert compiled._orig_mod is layer and compiled.dynamo_ctx is layer
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    same(compiled(mg.ones(2)), layer(mg.ones(2)).tolist())


def test_compiling_gives_the_function_itself() -> None:
    def f(x: Any) -> Any:
        return x * 2

    assert mg.compile(f, disable=True) is mg.jit.script(f) is mg.jit.trace(f, (mg.ones(1),)) is f
    assert mg.jit.ignore(f) is mg.jit.ignore(drop=True)(f) is mg.jit.unused(f) is mg.jit.export(f) is mg.jit.script_method(f) is f
    assert mg.jit.script_if_tracing(f) is mg.jit.trace()(f) is f
    assert not mg.jit.is_scripting() and not mg.jit.is_tracing() and not mg.compiler.is_compiling()
    assert mg.jit.annotate(int, 3) == mg.jit.Attribute(3, int) == 3 and mg.jit.isinstance([1], list)
    same(mg.jit.wait(mg.jit.fork(f, mg.ones(1))), [2])
    assert mg.compiler.disable(f) is mg.compiler.disable()(f) is mg.compiler.allow_in_graph(f) is f
    mg.compiler.reset()
    mg.compiler.cudagraph_mark_step_begin()
    assert mg.compiler.list_backends() in ([], ["xla"])
    for error in (AssertionError, TypeError):
        with pytest.raises(error):
            mg.compile(3)
    for call in (lambda: mg.jit.save(f, "f"), lambda: mg.jit.load("f"), lambda: mg.jit.freeze(f),
                 lambda: mg.jit.optimize_for_inference(f),
                 lambda: mg.library.Library("mine", "IMPL").impl("double", f, "Autograd")):
        with pytest.raises(NotImplementedError):
            call()


def test_there_is_no_process_group() -> None:
    d = mg.distributed
    assert not any(ask() for ask in (d.is_initialized, d.is_nccl_available, d.is_mpi_available, d.is_torchelastic_launched))
    assert d.is_available() == d.is_gloo_available() == (importlib.util.find_spec("jax") is not None)
    for call in (d.get_rank, d.get_world_size, d.barrier, lambda: d.all_reduce(mg.ones(1)), lambda: d.recv(mg.ones(1), 0)):
        with pytest.raises(ValueError, match="no process group"):
            call()
    with pytest.raises(ValueError, match="WORLD_SIZE"):
        d.init_process_group("gloo")
    with pytest.raises(AttributeError):
        d.no_such_name  # noqa: B018


def test_a_group_of_one_process_knows_everything_already() -> None:
    d, model = mg.distributed, mg.nn.Linear(2, 1)
    with pytest.raises(NotImplementedError, match="process group"):
        mg.nn.parallel.DistributedDataParallel(model)
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        d.init_process_group("gloo", world_size=2, rank=0)
    d.init_process_group("gloo", world_size=1, rank=0)
    try:
        assert d.is_initialized() and (d.get_rank(), d.get_world_size(), d.get_backend()) == (0, 1, "gloo") and d.new_group([0]).size() == 1
        x, y, objects = mg.tensor([1.0, 2.0]), mg.zeros(2), [None]
        assert d.all_reduce(x) is None and d.all_reduce(x, op=d.ReduceOp.AVG, async_op=True).wait() and d.barrier() is None and x.tolist() == [1.0, 2.0]
        for call in (lambda: d.all_gather([y], x), lambda: d.gather(x, [y], 0), lambda: d.scatter(y, [x], src=0), lambda: d.reduce_scatter(y, [x])):
            y.zero_()
            call()
            assert y.tolist() == x.tolist()
        w = mg.tensor([3.0], requires_grad=True)
        for call in (lambda w: d.nn.all_reduce(w), lambda w: d.nn.broadcast(w, 0), lambda w: d.nn.all_gather(w)[0], lambda w: d.nn.reduce_scatter(mg.zeros(1), [w]),
                     lambda w: d.nn.scatter([w]), lambda w: d.nn.all_to_all([mg.zeros(1)], [w])[0], lambda w: d.nn.all_to_all_single(mg.zeros(1), w), lambda w: d.nn.gather(w)[0], lambda w: d.nn.reduce(w, 0)):
            w.grad = None
            (call(w) ** 2).sum().backward()
            assert w.grad.tolist() == [6.0]
        with pytest.raises(ValueError):
            d.nn.broadcast(w, 1)
        d.all_gather_object(objects, "a")
        assert objects == ["a"] and list(mg.utils.data.distributed.DistributedSampler(range(3), shuffle=False)) == [0, 1, 2]
        for wrong in (lambda: d.broadcast(x, 1), lambda: d.all_gather([y, y], x), lambda: d.gather(x), lambda: d.new_group([1]), lambda: d.send(x, 1),
                      lambda: d.init_process_group("gloo", world_size=1)):
            with pytest.raises(ValueError):
                wrong()
        parallel = mg.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
        with parallel.no_sync():
            parallel(mg.ones(3, 2)).sum().backward()
        assert model.weight.grad.tolist() == [[3.0, 3.0]] and list(parallel.state_dict()) == ["module.weight", "module.bias"]
        with pytest.raises(TypeError):
            mg.nn.parallel.DistributedDataParallel(model, no_such_setting=1)
    finally:
        d.destroy_process_group()
    assert not d.is_initialized()


def _fill(number: int, queue: Any) -> None:
    queue.put(mg.full((2,), float(number)))


def _fail(number: int) -> None:
    sys.exit(3)


def test_processes() -> None:
    processes = mg.multiprocessing
    queue = processes.get_context("spawn").Queue()
    processes.spawn(_fill, (queue,), nprocs=2)
    assert sorted(float(queue.get()[0]) for _ in range(2)) == [0, 1]
    with pytest.raises(processes.ProcessExitedException, match="exit code 3"):
        processes.spawn(_fail)
    processes.set_sharing_strategy("file_system")
    assert processes.get_sharing_strategy() == "file_system" and "file_system" in processes.get_all_sharing_strategies()
    with pytest.raises(ValueError):
        processes.set_sharing_strategy("telepathy")
    assert processes.Process and processes.Pool and processes.set_start_method


# ------------------------------------------------------------------------------------------------------------------- settings

def test_settings_are_remembered() -> None:
    mg.use_deterministic_algorithms(True, warn_only=True)
    assert mg.are_deterministic_algorithms_enabled() and mg.is_deterministic_algorithms_warn_only_enabled() and mg.get_deterministic_debug_mode() == 1
    mg.set_deterministic_debug_mode("error")
    assert mg.get_deterministic_debug_mode() == 2
    mg.set_deterministic_debug_mode(0)
    assert not mg.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError):
        mg.set_deterministic_debug_mode("perhaps")
    mg.set_float32_matmul_precision("high")
    assert mg.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning):
        mg.set_float32_matmul_precision("low")
    mg.set_float32_matmul_precision("highest")
    mg.set_warn_always(True)
    assert mg.is_warn_always_enabled()
    mg.set_warn_always(False)
    assert mg.get_num_interop_threads() == 1 and mg.set_flush_denormal(True) is False
    mg.set_num_interop_threads(2)
    with pytest.raises(RuntimeError):
        mg.set_num_interop_threads(0)


def test_default_device_and_type() -> None:
    mg.set_default_device("cpu")
    assert mg.get_default_device() == mg.device("cpu")
    with pytest.raises(RuntimeError):
        mg.set_default_device("cuda")
    for name in (mg.DoubleTensor, "torch.DoubleTensor", "mutagrad.DoubleTensor"):
        mg.set_default_tensor_type(name)
        assert mg.zeros(1).dtype is mg.float64
        mg.set_default_tensor_type(mg.FloatTensor)
        assert mg.zeros(1).dtype is mg.float32
    for wrong in (mg.LongTensor, "torch.NoTensor", 3):
        with pytest.raises(TypeError):
            mg.set_default_tensor_type(wrong)


def test_constructors_by_type() -> None:
    same(mg.FloatTensor([1, 2]), [1, 2])
    assert mg.FloatTensor([1, 2]).dtype is mg.float32 and mg.FloatTensor(2, 3).shape == mg.FloatTensor(mg.Size([2, 3])).shape == (2, 3)
    assert mg.LongTensor([1.5, 2]).tolist() == [1, 2] and mg.LongTensor(3).shape == (3,) and mg.FloatTensor().shape == (0,)
    assert mg.FloatTensor((2, 3)).tolist() == [2, 3] and mg.FloatTensor(np.ones(2)).dtype is mg.float32
    assert mg.BoolTensor([1, 0]).tolist() == [True, False] and mg.ByteTensor([255]).item() == 255
    x = mg.ones(2)
    shared = mg.FloatTensor(x)
    shared[0] = 5
    same(x, [5, 1])
    with pytest.raises(TypeError):
        mg.LongTensor(x)
    with pytest.raises(RuntimeError):
        mg.FloatTensor([1], device="cuda")
    assert isinstance(x, mg.FloatTensor) and not isinstance(x, mg.LongTensor) and not isinstance(3, mg.FloatTensor)
    assert mg.FloatTensor.dtype is mg.float32 and mg.FloatTensor.__name__ == "FloatTensor" and repr(mg.FloatTensor) == "<class 'mutagrad.FloatTensor'>"
    for name in (mg.DoubleTensor, "torch.DoubleTensor", "mutagrad.DoubleTensor", mg.float64):
        assert x.type(name).dtype is mg.float64
    assert x.type() == mg.typename(x) == "mutagrad.FloatTensor"
    assert mg.typename(3) == "int" and mg.typename(mg.Generator) == "mutagrad.random.Generator"
    assert not mg.is_storage(x)


def test_variable() -> None:
    x = mg.ones(2)
    v = mg.autograd.Variable(x, requires_grad=True)
    (v * v).sum().backward()
    same(v.grad, [2, 2])
    assert v is not x and not x.requires_grad and isinstance(x, mg.autograd.Variable) and not isinstance(3, mg.autograd.Variable)
    assert mg.autograd.Variable(v).requires_grad is False
    with pytest.raises(NotImplementedError, match="volatile"):
        mg.autograd.Variable(x, volatile=True)
    with pytest.raises(TypeError):
        mg.autograd.Variable([1.0])


def test_about_this_build() -> None:
    assert mg.version.__version__ == mg.__version__ and mg.version.cuda is None
    assert "NumPy" in getattr(mg, "__config__").show() and "threads" in getattr(mg, "__config__").parallel_info()  # noqa: B009
    assert mg.overrides.has_torch_function((mg.ones(1),)) is False and mg.overrides.is_tensor_like(mg.ones(1))


# -------------------------------------------------------------------------------------------------------------------- testing

T = mg.tensor
UNEQUAL: list[tuple[Any, Any, dict[str, Any], str]] = [
    (T([1.0, 2, 3]), T([1.0, 2, 4]), {}, "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
     "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\nGreatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)"),
    (T([1, 2]), T([1, 3]), {}, "Tensor-likes are not equal!"), (T(1.0), T(2.0), {}, "Scalars are not close!\n\nExpected 2.0 but got 1.0."),
    (1.0, 2.0, {}, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-07 allowed)\nRelative difference: 0.5 (up to 1e-07 allowed)"),
    (1, 2, {}, "Scalars are not equal!"), (1, 1.0, {}, "(d)types do not match"), (True, False, {}, "Booleans mismatch: True is not False"),
    (T([1.0]), T([1.0], dtype=mg.float64), {}, "attribute 'dtype'"), (T([1.0]), T([1.0, 2.0]), {}, "attribute 'shape'"),
    ([T([1.0]), 2.0], [T([1.0]), 3.0], {}, "occurred for item [1]"), ({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}, {}, "occurred for item ['a'][1]"),
    ([1.0], [1.0, 2.0], {}, "length of the sequences mismatch: 1 != 2"), ({"a": 1.0}, {"b": 1.0}, {}, "Missing keys in the actual mapping: ['b']"),
    (None, 1.0, {}, "None mismatch"), (T([float("nan")]), T([float("nan")]), {}, "100.0%"), (T([1.0]), T([1.1]), {"rtol": 0, "atol": 0}, "not equal"),
    (T([[1.0, 2], [3, 4]]).T, T([[1.0, 3], [2, 4]]), {"check_stride": True}, "stride()"), (T([1.0]), T([2.0]), {"msg": "hey"}, "hey"),
    (T([1.0]), T([2.0]), {"msg": lambda text: "PRE " + text}, "PRE Tensor-likes"), (np.ones(2), np.ones(2) * 2, {}, "100.0%"),
    (T([1.0, float("inf")]), T([1.0, 2.0]), {}, "Greatest absolute difference: inf"), (T([True]), T([False]), {}, "not equal"),
    (float("inf"), 1.0, {}, "not close"), (T([1.0]).to_sparse(), T([2.0]).to_sparse(), {}, "100.0%"),
    (T([1.0]).to_sparse(), T([1.0]), {}, "attribute 'layout' do not match"), (T([1.0, 0.0]).to_sparse(), T([1.0]).to_sparse(), {}, "attribute 'shape'"),
    (mg.sparse_coo_tensor([[0, 1]], [1.0, 0.0], (2,)), T([1.0, 0.0]).to_sparse(), {}, "number of specified values"),
]


@pytest.mark.parametrize("number", range(len(UNEQUAL)))
def test_assert_close_refuses(number: int) -> None:
    actual, expected, settings, text = UNEQUAL[number]
    with pytest.raises(AssertionError) as found:
        mg.testing.assert_close(actual, expected, **settings)
    assert text in str(found.value)


@pytest.mark.parametrize("pair", [(T([1.0]), T([1.0 + 1e-6])), (1.0, 1 + 1e-9), (None, None), ((1.0, T([2.0])), [1.0, T([2.0])]), (T([]), T([])), (2, 2),
                                  (T([1.0], requires_grad=True), T([1.0])), (float("inf"), float("inf")),
                                  (mg.sparse_coo_tensor([[1, 0, 1]], [1.0, 3.0, 1.0], (3,)), T([3.0, 2.0, 0.0]).to_sparse())], ids=str)
def test_assert_close_accepts(pair: Any) -> None:
    mg.testing.assert_close(*pair)


def test_assert_close_settings() -> None:
    close, nan = mg.testing.assert_close, float("nan")
    close(T([nan, 1.0]), T([nan, 1.0]), equal_nan=True)
    close(nan, nan, equal_nan=True)
    close(T([1.0]).to_sparse(), T([1.0]), check_layout=False)
    close(T([1.0]), T([1.0], dtype=mg.float64), check_dtype=False)
    close(T([1.0]), T([1.1]), rtol=0.2, atol=0)
    close(T([1, 2]), T([1, 3]), rtol=0, atol=5)
    with pytest.raises(ValueError, match="rtol and atol"):
        close(T([1.0]), T([1.1]), rtol=0.2)
    for actual, expected in (("a", "a"), (T([1.0]), 1.0), (np.ones(2), T([1.0, 1.0]))):
        with pytest.raises(TypeError):
            close(actual, expected)


def test_make_tensor() -> None:
    make = mg.testing.make_tensor
    for dtype in (mg.bool, mg.uint8, mg.int64, mg.float16, mg.float32, mg.float64, mg.complex64):
        made = make(20, 30, dtype=dtype, device="cpu")
        assert made.shape == (20, 30) and made.dtype is dtype and len(np.unique(made.numpy())) > 1
    bounded = make((100,), dtype=mg.float32, low=2, high=3)
    assert (bounded >= 2).all() and (bounded <= 3).all()
    assert make((2, 3), dtype=mg.float32, noncontiguous=True).is_contiguous() is False
    assert (make((500,), dtype=mg.int64, exclude_zero=True) != 0).all()
    assert make((2,), dtype=mg.float64, requires_grad=True).requires_grad
    assert make((200,), dtype=mg.uint8, low=-5, high=300).dtype is mg.uint8
    with pytest.raises(ValueError):
        make((2,), dtype=mg.float32, low=3, high=2)


# ---------------------------------------------------------------------------------------------------------------------- trees

Point = namedtuple("Point", "x y")


def test_trees_are_flattened_and_made_again() -> None:
    tree = {"a": 1, "b": (2, [3, None]), "c": Point(4, 5), "d": OrderedDict(z=6), "e": deque([7], maxlen=3), "f": defaultdict(list, {"k": 8})}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, None, 4, 5, 6, 7, 8] and spec.num_leaves == 9 and not spec.is_leaf()
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again["c"]) is Point and again["e"].maxlen == 3 and again["f"].default_factory is list
    assert pytree.tree_structure(tree) == spec and pytree.tree_leaves(3) == [3]
    with pytest.raises(ValueError):
        pytree.tree_unflatten([1], spec)


def test_trees_are_mapped() -> None:
    assert pytree.tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)]) == [11, (22,)]
    assert pytree.tree_map_only(int, lambda x: -x, {"a": 1, "b": "s"}) == {"a": -1, "b": "s"}
    assert pytree.tree_map_only((int, str), lambda x: 0, [1, "s", 2.5]) == [0, 0, 2.5]
    assert pytree.tree_map_only(lambda x: x > 1, lambda x: 0, [1, 2]) == [1, 0]
    assert pytree.tree_map(len, [[1, 2], [3]], is_leaf=lambda v: isinstance(v, list) and isinstance(v[0], int)) == [2, 1]
    seen: list[int] = []
    tree = [1, [2]]
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2]
    assert pytree.tree_all(lambda x: x > 0, tree) and pytree.tree_any(lambda x: x > 1, tree) and not pytree.tree_any(lambda x: x > 5, tree)
    with pytest.raises(ValueError):
        pytree.tree_map(max, [1], (1,))


def test_own_containers() -> None:
    class Box:
        def __init__(self, *content: Any) -> None:
            self.content = content

    pytree.register_pytree_node(Box, lambda b: (list(b.content), None), lambda children, _: Box(*children))
    assert pytree.tree_map(lambda x: x * 2, Box(1, [2])).content == (2, [4])
    with pytest.raises(ValueError):
        pytree.register_pytree_node(Box, lambda b: ([], None), lambda children, _: Box())


# ------------------------------------------------------------------------------- imported by many programs, called by few of them

@pytest.mark.parametrize("call, said", [
    (lambda: mg.onnx.export(mg.nn.Linear(1, 1), mg.ones(1), "model.onnx"), "not exported"),
    (lambda: mg.hub.load_state_dict_from_url("https://example.org/resnet.pth"), "example.org/resnet.pth is not downloaded"),
    (lambda: mg.hub.load("someone/somewhere", "resnet"), "someone/somewhere is not downloaded"),
    (lambda: mg.profiler.profile(profile_memory=True), "profile_memory"),
    (lambda: mg.autograd.profiler.emit_nvtx(True), "no profiler of devices")])
def test_they_say_that_they_cannot_when_they_are_called(call: Any, said: str) -> None:
    with pytest.raises(NotImplementedError, match=said):
        call()


def test_names_for_a_profiler_change_nothing() -> None:
    with mg.profiler.record_function("forward"), mg.autograd.profiler.profile(enabled=False), mg.autograd.profiler.profile(False):
        same(mg.ones(1) * 2, [2])
    assert mg.profiler.record_function("twice")(lambda x: 2 * x)(2) == 4 and not mg.onnx.is_in_onnx_export()


def test_programs_find_them_under_the_names_that_pytorch_has() -> None:
    with mg.as_torch():
        import torch.onnx
        import torch.utils.model_zoo as model_zoo
        from torch.autograd.profiler import record_function
        from torch.hub import load_state_dict_from_url
        from torch.nn.common_types import _size_2_t
        from torch.nn.modules.transformer import _get_clones
    assert model_zoo.load_url is load_state_dict_from_url and record_function is torch.profiler.record_function and _size_2_t
    assert len(_get_clones(mg.nn.Linear(1, 1), 3)) == 3


def test_settings_of_a_compiler_are_kept() -> None:
    with mg.as_torch() as torch:
        import torch._inductor.config as config
        if not hasattr(config, "no_such_setting"):
            config.coordinate_descent_tuning = True
        torch._dynamo.config.suppress_errors = True
        torch._dynamo.reset()
    assert mg._inductor.config.coordinate_descent_tuning and mg._dynamo.config.suppress_errors
    assert mg._dynamo.disable(len) is len


def test_a_tensor_of_a_queue() -> None:
    same(mg.tensor(deque([1.0, 2.0])), [1, 2])
    same(mg.tensor([deque([1, 2]), deque([3, 4])]), [[1, 2], [3, 4]])
    assert mg.tensor(deque([True])).dtype is mg.bool


def test_numbers_of_numpy_are_compared_as_pythons() -> None:
    for actual, expected in ((1.0, np.float64(1)), (np.float32(1), 1.0), (1, np.int32(1))):
        mg.testing.assert_close(actual, expected)
    with pytest.raises(AssertionError, match="do not match: <class 'int'> != <class 'float'>"):
        mg.testing.assert_close(1, np.float64(1))
