"""Kernels that Numba compiles: right for all operations, chosen as asked, and nobody waits for them."""
from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, library, loops
from mutagrad.arrays.compiled.expressions import Symbol, Tape, Unknown
from mutagrad.base.errors import BadValue, MissingExtra
from mutagrad.nn import functional as F
from mutagrad.ops.math.elementwise import _FEW_FACTORS

SIZE = 300_000  # several threads share it
needs_numba = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


def run(code: str, **settings: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **settings}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)
    assert not found.returncode, found.stderr
    return found.stdout


@needs_numba
def test_all_operations_and_random_programs() -> None:
    """Python runs the loops, as compiling them all would take minutes."""
    lines = run("import runpy; runpy.run_module('arrays.interpreted', run_name='__main__')", NUMBA_DISABLE_JIT="1",
                MUTAGRAD_CACHE="0", MUTAGRAD_KERNELS="numba").splitlines()
    assert lines[:-1] == []
    assert int(lines[-1]) > 250


def both(function: Any, *shapes: tuple[int, ...], dtype: str = "float32") -> tuple[list[Any], list[Any]]:
    """Values and gradients by NumPy's kernels, and by compiled ones."""
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        rng = np.random.default_rng(0)
        xs = [mg.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=True) for shape in shapes]
        result = function(*xs)
        result.backward(mg.tensor(rng.standard_normal(result.shape).astype(dtype)))
        found.append([result.detach().numpy(), *[x.grad.numpy() for x in xs]])
    return found[0], found[1]


LAYERS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "sigmoid": (lambda x: x.sigmoid(), ((SIZE,),)),
    "gelu": (F.gelu, ((SIZE,),)),
    "hardshrink": (lambda x: F.hardshrink(x, 0.3), ((SIZE,),)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), ((SIZE,),)),
    "smooth_l1": (lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), ((SIZE,), (SIZE,))),
    "softmax": (lambda x: x.softmax(-1), ((300, 1001),)),
    "log_softmax": (lambda x: x.log_softmax(-1), ((300, 1001),)),
    "logsumexp": (lambda x: x.logsumexp(1), ((300, 1001),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (1001,), w, b), ((300, 1001), (1001,), (1001,))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (1001,), w), ((300, 1001), (1001,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), ((20, 12, 40, 40), (12,), (12,))),
    "cross_entropy": (lambda x: F.cross_entropy(x, mg.arange(300) % 7), ((300, 1001),)),
    "cross_entropy, some ignored": (lambda x: F.cross_entropy(x, mg.arange(300) % 7, ignore_index=3), ((300, 1001),)),
    "cross_entropy, each": (lambda x: F.cross_entropy(x, mg.arange(300) % 7, mg.arange(1001.0), reduction="none"), ((300, 1001),)),
    "cross_entropy, smoothed": (lambda x: F.cross_entropy(x, mg.arange(300) % 7, label_smoothing=0.1), ((300, 1001),)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((20, 12, 40, 40), (12,), (12,))),
    "batch_norm of rows": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((1027, 37), (37,), (37,))),
    "batch_norm, channels last": (lambda x, b: F.batch_norm(x.permute(0, 3, 1, 2), mg.arange(12.0), mg.ones(12) * 2, None, b),
                                  ((20, 9, 11, 12), (12,))),
    "batch_norm of constants": (lambda x: F.batch_norm(x, mg.arange(12.0), mg.ones(12) * 2), ((20, 12, 40, 40),)),
    "instance_norm": (lambda x: F.instance_norm(x), ((20, 12, 40, 40),)),
}


@needs_numba
@pytest.mark.parametrize("name", LAYERS)
def test_compiled_layers(name: str) -> None:
    function, shapes = LAYERS[name]
    expected, found = both(function, *shapes)
    assert any(kernel.is_made() for kernel in compiler.ALL)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, 2e-5, 2e-5 * float(np.abs(a).max()))


@needs_numba
@pytest.mark.parametrize("values", [[np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [-np.inf, 1.0, 2.0], [-np.inf] * 3, [1e30, -1e30, 0.0]])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_that_are_not_finite(name: str, values: list[float]) -> None:
    x = np.zeros((1000, 303), np.float32)
    x[7, :3] = values
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(getattr(mg.tensor(x), name)(1).numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-5)


@needs_numba
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "NAdam", "Rprop", "Adadelta"])
def test_optimizers(name: str) -> None:
    """Each has a formula, which is compiled as it is."""
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        rng = np.random.default_rng(0)
        p = mg.tensor(rng.standard_normal((700, 700)).astype(np.float32), requires_grad=True)
        optimizer = getattr(mg.optim, name)([p], lr=0.01)
        for _ in range(4):
            p.grad = mg.tensor(rng.standard_normal((700, 700)).astype(np.float32))
            optimizer.step()
        found.append(p.detach().numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-4, 1e-5)


