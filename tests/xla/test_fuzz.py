"""Random mutating programs as compiled steps: none may differ from eager, and few may be refused."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from fuzz.generator import generate

pytest.importorskip("jax")

FAMILIES = ("core", "rooms", "aliases", "hooks", "scalars", "regions")
BLOCK = int(os.environ.get("MUTAGRAD_XLA_PROGRAMS", "8"))  # of each; they take half a second each, nearly all of it compiling


def outcome(program: Any) -> str:
    """How a program fares that is compiled with its backward."""
    def step(*leaves: Any) -> Any:
        leaves = tuple(x.detach().clone().requires_grad_() for x in leaves)
        loss = program.run(mg, {leaf.name: x for leaf, x in zip(program.leaves, leaves)})["loss"]
        grads = mg.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None] * len(leaves)
        return loss.detach(), [mg.zeros_like(x) if g is None else g.detach() for g, x in zip(grads, leaves)]

    given = [mg.tensor(v) for v in program.leaf_arrays(program.point)]
    try:
        expected = step(*given)
    except mg.MutagradError:
        return "no program"
    try:
        got = mg.compile(step)(*given)
    except mg.MutagradError as error:
        assert type(error).__name__ == "NotTraced", error
        return "refused"
    for g, e in zip((got[0], *got[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(g.numpy(), e.numpy(), 1e-7, 1e-8, err_msg=program.source)
    return "right"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_programs(family: str) -> None:
    programs = [generate(seed, order=1, families=() if family == "core" else (family,)) for seed in range(BLOCK)]
    programs = [p for p in programs if not p.in_one_buffer and not any(leaf.probe for leaf in p.leaves) and "random" not in p.source]
    found = [outcome(p) for p in programs]
    assert found.count("right") > 0.7 * (len(found) - found.count("no program")), found
