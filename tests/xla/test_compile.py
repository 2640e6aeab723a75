"""A compiled step does what the step does: every call is compared with the same step run eagerly beside it."""

from __future__ import annotations

import copy
import gc
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F

pytest.importorskip("jax")

DEVICES = ["cpu", "xla"]


def alike(got: Any, expected: Any, rtol: float = 1e-5) -> None:
    if isinstance(expected, (list, tuple)):
        assert type(got) is type(expected) and len(got) == len(expected)
        for g, e in zip(got, expected):
            alike(g, e, rtol)
    elif isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for key in expected:
            alike(got[key], expected[key], rtol)
    elif isinstance(expected, mg.Tensor):
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_allclose(got.detach().cpu().numpy(), expected.detach().cpu().numpy(), rtol, 1e-6)
    else:
        assert got == expected


class Pair:
    """One program twice: `make(device)` gives a step and the tensors that it may change."""

    def __init__(self, make: Callable[[str], Any], device: str = "cpu", **settings: Any) -> None:
        mg.manual_seed(0)
        self.eager, self.state = make("cpu")
        mg.manual_seed(0)
        step, self.compiled_state = make(device)
        self.device, self.compiled = device, mg.compile(step, **settings)

    def call(self, *arguments: Any) -> None:
        placed = [a.detach().clone().to(self.device) if isinstance(a, mg.Tensor) else a for a in arguments]
        given = [a.detach().clone() if isinstance(a, mg.Tensor) else a for a in arguments]
        expected = self.eager(*given)
        alike(self.compiled(*placed), expected)
        alike(placed, given)
        alike(self.now(self.compiled_state), self.now(self.state))

    def now(self, state: Any) -> Any:
        found = []
        for s in state:
            tensors = list(s.parameters()) + list(s.buffers()) if isinstance(s, nn.Module) else [s]
            found += tensors + [g for t in tensors if (g := t.grad) is not None]
            assert len({t.device.type for t in found}) <= 1
        return found

    @property
    def traces(self) -> int:
        return len(self.compiled.retraces)


def mlp(device: str, *middle: Any) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), *middle, nn.Tanh(), nn.Linear(8, 1)).to(device)


def training(model: Any, optimizer: Any) -> Callable[..., Any]:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


OPTIMIZERS = {
    "SGD": {"lr": 0.1}, "momentum": {"lr": 0.1, "momentum": 0.9}, "nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "dampening": {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, "Adam": {"lr": 0.05}, "amsgrad": {"lr": 0.05, "amsgrad": True}, "AdamW": {"lr": 0.05},
    "NAdam": {"lr": 0.05}, "RAdam": {"lr": 0.05}, "Adamax": {"lr": 0.05}, "Adagrad": {"lr": 0.05}, "Adadelta": {"lr": 0.5}, "RMSprop": {"lr": 0.01},
    "centered": {"lr": 0.01, "centered": True, "momentum": 0.5}, "ASGD": {"lr": 0.1}, "Rprop": {"lr": 0.01}}
CLASSES = {"momentum": "SGD", "nesterov": "SGD", "dampening": "SGD", "amsgrad": "Adam", "centered": "RMSprop"}


@pytest.mark.parametrize(("name", "device"), [*((name, "cpu") for name in OPTIMIZERS), ("Adam", "xla"), ("momentum", "xla"), ("NAdam", "xla")])
def test_optimizers(name: str, device: str) -> None:
    def make(device: str) -> Any:
        model = mlp(device)
        optimizer = getattr(mg.optim, CLASSES.get(name, name))(model.parameters(), **OPTIMIZERS[name])
        return training(model, optimizer), [model]

    pair = Pair(make, device)
    x, y = mg.randn(16, 4), mg.randn(16, 1)
    for _ in range(4):
        pair.call(x, y)
    assert pair.traces <= 2, pair.compiled.retraces


