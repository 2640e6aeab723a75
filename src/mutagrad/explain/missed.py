"""Why a sweep has not reached a tensor: it has no history, no sweep came, or its history was left behind somewhere."""
from __future__ import annotations

from collections.abc import Iterable

from ..arrays import np
from ..base.provenance import Where, describe, describe_line, file_and_line, pointed
from ..core.evidence import Cut, Evidence, Step, reachable
from ..core.graph import Node
from . import reading
from .answers import Why
from .question import Question, all_cuts
from .reading import Found
from .swept import Swept, norm
from .wording import COMPARISONS, CUT, Words

AGAIN = "mutagrad.why(x, loss) before backward(), or with retain_graph=True"


def no_history(q: Question) -> Why:
    """About a tensor that does not require a gradient: by its type, by how it was made, or because it was cut off."""
    kind = q.tensor._array.dtype
    if kind.kind not in "fcV":
        return _integer(q, kind.name)
    root = q.tensor._storage.root
    if root is not None and root.writer is not None:
        cut = next((cut for cut in all_cuts() if cut.kind in ("detach", "data", "detach_")
                    and cut.writers and cut.writers[0]() is root.writer), None)
        words = CUT[cut.kind if cut else "detach"]
        return Why(words.cause, f"{q.name} has no gradient: it was {words.said}",
                   place=pointed(cut.where) if cut else "", fix=words.fix)
    for found in reading.made(q.tensor, q.frame):
        words = CUT[found.kind]
        return Why(words.cause, f"{q.name} has no gradient: what it was computed from was {words.said}",
                   place=found.place, fix=words.fix)
    return Why("does_not_require_grad", f"{q.name} has no gradient: it does not require one, and nothing that it was "
               "computed from does", fix="x.requires_grad_() before computing with x, "
                                         "or mutagrad.tensor(..., requires_grad=True)")


def _integer(q: Question, kind: str) -> Why:
    verdict = f"{q.name} has no gradient: it is of type {kind}, which has no derivative"
    for found in reading.made(q.tensor, q.frame):
        words = CUT[found.kind]
        return Why("integer", verdict, place=found.place, fix=words.fix,
                   lines=[f"what it was computed from was {words.said}"])
    return Why("integer", verdict, fix="x.float().requires_grad_()")


def not_swept(q: Question) -> Why:
    """No sweep is known since the tensor was made."""
    g = q.grad()
    if g is not None:
        return Why("ok", f"{q.grad_name} has norm {norm(g):.3g}, from a sweep that is no longer remembered",
                   fix="ask right after backward()")
    if q.read().losses and (answer := cut_off(q, f"{q.head()}: ", None)) is not None:
        return answer
    nodes = q.descendants()
    return Why("not_swept", f"{q.grad_name} is None: no backward() has been called since it was made",
               lines=[f"it was read at {describe(nodes[0].where)}"] if nodes else [], fix="loss.backward()")


def not_reached(q: Question, sweep: Evidence | None, swept: Swept) -> Why:
    """The tensor is no part of the graph of the loss."""
    if sweep is not None and sweep.wanted is not None and (answer := _not_asked(q, sweep)) is not None:
        return answer
    head = f"{q.head()}: " if q.owner._grad is None else f"the latest backward() has not reached {q.name}: "
    if not swept.starts:
        return _graph_gone(q, head, sweep)
    if isinstance(q.writer, Node) and (later := _written_later(q.writer, swept)) is not None:
        return Why("overwritten", f"{head}it was written to after the loss had read it", place=pointed(later),
                   fix="ask before writing to it")
    if q.writer.order < min(step.order for step, *_ in swept.starts):
        return Why("not_reached", f"{head}it was made, or set to require a gradient, after the loss was computed",
                   fix="x.requires_grad_() before computing with x")
    return cut_off(q, head, sweep) or _unused(q, head, sweep)


def _graph_gone(q: Question, head: str, sweep: Evidence | None) -> Why:
    """The graph was too large to be remembered, and nobody else has it."""
    g, place = q.grad(), "" if sweep is None else describe(sweep.freed.where)
    if g is not None and np.any(g):
        return Why("ok", f"{q.grad_name} has norm {norm(g):.3g}", lines=[f"by backward() at {place}"])
    found = cut_off(q, head, sweep) if g is None else None
    return found or Why("unknown", f"{q.head()}, and the graph of the latest backward(), too large to be remembered, "
                        "is gone", place=place, fix=AGAIN)


def _not_asked(q: Question, sweep: Evidence) -> Why | None:
    """A sweep for some inputs only, none of them this, though the loss depends on it."""
    writers = [writer() if not isinstance(writer, Node) and callable(writer) else writer for writer, *_ in sweep.starts]
    if q.writer not in reachable(writer for writer in writers if not isinstance(writer, Step)):
        return None
    return Why("not_asked", f"{q.grad_name} is None: the sweep was for other tensors only",
               place=pointed(sweep.freed.where), fix="add it to inputs")


