"""What is remembered of a program for whoever asks afterwards where a gradient went: `mutagrad.why`.

Two short memories, both bounded. `SWEEPS` holds the latest sweeps: where each began and, of small graphs, the values
that it freed, in the order of its visits. `CUTS` holds the places at which history was left behind: `detach()`,
`item()`, comparisons, memory that was overwritten before anything read it.

What a sweep frees goes through `Run.kept.append`. That deque drops everything where large values were saved lately, so
the sweep asks nothing, and no large value lives longer than it did. Objects of the user's (hooks, the `ctx` of a
Function, packed values) are not kept alive either: of a graph that has any, a copy without them is kept.
"""
from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple
from weakref import ref

from ..arrays import np
from ..arrays.kinds import IN_USE, is_plain
from ..base.counters import counters
from ..base.modes import NOT_RECORDING, mode
from ..base.provenance import OURS, Where
from .graph import Freed, Leaf, Node, Writer, next_order
from .number import BETWEEN
from .storage import SMALL, TensorBase
from .window import Window

FEW_NODES, FEW_BYTES, FEW_ELEMENTS = 2048, 1 << 20, 4096
COPIED_BYTES = 1 << 16
FORGET = 3  # binary digits: after large values, so many of the bytes count at the next sweep
WALKED = 12  # nodes that a cut looks at to find the leaves behind it


# --------------------------------------------------------------------------------------------------------------- sweeps

class Step(Node):
    """A node, or a leaf, as it was when a sweep visited it: what can be looked at, and visited again, by itself.

    It is the list of the steps that it reads. `of` refers to the node itself; `window`, of a leaf, is as there.
    """

    __slots__ = ("of", "window")
    of: ref[Any]
    window: Window | None

    def __init__(self, node: Any) -> None:
        super().__init__()
        self.of, self.order, self.whole, self.hooks = ref(node), node.order, node.whole, None
        leaf = node.op is None
        self.op, self.windows, self.written, self.saved = None, None, None, ()
        self.window = node.window if leaf else None
        if not leaf:
            self.op, self.windows, self.written, self.saved = node.op, node.windows, node.written, node.saved
            self.code, self.at = node.code, node.at


class Opaque:
    """The operation of a step that runs code of the user's, which is not run again: it knows what that answered."""

    adds = frees = pure = False
    promotes = ""
    saves: tuple[Any, ...] = ()
    rules: dict[str, Any] = {}
    inputs: tuple[str, ...] = ()

    def __init__(self, name: str, answers: list[Any] | None) -> None:
        self.name, self.answers = name, answers

    def reverse(self, xp: Any, g: Any, saved: Any, links: Any) -> Any:
        return [None] * len(links) if self.answers is None else self.answers


