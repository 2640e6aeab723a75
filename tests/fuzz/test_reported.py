"""Programs that were once differentiated wrongly without a word, each as short as it can be; random ones hold the same statements."""

from __future__ import annotations

import numpy as np
import pytest

import mutagrad

from .generator import generate
from .judge import described, judge
from .programs import Leaf, Program, Statement
from .scalars import OF_MATRICES, SURE, TABLE
from .settings import by_reference, in_pieces
from .statements import KINDS

VECTOR, MATRIX, SQUARE = [0.3, -0.8, 1.2], [[0.3, -0.8, 1.2], [0.7, 0.4, -0.5]], [[0.3, -0.8], [0.7, 0.4]]

# By name: the kind of statement, the values of the leaves, and the lines.
ALIASES = {
    "a list is assigned": ("assign_list", {"x": VECTOR}, "y = f64([0.0, 0.0, 0.0])\ny[:2] = [x[0] * 2, x[1] * 3]", "y"),
    "a tuple is assigned": ("assign_list", {"x": VECTOR}, "y = x * 2\ny[[0, 2]] = (x[1] * 2, x[0])", "y"),
    "a mixed list is assigned": ("assign_list", {"x": VECTOR}, "y = x * 2\ny[:2] = [x[0] * 2, 0.5]", "y"),
    "a nested list is assigned": ("assign_list", {"x": SQUARE}, "y = x * 2\ny[:] = [x[1], [x[0, 0] * 3, 1.5]]", "y"),
    "a list of numbers is assigned": ("assign_list", {"x": VECTOR}, "y = x * 2\ny[:2] = [-0.96, 1.37]", "y"),
    "a list is copied": ("copy_list", {"x": VECTOR}, "y = x * 2\ny.copy_([x[1], 0.5, x[0] * x[2]])", "y"),
    "t_ of a leaf": ("turn_in_place", {"x": SQUARE}, "x.t_()", "x"),
    "t_ of a leaf that was used": ("turn_in_place", {"x": MATRIX}, "y = mg.sin(x)\nx.t_()\nz = y.sum() * x", "z"),
    "transpose_ of a leaf": ("turn_in_place", {"x": MATRIX}, "x.transpose_(0, 1)", "x"),
    "t_ of a written leaf": ("turn_in_place", {"x": SQUARE}, "x[0] *= x[1]\nx.t_()\nx[0].sin_()", "x"),
    "t_ of a result": ("turn_in_place", {"x": MATRIX}, "y = x * x\ny.t_()\ny[0] *= 2.0", "y"),
    "data turned after use": ("turned_data", {"x": MATRIX}, "y = x * x\nx.data = x.data.t()", "y"),
    "data turned before use": ("turned_data", {"x": MATRIX}, "x.data = x.data.t()\ny = x * x", "y"),
    "data of a leaf exchanged": ("leaf_data", {"x": VECTOR}, "y = x * x\nx.data = f64([1.0, 2.0, 3.0])\nz = x * y", "z"),
    "a part of a leaf in a buffer, unrecorded": ("unrecorded_leaf_write", {"x": VECTOR}, "x.mul_(x)\nwith mg.no_grad():\n    x[0] = 0.5", "x"),
    "a part of it through data": ("unrecorded_leaf_write", {"x": VECTOR}, "x.mul_(x)\nx.data[1:] = 0.5", "x"),
    "a part of it through the buffer": ("buffer_write", {"x": VECTOR}, "x.mul_(x)\nflat[2] = 0.5", "x"),
    "a saved input": ("spoil_saved", {"x": VECTOR}, "y = mg.sin(x)\nz = x * x\nspoil(y, 'zero')", "z"),
    "a saved result": ("spoil_saved", {"x": VECTOR}, "y = mg.exp(x)\nz = y * y\nspoil(y, 'no_grad')\nz = z + y", "z"),
    "values that a Function saved": ("spoiling_function", {"x": VECTOR}, "y = mg.cos(x)\nz = Spoiling.apply(x, y, 'zero')\nsweep(z)\nz = z * x * y", "z"),
    "the result of a Function, written": ("function_of_view_written", {"x": VECTOR}, "y = x * 2\nz = Look.apply(y, 'rows')\nz.mul_(3.0)", "y"),
    "the input of a Function, written": ("function_of_view_written", {"x": VECTOR}, "y = x * 2\nz = Look.apply(y, 'itself')\ny.mul_(y)", "z"),
    "two results in one memory": ("function_of_view", {"x": VECTOR}, "y, z = TwoViews.apply(x, 'all', 'rows')\nz.mul_(y[1:])", "y"),
    "an expanded result": ("widening_function", {"x": VECTOR}, "y = Widen.apply(x, 5, False)", "y"),
    "an expanded input as the result": ("widening_function", {"x": VECTOR}, "y = Widen.apply(x, 5, True)", "y"),
    "a turned result": ("function_of_view", {"x": MATRIX}, "y = LookAtSin.apply(x, 'turned')", "y"),
    "a saved view asked for a gradient": ("adjoint_of_view", {"x": VECTOR}, "held = (x * 2)[1:]\ny = Adjoint.apply(lambda: mg.sin(held), held)", "y"),
    "a saved view of a leaf": ("adjoint_of_view", {"x": VECTOR}, "held = x[1:]\ny = Adjoint.apply(lambda: mg.sin(held), held)", "y"),
    "parameters of a vector": ("parameters_of_vector", {"x": VECTOR}, "vector = to_vector([x]).detach() * 2\nfrom_vector(vector, [x])\nx.mul_(x)\nvector[1:] = 0.5", "x"),
}
IN_A_BUFFER = {name for name in ALIASES if "buffer" in name or "part of it" in name}
SECOND = {
    "a saved view of the input": ("function_saves_view", {"x": VECTOR}, "y = SquareOfView.apply(x, 'rows')", "y"),
    "a hook on a view, in place": ("hooked_result", {"x": VECTOR}, "y = mg.sin(x)\nhook(y[1:], 2.0, 'in place', kept)", "y"),
    "hooks on views that overlap": ("hooked_result", {"x": VECTOR}, "y = mg.sin(x)\nhook(y[1:], 2.0, 'in place', kept)\nhook(y[:2], 3.0, 'returned', kept)", "y"),
    "a hook on a view of a leaf": ("hooked_leaf", {"x": VECTOR}, "hook(x[1:], 2.0, 'in place', kept)\ny = mg.sin(x)", "y"),
}
ACCUMULATED = ["into an expanded tensor", "into a view", "into a transposed view", "into a stepped view"]
REGIONS = {
    "a constant changed": ("checkpointed_and_changed", {"x": VECTOR}, "c = f64([1.0, 2.0, 3.0])\ny = checkpoint(lambda t: t * t * c, x)\nc.mul_(2.0)", "y"),
    "a constant changed through data": ("checkpointed_and_changed", {"x": VECTOR}, "c = f64([1.0, 2.0, 3.0])\ny = checkpoint(lambda t: t * t * c, x)\nc.data.zero_()", "y"),
    "a constant exchanged": ("checkpointed_and_changed", {"x": VECTOR}, "c = [f64(2.0)]\ny = checkpoint(lambda t: t * t * c[0], x)\nc[0] = f64(3.0)", "y"),
    "a constant changed within": ("checkpointed_and_changed", {"x": VECTOR}, "c = f64([1.0, 2.0, 3.0])\ny = checkpoint(lambda t: c.mul_(2.0) * t, x)", "y"),
}
OVERLAPPING = {
    "a window times the next": ("overlap", {"x": [0.3, -0.8, 1.2, 0.5, 0.9]}, "y = x * 2\ny[:-1].mul_(y[1:])", "y"),
    "out= over the operand": ("overlap", {"x": [0.3, -0.8, 1.2, 0.5, 0.9]}, "y = x * 2\nmg.exp(y[1:], out=y[:-1])", "y"),
    "an element of the target": ("overlap", {"x": [0.3, -0.8, 1.2, 0.5, 0.9]}, "y = x * 2\ny.div_(y[0])", "y"),
    "the target, turned": ("overlap", {"x": SQUARE}, "y = x * 2\ny.copy_(y.T)\ny.mul_(y.T)", "y"),
}


