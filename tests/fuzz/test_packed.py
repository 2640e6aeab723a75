"""Random mutating programs whose saved values the user packs, and whose derivative along a direction is carried forward."""

from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from mutagrad.autograd.graph import saved_tensors_hooks

from .generator import generate
from .judge import first_order, judge

COUNT = 25


@pytest.mark.parametrize("seed", range(COUNT))
def test_packed_values(seed):
    verdict = judge(generate(seed), mg, around=lambda: saved_tensors_hooks(lambda t: t.numpy().copy(), mg.from_numpy))
    assert not verdict.failed, f"{verdict}\n{generate(seed).source}"


@pytest.mark.parametrize("seed", range(COUNT))
def test_tangents_are_gradients_times_directions(seed):
    program = generate(seed)
    if "no_grad" in program.source:
        pytest.skip("what is not recorded has no tangent")
    _, gradient = first_order(program, mg, program.point)
    direction = np.random.default_rng(seed).normal(size=program.point.size)
    with dual_level():
        duals = [make_dual(mg.tensor(a.tolist(), dtype=mg.float64), mg.tensor(d.tolist(), dtype=mg.float64))
                 for a, d in zip(program.leaf_arrays(program.point), program.leaf_arrays(direction))]
        tangent = unpack_dual(program.run(mg, duals)["loss"]).tangent
    assert np.isclose(0.0 if tangent is None else tangent.item(), gradient @ direction, rtol=1e-6), program.source
