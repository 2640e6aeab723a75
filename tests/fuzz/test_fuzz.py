"""Thousands of random mutating programs: the gradient must be that of the program as it ran."""

from functools import cache

import numpy as np
import pytest

import mutagrad

from .generator import generate
from .judge import Discarded, OnArrays, judge, report, shrunk
from .programs import Leaf, Program, Statement
from .statements import KINDS
from .table import NAMES

FIRST, SECOND = 44, 14  # blocks
ROOMS_FIRST, ROOMS_SECOND = 14, 10
BLOCK = 50
SECOND_SEEDS = 1_000_000
REPORTS = 2


def check(seeds, order, rooms=False):
    programs = [generate(seed, order=order, rooms=rooms) for seed in seeds]
    verdicts = [judge(p, mutagrad, order=order, full=False) for p in programs]
    failed = [(p, v) for p, v in zip(programs, verdicts) if v.failed]
    if failed:
        reports = [report(p, v, mutagrad, order=order) for p, v in failed[:REPORTS]]
        pytest.fail(f"{len(failed)} of {len(programs)} programs failed\n\n" + "\n\n".join(reports), pytrace=False)


@pytest.mark.parametrize("block", range(FIRST))
def test_first_order(block):
    check(range(block * BLOCK, (block + 1) * BLOCK), order=1)


@pytest.mark.parametrize("block", range(SECOND))
def test_second_order(block):
    first = SECOND_SEEDS + block * BLOCK // 2
    check(range(first, first + BLOCK // 2), order=2)


@pytest.mark.parametrize("block", range(ROOMS_FIRST))
def test_first_order_with_all_operations(block):
    check(range(block * BLOCK, (block + 1) * BLOCK), order=1, rooms=True)


@pytest.mark.parametrize("block", range(ROOMS_SECOND))
def test_second_order_with_all_operations(block):
    first = SECOND_SEEDS + block * BLOCK // 2
    check(range(first, first + BLOCK // 2), order=2, rooms=True)


# The judge and the generator themselves.


@cache
def programs(rooms):
    return [generate(seed, rooms=rooms) for seed in range(200 if rooms else 400)]


@pytest.mark.parametrize(("rooms", "least"), [(False, 0.95), (True, 0.75)])
def test_few_programs_are_discarded(rooms, least):
    def judged(program):
        try:
            return OnArrays(program).gradient() is not None
        except Discarded:
            return False

    assert sum(map(judged, programs(rooms))) >= least * len(programs(rooms))


@pytest.mark.parametrize("rooms", [False, True])
def test_nearly_all_programs_write_and_every_kind_of_statement_occurs(rooms):
    writes = {k.name for k in KINDS if k.writes or k.unrecorded}
    kinds = [p.kinds for p in programs(rooms)]
    assert sum(bool(k & writes) for k in kinds) > 0.9 * len(kinds)
    assert {k.name for k in KINDS if rooms or not k.rooms} <= set().union(*kinds)


def test_many_operations_of_the_table_occur():
    """The text of a call names its sample."""
    source = "\n".join(p.source for p in programs(rooms=True))
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
