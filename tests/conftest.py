"""What needs a library that is not installed is skipped, by the name of the extra that would bring it."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import pytest

# The same bits in every call, and no compiler beside the tests; those of compiled kernels ask for them.
os.environ.setdefault("MUTAGRAD_KERNELS", "numpy")

from mutagrad.base.errors import MissingExtra

LIBRARIES = {"fast": "numba", "scipy": "scipy", "bfloat16": "ml_dtypes", "files": "safetensors", "xla": "jax"}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """The package's own error says what is missing. Where it is not missing, the error is a failure like any other."""
    try:
        return (yield)
    except MissingExtra as error:
        if all(find_spec(library) for extra, library in LIBRARIES.items() if f"[{extra}]" in error.fix):
            raise
        pytest.skip(f"{error.what}: {error.fix}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have the collector pass over the cases: they are a million objects, and many tests have it look at all that there are.

    Not where steps are compiled, which look at frozen objects in another way.
    """
    if not any("/xla/" in item.nodeid for item in session.items):
        gc.freeze()
