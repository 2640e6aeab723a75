"""Running something in a process of its own, so that what it leaves behind does not disturb whoever comes next."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable

PATIENCE = 60.0


def isolated(function: Callable[[], None]) -> None:
    """Call a function in a fork of this process; raise an AssertionError with what it raised, or if it does not end."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
        child = os.fork()
    if not child:
        os.close(ours)
        _answer(function, theirs)
    os.close(theirs)
    try:
        told = _all_of(ours, child)
    finally:
        os.close(ours)
        _, status = os.waitpid(child, 0)
    assert not told and not status, told or f"the process has ended with status {status}"


def _answer(function: Callable[[], None], pipe: int) -> None:
    """In the child: says what was raised, and ends without anything that the parent would do at its end."""
    try:
        function()
    except BaseException:
        os.write(pipe, traceback.format_exc()[-4000:].encode())
    finally:
        os._exit(0)


def _all_of(pipe: int, child: int) -> str:
    told, end = b"", time.monotonic() + PATIENCE
    while True:
        ready, _, _ = select.select([pipe], [], [], max(end - time.monotonic(), 0))
        if not ready:
            os.kill(child, signal.SIGKILL)
            return told.decode() + "it hangs"
        part = os.read(pipe, 4096)
        if not part:
            return told.decode()
        told += part
