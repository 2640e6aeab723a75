"""What a sweep brought to a tensor that it reached: a gradient, and by which way; or why nothing but zeros, or nan."""
from __future__ import annotations

from collections.abc import Callable
from opcode import opname
from typing import Any

from ..arrays import np
from ..base.provenance import OURS, Where, describe, describe_line, pointed
from ..core.backward import retains_grad
from ..core.evidence import Step
from ..core.graph import Leaf
from ..core.nans import maker_of
from ..core.storage import memory_of
from .answers import Stage, Why
from .missed import AGAIN
from .question import Question
from .swept import SOME, Fate, Swept, norm
from .wording import Words, flat, without_derivative

TINY, HUGE = 1e-7, 1e6  # a gradient that has vanished or exploded, beside that of the loss
SUBNORMAL = 1e-20


def reached(q: Question, swept: Swept, step: Step) -> Why:
    """The tensor is part of the graph: what came to it, by the way that it came."""
    swept.run()
    came, actual = swept.left_of(step), q.grad()
    mine = None if came is None else came.reshape(-1)
    if mine is not None and q.chosen is not None and mine.size == q.chosen.size:
        mine = mine[q.chosen]
    stages = _stages(swept, step, mine)
    g = actual if actual is not None else mine
    if g is None:
        return _unknown(q, swept, step)
    if not np.isfinite(g).all():
        return _not_finite(q, swept, g, stages)
    if not np.any(g) and (mine is None or not np.any(mine)):
        return _zero(q, swept, step, stages)
    if actual is not None and np.any(actual):
        return _alive(q, swept, step, g, mine, stages)
    if q.owner._grad is not None and memory_of(q.owner._grad).version == 0:
        return _changed_since(q, swept, step)
    return _came_and_went(q, swept, norm(mine), stages)


def _stages(swept: Swept, step: Step, mine: Any) -> list[Stage]:
    """The way from the loss to a step."""
    ahead = [(one, swept.came_to(one)) for one in reversed(swept.ahead(step)) if one is not step]
    found = [(describe(one.where), one.op.name, norm(came)) for one, came in ahead if came is not None]
    return [*found, ("", "here", norm(mine))] if mine is not None and found else found


# ---------------------------------------------------------------------------------------------------------------- zeros

def _zero(q: Question, swept: Swept, step: Step, stages: list[Stage]) -> Why:
    """Nothing but zeros came: what became of each element on its way."""
    head = q.head(zero=True)
    lost = [fate for fate in swept.fates(step, q.chosen) if fate.kind != "arrives"]
    if lost:
        words, said = _said(lost[0])
        more = [f"{_said(fate)[1]} at {describe(fate.step.where)}" for fate in lost[1:] if fate.step.op is not None]
        return Why(words.cause, f"{head}: {said}", place=_place(swept, lost[0]), lines=list(dict.fromkeys(more))[:3],
                   fix=words.fix, stages=stages)
    if not swept.is_known(step):
        return _guessed(swept, step, head)
    small = [stage for stage in stages if 0 < stage[2] < SUBNORMAL]
    if small:
        return Why("vanished", f"{head}: it became too small for the type on its way", place=small[-1][0],
                   stages=stages, fix="normalize between the steps, or compute in float64")
    readers = [reader.where for reader, _ in swept.readers.get(step, ())]
    return Why("cancelled", f"{head}: what arrives by several ways adds up to zero", stages=stages,
               place=pointed(readers[0]) if readers else "", fix="look at the terms: each alone has a gradient",
               lines=[f"also read at {describe(where)}" for where in readers[1:4]])


def _said(fate: Fate) -> tuple[Words, str]:
    """The words for what became of elements, and the sentence."""
    op = fate.step.op.name if fate.step.op is not None else ""
    kind = "checkpoint" if fate.kind == "function" and op == "checkpoint" else fate.kind
    if op == "where" and _is_item_write(fate.step.where):
        kind = "repeated"
    words = (FATES[kind] if kind in FATES
             else without_derivative(op) if fate.kind == "no_derivative" else flat(op))
    return words, words.said.format(op=op)


def _is_item_write(where: Where) -> bool:
    """Whether what happened there is an assignment `x[i] = ...`."""
    code, offset = where
    return opname[code.co_code[offset]].startswith("STORE_SUBSCR")


