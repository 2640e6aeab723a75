"""Errors that have a class of their own, which is more than one of the built-in ones."""
from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import parallel as large
from mutagrad.base.errors import DivisionByZero, OutOfMemory

MANY = 10**13
F = mg.nn.functional


def line() -> Any:
    """More elements than memory has bytes, in the memory of one."""
    return mg.ones(1).expand(MANY)


def sheet() -> Any:
    return mg.ones(1, 1).expand(10**7, 10**7)


# What would need terabytes. No memory is asked for before it is known to be too much.
TOO_LARGE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: mg.zeros(10**15), "zeros of two": lambda: mg.zeros(2**40, 2**40), "empty": lambda: mg.empty(MANY), "full": lambda: mg.full((MANY,), 1.0),
    "eye": lambda: mg.eye(10**7), "arange": lambda: mg.arange(10**14), "linspace": lambda: mg.linspace(0, 1, MANY), "logspace": lambda: mg.logspace(0, 1, MANY),
    "rand": lambda: mg.rand(MANY), "randn": lambda: mg.randn(MANY), "randint": lambda: mg.randint(0, 2, (MANY,)), "randperm": lambda: mg.randperm(MANY),
    "normal": lambda: mg.normal(0.0, 1.0, (MANY,)), "zeros_like": lambda: mg.zeros_like(line()), "rand_like": lambda: mg.rand_like(line()),
    "new_zeros": lambda: mg.ones(1).new_zeros(MANY), "empty_strided": lambda: mg.empty_strided((MANY,), (1,)), "tril_indices": lambda: mg.tril_indices(10**7, 10**7),
    "hann_window": lambda: mg.hann_window(MANY), "tensor": lambda: mg.tensor(np.broadcast_to(np.ones(1), (MANY,))), "resize_": lambda: mg.ones(1).resize_(MANY),
    "product": lambda: line() * 1, "sum": lambda: line() + mg.ones(1), "exp": lambda: line().exp(), "outer sum": lambda: mg.ones(10**7, 1) + mg.ones(1, 10**7),
    "where": lambda: mg.where(line() > 0, line(), 0.0), "clone": lambda: line().clone(), "contiguous": lambda: line().contiguous(), "double": lambda: line().double(),
    "out": lambda: mg.add(line(), 1, out=mg.empty(0)), "softmax": lambda: sheet().softmax(0), "cumsum": lambda: line().cumsum(0), "sort": lambda: line().sort(),
    "flip": lambda: line().flip(0), "cummax": lambda: sheet().cummax(0), "matmul": lambda: mg.ones(10**7, 1) @ mg.ones(1, 10**7),
    "outer": lambda: mg.ones(10**7).outer(mg.ones(10**7)), "einsum": lambda: mg.einsum("i,j->ij", mg.ones(10**7), mg.ones(10**7)), "cat": lambda: mg.cat([line()] * 2),
    "stack": lambda: mg.stack([line()] * 2), "repeat": lambda: mg.ones(10**4).repeat(10**10), "repeat_interleave": lambda: mg.ones(10).repeat_interleave(MANY),
    "index": lambda: mg.ones(1)[mg.zeros(1, dtype=mg.int64).expand(MANY)], "one_hot": lambda: F.one_hot(mg.tensor([MANY])), "pad": lambda: F.pad(mg.ones(1), (0, MANY)),
    "interpolate": lambda: F.interpolate(mg.ones(1, 1, 2), MANY), "diag": lambda: mg.diag(mg.ones(10**7)), "cdist": lambda: mg.cdist(mg.ones(10**7, 1), mg.ones(10**7, 1)),
    "bincount": lambda: mg.bincount(mg.tensor([0]), minlength=MANY), "histc": lambda: mg.histc(mg.ones(1), MANY), "Linear": lambda: mg.nn.Linear(10**7, 10**7),
    "Embedding": lambda: mg.nn.Embedding(MANY, 1), "dropout": lambda: F.dropout(line()), "bernoulli": lambda: mg.bernoulli(line()), "gelu": lambda: F.gelu(line()),
    "layer_norm": lambda: F.layer_norm(sheet(), (10**7,)), "fft": lambda: mg.fft.fft(mg.ones(1), MANY), "masked_fill": lambda: line().masked_fill(mg.tensor(True), 0.0),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_out_of_memory_is_both_classes(name: str) -> None:
    with pytest.raises(OutOfMemory) as raised:
        TOO_LARGE[name]()
    error = raised.value
    assert isinstance(error, RuntimeError) and isinstance(error, MemoryError)
    assert f"test_errors.py:{TOO_LARGE[name].__code__.co_firstlineno}" in str(error) and error.fix


