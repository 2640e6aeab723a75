"""The backward sweep.

A program is a sequence of writes, and the sweep runs it in reverse: it visits nodes newest first (a heap on their
order) and reverses each write by **take, then accumulate**. *Take*: the adjoint of the written window is what the rest
of the program wants from the values written there; the values before had no influence through that window any more, so
it is cleared, and what remains of the buffer, the adjoint of the storage as the write found it, is handed down to the
writer before, without copying. *Accumulate*: the operation's rules turn what was taken into adjoints of its inputs,
each added into the window through which the input was read.

Take `y = x * 2; y[0] = 5; y.sum().backward()`. `sum` gives [1,1,1] to y as `y[0] = 5` left it. That write takes window
[0], leaving [0,1,1], and hands the buffer to `*`, which gives [0,2,2] to x.

Why it is right: an adjoint belongs to a *version* of a storage, and is keyed by the node that wrote the version.
Everything that read a version is newer than its writer, so when a node is popped its adjoint is complete. Why it is
linear: a buffer moves down a chain of writes and is touched only inside windows. Adjoints that arrive through a window
before the buffer does wait in a list (`pending`) and are added when it comes; otherwise each version of a long chain
would get a buffer of its own, as happens in double backward, where newer nodes read older versions.

Who may change an adjoint in place? Only its sole owner: the reference count says so (see `Arithmetic.own`), which
spares every rule from declaring whether its result is fresh.

All state of one backward lives in the call: sweeps nest and run in threads. One that raises has freed what it has
visited, as a finished one has, and leaves nothing else behind.
The same loop runs on raw arrays and, for `create_graph=True`, on tensors, whose operations are recorded in turn: the
backward pass is then one more mutating program. `Arithmetic` is what the two differ in.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from itertools import repeat
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Any

from ..arrays.kinds import Like, Refused, anywhere, device_of, is_plain, left_levels, levels_of
from ..arrays.numpy import fp_error
from ..base.counters import counters
from ..base.errors import GradientError
from ..base.modes import call_with, mode
from ..base.provenance import describe
from .graph import OUTPUT as OUTPUT, Adjoint, Freed, Leaf, Node, Writer
from .window import As, Rows, Whole, Window, covers, index_of, shape_of

if TYPE_CHECKING:
    from .arithmetic import Arithmetic


class Sweep:
    """One backward pass, as plainly as it can be written. (`FastSweep` runs in its place, and gives the same.)

    `adjoints` holds for a node a buffer; or a list of what arrived through windows, pending; or, for a node with
    several outputs, {number: adjoint}. `owned` are the nodes whose buffer nobody else can see. Leaves get their adjoint
    by `deposit`, and those in `captures` by a callback, which may take it out of the list that it is given.
    `reachable`, if given, holds the only nodes worth visiting. The sweep ends at those in `stop_at`: their hooks and
    what lies beyond are for another one.
    """

    __slots__ = ("adjoints", "anomaly", "arithmetic", "captures", "deposit", "fp_error", "freed", "heap", "keep",
                 "owned", "reachable", "retain", "stop_at")

    def __init__(self, arithmetic: Arithmetic, freed: Freed, retain: bool,
                 deposit: Callable[[Leaf, list[Any], bool], None] | None,
                 captures: Mapping[Writer, Callable[[list[Any]], None]], reachable: set[Writer] | None,
                 stop_at: Mapping[Writer, Callable[[Any], None]]) -> None:
        self.arithmetic, self.freed, self.retain, self.deposit = arithmetic, freed, retain, deposit
        self.captures, self.reachable, self.stop_at = captures, reachable, stop_at
        self.adjoints: dict[Writer, Any] = {}
        self.owned: set[Writer] = set()
        self.heap: list[tuple[int, Any]] = []  # the nodes that have an adjoint, newest first
        now = mode.now
        self.keep = now.sweep.kept.append  # for what it frees: drops it, unless that is small
        self.anomaly = now.anomaly and now.anomaly_checks_nan
        self.fp_error = fp_error.raised if now.strong_zeros else ()
        fp_error.raised.clear()

    def run(self, seeds: list[tuple[Writer, Window | None, Adjoint]]) -> None:
        """Run backwards from `seeds`, each a writer, a window and an adjoint."""
        while seeds:
            self.accumulate(*seeds.pop())
        while self.heap:
            node = heappop(self.heap)[1]
            self.visit(node, [self.adjoints.pop(node)])
            counters.nodes += 1

    def visit(self, node: Any, holder: list[Any]) -> None:
        """Reverse one write: take what is wanted of it, and accumulate what that wants of its inputs."""
        whole = node.op is not None and node.written is None or node.hooks is not None or self.captures or self.stop_at
        if holder[0].__class__ is list and whole:
            holder.append(self.materialize(node.whole, holder.pop()))
        g = self.run_hooks(node, holder)
        if g is None:
            return
        if node.op is None:
            holder = [g]
            if self.deposit is not None:
                self.deposit(node, holder, self.take_leaf(node, holder))
            return
        inputs = node
        if node.written is not None:
            g, inputs = self.take_written(node, [g])
            if g is None:
                return
        if node.op is OUTPUT:
            return self.collect(node, g)
        grads = self.reverse(node, g, inputs)
        for before, window, gx in zip(inputs, node.windows or repeat(None), grads):
            if gx is not None:
                self.accumulate(before, window, gx)
        if not self.retain and node.op.frees:
            self.keep(node.saved)
            node.saved = self.freed

    def reverse(self, node: Node, g: Adjoint, inputs: Sequence[Writer | None]) -> Any:
        """Apply the operation's rules: return the adjoints of its inputs."""
        saved = node.saved
        if saved.__class__ is Freed:
            raise already_freed(node)
        arithmetic = self.arithmetic
        if arithmetic.restore is not None:
            saved = arithmetic.restore(node)
        grads = node.op.reverse(arithmetic.xp, g, saved, inputs)
        if node.saved is not saved and arithmetic.restore is None:
            grads = self.reverse_again(node, g, saved, inputs, grads)
        if self.anomaly:
            return _no_nan(node, arithmetic.xp, g, saved, inputs, grads)
        return self.stay_zero(node, g, saved, inputs, grads) if self.fp_error else grads

    def stay_zero(self, node: Node, g: Adjoint, saved: Any, inputs: Sequence[Writer | None], grads: Any) -> Any:
        """Give no adjoint to what has no influence, after a rule has met something infinite or undefined."""
        return strong_zeros(node, self.arithmetic.xp, g, saved, inputs, grads)

    def collect(self, node: Node, g: Adjoint) -> None:
        """Keep the adjoint of one of several results until the node that made them all is due."""
        maker = node[0]
        if maker not in self.adjoints:
            self.adjoints[maker] = {}
            heappush(self.heap, (maker.order, maker))
        self.adjoints[maker][node.saved] = g

    def run_hooks(self, node: Writer, holder: list[Any]) -> Any:
        """Run hooks and captures on the one adjoint in `holder`; return it, or None where the sweep goes no further."""
        if node in self.stop_at:
            self.stop_at[node](holder.pop())
            return None
        if node.hooks:
            g = holder.pop() if node in self.owned or holder[0].__class__ is dict else self.arithmetic.own(holder, None)
            g, mine = self.arithmetic.call_hooks(node.hooks, g)
            mode.now.sweep.answered("hook", node.order, [g])
            if mine:
                self.owned.add(node)
            else:
                self.owned.discard(node)
        else:
            g = holder.pop()
        if node in self.captures:
            holder.append(g)
            if self.reachable is not None and self.reachable.isdisjoint(node.inputs):
                g = None  # what lies beyond is of no interest, and may be gone
            self.captures[node](holder)
        return g

    def accumulate(self, node: Writer, window: Window | None, g: Adjoint) -> None:
        """Add g to the adjoint of what `node` wrote."""
        adjoints, arithmetic = self.adjoints, self.arithmetic
        if self.reachable is not None and node not in self.reachable:
            return
        if window is not None:
            shape = shape_of(window)
            if shape is not None and g.shape != shape:
                g = arithmetic.sum_to(g, shape)
            if node in self.owned:
                return arithmetic.add_window(adjoints[node], window, g)
            if covers(window, node.whole):
                g = arithmetic.reshape(g, node.whole[0]) if shape != node.whole[0] else g
                window = None
        if node not in adjoints:
            adjoints[node] = g if window is None else [(window, g)]
            heappush(self.heap, (node.order, node))
        elif adjoints[node].__class__ is list:
            adjoints[node].append((window, g))
        elif window is None:
            adjoints[node] = arithmetic.add([adjoints.pop(node)], g)
            self.owned.discard(node)
        else:
            adjoints[node] = arithmetic.own([adjoints.pop(node)], node.whole[1])
            self.owned.add(node)
            arithmetic.add_window(adjoints[node], window, g)

    def materialize(self, whole_of: Whole, pending: list[tuple[Window | None, Adjoint]]) -> Any:
        """Return one buffer out of all that arrived: whole (accumulated or handed down) or through windows."""
        arithmetic = self.arithmetic
        whole = [g for window, g in pending if window is None]
        parts = [(window, g) for window, g in pending if window is not None]
        pending.clear()
        if len(whole) > 1:
            whole = [arithmetic.total(whole)]
        if whole_of[1] is None:  # nobody has looked at a part: there are none, and nobody will add to one
            return whole.pop()
        if parts and not whole and (buffer := arithmetic.made_of(whole_of, parts)) is not None:
            return buffer
        buffer = (arithmetic.own(whole, whole_of[1]) if whole
                  else arithmetic.zeros(whole_of, parts[0][1] if parts else None))
        for window, g in parts:
            arithmetic.add_window(buffer, window, g)
        return buffer

    def take_leaf(self, leaf: Leaf, holder: list[Any]) -> bool:
        """Make one adjoint of what arrived at a leaf; and whether it is of its window alone, as all came through it.

        Where all are rows whose gradient is to be sparse, and it is deposited, they stay as they are.
        """
        if holder[0].__class__ is not list:
            return False
        pending = holder.pop()
        own = leaf.window
        if pending and getattr(self.deposit, "takes_rows", False) and own is None and _are_rows(pending, leaf.whole[0]):
            holder.append(pending)
            return False
        if own is not None and pending and all(w == own if w.__class__ is int
                                               else w is not None and w[3] is None and w == own for w, _ in pending):
            holder.append(self.arithmetic.total([g for _, g in pending]))
            return True
        holder.append(self.materialize(leaf.whole, pending))
        return False

    def take_alone(self, node: Node, pending: list[tuple[Window | None, Adjoint]]) -> Any:
        """Take what arrived through the written window and nowhere else, without a buffer in which all else is zero."""
        written: Any = node.written
        if written.__class__ is int or written[3] is not None:
            return None
        if not all(w.__class__ is tuple and w[3] is None and w == written for w, _ in pending):  # type: ignore[index]
            return None
        if not pending:
            return self.arithmetic.zeros((written[1], node.whole[1]))
        g = self.arithmetic.total([g for _, g in pending])
        pending.clear()
        return self.arithmetic.cast(g, node.whole[1])

    def hand_down_zeros(self, node: Writer, whole: Whole, written: Window | None, g: Adjoint) -> None:
        """Have the writer before be visited, though nothing is left of the buffer that it would have got."""
        if node not in self.adjoints and (self.reachable is None or node in self.reachable):
            node.whole = whole
            self.adjoints[node] = []
            heappush(self.heap, (node.order, node))

    def hand_down(self, node: Writer, holder: list[Any]) -> None:
        """Give the buffer that a write has taken from, which nobody else can see, to the writer before it."""
        adjoints = self.adjoints
        if self.reachable is not None and node not in self.reachable:
            return
        if node not in adjoints:
            adjoints[node] = holder.pop()
            heappush(self.heap, (node.order, node))
        elif adjoints[node].__class__ is list:
            pending = adjoints[node]
            pending.append((None, holder.pop()))
            adjoints[node] = self.materialize(node.whole, pending)
        else:
            adjoints[node] = self.arithmetic.add(holder, adjoints[node])
            return  # a sum may be a bare number, which cannot be changed in place
        self.owned.add(node)

    def take_written(self, node: Node, holder: list[Any]) -> tuple[Any, Any]:
        """Reverse the write of a part: return what is wanted of it and the inputs left to serve, hand the rest down.

        Of an accumulating write, `x += y`, what x was still counts: there is nothing to clear and nothing to add to x.
        """
        before = node.previous
        adds = accumulates(node)
        inputs = [None, *node[1:]] if adds else node
        if holder[0].__class__ is list:
            g = self.take_alone(node, holder[0])
            if g is not None:
                if before is not None and adds:
                    self.accumulate(before, node.written, g)
                elif before is not None:
                    self.hand_down_zeros(before, node.whole, node.written, g)
                return g if any(k is not None for k in inputs[:-1]) else None, inputs
            holder.append(self.materialize(node.whole, holder.pop()))
        if node not in self.owned:
            holder.append(self.arithmetic.own(holder, node.whole[1]))
        g = None
        if not adds or any(k is not None for k in inputs[:-1]):
            g = self.arithmetic.take(holder[0], node.written, not adds and before is not None)
        if before is not None:
            self.hand_down(before, holder)
        return g, inputs

    def reverse_again(self, node: Node, g: Adjoint, saved: Any, inputs: Sequence[Writer | None], grads: Any) -> Any:
        """Apply the rules once more, where a write on another thread has moved a saved value aside meanwhile.

        That write may have begun while the rule was reading. (User code is not run twice; it is given copies.)
        """
        while node.saved is not saved and node.saved.__class__ is tuple and getattr(node.op, "pure", False):
            saved = node.saved
            grads = node.op.reverse(self.arithmetic.xp, g, saved, inputs)
        return grads


