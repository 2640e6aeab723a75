"""Tensors on devices of XLA's, one operation at a time: the same values, gradients, views and writes as on the CPU.

Which operations are tried is a slice of the table in `samples/`; MUTAGRAD_SAMPLES=1 tries them all, which takes twenty minutes:
nearly all of it is XLA's compiling of each.
"""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from fuzz.generator import generate
from mutagrad import nn
from mutagrad.autograd import forward_ad
from mutagrad.func import grad, hessian, jacrev, jvp, vmap
from mutagrad.utils.checkpoint import checkpoint
from mutagrad.utils.data import DataLoader, TensorDataset
from mutagrad.xla import devices
from samples import SAMPLES, Sample, listed

pytest.importorskip("jax")
XLA = mg.device("xla", 0)
EVERY, PROGRAMS = (1, 200) if os.environ.get("MUTAGRAD_SAMPLES") else (60, 3)


def close(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    assert found.device == XLA and found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected.detach().cpu().numpy(), tolerance, tolerance / 100)


def both(function: Any, *values: Any) -> tuple[Any, Any]:
    """What a function gives on the device and on the CPU, and the gradients of its sum."""
    found = []
    for where in ("xla", "cpu"):
        leaves = [mg.tensor(v, device=where, requires_grad=True) for v in values]
        result = function(*leaves)
        result.sum().backward()
        found.append([result, *(x.grad for x in leaves)])
    for there, here in zip(*found):
        close(there, here)
    return found[0][0], found[1][0]


# ------------------------------------------------------------------------------------------------------------ operations

def run(sample: Sample, where: str) -> tuple[list[Any], list[Any]]:
    leaves = [mg.tensor(a, device=where, requires_grad=sample.grad) for a in sample.arrays()]
    given = [leaves[0].clone(), *leaves[1:]] if sample.writes else leaves
    arguments, settings = sample.bind(given, lambda array: mg.tensor(array, device=where))
    with mg.device(where):
        result = next(iter(sample.forms(mg).values()))(*arguments, **settings)
    results = [r for r in ((given[0],) if sample.writes else listed(result)) if isinstance(r, mg.Tensor)]
    losses = [(r.abs() if r.is_complex() else r).square().sum() for r in results if r.requires_grad]
    if losses:
        mg.stack([loss.double() for loss in losses]).sum().backward()
    return results, [x.grad for x in leaves]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sample", SAMPLES[::EVERY], ids=str)
def test_an_operation_and_its_gradients(sample: Sample) -> None:
    try:
        results, gradients = run(sample, "cpu")
    except mg.MutagradError:
        pytest.skip("refused on the CPU")
    found, derived = run(sample, "xla")
    for a, b in zip(found, results):
        close(a, b)
    for a, b in zip(derived, gradients):
        assert (a is None) == (b is None)
        if a is not None:
            close(a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["core", "aliases", "hooks"])
def test_random_mutating_programs(family: str) -> None:
    programs = [generate(seed, order=1, families=() if family == "core" else (family,)) for seed in range(4 * PROGRAMS)]
    programs = [p for p in programs if not p.in_one_buffer and not any(leaf.probe for leaf in p.leaves) and "numpy" not in p.source]
    done = 0
    for program in programs[:PROGRAMS]:
        losses, gradients = [], []
        try:
            for where in ("cpu", "xla"):
                leaves = [mg.tensor(a, device=where, requires_grad=True) for a in program.leaf_arrays(program.point)]
                with mg.device(where):
                    loss = program.run(mg, {leaf.name: x for leaf, x in zip(program.leaves, leaves)})["loss"]
                    if loss.requires_grad:
                        loss.backward()
                losses.append(loss.item())
                gradients.append([None if x.grad is None else x.grad.cpu().numpy() for x in leaves])
        except mg.MutagradError as error:
            assert not losses or "to numpy" in str(error), program.source  # it is refused on the CPU, too
            continue
        np.testing.assert_allclose(losses[1], losses[0], 1e-8, err_msg=program.source)
        for a, b in zip(*gradients):
            assert (a is None) == (b is None), program.source
            if a is not None:
                np.testing.assert_allclose(b, a, 1e-8, 1e-10, err_msg=program.source)
        done += 1
    assert done > 1


