"""`testing.assert_close` against PyTorch's: what it accepts, what it raises, and in which words."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

from .compare import attempt, stands_for

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

nan, inf = float("nan"), float("inf")
CALLS = """
A(t([1.,2,3]), t([1.,2,4]))
A(t([1.,2,3]), t([1.,2,3.0000001]))
A(t([1,2]), t([1,3]))
A(t(1.), t(2.))
A(t(1), t(2))
A(1., 2.)
A(1, 2)
A(1, 1.0)
A(True, False)
A(True, True)
A(t([1.]), t([1.]).double())
A(t([1.]), t([1.]).double(), check_dtype=False)
A(t([1.]).half(), t([1.1]).half())
A(t([1.]).bfloat16(), t([1.1]).bfloat16())
A(t([1.]), t([1.,2]))
A(t([1.]), 1.)
A(t(1.), 1.)
A([t([1.]), 2.], [t([1.]), 3.])
A([1.], [1.,2.])
A({'a': 1.}, {'a': 2.})
A({'a': 1.}, {'b': 1.})
A(None, None)
A(None, 1.)
A('a', 'a')
A(t([nan]), t([nan]))
A(t([nan]), t([nan]), equal_nan=True)
A(t([1.]), t([2.]), msg='hey')
A(t([1.]), t([2.]), msg=lambda m: 'PRE ' + m)
A(t([1.]), t([1.1]), rtol=0.2)
A(t([1.]), t([1.1]), rtol=0.2, atol=0)
A(t([1.]), t([1.1]), rtol=0, atol=0)
A(t([[1.,2],[3,4]]), t([[1.,2],[3,5]]), check_stride=True)
A(t([[1.,2],[3,4]]).T, t([[1.,3],[2,4]]), check_stride=True)
A(np.ones(2), np.ones(2) * 2)
A(np.ones(2), t([1.,1]).double())
A(t([True,False]), t([True,True]))
A(t([1+1j]), t([1+2j]))
A((1.,2.), [1.,2.])
A(t([1.,inf]), t([1.,2.]))
A(t([1,2]), t([1,3]), rtol=0, atol=5)
A(1., 2., rtol=0, atol=0)
A({'a': [1.,2.]}, {'a': [1.,3.]})
A(nan, nan)
A(nan, nan, equal_nan=True)
A(inf, inf)
A(inf, 1.)
A(t([]), t([]))
A(3+0j, 4+0j)
A(t([1.,2.]), t([0.,0.]))
A(1.0, 0.0)
A(2, 0)
A(t([[1.,5.],[2.,0.]]), t([[1.,2.],[2.5,0.]]))
A(t([1.], requires_grad=True), t([1.]))
A(np.float64(1), np.float64(2))
A({'a': {'b': [t([1.])]}}, {'a': {'b': [t([2.])]}})
""".strip().splitlines()


def outcome(call: str, library: Any) -> Exception | None:
    return attempt(lambda: eval(call, {"A": library.testing.assert_close, "t": library.tensor, "np": np, "nan": nan, "inf": inf}))[1]


@pytest.mark.parametrize("call", CALLS)
def test_assert_close(call: str) -> None:
    theirs, mine = outcome(call, torch), outcome(call, mg)
    if theirs is None:
        assert mine is None
    elif isinstance(theirs, AssertionError):
        assert type(mine) is AssertionError and str(mine).replace("mutagrad", "torch") == str(theirs)
    else:
        assert mine is not None and stands_for(theirs, mine)