def _is_outside(node: Writer, level: Any) -> bool:
    """Whether a node is older than a level; or a leaf that was made inside, and is the same for all slices."""
    if node.order > level.since:
        return True
    tensor = node.tensor() if node.op is None else None  # type: ignore[union-attr]
    return tensor is not None and level.outlived(tensor._array)


def _leads_out(node: Writer, level: Any) -> bool:
    """Whether what a node wrote is a result of a level, as it is seen outside."""
    return node.op is not None and node.op.name == "leave_slices" and level in node.saved  # type: ignore[union-attr]


class SweepAcross(Sweep):
    """A sweep that may come upon adjoints of another kind of array, such as those of a `vmap` that is over.

    What they are to something older than that `vmap`, and so shared by all its slices, is their sum.
    """

    __slots__ = ()

    def accumulate(self, node: Writer, window: Window | None, g: Adjoint) -> None:
        mine = self.arithmetic.levels(g)
        for level in mine:
            if not level.open and _is_outside(node, level):
                window, g = self.leave(level, window, g)
        for level in left_levels(node.order):
            if level not in mine and not _is_outside(node, level) and not _leads_out(node, level):
                g = self.arithmetic.share(g, level)  # what slices have in common, read outside
        super().accumulate(node, window, g)

    def hand_down_zeros(self, node: Writer, whole: Whole, written: Window | None, g: Adjoint) -> None:
        """The same, with a zero that tells on which device the others are."""
        first = node not in self.adjoints
        super().hand_down_zeros(node, whole, written, g)
        there = device_of(self.arithmetic.array_of(g)) is not None and not self.arithmetic.levels(g)
        if there and first and node in self.adjoints:
            self.adjoints[node].append((written, self.arithmetic.xp.zeros_like(g)))

    def leave(self, level: Any, window: Window | None, g: Adjoint) -> tuple[Window | None, Adjoint]:
        """What an adjoint of a level means outside; where each slice has read in another place, it is added there."""
        index = index_of(window)
        if index is None or not any(level in levels_of(part) for part in index):
            return window, self.arithmetic.leave(g, level)
        offset, shape, strides, picked = window  # type: ignore[misc]
        index, dim = level.index_outside(index)
        whole = offset, shape, strides, As(picked.dtype, index) if picked.__class__ is As else index
        return whole, self.arithmetic.xp.leave_slices(g, dim, level)

    def reverse(self, node: Node, g: Adjoint, inputs: Sequence[Writer | None]) -> Any:
        """Apply the rules as the operation was applied: what they make anew is of the kind of the adjoint."""
        array, kind = self.arithmetic.array_of(g), mode.now.kind
        levels = self.arithmetic.levels(g)
        if is_plain(array) or len(levels) == 1 and levels[0] is kind or not levels and kind is not None:
            return self._reverse(node, g, inputs)
        return call_with({"kind": Like(array)}, self._reverse, node, g, inputs)

    def _reverse(self, node: Node, g: Adjoint, inputs: Sequence[Writer | None]) -> Any:
        try:
            return super().reverse(node, g, inputs)
        except Refused as refusal:
            if self.arithmetic.restore is not None:  # operations on tensors have found another way by themselves
                raise
            return refusal.instead(lambda g, saved: list(node.op.reverse(self.arithmetic.xp, g, saved, inputs)),
                                   g, node.saved)


