"""`vmap` runs a function once for all slices: every operation of the table gives what it gives for each slice by itself."""

from __future__ import annotations

import copy
import gc
import io
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.arrays import batched, batched_rules, kinds
from mutagrad.base import pytree
from mutagrad.core.arithmetic import ON_ARRAYS
from mutagrad.core.factory import make
from mutagrad.core.op import KERNELS, RAW, kernel
from mutagrad.func import batching, functional_call, grad, hessian, jacfwd, jacrev, mapping, vmap
from mutagrad.ops.nn.taps import Taps
from mutagrad.utils.checkpoint import checkpoint
from samples import SAMPLES, Sample

SLICES = 3

# What cannot be done for all slices at once, and is not: vmap calls the function for each of them.
LOOPED = {"a function of linalg.lu", "a function of linalg.lu_factor", "argwhere", "cov", "histc", "histogram", "linalg.lu_factor", "lu", "nonzero"}
# An offset in the memory of a slice is another one in the memory of all of them; random numbers differ from call to call.
NOT_ALIKE = {"as_strided", "as_strided_copy", "as_strided_scatter", "a function of svd_lowrank", "a function of pca_lowrank"}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Why slices were refused, as long as nothing else was found than to call the function for each."""
    found: list[str] = []
    begin = mapping.begin

    def noted(*arguments: Any) -> Any:
        level = begin(*arguments)
        level.refusals = Noted(found)
        return level

    class Noted(list[Any]):
        def __init__(self, why: list[str]) -> None:
            self.why = why

        def append(self, refusal: Any) -> None:
            super().append(refusal)
            self.why.append(refusal.what)

        def remove(self, refusal: Any) -> None:
            super().remove(refusal)
            self.why.remove(refusal.what)

    monkeypatch.setattr(mapping, "begin", noted)
    yield found


def inputs(sample: Sample) -> list[mg.Tensor]:
    """Each input of a sample, and two others like it, stacked."""
    rng = np.random.default_rng(0)
    return [mg.tensor(np.stack([array, *(draw.values(rng) for _ in range(SLICES - 1))]))
            for array, draw in zip(sample.arrays(), sample.draws)]


def alike(got: Any, expected: Any) -> None:
    for g, e in zip(got, expected, strict=True):
        assert g.shape == e.shape and g.dtype == e.dtype
        np.testing.assert_allclose(g.detach().numpy(), e.detach().numpy(), 1e-9, 1e-10)


def weighted(results: Any) -> Any:
    """One number that depends on every element of the results that have a gradient."""
    parts = [(r * mg.arange(1.0, r.numel() + 1, dtype=r.dtype).reshape(r.shape).cos()).sum() for r in results
             if r.dtype.is_floating_point and r.requires_grad]
    return sum(parts[1:], parts[0])


NAMES = sorted({s.name for s in SAMPLES if s.draws and s.name not in NOT_ALIKE})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_operation(name: str, calls: list[str]) -> None:
    for sample in (s for s in SAMPLES if s.name == name and s.draws):
        stacks = inputs(sample)

        def call(*tensors: Any, sample: Sample = sample) -> tuple[Any, ...]:
            return tuple(sample.call(mg, list(tensors)))

        for dims in ([0] * len(stacks), [0] + [None] * (len(stacks) - 1)):
            given = [t if d == 0 else t[0] for t, d in zip(stacks, dims)]
            slices = [[t[i] if d == 0 else t for t, d in zip(given, dims)] for i in range(SLICES)]
            each = [call(*s) for s in slices]
            if not all(isinstance(r, mg.Tensor) for r in each[0]) or any(len({r.shape for r in c}) > 1 for c in zip(*each)):
                break  # no tensors, or as many as the slice has it
            alike(vmap(call, in_dims=tuple(dims))(*given), [mg.stack(list(c)) for c in zip(*each)])
            if sample.grad and any(r.dtype.is_floating_point for r in call(*(t.clone().requires_grad_() for t in slices[0]))):
                check_gradients(call, given, dims, slices)
    assert name in LOOPED or calls == [], f"{name} was called for each slice: {calls}"


def check_gradients(call: Callable[..., Any], given: list[Any], dims: list[Any], slices: list[list[Any]]) -> None:
    """The gradient for each slice, inside; and of the whole, from outside."""
    every = tuple(range(len(given)))
    derived = grad(lambda *tensors: weighted(call(*tensors)), argnums=every)
    try:
        each = [derived(*s) for s in slices]
    except (IndexError, mg.MutagradError):  # it has none
        return
    alike(vmap(derived, in_dims=tuple(dims))(*given), [mg.stack(list(c)) for c in zip(*each)])
    leaves = [t.clone().requires_grad_() for t in given]
    whole = vmap(lambda *tensors: weighted(call(*tensors)), in_dims=tuple(dims))(*leaves).sum()
    found = mg.autograd.grad(whole, leaves, allow_unused=True)
    alike([mg.zeros_like(x) if g is None else g for g, x in zip(found, leaves)],
          [mg.stack(list(c)) if d == 0 else sum(c[1:], c[0]) for c, d in zip(zip(*each), dims)])


def test_a_function_is_called_once() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x.shape)
        y = mg.zeros(4)
        y[1:] += x[:-1] * 2
        y[0] = x[3]
        y[y > 1] = 1.0
        return (y * y).sum()

    x = mg.randn(256, 4)
    got = vmap(grad(f))(x)
    assert seen == [(4,)]
    alike([got[7]], [grad(f)(x[7])])


def test_gradients_for_each_sample_of_a_network() -> None:
    """One call of the loss, whatever the number of samples, with everything that is usually in one."""
    net = nn.Sequential(nn.Embedding(9, 8), nn.Flatten(), nn.LayerNorm(24), nn.Linear(24, 16), nn.GELU(), nn.Linear(16, 5)).double()
    weights, seen = {k: v.detach() for k, v in net.named_parameters()}, []

    def loss(weights: Any, x: Any, y: Any) -> Any:
        seen.append(1)
        return nn.functional.cross_entropy(functional_call(net, weights, (x[None],)), y[None])

    x, y = mg.randint(0, 9, (6, 3)), mg.randint(0, 5, (6,))
    got = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    assert len(seen) == 1
    for i in range(6):
        alike([got[k][i] for k in got], list(grad(loss)(weights, x[i], y[i]).values()))


def test_an_ensemble_of_networks() -> None:
    nets = [nn.Linear(3, 2) for _ in range(4)]
    weights, buffers = mg.func.stack_module_state(nets)
    x = mg.randn(5, 3)
    got = vmap(lambda w, b: functional_call(nets[0], (w, b), (x,)), in_dims=(0, 0))(weights, buffers) if buffers else \
        vmap(lambda w: functional_call(nets[0], w, (x,)))(weights)
    np.testing.assert_allclose(got.detach().numpy(), mg.stack([net(x) for net in nets]).detach().numpy(), 1e-6, 1e-7)


@pytest.mark.parametrize("function", [
    lambda x: x * x[0].item(), lambda x: x.sum() if x.sum() > 0 else x.prod(), lambda x: x.add_(1), lambda x: mg.tensor(x.tolist()),
    lambda x: x[x > x.median()].sum(), lambda x: mg.tensor(x.numpy() + 1), lambda x: mg.unique(x).sum()])
def test_what_needs_one_slice_is_called_for_each(function: Callable[..., Any]) -> None:
    x = mg.tensor([[1.0, 2.0, 3.0], [-4.0, 5.0, -6.0]])
    alike([vmap(function)(x.clone())], [mg.stack([function(row.clone()) for row in x])])


def test_a_refusal_is_not_swallowed() -> None:
    """What the function makes of the error, it would not have got for one slice."""
    def f(x: Any) -> Any:
        try:
            return x * float(x.sum())
        except Exception:
            return x * 0

    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    alike([vmap(f)(x)], [mg.stack([f(row) for row in x])])


def test_nothing_is_left_behind() -> None:
    gc.collect()
    before = len(kinds.LEVELS)

    def f(x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        vmap(f)(mg.ones(3))
    y = vmap(lambda x: x * 2)(mg.ones(3, requires_grad=True))
    assert type(mg.zeros(2)._array) is np.ndarray and type(y._array) is np.ndarray
    del y
    gc.collect()
    assert len(kinds.LEVELS) == before


def test_what_is_kept_is_no_slice() -> None:
    """Operations remember tables by shape; those made inside must serve outside."""
    x = mg.randn(2, 1, 1, 6, 6)
    for pooled in (lambda x: nn.functional.max_pool2d(x, 3, padding=1), lambda x: nn.functional.avg_pool2d(x, 3, 1, 1),
                   lambda x: nn.functional.interpolate(x, scale_factor=1.5), lambda x: nn.functional.pad(x, (2, 1, 1, 1), "reflect")):
        first = vmap(pooled)(x)
        alike([vmap(pooled)(x), pooled(x[0])], [first, first[0]])


def test_shared_memory_is_split_when_slices_differ() -> None:
    def f(x: Any) -> Any:
        y, z = mg.zeros(3), mg.ones(3)
        window = y[1:]
        z[0] = 5.0  # the same for all slices
        window[0] = x  # y and its views belong to each slice from here on
        return y.sum() + window.sum() + z.sum()

    x = mg.tensor([1.0, 2.0])
    alike([vmap(f)(x)], [mg.stack([f(v) for v in x])])


def test_nested() -> None:
    a, b = mg.randn(3, 4).double(), mg.randn(5, 4).double()

    def inner(x: Any, y: Any) -> Any:
        z = mg.zeros(4, dtype=mg.float64)
        z[:2], z[2:] = x[2:] * y[:2], y[2:]
        return (z * x).sum()

    pairs = vmap(lambda x: vmap(lambda y: inner(x, y))(b))
    alike([pairs(a)], [mg.stack([mg.stack([inner(x, y) for y in b]) for x in a])])
    alike([vmap(lambda x: vmap(grad(inner), in_dims=(None, 0))(x, b))(a)], [mg.stack([mg.stack([grad(inner)(x, y) for y in b]) for x in a])])


def test_jacobians_by_one_sweep() -> None:
    swept = []

    def f(x: Any) -> Any:
        swept.append(1)
        y = x.clone()
        y[1:] = y[1:] * x[:-1]
        return y.sin()

    x = mg.randn(6).double()
    alike([jacrev(f)(x)], [mg.stack([grad(lambda x, i=i: f(x)[i])(x) for i in range(6)])])
    alike([jacrev(f, chunk_size=4)(x), hessian(lambda x: f(x).sum())(x)],
          [jacrev(f)(x), mg.stack([grad(lambda x, i=i: grad(lambda x: f(x).sum())(x)[i])(x) for i in range(6)])])


def test_chunks() -> None:
    sizes = []

    def f(x: Any) -> Any:
        sizes.append(1 if type(x._array) is np.ndarray else x._array.level.size)  # one slice needs nothing
        return x * 2

    x = mg.arange(10.0).reshape(2, 5)
    alike([vmap(f, 1, 1, chunk_size=2)(x)], [x * 2])
    assert sizes == [2, 2, 1]


class Doubled(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        assert x.ndim == 1
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class DoubledAtOnce(Doubled):
    generate_vmap_rule = True


def test_custom_functions(calls: list[str]) -> None:
    x = mg.randn(3, 2)
    for function, reasons in ((DoubledAtOnce, 0), (Doubled, 1)):
        leaf = x.clone().requires_grad_()
        vmap(lambda x, f=function: f.apply(x) * x)(leaf).sum().backward()
        alike([leaf.grad], [x * 4])
        assert len(calls) == reasons


def test_an_escaped_tensor_says_what_it_is() -> None:
    kept = []
    vmap(lambda x: kept.append(x) or x)(mg.ones(2))
    with pytest.raises(mg.MutagradError, match="stands for all slices"):
        kept[0].item()


def test_indices_are_checked_in_every_slice() -> None:
    table = mg.arange(3.0)
    alike([vmap(lambda i: table[i])(mg.tensor([0, -1, 2]))], [mg.tensor([0.0, 2.0, 2.0])])
    with pytest.raises(IndexError, match="out of bounds"):
        vmap(lambda i: table[i])(mg.tensor([0, 3]))
    with pytest.raises(IndexError, match="Target 7"):
        vmap(lambda t: nn.functional.cross_entropy(mg.zeros(1, 4), t[None]))(mg.tensor([1, 7]))


def test_kernels_are_chosen_by_the_kind_of_array(monkeypatch: pytest.MonkeyPatch) -> None:
    x = mg.randn(3, 4)
    before = dict(KERNELS["softmax"])
    expected = mg.softmax(x, 1)
    try:
        kernel("softmax")(lambda a, dim: np.full(a.shape, 7.0, a.dtype) if dim else NotImplemented)
        assert (mg.softmax(x, 1) == 7).all()
        np.testing.assert_allclose(mg.softmax(x, 0).sum(0).numpy(), 1, 1e-6)  # NotImplemented: what was declared
        np.testing.assert_allclose(vmap(lambda r: mg.softmax(r, 0))(x).numpy(), expected.numpy(), 1e-6)
        kernel("softmax", batched.Batched)(lambda a, dim: a * 0)
        assert not vmap(lambda r: mg.softmax(r, 0))(x).any()
    finally:
        KERNELS["softmax"].clear()
        KERNELS["softmax"].update(before)
    assert RAW.softmax(x._array, 1) is not None
    np.testing.assert_allclose(mg.softmax(x, 1).numpy(), expected.numpy())


def test_printing_shows_all_slices() -> None:
    seen = []
    vmap(lambda x: seen.append((repr(x), repr(mg.zeros(2)))) or x)(mg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert seen == [("BatchedTensor([[1., 2.],\n               [3., 4.]])", "tensor([0., 0.])")]


# What breaking it found. Each was wrong, or raised, before it was mended.

def each(f: Callable[..., Any], *stacks: Any) -> Any:
    return mg.stack([f(*(s[i] for s in stacks)) for i in range(len(stacks[0]))])


def close(got: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert type(got._array) is np.ndarray
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), tolerance, tolerance)


@pytest.mark.parametrize("size", [300_000, 1_000_000])
@pytest.mark.parametrize("f", [mg.exp, mg.tanh, lambda t: t / 3, lambda t: t * t, nn.functional.gelu, grad(lambda t: t.exp().sum())])
def test_large_slices(f: Callable[..., Any], size: int) -> None:
    x = mg.randn(2, size)
    for _ in range(3):
        close(vmap(f)(x), each(f, x))


def test_a_matrix_of_one_level_and_a_right_hand_side_of_the_other() -> None:
    a, b = mg.randn(3, 4, 4).double() + 4 * mg.eye(4), mg.randn(2, 4, 2).double()
    pairs = mg.stack([mg.stack([mg.linalg.solve(m, c) for c in b]) for m in a])
    close(vmap(lambda m: vmap(lambda c: mg.linalg.solve(m, c))(b))(a), pairs)
    close(vmap(lambda c: vmap(lambda m: mg.linalg.solve(m, c))(a))(b), pairs.transpose(0, 1))
    close(vmap(jacrev(lambda m: mg.linalg.solve(m, b[0])))(a), each(jacrev(lambda m: mg.linalg.solve(m, b[0])), a))


@pytest.mark.parametrize("ask", [False, True], ids=["", "and asks for a value"])
@pytest.mark.parametrize("write", [lambda c: c.add_(1), lambda c: c[1:].mul_(2), lambda c: c.__setitem__(0, c[0] + 1), lambda c: c.data.fill_(c.sum())])
def test_memory_from_outside_is_written_for_each_slice(write: Callable[..., Any], ask: bool) -> None:
    def run(mapper: Callable[..., Any]) -> tuple[Any, Any]:
        c = mg.ones(3)

        def f(x: Any) -> Any:
            write(c)
            return x * c if not ask or x.sum() > 0 else x - c

        return mapper(f, mg.tensor([[1.0, 1, 1], [-1, -1, -1], [2, 2, 2]])), c

    for got, expected in zip(run(lambda f, x: vmap(f)(x)), run(each)):
        close(got, expected)


@pytest.mark.parametrize("loss", [lambda x, c: (x * c).sum(), lambda x, c: (c * 2).sum()])
def test_leaves_from_outside_get_the_gradients_of_all_slices(loss: Callable[..., Any]) -> None:
    def run(mapper: Callable[..., Any]) -> Any:
        c = mg.ones(3, requires_grad=True)
        mapper(lambda x: (loss(x, c).backward(), x)[1], mg.arange(6.0).reshape(2, 3))
        return c.grad

    close(run(lambda f, x: vmap(f)(x)), run(each))


def test_generators_of_ones_own() -> None:
    source = mg.Generator()

    def f(x: Any) -> Any:
        z = mg.rand(1, generator=source)
        return z if x > 0 else z * 1  # has to be called for each slice

    x = mg.tensor([1.0, -1.0])
    same = vmap(f, randomness="same")(x)
    assert same[0] == same[1]
    source.manual_seed(3)
    different = vmap(f, randomness="different")(x)
    source.manual_seed(3)
    close(different, each(f, x))
    with pytest.raises(RuntimeError, match="random"):
        vmap(f)(x)


def test_dimensions_of_results_are_checked() -> None:
    with pytest.raises(IndexError, match="vmap"):
        vmap(lambda t: t, out_dims=-5)(mg.ones(3, 4, 6))


def test_no_warnings() -> None:
    """Warnings are errors here: what overflows or is undefined is so without a word, as everywhere."""
    assert vmap(lambda t: t * t)(mg.tensor([[1e38, 1.0]])).isinf().any()
    assert vmap(lambda t: (t / 0).log() - t.sqrt())(mg.tensor([[-1.0, 1.0]])).isnan().any()


@pytest.mark.parametrize("read", [
    lambda w, i: w[i], lambda w, i: w[i, i % 2], lambda w, i: w[:, i % 2] * mg.arange(10.0).reshape(5, 2), lambda w, i: w.index_select(0, i) * 2,
    lambda w, i: w.gather(0, i[None]), lambda w, i: w.take(i), lambda w, i: nn.functional.embedding(i, w), lambda w, i: w[None, i][0, ..., 1]])
def test_gradients_of_what_all_slices_read_in_different_places(read: Callable[..., Any]) -> None:
    index = mg.tensor([[0, 1], [1, 4], [2, 2]])

    def run(mapper: Callable[..., Any], create_graph: bool) -> Any:
        w = mg.arange(1.0, 11.0).reshape(5, 2).requires_grad_()
        g, = mg.autograd.grad((mapper(lambda i: read(w, i), index) ** 2).sum(), w, create_graph=create_graph)
        return mg.autograd.grad((g * g).sum(), w)[0] if create_graph else g

    for create_graph in (False, True):
        close(run(lambda f, i: vmap(f)(i), create_graph), run(each, create_graph))


@pytest.mark.parametrize("dtype", [mg.float32, mg.float16])
def test_gradients_of_many_picked_elements(dtype: Any) -> None:
    found = []
    for mapper in (lambda f, x: vmap(f)(x), each):
        x = mg.arange(40_000.0).reshape(2, 20_000).sin().to(dtype).requires_grad_()
        mapper(lambda t: t.sort()[0] * t, x).sum().backward()
        found.append(x.grad.float())
    close(*found, 1e-2)


@pytest.mark.parametrize("kernels", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16])
def test_many_short_floats_enter_and_leave(dtype: Any, kernels: str) -> None:
    """They are converted while arrays are made of the slices' kind, which is not theirs."""
    before = mg.get_kernels()
    mg.set_kernels(kernels)
    try:
        for _ in range(3 if kernels == "numba" else 1):
            x = mg.ones(3, 20_000, dtype=dtype, requires_grad=True)
            vmap(lambda t: t.sin())(x).sum().backward()
            close(x.grad.float(), mg.ones(3, 20_000).cos(), 1e-2)
            turned = mg.arange(40_000.0).reshape(200, 200).T.to(dtype)
            close(vmap(lambda t, c=turned: c.contiguous() + t)(mg.zeros(2, dtype=dtype))[1].float(), turned.float())
    finally:
        mg.set_kernels(before)


