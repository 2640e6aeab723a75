"""Seeds every test of a library, so that one that fails draws the same numbers when it runs again, alone, under PyTorch.

Some suites take NumPy's seed from the clock, or PyTorch's as the tests before have left it. A test that is wrong for one draw in
fifty then fails here and passes there, or the other way round.
"""
import random
import sys

import numpy
import pytest


@pytest.hookimpl(tryfirst=True)  # a suite's own seeds come after these
def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(0)
    numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