# -------------------------------------------------------------------------------------------------- mutation and aliasing

def test_views_and_writes_share_memory() -> None:
    x = mg.zeros(4, device="xla")
    view, bare = x[1:3], x.detach()
    view += 1
    bare[0] = 7
    x.data.mul_(2)
    x.view(2, 2).t()[0, 1] = 9
    assert x.tolist() == bare.tolist() == [14.0, 2.0, 9.0, 0.0] and view.tolist() == [2.0, 9.0]
    assert view.data_ptr() - x.data_ptr() == 4 and x.untyped_storage().data_ptr() == bare.untyped_storage().data_ptr()


def test_writes_are_differentiable() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        y[0] = x[1] * x[2]
        y[1:] += x[:-1]
        y[y > 3] = 0.5
        y[mg.tensor([0, 2], device=x.device)] *= 3
        y.t_() if y.ndim > 1 else y.neg_()
        return y

    both(program, [1.0, 2.0, 0.3, -1.0])


def test_an_element_at_a_time() -> None:
    def recurrence(x: Any) -> Any:
        y = mg.zeros_like(x)
        y[0] = x[0]
        for i in range(1, 12):
            y[i] = y[i - 1] * 0.5 + x[i]
        return y

    both(recurrence, list(np.linspace(-1, 1, 12)))


def test_what_was_saved_survives_a_write_in_place() -> None:
    x = mg.ones(100, device="xla", requires_grad=True)
    y = x * 3
    z = y * y
    with mg.no_grad():
        for i in range(5):
            y[i] = 100.0  # in place on the device, where nobody else holds the value
    z.sum().backward()
    assert x.grad.tolist() == [18.0] * 100


def test_values_that_were_read_stay_as_they_were() -> None:
    x = mg.zeros(8, device="xla")
    before, copied = x.cpu(), x.clone()
    shared = np.zeros(8, np.float32)
    x.copy_(mg.from_numpy(shared))
    x[3] = 5.0
    assert not shared.any() and before.tolist() == copied.tolist() == [0.0] * 8 and x[3].item() == 5.0
    array = np.zeros(3)
    y = mg.tensor(array, device="xla")
    array[0] = 1
    assert y.tolist() == [0.0, 0.0, 0.0]


def test_threads_write_to_one_tensor() -> None:
    x = mg.zeros(64, device="xla")

    def write(first: int) -> None:
        for i in range(first, 64, 4):
            x[i] = i
            x.sum()

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.tolist() == [float(i) for i in range(64)]


def test_threads_differentiate() -> None:
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        x = mg.full((5,), float(k), device="xla" if k % 2 else "cpu", requires_grad=True)
        (x.exp() * x).sum().backward()
        found[k] = x.grad.cpu()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, g in found.items():
        np.testing.assert_allclose(g.numpy(), np.full(5, np.exp(k) * (k + 1)), 1e-5)


# ----------------------------------------------------------------------------------------------------------- from and to

def test_gradients_find_their_way_back() -> None:
    a = mg.ones(3, requires_grad=True)
    b = mg.ones(3, device="xla", requires_grad=True)
    s = mg.tensor(2.0, requires_grad=True)
    ((a * 2).to("xla") * b * s).sum().backward()
    assert a.grad.device.type == s.grad.device.type == "cpu" and b.grad.device == XLA
    assert a.grad.tolist() == b.grad.tolist() == [4.0] * 3 and s.grad.item() == 6.0
    here = mg.zeros(3)
    here.copy_(b * 2)
    here[0] = b[1]
    b.grad = None
    here.sum().backward()
    assert b.grad.tolist() == [0.0, 3.0, 2.0] and b.grad.device == XLA