def test_compiled_loops_are_not_given_arrays_of_slices() -> None:
    """What a function computes of NumPy's arrays inside, a loop that was compiled outside would write into a slice's."""
    before = mg.get_kernels()
    mg.set_kernels("numba")
    try:
        c = mg.randn(300, 1000)
        for function in (mg.floor, lambda c: c.softmax(1), lambda c: c.T.contiguous(), lambda c: c.cumsum(0), lambda c: c * c):
            expected = [function(c) for _ in range(3)][0]
            close(vmap(lambda t, f=function: f(c) + t)(mg.zeros(2))[1], expected)
    finally:
        mg.set_kernels(before)


def test_numbers_written_into_what_is_shared() -> None:
    c = mg.zeros(3)

    def f(x: Any) -> Any:
        y, z = c.clone(), c * 1
        y[0], z[1] = x, x * 2
        return y + z

    close(vmap(f)(mg.ones(2)), each(f, mg.ones(2)))


def test_hooks_may_look_at_values() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g / g.norm() if g.norm() > 1 else g)
        return (y * y).sum()

    found = []
    for mapper in (lambda f, x: vmap(f)(x), each):
        x = mg.arange(6.0).reshape(2, 3).requires_grad_()
        mapper(f, x).sum().backward()
        found.append(x.grad)
    close(*found)


