"""Lines of the program in which writes were made, found fast for many writes of one long function."""
from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from types import CodeType

from ..core.graph import Node


@lru_cache(maxsize=256)
def _lines(code: CodeType) -> tuple[list[int], list[int]]:
    """Return where instructions of a new line begin, and which line that is."""
    found = [(start, line) for start, _, line in code.co_lines() if line is not None]
    return [start for start, _ in found], [line for _, line in found]


def line_of(node: Node) -> int:
    starts, lines = _lines(node.code)
    at = bisect_right(starts, node.at) - 1
    return lines[at] if at >= 0 else node.code.co_firstlineno
