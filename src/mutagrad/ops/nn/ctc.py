"""The connectionist loss: all alignments of a shorter sequence of labels with a longer one of guesses."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...arrays import np
from ...arrays.compiled import gates
from ...arrays.compiled.library import find
from ...arrays.kinds import anywhere, check_range, is_plain, pick, unknown
from ...arrays.places import add_at
from ...base.errors import BadIndex, BadValue, DTypeError, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.indexing import put
from ...core.op import RAW, RECORDED
from ...core.storage import TensorBase as Tensor
from ..reduce.reductions import mean as average
from ..shape.shape import reshape, unsqueeze
from .loss import check_float, check_tensors, reduced, reduction_of

__all__ = ["ctc_loss"]


# ------------------------------------------------------------------------------------------------------------------ ctc

# The logarithm of the probability of what cannot be: finite, so that differences of two of them are numbers.
_NEVER = -1e30


class _Alignment:
    """The ways through T steps that spell the targets: states are the labels, with blanks before, between and after.

    `index` picks each state's log-probability at each step; `start`, `end` and `skip` (a step over a blank) are 0 where
    a way may begin, end and skip to, and _NEVER elsewhere.
    """

    __slots__ = ("index", "start", "end", "skip", "never", "last", "steps", "lengths", "zero_infinity")

    def __init__(self, a: Array, labels: Array, blank: int, steps: Array, lengths: Array, zero_infinity: bool) -> None:
        n, count = labels.shape
        states = np.full((n, 2 * count + 1), blank)
        states[:, 1::2] = labels
        place = np.arange(states.shape[1])
        self.index = np.arange(len(a)).reshape(-1, 1, 1), np.arange(n).reshape(-1, 1), states
        self.never = np.full(states.shape, _NEVER, a.dtype)
        self.start = self._where(place < np.where(lengths > 0, 2, 1)[:, None])
        self.end = self._where((place == 2 * lengths[:, None]) | (place == 2 * lengths[:, None] - 1))
        before = np.concatenate([np.full((n, 2), -1), states[:, :-2]], 1)[:, :states.shape[1]]
        self.skip = self._where((place % 2 == 1) & (states != before))
        self.last, self.steps, self.lengths = np.maximum(steps - 1, 0), steps, lengths
        self.zero_infinity = zero_infinity

    def _where(self, allowed: Array) -> Any:
        return np.where(allowed, self.never.dtype.type(0), self.never)


def _moved(xp: Any, row: Any, plan: _Alignment, by: int) -> Any:
    """A row of states moved to the right (to the left, if negative), with what cannot be in the gap."""
    count = row.shape[1]
    gap = xp.as_value(plan.never[:, :min(abs(by), count)])
    return xp.join([gap, row[:, :max(count - by, 0)]] if by > 0 else [row[:, min(-by, count):], gap], 1)


def _stacked(xp: Any, rows: list[Any]) -> Any:
    return xp.join([xp.unsqueeze(row, 0) for row in rows], 0)


def _by_loop(function: Any, e: Array, *details: Array) -> Any:
    """The same by a compiled loop; None where there is none."""
    if not e.size or not is_plain(e, *details) or (loop := find(function, e.dtype)) is None:
        return None
    table = np.ascontiguousarray(e)
    out = np.empty(e.shape, e.dtype)
    loop.share(e.shape[1], _WORK * e.size, table, *details, _NEVER, out)
    return out


_WORK = 16  # elementwise steps that a state takes as long as


def _ways_here(xp: Any, e: Any, plan: _Alignment) -> Any:
    """For each step the log-probability of all ways that begin at the start and are in each state."""
    if xp is RAW and (found := _by_loop(gates.ways_here, e, plan.start, plan.skip)) is not None:
        return found
    rows = [e[0] + xp.as_value(plan.start)]
    for t in range(1, e.shape[0]):
        stay_or_next = xp.logaddexp(rows[-1], _moved(xp, rows[-1], plan, 1))
        rows.append(e[t] + xp.logaddexp(stay_or_next, _moved(xp, rows[-1], plan, 2) + xp.as_value(plan.skip)))
    return _stacked(xp, rows)


def _ways_on(xp: Any, e: Any, plan: _Alignment) -> Any:
    """For each step the log-probability of all ways from each state to an end, without the step itself."""
    if xp is RAW and (found := _by_loop(gates.ways_on, e, plan.end, plan.skip, plan.last)) is not None:
        return found
    rows: list[Any] = [xp.as_value(plan.never)]
    for t in reversed(range(e.shape[0])):
        row = rows[-1]
        if t + 1 < e.shape[0]:
            row = row + e[t + 1]
            stay_or_next = xp.logaddexp(row, _moved(xp, row, plan, -1))
            row = xp.logaddexp(stay_or_next, _moved(xp, row + xp.as_value(plan.skip), plan, -2))
        rows.append(xp.where(xp.as_value((plan.last == t)[:, None]), xp.as_value(plan.end), row))
    return _stacked(xp, rows[:0:-1])


def _all_ways(xp: Any, table: Any, plan: _Alignment) -> Any:
    """The log-probability of the targets, out of the rows at which each sample ends."""
    each = np.arange(len(plan.last))
    blank_last = xp.pick(table, (plan.last, each, 2 * plan.lengths))
    label_last = xp.pick(table, (plan.last, each, np.maximum(2 * plan.lengths - 1, 0)))
    labelled = np.where(plan.lengths > 0, 0, _NEVER).astype(plan.never.dtype)
    return xp.logaddexp(blank_last, label_last + xp.as_value(labelled))


def _ctc(a: Array, plan: _Alignment) -> Any:
    kind = a.dtype.type
    loss = -_all_ways(RAW, RAW.ways_here(pick(a, plan.index), plan), plan)
    loss = np.where(plan.steps == 0, np.where(plan.lengths == 0, kind(0), kind(np.inf)), loss)
    return np.where(loss > -_NEVER / 2, kind(0 if plan.zero_infinity else np.inf), loss)


def _ctc_rule(xp: Any, g: Any, x: Any, plan: _Alignment) -> Any:
    """Each state's share in all ways, at each step, with its sign changed."""
    e = xp.pick(x, plan.index)
    here, on = xp.ways_here(e, plan), xp.ways_on(e, plan)
    whole = xp.reshape(_all_ways(xp, here, plan), (-1, 1))
    idle = (plan.steps == 0) | xp.is_impossible(whole, plan)
    count = e.shape[0]
    infinite = 0.0 if plan.zero_infinity else np.where(np.arange(count)[:, None] < plan.steps, np.nan, 0.0)
    lost = np.where(idle & np.ones((count, 1), bool), infinite, 1.0).astype(plan.never.dtype)
    shares = xp.exp(here + on - whole)
    return xp.gathered(x.shape, plan.index, shares * xp.reshape(-g * xp.as_value(lost), (count, -1, 1)))