def program(leaves, lines, result, in_a_buffer=False, asking="once", kind=""):
    """The lines, and as the loss all of the result with a weight for each element."""
    windows = dict.fromkeys(leaves, "flat[2:5]" if in_a_buffer else None)
    made = tuple(Leaf(name, np.array(value), windows[name]) for name, value in leaves.items())
    text = f"{lines}\nloss = weighed({result} * {result} * 0.7) + weighed({result})"
    return Program(made, (Statement(kind, text),), asking=asking)


def check(p, order=1):
    verdict = judge(p, mutagrad, order=order)
    assert verdict.kind in ("right", "refused"), f"{verdict.kind} {verdict.message}\n{p.source}\n{described(verdict)}"


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("around", [None, by_reference], ids=["copied", "by reference"])
def test_aliases(name, around):
    kind, leaves, lines, result = ALIASES[name]
    p = program(leaves, lines, result, name in IN_A_BUFFER, kind=kind)
    if around is None:
        return check(p)
    with around():
        check(p)


@pytest.mark.parametrize("name", SECOND)
def test_second_order(name):
    kind, leaves, lines, result = SECOND[name]
    check(program(leaves, lines, result, kind=kind), order=2)


@pytest.mark.parametrize("asking", ACCUMULATED)
@pytest.mark.parametrize("value", [VECTOR, MATRIX], ids=["vector", "matrix"])
def test_gradients_that_were_there_before(asking, value):
    check(program({"x": value}, "y = mg.sin(x)", "y", asking=asking, kind="hooked_result"))