@pytest.mark.parametrize("dtype", [mg.int64, mg.int32, mg.uint8, mg.int8])
@pytest.mark.parametrize("n", [3, large.LARGE + 5])
def test_integers_are_not_divided_by_zero(dtype: Any, n: int) -> None:
    x = mg.ones(n, dtype=dtype)
    zeros = mg.ones(n, dtype=dtype)
    zeros[n // 2] = 0
    before = x.clone()
    for divide in (lambda y: x // y, lambda y: x % y, lambda y: mg.floor_divide(x, y), lambda y: mg.remainder(x, y), lambda y: mg.fmod(x, y),
                   lambda y: mg.div(x, y, rounding_mode="floor"), lambda y: mg.div(x, y, rounding_mode="trunc"), lambda y: x.floor_divide_(y),
                   lambda y: x.remainder_(y), lambda y: x.fmod_(y), lambda y: x.div_(y, rounding_mode="floor"), lambda y: mg.remainder(x, y, out=x)):
        for y in (zeros, 0, mg.tensor(0)):
            with pytest.raises(DivisionByZero, match="divided by zero") as raised:
                divide(y)
            assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, ZeroDivisionError)
            assert "test_errors.py" in str(raised.value)
            assert mg.equal(x, before)
    for reflected in (lambda: 5 // zeros, lambda: 5 % zeros):
        with pytest.raises(DivisionByZero):
            reflected()


def test_what_can_be_divided_still_is() -> None:
    x = mg.tensor([7, -7])
    assert (x // 2).tolist() == [3, -4] and (x % 3).tolist() == [1, 2] and (x / 0).tolist() == [np.inf, -np.inf] and (x // 0.0).tolist() == [np.inf, -np.inf]
    assert (mg.zeros(0, dtype=mg.int64) // 0).shape == (0,)
    with pytest.raises(NotImplementedError):
        mg.tensor([True]) // mg.tensor([True])


@pytest.mark.parametrize("wrong", ["float32", "torch.float32", np.float32, np.dtype("float32"), 5, "FloatTensor"])
def test_only_element_types_are_element_types(wrong: Any) -> None:
    x = mg.ones(2)
    for call in (lambda: mg.zeros(2, dtype=wrong), lambda: mg.tensor([1], dtype=wrong), lambda: x.sum(dtype=wrong), lambda: mg.zeros_like(x, dtype=wrong),
                 lambda: mg.promote_types(wrong, mg.int32), lambda: mg.finfo(wrong), lambda: mg.can_cast(mg.int32, wrong), lambda: mg.arange(3, dtype=wrong)):
        with pytest.raises(TypeError) as raised:
            call()
        assert isinstance(raised.value, mg.MutagradError)
    for kind, meant in ((float, mg.float64), (int, mg.int64), (bool, mg.bool)):
        assert mg.zeros(2, dtype=kind).dtype is meant
    assert x.type("mutagrad.DoubleTensor").dtype is mg.float64


@pytest.mark.parametrize("wrong", ["a", 1, [], None, 0.0])
def test_requires_grad_is_a_truth_value(wrong: Any) -> None:
    x = mg.ones(2)
    with pytest.raises(TypeError):
        x.requires_grad_(wrong)
    with pytest.raises(RuntimeError):
        x.requires_grad = wrong
    assert not x.requires_grad


# -------------------------------------------------------------------------------------------------------- what they say

def said(source: str, name: str) -> str:
    """What an error says of a program under a name, whose text can be read."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    with pytest.raises(mg.MutagradError) as found:
        exec(compile(source, name, "exec"), {"mg": mg})
    return str(found.value)


@pytest.mark.skipif(not hasattr(said.__code__, "co_positions"), reason="Python knows columns since 3.11")
def test_the_part_of_the_line_is_pointed_at() -> None:
    rows = said("x = mg.ones(3)\ny = 1 + x.reshape(7) * 2\n", "program.py").splitlines()
    assert rows[1] == "  at program.py:2: y = 1 + x.reshape(7) * 2"
    assert rows[2].index("^") == rows[1].index("x.reshape") and rows[2].strip() == "^" * len("x.reshape(7)")


def test_a_line_that_is_all_of_it_has_no_carets() -> None:
    assert "^" not in said("mg.ones(3).reshape(7)\n", "program.py")


def test_an_error_in_a_library_names_the_users_own_line(tmp_path: Path) -> None:
    library = str(tmp_path / "site-packages" / "nicely" / "layers.py")
    text = "def layer(x):\n    return x.reshape(7)\n"
    linecache.cache[library] = (len(text), None, text.splitlines(True), library)
    names: dict[str, Any] = {"mg": mg}
    exec(compile(text, library, "exec"), names)
    with pytest.raises(mg.MutagradError) as found:
        names["layer"](mg.ones(3))
    said = str(found.value)
    assert "layers.py:2: return x.reshape(7)" in said and 'called from' in said and 'test_errors.py' in said


def test_cells_are_named_as_ipython_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"/tmp/ipykernel_7/1.py": ("Cell", "In[2]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert "  at Cell In[2], line 1: mg.ones(3).reshape(7)" in said("mg.ones(3).reshape(7)\n", "/tmp/ipykernel_7/1.py")


MISSPELT = {"mg.sofmax": "softmax", "mg.float23": "float32", "x.sofmax": "softmax", "x.expnad": "expand", "mg.Tensor.sofmax": "softmax", "mg.nn.Linaer": "Linear",
            "F.sofmax": "softmax", "mg.linalg.slove": "solve", "mg.optim.Adma": "Adam", "mg.nn.Linear(1, 1).wieght": "weight", "mg.nn.init.xavier_unifrom_": "xavier_uniform_"}


def test_a_misspelt_name_is_told_from_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    x = mg.ones(2)
    for wrong, meant in MISSPELT.items():
        with pytest.raises(AttributeError) as raised:
            eval(wrong, {"mg": mg, "F": F, "x": x})
        sys.__excepthook__(raised.type, raised.value, None)
        said = capsys.readouterr().err
        assert f"Did you mean: '{meant}" in said and said.count("Did you mean") == 1, said
    assert not hasattr(mg, "nothing_like_it") and not hasattr(mg, "_sofmax")


def test_what_has_no_history_is_told_in_the_words_that_programs_look_for() -> None:
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        (mg.ones(2, requires_grad=True) * 2).detach().sum().backward()


@pytest.mark.parametrize("call", [
    lambda: mg.where(mg.ones(3, 2, 1) > 0, mg.ones(3, 2), mg.ones(3, 2)), lambda: mg.addcmul(mg.ones(3, 1), mg.ones(2, 1), mg.ones(4)),
    lambda: mg.broadcast_tensors(mg.ones(1, 3), mg.ones(2), mg.ones(1)), lambda: mg.ones(3) + mg.ones(2)])
def test_which_sizes_differ_is_said_in_pytorchs_words(call: Any) -> None:
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(\d\) must match the size of tensor b \(\d\) at non-singleton"):
        call()