def test_a_tensor_says_where_it_is() -> None:
    x = mg.tensor([1.0, 2.0], device="xla")
    assert str(x) == "tensor([1., 2.], device='xla:0')" and x.get_device() == 0 and x.is_xla and not x.is_cpu and not x.is_cuda
    assert x.cpu().device == mg.device("cpu") and x.cpu().is_cpu and x.to("xla") is x and x.to("xla", copy=True) is not x
    assert x.to("cpu", mg.float64).dtype is mg.float64 and mg.zeros(1, dtype=mg.int32).to(x).dtype is mg.float32 and mg.zeros(1).to(x).device == XLA
    assert mg.zeros(1).type_as(x).device == XLA and x.sum().item() == 3.0 and x.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"can't convert xla:0 device type tensor to numpy\. Use Tensor\.cpu\(\)"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("make", [
    lambda **k: mg.zeros(2, 3, **k), lambda **k: mg.ones(2, **k), lambda **k: mg.full((2,), 3.0, **k), lambda **k: mg.empty(2, **k).zero_(),
    lambda **k: mg.rand(2, **k), lambda **k: mg.randn(2, **k), lambda **k: mg.randint(0, 5, (2,), **k), lambda **k: mg.arange(3, **k),
    lambda **k: mg.linspace(0, 1, 3, **k), lambda **k: mg.eye(2, **k), lambda **k: mg.tensor([1, 2], **k), lambda **k: mg.as_tensor([1.0], **k),
    lambda **k: mg.zeros_like(mg.ones(2), **k), lambda **k: mg.ones(2).new_full((2,), 1.5, **k), lambda **k: mg.normal(0.0, 1.0, (2,), **k),
    lambda **k: mg.randperm(4, **k), lambda **k: mg.tril_indices(2, 2, **k), lambda **k: nn.Linear(2, 2, **k).weight.detach(),
    lambda **k: mg.hann_window(4, **k), lambda **k: mg.empty_strided((2, 2), (1, 2), **k).zero_(), lambda **k: mg.scalar_tensor(2.0, **k)])
def test_factories(make: Any) -> None:
    mg.manual_seed(0)
    here = make()
    mg.manual_seed(0)
    close(make(device="xla"), here)
    with mg.device("xla"):
        mg.manual_seed(0)
        if make.__code__.co_names[:2] != ("zeros_like", "ones"):
            close(make(), here)


def test_new_ones_are_beside_those_they_are_like() -> None:
    x = mg.ones(2, device="xla")
    made = [mg.zeros_like(x), mg.rand_like(x), mg.full_like(x, 2.0), x.new_zeros(3), x.new_tensor([1]), mg.empty_like(x), x.new(3), x.new_ones(2, device="cpu")]
    assert [m.device.type for m in made] == ["xla"] * 7 + ["cpu"]
    mg.set_default_device("xla")
    try:
        assert mg.get_default_device() == mg.zeros(1).device == nn.LSTM(2, 3).weight_ih_l0.device == XLA
    finally:
        mg.set_default_device(None)
    assert mg.zeros(1).is_cpu and mg.Generator("xla").device.type == "xla"


def test_two_devices_are_an_error() -> None:
    x, y = mg.ones(3, device="xla"), mg.ones(3)
    for wrong in (lambda: x + y, lambda: mg.cat([x, y]), lambda: nn.functional.linear(x, mg.ones(2, 3)), lambda: y.add_(x), lambda: y[x > 0], lambda: mg.dot(y, x)):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices, xla:0 and cpu!"):
            wrong()
    with pytest.raises(RuntimeError, match="different device"):
        x.grad = y
    assert (x * mg.tensor(2.0)).device == x[mg.tensor([0, 1])].device == (2 * x).device == XLA
    assert y.tolist() == [1.0] * 3


def test_devices_that_are_not_there() -> None:
    for wrong in (lambda: mg.ones(1).to("xla:9"), lambda: mg.zeros(1, device="cuda"), lambda: mg.ones(1).cuda(), lambda: nn.Linear(1, 1).cuda(), lambda: mg.device(0)):
        with pytest.raises((NotImplementedError, AssertionError)):
            wrong()
    assert not mg.cuda.is_available() and mg.cuda.device_count() == 0