def _are_rows(pending: list[tuple[Any, Adjoint]], shape: Sequence[int]) -> bool:
    """Whether all that arrived is for rows of a matrix that is to have a sparse gradient."""
    return all(w.__class__ is tuple and w[3].__class__ is Rows and w[1] == shape for w, _ in pending)


def accumulates(node: Node) -> bool:
    """Whether a write adds to what was there, as `x += y` and `x[i] = x[i] + y` do."""
    windows = node.windows
    return (node.op.adds and windows is not None and node[0] is node[-1] is not None
            and (windows[0] is node.written or windows[0].__class__ is int and windows[0] == node.written))


def strong_zeros(node: Node, xp: Any, g: Adjoint, saved: Any, inputs: Sequence[Writer | None], grads: Any) -> Any:
    """Let what nothing depends on have no influence, however steep the function: 0 times infinite or undefined is 0.

    So `where(x > 0, sqrt(x), 0.)` has a finite gradient. Only elementwise operations are looked at, and only when a
    division by zero or something undefined occurred (`fp_error`). Finite values are left alone: a recorded sweep
    differentiates them, and must not find a constant where the adjoint happens to be zero. What a recorded rule has
    computed out of the undefined would be undefined again in the next sweep, so there the rule is applied once more to
    harmless numbers.
    """
    op = node.op
    fp_error.raised.clear()
    wrong = [~xp.isfinite(gx) for gx in grads if gx is not None and gx.shape == g.shape] if op.promotes else []
    if not wrong:
        return grads
    wrong = (g == 0) & reduce(or_, wrong)
    for harmless in (0.5, 1.5) if saved is not node.saved else ():
        kept = [v if v is None or kind in ("setting", "shape") else xp.where(wrong, harmless, v)
                for (kind, _), v in zip(op.saves, saved)]
        grads = op.reverse(xp, g, kept, inputs)
        if not fp_error.raised:
            break
        fp_error.raised.clear()
    return [gx if gx is None or gx.shape != g.shape else xp.where(wrong, xp.zeros_like(gx), gx) for gx in grads]


