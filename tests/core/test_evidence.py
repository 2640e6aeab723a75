"""What sweeps leave behind for `why`: little, for a while, and nothing of the user's."""
from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import mutagrad as mg
from fuzz.generator import generate
from mutagrad.base.counters import counters
from mutagrad.core.evidence import CUTS, FEW_NODES, SWEEPS
from mutagrad.explain.swept import Swept


@pytest.fixture(autouse=True)
def nothing_remembered():
    SWEEPS.clear()
    CUTS.clear()
    counters.referenced = 0


def latest():
    return SWEEPS[-1]


def test_a_small_sweep_keeps_what_it_freed():
    x, mask = mg.ones(3, requires_grad=True), mg.zeros(3)
    (x * mask).sum().backward()
    assert [[v.tolist() for v in saved if v is not None] for saved in latest().kept] == [[[0.0, 0.0, 0.0]]]


def test_the_graph_is_freed_all_the_same():
    x = mg.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    mg.why(x)
    with pytest.raises(RuntimeError, match="are gone"):
        loss.backward()


def test_large_values_are_not_kept():
    x, mask = mg.ones(1 << 19, requires_grad=True), mg.zeros(1 << 19)
    saved = weakref.ref(mask._array)
    (x * mask).sum().backward()
    del mask
    assert not latest().kept and saved() is None


def test_several_losses_of_one_large_computation_are_not_kept_either():
    x = mg.ones(1 << 19, requires_grad=True)
    one, other = (x * x).sum(), (x * x * x).sum()
    one.backward()
    other.backward()
    assert not any(sweep.kept for sweep in SWEEPS)


def test_a_large_graph_dies_with_its_tensors():
    x = mg.ones(2, requires_grad=True)
    y = x
    for _ in range(FEW_NODES + 1):
        y = y + 1.0
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    assert node() is None


def test_a_sweep_is_forgotten_after_a_few_others():
    x = mg.ones(2, requires_grad=True)
    y = x * x
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    assert node() is not None
    for _ in range(SWEEPS.maxlen):
        x.sum().backward()
    assert node() is None


def test_a_retained_graph_is_kept_until_the_next_sweep():
    x = mg.ones(2, requires_grad=True)
    y = x * x
    node = weakref.ref(y.grad_fn)
    y.sum().backward(retain_graph=True)
    del y
    assert node() is not None
    x.sum().backward()
    assert node() is None


class Own:
    """An object of the user's."""

    def __call__(self, g):
        return None


def test_hooks_are_not_kept_alive():
    x, hook = mg.ones(2, requires_grad=True), Own()
    y = x * x
    y.register_hook(hook)
    alive = weakref.ref(hook)
    y.sum().backward()
    del y, hook
    assert alive() is None
    assert mg.why(x).cause == "ok"


def test_what_a_function_keeps_is_not_kept_alive():
    kept = []

    class Twice(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.own = Own()
            kept.append(weakref.ref(ctx.own))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = mg.ones(2, requires_grad=True)
    Twice.apply(x * 3).sum().backward()
    gc.collect()
    assert kept[0]() is None
    assert mg.why(x).cause == "ok"


def test_packed_values_are_not_kept_alive():
    kept = []

    class Box:
        def __init__(self, tensor):
            self.tensor = tensor
            kept.append(weakref.ref(self))

    x = mg.ones(2, requires_grad=True)
    with mg.autograd.graph.saved_tensors_hooks(Box, lambda box: box.tensor):
        loss = (x * x).sum()
    loss.backward()
    del loss
    gc.collect()
    assert kept and all(box() is None for box in kept)


def test_a_leaf_is_not_kept_alive():
    x = mg.ones(2, requires_grad=True)
    (x * x).sum().backward()
    alive = weakref.ref(x)
    del x
    assert alive() is None


def test_values_that_change_afterwards_are_remembered_as_they_were():
    x, mask = mg.ones(100, requires_grad=True), mg.zeros(100)
    (x * mask).sum().backward()
    mask.fill_(1.0)
    assert mg.why(x).cause == "zero"


def test_part_of_another_sweep_is_no_sweep_of_its_own():
    x = mg.ones(2, requires_grad=True)
    mg.utils.checkpoint.checkpoint(lambda a: a * a, x, use_reentrant=False).sum().backward()
    assert len(SWEEPS) == 1


def test_notes_are_bounded_and_hold_nothing():
    x = mg.ones(2, requires_grad=True)
    y = x * 2
    node = weakref.ref(y.grad_fn)
    for _ in range(3000):
        y.detach()
    assert len(CUTS) == CUTS.maxlen
    del y
    assert node() is None


def test_no_notes_are_taken_in_no_grad_or_by_this_package():
    x = mg.ones(2, requires_grad=True)
    with mg.no_grad():
        x.detach(), x > 0, x.argmax()
    mg.optim.SGD([x], lr=0.1).step()
    assert [kind for kind, *_ in CUTS] == ["no_grad"]


@pytest.mark.parametrize("seed", range(40))
def test_a_sweep_can_be_seen_again(seed):
    """What the replay brings to each leaf of a random mutating program is what the sweep brought."""
    program = generate(seed)
    leaves, names = program.start(mg, program.point)
    loss = program.run(mg, names)["loss"]
    loss.backward()
    del names, loss
    swept = Swept(*latest().graph(), latest())
    swept.run()
    for x in leaves:
        step = swept.step_of(x._storage.leaf)
        assert (step is None) == (x.grad is None)
        if step is not None:
            np.testing.assert_allclose(swept.came_to(step).reshape(-1), x.grad.numpy().reshape(-1), 1e-12)
            assert (mg.why(x).cause in ("ok", "vanished", "exploded")) == bool((x.grad != 0).any())


def test_values_in_another_order_are_noticed():
    """The replay depends on the order in which values were freed."""
    x = mg.tensor([2.0, 3.0], requires_grad=True)
    x.sin().cos().sum().backward()
    kept = latest().kept
    kept.reverse()
    swept = Swept(*latest().graph(), latest())
    swept.run()
    step = swept.step_of(x._storage.leaf)
    assert not np.allclose(swept.came_to(step), x.grad.numpy())