def test_a_scheduler_is_passed_in() -> None:
    def make(device: str) -> Any:
        model = mlp(device)
        optimizer = mg.optim.Adam(model.parameters(), lr=0.1)
        schedulers.append(mg.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=10))
        return training(model, optimizer), [model]

    schedulers: list[Any] = []
    pair = Pair(make)
    for _ in range(6):
        pair.call(mg.randn(16, 4), mg.randn(16, 1))
        for scheduler in schedulers:
            scheduler.step()
    assert pair.traces == 1


@pytest.mark.parametrize("device", DEVICES)
def test_buffers_of_batch_norm_and_training_mode(device: str) -> None:
    models: list[Any] = []

    def make(device: str) -> Any:
        model = mlp(device, nn.BatchNorm1d(8))
        models.append(model)
        return training(model, mg.optim.SGD(model.parameters(), lr=0.1)), [model]

    pair = Pair(make, device)
    x, y = mg.randn(16, 4), mg.randn(16, 1)
    pair.call(x, y)
    pair.call(x, y)
    assert pair.traces == 1
    for model in models:
        model.eval()
    pair.call(x, y)
    assert pair.traces == 2 and "training" in pair.compiled.retraces[-1]
    for model in models:
        model.train()
    pair.call(x, y)
    assert pair.traces == 2  # the first program again


@pytest.mark.parametrize("device", DEVICES)
def test_mutation(device: str) -> None:
    def make(device: str) -> Any:
        table, leaf = mg.zeros(6, 3, device=device), mg.arange(6.0).reshape(2, 3).to(device).requires_grad_()
        row = table[1]

        def step(x: Any, i: Any) -> Any:
            leaf.grad = None
            y = mg.zeros_like(x)
            y[1:] += x[:-1] * leaf.sum()
            y[0] = leaf[0, 1]
            y.t()[0] *= 2
            y[i] = leaf[1]
            y[y > 3] = 1.0
            with mg.no_grad():
                table[2:5, ::2] += y[:3, :2]
                row.add_(1)
                x.mul_(0.5)
            (y * y).sum().backward()
            with mg.no_grad():
                leaf.sub_(0.1 * leaf.grad)
            return y.detach(), table, x

        return step, [table, leaf]

    pair = Pair(make, device)
    for k in range(3):
        pair.call(mg.randn(4, 3), mg.tensor([3, k % 2]))
    assert pair.traces == 1


def test_what_is_returned_is_what_was_given() -> None:
    kept = mg.ones(3)

    @mg.compile
    def step(x: Any) -> Any:
        x += 1
        kept.mul_(2)
        return {"x": x, "row": x[0], "kept": kept, "new": x * 2, "number": 3, "none": None}

    x = mg.zeros(2, 2)
    found = step(x)
    assert found["x"] is x and found["kept"] is kept and found["number"] == 3 and found["none"] is None
    found["row"].fill_(7.0)
    assert x[0].tolist() == [7, 7] and found["new"].tolist() == [[2, 2], [2, 2]]


def test_results_that_share_memory_do() -> None:
    @mg.compile
    def step(x: Any) -> Any:
        y = x * 2
        return y, y[0]

    for _ in range(2):
        y, row = step(mg.ones(2, 2))
        row.zero_()
        assert y.tolist() == [[0, 0], [2, 2]]