def _gathered(shape: tuple[int, ...], index: Any, values: Array) -> Any:
    whole = np.zeros(shape, values.dtype)
    add_at(whole, tuple(np.broadcast_arrays(*index)), values)
    return whole


def _gathered_recorded(shape: tuple[int, ...], index: Any, values: Tensor) -> Any:
    whole = make(np.zeros(shape, values._array.dtype))
    put(whole, index, values, "index_add_", accumulate=True)
    return whole


def _is_impossible(whole: Any, plan: _Alignment) -> Any:
    return whole[:, 0] < _NEVER / 2


for _xp in (RAW, RECORDED):
    _xp.ways_here, _xp.ways_on = partial(_ways_here, _xp), partial(_ways_on, _xp)
RAW.gathered, RECORDED.gathered = _gathered, _gathered_recorded
RAW.is_impossible, RECORDED.is_impossible = _is_impossible, lambda whole, plan: _is_impossible(whole._array, plan)
ctc_values = primitive("ctc_loss", _ctc, settings=("plan",), x=_ctc_rule)


def _lengths(name: str, given: Any, count: int, most: int) -> Any:
    """Lengths, one for each sample, as an array."""
    found = np.asarray(given._array if isinstance(given, Tensor) else given).reshape(-1)
    if found.dtype.kind not in "iu" and found.size:
        raise DTypeError(f"ctc_loss: {name} must be integers, not {found.dtype.name}", fix=f"{name}.long()")
    if len(found) != count or anywhere((found < 0) | (found > most)):
        raise BadValue(f"ctc_loss: {name} {found.tolist()} for {count} samples",
                       why=f"there must be one for each, from 0 to {most}", fix=f"{name} of shape ({count},)")
    return found.astype(np.int64)