class Evidence:
    """Of one sweep: where it began, what it freed, what user code answered. It is entered when the sweep is over."""

    answers: dict[tuple[str, int], Any] | None = None  # what hooks and Functions said, by kind and order
    held: list[Any] | None = None  # of a retained graph, where it began, as long as no other sweep comes
    order: int  # when it was over: what is newer was made afterwards
    starts: list[Any]  # (writer, or a weak reference to it, or its step; window on what it wrote; adjoint if small)
    steps: list[Step] | None = None  # newest first, where a copy was made at once
    wanted: tuple[ref[Any], ...] | None = None  # whose gradients are returned; None: leaves have theirs added up

    def __init__(self, seeds: list[Any], freed: Freed, retained: bool, noted: bool) -> None:
        self.freed, self.retained, self.noted, self.nodes = freed, retained, noted, counters.nodes
        self.kept: deque[Any] = NOTHING_KEPT  # the values that it freed, in the order of its visits
        self.starts = seeds.copy()
        if noted:
            BEGUN[0] = freed
            if counters.referenced <= FEW_BYTES and not retained:
                self.kept = deque(maxlen=FEW_NODES)
            if len(seeds) != 1 or seeds[0][2].__class__ is not np.ndarray or seeds[0][2].ndim:
                self.starts = [(writer, window, kept_value(g)) for writer, window, g in seeds]

    def answered(self, kind: str, order: int, answers: list[Any]) -> None:
        """Note what user code made of an adjoint, or answered with."""
        if self.answers is None:
            self.answers = {}
        self.answers[kind, order] = [None if g is None else kept_value(g) for g in answers]

    def finish(self) -> None:
        """Enter it among the latest, with no more than may be kept: of large graphs nothing but weak references."""
        if not self.noted or IN_USE and not all(map(_is_plain, self.kept)):
            return
        if counters.nodes - self.nodes > FEW_NODES or counters.referenced and not self._is_little():
            self._weaken()
        elif self.answers is not None:
            self.steps, self.starts = self.graph()
            self.kept = NOTHING_KEPT
        elif self.retained:
            self.held = self.starts
            self._weaken()
        if SWEEPS and SWEEPS[-1].held is not None:
            SWEEPS[-1].held = None
        counters.referenced >>= FORGET
        self.order = next_order()
        SWEEPS.append(self)

    def _is_little(self) -> bool:
        """Whether what it kept is little; of very little, copies are made, as nobody protects it any more."""
        kept = self.kept
        size = sum(getattr(value, "nbytes", 0) for saved in kept if saved.__class__ is tuple for value in saved)
        if size <= COPIED_BYTES:
            for i, saved in enumerate(kept):
                if saved.__class__ is tuple:
                    kept[i] = tuple([value.copy() if value.__class__ is np.ndarray and value.size > SMALL else value
                                     for value in saved])
        return max(size, counters.referenced if self.retained else 0) <= FEW_BYTES

    def _weaken(self) -> None:
        self.kept = NOTHING_KEPT
        self.starts = [(ref(writer), window, g) for writer, window, g in self.starts]

    def graph(self) -> tuple[list[Step], list[Any]]:
        """Return its steps, newest first, with the values that it freed; and where it began, of what is still there."""
        if self.steps is not None:
            return self.steps, self.starts
        starts = [(writer() if writer.__class__ is ref else writer, *start) for writer, *start in self.starts]
        starts = [start for start in starts if start[0] is not None]
        nodes = reachable([writer for writer, *_ in starts])
        if self.wanted is not None:
            nodes = _leading_to(nodes, {wanted() for wanted in self.wanted})
        starts = [start for start in starts if start[0] in nodes]
        steps = steps_of(nodes, self.freed, list(self.kept), self.answers or {})
        return list(steps.values()), [(steps[writer], *start) for writer, *start in starts]


SWEEPS: deque[Evidence] = deque(maxlen=4)
NOTHING_KEPT: deque[Any] = deque(maxlen=0)
# The tensor whose backward() was refused because it has no history, by reference, and what BEGUN had then.
REFUSED: list[Any] = [lambda: None, None]
BEGUN: list[Any] = [None]  # the latest sweep that began, by its Freed: another than the latest of SWEEPS has failed


def _is_plain(saved: Any) -> bool:
    return saved.__class__ is not tuple or is_plain(*saved)


def was_swept(tensor: TensorBase) -> bool:
    """Return whether the latest sweep began at a tensor: what is asked of it afterwards is for the record."""
    return bool(SWEEPS) and any(writer is tensor._storage.writer for writer, *_ in SWEEPS[-1].starts)


def kept_value(g: Any) -> Any:
    """Return a copy of what is small; None of anything else."""
    array = getattr(g, "_array", g)
    if array.__class__ is not np.ndarray and not isinstance(array, np.generic):
        return None
    return array[()] if not array.ndim else array.copy() if array.size <= FEW_ELEMENTS else None


def reachable(roots: Iterable[Any]) -> list[Any]:
    """Return the nodes and leaves that a sweep from `roots` can visit, newest first."""
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(node.inputs)
    return sorted(seen, key=lambda node: node.order)


def _leading_to(nodes: list[Any], targets: set[Any]) -> list[Any]:
    """The nodes, newest first, from which a target can be reached."""
    useful = set(targets)
    for node in reversed(nodes):
        if any(before in useful for before in node.inputs if before is not None):
            useful.add(node)
    return [node for node in nodes if node in useful]


