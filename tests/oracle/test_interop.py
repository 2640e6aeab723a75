"""Functions of mutagrad's inside programs of PyTorch's: values, derivatives, writes, memory, transforms, modules."""
from __future__ import annotations

import copy
import gc
import io
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import interop

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def table(x: Any, y: Any) -> Any:
    """A row of a table, filled cell by cell."""
    cells = mg.zeros(4, dtype=x.dtype)
    for i in range(3):
        cells[i + 1] = cells[i] * y[i] + mg.sin(x[i])
    return cells


def row(x: Any, y: Any) -> Any:
    """The same in PyTorch, without writes."""
    cells = [torch.zeros((), dtype=x.dtype)]
    for i in range(3):
        cells.append(cells[i] * y[i] + torch.sin(x[i]))
    return torch.stack(cells)


def doubles(*size: int, requires_grad: bool = True) -> Any:
    return torch.randn(*size, dtype=torch.float64, requires_grad=requires_grad)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
    mg.manual_seed(0)


# ------------------------------------------------------------------------------------------------------------ derivatives

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a table": (table, ((3,), (3,))),
    "several results": (lambda x: (x.exp(), x[0] * x[1], x), ((3,),)),
    "a view of an argument": (lambda x: x[1:] * 1 + x[1:], ((3,),)),
    "one argument unused": (lambda x, y: x * x, ((2,), (2,))),
    "a result of one argument each": (lambda x, y: (x * x, y.sin()), ((2,), (2,))),
    "a linear function": (lambda x, y: x + y, ((2,), (2,))),
    "a product": (lambda x, y: x @ y, ((2, 3), (3, 2))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck_and_gradgradcheck(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    inputs = tuple(doubles(*shape) for shape in shapes)
    wrapped = interop.torch(function)
    assert torch.autograd.gradcheck(wrapped, inputs, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(wrapped, inputs)


def test_complex_numbers() -> None:
    z = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    wrapped = interop.torch(lambda z: (z * z.conj()).real + (z ** 2).abs())
    assert torch.autograd.gradcheck(wrapped, (z,)) and torch.autograd.gradgradcheck(wrapped, (z,))
    assert torch.autograd.gradcheck(wrapped, (z.detach().conj().requires_grad_(),))


def test_third_order() -> None:
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    g = interop.torch(lambda x: x.sin() * x)(x)
    for _ in range(3):
        g, = torch.autograd.grad(g, x, create_graph=True)
    np.testing.assert_allclose(g.item(), -3 * np.sin(0.7) - 0.7 * np.cos(0.7))


def test_trees_settings_and_values_that_are_no_tensors() -> None:
    @interop.torch
    def f(pair: Any, *, scale: float, names: Any) -> Any:
        """What it says."""
        return {"sum": pair["a"] * scale + pair["b"][0], "names": [*names, len(names)], "none": None}

    assert f.__name__ == "f" and f.__doc__ == "What it says."
    a, b = doubles(2), doubles(2)
    found = f({"a": a, "b": [b]}, scale=3.0, names=("x",))
    assert found["names"] == ["x", 1] and found["none"] is None
    found["sum"].sum().backward()
    assert a.grad.tolist() == [3, 3] and b.grad.tolist() == [1, 1]


def test_only_what_is_needed_requires_a_gradient() -> None:
    x, plain = doubles(2), doubles(2, requires_grad=False)
    squared, counted, constant = interop.torch(lambda x, y: (x * y, x.argmax(), y * 2))(x, plain)
    assert squared.requires_grad and not counted.requires_grad and not constant.requires_grad
    with torch.no_grad():
        assert not interop.torch(lambda x: x * x)(x).requires_grad
    with torch.inference_mode():
        assert interop.torch(lambda x: x * x)(x).is_inference()
        assert interop.torch(lambda x: x.mul_(2))(torch.ones(2)).tolist() == [2, 2]
    assert plain.grad is None


def test_a_gradient_of_nothing_is_none() -> None:
    x, y = doubles(2), doubles(2)
    first, second = interop.torch(lambda x, y: (x * x, y * y))(x, y)
    first.sum().backward(retain_graph=True)
    assert x.grad is not None and y.grad is None and second.requires_grad


# ----------------------------------------------------------------------------------------------------------------- memory

@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64", "uint16"])
def test_memory_is_shared_both_ways(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    given: list[Any] = []
    x = torch.ones(4, 3).to(getattr(torch, dtype)).t()
    kept = mg.zeros(3, dtype=getattr(mg, dtype))

    def f(x: Any) -> Any:
        given.append(x)
        return kept

    y = interop.torch(f)(x)
    assert y.dtype is getattr(torch, dtype) and given[0].dtype is getattr(mg, dtype) and given[0].shape == (3, 4)
    x[0, 0] = 0
    kept[0] = 1
    assert given[0][0, 0].item() == 0 and y[0].item() == 1


def test_bfloat16_has_gradients() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    x = torch.randn(4, dtype=torch.bfloat16, requires_grad=True)
    interop.torch(lambda x: (x * x).sum())(x).backward()
    assert torch.equal(x.grad, 2 * x.detach())


def test_bfloat16_over_dlpack() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    theirs = torch.arange(6.0).bfloat16().reshape(2, 3)
    ours = mg.from_dlpack(theirs.t())
    assert ours.dtype is mg.bfloat16 and ours.shape == (3, 2)
    ours[0, 0] = 9
    assert theirs[0, 0] == 9
    back = torch.from_dlpack(ours[1:])
    back.zero_()
    assert back.dtype is torch.bfloat16 and theirs.tolist() == [[9, 0, 0], [3, 0, 0]]


def test_gradients_have_memory_of_their_own() -> None:
    x, y = doubles(3), doubles(3)
    interop.torch(lambda x, y: x + y)(x, y).sum().backward()
    x.grad.mul_(0)
    assert y.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("make", "word"), [
    (lambda: torch.ones(2, device="meta"), "meta"), (lambda: torch.ones(2).to_sparse(), "sparse"),
    (lambda: torch.ones(2).to(torch.float8_e4m3fn), "float8")])
def test_what_cannot_be_shared_is_said(make: Callable[[], Any], word: str) -> None:
    with pytest.raises((NotImplementedError, TypeError), match=word):
        interop.torch(lambda x: x)(make())


def test_expanded_arguments() -> None:
    x = doubles(1)
    interop.torch(lambda x: (x * mg.arange(3.0, dtype=mg.float64)).sum())(x.expand(3)).backward()
    assert x.grad.tolist() == [3]


# ----------------------------------------------------------------------------------------------------------------- writes

def test_a_write_to_an_argument_is_one_to_pytorchs_tensor() -> None:
    x = doubles(3)
    y, before = x * 1, x.detach().clone()

    def double_first(y: Any) -> Any:
        y[0] *= y[1]
        return y

    version = y._version
    found = interop.torch(double_first)(y)
    assert found is y and y._version > version
    y.sum().backward()
    np.testing.assert_allclose(x.grad, [before[1], 1 + before[0], 1])


def test_a_write_to_a_view() -> None:
    x = doubles(4)
    y = x * 2
    interop.torch(lambda v: v.mul_(v))(y[:2])
    y.sum().backward()
    np.testing.assert_allclose(x.grad, [*(8 * x.detach()[:2]), 2, 2])


def test_a_write_of_something_that_has_a_gradient() -> None:
    x, buffer = doubles(2), torch.zeros(3, dtype=torch.float64)

    def fill(buffer: Any, x: Any) -> None:
        buffer[1:] = x * x

    assert interop.torch(fill)(buffer, x) is None
    assert buffer.requires_grad
    buffer.sum().backward()
    np.testing.assert_allclose(x.grad, 2 * x.detach())


def test_a_write_to_a_leaf_is_refused_before_it_happens() -> None:
    x = doubles(3)
    before = x.detach().clone()
    for f in (lambda x: x.mul_(2), lambda x: x.__setitem__(0, 1.0), lambda x: x[1:].zero_()):
        with pytest.raises(RuntimeError, match="must stay as it is"):
            interop.torch(f)(x)
    assert torch.equal(x, before)
    with torch.no_grad():
        interop.torch(lambda x: x.mul_(2))(x)
    assert torch.equal(x, before * 2)


def test_a_result_that_is_a_view_of_an_argument_is_one() -> None:
    x = doubles(2, 3)
    y = x * 1
    found = interop.torch(lambda y: y[:, 1])(y)
    found.mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [[1, 10, 1], [1, 10, 1]]
    assert interop.torch(lambda y: y)(y) is y


def test_results_over_one_memory_do_not_disturb_each_other() -> None:
    x = doubles(3)

    def f(x: Any) -> Any:
        y = x * x
        return y, y[0], y

    y, first, again = interop.torch(f)(x)
    assert again is y and first.data_ptr() != y.data_ptr()
    (y.sum() + first).backward()
    np.testing.assert_allclose(x.grad, np.array([4, 2, 2]) * x.detach().numpy())


def test_writes_of_pytorchs_after_the_call_disturb_no_first_derivative() -> None:
    x = doubles(50)
    y = x * 1
    loss = interop.torch(lambda y: (y * y).sum())(y)
    wanted = 2 * y.detach().clone()
    y.detach().mul_(100)
    loss.backward(retain_graph=True)
    np.testing.assert_allclose(x.grad, wanted)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, y, create_graph=True)


def test_overlapping_arguments_of_which_one_is_written() -> None:
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="another is a view"):
        interop.torch(lambda a, b: a.add_(b[0]))(x, x[1:])
    y = doubles(2)
    interop.torch(lambda a, b: (a * b).sum())(y, y).backward()
    np.testing.assert_allclose(y.grad, 2 * y.detach())


# ------------------------------------------------------------------------------------------------------ PyTorch's machinery

def test_the_graph_is_freed_with_pytorchs() -> None:
    alive: list[Any] = []

    def f(x: Any) -> Any:
        inside = x.exp()
        alive.append(weakref.ref(inside))
        return (inside * inside).sum()

    x = doubles(100)
    loss = interop.torch(f)(x)
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    del loss
    gc.collect()
    assert alive[0]() is None


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    from mutagrad.interop import torch_node

    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return (x * x).sin()

    x = doubles(5)
    y = checkpoint(interop.torch(f), x * 1, use_reentrant=reentrant)
    gc.collect()
    assert not torch_node._keepers  # nothing of it is kept
    y.sum().backward()
    assert len(calls) == 2
    np.testing.assert_allclose(x.grad, (torch.cos(x * x) * 2 * x).detach())


def test_hooks_that_copy_what_is_saved() -> None:
    x = doubles(2)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = interop.torch(lambda x: x * x)(x)
    with pytest.raises(RuntimeError, match="the graph of this function is gone"):
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # PyTorch's own, in forward mode
def test_transforms() -> None:
    x, y = doubles(3, requires_grad=False), doubles(3, requires_grad=False)
    f = interop.torch(lambda x, y: (table(x, y) ** 2).sum())
    plain: Callable[..., Any] = lambda x, y: (row(x, y) ** 2).sum()
    rows = doubles(5, 3, requires_grad=False)
    func = torch.func
    for transform in (lambda g: func.grad(g, (0, 1))(x, y), lambda g: func.hessian(g)(x, y), lambda g: func.jacrev(g)(x, y),
                      lambda g: func.jvp(g, (x, y), (y, x)), lambda g: func.vmap(g, (0, None))(rows, y),
                      lambda g: func.vmap(func.grad(g), (0, None))(rows, y), lambda g: func.grad(lambda r: func.vmap(g, (0, None))(r, y).sum())(rows),
                      lambda g: torch.autograd.functional.jacobian(g, (x, y), vectorize=True), lambda g: torch.autograd.functional.hessian(g, (x, y))):
        torch.testing.assert_close(transform(f), transform(plain))


def test_a_transformed_function_must_not_write_to_its_arguments() -> None:
    with pytest.raises(RuntimeError, match="must stay as it is"):
        torch.func.grad(interop.torch(lambda x: x.mul_(2).sum()))(torch.ones(2))


def test_within_as_torch_it_is_the_function() -> None:
    with mg.as_torch():
        assert interop.torch(table) is table


def test_it_is_not_imported_before_it_is_called() -> None:
    program = "import mutagrad as mg, sys; mg.interop; assert not {'torch', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("mixed", [
    lambda a, b: a + b, lambda a, b: b + a, lambda a, b: b @ a, lambda a, b: mg.add(a, b), lambda a, b: torch.add(b, a), lambda a, b: torch.sin(a),
    lambda a, b: mg.sin(b), lambda a, b: mg.cat([a, b]), lambda a, b: torch.cat([b, a]), lambda a, b: a.copy_(b), lambda a, b: a == b, lambda a, b: b < a,
    lambda a, b: torch.nn.functional.mse_loss(a, b), lambda a, b: mg.nn.functional.mse_loss(a, b), lambda a, b: torch.nn.Linear(2, 1)(a)])