FATES = {
    "overwritten": Words("overwritten", "it was overwritten before anything read it",
                         "write to a copy: y = y.clone(), or read it before"),
    "repeated": Words("overwritten", "the index names an element twice, and another value was written there after it",
                      "indices without repetition, or index_put_(..., accumulate=True), which adds"),
    "unread": Words("not_reached", "the loss does not read it", "let the loss depend on it"),
    "unasked": Words("zero", "the gradient that backward() was given is zero there",
                     "look at the gradient that backward() was given"),
    "hook": Words("hook", "a hook made it zero", "look at what register_hook was given"),
    "checkpoint": Words("function", "the checkpointed function passes nothing on to it: what it computes from it has "
                        "no influence, or a derivative of zero", "call it without checkpoint, and ask again"),
    "function": Words("function", "the backward of {op} returned None or zero for it", "look at its backward"),
}


def _place(swept: Swept, fate: Fate) -> str:
    step = fate.step
    readers = [reader.where for reader, _ in swept.readers.get(step, ())]
    if fate.kind == "unread" and (readers or swept.evidence is not None):
        return pointed(readers[0] if readers else swept.evidence.freed.where)  # type: ignore[union-attr]
    if fate.kind == "hook" and (hook := _hook_of(step)):
        return hook
    return pointed(step.where) if step.op is not None else ""


def _hook_of(step: Step) -> str:
    """Where the first hook on a node or leaf was written."""
    hooks = getattr(step.of(), "hooks", None)
    codes = [getattr(hook, "__code__", None) for hook, *_ in hooks.in_order()] if hooks else []
    for code in codes:
        if code is not None and code.co_filename not in OURS:
            return describe_line(code.co_filename, code.co_firstlineno)
    return ""


def _guessed(swept: Swept, step: Step, head: str) -> Why:
    """Values are gone: the nearest operation on the way that can make a gradient zero."""
    for one in swept.ahead(step)[1:]:
        words = flat(one.op.name)
        if words is not flat(""):
            return Why(words.cause, f"{head}: it seems that {words.said.format(op=one.op.name)}",
                       place=pointed(one.where), lines=["(the values were too large to be remembered)"], fix=words.fix)
    return Why("zero", f"{head}: the values that it depends on are gone", fix=AGAIN)


def _changed_since(q: Question, swept: Swept, step: Step) -> Why:
    """A gradient that was zero when it came, though with the values as they are now it would not be."""
    answer = _guessed(swept, step, q.head(zero=True))
    answer.lines = ["(values have changed since: the same backward() would give another gradient now)"]
    return answer


# ------------------------------------------------------------------------------------------------------- other outcomes

def _not_finite(q: Question, swept: Swept, g: Any, stages: list[Stage]) -> Why:
    nan = bool(np.isnan(g).any())
    made = (_first_computed(swept) or _first(swept, np.isnan)) if nan else _first(swept, lambda g: ~np.isfinite(g))
    cause, said = "nan" if nan else "exploded", f"{q.grad_name} is {'nan' if nan else 'infinite'}"
    if made is None:
        return Why(cause, said, stages=stages, fix="with mutagrad.autograd.detect_anomaly(): ...")
    step, how = made
    before = _first(swept, lambda g: ~np.isfinite(g)) if nan else None
    lines = [] if before is None or before[0] is step else [
        f"before that, {before[1]} {before[0].op.name} was infinite at {describe(before[0].where)}"]
    return Why(cause, f"{said}: the first {'nan' if nan else 'inf'} was made by {how} {step.op.name}", stages=stages,
               place=pointed(step.where), lines=lines, fix="look at the values there: a division by zero, "
                                              "or the logarithm or root of a number out of range")


def _first_computed(swept: Swept) -> tuple[Step, str] | None:
    """The step that computed the first nan, before any derivative was taken."""
    for step in reversed(swept.steps):
        maker = maker_of(step) if step.op is not None else None
        if isinstance(maker, Step) and maker.op is not None:
            return maker, "computing"
    return None


def _first(swept: Swept, wrong: Callable[[Any], Any]) -> tuple[Step, str] | None:
    """The first step that the sweep visits whose rules make what is wrong of what is not."""
    for step in swept.steps if swept.replay is not None else ():
        came, gave = swept.came_to(step), swept.given_by(step)
        if came is not None and not wrong(came).any() and any(g is not None and wrong(g).any() for g in gave):
            return step, "the derivative of"
    return None