def steps_of(nodes: list[Any], freed: Freed | None, kept: list[Any], answers: dict[tuple[str, int], Any]
             ) -> dict[Any, Step]:
    """Return the steps of nodes, by node. `kept` are the values of those that a sweep has freed, in their order."""
    steps = {node: Step(node) for node in nodes}
    released = [step for step in steps.values() if freed is not None and step.saved is freed]
    values = dict(zip(released, kept)) if len(kept) == len(released) else {}
    for node, step in steps.items():
        step.extend(steps.get(before) for before in node.inputs)
        if step.saved.__class__ is Freed:
            step.saved = values.get(step)
        if step.op is not None and not _is_ours(step.op, step.saved):
            step.op, step.saved = Opaque(step.op.name, answers.get(("function", step.order))), ()
    return steps


def _is_ours(op: Any, saved: Any) -> bool:
    """Whether an operation runs no code of the user's, and holds none of their objects."""
    return getattr(op, "pure", False) is True and (saved is None or saved.__class__ is tuple) or op.name == "output"


def user_code(links: Any, answers: list[Any]) -> list[Any]:
    """Note what code of the user's answered for the inputs of a node, and return it."""
    if mode.now.sweep is not None:
        mode.now.sweep.answered("function", getattr(links, "order", 0), answers)
    return answers


# ----------------------------------------------------------------------------------------------------------------- cuts

class Cut(NamedTuple):
    """A place at which history was left behind."""

    kind: str
    writers: tuple[ref[Any], ...]  # of what was cut, and then of what a short walk finds behind it
    where: Where
    order: int


# A tuple each, as `Cut` names its parts. (Making a Cut would take half as long again.)
CUTS: deque[tuple[str, tuple[ref[Any], ...], Where, int]] = deque(maxlen=2048)


def _caller() -> FrameType:
    """The frame that called the function that takes a note; that function's own, if it was called by no Python."""
    frame = sys._getframe(2)
    return frame.f_back or frame


def cut(kind: str, tensor: TensorBase, direct: bool = False) -> None:
    """Note that something was made of a tensor with a history, and has none; if `direct`, where the user asked."""
    writer = tensor._storage.writer
    if writer is None or NOT_RECORDING and not mode.now.recorded:
        return
    frame = _caller()
    code = frame.f_code
    while code.co_filename in OURS and frame.f_back is not None:
        if direct and code.co_filename not in BETWEEN:
            return
        frame = frame.f_back
        code = frame.f_code
    CUTS.append((kind, behind(writer), (code, frame.f_lasti), next_order()))


def not_recording() -> None:
    """Note where the user switches recording off: what is computed there has no history, and leaves no other trace."""
    frame = _caller()
    while frame.f_code.co_filename in OURS and frame.f_back is not None:
        if not frame.f_code.co_filename.endswith("modes.py"):
            return
        frame = frame.f_back
    where = frame.f_code, frame.f_lasti
    if CUTS and CUTS[-1][0] == "no_grad" and CUTS[-1][2] == where:
        CUTS.pop()  # of a loop, the latest is enough
    CUTS.append(("no_grad", (), where, next_order()))


def compared(kind: str, writer: Any) -> None:
    """Note the same for an operation without derivative, in passing: loops decide by these."""
    if NOT_RECORDING and not mode.now.recorded or not isinstance(writer, (Node, Leaf)):
        return
    frame = _caller()
    code = frame.f_code
    while code.co_filename in OURS and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    read = writer[0] if isinstance(writer, Node) and writer else None
    found = (ref(writer), ref(read)) if isinstance(read, (Node, Leaf)) else (ref(writer),)
    CUTS.append((kind, found, (code, frame.f_lasti), writer.order))


def behind(writer: Any) -> tuple[ref[Any], ...]:
    """Return references to a writer and to the leaves that a short walk from it finds.

    What is in between may be gone when somebody asks.
    """
    if writer.__class__ is Leaf:
        return (ref(writer),)
    found: list[ref[Any]] = []
    waiting = [writer] if isinstance(writer, Node) else []
    for _ in range(WALKED):
        if not waiting:
            break
        node = waiting.pop()
        if not found:
            found.append(ref(node))
        for before in node:
            if before.__class__ is Leaf:
                found.append(ref(before))
            elif isinstance(before, Node):
                waiting.append(before)
    return tuple(found)


def overwritten(node: Node, writer: Writer | None) -> None:
    """Note that a write has covered all that a writer wrote, without reading it."""
    if writer is not None and writer not in node:
        CUTS.append(("overwritten", behind(writer), node.where, next_order()))
