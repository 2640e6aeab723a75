"""What tests of kernels choose is undone after each."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import mutagrad as mg


@pytest.fixture(scope="session")
def kept_kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled kernels are: in pytest's cache, which the next run finds. Their names tell what they were compiled from."""
    kept = getattr(request.config, "cache", None)
    return kept.mkdir("kernels") if kept is not None else tmp_path_factory.getbasetemp()


@pytest.fixture(autouse=True)
def choices_are_undone(kept_kernels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels and threads are as they were; what is compiled goes to a folder that all these tests share."""
    monkeypatch.setenv("MUTAGRAD_CACHE", str(kept_kernels))
    kernels, threads = mg.get_kernels(), mg.get_num_threads()
    yield
    mg.set_kernels(kernels)
    mg.set_num_threads(threads)
