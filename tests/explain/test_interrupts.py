"""A watcher that is interrupted while it is entered leaves nothing behind."""
from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from threading import Thread
from types import FrameType
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.base.modes import mode
from mutagrad.core import backward
from mutagrad.explain import profile, recorder
from mutagrad.explain.doctor.diagnosis import Diagnosis
from mutagrad.explain.tracing import Trace
from mutagrad.optim import optimizer
from mutagrad.torch_api import torch_function

FILES = ("watching.py", "diagnosis.py", "recorder.py", "sweeping.py", "tracing.py", "profile.py", "torch_function.py")


LOCKS = {"torch_function": torch_function._lock, "profile": profile._lock, "recorder": recorder._lock}


class Stop:
    """Raises at the n-th line that is executed in our files.

    But for `with _lock:`, which is such a line once more when the lock is about to be given back: no signal comes between
    the end of the block and that, and an exception there would leave it taken.
    """

    def __init__(self, n: int) -> None:
        self.left, self.reached, self.place = n, False, ("", 0, "")

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith("with _lock"):
            self.left -= 1
            if self.left < 0:
                self.reached, self.place = True, (frame.f_code.co_name, frame.f_lineno, frame.f_code.co_filename[-20:])
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def state() -> tuple[Any, ...]:
    hooks = len(getattr(optimizer, "_global_optimizer_post_hooks", ()))
    return mg.Tensor.__setitem__, mg.autograd.Function.apply.__func__, backward.SWEEP, mode.now, hooks


@pytest.mark.parametrize("make", [Diagnosis, Trace, mg.profile], ids=["doctor", "trace", "profile"])
def test_interrupted_while_entered(make: Callable[[], Any]) -> None:
    with make():
        pass  # what is made for good, when first used
    before, n = state(), 0
    while True:
        block, stop = make(), Stop(n)
        former = sys.gettrace()
        sys.settrace(stop)
        try:
            block.__enter__()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(former)
        if not stop.reached:
            block.__exit__(None, None, None)
            break
        assert state() == before, stop.place
        n += 1
    assert n > 10 and state() == before
    assert on_another_thread(taken) == []


def taken() -> list[str]:
    """The locks that somebody else has."""
    found = []
    for name, lock in LOCKS.items():
        if lock.acquire(timeout=1):
            lock.release()
        else:
            found.append(name)
    return found


def on_another_thread(function: Callable[[], list[str]]) -> list[str]:
    found: list[str] = []
    thread = Thread(target=lambda: found.extend(function()))
    thread.start()
    thread.join()
    return found
