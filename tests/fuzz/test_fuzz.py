"""Thousands of random mutating programs: the gradient must be that of the program as it ran."""

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest

import mutagrad
from mutagrad.errors import MissingExtra

from .generator import generate
from .judge import Discarded, OnArrays, first_order, judge, report, shrunk
from .programs import Leaf, Program, Statement
from .settings import by_reference, in_pieces, plainly
from .statements import KINDS
from .table import NAMES

BLOCK = 50
SECOND_SEEDS = 1_000_000
REPORTS = 2

# Families of statements, and how many blocks there are of each order.
FAMILIES = {"core": (44, 14), "rooms": (14, 10), "aliases": (14, 10), "hooks": (8, 8), "scalars": (8, 4), "regions": (6, 4)}


def check(seeds, order, families=(), around=nullcontext):
    programs = [generate(seed, order=order, families=families) for seed in seeds]
    verdicts = [judge(p, mutagrad, order=order, full=False, around=around) for p in programs]
    failed = [(p, v) for p, v in zip(programs, verdicts) if v.failed]
    if failed:
        reports = [report(p, v, mutagrad, order=order, around=around) for p, v in failed[:REPORTS]]
        pytest.fail(f"{len(failed)} of {len(programs)} programs failed\n\n" + "\n\n".join(reports), pytrace=False)


def asked(family):
    return () if family == "core" else (family,)


def first_seeds(block):
    return range(block * BLOCK, (block + 1) * BLOCK)


