"""Smooth stand-ins on a device of XLA's: the same values and gradients as on the CPU."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg
from mutagrad import relax

GIVEN = ([1.0, 5.0, 2.0, 7.0], [0.5, 0.25, 2.0], [3.0, -1.0, 2.0])


@pytest.mark.parametrize("function", [
    lambda x, at, v: relax.write_(relax.add_(x.clone(), at, v), at, v * 2),
    lambda x, at, v: relax.read(x, relax.argmax(x, temperature=0.5) + at * 0),
    lambda x, at, v: relax.rank(x) + relax.sort(x)[0] + relax.one_hot(x, hard=True),
    lambda x, at, v: relax.clamp(relax.round(x * 0.3), 0.0, 1.0) + relax.where(x - 3, x, 0.0),
], ids=["write", "read", "order", "smooth"])
def test_devices_give_the_same(function: Any) -> None:
    results = []
    for device in ("cpu", "xla"):
        given = [mg.tensor(v, device=device, requires_grad=True) for v in GIVEN]
        out = function(*given)
        (out ** 2).sum().backward()
        assert out.device.type == device
        results.append([t.cpu() for t in (out.detach(), *(g.grad for g in given if g.grad is not None))])
    assert len(results[0]) == len(results[1]) and all(mg.allclose(a, b, atol=1e-5) for a, b in zip(*results))
