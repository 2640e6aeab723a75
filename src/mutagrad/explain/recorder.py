"""What trace and profile have in common: a block that is told of calls and of sweeps, and may be entered again."""
from __future__ import annotations

import threading
from typing import Any

from ..base.locks import new_lock
from ..base.modes import mode
from .sweeping import SweepListener, listen, stop_listening
from .watching import Watcher

_lock = new_lock()


class Recorder(Watcher, SweepListener):
    """Told of calls and sweeps on the threads that enter it, and on those that begin meanwhile.

    A decorated function that calls itself enters it again, which changes nothing; so may several threads at once.
    """

    threads = True

    def __init__(self) -> None:
        self.depth, self._entered = 0, threading.local()

    def begin(self) -> None:
        """Get ready, as the first block begins."""

    def end(self) -> None:
        """Finish, as the last block ends."""

    def __enter__(self) -> Any:
        new, here = not self.is_asked(), self._here()
        known, counted, before = len(here), 0, mode.now
        try:
            with _lock:
                self.depth += (counted := 1)
                if self.depth == 1:
                    listen(self)
                    self.begin()
            here.append(new)
            if new:
                super().__enter__()
            return self
        except BaseException:  # an interrupt: nobody will leave what was not entered
            del here[known:]
            if mode.now is not before:
                super().__exit__()
            self._leave_one(counted)
            raise

    def __exit__(self, *error: Any) -> None:
        if not self.depth:
            self.leave()  # raises
        here = self._here()
        try:
            if not here or here.pop():
                super().__exit__(*error)
        finally:
            self._leave_one(1)

    def _leave_one(self, counted: int) -> None:
        with _lock:
            self.depth -= counted
            if not self.depth:
                stop_listening(self)
                self.end()

    def _here(self) -> list[bool]:
        """Whether each entering on this thread has changed its modes."""
        if not hasattr(self._entered, "list"):
            self._entered.list = []
        return self._entered.list  # type: ignore[no-any-return]

    def is_asked(self) -> bool:
        """Whether this thread's next call would be told."""
        return any(asked is self for asked in mode.now.function_modes)