def _labels(target: Tensor, lengths: Array, classes: int) -> Any:
    """The labels of each sample in a row of its own, filled up with 0."""
    t = target._array
    if t.ndim == 1:
        if t.size != lengths.sum():
            raise BadValue(f"ctc_loss: {t.size} labels for target_lengths {lengths.tolist()}",
                           why=f"they sum to {lengths.sum()}", fix="targets of shape (N, S), or all labels end to end")
        rows = np.zeros((len(lengths), int(lengths.max(initial=0))), np.int64)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = t
    else:
        padded = np.where(np.arange(t.shape[1]) < lengths[:, None], t, 0).astype(np.int64)
        rows = padded if unknown(lengths) else padded[:, :int(lengths.max(initial=0))]
    check_range(rows, 0, classes - 1, lambda wrong, where: BadIndex(
        f"ctc_loss: label {wrong} is out of bounds for {classes} classes", fix=f"labels from 0 to {classes - 1}",
        where=where))
    return rows


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int],
             target_lengths: Tensor | Sequence[int], blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Any:
    """-log of the probability that (T, N, C) log-probabilities spell the targets, blanks and repetitions left out.

    Targets are (N, S), or all labels end to end. The mean is over samples, each divided by its number of labels.

    >>> import mutagrad as mg
    >>> p = mg.full((4, 1, 3), 1 / 3).log()  # steps, batch, classes
    >>> mg.nn.functional.ctc_loss(p, mg.tensor([[1, 2]]), mg.tensor([4]), mg.tensor([2]))
    tensor(0.8432)
    """
    reduction = reduction_of("ctc_loss", reduction)
    check_float("ctc_loss", log_probs)
    check_tensors("ctc_loss", targets)
    a, t = log_probs._array, targets._array
    if a.ndim not in (2, 3) or not a.shape[0] or t.ndim > 2 or a.ndim == 3 and t.ndim == 2 and len(t) != a.shape[1]:
        raise ShapeError(f"ctc_loss: log_probs of shape {a.shape} and targets of shape {t.shape} do not fit",
                         why="log_probs are (T, N, C) or (T, C), and targets (N, S) or all labels end to end",
                         fix="log_probs.transpose(0, 1)")
    if t.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss: targets must be integers, not {of_array(t.dtype).name}", fix="targets.long()")
    if not 0 <= blank < a.shape[-1]:
        raise BadValue(f"ctc_loss: blank {blank} is out of bounds for {a.shape[-1]} classes", fix="blank=0")
    x = log_probs if a.ndim == 3 else unsqueeze(log_probs, 1)
    count = x._array.shape[1]
    steps = _lengths("input_lengths", input_lengths, count, a.shape[0])
    lengths = _lengths("target_lengths", target_lengths, count, t.shape[-1] if t.ndim == 2 else t.size)
    labels = _labels(targets if t.ndim else reshape(targets, 1), lengths, a.shape[-1])
    plan = _Alignment(x._array, labels, blank, steps, lengths, zero_infinity)
    loss = ctc_values(x, plan)
    if reduction == "mean":
        return average(loss / make(np.maximum(lengths, 1).astype(a.dtype)))
    return reduced(loss if a.ndim == 3 or reduction == "sum" else reshape(loss, ()), reduction)