@needs_numba
def test_functions_of_one_number() -> None:
    """Within a few units of the last place, also at the ends; nan and inf as NumPy has them."""
    numba = pytest.importorskip("numba")
    scalars = __import__("mutagrad.arrays.compiled.scalars", fromlist=["exp_32"])
    names = {"exp": np.exp, "log": np.log, "expm1": np.expm1, "log1p": np.log1p, "tanh": np.tanh, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)}
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, -1e-30, 1e-40, 1e30, -1e30, 88.7, 88.73, -87.4, -103.5, 1e-8, 5.0, -5.0]
    rng = np.random.default_rng(0)
    for bits, kind in ((32, np.float32), (64, np.float64)):
        x = np.concatenate([rng.standard_normal(4000) * 10 ** rng.uniform(-6, 1, 4000), rng.uniform(-10, 10, 4000), ends]).astype(kind)
        functions = [getattr(scalars, f"{name}_{bits}") for name in names]
        source = "\n".join(["def every(x, out):", "    for i in range(x.size):", *[f"        out[{k}, i] = f{k}(x[i])" for k in range(len(names))]])
        scope = {f"f{k}": function for k, function in enumerate(functions)}
        exec(source, scope)
        out = np.empty((len(names), x.size), kind)
        numba.njit(error_model="numpy")(scope["every"])(x, out)
        for row, (name, reference) in zip(out, names.items()):
            with np.errstate(all="ignore"):
                expected = reference(x.astype(np.float64)).astype(kind)
                apart = np.abs(row.astype(np.longdouble) - expected) / np.spacing(np.abs(expected))
            assert np.array_equal(np.isnan(row), np.isnan(expected)), name
            finite = np.isfinite(expected)
            assert np.array_equal(row[~finite & ~np.isnan(row)], expected[~finite & ~np.isnan(expected)]), name
            assert apart[finite & (np.abs(expected) > 1e-37)].max() <= 8, (name, bits)


@needs_numba
def test_short_floats_by_their_bits() -> None:
    scalars = __import__("mutagrad.arrays.compiled.scalars", fromlist=["widened_by_bits"])
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = every.view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        between = np.concatenate([wide, np.nextafter(wide, np.float32(np.inf)), (wide[:-1] + wide[1:]) / 2, wide * np.float32(1.0001), [70000, 1e-9]])
        between = between.astype(np.float32)
        expected = between.astype(np.float16)
        alone = [scalars.widened_by_bits.py_func(h) for h in every[::37]]
        shorter = [scalars.rounded_by_bits.py_func(x) for x in between[::97]]
        np.testing.assert_array_equal(np.array(alone, np.float32), wide[::37])
        np.testing.assert_array_equal(np.array(shorter, np.uint16).view(np.float16), expected[::97])
    mg.set_kernels("numba")
    np.testing.assert_array_equal(mg.tensor(every.view(np.float16)).float().numpy(), wide)
    np.testing.assert_array_equal(mg.tensor(between).half().numpy(), expected)


# ------------------------------------------------------------------------------------------------------------ the choice

def test_an_unknown_choice() -> None:
    with pytest.raises(BadValue, match="there is no choice 'cuda'"):
        mg.set_kernels("cuda")


def test_without_numba_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "has_numba", lambda: False)
    with pytest.raises(MissingExtra, match=r"mutagrad\[fast\]"):
        mg.set_kernels("numba")
    mg.set_kernels("auto")
    assert not compiler.choice.on


def test_numpy_alone_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mg.set_kernels("numpy")
    monkeypatch.setattr(compiler.Kernel, "compile", lambda self: pytest.fail("compiled"))
    x = mg.randn(SIZE, requires_grad=True)
    for _ in range(5):
        x.sigmoid().sum().backward()


def test_without_numba_nothing_is_looked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "has_numba", lambda: False)
    monkeypatch.setattr(compiler.choice, "on", True)
    monkeypatch.setattr(compiler.choice, "waits", False)
    kernel = compiler.Kernel("one", lambda: abs)
    assert kernel.get() is None
    assert not compiler.choice.on
    compiler.ALL.remove(kernel)