def test_tensors_of_both_libraries_do_not_mix(mixed: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):  # and no recursion
        mixed(mg.ones(2, requires_grad=True), torch.ones(2))
    assert mg.from_dlpack(torch.ones(2)).tolist() == torch.from_dlpack(mg.ones(2)).tolist() == [1, 1]


# ------------------------------------------------------------------------------------------------- parameters and modules

def test_parameters_that_a_function_reads_get_their_gradients() -> None:
    weight = mg.nn.Parameter(mg.tensor([1.0, 2.0]))
    scale = mg.tensor(3.0, requires_grad=True)
    f = interop.torch(lambda x: (weight * x).sum() * scale)
    x = torch.tensor([4.0, 5.0], requires_grad=True)
    for count in (1, 2):
        f(x).backward()
        assert weight.grad.tolist() == [12 * count, 15 * count] and scale.grad.item() == 14 * count
    torch.autograd.grad(f(x), x)
    assert scale.grad.item() == 28 and x.grad.tolist() == [6, 12]
    f(x.detach()).backward()
    assert scale.grad.item() == 42


def test_parameters_and_second_derivatives() -> None:
    weight = mg.tensor(2.0, requires_grad=True)
    x = torch.tensor(3.0, requires_grad=True)
    g, = torch.autograd.grad(interop.torch(lambda x: weight * x ** 3)(x), x, create_graph=True)
    g.backward()
    assert x.grad.item() == 36 and weight.grad.item() == 27