def _came_and_went(q: Question, swept: Swept, size: float, stages: list[Stage]) -> Why:
    """The sweep brought a gradient, and `.grad` does not have it."""
    sweep, head, came = swept.evidence, q.head(), f"a gradient of norm {size:.3g}"
    if sweep is None:
        return Why("not_swept", f"{head}: no backward() of this loss has been called; it would bring {came}",
                   stages=stages, fix="loss.backward()")
    if not isinstance(q.writer, Leaf):
        late = "; retain_grad() came too late, or it was cleared since" if retains_grad(q.tensor) else ""
        return Why("not_leaf", f"{head}: it is not a leaf but was computed; {came} came, and was passed on{late}",
                   place=pointed(q.writer.where), fix="y.retain_grad() before backward()", stages=stages)
    place = pointed(sweep.freed.where)
    if sweep.wanted is not None and not any(wanted() is q.writer for wanted in sweep.wanted):
        return Why("not_asked", f"{head}: the sweep was for other tensors only", place=place, fix="add it to inputs")
    if sweep.wanted is not None:
        return Why("not_asked", f"{head}: autograd.grad returned {came}, and does not set .grad", place=place,
                   fix="loss.backward()", stages=stages)
    return Why("cleared", f"{head}: backward() brought {came}, and it was cleared since", place=place, stages=stages,
               fix="read .grad before zero_grad()")


def _alive(q: Question, swept: Swept, step: Step, g: Any, mine: Any, stages: list[Stage]) -> Why:
    """A gradient: where it came from, and whether it shrank or grew beyond use on its way."""
    size, began = norm(g), stages[0][2] if stages else 1.0
    largest = max((stage[2] for stage in stages), default=1.0)
    head = f"{q.grad_name} has norm {size:.3g}"
    if stages and size < TINY * largest:
        return Why("vanished", f"{head}: it has vanished on its way, from {largest:.3g}", place=_steepest(stages, min),
                   stages=stages, fix="normalize between the steps, shorten the way, or use relu instead of sigmoid")
    if stages and size > HUGE * began > 0:
        return Why("exploded", f"{head}: it has exploded on its way, from {began:.3g}", place=_steepest(stages, max),
                   stages=stages, fix="mutagrad.nn.utils.clip_grad_norm_(parameters, 1.0), or smaller weights")
    through = [f"through {reader.op.name} at {describe(reader.where)}" for reader, _ in swept.readers.get(step, ())]
    lines = list(dict.fromkeys(through))[:3]
    if swept.evidence is not None:
        lines.append(f"by backward() at {describe(swept.evidence.freed.where)}")
    if mine is not None and mine.size == np.size(g) and not np.allclose(mine, np.reshape(g, -1), 1e-3, 1e-6):
        lines.append(f"(of several sweeps, or values have changed since: the latest brings norm {norm(mine):.3g})")
    return Why("ok", head, lines=lines + _zeros_among(swept, step, g), stages=stages if len(stages) > 1 else [])


def _steepest(stages: list[Stage], choose: Any) -> str:
    """The place of the stage at which the norm changes most."""
    at = choose(range(1, len(stages)), key=lambda i: stages[i][2] / (stages[i - 1][2] or 1), default=0)
    return stages[at][0] or stages[at - 1][0]


def _zeros_among(swept: Swept, step: Step, g: Any) -> list[str]:
    """What is to be said of elements that got nothing, where others did."""
    came, zeros = swept.came_to(step), np.reshape(g, -1) == 0
    if came is None or came.size != zeros.size or not zeros.any() or zeros.size > SOME:
        return []
    places = [list(map(int, place)) for place in np.argwhere(zeros.reshape(np.shape(g)))[:6]]
    where = ", ".join(str(p[0] if len(p) == 1 else p) for p in places) + (", ..." if zeros.sum() > 6 else "")
    found = []
    for fate in swept.fates(step, zeros):
        if fate.kind != "arrives":
            place = f" at {describe(fate.step.where)}" if fate.step.op is not None else ""
            found.append(f"zero at element {where}: {_said(fate)[1]}{place}")
    return list(dict.fromkeys(found))[:3]


def _unknown(q: Question, swept: Swept, step: Step) -> Why:
    """The graph leads to it, but what came is not known."""
    if not isinstance(q.writer, Leaf):
        return Why("not_leaf", f"{q.grad_name} is None: it is not a leaf but was computed",
                   place=pointed(q.writer.where), fix="y.retain_grad() before backward()")
    for fate in swept.fates(step, q.chosen):
        if fate.kind not in ("arrives", "unread"):
            words, said = _said(fate)
            return Why(words.cause, f"{q.grad_name} is None: {said}", place=_place(swept, fate), fix=words.fix)
    return Why("cleared", f"{q.grad_name} is None, though the loss depends on it: it was cleared since, or nothing was "
               "passed on", place="" if swept.evidence is None else describe(swept.evidence.freed.where),
               fix="read .grad before zero_grad()")