def test_ordinary_code_costs_what_it_did() -> None:
    """After a vmap storages are made as before, and nothing asks for the modes of its thread."""
    from mutagrad.base.modes import OTHER_KIND
    from mutagrad.core.factory import CODEGEN_GLOBALS
    from mutagrad.core.storage import Storage

    with pytest.raises(KeyboardInterrupt):
        vmap(lambda x: (_ for _ in ()).throw(KeyboardInterrupt))(mg.ones(2))
    assert CODEGEN_GLOBALS["Storage"] is Storage and not OTHER_KIND


def test_distributions_are_checked_in_every_slice(calls: list[str]) -> None:
    means = mg.randn(3, 2)
    close(vmap(lambda m: mg.distributions.Normal(m, 1.0).log_prob(mg.zeros(2)))(means), mg.distributions.Normal(means, 1.0).log_prob(mg.zeros(3, 2)))
    assert calls == []
    with pytest.raises(ValueError, match="scale"):
        vmap(lambda s: mg.distributions.Normal(0.0, s).log_prob(mg.tensor(0.0)))(mg.tensor([1.0, -1.0]))


POWERS = (
    (lambda z: vmap(lambda r: r**2)(z) ** 2, lambda z: z**4),
    (lambda z: vmap(lambda r: (r * z.sum()) ** 2)(z), lambda z: (z * z.sum()) ** 2),
    (lambda z: vmap(lambda r: vmap(lambda s: r * s**2)(z).sum())(z), lambda z: z * (z**2).sum()))


