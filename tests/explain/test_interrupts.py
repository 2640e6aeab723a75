"""A watcher that is interrupted while it is entered leaves nothing behind."""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.base.modes import mode
from mutagrad.core import backward
from mutagrad.explain.doctor.diagnosis import Diagnosis
from mutagrad.explain.tracing import Trace
from mutagrad.optim import optimizer

FILES = ("watching.py", "diagnosis.py", "recorder.py", "sweeping.py", "tracing.py", "profile.py", "torch_function.py")


class Stop:
    """Raises at the n-th line that is executed in our files."""

    def __init__(self, n: int) -> None:
        self.left, self.reached, self.place = n, False, ("", 0, "")

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        if event == "line":
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