def test_each_call_gives_tensors_of_its_own() -> None:
    w = mg.ones(2, requires_grad=True)

    @mg.compile
    def step(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return x * 2

    first = step(mg.ones(2))
    gradient = w.grad
    second = step(mg.full((2,), 3.0))
    assert first.tolist() == [2, 2] and second.tolist() == [6, 6] and gradient.tolist() == [1, 1] and w.grad.tolist() == [3, 3]


def test_gradients_accumulate_and_none_is_none() -> None:
    def make(device: str) -> Any:
        w = mg.ones(3, requires_grad=True)

        def step(x: Any) -> Any:
            (w * x).sum().backward()

        return step, [w]

    pair = Pair(make)
    for _ in range(3):
        pair.call(mg.randn(3))
    assert pair.traces == 2  # without a gradient, and with one
    pair.state[0].grad = pair.compiled_state[0].grad = None
    pair.call(mg.randn(3))
    assert pair.traces == 2


@pytest.mark.parametrize("device", DEVICES)
def test_modules_are_compiled_with_their_backward(device: str) -> None:
    mg.manual_seed(0)
    eager = mlp("cpu", nn.BatchNorm1d(8))
    model = copy.deepcopy(eager).to(device)
    compiled = mg.compile(model)
    x = mg.randn(6, 4, requires_grad=True)
    dx = x.detach().to(device).requires_grad_()
    for _ in range(2):
        out, expected = compiled(dx * 2), eager(x * 2)
        (out ** 2).sum().backward()
        (expected ** 2).sum().backward()
        alike(out, expected)
        alike([dx.grad, *(p.grad for p in compiled.parameters()), *model.buffers()], [x.grad, *(p.grad for p in eager.parameters()), *eager.buffers()])
    assert len(compiled._compiled.retraces) == 1
    assert list(compiled.state_dict()) == [f"_orig_mod.{k}" for k in eager.state_dict()] and compiled.training is model.training
    with mg.no_grad():
        alike(compiled(dx), eager(x))
        assert not compiled(dx).requires_grad
    with pytest.raises(NotImplementedError, match="differentiated again"):
        mg.autograd.grad(compiled(dx).sum(), dx, create_graph=True)


def test_module_compile_in_place() -> None:
    model = mlp("cpu")
    expected = model(mg.ones(2, 4))
    model.compile()
    out = model(mg.ones(2, 4))
    alike(out, expected)
    out.sum().backward()
    assert model[0].weight.grad is not None


def test_a_backward_does_not_leave_the_step() -> None:
    w = mg.ones(3, requires_grad=True)
    step = mg.compile(lambda x: x.sum().backward())
    with pytest.raises(RuntimeError, match="outside"):
        step(w * 2)
    step((w * 2).detach().requires_grad_())


@pytest.mark.parametrize("device", DEVICES)
def test_functions_hooks_checkpoint_and_second_derivatives(device: str) -> None:
    class Cube(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, = ctx.saved_tensors
            return 3 * x ** 2 * g

    def make(device: str) -> Any:
        w = mg.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)

        def step(x: Any) -> Any:
            w.grad = None
            y = Cube.apply(w) * x
            y.register_hook(lambda g: g * 2)
            z = mg.utils.checkpoint.checkpoint(lambda v: (v.sin() * v).exp(), y * 0.01, use_reentrant=False)
            g, = mg.autograd.grad(z.sum(), w, create_graph=True)
            (g ** 2).sum().backward()
            return g.detach(), mg.func.grad(lambda v: (v ** 2).sum())(x), mg.func.vmap(lambda a: a * a.sum())(x.reshape(1, 3))

        return step, [w]

    pair = Pair(make, device)
    for _ in range(2):
        pair.call(mg.randn(3))
    assert pair.traces == 1


def test_random_numbers_are_new_in_each_call_and_repeat_with_the_seed() -> None:
    @mg.compile
    def step(x: Any) -> Any:
        return F.dropout(x, 0.5), mg.randn(1000), mg.rand(1000), mg.randint(0, 5, (1000,)), mg.randperm(50)

    mg.manual_seed(3)
    first, second = step(mg.ones(1000)), step(mg.ones(1000))
    mg.manual_seed(3)
    alike(step(mg.ones(1000)), first)
    alike(step(mg.ones(1000)), second)
    for a, b in zip(first, second):
        assert not mg.equal(a, b)
    dropped, normal, uniform, numbers, order = first
    assert set(dropped.tolist()) == {0.0, 2.0} and 400 < (dropped > 0).sum() < 600
    assert abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.2 and 0 <= uniform.min() < uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.1
    assert set(numbers.tolist()) == set(range(5)) and sorted(order.tolist()) == list(range(50))
    assert len(step.retraces) == 1


DRAWS: dict[str, Any] = {
    "uniform_": lambda: mg.empty(500).uniform_(-1, 3), "normal_": lambda: mg.empty(500).normal_(5, 2), "short": lambda: mg.rand(500, dtype=mg.float16),
    "complex": lambda: mg.randn(500, dtype=mg.complex64), "bernoulli": lambda: mg.bernoulli(mg.full((500,), 0.3)), "bernoulli_": lambda: mg.empty(500).bernoulli_(0.3),
    "exponential_": lambda: mg.empty(500).exponential_(2.0),
    "cauchy_": lambda: mg.empty(500).cauchy_(1, 2), "log_normal_": lambda: mg.empty(500).log_normal_(0, 0.1), "geometric_": lambda: mg.empty(500).geometric_(0.3),
    "random_": lambda: mg.empty(500, dtype=mg.int64).random_(), "random_, to": lambda: mg.empty(500).random_(3, 9), "multinomial": lambda: mg.multinomial(mg.ones(500, 3), 2),
    "normal": lambda: mg.normal(mg.full((500,), 5.0), mg.full((500,), 2.0)), "rrelu": lambda: F.rrelu(-mg.ones(500), training=True),
    "gumbel": lambda: F.gumbel_softmax(mg.ones(500, 3)), "transposed": lambda: F.dropout(mg.ones(500, 2).t(), 0.3), "init": lambda: mg.nn.init.kaiming_uniform_(mg.empty(50, 10)),
}


def test_every_kind_of_draw() -> None:
    """In the type, and about the mean, of what is drawn eagerly; new in each call, and repeated by the seed."""
    def draw() -> Any:
        return [one() for one in DRAWS.values()]

    step = mg.compile(draw)
    mg.manual_seed(3)
    found = step(), step(), draw()
    mg.manual_seed(3)
    for name, first, second, eager, again in zip(DRAWS, *found, step()):
        alike(again, first)
        assert not mg.equal(first, second) and first.dtype is eager.dtype and first.shape == eager.shape, name
        if name != "cauchy_":
            wide = eager.dtype.to_complex() if eager.is_complex() else mg.float64
            spread = eager.to(wide).std().item() / math.sqrt(eager.numel())
            assert abs(first.to(wide).mean().item() - eager.to(wide).mean().item()) < 8 * spread, name


SCALE = 2.0


class Settings:
    """Of a user's own."""

    def __init__(self) -> None:
        self.factor, self.table, self.inner = 3.0, {"a": 1.0, "b": [1, 2]}, {"deep": 1}


def test_numbers_of_python_are_guarded() -> None:
    global SCALE
    settings, weight = Settings(), 5.0

    def helper(x: Any) -> Any:
        return x * settings.factor + settings.table["a"] + settings.table["b"][1]

    @mg.compile
    def step(x: Any, times: int, name: str = "x") -> Any:
        return helper(x) * SCALE * weight * times, name

    def expected(times: int) -> float:
        return (settings.factor + settings.table["a"] + settings.table["b"][1]) * SCALE * weight * times

    def check(times: int, traces: int) -> None:
        assert step(mg.ones(1), times)[0].item() == expected(times) and len(step.retraces) == traces

    check(1, 1)
    check(1, 1)
    check(2, 2)
    settings.factor = 4.0
    check(2, 3)
    settings.table["a"] = 7.0
    check(2, 4)
    settings.table["b"][1] = 9
    check(2, 5)
    weight = 6.0
    check(2, 6)
    SCALE = 3.0
    check(2, 7)
    SCALE = 2.0
    check(2, 7)
    assert step(mg.ones(1), 2, name="y")[1] == "y"


def test_tensors_that_are_exchanged_are_noticed() -> None:
    state = {"h": mg.ones(2)}
    listed = [mg.ones(2)]
    model = nn.Linear(2, 2)

    @mg.compile
    def step(x: Any) -> Any:
        return x * state["h"] + listed[0] + model(x).detach() * 0

    assert step(mg.ones(2)).tolist() == [2, 2]
    state["h"] = mg.full((2,), 3.0)
    assert step(mg.ones(2)).tolist() == [4, 4]
    listed[0] = mg.full((2,), 5.0)
    assert step(mg.ones(2)).tolist() == [8, 8]
    state["h"].zero_()
    assert step(mg.ones(2)).tolist() == [5, 5] and len(step.retraces) == 3
    model.weight = nn.Parameter(mg.full((2, 2), float("inf")))
    assert step(mg.ones(2)).isnan().all()


def test_what_a_first_call_makes_is_there_in_the_second() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask: Any = None

        def forward(self, x: Any) -> Any:
            if self.mask is None:
                self.mask = mg.ones(x.shape).tril()
            self.mask.mul_(2)
            return x * self.mask

    def make(device: str) -> Any:
        model = Cached()
        return lambda x: model(x), [model]

    pair = Pair(make)
    for _ in range(4):
        pair.call(mg.ones(2, 2))
    assert pair.traces == 2


def test_a_step_that_changes_pythons_state_is_an_error() -> None:
    class Counting:
        calls = 0

        def __init__(self) -> None:
            self.count, self.state = 0, mg.ones(2)

        def step(self, x: Any) -> Any:
            self.count += 1
            return x * self.count

        def rebind(self, x: Any) -> Any:
            self.state = self.state * x
            return self.state

    counting = Counting()
    step = mg.compile(counting.step)
    assert [step(mg.ones(1)).item() for _ in range(2)] == [1, 2]
    with pytest.raises(NotImplementedError, match=r"self\.count"):
        step(mg.ones(1))
    rebind = mg.compile(counting.rebind)
    assert [rebind(mg.full((2,), 2.0)).tolist() for _ in range(2)] == [[2, 2], [4, 4]]
    with pytest.raises(NotImplementedError, match=r"self\.state"):
        rebind(mg.ones(2))


@pytest.mark.parametrize(("what", "function"), {
    "item": lambda x: x * x.sum().item(), "bool": lambda x: x if x.sum() > 0 else -x, "nonzero": lambda x: x.nonzero(), "mask": lambda x: x[x > 0],
    "slice": lambda x: x[:x.argmax()], "float": lambda x: float(x[0]), "numpy": lambda x: x.detach().numpy(), "tolist": lambda x: x.tolist(),
    "range": lambda x: list(range(x.argmax())), "unique": lambda x: x.unique(), "size": lambda x: mg.zeros(int(x[0])),
}.items())
def test_what_cannot_be_traced_says_so(what: str, function: Callable[..., Any]) -> None:
    x = mg.tensor([1.0, -2.0, 3.0])
    with pytest.raises(NotImplementedError) as caught:
        mg.compile(function)(x)
    text = str(caught.value)
    assert "test_compile.py" in text and "fix:" in text and "Tracer" not in text, text
    with pytest.warns(UserWarning, match="eagerly"):
        step = mg.compile(function, fallback=True)
        found = step(x)
    expected = function(x)
    alike(found, expected) if not isinstance(expected, np.ndarray) else np.testing.assert_array_equal(found, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(x)
    assert "runs eagerly" in str(step.explain())


def test_a_failed_trace_leaves_nothing_behind() -> None:
    model = mlp("cpu")
    optimizer = mg.optim.Adam(model.parameters())
    w = mg.ones(3, requires_grad=True)

    @mg.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        w.data.mul_(2)
        w.grad = mg.ones(3)
        return loss.item()

    before = copy.deepcopy(model.state_dict())
    with pytest.raises(NotImplementedError):
        step(mg.ones(2, 4))
    alike(model.state_dict(), before, 0)
    assert w.tolist() == [1, 1, 1] and w.grad is None and all(p.grad is None for p in model.parameters()) and w._version == 0
    assert all(float(s["step"]) == 0 for s in optimizer.state.values())
    model(mg.ones(2, 4)).sum().backward()  # eagerly, as if nothing had been
    optimizer.step()


def test_batches_of_a_large_data_set_are_not_copied_whole() -> None:
    data = mg.randn(1000, 8)
    step = mg.compile(lambda x: (x * 2).sum(0))
    for k in range(3):
        alike(step(data[k * 10:k * 10 + 10]), (data[k * 10:k * 10 + 10] * 2).sum(0))
    assert step.explain().copied_in == 10 * 8 * 4 and len(step.retraces) == 1
    column = mg.compile(lambda x: x.mul_(2))
    expected = data.clone()
    expected[:, 3] *= 2
    column(data[:, 3])
    alike(data, expected)


def test_arguments_that_share_memory() -> None:
    @mg.compile
    def step(a: Any, b: Any) -> Any:
        a += 1
        return a * b

    x = mg.zeros(4)
    step(x[:2], x[1:3])
    y = mg.zeros(4)
    expected = y.clone()
    a, b = expected[:2], expected[1:3]
    a += 1
    alike(step(y[:2], y[1:3]), a * b)
    alike(y, expected)
    p, q = mg.zeros(2), mg.ones(2)
    alike(step(p, q), mg.ones(2))
    z = mg.ones(2)
    alike(step(z, z), mg.full((2,), 4.0))


def test_explain() -> None:
    def make(device: str) -> Any:
        model = mlp(device)
        return training(model, mg.optim.Adam(model.parameters())), [model]

    mg.manual_seed(0)
    host = mg.compile(make("cpu")[0])
    assert str(host.explain()) == "not called yet"
    host(mg.ones(2, 4), mg.ones(2, 1))
    found = host.explain()
    assert found.copied_in > found.copied_out > 0 and found.donated_bytes == 0 and 'to("xla")' in str(found) and found.traces == 1
    device = mg.compile(make("xla")[0])
    device(mg.ones(2, 4).to("xla"), mg.ones(2, 1).to("xla"))
    found = device.explain()
    assert found.copied_in == found.copied_out == 0 and found.donated_bytes > 0 and 'to("xla")' not in str(found) and found.collectives == {}
    device(mg.ones(3, 4).to("xla"), mg.ones(3, 1).to("xla"))
    assert "other arguments" in str(device.explain())


def test_values_saved_outside_survive_a_compiled_write() -> None:
    x, w = mg.full((100,), 3.0, requires_grad=True), mg.full((100,), 2.0)
    z = (x * w).sum()
    mg.compile(lambda: w.zero_())()
    z.backward()
    assert x.grad.tolist() == [2.0] * 100


def test_programs_do_not_keep_arguments_alive() -> None:
    import weakref
    step = mg.compile(lambda x: x * 2)
    x = mg.ones(3)
    step(x)
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_nothing_of_jax_is_loaded_until_it_is_used() -> None:
    import subprocess
    import sys
    code = "import mutagrad as mg, sys; mg.loop(3, lambda i: None); mg.cond(mg.tensor(True), lambda: 1, lambda: 2); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_long_sums_of_products_are_as_exact_as_elsewhere() -> None:
    mg.manual_seed(0)
    a, b = mg.rand(300007), mg.rand(300007, 3)
    c, d = a[:300000].reshape(100, 30, 100), b[:300000].reshape(100, 100, 30, 3)

    def step(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a @ b, b.T @ a, a @ a, a[None] @ b, mg.einsum("abc,cabe->ea", c, d).sum(1), mg.einsum("abc,cabe->e", c, d)

    exact = step(*(x.double() for x in (a, b, c, d)))
    for found, wanted in zip(mg.compile(step)(a, b, c, d), exact):
        assert found.shape == wanted.shape and float(((found - wanted) / wanted).abs().max()) < 2e-6
