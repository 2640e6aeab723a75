"""Programs that were once wrong when compiled: each is run with the step as it is, and with the step compiled."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.nn import functional as F
from mutagrad.xla import compile as compiling

pytest.importorskip("jax")

PROGRAMS: list[Callable[..., Any]] = []
K = 2.0


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


def T(*values: float) -> Any:
    return mg.tensor(list(values), dtype=mg.float32)


def plain(value: Any) -> Any:
    if isinstance(value, mg.Tensor):
        return value.requires_grad, value.detach().cpu().numpy().tolist()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_as_eager(function: Callable[..., Any]) -> None:
    mg.manual_seed(0)
    expected = plain(function(lambda step: step))
    mg.manual_seed(0)
    got = plain(function(mg.compile))
    alike(got, expected)


def alike(got: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            alike(g, e)
    elif isinstance(expected, float):
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)
    else:
        assert got == expected


@program
def a_backward_inside_and_an_open_result(c: Any) -> Any:
    w = T(1, 2).requires_grad_()

    def step(x: Any) -> Any:
        (w * x).sum().backward()
        return (w * x).sum()

    g = c(step)
    out = g(T(1, 2))
    out.backward()
    return w.grad, g(T(3, 4)), w.grad


@program
def gradients_of_arguments(c: Any) -> Any:
    a, b = T(1).requires_grad_(), T(2).requires_grad_()
    g = c(lambda w, x: (w * x).sum().backward())
    for _ in range(3):
        g(a, T(1))
        g(b, T(10))
    return a.grad, b.grad


@program
def views_of_what_is_captured(c: Any) -> Any:
    data = mg.arange(12.0).reshape(3, 4)
    g = c(lambda row: row - data.mean())
    return [g(data[i]) for i in range(3)]


@program
def an_argument_that_is_captured(c: Any) -> Any:
    w = T(1, 2, 3)

    def step(a: Any) -> Any:
        a.add_(1)
        return w * 2 + a.sum()

    g = c(step)
    return g(w), g(T(1, 2, 3)), w


@program
def results_on_one_memory(c: Any) -> Any:
    w = T(1, 2, 3, 4).requires_grad_()

    def step(x: Any) -> Any:
        y = w * x
        return y[:2], y[2:], y

    a, b, y = c(step)(T(1, 2, 3, 4))
    (a.sum() * 2 + b.sum() + y.sum()).backward()
    return w.grad


@program
def what_is_not_reached_has_no_gradient(c: Any) -> Any:
    w, v = T(1, 2).requires_grad_(), T(1, 2).requires_grad_()
    a, _ = c(lambda x: (w * x, v * x))(T(1, 2))
    a.sum().backward()
    return w.grad, v.grad


@program
def swapped_state_of_a_while(c: Any) -> Any:
    return c(lambda a, b: mg.while_loop(lambda a, b: a.sum() < b.sum(), lambda a, b: (b, a), (a, b)))(T(1), T(2))


@program
def detached_results(c: Any) -> Any:
    w = T(1, 2, 3).requires_grad_()
    g = c(lambda: (w.detach(), w.detach()[1:], w[1:], w))
    return g()


@program
def dropout_in_a_checkpoint(c: Any) -> Any:
    w = mg.ones(100, requires_grad=True)

    def step() -> Any:
        y = mg.utils.checkpoint.checkpoint(lambda w: F.dropout(w * 1, 0.5), w, use_reentrant=False)
        y.sum().backward()
        return y.detach()

    return bool((c(step)() == w.grad).all())


@program
def counted_once(c: Any) -> Any:
    w, count = T(1, 2).requires_grad_(), [0]

    def step(x: Any) -> Any:
        count[0] += 1
        return w * x * count[0]

    return c(step)(T(1, 2)), count[0]


@program
def rebinding(c: Any) -> Any:
    global K
    found = []

    class Settings:
        k, scale = 2.0, (1.0, 2.0)

    class Slotted:
        __slots__ = ("k",)

    settings, slotted, box, act = Settings(), Slotted(), {"w": T(1)}, mg.sin
    slotted.k = 1.0
    model = nn.Linear(1, 1)

    def helper(x: Any, power: int = 2) -> Any:
        return x ** power

    def step(x: Any) -> Any:
        made = helper(x) * K + settings.k + settings.scale[0] + slotted.k + box["w"] + act(x) + getattr(settings, "extra", 0.0)
        return made + model(x).detach()

    g = c(step)

    def call() -> None:
        found.append(g(T(1)))

    call()
    K = 3.0
    call()
    Settings.k = 5.0
    call()
    settings.k = 7.0
    call()
    settings.scale = (4.0, 2.0)
    call()
    slotted.k = 9.0
    call()
    box = {"w": T(11)}
    call()
    act = mg.cos
    call()
    helper.__defaults__ = (3,)
    call()
    model = nn.Linear(1, 1)
    model.weight.data.fill_(2.0)
    model.bias.data.fill_(1.0)
    call()
    model.weight.data = mg.full((1, 1), 5.0)
    call()
    K = 2.0
    return found


@program
def numpy_arguments(c: Any) -> Any:
    g = c(lambda a, x: x * float(a[0]))
    return [g(np.array([float(i)]), T(1)) for i in range(4)]


@program
def optimizers_that_change(c: Any) -> Any:
    a, b = T(1, 2).requires_grad_(), T(3, 4).requires_grad_()
    optimizer = mg.optim.SGD([a, b], lr=0.1, momentum=0.9)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        ((a * x).sum() + (b * x).sum()).backward()
        optimizer.step()

    g, x = c(step), T(1, 2)
    g(x)
    state = copy.deepcopy(optimizer.state_dict())
    g(x)
    optimizer.load_state_dict(state)
    g(x)
    b.requires_grad_(False)
    g(x)
    b.requires_grad_(True)
    g(x)
    optimizer.param_groups[0]["params"] = [a]
    g(x)
    optimizer.state[a]["momentum_buffer"] = T(5, 5)
    g(x)
    return a, b


@program
def layers_and_hooks_that_change(c: Any) -> Any:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU())
    with mg.no_grad():
        model[0].weight.copy_(mg.eye(2))
    g = c(lambda x: model(x).detach())
    found = [g(T(-1, 2))]
    model[1] = nn.Tanh()
    found.append(g(T(-1, 2)).sign())
    handle = model.register_forward_hook(lambda *_: T(7, 7))
    found.append(g(T(-1, 2)))
    handle.remove()
    model.register_forward_hook(lambda *_: T(8, 8))
    found.append(g(T(-1, 2)))
    return found


@program
def hooks_on_tensors(c: Any) -> Any:
    w = T(1, 2).requires_grad_()
    g = c(lambda x: (w * x).sum().backward())
    g(T(1, 1))
    handle = w.register_hook(lambda grad: grad * 10)
    g(T(1, 1))
    handle.remove()
    g(T(1, 1))
    return w.grad


@program
def a_module_that_was_compiled_is_copied(c: Any) -> Any:
    model = nn.Linear(2, 1)
    with mg.no_grad():
        model.weight.fill_(1.0)
        model.bias.fill_(0.0)
    if c is mg.compile:
        model.compile()
    first = model(T(1, 2)).detach()
    other = copy.deepcopy(model)
    with mg.no_grad():
        other.weight.fill_(3.0)
    return first, other(T(1, 2)).detach(), model(T(1, 2)).detach()


@program
def compiled_inside_vmap(c: Any) -> Any:
    return mg.func.vmap(c(lambda x: x * x.sum()))(mg.arange(6.0).reshape(2, 3))


@program
def backward_inside_a_loop(c: Any) -> Any:
    def step(x: Any) -> Any:
        y = x.clone()

        def body(i: Any) -> None:
            leaf = y.detach().requires_grad_()
            g, = mg.autograd.grad((leaf ** 2).sum(), leaf)
            y.sub_(0.1 * g)

        mg.loop(3, body)
        return y

    return [round(v, 5) for v in c(step)(T(1, 2)).tolist()]


def test_a_history_on_memory_from_outside_is_refused() -> None:
    w, buffer = T(1, 2).requires_grad_(), mg.zeros(2)
    with pytest.raises(NotImplementedError, match="has a history"):
        mg.compile(lambda x: buffer.__setitem__(1, w[0] * x))(mg.tensor(2.0))
    assert buffer.tolist() == [0, 0] and not buffer.requires_grad


def test_a_cache_is_filled_once_for_each_kind_of_argument() -> None:
    cache: dict[Any, Any] = {}

    def step(x: Any) -> Any:
        if x.shape not in cache:
            cache[x.shape] = len(x.shape)
        return x * cache[x.shape]

    compiled = mg.compile(step)
    for _ in range(2):
        for dims in range(1, 6):
            assert compiled(mg.ones((2,) * dims)).sum().item() == dims * 2**dims


def test_what_a_step_does_to_python_in_every_call_is_an_error() -> None:
    model, log = nn.Linear(2, 1), []
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    scheduler = mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def stepping(x: Any) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        scheduler.step()

    def logging(x: Any) -> Any:
        log.append(1)
        return x * 2

    for function in (stepping, logging):
        step = mg.compile(function)
        with pytest.raises(NotImplementedError, match="changes Python's state"):
            for _ in range(3):
                step(mg.ones(1, 2))
    assert len(log) == 3


def test_seeding_inside_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="seeded"):
        mg.compile(lambda: mg.manual_seed(0))()


def test_a_branch_returns_what_it_makes() -> None:
    def step(x: Any) -> Any:
        return mg.cond(x.sum() > 0, lambda: x, lambda: x * 2)

    with pytest.raises(NotImplementedError, match="not its own"):
        mg.compile(step)(T(1))


@pytest.mark.parametrize("device", ["cpu", "xla"])
def test_threads_that_write_the_same_memory(device: str) -> None:
    w = mg.zeros(3).to(device)
    step = mg.compile(lambda: w.add_(1))
    step()

    def work() -> None:
        for _ in range(50):
            step()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert w.tolist() == [201, 201, 201]


@pytest.mark.parametrize("work", [lambda w, n: n.sum().item(), lambda w, n: w[2:5].add_(1)], ids=["read", "write"])
def test_threads_that_use_what_a_program_changes_in_place(work: Callable[..., Any]) -> None:
    w, n, stop, found = mg.zeros(64).to("xla"), mg.zeros(64).to("xla"), threading.Event(), []

    def step() -> None:
        n.add_(w.sum())
        w.add_(1)

    def works() -> None:
        while not stop.is_set():
            try:
                work(w, n)
            except Exception as error:
                found.append(error)

    compiled, other, interval = mg.compile(step), threading.Thread(target=works), sys.getswitchinterval()
    compiled()
    sys.setswitchinterval(1e-6)
    try:
        other.start()
        for _ in range(1500):
            compiled()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()
    assert not found, found[0]


def test_programs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PROGRAMS", 5)
    step = mg.compile(lambda x, k: x * k)
    for i in range(8):
        step(T(1), float(i))
    assert step.explain().programs == 5


@program
def methods_of_the_users_own(c: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.w = T(1, 2)

        def helper(self, x: Any) -> Any:
            return x * self.w

        def step(self, x: Any) -> Any:
            return self.helper(x) + 1

    model = Model()
    g = c(model.step)
    found = [g(T(i, 2)) for i in range(5)]
    assert c is not mg.compile or len(g.retraces) == 1
    return found


def test_a_step_that_moves_tensors_leaves_them_as_they_were() -> None:
    a, b, c = T(1, 2).requires_grad_(), T(3, 4), T(5, 6)
    memories = [t.data_ptr() for t in (a, b, c)]

    def step() -> None:
        with mg.no_grad():
            c.add_(1)
        a.data = T(7, 8)
        b.data = T(9, 10)

    with pytest.raises(NotImplementedError, match="another memory"):
        mg.compile(step)()
    assert [t.data_ptr() for t in (a, b, c)] == memories and [t.tolist() for t in (a, b, c)] == [[1, 2], [3, 4], [5, 6]]
    assert c._version == 0 and a.is_leaf and a.requires_grad


def test_what_a_failed_trace_has_made_says_so() -> None:
    kept: list[Any] = []

    def step(x: Any) -> Any:
        kept.append(x * 2)
        return x.item()

    with pytest.raises(NotImplementedError, match="item"):
        mg.compile(step)(mg.tensor(1.0))
    with pytest.raises(NotImplementedError, match="could not be traced"):
        kept[0] + 1


def test_a_step_that_changes_python_runs_as_it_is_with_fallback() -> None:
    count = [0]

    def step(x: Any) -> Any:
        count[0] += 1
        return x * count[0]

    compiled = mg.compile(step, fallback=True)
    with pytest.warns(UserWarning, match="eagerly"):
        found = [compiled(T(1)).item() for _ in range(5)]
    assert found == [1, 2, 3, 4, 5] and count == [5]


def test_vmap_inside_a_step_and_what_comes_after() -> None:
    """What is computed of numbers alone belongs to the step, after a vmap in it, too."""
    def step(x: Any) -> Any:
        y = mg.func.vmap(lambda a: a * 2)(x)
        z = mg.add(1.0, 2.0)
        z += 1
        return y, z

    compiled = mg.compile(step)
    assert [compiled(mg.ones(2, 1))[1].item() for _ in range(3)] == [4, 4, 4]


def test_reset_forgets_all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PROGRAMS", 5)
    step = mg.compile(lambda x, k: x * k)
    for i in range(3):
        step(T(1), float(i))
    mg.compiler.reset()
    for i in range(8):
        step(T(1), float(i))
    assert step.explain().programs == 5


def test_what_a_product_of_short_floats_knows_of_a_tensor_ends_with_its_next_write() -> None:
    """Products go by the short values that a tensor was made of, while it has these."""
    y = mg.randn(8, 8).bfloat16().to("xla").float()
    other = mg.randn(8, 8).bfloat16().to("xla").float()
    mg.compile(lambda: y.add_(1.0))()
    np.testing.assert_allclose((y @ other).cpu().numpy(), (y.cpu() @ other.cpu()).numpy(), 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "ASGD", "Rprop"])
def test_settings_and_counts_that_change_between_steps_are_those_of_the_next_step(name: str) -> None:
    """A step goes by numbers that were computed ahead; other rates, counts from a file and tensors for rates count."""
    def run(device: str, compiled: bool) -> Any:
        p = mg.tensor([1.0, -2.0, 3.0], device=device, requires_grad=True)
        optimizer = getattr(mg.optim, name)([p], lr=0.1)

        def step() -> None:
            optimizer.zero_grad()
            (p ** 2).sum().backward()
            optimizer.step()

        once = mg.compile(step) if compiled else step
        for k in range(70):
            if k == 3:
                optimizer.param_groups[0]["lr"] = 0.05
            if k == 6 and "step" in optimizer.state[p]:
                optimizer.state[p]["step"].fill_(2.0)
            if k == 9:
                optimizer.param_groups[0]["lr"] = mg.tensor(0.2)
            if k == 11 and name != "Rprop":
                optimizer.param_groups[0]["lr"].mul_(0.5)
            once()
        return p.detach().cpu().numpy()

    np.testing.assert_allclose(run("xla", True), run("cpu", False), 1e-5, 1e-6)


@program
def tensors_that_begin_or_stop_to_require_a_gradient(c: Any) -> Any:
    a, b = T(1, 2), T(3, 4).requires_grad_()

    def step(x: Any) -> Any:
        a.requires_grad = True
        b.requires_grad_(False)
        x.requires_grad_()
        (a * b * x).sum().backward()
        return x

    g, xs = c(step), [T(1, 1), T(2, 2), T(3, 3)]
    found = [g(x) for x in xs]
    return a, a.grad, b, b.grad, found, [x.grad for x in xs], [f is x for f, x in zip(found, xs)]


@program
def parameters_that_are_frozen_for_a_while(c: Any) -> Any:
    mg.manual_seed(0)
    model, z = nn.Linear(2, 1), T(1, 2).requires_grad_()

    def step(x: Any) -> Any:
        model.requires_grad_(False)
        model(x * z).sum().backward()
        model.requires_grad_(True)
        return model(x).sum()

    g = c(step)
    for _ in range(3):
        g(T(1, 1)).backward()
    return z.grad, [(p, p.grad) for p in model.parameters()]


def test_a_history_from_where_a_gradient_is_first_required_inside_is_refused() -> None:
    model = nn.Linear(2, 1).requires_grad_(False)
    with pytest.raises(NotImplementedError, match=r"requires_grad_\(\) inside the step"):
        mg.compile(lambda x: model.requires_grad_(True)(x).sum())(T(1, 2))
    assert not model.weight.requires_grad


class Own(mg.Tensor):
    pass


@program
def classes_of_results(c: Any) -> Any:
    w = T(1, 2).requires_grad_()

    def step(x: Any) -> Any:
        named = x * 3
        named.scale = 2.0
        return nn.Parameter(x * 2), nn.Buffer(x), (w * x).as_subclass(Own), named, (x * 2)[1:].detach().requires_grad_()

    g = c(step)
    found = [g(T(1, 2)), g(T(3, 4))]
    for parameter, _, own, _, part in found:
        (parameter * parameter).sum().backward()
        own.sum().backward()
        (part * part).sum().backward()
    return [[(type(t).__name__, t, t.is_leaf) for t in row] + [row[0].grad, row[3].scale, row[4].grad]
            for row in found], w.grad


@program
def results_that_are_swept_twice(c: Any) -> Any:
    w = T(1, 2).requires_grad_()

    def shared(x: Any) -> Any:
        y = (w * x).exp()
        return y.sum().exp(), (y * y).sum()

    def swept(function: Callable[..., Any], *, retain: bool = False) -> list[str]:
        found, results = [], function(T(1, 1))
        for result in (results[0], results[-1], results[0]):
            try:
                result.backward(retain_graph=retain)
                found.append("swept")
            except RuntimeError as error:
                assert "are gone" in str(error)
                found.append("refused")
        return found

    one, apart = c(lambda x: ((w * x).sum().exp(),)), c(lambda x: ((w * x).exp().sum(), (w * w).sum()))
    linear = c(lambda x: ((w + x).sum(),))
    return [swept(one), swept(one, retain=True), swept(c(shared)), swept(apart), swept(linear)], w.grad


@program
def transforms_of_a_compiled_function(c: Any) -> Any:
    f, x = c(lambda x: (x ** 3).sum()), T(1, 2)
    f(x)
    with mg.autograd.forward_ad.dual_level():
        dual = mg.autograd.forward_ad.make_dual(x, T(1, 0))
        tangent = mg.autograd.forward_ad.unpack_dual(f(dual)).tangent
    return (mg.func.grad(f)(x), mg.func.vjp(f, x)[1](mg.tensor(1.0)), mg.func.jvp(f, (x,), (T(1, 0),)), tangent,
            mg.func.hessian(f)(x), mg.func.vmap(mg.func.grad(f))(mg.arange(6.0).reshape(3, 2)),
            mg.autograd.functional.hessian(f, x), mg.autograd.functional.jvp(f, x, T(1, 0)), f(x))


@program
def optimizers_of_whole_parameters(c: Any) -> Any:
    mg.manual_seed(0)
    found = []
    for make in (mg.optim.Adafactor, mg.optim.Muon):
        w, x = mg.randn(3, 2).requires_grad_(), mg.randn(4, 3)
        optimizer = make([w], lr=0.1)

        def step(x: Any, w: Any = w, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            ((x @ w) ** 2).sum().backward()
            optimizer.step()

        g = c(step)
        for i in range(4):
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            g(x)
        assert c is not mg.compile or len(g.retraces) == 1
        name = "maximize" if make is mg.optim.Adafactor else "nesterov"
        optimizer.param_groups[0][name] = not optimizer.param_groups[0][name]
        g(x)
        found += [w, {k: v.tolist() for k, v in optimizer.state[w].items()}.get("step")]
    return found


@program
def averages_of_models(c: Any) -> Any:
    found = []
    for settings in ({}, {"avg_fn": mg.optim.swa_utils.get_swa_avg_fn()},
                     {"multi_avg_fn": mg.optim.swa_utils.get_ema_multi_avg_fn(0.9)}):
        mg.manual_seed(0)
        model = nn.Linear(2, 1)
        averaged = mg.optim.swa_utils.AveragedModel(model, **settings)  # type: ignore[arg-type]

        def step(x: Any, model: Any = model, averaged: Any = averaged) -> None:
            with mg.no_grad():
                model.weight.mul_(x)
            averaged.update_parameters(model)

        g = c(step)
        for i in range(4):
            g(mg.tensor(float(i + 1)))
        found += [averaged.module.weight, averaged.n_averaged]
    return found


@program
def layers_that_count_or_limit(c: Any) -> Any:
    mg.manual_seed(0)
    norm, table = nn.BatchNorm1d(2, momentum=None), nn.Embedding(5, 3, max_norm=1.0)
    g, h, batches = c(lambda x: norm(x).detach()), c(lambda i: table(i).detach()), mg.randn(3, 4, 2)
    found = [g(x) for x in batches] + [h(mg.tensor(i)) for i in ([0, 2, 2], [1, 1, 4])]
    return found, norm.running_mean, norm.running_var, norm.num_batches_tracked, table.weight


def test_a_program_that_is_compiled_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from mutagrad.xla.program import Program

    quick, slow, found = mg.compile(lambda x: x + 1), mg.compile(lambda x: x * 2), []
    quick(T(1))
    compile_ahead = Program.compile_ahead

    def watched(self: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=lambda: found.append(quick(T(1)).item()))
        thread.start()
        thread.join(20)
        found.append("compiled")
        compile_ahead(self, *arguments)

    monkeypatch.setattr(Program, "compile_ahead", watched)
    assert slow(T(1)).item() == 2 and found == [2, "compiled"]


def test_what_was_compiled_ahead_is_what_runs() -> None:
    w = mg.ones(3).to("xla").requires_grad_()
    optimizer = mg.optim.Adam([w])

    def step(x: Any) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    compiled, x = mg.compile(step), mg.ones(3)
    compiled(x.to("xla"))
    compiled(x.to("xla"))
    program = compiled.last
    assert program is not None and program.jitted._cache_size() == 1


@program
def gradients_that_are_held_in_any_way(c: Any) -> Any:
    w = T(1.0, -2.0, 3.0, 0.5).requires_grad_()

    def step(x: Any) -> None:
        w.grad = None
        (w * x).sin().sum().backward()

    f = c(step)
    kept = []
    for hold in (lambda g: g, lambda g: g.data, lambda g: g.view(2, 2)[1], lambda g: g.detach()[1:], lambda g: g * 1,
                 lambda g: g.numpy() if g.device.type == "cpu" else g, lambda g: (g.requires_grad_() ** 2).sum(), lambda g: None):
        for i in range(2):
            f(T(1.0, 2.0, 3.0, 4.0) * (i + 1) / (len(kept) + 1))
            kept.append(hold(w.grad))
    return [v.tolist() if isinstance(v, np.ndarray) else v for v in kept]


@program
def a_branch_that_writes_outside(c: Any) -> Any:
    buffer, w, found = T(1.0, 2.0, 3.0), T(0.5, -1.0, 2.0).requires_grad_(), []

    def step(x: Any) -> Any:
        y = x * w

        def a() -> None:
            y.mul_(2)
            buffer.add_(1)

        def b() -> None:
            y[0] = w[1]

        mg.cond(x.sum() > 0, a, b, ())
        return y.sum()

    f = c(step)
    for sign in (1, -1, 1, -1):
        w.grad = None
        f(T(1.0, 2.0, 3.0) * sign).backward()
        found.append((w.grad, buffer.clone()))
    return found


@program
def a_gradient_that_is_set_to_none_where_there_is_none(c: Any) -> Any:
    a, b = T(1, 2).requires_grad_(), T(3, 4).requires_grad_()
    optimizer, found = mg.optim.Adam([a, b], lr=0.1), []

    def step(alone: bool) -> None:
        optimizer.zero_grad()
        (a if alone else a * b).sum().backward()
        optimizer.step()

    g = c(step)
    for alone in (True, True, False, False, True, True, False):
        g(alone)
        found.append((b.grad, b.detach().clone()))
    return found


@program
def results_with_gradients_of_their_own(c: Any) -> Any:
    x, found = T(1, 2), []

    def step(k: float) -> Any:
        y = (x * k).detach().requires_grad_()
        z = y ** 2
        z.retain_grad()
        z.sum().backward()
        return y, z.detach_(), y.grad

    g = c(step)
    for k in (1.0, 1.0, 2.0):
        y, z, grad = g(k)
        found.append((y, y.grad, y.grad is grad, z, z.grad))
    y = c(lambda: step(3.0)[0])()
    (y * 5).sum().backward()
    return found, y.grad


def test_a_compiled_method_is_a_method() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = mg.zeros(1)

        @mg.compile
        def add(self, x: Any) -> Any:
            self.total.add_(x)
            return self.total * 1

    a, b = Counter(), Counter()
    assert [c.add(T(k)).item() for c, k in ((a, 1), (b, 2), (a, 3))] == [1, 2, 4]
    assert a.add.__self__ is a and a.add.__name__ == "add" and a.add.explain().traces == 2


def test_shapes_come_back_as_shapes() -> None:
    step = mg.compile(lambda x: (x.shape, [x.view(1, -1).size()]))
    for _ in range(2):
        shape, (other,) = step(T(1, 2))
        assert shape.numel() == 2 and type(other) is mg.Size and other == (1, 2)


def test_what_is_not_there_in_a_program_runs_as_it_is_with_fallback() -> None:
    w = T(1, 2).requires_grad_()

    def step(x: Any) -> Any:
        y = w * 1
        mg.loop(3, lambda i: y.mul_(x))
        first, = mg.autograd.grad((y ** 2).sum(), w, create_graph=True)
        return mg.autograd.grad(first.sum(), w)[0]

    sparse = mg.sparse_coo_tensor(mg.tensor([[0, 1], [1, 0]]), T(1, 2), (2, 2))
    for function, argument, why in ((step, T(1, 2), "second derivative"), (lambda s: s @ mg.ones(2, 2), sparse, "sparse")):
        with pytest.raises(NotImplementedError, match=why):
            mg.compile(function)(argument)
        with pytest.warns(UserWarning, match="eagerly"):
            got = mg.compile(function, fallback=True)(argument)
        assert got.tolist() == function(argument).tolist()


def test_what_a_call_does_in_python_is_counted() -> None:
    """A compiled call costs what Python does around it: calls of functions, its own and those in C, are at most so many."""
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh(), mg.nn.Linear(2, 1)).to("xla")
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled, x = mg.compile(step), mg.ones(3, 2).to("xla")
    for _ in range(3):
        compiled(x)
    counts = dict.fromkeys(("call", "c_call"), 0)

    def count(frame: Any, event: str, argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    compiled(x)
    sys.setprofile(before)
    assert counts["call"] <= 60 and counts["c_call"] <= 80, counts