@pytest.mark.parametrize("mapped, plain", POWERS)
def test_second_derivatives_of_a_vmap_that_is_over(mapped: Callable[..., Any], plain: Callable[..., Any]) -> None:
    """The slices of one call meet those of a later one, which is not inside it: the rows of a Jacobian."""
    z = mg.tensor([1.0, 2.0, -0.5], dtype=mg.float64)
    expected = jacrev(jacrev(plain))(z)
    for twice in (lambda f: jacrev(jacrev(f)), lambda f: jacfwd(jacrev(f)), lambda f: jacrev(jacfwd(f)), lambda f: jacrev(jacrev(f, chunk_size=1)), hessian):
        close(twice(mapped)(z), expected)
    close(grad(lambda z: jacrev(mapped)(z).sum())(z), grad(lambda z: jacrev(plain)(z).sum())(z))


@pytest.mark.parametrize("f", [
    lambda a: a.prod(), lambda a: mg.linalg.inv(a).sum(), lambda a: mg.linalg.solve(a, mg.ones(3).double()).sum(), lambda a: mg.linalg.cholesky(a @ a.mT).sum(),
    lambda a: mg.linalg.matrix_exp(a * 0.1).sum(), lambda a: (mg.zeros(3).double().scatter_add(0, mg.tensor([0, 0, 1]), a[0]) ** 2).sum(),
    lambda a: (mg.zeros(3).double().index_put((mg.tensor([0, 0, 1]),), a[0], accumulate=True) ** 3).sum(), lambda a: mg.softmax(a, 1)[0, 1],
    lambda a: nn.functional.scaled_dot_product_attention(a[None], a[None], a[None]).sum(), lambda a: nn.functional.layer_norm(a, (3,)).pow(3).sum()])
