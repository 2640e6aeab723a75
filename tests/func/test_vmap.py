"""`vmap` runs a function once for all slices: every operation of the table gives what it gives for each slice by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.arrays import batched, kinds
from mutagrad.core.op import KERNELS, RAW, kernel
from mutagrad.func import functional_call, grad, hessian, jacrev, mapping, vmap
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
        sizes.append(x._array.level.size)
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
    with pytest.raises(IndexError, match="out of range"):
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
