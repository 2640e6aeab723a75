"""Has a report written when a program ends at once, by `os._exit` or by becoming another program."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_ENDS = ("_exit", "execv", "execve")  # all others of exec's family end in these


@contextmanager
def before_sudden_end(report: Callable[[], int]) -> Iterator[None]:
    """Call `report` before the program leaves so; where it leaves with status 0, with what `report` returns instead.

    A child that was forked, as those of multiprocessing are, leaves as it would have.
    """
    kept, process = {name: getattr(os, name) for name in _ENDS}, os.getpid()
    for name, end in kept.items():
        setattr(os, name, _reporting(end, report, process))
    try:
        yield
    finally:
        for name, end in kept.items():
            setattr(os, name, end)


def _reporting(end: Callable[..., Any], report: Callable[[], int], process: int) -> Callable[..., Any]:
    def leave(*arguments: Any, **settings: Any) -> Any:
        status = 0
        if os.getpid() == process:
            with suppress(Exception):
                status = report()
        if end.__name__ == "_exit":
            given = settings.get("status", arguments[0] if arguments else 0)
            end(given or status)
        return end(*arguments, **settings)

    return leave
