"""Classes that take over functions called with them, subclasses of Tensor, modes, and operands of foreign classes."""
from __future__ import annotations

import copy
import operator
import pickle
import subprocess
import sys
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.torch_api.overrides import (
    TorchFunctionMode,
    get_overridable_functions,
    get_testing_overrides,
    has_torch_function,
    resolve_name,
    wrap_torch_function,
)
from tools import leaf, same


class Kept(mg.Tensor):
    """A subclass that says nothing of its own."""


class Smaller(Kept):
    pass


class Other(mg.Tensor):
    pass


class Like:
    """No tensor, and has an answer to everything."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, types, args, kwargs


class Reflected:
    """Knows all operators from the right."""


SYMBOLS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
for _symbol in SYMBOLS:
    setattr(Reflected, f"__r{_symbol.strip('_')}__", lambda self, other, symbol=_symbol: (symbol, other))
for _symbol, _mirrored in (("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le")):
    setattr(Reflected, f"__{_mirrored}__", lambda self, other, symbol=_symbol: (symbol, other))


@pytest.mark.parametrize("symbol", [*SYMBOLS, "lt", "le", "gt", "ge"])
def test_the_second_operand_may_know_the_answer(symbol: str) -> None:
    x = mg.arange(2)
    name, other = getattr(operator, symbol)(x, Reflected())
    assert name == symbol and other is x
    for operands in ((x, object()), (object(), x)):
        with pytest.raises(TypeError) as caught:
            getattr(operator, symbol)(*operands)
        assert getattr(caught.value, "what", None)
    with pytest.raises(TypeError):
        x.mul_(Reflected())


def test_a_class_answers_for_functions_methods_and_operators() -> None:
    x, like = mg.ones(2), Like()
    assert mg.mean(like) == (mg.mean, (Like,), (like,), {})
    assert (x + like)[0] is mg.Tensor.add and (like + x if hasattr(like, "__add__") else x.add(like))[0] is mg.Tensor.add  # type: ignore[operator]
    assert mg.add(x, other=like)[3] == {"other": like}
    assert mg.stack([x, like])[0] is mg.stack and x[like][0] is mg.Tensor.__getitem__
    assert mg.nn.functional.linear(x, like)[0] is mg.nn.functional.linear and mg.linalg.norm(like)[0] is mg.linalg.norm
    assert mg.nn.Linear(2, 2)(like)[0] is mg.nn.functional.linear and mg.nn.functional.conv1d(like, x)[0] is mg.conv1d
    assert mg.nn.Conv1d(2, 2, 1)(like)[0] is mg.conv1d
    assert resolve_name(mg.mean) == "mutagrad.mean" and resolve_name(mg.Tensor.shape.__get__) == "mutagrad.Tensor.shape.__get__"  # type: ignore[attr-defined]


def test_every_public_function_asks() -> None:
    functions = get_overridable_functions()
    for space, known in functions.items():
        if space is not mg.Tensor:
            for function in known:
                assert function(Like())[0] is function
    assert len(functions[mg]) > 300 and len(functions[mg.Tensor]) > 400
    assert get_testing_overrides()[mg.add](1, 2) == -1


def test_subclasses_are_kept() -> None:
    plain, kept, smaller = mg.ones(2, 3), mg.ones(2, 3).as_subclass(Kept), mg.ones(2, 3).as_subclass(Smaller)
    for found in (kept + 1, 1 - kept, plain * kept, kept.T, kept.data, kept[0], kept.sum(), mg.cat([plain, kept]), kept.split(1)[0], next(iter(kept)),
                  kept.max(1).values, mg.nn.Linear(3, 2)(kept), mg.zeros_like(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert type(found) is Kept
    for found in (smaller + kept, kept + smaller, plain + smaller):
        assert type(found) is Smaller
    with pytest.raises(TypeError):
        kept + mg.ones(2, 3).as_subclass(Other)
    assert type(kept.as_subclass(mg.Tensor)) is mg.Tensor and repr(kept[0]) == "Kept([1., 1., 1.])"
    kept[0] = 5.0
    same(kept.as_subclass(mg.Tensor), [[5, 5, 5], [1, 1, 1]])
    x = leaf(1.0, 2.0).as_subclass(Kept)
    (x * x).sum().backward()


def test_parameters_of_a_subclass() -> None:
    p = mg.nn.Parameter(mg.ones(2).as_subclass(Kept))
    assert isinstance(p, Kept) and isinstance(p, mg.nn.Parameter) and p.requires_grad and p.is_leaf
    out = p + mg.ones(2)
    assert type(out) is Kept and not isinstance(out, mg.nn.Parameter)
    out.sum().backward()
    same(p.grad, [1, 1])
    assert isinstance(copy.deepcopy(p), Kept) and type(mg.nn.Parameter(mg.ones(2)) + 1) is mg.Tensor


def test_what_a_subclass_says_itself() -> None:
    seen = []

    class Logged(mg.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(resolve_name(func))
            return super().__torch_function__(func, types, args, kwargs)

    x = mg.ones(2).as_subclass(Logged)
    assert type(mg.exp(x)) is Logged
    x[0] = 2.0
    assert x.shape == (2,)
    assert seen == ["mutagrad.exp", "mutagrad.Tensor.__setitem__", "mutagrad.Tensor.shape.__get__"]
    seen.clear()
    with mg._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is mg.Tensor and not has_torch_function((x,))
    assert not seen and has_torch_function((x,))

    class Silent(mg.Tensor):
        __torch_function__ = mg._C._disabled_torch_function_impl  # type: ignore[assignment]

    assert type(mg.ones(2).as_subclass(Silent) + 1) is mg.Tensor
    assert not hasattr(Silent, "_make_wrapper_subclass")  # nothing asks __torch_dispatch__, by which one would compute


class Counting(TorchFunctionMode):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_modes_see_every_call() -> None:
    with Counting() as outer, Counting() as inner:
        x = mg.ones(2) + 1
    assert outer.seen == inner.seen == [mg.ones, mg.Tensor.add]
    same(x + 1, [3, 3])
    assert len(outer.seen) == 2
    with Counting() as counting, mg._C.DisableTorchFunction():
        mg.ones(2)
    assert not counting.seen
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        mg.ones(2)

    class Silent(TorchFunctionMode):
        def __torch_function__(self, *arguments: Any, **settings: Any) -> Any:
            return NotImplemented

    with Silent(), pytest.raises(TypeError, match="no implementation found for 'exp'"):
        mg.exp(x)


def test_the_answer_to_a_plain_function() -> None:
    plain = getattr(mg.exp, "__wrapped__", mg.exp)
    assert plain(Like())[1] == (Like,)
    with mg._C.DisableTorchFunctionSubclass(), pytest.raises(TypeError, match="neither a tensor nor a number"):
        plain(Like())


def test_functions_of_a_library_can_be_taken_over() -> None:
    @wrap_torch_function(lambda x: (x,))
    def double(x: Any) -> Any:
        return 2 * x

    assert double(Like())[0] is double and double(3) == 6


def test_a_program_that_speaks_of_it_is_noticed(tmp_path: Any) -> None:
    (tmp_path / "library.py").write_text(
        "import torch\nKNOWN = {torch.mean: 7}\nclass Like:\n"
        "    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n        return KNOWN[func]\n")
    (tmp_path / "program.py").write_text("import torch, library\nprint(torch.mean(library.Like()))\n")
    done = subprocess.run([sys.executable, "-m", "mutagrad", "run", str(tmp_path / "program.py")], capture_output=True, text=True, check=True)
    assert done.stdout == "7\n"


_ORDERS = {"distributions first": ("import mutagrad.distributions", "Class"), "the class first": ("Class", "import mutagrad.distributions")}


@pytest.mark.parametrize("order", _ORDERS)
def test_distributions_ask(order: str) -> None:
    define = "class Kept(mg.Tensor):\n    pass"
    program = "\n".join(["import mutagrad as mg", *(define if part == "Class" else part for part in _ORDERS[order]), """
kept = (mg.ones(3) / 4).as_subclass(Kept)
for made in (mg.distributions.Normal(kept, 1.0), mg.distributions.Gamma(kept, 2.0), mg.distributions.Bernoulli(kept),
             mg.distributions.Laplace(0.0, kept)):
    assert type(made.log_prob(mg.ones(3))) is Kept, made
assert type(mg.distributions.Categorical(logits=kept).log_prob(mg.tensor(0))) is Kept
assert type(mg.distributions.Normal(0.0, 1.0).log_prob(mg.tensor(0.5))) is mg.Tensor"""])
    subprocess.run([sys.executable, "-c", program], check=True)
