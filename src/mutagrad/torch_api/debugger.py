"""Python's debugger for programs that `mutagrad run` runs: their stack begins where they begin."""
from __future__ import annotations

import pdb
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

from ..base.provenance import OURS


class Debugger(pdb.Pdb):
    """Does not show the frames of `runners`, files that run the program, and what is above them."""

    def __init__(self, runners: Sequence[str]) -> None:
        super().__init__()
        self.runners = runners

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[Any], int]:
        stack, place = super().get_stack(f, t)
        names = [frame.f_code.co_filename for frame, _ in stack]
        ours = [i for i, name in enumerate(names) if name == self.runners[0]]
        first = ours[-1] + 1 if ours else 0
        while first < len(names) - 1 and (names[first] in self.runners or names[first] in OURS):
            first += 1
        return stack[first:], place - first


def stop(frame: FrameType, runners: Sequence[str]) -> None:
    """Stop in a frame, as `breakpoint()` does."""
    Debugger(runners).set_trace(frame)
