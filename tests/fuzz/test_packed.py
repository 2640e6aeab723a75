"""Random mutating programs whose saved values the user packs."""

from __future__ import annotations

import pytest

import mutagrad as mg
from mutagrad.autograd.graph import saved_tensors_hooks

from .generator import generate
from .judge import judge

COUNT = 25


@pytest.mark.parametrize("seed", range(COUNT))
def test_packed_values(seed):
    verdict = judge(generate(seed), mg, around=lambda: saved_tensors_hooks(lambda t: t.numpy().copy(), mg.from_numpy))
    assert not verdict.failed, f"{verdict}\n{generate(seed).source}"

