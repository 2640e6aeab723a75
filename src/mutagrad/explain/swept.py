"""The graph of a sweep, visited again: what each step got, and what became of each element on its way to the loss.

Nothing of the user's is run twice, nothing is deposited, and the graph stays as freed as it was: all this happens on
`Step`s, which are copies with the values that the sweep has freed, where those were few enough to be kept.
"""
from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from ..arrays import np
from ..arrays.kinds import is_plain
from ..arrays.numpy import silently
from ..base.modes import call_with
from ..core.arithmetic import ON_ARRAYS
from ..core.evidence import Evidence, Step
from ..core.graph import Freed, positions_in
from ..core.op import RAW, zero
from ..core.sweep import OUTPUT, Sweep, accumulates
from ..core.window import As, Window, shape_of

SOME = 1 << 16  # elements of a storage up to which each is looked at


class Fate(NamedTuple):
    """What became of elements on their way to the loss: arrived, or why not, and at which step."""

    kind: str  # "arrives", "zero", "no_derivative", "overwritten", "unread", "unasked", "hook", "function"
    step: Step


class _Replay(Sweep):
    """A sweep that only notes what it sees."""

    __slots__ = ("answers", "came", "gave", "unknown")

    def __init__(self, freed: Freed, answers: dict[tuple[str, int], Any]) -> None:
        super().__init__(ON_ARRAYS, freed, True, None, {}, None, {})
        self.answers = answers
        self.came: dict[Step, Any] = {}  # the adjoint of all that a step wrote
        self.gave: dict[Step, list[Any]] = {}  # the adjoints of its inputs
        self.unknown: set[Step] = set()  # steps whose values are gone, beyond which nothing is known

    def visit(self, node: Any, holder: list[Any]) -> None:
        if holder[0].__class__ is list:
            holder.append(self.materialize(node.whole, holder.pop()))
        changed = self.answers.get(("hook", node.order))
        if changed is not None and changed[0] is not None and holder[0].__class__ is not dict:
            self.came[node] = np.array(holder.pop())
            holder.append(np.array(changed[0]))
        if holder[0].__class__ is not dict:
            self.came.setdefault(node, np.array(holder[0]))
        if node.op is not None and (node.saved is None or node.op is not OUTPUT and _is_unknown(node.op)):
            self.unknown.add(node)
        elif node.op is not None:
            super().visit(node, holder)

    def reverse(self, node: Any, g: Any, inputs: Any) -> Any:
        grads = super().reverse(node, g, inputs)
        self.gave[node] = [None if gx is None else np.array(gx) for gx in grads]
        return grads


def _is_unknown(op: Any) -> bool:
    return getattr(op, "answers", ()) is None