def test_hessians_of_mapped_functions(f: Callable[..., Any]) -> None:
    a = mg.arange(18.0, dtype=mg.float64).reshape(2, 3, 3).sin() + 3 * mg.eye(3).double()
    close(hessian(lambda a: vmap(f)(a).sum())(a), hessian(lambda a: f(a[0]) + f(a[1]))(a))


def test_one_slice_fails() -> None:
    matrices = mg.stack([mg.eye(2), mg.zeros(2, 2) - 1])
    factors, info = vmap(mg.linalg.cholesky_ex)(matrices)
    assert info.tolist() == [0, 1] and factors[0].tolist() == mg.eye(2).tolist() and factors[1].isnan().all()
    with pytest.raises(RuntimeError, match="order 1 is not"):
        vmap(mg.linalg.cholesky)(matrices)


@pytest.mark.parametrize("write", [lambda c, x: setattr(c, "data", c + x), lambda c, x: c.set_(c + x), lambda c, x: setattr(c, "grad", c.grad + x)])
def test_tensors_from_outside_are_changed_for_each_slice(write: Callable[..., Any]) -> None:
    def run(mapper: Callable[..., Any]) -> Any:
        c = mg.zeros(2)
        c.grad = mg.zeros(2)
        y = mapper(lambda x: (write(c, x), c * 1 + c.grad)[1], mg.ones(3, 2))
        return y, c * 1, c.grad

    for got, expected in zip(run(lambda f, x: vmap(f)(x)), run(each)):
        close(got, expected)