def _written_later(writer: Node, swept: Swept) -> Where | None:
    """Where a computed tensor was written to, if the loss has read what it was before."""
    node = writer
    while isinstance(node, Node) and node.written is not None and node.previous is not None:
        if swept.step_of(node.previous) is not None:
            return node.where
        node = node.previous  # type: ignore[assignment]
    read = any(before is not None and swept.step_of(before) is not None for before in writer)
    return writer.where if read and getattr(writer.op, "adds", False) and writer.windows else None


def cut_off(q: Question, head: str, sweep: Evidence | None) -> Why | None:
    """Return where its history was left behind, by the text on the way to the loss, by notes, or by all of the text."""
    text = q.read()
    notes = [cut for cut in q.cuts() if sweep is None or cut.order >= sweep.order or cut.kind in COMPARISONS]
    for found in text.losses:
        return _say(q, head, found.kind, _noted(found, notes), found, notes)
    for cut in notes:
        if cut.kind == "overwritten":
            what = "it" if q.is_itself(cut) else "what was computed from it"
            return Why("overwritten", f"{head}{what} was overwritten before anything read it", place=pointed(cut.where),
                       fix="compute into a new tensor, or read it before it is overwritten")
    if text.unrelated and reading.is_readable(q.frame):  # what was cut off was for something else: a number to print
        return None
    for found in text.cuts:
        note = _noted(found, notes)
        if note is not None or found.kind == "no_grad":
            return _say(q, head, found.kind, note, found, notes)
    for cut in notes:
        return _say(q, head, cut.kind, cut, None, notes)
    for found in text.cuts:
        return _say(q, head, found.kind, None, found, notes)
    return None


def _say(q: Question, head: str, kind: str, cut: Cut | None, found: Found | None, notes: list[Cut]) -> Why:
    words = CUT.get(kind, Words("no_derivative", f"passed through {kind}, which has no derivative", ""))
    if cut is not None and kind in ("index", "comparison"):
        words = CUT.get(cut.kind, words)
    place = pointed(cut.where) if cut is not None else found.place if found is not None else ""
    itself = cut is not None and q.is_itself(cut)
    others = {describe(other.where) for other in notes if cut is None or other.where != cut.where}
    lines = [f"also cut at {other}" for other in sorted(others) if not place.startswith(other)]
    if found is not None and found.block not in (0, found.line):
        lines.insert(0, f"recording is off since {describe_line(found.file, found.block)}")
    return Why(words.cause, f"{head}{'it' if itself else 'it, or something computed from it,'} was {words.said}",
               place=place, lines=lines[:3], fix=words.fix)


def _noted(found: Found, notes: Iterable[Cut]) -> Cut | None:
    """The note of what was read in the text."""
    same = [cut for cut in notes
            if cut.where[0].co_filename == found.file and file_and_line(cut.where)[1] == found.line]
    return next((cut for cut in same if cut.kind == found.kind), same[0] if same else None)


def _in_block(q: Question, head: str, sweep: Evidence | None) -> Why | None:
    """A block of no_grad since the tensor was made, where the text of the program cannot be read."""
    if q.read().names and reading.is_readable(q.frame):
        return None
    for cut in all_cuts():
        if cut.kind == "no_grad" and cut.order < q.writer.order and (sweep is None or cut.order >= sweep.order):
            return Why("no_grad", f"{head}it seems to have been {CUT['no_grad'].said}", place=pointed(cut.where),
                       fix=CUT["no_grad"].fix)
    return None


def _unused(q: Question, head: str, sweep: Evidence | None) -> Why:
    """Nothing has cut it off: the loss does not depend on it, or no sweep came since it was used."""
    nodes = q.descendants()
    if not nodes and (answer := _in_block(q, head, sweep)) is not None:
        return answer
    newer = [node for node in nodes if sweep is not None and node.order < sweep.order]
    if newer and len(newer) == len(nodes):
        return Why("not_swept", f"{head}no backward() has been called since it was used", place=pointed(newer[0].where),
                   fix="loss.backward()")
    head += "it is not reached from the loss: "
    loss = "" if sweep is None else describe(sweep.freed.where)
    if nodes:
        return Why("not_reached", f"{head}what was computed from it is not part of it", place=pointed(nodes[0].where),
                   lines=[f"the loss: {loss}"] if loss else [], fix="let the loss depend on it")
    for lost in q.read().lost:
        return Why("not_reached", f"{head}a name for what was computed from it was bound to something else",
                   place=lost.place, fix="let the loss depend on what was computed from it")
    return Why("not_reached", f"{head}nothing that is alive was computed from it", place=loss,
               fix="let the loss depend on it")