# --------------------------------------------------------------------------------------------------------------- autograd

def test_derivatives_of_derivatives_and_transforms() -> None:
    weight, points = mg.randn(3, 3, dtype=mg.float64), mg.randn(4, 3, dtype=mg.float64)

    def loss(w: Any, x: Any) -> Any:
        y = mg.zeros(3, dtype=w.dtype, device=x.device) + (w @ x).tanh()
        y[0] = x[1] * 2
        return (y ** 2).sum()

    there, points_there = weight.to("xla"), points.to("xla")
    close(vmap(grad(loss), (None, 0))(there, points_there), vmap(grad(loss), (None, 0))(weight, points))
    close(vmap(lambda x: x * 2 if x.sum() > 0 else -x)(points_there), vmap(lambda x: x * 2 if x.sum() > 0 else -x)(points))
    close(jacrev(lambda x: (there @ x).sin())(points_there[0]), jacrev(lambda x: (weight @ x).sin())(points[0]))
    close(hessian(lambda x: loss(there, x))(points_there[0]), hessian(lambda x: loss(weight, x))(points[0]))
    close(jvp(lambda x: (there @ x).sin(), (points_there[0],), (points_there[1],))[1], jvp(lambda x: (weight @ x).sin(), (points[0],), (points[1],))[1])
    with forward_ad.dual_level():
        moved = forward_ad.unpack_dual(forward_ad.make_dual(points_there, points_there).sin()).tangent
    close(moved, points.cos() * points)
    w = there.clone().requires_grad_()
    g, = mg.autograd.grad((w.exp() * w).sum(), w, create_graph=True)
    second, = mg.autograd.grad((g ** 2).sum(), w)
    close(second, 2 * weight.exp() ** 2 * (weight + 1) * (weight + 2))


class Square(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x ** 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        assert mg.zeros(1).is_cpu and g.device == XLA
        return 2 * ctx.saved_tensors[0] * g


def test_users_code_in_a_sweep() -> None:
    x = mg.tensor([1.0, 2.0], device="xla", requires_grad=True)
    seen = []
    y = Square.apply(x)
    y.register_hook(lambda g: seen.append(g.device) or g * 3)
    y.retain_grad()
    y.sum().backward()
    assert seen == [XLA] and y.grad.device == XLA and x.grad.tolist() == [6.0, 12.0]
    for reentrant in (False, True):
        x.grad = None
        checkpoint(lambda x: (x.sin() * mg.ones(2, device=x.device)).sum(), x, use_reentrant=reentrant).backward()
        close(x.grad, x.detach().cpu().cos())


def test_an_adjoint_of_zero_is_on_the_device_too() -> None:
    x, y = mg.ones(40, device="xla", requires_grad=True), mg.zeros(80, device="xla")
    y[:40] = Square.apply(x)  # whose backward looks where the adjoint is
    y[:40] = x.sin()
    y[:40] = 0.0
    (y[:40].sum() + x.sum()).backward()
    assert x.grad.tolist() == [1.0] * 40


# ----------------------------------------------------------------------------------------------------- models and files

def test_models_move_with_what_they_hold() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to("xla")
    x = mg.randn(4, 3)
    same = copy.deepcopy(model)
    expected = copy.deepcopy(model).cpu()(x)
    close(model(x.to("xla")), expected, 1e-4)
    assert {p.device for p in (*same.parameters(), *same.buffers())} == {XLA}
    again = pickle.loads(pickle.dumps(model))
    file, whole = io.BytesIO(), io.BytesIO()
    mg.save(model.state_dict(), file)
    mg.save(model, whole)

    def loaded(source: io.BytesIO, **settings: Any) -> Any:
        source.seek(0)
        return mg.load(source, **settings)

    places = [next(iter(state)).device.type for state in (
        again.parameters(), loaded(file).values(), loaded(file, map_location="cpu").values(), loaded(whole, weights_only=False).parameters(),
        loaded(whole, weights_only=False, map_location="cpu").parameters(), loaded(file, map_location=mg.device("xla")).values())]
    assert places == ["xla", "xla", "cpu", "xla", "cpu", "xla"]
    plain = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    plain.load_state_dict(loaded(file))
    assert {p.device.type for p in plain.parameters()} == {"cpu"} and mg.equal(plain[0].weight, model[0].weight.cpu())
    model.load_state_dict(plain.state_dict())
    assert model[0].weight.device == XLA


def train(device: Any) -> list[float]:
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3)).to(device)
    optimizer = mg.optim.AdamW(model.parameters(), lr=0.05)
    data = TensorDataset(mg.randn(32, 4), mg.randint(0, 3, (32,)))
    losses = []
    for inputs, targets in DataLoader(data, batch_size=16, shuffle=True):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device)
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    state = optimizer.state[model[0].weight]
    assert state["exp_avg"].device == model[0].weight.device and state["step"].is_cpu
    return losses