def _no_nan(node: Node, xp: Any, g: Adjoint, saved: Any, inputs: Sequence[Writer | None], grads: Any) -> Any:
    """Where anomalies are to be detected: the first nan that a rule makes is an error that names the operation."""
    if fp_error.raised and mode.now.strong_zeros:
        grads = strong_zeros(node, xp, g, saved, inputs, grads)
    for i, gx in enumerate(grads):
        array = getattr(gx, "_array", gx)
        if gx is not None and anywhere(array != array):
            raise GradientError(f"detect_anomaly: Function '{node.name()}' returned nan values in its {i}th output",
                                why=f"it is the derivative of {node.op.name} at {describe(node.where)}",
                                fix="look at the values there: a division by zero, or the logarithm or root "
                                    "of a negative number")
    return grads


def already_freed(node: Node) -> GradientError:
    return GradientError(
        f"backward: the values saved by {node.op.name} at {describe(node.where)} are gone",
        why=f"an earlier backward() at {describe(node.saved.where)} freed them",
        fix="Specify retain_graph=True in that earlier backward()",
    )


def reaching(seeds: Iterable[Writer | None], targets: Iterable[Writer]) -> set[Writer]:
    """Return the nodes from which a target can be reached: all that a sweep for these targets must visit."""
    useful = set(targets)
    oldest = max((t.order for t in useful), default=0)
    seen: set[Writer] = set()
    stack = list(seeds)
    while stack:
        node = stack.pop()
        if node is not None and node.order <= oldest and node not in seen:
            seen.add(node)
            stack.extend(node.inputs)
    for node in sorted(seen, key=attrgetter("order"), reverse=True):  # what a node has read is older
        if not useful.isdisjoint(node.inputs):
            useful.add(node)
    return useful