def test_parameters_written_between_forward_and_backward() -> None:
    weight = mg.tensor([2.0, 3.0], requires_grad=True)
    x = torch.tensor([4.0, 5.0], requires_grad=True)
    loss = interop.torch(lambda x: (weight * weight * x).sum())(x)
    with mg.no_grad():
        weight.mul_(100)
    loss.backward()
    assert weight.grad.tolist() == [16, 30] and x.grad.tolist() == [4, 9]


def test_parameters_cannot_be_transformed() -> None:
    weight = mg.tensor(2.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match="cannot be transformed"):
        torch.func.grad(interop.torch(lambda x: weight * x))(torch.tensor(1.0))
    with torch.no_grad():
        assert torch.vmap(interop.torch(lambda x: weight * x))(torch.ones(2)).tolist() == [2, 2]


def network() -> Any:
    nn = mg.nn
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))


def test_a_module_is_one_of_pytorchs_and_is_trained_by_it() -> None:
    ours = network()
    model = interop.torch(ours)
    nn = torch.nn
    reference = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    reference.load_state_dict(model.state_dict())
    assert isinstance(model, nn.Module) and list(model.state_dict()) == list(ours.state_dict())
    x = torch.randn(20, 3)
    for each in (model, reference):
        optimizer = torch.optim.SGD(each.parameters(), 0.1, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.mse_loss(each(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()
        each.eval()
    torch.testing.assert_close(model.state_dict(), reference.state_dict())
    torch.testing.assert_close(model(x), reference(x))
    assert ours[0].weight.tolist() == model.get_parameter("0.weight").tolist() and not ours[1].training
    model.train()
    assert ours[1].training and model.get_submodule("0")(x).shape == (20, 8)


def test_a_module_under_functional_call() -> None:
    model = interop.torch(network()).double().eval()
    x, parameters = torch.randn(6, 3, dtype=torch.float64), dict(model.named_parameters())
    assert model.inner[0].weight.dtype is mg.float64
    loss: Callable[..., Any] = lambda p, x: torch.func.functional_call(model, p, (x,)).sum()
    found = torch.func.grad(loss)(parameters, x)
    wanted = torch.autograd.grad(model(x).sum(), list(parameters.values()))
    torch.testing.assert_close(tuple(found.values()), wanted)
    samples = torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x[:, None])
    torch.testing.assert_close(tuple(s.sum(0) for s in samples.values()), wanted)


def test_copies_and_pickles_of_a_module_share_their_own_memory() -> None:
    model = interop.torch(network())
    file = io.BytesIO()
    torch.save(model, file)
    for other in (copy.deepcopy(model), torch.load(io.BytesIO(file.getvalue()), weights_only=False)):
        with torch.no_grad():
            other.get_parameter("0.weight").zero_()
        assert other.inner[0].weight.abs().sum() == 0 and model.inner[0].weight.abs().sum() > 0
    saved = {name: value.clone() for name, value in model.state_dict().items()}
    saved["0.bias"].fill_(7)
    model.load_state_dict(saved, assign=True)
    assert model.inner[0].bias.tolist() == [7] * 8


def test_tied_weights_and_buffers_that_are_replaced() -> None:
    class Tied(mg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = mg.nn.Linear(2, 2), mg.nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.register_buffer("count", mg.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count = self.count + 1
            return self.b(self.a(x))

    ours = Tied()
    model = interop.torch(ours)
    assert len(list(model.parameters())) == 3 and model.get_parameter("a.weight") is model.get_parameter("b.weight")
    model(torch.ones(1, 2)).sum().backward()
    x = mg.ones(1, 2)
    ours(x).sum().backward()
    np.testing.assert_allclose(model.get_parameter("a.weight").grad, ours.a.weight.grad, rtol=1e-6)
    assert model.get_buffer("count").item() == 1


def test_lazy_modules_and_pytorchs_own() -> None:
    with pytest.raises(NotImplementedError, match="no parameters yet"):
        interop.torch(mg.nn.LazyLinear(2))
    with pytest.raises(TypeError, match="already"):
        interop.torch(torch.nn.Linear(1, 1))
    with pytest.raises(TypeError, match="expects a function"):
        interop.torch(3)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- example and document

@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's compiler looks at those of tensors in between
def test_compiled_programs_call_functions_and_modules_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # PyTorch's compiler switches the checks of its distributions off for good.
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", torch.distributions.Distribution._validate_args)
    filled, layer = interop.torch(table), interop.torch(mg.nn.Linear(3, 2))
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), layer)
    for program in (lambda x: filled(x * 3, x).sum() * 2, model):
        x = doubles(3).detach().float().requires_grad_()
        expected = program(x).sum()
        g, = torch.autograd.grad(expected, x)
        found = torch.compile(program, backend="eager")(x).sum()
        torch.testing.assert_close((found, torch.autograd.grad(found, x)[0]), (expected, g))


def test_the_example_learns() -> None:
    folder = Path(__file__).parents[2] / "examples" / "interop"
    program = "import json, torch_dtw; print(json.dumps(torch_dtw.main(['--steps', '5'])))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    losses = json.loads(done.stdout.splitlines()[-1])
    assert losses[-1] < 0.8 * losses[0]


def test_the_document_tells_the_truth() -> None:
    import test_docs

    document, names = test_docs.ROOT / "docs" / "interop.md", {"__name__": "document"}
    for block in test_docs.blocks(document):
        test_docs.check(block, document, names)
