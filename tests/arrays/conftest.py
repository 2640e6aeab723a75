"""What tests of kernels choose is undone after each."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

import mutagrad as mg


@pytest.fixture(autouse=True)
def choices_are_undone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels and threads are as they were; what is compiled goes to a folder that all these tests share."""
    monkeypatch.setenv("MUTAGRAD_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
    kernels, threads = mg.get_kernels(), mg.get_num_threads()
    yield
    mg.set_kernels(kernels)
    mg.set_num_threads(threads)