class Table(nn.Module):
    """One that makes a table when it is first called, and keeps it."""

    table: Any = None

    def forward(self, x: Any) -> Any:
        if self.table is None:
            self.table = (mg.arange(4.0) * 0.5).requires_grad_()
        return x * self.table


def test_what_is_made_inside_and_kept() -> None:
    x, module = mg.arange(12.0).reshape(3, 4), Table()
    close(vmap(module)(x), x * mg.arange(4.0) * 0.5)
    vmap(module)(x).sum().backward()
    close(module.table.grad, x.sum(0))
    close(module(x[0]), x[0] * mg.arange(4.0) * 0.5)
    file = io.BytesIO()
    mg.save(module.table.detach(), file)
    file.seek(0)
    assert mg.load(file).tolist() == [0.0, 0.5, 1.0, 1.5]
    layer = nn.LazyLinear(2)
    close(vmap(layer)(x), layer(x))


def test_saving_a_slice() -> None:
    saved = []
    close(vmap(lambda x: (saved.append(io.BytesIO()), mg.save(x, saved[-1]), x)[2])(mg.ones(3, 2)), mg.ones(3, 2))
    saved[-1].seek(0)
    assert mg.load(saved[-1]).tolist() == [1.0, 1.0]


def test_masks_broadcast_where_they_fill_and_lead_where_they_index() -> None:
    mask = mg.tensor([[True, False, False], [False, True, True]])

    def indexed(m: Any) -> Any:
        y = mg.zeros(3, 2)
        y[m] = 1.0
        return y

    for f in (lambda m: mg.zeros(3, 3).masked_fill_(m, 1.0), lambda m: mg.zeros(2, 3).masked_fill_(m, 1.0), indexed):
        close(vmap(f)(mask), each(f, mask))


