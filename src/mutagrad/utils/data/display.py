"""How far a long loop has got, shown on a terminal."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")
INTERVAL = 0.1  # seconds between two displays


def progress(iterable: Iterable[T], desc: str | None = None) -> Iterable[T]:
    """Iterate over the same items and show how many have gone by: with tqdm where it is installed, else in one line.

    Nothing is shown where stderr is no terminal, or with MUTAGRAD_PROGRESS=0 in the environment.

    >>> from mutagrad.utils.data import progress
    >>> sum(progress([1, 2, 3], desc="adding"))
    6
    """
    if os.environ.get("MUTAGRAD_PROGRESS", "1") == "0" or sys.stderr is None or not sys.stderr.isatty():
        return iterable
    try:
        return import_module("tqdm").tqdm(iterable, desc=desc)  # type: ignore[no-any-return]
    except ImportError:
        return _lines(iterable, desc)


def _lines(iterable: Iterable[T], desc: str | None) -> Iterator[T]:
    total = _length(iterable)
    start, shown, count = time.monotonic(), 0.0, 0
    try:
        for count, item in enumerate(iterable, 1):
            yield item
            if time.monotonic() - shown > INTERVAL:
                shown = time.monotonic()
                _show(count, total, shown - start, desc)
    finally:
        _show(count, total, time.monotonic() - start, desc)
        sys.stderr.write("\n")


def _show(count: int, total: int | None, seconds: float, desc: str | None) -> None:
    of = f"/{total} ({100 * count // max(total, 1)}%)" if total is not None else ""
    what, speed = f"{desc}: " if desc else "", count / max(seconds, 1e-9)
    sys.stderr.write(f"\r{what}{count}{of}  {seconds:.1f} s  {speed:.1f}/s\x1b[K")
    sys.stderr.flush()


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None
