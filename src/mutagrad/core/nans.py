"""A loss that is nan: what `backward()` does about it, and where the first nan was made.

PyTorch's programs go on with a nan loss, so this does too. But the graph knows at which line each value was computed,
and holds many of the values: the oldest among them that is nan, or makes one, tells where it began.
"""
from __future__ import annotations

import warnings
from typing import Any

from ..arrays import np
from ..arrays.kinds import anywhere, is_plain
from ..arrays.numpy import silently
from ..arrays.sums import MANY
from ..base.errors import BadSeed
from ..base.modes import mode
from ..base.operands import Array
from ..base.provenance import describe, here, line_number
from .graph import Leaf, Node, Writer

INFINITY = {"e": 0x7C00, "E": 0x7F80}
WALKED = 200_000  # how many nodes are looked at, at most: those nearest to the loss


class NanWarning(UserWarning):
    """A derivative was asked for of something that is nan."""


_warned: set[tuple[str, int]] = set()  # lines that were warned about


def nan_found(what: str, writer: Writer | None) -> None:
    """Warn, once for each line of the program, or raise, as `set_nan_policy` says."""
    policy = mode.now.nan_policy
    if policy == "ignore":
        return
    where = here()
    line = where[0].co_filename, line_number(where)
    if policy == "warn" and line in _warned:
        return
    why = f"{origin(writer)}every gradient that depends on it will be nan, too"
    fix = "if not loss.isnan(): loss.backward(); or mutagrad.autograd.set_nan_policy('ignore')"
    error = BadSeed(f"backward: {what}", why=why, fix=fix)
    if policy == "raise":
        raise error
    _warned.add(line)
    warnings.warn_explicit(str(error), NanWarning, *line)


def has_nan(array: Array) -> bool:
    """Return whether there is a nan among floats; of many, by the least of them, which is nan if one is.

    Of short floats the bits tell: those of nan are above those of infinity.
    """
    if array.size >= MANY and is_plain(array) and array.flags.c_contiguous:
        char = array.dtype.char
        if char in INFINITY:
            return bool((array.view(np.uint16) & np.uint16(0x7FFF)).max() > INFINITY[char])
        if char in "fdFD":
            least = silently(np.minimum.reduce, (array if char in "fd" else array.view(array.real.dtype)).reshape(-1))
            return bool(least != least)
    return anywhere(np.isnan(array))


def origin(writer: Writer | None) -> str:
    """Return where the first nan was made that led to what `writer` wrote, as far as its history still knows."""
    if not isinstance(writer, Node):
        return ""
    for node in _history(writer):
        maker, certain = silently(_maker, node)
        if isinstance(maker, Node):
            what = "made by" if certain else "seen in"
            return f"the first nan was {what} {maker.op.name} at {describe(maker.where)}; "
        if maker is not None:
            return f"{maker}, which {node.op.name} read at {describe(node.where)}, has nan in it; "
    return f"it was computed by {writer.op.name} at {describe(writer.where)}; "


def _history(writer: Node) -> list[Node]:
    """The nodes that a value depends on, oldest first."""
    found, waiting = {writer}, [writer]
    while waiting and len(found) < WALKED:
        for before in waiting.pop():
            if isinstance(before, Node) and before not in found:
                found.add(before)
                waiting.append(before)
    return sorted(found, key=lambda node: -node.order)


def _maker(node: Node) -> tuple[Node | str | None, bool]:
    """What made a nan that this node has read (a node, or a word for a leaf or constant), or itself if it makes one.

    None if neither. And whether that is certain, because all that it has read itself is known to be free of them.
    """
    if type(node.saved) is not tuple or not getattr(node.op, "pure", False):
        return None, False
    known: dict[tuple[str, int], Any] = dict(zip(node.op.saves, node.saved))
    for (kind, i), value in known.items():
        if kind == "input" and _has_nan(value):
            maker = node[i]
            return maker if isinstance(maker, Node) else "a leaf" if isinstance(maker, Leaf) else "a constant", False
    certain = all(known.get(("input", i)) is not None for i in range(len(node.op.inputs)))
    return node if _has_nan(known.get(("out", 0))) or _has_nan(_result(node, known)) else None, certain


def maker_of(node: Node) -> Node | None:
    """Return the node that made a nan which this one has read, or itself if it makes one; None if neither is known."""
    maker, _ = silently(_maker, node)
    return maker if isinstance(maker, Node) else None


def _result(node: Node, known: dict[tuple[str, int], Any]) -> Any:
    """What the operation computed, if everything that it read is known."""
    op = node.op
    needed = [known.get((kind, i)) for kind, names in (("input", op.inputs), ("setting", op.settings))
              for i in range(len(names))]
    if op.forward is None or any(value is None for value in needed):
        return None
    try:
        return op.forward(*needed)
    except Exception:  # a value that came in another shape or type: not known, then
        return None


def _has_nan(value: Any) -> bool:
    return (value is not None and getattr(value, "dtype", None) is not None and value.dtype.kind in "fcV"
            and anywhere(np.isnan(value)))