READERS = {
    "square": lambda w: (w**2).sum(), "product": lambda w: w.prod(), "sin": lambda w: w.sin().sum(), "clone": lambda w: (w.clone() ** 2).sum(),
    "index": lambda w: (w[mg.tensor([0, 0])] ** 2).sum(), "cast": lambda w: (w.double() ** 2).sum(), "softmax": lambda w: (mg.softmax(w, 0) ** 2).sum()}


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("inside", [False, True], ids=["", "and inside"])
@pytest.mark.parametrize("reader", READERS)
def test_a_leaf_that_is_made_inside_and_read_outside(reader: str, inside: bool, levels: int) -> None:
    """Outside it has one gradient, however many slices share it; what they read is added."""
    kept: list[Any] = []

    def f(x: Any, y: Any) -> Any:
        kept or kept.append(mg.tensor([3.0, 2.0, 1.0]).requires_grad_())
        return (x * y * kept[0]).sum()

    x = mg.arange(6.0).reshape(2, 3)
    out = vmap(lambda x: f(x, x))(x) if levels == 1 else vmap(lambda a: vmap(lambda b: f(a, b))(x))(x)
    (READERS[reader](kept[0]) + (out.sum() if inside else 0)).backward()
    w = mg.tensor([3.0, 2.0, 1.0], requires_grad=True)
    terms = [(a, a) for a in x] if levels == 1 else [(a, b) for a in x for b in x]
    (READERS[reader](w) + (sum((a * b * w).sum() for a, b in terms) if inside else 0)).backward()
    close(kept[0].grad, w.grad)


def test_what_slices_share_is_read_outside_too() -> None:
    x = mg.arange(6.0).reshape(2, 3)
    found = []
    for mapper in (lambda f: vmap(f)(x), lambda f: each(f, x)[:]):
        kept: list[Any] = []
        w = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def f(row: Any, w: Any = w, kept: list[Any] = kept) -> Any:
            y = w * w
            y[0] = w[1] * 3
            kept.append(y)
            return (row * y).sum()

        (mapper(f).sum() + (kept[0] ** 2).sum()).backward()
        found.append(w.grad)
    close(*found)
    w = mg.ones(3, requires_grad=True)
    out, y = vmap(lambda row: (row * (y := w * 2), y), out_dims=(0, None))(mg.ones(2, 3))
    (out.sum() + y.sum()).backward()
    assert w.grad.tolist() == [6.0] * 3


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_and_vmap_in_each_other(use_reentrant: bool) -> None:
    again = partial(checkpoint, use_reentrant=use_reentrant)
    for f in (lambda x: again(lambda x: vmap(mg.sin)(x), x), lambda x: vmap(lambda r: again(mg.sin, r))(x),
              lambda x: vmap(lambda r: again(lambda r: vmap(lambda e: again(mg.sin, e))(r), r))(x)):
        x = mg.arange(6.0).reshape(2, 3).requires_grad_()
        f(x).sum().backward()
        close(x.grad, x.detach().cos())


def test_copying_what_was_kept() -> None:
    kept: list[Any] = []
    vmap(lambda x: (kept or kept.append(mg.arange(3.0)), x)[1])(mg.ones(2))
    assert copy.deepcopy(kept[0][1:]).tolist() == [1.0, 2.0] and type(kept[0].clone()._array) is np.ndarray


def test_many_adjoints_meet(calls: list[str]) -> None:
    """More than are added one by one."""
    found = vmap(lambda x: make(ON_ARRAYS.total([x._array * k for k in range(10)])))(mg.arange(6.0).reshape(3, 2))
    close(found, mg.arange(6.0).reshape(3, 2) * 45)
    assert calls == []


def test_drawing_says_what_is_wrong() -> None:
    for draw in (lambda x: x + mg.randn(2), lambda x: x + mg.rand(2), lambda x: x + mg.randint(0, 5, (2,)), mg.bernoulli, lambda x: x.clone().normal_(),
                 lambda x: nn.functional.dropout(x)):
        with pytest.raises(RuntimeError, match=r"^vmap: the function draws random numbers"):
            vmap(draw)(mg.ones(3, 2) * 0.5)