class Swept:
    """The graph of a loss: its steps, newest first, who reads each, and what a sweep brings to each."""

    def __init__(self, steps: list[Step], starts: list[Any], evidence: Evidence | None) -> None:
        self.steps, self.starts, self.evidence = steps, starts, evidence
        self.answers = {} if evidence is None or evidence.answers is None else evidence.answers
        self.readers: dict[Step, list[tuple[Step, int]]] = {}
        for step in steps:
            last = len(step) - 1 if step.written is not None else -1
            for slot, before in enumerate(step):
                if before is not None:
                    self.readers.setdefault(before, []).append((step, -1 if slot == last else slot))
        self.replay: _Replay | None = None

    def step_of(self, writer: Any) -> Step | None:
        """Return the step of a node or leaf, if it is part of this graph."""
        return next((step for step in self.steps if step.of() is writer), None)

    def run(self) -> None:
        """Visit the graph again. Afterwards `replay` holds what came to each step; None where it cannot be known."""
        seeds = [(step, window, g if g is None else np.asarray(g)) for step, window, g in self.starts]
        if not seeds or any(g is None for _, _, g in seeds):
            return
        freed = Freed((_no_code.__code__, 0))
        try:
            self.replay = call_with({"recorded": False, "sweep": Evidence([], freed, True, False), "anomaly": False},
                                    silently, _replayed, freed, self.answers, seeds)
        except Exception:  # values that have changed their shape since, or a rule that needs what is gone
            self.replay = None
        if self.replay is not None and not is_plain(*self.replay.came.values()):  # what vmap has left
            self.replay = None

    def came_to(self, step: Step) -> Any:
        """Return the adjoint of all that a step wrote, or None where nothing came or nothing is known."""
        return None if self.replay is None else self.replay.came.get(step)

    def given_by(self, step: Step) -> list[Any]:
        """Return the adjoints that a step's rules gave its inputs."""
        return [] if self.replay is None else self.replay.gave.get(step, [])

    def left_of(self, step: Step) -> Any:
        """Return the same as hooks have left it."""
        changed = self.answers.get(("hook", step.order))
        known = changed is not None and changed[0] is not None and self.replay is not None
        return np.asarray(changed[0]) if changed is not None and known else self.came_to(step)

    def is_known(self, step: Step) -> bool:
        """Return whether all that leads from the loss to a step was visited again."""
        return self.replay is not None and not self.beyond(step, self.replay.unknown)

    def beyond(self, step: Step, steps: set[Step]) -> bool:
        """Return whether anything on the way from a step to the loss is among these."""
        return bool(steps) and any(other in steps for other in self.ahead(step))

    def ahead(self, step: Step) -> list[Step]:
        """Return a step and all that were computed from it, on the way to the loss, oldest first."""
        found, waiting = {step}, [step]
        while waiting:
            for reader, _ in self.readers.get(waiting.pop(), ()):
                if reader not in found:
                    found.add(reader)
                    waiting.append(reader)
        return sorted(found, key=lambda one: -one.order)

    def size_of(self, step: Step) -> int | None:
        """Return how many elements the storage has that a step wrote to."""
        if step.whole[1] is not None:
            return int(np.prod(step.whole[0], dtype=int))
        came = self.came_to(step)
        return None if came is None else int(came.size)

    # ------------------------------------------------------------------------------------------------- single elements

    def fates(self, step: Step, chosen: Any) -> list[Fate]:
        """Return what became of the chosen elements of a step's storage (None: all), the nearest first.

        Elements are followed by their places through writes, reads and elementwise operations, and as "all of the
        result" through any other.
        """
        found: list[Fate] = []
        waiting, done = deque([(step, chosen)]), dict[Step, Any]()
        while waiting:
            step, chosen = waiting.popleft()
            chosen = _everything(self.size_of(step)) if chosen is None else chosen
            if step in done and (chosen is None or done[step] is None or not (chosen & ~done[step]).any()):
                continue
            if step in done:
                chosen = chosen & ~done[step]
                done[step] = done[step] | chosen
            else:
                done[step] = chosen
            self._follow(step, chosen, found, waiting)
        return found

    def _follow(self, step: Step, chosen: Any, found: list[Fate], waiting: deque[Any]) -> None:
        changed = self.answers.get(("hook", step.order))
        if changed is not None and changed[0] is not None and not np.any(changed[0]) and np.any(self.came_to(step)):
            found.append(Fate("hook", step))
        read = self._asked(step, chosen, found)
        covered: list[tuple[Step, Any]] = []
        for reader, slot in self.readers.get(step, ()):
            if slot < 0:
                read = _either(read, self._written_over(reader, chosen, covered, waiting))
            else:
                part = self._inside(reader.windows[slot] if reader.windows else None, chosen, step)
                if part is None or part.any():
                    read = _either(read, self._reads(reader, slot, part, step, chosen, found, waiting))
        for writer, over in covered:
            lost = over if read is None else over & ~read
            if lost.any():
                found.append(Fate("overwritten", writer))
                read = _either(read, lost)
        missed = None if chosen is None or read is True else chosen if read is None else chosen & ~read
        if missed is not None and missed.any() or chosen is None and read is None:
            found.append(Fate("unread", step))

    def _asked(self, step: Step, chosen: Any, found: list[Fate]) -> Any:
        """Which of the elements are part of what the sweep began at."""
        read: Any = None
        for start, window, g in self.starts:
            if start is step:
                inside = _places(window, step, chosen) & chosen if window and chosen is not None else chosen
                if inside is None or inside.any():
                    found.append(Fate("arrives" if _is_asked(window, g, inside, step) else "unasked", step))
                    read = _either(read, True if inside is None else inside)
        return read

    def _inside(self, window: Any, chosen: Any, step: Step) -> Any:
        """Which elements of what was read through a window are among those chosen of the storage; None: not known."""
        if chosen is None:
            return None
        if window is None:
            came = self.came_to(step)
            shape = step.whole[0] if step.whole[1] is not None else chosen.shape if came is None else came.shape
            return chosen.reshape(shape)
        picked = chosen[_order_of(window, step)]
        shape = shape_of(window)
        return picked.reshape(shape) if shape is not None else picked

    def _written_over(self, writer: Step, chosen: Any, covered: list[Any], waiting: deque[Any]) -> Any:
        """Follow what a write to a part leaves as it is; what it covers is lost, unless it adds to that."""
        if chosen is None or accumulates(writer):
            waiting.append((writer, chosen))
            return True if chosen is None else chosen
        over = chosen & _places(writer.written, writer, chosen)  # type: ignore[arg-type]
        left = chosen & ~over
        if over.any():
            covered.append((writer, over))
        if left.any():
            waiting.append((writer, left))
        return left

    def _reads(self, reader: Step, slot: int, part: Any, step: Step, chosen: Any, found: list[Fate],
               waiting: deque[Any]) -> Any:
        """Follow elements into what was computed from them; return which of the storage's those are."""
        if accumulates(reader) and slot == 0:
            return None  # what was there before is followed as what a write leaves
        slope = silently(self._slope, reader, slot)
        passed = part
        if slope is not None:
            kind, slope = slope
            alive = _fitted(slope != 0, part)
            if not np.any(alive if part is None else alive & part):
                found.append(Fate(kind, reader))
                return _back(reader.windows[slot] if reader.windows else None, part, step, chosen)
            if part is not None and (part & ~alive).any():
                found.append(Fate(kind, reader))
            passed = alive if part is None else part & alive
        waiting.append((reader, self._results(reader, passed)))
        return _back(reader.windows[slot] if reader.windows else None, part, step, chosen)

    def _results(self, reader: Step, passed: Any) -> Any:
        """Which elements of the storage that a step wrote to depend on these of its input."""
        size = self.size_of(reader)
        if size is None or size > SOME:
            return None
        shape = self._result_shape(reader)
        same = getattr(reader.op, "promotes", "") or reader.op.name in ("index", "copy", "clone", "cast_float")
        result: Any = np.ones(shape, bool)
        if same and passed is not None and _spreads(passed.shape, shape):
            result = np.broadcast_to(passed, shape)
        if reader.written is None:
            return result.reshape(-1) if result.size == size else None
        places = np.zeros(size, bool)
        at = _order_of(reader.written, reader)
        places[at if at.size != result.size else at[result.reshape(-1)]] = True
        return places

    def _result_shape(self, step: Step) -> Any:
        if step.written is not None:
            shape = shape_of(step.written)
            return shape if shape is not None else (_order_of(step.written, step).size,)
        came = self.came_to(step)
        return came.shape if came is not None else step.whole[0]

    def _slope(self, reader: Step, slot: int) -> tuple[str, Any] | None:
        """Whether a result changes with an input: what a rule makes of an adjoint that is zero nowhere.

        None where that is not known. And what is to be said where it is zero.
        """
        op = reader.op
        if op is OUTPUT or reader.saved is None:
            return None
        rule = op.rules.get(op.inputs[slot]) if slot < len(op.inputs) else None
        answers = getattr(op, "answers", None)
        if answers is not None:
            given = answers[slot] if slot < len(answers) else None
            return "function", np.zeros((), bool) if given is None else np.asarray(given)
        if not getattr(op, "pure", False):
            return None
        g = self._sample(reader)
        if g is None:
            return None
        links = [before if i == slot else None for i, before in enumerate(reader)]
        given = op.reverse(RAW, g, reader.saved, links)[slot]
        window = reader.windows[slot] if reader.windows else None
        shape = None if window is None else shape_of(window)
        given = np.asarray(given)
        if shape is not None and given.shape != shape:
            given = ON_ARRAYS.sum_to(np.abs(given), shape)
        return "no_derivative" if rule is zero else "zero", given

    def _sample(self, step: Step) -> Any:
        """An adjoint of what a step computed that is zero nowhere."""
        came = self.came_to(step)
        if came is None:
            return None
        shape = self._result_shape(step) if step.written is not None else came.shape
        return (1 + np.random.default_rng(0).random(shape)).astype(came.dtype)