@pytest.mark.parametrize("name", REGIONS)
def test_regions(name):
    kind, leaves, lines, result = REGIONS[name]
    check(program(leaves, lines, result, kind=kind))


@pytest.mark.parametrize("text", TABLE)
def test_a_tensor_that_stands_for_a_number(text):
    given = "m=x" if text in OF_MATRICES else "x=x, y=y"
    leaves = {"x": SQUARE, "y": [[0.2, 0.1], [0.6, -0.9]], "s": 0.55}
    check(program(leaves, f"z = number({text!r}, {given}, s=s)", "z", kind="tensor_or_number" if text in SURE else "tensor_as_number"))


RANDOM = {
    "dropout": lambda F, x, s: F.dropout(x, p=s), "dropout1d": lambda F, x, s: F.dropout1d(x, p=s),
    "alpha_dropout": lambda F, x, s: F.alpha_dropout(x, p=s), "feature_alpha_dropout": lambda F, x, s: F.feature_alpha_dropout(x, p=s),
    "rrelu": lambda F, x, s: F.rrelu(x, s * 0.1, s, training=True), "gumbel_softmax": lambda F, x, s: F.gumbel_softmax(x, tau=s),
    "normal": lambda F, x, s: mutagrad.normal(s, 1.0, (2, 2)), "bernoulli": lambda F, x, s: mutagrad.bernoulli(x.sigmoid(), p=s)}


@pytest.mark.parametrize("name", RANDOM)
def test_a_tensor_that_stands_for_a_probability(name):
    """It has a gradient, or is declined; a result without one would be silently wrong."""
    x, s = mutagrad.rand(2, 3, requires_grad=True), mutagrad.tensor(0.4, requires_grad=True)
    try:
        result = RANDOM[name](mutagrad.nn.functional, x, s)
    except TypeError:
        return
    assert mutagrad.autograd.grad(result.sum(), s, allow_unused=True) != (None,)


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlapping_operands_of_large_operations(name):
    _, leaves, lines, result = OVERLAPPING[name]
    for seed in range(5):
        with in_pieces(seed):
            check(program(leaves, lines, result))


def test_they_are_kinds_of_random_statements():
    """So that what is like them is found, too."""
    reported = {kind for entries in (ALIASES, SECOND, REGIONS, OVERLAPPING) for kind, *_ in entries.values()}
    assert reported <= {k.name for k in KINDS}
    assert reported <= {kind for seed in range(300) for kind in generate(seed, families=("aliases", "hooks", "regions")).kinds}
