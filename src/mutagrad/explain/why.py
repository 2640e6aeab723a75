"""Where a tensor's gradient came from, or why it is None or zero.

>>> import mutagrad as mg
>>> x = mg.tensor([1., 2., 3.], requires_grad=True)
>>> y = x * 2
>>> y[0] = 5.
>>> y.sum().backward()
>>> mg.why(x[0]).cause
'overwritten'

It is asked after the fact, so it works with what is left: the latest sweeps, of which small ones keep what they have
freed (`core/evidence.py`); notes of the places at which history was left behind; and the text of the program.
"""
from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ..arrays import np
from ..base.errors import BadArgument
from ..base.provenance import OURS, describe
from ..core.evidence import BEGUN, REFUSED, SWEEPS, reachable, steps_of
from ..core.factory import window_or_none
from ..core.graph import Leaf
from ..core.storage import TensorBase
from .answers import Why, WhyModel
from .arrived import reached
from .missed import cut_off, no_history, not_reached, not_swept
from .question import Question
from .swept import Swept


def why(input: object, loss: TensorBase | None = None) -> Any:
    """Say where the gradient of a tensor came from, or why it is None or zero; of a model, of each parameter.

    >>> import mutagrad as mg
    >>> x, mask = mg.ones(2, requires_grad=True), mg.zeros(2)
    >>> (x * mask).sum().backward()
    >>> mg.why(x).cause
    'zero'

    `why(x[3])` is about that element. Asked after `backward()`, it is about the latest one; with a loss, about that
    one, whether or not it was swept. The answer is a text; its `cause`, `where`, `fix` and `stages` are for programs.
    """
    frame = _user_frame()
    if loss is not None and not isinstance(loss, TensorBase):
        raise BadArgument(f"why: the loss must be a tensor, not {type(loss).__name__}", fix="mutagrad.why(x, loss)")
    if hasattr(input, "named_parameters"):
        return WhyModel({name: _answer(Question(p, loss, frame)) for name, p in input.named_parameters()})
    if not isinstance(input, TensorBase):
        raise BadArgument(f"why: expects a tensor or a module, not {type(input).__name__}", fix="mutagrad.why(x)")
    return _answer(Question(input, loss, frame))


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in OURS:
        frame = frame.f_back
    return frame


def _answer(q: Question) -> Why:
    if q.writer is None:
        return no_history(q)
    if q.loss is not None:
        return _of_loss(q, q.loss)
    refused, begun = REFUSED
    if refused() is not None and begun is BEGUN[0] and q.owner._grad is None:
        return _of_loss(q, refused())
    if SWEEPS and BEGUN[0] is not SWEEPS[-1].freed and q.owner._grad is None:
        return Why("failed", f"{q.head()}: the latest backward() raised an error", place=describe(BEGUN[0].where),
                   fix="see that error")
    known = [(sweep, Swept(*sweep.graph(), sweep)) for sweep in q.sweeps()]
    if not known:
        return not_swept(q)
    if q.owner._grad is not None or not isinstance(q.writer, Leaf):  # if computed: which went through it
        for _, swept in known:
            if (step := swept.step_of(q.writer)) is not None:
                return reached(q, swept, step)
    sweep, swept = known[0]
    step = swept.step_of(q.writer)
    return not_reached(q, sweep, swept) if step is None else reached(q, swept, step)


def _of_loss(q: Question, loss: TensorBase) -> Why:
    """About a loss that was given: as it was swept, if it was, else as it would be."""
    start = loss._storage.writer
    if start is None:
        head = f"{q.name} gets no gradient: the loss has no history"
        return cut_off(q, f"{head}; ", None) or Why("not_reached", head, fix="compute it outside of no_grad, without "
                                                                             "detach() or item()")
    swept = _swept_from(start)
    if swept is None:
        steps = steps_of(reachable([start]), None, [], {})
        swept = Swept(list(steps.values()), [(steps[start], window_or_none(loss), np.ones_like(loss._array))], None)
    step = swept.step_of(q.writer)
    return not_reached(q, swept.evidence, swept) if step is None else reached(q, swept, step)


def _swept_from(start: Any) -> Swept | None:
    """The latest sweep that began at a writer, if it is remembered."""
    for sweep in reversed(list(SWEEPS)):
        steps, starts = sweep.graph()
        if any(step.of() is start for step, *_ in starts):
            return Swept(steps, starts, sweep)
    return None