def _no_code() -> None:
    """Stands for the place at which a sweep is run again."""


def _replayed(freed: Freed, answers: dict[tuple[str, int], Any], seeds: list[Any]) -> _Replay:
    replay = _Replay(freed, answers)
    replay.run(seeds)
    return replay


def norm(g: Any) -> float:
    """Return the Euclidean norm of an adjoint."""
    return float(silently(lambda: np.sqrt(np.sum(np.abs(np.asarray(g, np.complex128)) ** 2))))


# ----------------------------------------------------------------------------------------------------- sets of elements

def _everything(size: int | None) -> Any:
    return None if size is None or size > SOME else np.ones(size, bool)


def _either(one: Any, other: Any) -> Any:
    """The union of two sets of elements; None is the empty one, True that of all."""
    if one is None or other is None:
        return other if one is None else one
    return True if one is True or other is True else one | other


class _Geometry:
    """What `positions_in` asks of a buffer."""

    def __init__(self, step: Step) -> None:
        self.dtype = step.whole[1]
        self.nbytes = int(np.prod(step.whole[0], dtype=int)) * self.dtype.itemsize


def _is_asked(window: Any, g: Any, inside: Any, step: Step) -> bool:
    """Whether the adjoint that a sweep began with is nonzero at any of these elements."""
    if g is None or inside is None or np.ndim(g) == 0:
        return g is None or bool(np.any(g))
    at = inside if window is None else inside[_order_of(window, step)]
    return bool(np.any(np.reshape(g, -1)[at] if at.size == np.size(g) else g))


