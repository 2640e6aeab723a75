"""Where in the user's program something happened.

A node keeps `(code object, instruction offset)` of the nearest frame outside this package, which costs two attribute
reads; only when somebody asks is it resolved to file, line and source. Frames themselves are never kept: a frame would
keep every local variable of the caller alive.
"""
import linecache
import os
import sys
from types import CodeType, FrameType

Where = tuple[CodeType, int]

_ROOT = os.path.dirname(os.path.dirname(__file__))
# Every source file of this package (generated call paths add their own names). Membership of a file name in a set costs
# half of what comparing prefixes does, and it is asked for every recorded operation.
OURS: set[str] = {os.path.join(folder, name) for folder, _, names in os.walk(_ROOT)
                  for name in names if name.endswith(".py")}


def user_frame() -> FrameType:
    """Return the innermost frame that is not in this package (the outermost of all, if every frame is)."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in OURS and frame.f_back is not None:
        frame = frame.f_back
    return frame


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
    """Return the same for a line of a file."""
    source = linecache.getline(filename, line).strip()
    return f"{_short(filename)}:{line}: {source}" if source else f"{_short(filename)}:{line}"


def pointed(where: Where) -> str:
    """Return what `describe` does, and under it carets at the part of the line that is meant, where Python knows it."""
    said, code = describe(where), where[0]
    positions = list(getattr(code, "co_positions", tuple)())
    first, last, start, end = positions[where[1] // 2] if where[1] // 2 < len(positions) else (None,) * 4
    source = linecache.getline(code.co_filename, line_number(where))
    whole = source.strip()
    if not whole or start is None or end is None or first != last or first != line_number(where):
        return said
    start, end = (len(source.encode()[:n].decode(errors="ignore")) for n in (start, end))
    lead = len(source) - len(source.lstrip())
    if end - start >= len(whole):  # all of it: nothing to point at
        return said
    return f"{said}\n{' ' * (len(said) - len(whole) + start - lead)}{'^' * (end - start)}"


def _short(filename: str) -> str:
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive, on Windows
        return filename
    return relative if not relative.startswith("..") else filename
