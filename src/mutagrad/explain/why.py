"""Where a tensor's gradient came from, or why it is None or zero.

>>> import mutagrad as mg
>>> x = mg.tensor([1., 2., 3.], requires_grad=True)
>>> y = x * 2
>>> y[0] = 5.
>>> y.sum().backward()
>>> print(mg.why(x[0]).cause)
overwritten

It is asked after the fact, so it works with what is left: the latest sweeps, of which small ones keep what they have
freed (`core/evidence.py`); notes of the places at which history was left behind; and the text of the program.
"""
from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

from ..arrays import np
from ..base.errors import BadArgument
from ..base.provenance import OURS, Where, describe, describe_line, file_and_line, pointed
from ..core.backward import retains_grad
from ..core.evidence import CUTS, SWEEPS, Cut, Evidence, Step, reachable, steps_of
from ..core.graph import Leaf, Node, positions
from ..core.nans import _maker
from ..core.storage import TensorBase
from . import reading
from .reading import Found
from .swept import SOME, Fate, Swept, norm
from .wording import CUT, Words, flat, without_derivative

METHODS = "why"

TINY, HUGE = 1e-7, 1e6  # a gradient that has vanished or exploded, beside that of the loss
SHOWN = 8  # stages of the way


class Why:
    """An answer. `print` it; its parts are for programs.

    `cause` is one of "ok", "overwritten", "detached", "no_grad", "item", "numpy", "tensor", "no_derivative", "zero",
    "dead", "cancelled", "hook", "function", "not_reached", "not_swept", "not_asked", "cleared", "not_leaf", "nan",
    "vanished", "exploded", "integer", "does_not_require_grad", "failed". `where` is the file and line of it, `fix`
    the corrected code, `stages` the way from the loss to the tensor: place, operation and norm of the gradient.
    """

    def __init__(self, cause: str, verdict: str, *, place: str = "", lines: Sequence[str] = (), fix: str = "",
                 stages: Sequence[tuple[str, str, float]] = ()) -> None:
        self.cause, self.verdict, self.fix, self.stages = cause, verdict, fix, list(stages)
        self.place, self.lines = place, list(lines)

    @property
    def where(self) -> str:
        """The file and the line, or nothing."""
        head = self.place.partition("\n")[0].split(":")
        number = next((i for i, part in enumerate(head) if i and part.strip().isdigit()), None)
        return "" if number is None else ":".join(head[:number + 1])

    def __str__(self) -> str:
        rows = [self.verdict]
        rows += [f"  at {line}" if not i else f"     {line}" for i, line in enumerate(self.place.splitlines())]
        rows += [f"  {line}" for line in self.lines]
        if self.stages and self.cause in ("vanished", "exploded", "nan", "ok"):
            rows += ["  the norm of the gradient on its way from the loss:", *_table(self.stages)]
        rows += [f"  fix: {self.fix}"] if self.fix else []
        return "\n".join(rows)

    __repr__ = __str__


