"""Locks for the life of the process, free again in a forked child: the thread that held one does not live there."""
from __future__ import annotations

import os
from threading import RLock
from typing import Any

_made: list[Any] = []


def new_lock() -> Any:
    """Return a re-entrant lock; for module level only, as it is never forgotten."""
    _made.append(RLock())
    return _made[-1]


def _free() -> None:
    for lock in _made:
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
