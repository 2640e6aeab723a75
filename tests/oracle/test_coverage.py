"""docs/coverage.md is what `make coverage` would write, as far as names and counts say without running the samples."""
from __future__ import annotations

import re

import pytest

pytest.importorskip("torch", reason="make oracle installs it")

from . import coverage

pytestmark = pytest.mark.oracle


def test_document_is_up_to_date() -> None:
    """All of it but the number of calls, which is read from the document itself."""
    written = coverage.DOCUMENT.read_text(encoding="utf-8")
    calls = re.search(r"in ([\d,]+) calls", written.replace("\n", " "))
    assert calls is not None and "## Fail" not in written
    assert written == coverage.render(coverage.by_names(int(calls[1].replace(",", "")))), "make coverage writes it anew"
