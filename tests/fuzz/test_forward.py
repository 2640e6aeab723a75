"""Derivatives along a direction, carried forward: random mutating programs against finite differences, and infinite slopes."""

from __future__ import annotations

import math

import pytest

import mutagrad as mg
from mutagrad.autograd.forward_ad import dual_level, make_dual, unpack_dual

from .generator import generate
from .judge import by_duals, by_function, described, judge_forward

BLOCK = 25


@pytest.mark.parametrize("carry", [by_function, by_duals])
@pytest.mark.parametrize("families", [(), ("rooms",)], ids=["core", "rooms"])
@pytest.mark.parametrize("block", range(3))
def test_tangents_are_differences(block, families, carry):
    """`order=2` leaves out what is not recorded, which has no tangent."""
    programs = [generate(seed, order=2, families=families) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    failed = [(p, v) for p in programs if (v := judge_forward(p, mg, carry)).failed]
    assert not failed, "\n\n".join(f"{p.source}\n{v.message}\n{described(v)}" for p, v in failed[:2])


# What is infinite is not zero, as PyTorch says it: the slope at the end of a function's domain.
INFINITE = {
    "sqrt": (mg.sqrt, 0.0, math.inf), "pow": (lambda x: x**0.5, 0.0, math.inf), "log": (mg.log, 0.0, math.inf),
    "asin": (mg.asin, 1.0, math.inf), "acos": (mg.acos, 1.0, -math.inf), "acosh": (mg.acosh, 1.0, math.inf),
    "atanh": (mg.atanh, 1.0, math.inf), "reciprocal": (mg.reciprocal, 0.0, -math.inf), "rsqrt": (mg.rsqrt, 0.0, -math.inf),
    "log1p": (mg.log1p, -1.0, math.inf), "logit": (mg.logit, 0.0, math.inf)}


@pytest.mark.parametrize("name", INFINITE)
@pytest.mark.parametrize("written", [False, True], ids=["computed", "written"])
def test_an_infinite_slope_is_infinite(name, written):
    function, place, slope = INFINITE[name]

    def into_a_buffer(x):
        y = mg.zeros(2)
        y[1] = function(x)
        return y[1]

    primal, tangent = mg.tensor(place), mg.tensor(1.0)
    assert mg.func.jvp(into_a_buffer if written else function, (primal,), (tangent,))[1].item() == slope


@pytest.mark.parametrize("name", INFINITE)
def test_an_infinite_slope_is_infinite_for_duals(name):
    function, place, slope = INFINITE[name]
    with dual_level():
        assert unpack_dual(function(make_dual(mg.tensor(place), mg.tensor(1.0)))).tangent.item() == slope
