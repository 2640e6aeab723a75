"""Random mutating programs for all slices at once: each slice must give what it gives by itself, and so must the gradients."""

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.func import grad_and_value, vmap

from .generator import generate

FAMILIES = {"core": 6, "rooms": 4, "aliases": 4, "hooks": 2, "scalars": 3, "regions": 3}  # and how many blocks of each
BLOCK = 25
SLICES = 3


def mapped(program):
    """The loss as a function of the leaves, and each leaf at points near its own."""
    rng = np.random.default_rng(program.seed)
    points = [program.point + 0.05 * rng.standard_normal(program.point.shape) * (k > 0) for k in range(SLICES)]
    stacks = [mg.tensor(np.stack(column)) for column in zip(*map(program.leaf_arrays, points))]
    return lambda *leaves: program.run(mg, {leaf.name: x.clone() for leaf, x in zip(program.leaves, leaves)})["loss"], stacks


def check(program):
    loss, stacks = mapped(program)
    derived = grad_and_value(loss, argnums=tuple(range(len(stacks))))
    try:
        each = [derived(*(s[i] for s in stacks)) for i in range(SLICES)]
    except mg.MutagradError:  # some programs are refused
        return False
    gradients, values = vmap(derived, randomness="different")(*stacks)
    same(values, [value for _, value in each], program)
    leaves = [s.clone().requires_grad_() for s in stacks]
    found = [None] * len(leaves)
    whole = vmap(loss, randomness="different")(*leaves).sum()
    if whole.requires_grad:
        found = mg.autograd.grad(whole, leaves, allow_unused=True)
    for k, leaf in enumerate(leaves):
        expected = [g[k] for g, _ in each]
        same(gradients[k], expected, program)
        same(mg.zeros_like(leaf) if found[k] is None else found[k], expected, program)
    return True


def same(got, expected, program):
    np.testing.assert_allclose(got.detach().numpy(), np.stack([e.detach().numpy() for e in expected]), 1e-8, 1e-10, err_msg=program.source)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "block"), [(f, block) for f, count in FAMILIES.items() for block in range(count)])
def test_programs_for_all_slices(family, block):
    programs = [generate(seed, order=1, families=() if family == "core" else (family,)) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    programs = [p for p in programs if not p.in_one_buffer and not any(leaf.probe for leaf in p.leaves) and "random" not in p.source]
    assert sum(map(check, programs)) > len(programs) / 2
