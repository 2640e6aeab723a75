"""Where in the user's program something happened.

A node keeps `(code object, instruction offset)` of the nearest frame outside this package, which costs two attribute
reads; only when somebody asks is it resolved to file, line and source. Frames themselves are never kept: a frame would
keep every local variable of the caller alive.
"""
import linecache
import os
import sys
from collections.abc import Iterable
from itertools import islice
from types import CodeType, FrameType
from typing import Any

Where = tuple[CodeType, int]

_ROOT = os.path.dirname(os.path.dirname(__file__))
# Every source file of this package (generated call paths add their own names). Membership of a file name in a set costs
# half of what comparing prefixes does, and it is asked for every recorded operation.
OURS: set[str] = {os.path.join(folder, name) for folder, _, names in os.walk(_ROOT)
                  for name in names if name.endswith(".py")}

_STANDARD = os.path.dirname(os.__file__) + os.sep, "<frozen "
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def user_frame() -> FrameType:
    """Return the innermost frame that is not in this package (the outermost of all, if every frame is)."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in OURS and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_library(filename: str) -> bool:
    """Return whether a file is one of Python's own, or of an installed library."""
    return filename.startswith(_STANDARD) or any(part in filename for part in _INSTALLED)


def program_frame() -> FrameType | None:
    """Return the innermost frame that is neither in this package nor in a library, if there is one."""
    frame: FrameType | None = user_frame()
    while frame is not None and (frame.f_code.co_filename in OURS or is_library(frame.f_code.co_filename)):
        frame = frame.f_back
    return frame


def calls_under_way() -> frozenset[Where]:
    """Return the calls outside this package in which the innermost one is made."""
    frame, found = user_frame().f_back, []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return frozenset(found)


def to_user() -> int:
    """Return the `stacklevel` of a warning that shall name the user's line, for the function that calls this one."""
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename in OURS and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def called_function() -> str:
    """Return the name of the function of this package that the user has called."""
    frame, name = sys._getframe(1), ""
    while frame.f_code.co_filename in OURS and frame.f_back is not None:
        frame, name = frame.f_back, name if frame.f_code.co_name == "allocating" else frame.f_code.co_name
    return name


def here() -> Where:
    frame = user_frame()
    return frame.f_code, frame.f_lasti


def line_number(where: Where) -> int:
    code, offset = where
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def file_and_line(where: Where) -> tuple[str, int]:
    """Return the file, as short as it can be told from here, and the line."""
    return _short(where[0].co_filename), line_number(where)


def describe(where: Where) -> str:
    """Return `train.py:12: y = a * b`, the source part only where it can be read."""
    return describe_line(where[0].co_filename, line_number(where))


def describe_line(filename: str, line: int) -> str:
    """Return the same for a line of a file, or of a notebook's cell."""
    source = linecache.getline(filename, line).strip()
    cell = _cell(filename)
    place = f"{cell}, line {line}" if cell else f"{_short(filename)}:{line}"
    return f"{place}: {source}" if source else place


def pointed(where: Where) -> str:
    """Return what `describe` does, and under it carets at the part of the line that is meant, where Python knows it."""
    said, marks = describe(where), carets(where)
    return f"{said}\n{marks}" if marks else said


def carets(where: Where) -> str:
    """Return the line of carets that goes under what `describe` returns; "" where there is nothing to point at."""
    code, offset = where
    positions: Iterable[Any] = getattr(code, "co_positions", tuple)()
    first, last, start, end = next(islice(positions, offset // 2, None), (None,) * 4)
    source = linecache.getline(code.co_filename, line_number(where))
    whole = source.strip()
    if not whole or start is None or end is None or first != last or first != line_number(where):
        return ""
    start, end = (len(source.encode()[:n].decode(errors="ignore")) for n in (start, end))
    lead = len(source) - len(source.lstrip())
    if end - start >= len(whole):  # all of it
        return ""
    return f"{' ' * (len(describe(where)) - len(whole) + start - lead)}{'^' * (end - start)}"


def _cell(filename: str) -> str:
    """Return the name by which IPython shows a cell, `Cell In[2]`; "" of anything else."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if named is None else named(filename)
    return " ".join(found) if found else ""


def _short(filename: str) -> str:
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive, on Windows
        return filename
    return relative if not relative.startswith("..") else filename