def test_training() -> None:
    device = mg.device("cuda" if mg.cuda.is_available() else "xla")
    np.testing.assert_allclose(train(device), train("cpu"), 1e-4)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adafactor", "LBFGS", "NAdam", "Rprop"])
def test_optimizers(name: str) -> None:
    found = []
    for where in ("xla", "cpu"):
        p = mg.tensor([[1.0, -2.0], [0.5, 3.0]], device=where, requires_grad=True)
        optimizer = getattr(mg.optim, name)([p], lr=0.1)

        def closure(p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (p ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        optimizer.step(closure)
        found.append(p)
    close(*found, 1e-5)


# ----------------------------------------------------------------------------------------------------- PyTorch's names

@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """JAX's CPU as what "cuda" means."""
    monkeypatch.setitem(devices.PLATFORMS, "cuda", "cpu")
    yield
    devices._current.clear()


@pytest.mark.usefixtures("gpu")
def test_cudas_names() -> None:
    assert mg.cuda.is_available() and mg.cuda.device_count() >= 1 and mg.cuda.current_device() == 0 and mg.accelerator.current_accelerator() == mg.device("cuda")
    x = mg.ones(2).cuda()
    assert x.is_cuda and x.device == mg.device("cuda:0") == mg.device(0) and str(x) == "tensor([1., 1.], device='cuda:0')" and x.type() == "mutagrad.cuda.FloatTensor"
    assert nn.Linear(2, 2).cuda().weight.is_cuda and x.to(0) is x and mg.zeros(1, device=0).is_cuda and mg.ones(2).pin_memory().is_cpu
    with pytest.raises(RuntimeError, match="two devices, cuda:0 and cpu"):
        x + mg.ones(2)
    mg.cuda.set_device(0)
    mg.cuda.manual_seed_all(0)
    mg.cuda.synchronize()
    assert isinstance(mg.cuda.get_device_name(), str) and mg.cuda.get_device_properties(0).name and mg.cuda.memory_allocated() >= 0 and len(mg.cuda.mem_get_info()) == 2
    start, end = mg.cuda.Event(enable_timing=True), mg.cuda.Event(enable_timing=True)
    start.record()
    with mg.cuda.stream(mg.cuda.Stream()):
        x = x @ mg.ones(2, 2, device="cuda")
    end.record()
    assert start.elapsed_time(end) > 0
    inputs, = next(iter(DataLoader(TensorDataset(mg.ones(2, 2)), pin_memory=True)))
    assert inputs.is_cpu


@pytest.mark.usefixtures("gpu")
def test_mixed_precision() -> None:
    model, scaler = nn.Linear(2, 2).cuda(), mg.amp.GradScaler("cuda", init_scale=8.0)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    with mg.autocast("cuda", dtype=mg.bfloat16):
        found = model(mg.ones(3, 2, device="cuda"))
        assert found.dtype is mg.bfloat16 and (mg.ones(2, 2) @ mg.ones(2, 2)).dtype is mg.float32 and mg.is_autocast_enabled("cuda")
        loss = nn.functional.mse_loss(found, mg.zeros(3, 2, device="cuda"))
    scaler.scale(loss).backward()
    before = model.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert loss.dtype is mg.float32 and not mg.equal(before, model.weight) and scaler.get_scale() == 8.0


@pytest.mark.usefixtures("gpu")
def test_files_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    mg.save({"x": mg.ones(2, device="cuda")}, file)
    file.seek(0)
    assert mg.load(file)["x"].is_cuda
    monkeypatch.setitem(devices.PLATFORMS, "cuda", "cuda")
    file.seek(0)
    with pytest.raises((NotImplementedError, AssertionError), match="CUDA"):
        mg.load(file)
    file.seek(0)
    assert mg.load(file, map_location="cpu")["x"].is_cpu


def isolated(program: str, **environment: str) -> str:
    with warnings.catch_warnings():
        found = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    assert not found.returncode, found.stderr
    return found.stdout.strip()


def test_a_plain_session_does_not_load_jax() -> None:
    assert isolated("import sys, mutagrad as mg; x = mg.ones(2, device='cpu', requires_grad=True); (x * 2).sum().backward(); x.to('cpu'); "
                    "print(mg.cuda.is_available(), mg.accelerator.is_available(), x.device, 'jax' in sys.modules, 'mutagrad.arrays.xla' in sys.modules)") == "False False cpu False False"


def test_without_jax_an_error_names_the_extra() -> None:
    hidden = "import sys; sys.modules['jax'] = None; import mutagrad as mg\ntry:\n    mg.ones(1).to('xla')\nexcept ImportError as error:\n    print(error.fix)"
    assert isolated(hidden) == "pip install 'mutagrad[xla]'"


def test_several_devices() -> None:
    program = """
import mutagrad as mg
x = mg.ones(3, device="xla:1", requires_grad=True)
y = (x.to("xla:5") * 2).to("xla:1") * x
y[0] = 5.
y.sum().backward()
assert x.grad.device == mg.device("xla:1") and x.grad.tolist() == [0., 4., 4.], x.grad
try:
    x + mg.ones(3, device="xla:2")
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    assert isolated(program, XLA_FLAGS=flags).endswith("found at least two devices, xla:1 and xla:2!")


@pytest.mark.parametrize("put", [lambda x: x.to("xla"), lambda x: mg.zeros(x.shape, device="xla").copy_(x),
                                 lambda x: mg.as_tensor(x.numpy(), device="xla")], ids=["to", "copy_", "as_tensor"])
def test_what_is_put_on_a_device_shares_no_memory(put: Any) -> None:
    """Whether JAX would share it depends on where it lies, so there are several."""
    for _ in range(12):
        x = mg.ones(512, 512)
        y = put(x)
        x.fill_(7.0)
        assert y.sum().item() == 512 * 512


def test_what_a_program_is_given_may_change_while_it_runs() -> None:
    w, x = (mg.rand(500, 500) / 500).to("xla"), mg.ones(500, 500)

    def step(x: Any) -> Any:
        y = w
        for _ in range(10):
            y = y @ w
        return (y * 0).sum() + x.sum()

    compiled = mg.compile(step)
    for _ in range(15):
        x.fill_(1.0)
        result = compiled(x)
        x.fill_(7.0)
        assert result.item() == 500 * 500


def test_an_index_on_a_device_writes_to_no_tensor_of_the_cpu() -> None:
    x, y, index = mg.arange(4.0), mg.arange(4.0).to("xla"), mg.tensor([0, 1])
    for key in (index.to("xla"), (x > 1).to("xla")):
        with pytest.raises(RuntimeError, match=r"indices should be either on cpu or on the same device"):
            x[key] = 5.0
    assert x.tolist() == [0, 1, 2, 3]
    x[mg.tensor(1).to("xla")], y[index] = 5.0, 5.0
    assert x.tolist() == [0, 5, 2, 3] and y.tolist() == [5, 5, 2, 3]