def _places(window: Window, step: Step, like: Any) -> Any:
    """Which elements of a storage lie in a window."""
    places = np.zeros(like.shape, bool)
    if step.whole[1] is None:
        return ~places
    places[positions_in(window, _Geometry(step), step.whole[1])] = True  # type: ignore[arg-type]
    return places


def _order_of(window: Any, step: Any) -> Any:
    """The elements of a storage that lie in a window, one after the other as the window has them."""
    size = int(np.prod(step.whole[0], dtype=int))
    numbers = np.arange(size).reshape(step.whole[0])
    item = step.whole[1].itemsize
    if window.__class__ is int:
        return np.array([window // item])
    offset, shape, strides, index = window
    if index.__class__ is As:
        return numbers.reshape(-1)
    eight = tuple(s // item * 8 for s in strides)
    view = np.ndarray(shape, np.int64, numbers.astype(np.int64), offset // item * 8, eight)
    return (view if index is None else view[index]).reshape(-1)


def _back(window: Any, part: Any, step: Step, chosen: Any) -> Any:
    """Which elements of a storage those are that were read through a window."""
    if part is None or chosen is None:
        return True
    if window is None:
        return chosen
    places = np.zeros(chosen.shape, bool)
    places[_order_of(window, step)[part.reshape(-1)]] = True
    return places


def _fitted(alive: Any, part: Any) -> Any:
    if part is None or alive.shape == part.shape:
        return alive
    if alive.size == part.size:
        return alive.reshape(part.shape)
    return np.broadcast_to(alive.any(), part.shape)


def _spreads(shape: Any, to: Any) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to)))