class WhyModel(dict[str, Why]):
    """The answers for all parameters of a model, by name."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {answer.cause:12} {answer.verdict}" for name, answer in self.items())

    __repr__ = __str__


def why(input: Any, loss: TensorBase | None = None) -> Any:
    """Say where the gradient of a tensor came from, or why it is None or zero; of a model, of each parameter.

    >>> import mutagrad as mg
    >>> x, mask = mg.ones(2, requires_grad=True), mg.zeros(2)
    >>> (x * mask).sum().backward()
    >>> mg.why(x).cause
    'zero'

    `why(x[3])` is about that element. Asked after `backward()`, it is about the latest one; with a loss, about that
    one, whether or not it was swept.
    """
    frame = _frame()
    if hasattr(input, "named_parameters"):
        return WhyModel({name: _Question(p, loss, frame).answer() for name, p in input.named_parameters()})
    if not isinstance(input, TensorBase):
        raise BadArgument(f"why: expects a tensor or a module, not {type(input).__name__}", fix="mutagrad.why(x)")
    return _Question(input, loss, frame).answer()


def _frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in OURS:
        frame = frame.f_back
    return frame


class _Question:
    """About one tensor: which writer and which elements are meant, and what is found out about them."""

    def __init__(self, tensor: TensorBase, loss: TensorBase | None, frame: FrameType | None) -> None:
        self.tensor, self.loss, self.frame = tensor, loss, frame
        storage = tensor._storage
        owner = storage.leaf.tensor() if storage.leaf is not None else None
        self.owner: TensorBase = tensor if owner is None else owner  # who reports the gradient
        self.writer = storage.writer if owner is None else storage.leaf
        self.part = owner is not None and owner is not tensor
        self.chosen = _elements(tensor)
        self._read: tuple[list[Found], list[Found], list[str]] | None = None

    # ---------------------------------------------------------------------------------------------------- what is known

    def read(self) -> tuple[list[Found], list[Found], list[str]]:
        """Read the text of the program, once."""
        if self._read is None:
            try:
                self._read = reading.read([self.owner], self.frame)
            except RecursionError:
                self._read = [], [], []
        return self._read

    @property
    def name(self) -> str:
        names = self.read()[2]
        return f"{names[0]}{' here' if self.part else ''}" if names else "this tensor"

    def grad(self) -> Any:
        """Return the gradient as it is, of the elements that are meant, or None."""
        found = self.owner._grad
        if found is None:
            return None
        if not self.part:
            return found._array
        mine, all_of = _positions(self.tensor), _positions(self.owner)
        places = {int(place): i for i, place in enumerate(all_of)}
        picked = [places[int(place)] for place in mine if int(place) in places]
        return found._array.reshape(-1)[picked]

    def sweeps(self) -> Iterator[Evidence]:
        """Yield the latest sweeps that began after the tensor was made, the newest first."""
        for sweep in reversed(list(SWEEPS)):
            if self.writer is None or self.writer.order >= sweep.order:
                yield sweep

    # ------------------------------------------------------------------------------------------------------ the answer

    def answer(self) -> Why:
        if self.writer is None:
            return self.no_history()
        if self.loss is not None:
            return self.of_loss()
        known = [(sweep, Swept(*sweep.graph(), sweep)) for sweep in self.sweeps()]
        if not known:
            return self.not_swept()
        if self.grad() is not None:
            for _, swept in known:
                if (step := swept.step_of(self.writer)) is not None:
                    return self.reached(swept, step)
        sweep, swept = known[0]
        if not sweep.finished:
            return Why("failed", f"{self.name} has no gradient: backward() did not finish", place=describe(sweep.freed.where),
                       fix="see the error that it raised")
        step = swept.step_of(self.writer)
        return self.not_reached(sweep, swept) if step is None else self.reached(swept, step)

    def of_loss(self) -> Why:
        """About a loss that was given: as it was swept, if it was, else as it would be."""
        assert self.loss is not None
        start = self.loss._storage.writer
        if start is None:
            return Why("not_reached", f"{self.name} gets no gradient: the loss has no history",
                       fix="compute it outside of no_grad, without detach() or item()")
        for sweep in reversed(list(SWEEPS)):
            steps, starts = sweep.graph()
            if any(step.of() is start for step, *_ in starts):
                swept = Swept(steps, starts, sweep)
                break
        else:
            nodes = steps_of(reachable([start]), None, [], {})
            window = None if self.loss._offset is None else _window(self.loss)
            swept = Swept(list(nodes.values()), [(nodes[start], window, np.ones_like(self.loss._array))], None)
        step = swept.step_of(self.writer)
        return self.not_reached(swept.evidence, swept) if step is None else self.reached(swept, step)

    # ----------------------------------------------------------------------------------------------------- not reached

    def no_history(self) -> Why:
        """A tensor that does not require a gradient: by its type, by how it was made, or because it was cut off."""
        name, kind = self.name, self.tensor._array.dtype
        if kind.kind not in "fcV":
            made = reading.made(self.tensor, self.frame)
            words = CUT.get(made[0].kind) if made else None
            place = describe_line(*made[0][1:]) if made else ""
            return Why("integer", f"{name} has no gradient: it is of type {kind.name}, which has no derivative",
                       place=place, lines=[f"it was {words.said}"] if words else [],
                       fix=words.fix if words else "x.float().requires_grad_()")
        root = self.tensor._storage.root
        if root is not None and root.writer is not None:
            cut = next((cut for cut in _cuts() if cut.kind in ("detach", "data", "detach_")
                        and cut.writers[0]() is root.writer), None)
            words = CUT[cut.kind if cut else "detach"]
            return Why(words.cause, f"{name} has no gradient: it was {words.said}",
                       place=pointed(cut.where) if cut else "", fix=words.fix)
        for found in reading.made(self.tensor, self.frame):
            words = CUT[found.kind]
            return Why(words.cause, f"{name} has no gradient: what it was computed from was {words.said}",
                       place=describe_line(found.file, found.line), fix=words.fix)
        return Why("does_not_require_grad", f"{name} has no gradient: it does not require one, and nothing that it was "
                   "computed from does", fix="x.requires_grad_() before computing with x, "
                                             "or mutagrad.tensor(..., requires_grad=True)")

    def not_swept(self) -> Why:
        """No sweep is known since the tensor was made."""
        if self.owner._grad is not None:
            return Why("ok", f"{self.name} has a gradient of norm {norm(self.grad()):.3g}, from a sweep that is no longer "
                             "remembered", fix="ask right after backward()")
        used = self.used_at()
        return Why("not_swept", f"{self.name}.grad is None: no backward() has been called since it was made",
                   lines=[f"it was read at {describe(used)}"] if used else [], fix="loss.backward()")

    def not_reached(self, sweep: Evidence | None, swept: Swept) -> Why:
        """The tensor is no part of the graph of the loss."""
        if sweep is not None and sweep.wanted is not None and (answer := self.not_asked(sweep)) is not None:
            return answer
        head = f"{self.name}.grad is None: " if self.owner._grad is None else \
            f"the latest backward() has not reached {self.name}: "
        if isinstance(self.writer, Node) and (older := self.older_version(swept)) is not None:
            return Why("overwritten", f"{head}it was written to after the loss had read it", place=pointed(older),
                       fix="ask before writing to it")
        starts = [step.order for step, *_ in swept.starts]
        if starts and self.writer.order < min(starts):
            return Why("not_reached", f"{head}it was made, or set to require a gradient, after the loss was computed",
                       fix="x.requires_grad_() before computing with x")
        return self.cut_off(head, sweep) or self.unused(head, sweep, swept)

    def not_asked(self, sweep: Evidence) -> Why | None:
        """A sweep for some inputs only."""
        started = [s[0]() if not isinstance(s[0], Node) and callable(s[0]) else s[0] for s in sweep.starts]
        if self.writer not in reachable([s for s in started if s is not None and not isinstance(s, Step)]):
            return None
        return Why("not_asked", f"{self.name}.grad is None: the sweep was for other tensors only",
                   place=pointed(sweep.freed.where), fix="add it to inputs")

    def cut_off(self, head: str, sweep: Evidence | None) -> Why | None:
        """The place at which its history was left behind, if one is known: by the text on the way to the loss, by notes."""
        on_the_way, read_cuts, _ = self.read()
        known = [cut for cut in self.cuts() if sweep is None or cut.order >= sweep.order or cut.kind in _COMPARISONS]
        for found in on_the_way:
            return self.say_cut(head, found.kind, _noted(found, known), found, known)
        for cut in known:
            if cut.kind == "overwritten":
                return Why("overwritten", f"{head}what was computed from it was overwritten before anything read it"
                           if cut.writers[0]() is not self.writer else f"{head}it was overwritten before anything read it",
                           place=pointed(cut.where), fix="compute into a new tensor, or read it before it is overwritten")
        for found in read_cuts:
            if (cut := _noted(found, known)) is not None or found.kind == "no_grad":
                return self.say_cut(head, found.kind, cut, found, known)
        for cut in known:
            return self.say_cut(head, cut.kind, cut, None, known)
        for found in read_cuts:
            return self.say_cut(head, found.kind, None, found, known)
        return None

    def say_cut(self, head: str, kind: str, cut: Cut | None, found: Found | None, known: list[Cut]) -> Why:
        words = CUT.get(kind, Words("no_derivative", f"passed through {kind}, which has no derivative", ""))
        if cut is not None and found is not None and found.kind in ("index", "comparison"):
            words = CUT.get(cut.kind, words)
        place = pointed(cut.where) if cut is not None else describe_line(*found[1:]) if found is not None else ""
        what = "it was" if cut is not None and cut.writers[0]() is self.writer else "it, or something computed from it, was"
        others = {describe(other.where) for other in known if cut is None or other.where != cut.where}
        lines = [f"also cut at {other}" for other in sorted(others)[:3] if not place.startswith(other)]
        return Why(words.cause, f"{head}{what} {words.said}", place=place, lines=lines, fix=words.fix)

    def cuts(self) -> list[Cut]:
        """Return the notes of places where it, or what was computed from it and is alive, was left behind, newest first."""
        mine = {self.writer, *self.descendants()}
        return [cut for cut in _cuts() if any(reference() in mine for reference in cut.writers)]

    def descendants(self) -> list[Any]:
        """Return the nodes that were computed from it and are alive, oldest first."""
        found: set[Any] = set()
        waiting = [self.writer]
        while waiting and len(found) < 256:
            for node in gc.get_referrers(waiting.pop()):
                if isinstance(node, Node) and not isinstance(node, Step) and node not in found:
                    found.add(node)
                    waiting.append(node)
        return sorted(found, key=lambda node: -node.order)

    def used_at(self) -> Where | None:
        nodes = self.descendants()
        return nodes[0].where if nodes else None

    def unused(self, head: str, sweep: Evidence | None, swept: Swept) -> Why:
        nodes = self.descendants()
        newer = [node for node in nodes if sweep is not None and node.order < sweep.order]
        if newer and len(newer) == len(nodes):
            return Why("not_swept", f"{head}no backward() has been called since it was used", place=pointed(newer[0].where),
                       fix="loss.backward()")
        began = f"the loss of {describe(sweep.freed.where)}" if sweep is not None else "the loss"
        if nodes:
            return Why("not_reached", f"{head}it is not reached from the loss: what was computed from it is not part of it",
                       place=pointed(nodes[0].where), lines=[f"the loss: {began}"], fix="let the loss depend on it")
        return Why("not_reached", f"{head}it is not reached from the loss: nothing that is alive was computed from it",
                   place="" if sweep is None else describe(sweep.freed.where), fix="let the loss depend on it")

    def older_version(self, swept: Swept) -> Where | None:
        """Where a computed tensor was written to, if the loss has read what it was before."""
        node = self.writer
        while isinstance(node, Node) and node.written is not None and node.previous is not None:
            if swept.step_of(node.previous) is not None:
                return node.where
            node = node.previous
        inputs = [before for before in self.writer if before is not None and swept.step_of(before) is not None]
        return self.writer.where if inputs and getattr(self.writer.op, "adds", False) and self.writer.windows else None

    # --------------------------------------------------------------------------------------------------------- reached

    def reached(self, swept: Swept, step: Step) -> Why:
        """The tensor is part of the graph: what came to it, by the way that it came."""
        swept.run()
        came, chosen = swept.came_to(step), self.chosen
        mine = None if came is None else came.reshape(-1) if chosen is None or came.size != chosen.size \
            else came.reshape(-1)[chosen]
        actual = self.grad()
        stages = _stages(swept, step, mine)
        g = actual if actual is not None else mine
        if g is None:
            return self.unknown(swept, step, stages)
        if not np.isfinite(g).all():
            return self.not_finite(swept, step, g, stages)
        if mine is None and not np.any(g) or mine is not None and not np.any(mine) and not np.any(g):
            return self.zero(swept, step, stages)
        if actual is None or not np.any(actual):
            return self.came_but_is_gone(swept, step, mine, actual, stages)
        return self.alive(swept, step, g, mine, stages)

    def verdict(self, g: Any) -> str:
        return f"{self.name}.grad is zero" if self.owner._grad is not None else f"the gradient of {self.name} is zero"

    def zero(self, swept: Swept, step: Step, stages: list[Any]) -> Why:
        """Nothing but zeros came: what became of each element on its way."""
        head = self.verdict(None) if self.grad() is not None or not isinstance(self.writer, Leaf) else \
            f"{self.name}.grad is None"
        fates = swept.fates(step, self.chosen)
        lost = [fate for fate in fates if fate.kind != "arrives"]
        lines = [_said(fate)[1] + f" at {describe(fate.step.where)}" for fate in lost[1:4] if fate.step.op is not None]
        for fate in lost:
            words, said = _said(fate)
            place = pointed(fate.step.where) if fate.step.op is not None else ""
            if fate.kind == "unread" and fate.step is step:
                place = ""
            return Why(words.cause, f"{head}: {said}", place=place, lines=lines, fix=words.fix, stages=stages)
        small = [stage for stage in stages if 0 < stage[2] < 1e-20]
        if small:
            return Why("vanished", f"{head}: it became too small for the type on its way", place=small[-1][0],
                       stages=stages, fix="normalize between the steps, or compute in float64")
        readers = swept.readers.get(step, [])
        place = pointed(readers[0][0].where) if readers else ""
        return Why("cancelled", f"{head}: what arrives by several ways adds up to zero", place=place, stages=stages,
                   lines=[f"also read at {describe(reader.where)}" for reader, _ in readers[1:4]],
                   fix="look at the terms: each alone has a gradient")

    def not_finite(self, swept: Swept, step: Step, g: Any, stages: list[Any]) -> Why:
        kind = "nan" if np.isnan(g).any() else "exploded"
        maker = _first_nan(swept, step) if kind == "nan" else _first_inf(swept, step)
        what = "nan" if kind == "nan" else "infinite"
        said = f"{self.name}.grad is {what}"
        if maker is None:
            return Why(kind, said, stages=stages, fix="with mutagrad.autograd.detect_anomaly(): ...")
        node, when = maker
        return Why(kind, f"{said}: the first {'nan' if kind == 'nan' else 'inf'} was made by {when} {node.op.name}",
                   place=pointed(node.where), stages=stages,
                   fix="look at the values there: a division by zero, or the logarithm or root of a number out of range")

    def came_but_is_gone(self, swept: Swept, step: Step, mine: Any, actual: Any, stages: list[Any]) -> Why:
        """The sweep brought a gradient, and `.grad` does not have it."""
        size = f"of norm {norm(mine):.3g}"
        sweep = swept.evidence
        if sweep is None:
            return Why("not_swept", f"{self.name}.grad is {'None' if actual is None else 'zero'}: no backward() of this loss "
                       f"has been called; it would get a gradient {size}", stages=stages, fix="loss.backward()")
        where = sweep.freed.where
        if not isinstance(self.writer, Leaf) and not retains_grad(self.tensor):
            return Why("not_leaf", f"{self.name}.grad is None: it is not a leaf but was computed; its gradient {size} was "
                       "passed on", place=pointed(self.writer.where), fix="y.retain_grad() before backward()", stages=stages)
        if sweep.wanted is not None and not any(r() is self.writer for r in sweep.wanted):
            return Why("not_asked", f"{self.name}.grad is None: the sweep was for other tensors only", place=pointed(where),
                       fix="add it to inputs", stages=stages)
        if sweep.wanted is not None:
            return Why("not_asked", f"{self.name}.grad is None: autograd.grad returned its gradient {size}, and does not set "
                       ".grad", place=pointed(where), fix="loss.backward()", stages=stages)
        return Why("cleared", f"{self.name}.grad is {'None' if actual is None else 'zero'}: backward() brought a gradient "
                   f"{size}, and it was cleared since", place=pointed(where),
                   fix="read .grad before zero_grad()", stages=stages)

    def alive(self, swept: Swept, step: Step, g: Any, mine: Any, stages: list[Any]) -> Why:
        """A gradient: where it came from, and whether it shrank or grew beyond use on its way."""
        size, largest = norm(g), max((stage[2] for stage in stages), default=1.0)
        began = stages[0][2] if stages else 1.0
        head = f"{self.name}.grad has norm {size:.3g}"
        if stages and size < TINY * max(began, largest):
            at = min(range(1, len(stages)), key=lambda i: stages[i][2] / (stages[i - 1][2] or 1), default=0)
            return Why("vanished", f"{head}: it has vanished on its way, from {max(began, largest):.3g}", place=stages[at][0],
                       stages=stages, fix="normalize between the steps, shorten the way, or use relu instead of sigmoid")
        if stages and size > HUGE * max(began, 1e-30):
            at = max(range(1, len(stages)), key=lambda i: stages[i][2] / (stages[i - 1][2] or 1), default=0)
            return Why("exploded", f"{head}: it has exploded on its way, from {began:.3g}", place=stages[at][0],
                       stages=stages, fix="mutagrad.nn.utils.clip_grad_norm_(parameters, 1.0), or smaller weights")
        lines = [f"through {reader.op.name} at {describe(reader.where)}" for reader, _ in swept.readers.get(step, ())[:3]]
        if swept.evidence is not None:
            lines.append(f"by backward() at {describe(swept.evidence.freed.where)}")
        if mine is not None and mine.size == np.size(g) and not np.allclose(mine, np.reshape(g, -1), 1e-3, 1e-6):
            lines.append("(of several sweeps, or values have changed since: the latest alone brought "
                         f"norm {norm(mine):.3g})")
        return Why("ok", head, lines=lines + self.zeros_among(swept, step, g), stages=stages if len(stages) > 1 else [])

    def zeros_among(self, swept: Swept, step: Step, g: Any) -> list[str]:
        """What is to be said of elements that got nothing, where others did."""
        came, zeros = swept.came_to(step), np.reshape(g, -1) == 0
        if came is None or came.size != zeros.size or not zeros.any() or zeros.size > SOME:
            return []
        lost = [fate for fate in swept.fates(step, zeros) if fate.kind != "arrives"]
        where = ", ".join(map(str, np.flatnonzero(zeros)[:6])) + (", ..." if zeros.sum() > 6 else "")
        return [f"zero at element {where}: {_said(fate)[1]}"
                + (f" at {describe(fate.step.where)}" if fate.step.op is not None else "") for fate in lost[:3]]

    def unknown(self, swept: Swept, step: Step, stages: list[Any]) -> Why:
        """The graph leads to it, but what came is not known."""
        if not isinstance(self.writer, Leaf):
            return Why("not_leaf", f"{self.name}.grad is None: it is not a leaf but was computed",
                       place=pointed(self.writer.where), fix="y.retain_grad() before backward()")
        fates = [fate for fate in swept.fates(step, self.chosen) if fate.kind not in ("arrives", "unread")]
        for fate in fates:
            words, said = _said(fate)
            return Why(words.cause, f"{self.name}.grad is None: {said}", place=pointed(fate.step.where), fix=words.fix)
        return Why("cleared", f"{self.name}.grad is None, though the loss depends on it: it was cleared since, or nothing "
                   "was passed on", place="" if swept.evidence is None else describe(swept.evidence.freed.where),
                   fix="read .grad before zero_grad()")


# --------------------------------------------------------------------------------------------------------------- details

_COMPARISONS = frozenset("eq ne lt le gt ge isnan isinf isfinite signbit logical_and logical_or logical_not".split())


def _cuts() -> list[Cut]:
    return [Cut(*cut) for cut in reversed(list(CUTS))]


def _noted(found: Found, known: Iterable[Cut]) -> Cut | None:
    """The note of what was read in the text."""
    same = [cut for cut in known if cut.where[0].co_filename == found.file and file_and_line(cut.where)[1] == found.line]
    return next((cut for cut in same if cut.kind == found.kind), same[0] if same else None)


def _elements(tensor: TensorBase) -> Any:
    """Which elements of its storage a tensor is; None for all of it."""
    if tensor._offset is None or tensor._storage.buffer.size > SOME or tensor._array.dtype != tensor._storage.buffer.dtype:
        return None
    chosen = np.zeros(tensor._storage.buffer.size, bool)
    chosen[_positions(tensor)] = True
    return chosen


def _positions(tensor: TensorBase) -> Any:
    array = tensor._array
    return positions(tensor._offset or 0, array.shape, array.strides, array.itemsize).reshape(-1)


def _window(tensor: TensorBase) -> Any:
    array = tensor._array
    return tensor._offset or 0, array.shape, array.strides, None


def _said(fate: Fate) -> tuple[Words, str]:
    """The words for what became of elements, and the sentence."""
    op = fate.step.op.name if fate.step.op is not None else ""
    if fate.kind == "overwritten":
        return Words("overwritten", "", "write to a copy: y = y.clone(), or read it before"), \
            "it was overwritten before anything read it"
    if fate.kind in ("unread", "unasked"):
        return Words("not_reached", "", "let the loss depend on it"), "the loss does not read it" \
            if fate.kind == "unread" else "the gradient to start from is zero there"
    if fate.kind == "hook":
        return Words("hook", "", "look at what register_hook was given"), "a hook made it zero"
    if fate.kind == "function":
        return Words("function", "", "look at its backward"), f"the backward of {op} returned None or zero for it"
    words = without_derivative(op) if fate.kind == "no_derivative" else flat(op)
    return words, words.said.format(op=op)


def _stages(swept: Swept, step: Step, mine: Any) -> list[tuple[str, str, float]]:
    """The way from the loss to a step: place, operation, and norm of the gradient of what it computed."""
    found = []
    for one in reversed(swept.ahead(step)):
        came = swept.came_to(one)
        if came is not None and one is not step and one.op is not None:
            found.append((describe(one.where), one.op.name, norm(came)))
    return [*found, ("", "here", norm(mine))] if mine is not None and found else found


def _table(stages: Sequence[tuple[str, str, float]]) -> list[str]:
    middle = len(stages) - SHOWN
    shown = list(stages) if middle <= 0 else [*stages[:SHOWN // 2], (f"... {middle} more", "", -1.0), *stages[-SHOWN // 2:]]
    return [f"    {'' if size < 0 else f'{size:.3g}':>9}  {op:12} {place}".rstrip() for place, op, size in shown]


def _first_nan(swept: Swept, step: Step) -> tuple[Step, str] | None:
    """The step that made the first nan: in the forward computation, or in the sweep."""
    for one in sorted(swept.steps, key=lambda s: -s.order):
        if one.op is not None and one.saved.__class__ is tuple and getattr(one.op, "pure", False):
            maker, _ = _maker(one)
            if isinstance(maker, Step) and maker.op is not None:
                return maker, "computing"
    return _first(swept, np.isnan)


def _first_inf(swept: Swept, step: Step) -> tuple[Step, str] | None:
    return _first(swept, lambda g: ~np.isfinite(g))


def _first(swept: Swept, wrong: Any) -> tuple[Step, str] | None:
    """The first step that the sweep visits whose rules make what is wrong of what is not."""
    if swept.replay is None:
        return None
    for one in swept.steps:
        gave = swept.replay.gave.get(one, ())
        if any(g is not None and wrong(g).any() for g in gave) and not wrong(swept.replay.came[one]).any():
            return one, "the derivative of"
    return None