@needs_numba
def test_the_command_compiles_what_is_written_out(tmp_path: Path) -> None:
    shown = run("import sys; from mutagrad.cli import main; sys.exit(main(['warm-up']))", MUTAGRAD_CACHE=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert shown.startswith(f"{sum(len(library.types(f)) for f in library.SIGNATURES)} kernels are compiled\n")
    assert "Numba" in shown


@needs_numba
def test_nobody_waits() -> None:
    """A kernel is compiled by a thread once it has been asked for a few times; NumPy's version serves until then."""
    seen = []
    kernel = compiler.Kernel("a slow one", lambda: (time.sleep(0.3), seen.append(1), abs)[2])
    mg.set_kernels("auto")
    start = time.perf_counter()
    assert [kernel.get() for _ in range(compiler.USES + 2)] == [None] * (compiler.USES + 2)
    assert time.perf_counter() - start < 0.2
    until = time.perf_counter() + 60
    while kernel.get() is None and time.perf_counter() < until:
        time.sleep(0.01)
    assert kernel.get() is abs
    assert seen == [1]
    mg.set_kernels("numpy")
    assert kernel.get() is None


@needs_numba
def test_a_kernel_that_cannot_be_compiled_leaves_numpys(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiler.Kernel("a wrong one", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    mg.set_kernels("numba")
    assert kernel.get() is None
    mg.show_config()
    assert "a wrong one: division by zero" in capsys.readouterr().out
    compiler.ALL.remove(kernel)


@needs_numba
def test_what_is_compiled_is_kept_on_disk(tmp_path: Path) -> None:
    code = ("import time, mutagrad as mg; x = mg.ones(300000); start = time.perf_counter(); y = mg.nn.functional.silu(x); "
            "from mutagrad.arrays.compiled.compiler import ALL; assert any(k.is_made() for k in ALL)")
    run(code, MUTAGRAD_CACHE=str(tmp_path), MUTAGRAD_KERNELS="numba")
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")}
    assert kept
    run(code, MUTAGRAD_CACHE=str(tmp_path), MUTAGRAD_KERNELS="numba")
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")} == kept


@needs_numba
def test_a_folder_that_cannot_be_written_to_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    run("import mutagrad as mg; mg.ones(300000).sigmoid(); from mutagrad.arrays.compiled.compiler import ALL; "
        "assert {k.error for k in ALL} == {None} and any(k.is_made() for k in ALL)", MUTAGRAD_CACHE=str(tmp_path / "file"), MUTAGRAD_KERNELS="numba")


def test_importing_loads_no_compiler() -> None:
    assert run("import sys, mutagrad; print('numba' in sys.modules)", MUTAGRAD_KERNELS="auto") == "False\n"


@needs_numba
def test_a_program_that_ends_while_something_is_compiled_ends_well() -> None:
    run("import mutagrad as mg; x = mg.randn(300000)\nfor _ in range(4): x.sigmoid()", MUTAGRAD_KERNELS="auto", MUTAGRAD_CACHE="0")


@needs_numba
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_is_forked_while_something_is_compiled_goes_on_without() -> None:
    found = run("""
import os, time, mutagrad as mg
x = mg.randn(300000)
for _ in range(4): y = x.sigmoid()
time.sleep(0.05)
child = os.fork()
if not child:
    for _ in range(5): z = x.tanh() * x.sigmoid()
    assert abs(float((x.sigmoid() - y).abs().max())) < 1e-6
    raise SystemExit
print(os.waitpid(child, 0)[1])
""", MUTAGRAD_KERNELS="auto", MUTAGRAD_CACHE="0")
    assert found == "0\n"


@needs_numba
def test_the_same_bits_every_time() -> None:
    mg.set_kernels("numba")
    x = mg.randn(300, 1001)
    first = [x.softmax(1), x.sigmoid(), F.layer_norm(x, (1001,))]
    for _ in range(3):
        again = [x.softmax(1), x.sigmoid(), F.layer_norm(x, (1001,))]
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(first, again))


# ---------------------------------------------------------------------------------------------------------- expressions

def test_what_is_no_work_for_a_loop_is_refused() -> None:
    tape = Tape(np.dtype(np.float32))
    x = Symbol(tape, "x")
    for function in (lambda: x.sum(), lambda: np.add.reduce(x), lambda: x[0], lambda: x.shape, lambda: np.sort(x), lambda: bool(x),
                     lambda: np.asarray(x), lambda: x + np.ones(3, np.float32), lambda: x + np.float64(1) * np.ones(()), lambda: np.sinc(x)):
        with pytest.raises((Unknown, TypeError)):
            function()


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, 0.5, -1.0])
def test_powers_that_are_a_few_products_are_steps_of_a_loop(exponent: float) -> None:
    tape = Tape(np.dtype(np.float64))
    found = _FEW_FACTORS[exponent](Symbol(tape, "x"))
    assert isinstance(found, Symbol) and tape.lines


def test_steps_are_computed_once() -> None:
    tape = Tape(np.dtype(np.float64))
    x = Symbol(tape, "x")
    y = np.exp(x) + np.exp(x)
    y *= 2.0
    y[x > 0] = 1.0
    assert tape.lines == ["t0 = exp_64(x)", "t1 = t0 + t0", "t2 = t1 * F(2.0)", "t3 = x > F(0.0)", "t4 = where_64(t3, F(1.0), t2)"]
    assert y.name == "t4"


def test_loops_are_found_again() -> None:
    if not compiler.has_numba():
        pytest.skip("needs Numba: pip install 'mutagrad[fast]'")
    mg.set_kernels("auto")
    function = lambda a: np.exp(a) - 1
    x, out = np.ones(4, np.float32), np.empty(4, np.float32)
    before = len(loops._known)
    for _ in range(2):
        assert loops.forward(function, [x], (), out) is None
    assert len(loops._known) == before + 1
    assert library.find(len, np.dtype(np.int64)) is None