def second_seeds(block):
    """Programs of second order take longer."""
    return range(SECOND_SEEDS + block * BLOCK // 2, SECOND_SEEDS + (block + 1) * BLOCK // 2)


@pytest.mark.parametrize(("family", "block"), [(f, block) for f, (first, _) in FAMILIES.items() for block in range(first)])
def test_first_order(family, block):
    check(first_seeds(block), order=1, families=asked(family))


@pytest.mark.parametrize(("family", "block"), [(f, block) for f, (_, second) in FAMILIES.items() for block in range(second)])
def test_second_order(family, block):
    check(second_seeds(block), order=2, families=asked(family))


@pytest.mark.parametrize("block", range(14, 20))
def test_aliases_where_everything_is_saved_by_reference(block):
    check(first_seeds(block), order=1, families=("aliases",), around=by_reference)


@pytest.mark.parametrize("block", range(4))
def test_aliases_of_second_order_where_everything_is_saved_by_reference(block):
    check(second_seeds(block + 10), order=2, families=("aliases",), around=by_reference)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("block", [0, 1])
def test_the_plain_sweep(family, block):
    check(first_seeds(block), order=1, families=asked(family), around=plainly)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plain_sweep_in_second_order(family):
    check(second_seeds(0), order=2, families=asked(family), around=plainly)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_sweeps_agree(family):
    """To rounding: what is added in another order may differ in the last bit."""
    compared = 0
    for seed in range(700, 760):
        program = generate(seed, families=asked(family))
        try:
            fast = first_order(program, mutagrad, program.point, OnArrays(program).places)[1]
            with plainly():
                plain = first_order(program, mutagrad, program.point, OnArrays(program).places)[1]
        except Exception as error:
            assert isinstance(error, (Discarded, MissingExtra)) or program.may_be_refused(error), error
            continue
        np.testing.assert_allclose(plain, fast, rtol=1e-12, atol=1e-12)
        compared += 1
    assert compared > 30


@pytest.mark.parametrize("family", ["core", "core", "core", "core", "rooms", "aliases"])
def test_work_cut_up_among_threads(family, request):
    block = 100 + request.node.callspec.indices["family"]
    check(first_seeds(block), order=1, families=asked(family), around=lambda: in_pieces(block))


@pytest.mark.parametrize("family", ["core", "rooms"])
def test_work_cut_up_among_threads_in_second_order(family):
    check(second_seeds(100), order=2, families=asked(family), around=lambda: in_pieces(100))


# The judge and the generator themselves.


@cache
def programs(family):
    return [generate(seed, families=asked(family)) for seed in range(400 if family == "core" else 200)]


@pytest.mark.parametrize(("family", "least"), [("core", 0.95), ("rooms", 0.75), ("hooks", 0.95)])
def test_few_programs_are_discarded(family, least):
    def judged(program):
        try:
            return OnArrays(program).gradient() is not None
        except Discarded:
            return False

    assert sum(map(judged, programs(family))) >= least * len(programs(family))


@pytest.mark.parametrize(("family", "least"), [("aliases", 0.6), ("scalars", 0.35), ("regions", 0.5)])
def test_few_programs_are_discarded_or_refused(family, least):
    kinds = [judge(p, mutagrad).kind for p in programs(family)]
    assert sum(kind not in ("discarded", "refused") for kind in kinds) >= least * len(kinds)


@pytest.mark.parametrize("family", FAMILIES)
def test_nearly_all_programs_write_and_every_kind_of_statement_occurs(family):
    writes = {k.name for k in KINDS if k.writes or k.unrecorded}
    kinds = [p.kinds for p in programs(family)]
    assert sum(bool(k & writes) for k in kinds) > 0.8 * len(kinds)
    assert {k.name for k in KINDS if k.family in ("core", family)} <= set().union(*kinds)


def test_many_operations_of_the_table_occur():
    """The text of a call names its sample."""
    source = "\n".join(p.source for p in programs("rooms"))
    assert sum(f"('{name}(" in source for name in NAMES) > 0.3 * len(NAMES)


def test_a_seed_is_always_the_same_program():
    assert generate(7).source == generate(7).source


def program(source, **leaves):
    leaves = tuple(Leaf(name, np.array(value, dtype=float)) for name, value in leaves.items())
    return Program(leaves, tuple(Statement("", line) for line in source.split("\n")))


def test_the_judge_sees_a_kink():
    p = program("loss = x.abs().sum()", x=[1.0, 1e-5])
    assert judge(p, mutagrad).message == "a kink is too near"


def test_the_judge_takes_detached_values_for_constants():
    p = program("y = x * 2\ny.data.zero_()\nc = x.detach().clone()\nloss = (y * y + (y + 3) * c).sum()", x=[1.0, 2.0])
    np.testing.assert_allclose(OnArrays(p).gradient(), [2.0, 4.0])


def test_the_judge_notices_a_wrong_gradient():
    wrong = program("y = x * x\ny.data.mul_(2.0)\nloss = y.sum()", x=[1.0, 2.0])
    right = program("y = x * x\ny.mul_(2.0)\nloss = y.sum()", x=[1.0, 2.0])
    np.testing.assert_allclose(OnArrays(wrong).gradient(), [2.0, 4.0])
    np.testing.assert_allclose(OnArrays(right).gradient(), [4.0, 8.0])


def test_shrinking_keeps_what_fails():
    lines = ["a = x * 2", "b = mg.sin(a)", "a.zero_()", "loss = f64(0.0)", "loss = loss + b.sum()"]
    small = shrunk(program("\n".join(lines), x=[1.0], y=[2.0]), lambda p: "a.zero_()" in p.source)
    assert [s.source for s in small.statements] == ["a = x * 2", "a.zero_()", "loss = f64(0.0)"]
    assert [leaf.name for leaf in small.leaves] == ["x"]


# The mirror knows what it means to write to a leaf without a record, to look at it otherwise, and to hook into its gradient.


def gradient(source, **leaves):
    return OnArrays(program(source, **leaves)).gradient()


def test_the_mirror_makes_a_leaf_a_leaf_again():
    np.testing.assert_allclose(gradient("x.mul_(x)\ny = x * 3\nx.data[0] = 5.0\nloss = (y + x).sum()", x=[1.0, 2.0]), [7.0, 13.0])


def test_the_mirror_follows_the_elements_of_a_leaf():
    p = program("x.t_()\nloss = (x * f64([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum()", x=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    arrays = OnArrays(p)
    np.testing.assert_allclose(arrays.gradient(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0])
    assert arrays.places[0].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_the_mirror_scales_a_gradient_and_not_the_value():
    p = program("y = x * x\nhook(y[:1], 3.0, 'returned', kept)\nloss = y.sum()", x=[1.0, 2.0])
    assert OnArrays(p).value == 5.0
    np.testing.assert_allclose(OnArrays(p).gradient(), [6.0, 4.0])


def test_only_errors_that_are_meant_are_refusals():
    p = Program((), (Statement("checkpointed", ""),))
    assert p.may_be_refused(mutagrad.errors.GradientError("checkpoint: what it reads has changed"))
    assert not p.may_be_refused(mutagrad.errors.GradientError("backward: something else"))
    assert not p.may_be_refused(RuntimeError("checkpoint"))


def test_small_work_is_cut_up():
    x = mutagrad.ones(10)
    with in_pieces(0) as sizes:
        mutagrad.exp(x)
    assert sizes == [7]  # all but the first piece, by which it is decided
    with in_pieces(0) as sizes:
        mutagrad.ones(12).reshape(3, 4).transpose(0, 1).clone()
    assert sizes
