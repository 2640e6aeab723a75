"""Functions of mutagrad's inside programs of JAX's: values, derivatives, transformations, types."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import interop

jax = pytest.importorskip("jax", reason="the extra `xla`")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def _types_of_four_bytes() -> Iterator[None]:
    """JAX's own setting, whatever other tests in this process use it for."""
    with jax.enable_x64(False):
        yield



def table(x: Any, y: Any) -> Any:
    cells = mg.zeros(4, dtype=x.dtype)
    for i in range(3):
        cells[i + 1] = cells[i] * y[i] + mg.sin(x[i])
    return cells[3], {"all": cells * 2, "largest": cells.argmax()}


def row(x: Any, y: Any) -> Any:
    """The same in JAX, without writes."""
    cells = [jnp.zeros((), x.dtype)]
    for i in range(3):
        cells.append(cells[i] * y[i] + jnp.sin(x[i]))
    whole = jnp.stack(cells)
    return whole[3], {"all": whole * 2, "largest": whole.argmax()}


X, Y = np.array([0.1, 0.5, 0.3], np.float32), np.array([1.0, 2.0, 3.0], np.float32)
ROWS = np.linspace(0, 1, 15, dtype=np.float32).reshape(5, 3)

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(X, Y),
    "jit": lambda f: jax.jit(f)(X, Y),
    "grad": lambda f: jax.grad(number(f), (0, 1))(X, Y),
    "jit grad": lambda f: jax.jit(jax.grad(number(f), (0, 1)))(X, Y),
    "value and grad": lambda f: jax.value_and_grad(number(f))(X, Y),
    "hessian": lambda f: jax.jacrev(jax.grad(number(f)))(X, Y),
    "jit hessian": lambda f: jax.jit(jax.jacrev(jax.jacrev(number(f), 1)))(X, Y),
    "third order": lambda f: jax.grad(lambda x: jax.grad(lambda x: jax.grad(number(f))(x, Y).sum())(x).sum())(X),
    "vmap": lambda f: jax.vmap(f, (0, None))(ROWS, Y),
    "vmap of one": lambda f: jax.vmap(f, (0, None))(ROWS[:1], Y),
    "vmap vmap": lambda f: jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))(ROWS, ROWS[:2]),
    "vmap grad": lambda f: jax.vmap(jax.grad(number(f)), (0, None))(ROWS, Y),
    "grad vmap": lambda f: jax.grad(lambda y: jax.vmap(number(f), (0, None))(ROWS, y).sum())(Y),
    "scan": lambda f: jax.lax.scan(lambda c, x: (c + f(x, c)[1]["all"][1:], f(x, c)[0]), Y, ROWS),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(number(f)))(X, Y),
}


def number(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: f(x, y)[0] + f(x, y)[1]["all"].sum()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_is_transformed_like_a_function_of_jaxs(name: str) -> None:
    found, wanted = TRANSFORMS[name](interop.jax(table)), TRANSFORMS[name](row)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
        assert a.dtype == b.dtype and a.shape == b.shape and not a.weak_type
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_types_are_those_of_the_setting() -> None:
    double = interop.jax(lambda x: (x.double() * 2, x.argmax()))
    for f in (double, jax.jit(double)):
        assert [str(y.dtype) for y in f(jnp.ones(2))] == ["float32", "int32"]
    from jax.test_util import check_grads

    with jax.enable_x64(True):
        x = jnp.ones(2)
        assert [str(y.dtype) for y in jax.jit(double)(x)] == ["float64", "int64"]
        check_grads(interop.jax(lambda x: (x ** 3).sin()), (jnp.linspace(0.1, 1, 4),), 2, modes=["rev"])


def test_complex_gradients_are_jaxs_own() -> None:
    z = jnp.array([1 + 2j, 3 - 1j])
    f: Callable[..., Any] = lambda z: ((z ** 3) * (2 + 1j)).sum().real
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        np.testing.assert_allclose(transform(interop.jax(f))(z), transform(f)(z), rtol=1e-5)


def test_bfloat16() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra `bfloat16`")
    x = jnp.array([1.0, 2.0], jnp.bfloat16)
    f = interop.jax(lambda x: (x * x).sum())
    assert jax.jit(f)(x).dtype == jnp.bfloat16 and jax.grad(f)(x).tolist() == [2, 4]


def test_settings_and_integers() -> None:
    @interop.jax
    def f(x: Any, index: Any, *, power: int, name: str) -> Any:
        assert name == "n" and isinstance(power, int)
        return x[index] ** power

    x = jnp.arange(4.0)
    assert f(x, jnp.array([1, 3]), power=2, name="n").tolist() == [1, 9]
    found = jax.grad(lambda x: f(x, jnp.array([1, 3]), power=2, name="n").sum())(x)
    assert found.tolist() == [0, 2, 0, 6]


def test_memory_is_shared_until_the_function_writes_to_it() -> None:
    x, seen = jnp.arange(4.0), []

    def look(x: Any) -> Any:
        seen.append(x.data_ptr())
        return x.sum()

    interop.jax(look)(x)
    assert seen == [x.unsafe_buffer_pointer()]

    doubled = interop.jax(lambda x: x.mul_(2).sum())
    for f in (doubled, jax.jit(doubled)):
        assert f(x) == 12 and jax.grad(f)(x).tolist() == [2] * 4
    assert x.tolist() == [0, 1, 2, 3]


def test_shapes_that_the_user_tells() -> None:
    def chosen(x: Any) -> Any:
        assert x.any(), "called with zeros"
        return {"kept": x[x > 0] * 2}

    told = interop.jax(chosen, result=lambda x: {"kept": jax.ShapeDtypeStruct((2,), x.dtype)})
    x = jnp.array([0.0, 1.0, 2.0])
    assert jax.jit(told)(x)["kept"].tolist() == [2, 4]
    assert jax.jit(jax.grad(lambda x: told(x)["kept"].sum()))(x).tolist() == [0, 2, 2]
    with pytest.raises(Exception, match="should have"):
        jax.block_until_ready(jax.jit(told)(jnp.ones(3)))


def test_what_cannot_be_is_said() -> None:
    weight = mg.nn.Parameter(mg.ones(2))
    f = interop.jax(lambda x: (weight * x).sum())
    assert f(jnp.ones(2)) == 2
    with pytest.raises(NotImplementedError, match="require a gradient"):
        jax.grad(f)(jnp.ones(2))
    with pytest.raises(Exception, match="require a gradient"):
        jax.block_until_ready(jax.jit(jax.grad(f))(jnp.ones(2)))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(interop.jax(table), (X, Y), (X, Y))
    with pytest.raises(TypeError, match="expects a function"):
        interop.jax(3)  # type: ignore[arg-type]


def test_a_module_with_parameters_as_arguments() -> None:
    layer = mg.nn.Linear(2, 1)
    f = interop.jax(lambda p, x: mg.func.functional_call(layer, p, (x,)).sum())
    parameters = {name: jnp.asarray(p.detach().numpy()) for name, p in layer.named_parameters()}
    found = jax.jit(jax.grad(f))(parameters, jnp.array([[1.0, 2.0]]))
    assert found["weight"].tolist() == [[1, 2]] and found["bias"].tolist() == [1]


def test_the_example_learns() -> None:
    folder = Path(__file__).parents[2] / "examples" / "interop"
    program = "import json, jax_edit_distance as e; print(json.dumps(e.main(['--steps', '10'])))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    losses = json.loads(done.stdout.splitlines()[-1])
    assert losses[-1] < 0.8 * losses[0]