def test_what_a_function_makes_of_a_refusal() -> None:
    def f(x: Any) -> Any:
        try:
            return x * float(x.sum())
        except RuntimeError as error:
            raise ValueError("not mine") from error

    x = mg.arange(6.0).reshape(2, 3)
    close(vmap(f)(x), each(f, x))


def test_the_same_numbers_in_every_chunk() -> None:
    source = mg.Generator().manual_seed(1)
    drawn = vmap(lambda x: x + mg.rand(2, generator=source), randomness="same", chunk_size=2)(mg.zeros(5, 2))
    assert (drawn == drawn[0]).all()


def test_sweeps_while_other_threads_begin_calls() -> None:
    stop, errors = threading.Event(), []

    def begin_calls() -> None:
        while not stop.is_set():
            vmap(lambda x: x * 2)(mg.ones(2, 2))

    thread = threading.Thread(target=begin_calls)
    thread.start()
    x, interval = mg.ones(3, 4, requires_grad=True), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns so often that they meet where they can
    try:
        for _ in range(150):
            vmap(lambda r: sum((r * k for k in range(20)), r).sum())(x).sum().backward()
    except RuntimeError as error:
        errors.append(error)
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert not errors


class Rows(list[mg.Tensor]):
    """A container that is sliced as a whole: along the first dimension of all its tensors."""

    def __getitem__(self, index: Any) -> Any:
        return Rows(x[index] for x in self) if isinstance(index, tuple) else super().__getitem__(index)


@pytest.fixture
def rows_are_sliced_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library does that has containers of its own: it puts its functions in the place of three of vmap's."""
    def process(in_dims: Any, args: Any, func: Any) -> Any:
        leaves, spec = pytree.tree_flatten(args, is_leaf=lambda x: isinstance(x, Rows))
        return len(leaves[0][0]), [in_dims] * len(leaves), leaves, spec

    def create(dims: Any, leaves: Any, level: Any, spec: Any) -> Any:
        return pytree.tree_unflatten([Rows(batching._add_batch_dim(x, d, level) for x in rows)
                                      for rows, d in zip(leaves, dims)], spec)

    def unwrap(outputs: Any, out_dims: Any, level: Any, size: int, func: Any) -> Any:
        return Rows(batching._maybe_remove_batch_dim("f", x, level, size, out_dims) for x in outputs)

    monkeypatch.setitem(pytree.SUPPORTED_NODES, Rows, pytree.NodeDef(lambda rows: (list(rows), None), lambda rows, _: Rows(rows)))
    monkeypatch.setattr(batching, "_process_batched_inputs", process)
    monkeypatch.setattr(batching, "_create_batched_inputs", create)
    monkeypatch.setattr(batching, "_unwrap_batched", unwrap)


@pytest.mark.usefixtures("rows_are_sliced_whole")
@pytest.mark.parametrize("chunk_size", [None, 2])
def test_containers_that_a_library_slices(chunk_size: int | None) -> None:
    shapes = []

    def f(rows: Rows) -> Rows:
        shapes.append([tuple(x.shape) for x in rows])
        return Rows([rows[0] * rows[1].sum(), rows[1] + 1])

    x, y = mg.randn(3, 2, requires_grad=True), mg.randn(3, 4)
    first, second = vmap(f, chunk_size=chunk_size)(Rows([x, y]))
    close(first, x * y.sum(1, keepdim=True))
    close(second, y + 1)
    assert set(map(tuple, shapes)) == {((2,), (4,))}
    close(mg.autograd.grad(first.sum(), x)[0], y.sum(1, keepdim=True).expand(3, 2))


@pytest.mark.usefixtures("rows_are_sliced_whole")
def test_such_containers_one_after_the_other() -> None:
    x = mg.tensor([[1.0], [-2.0], [3.0]])
    found = vmap(lambda rows: Rows([rows[0] if rows[0].item() > 0 else -rows[0]]))(Rows([x]))
    close(found[0], x.abs())


def test_a_result_that_is_no_tensor() -> None:
    with pytest.raises(ValueError, match="must only return tensors, not float"):
        vmap(lambda x: 1.0)(mg.ones(2))


def test_what_resampling_has_worked_out_is_not_followed() -> None:
    """Taps know those of their adjoint, which know them."""
    taps = Taps(4, np.array([[0], [2]]), None)
    assert taps.transposed.transposed is taps
    again = batched_rules._map(lambda value: value, taps)
    assert again is not taps and again.size == 4 and (again.positions == taps.positions).all()
