"""The backward sweep.

A program is a sequence of writes, and the sweep runs it in reverse: it visits nodes newest first (a heap on their order)
and reverses each write by **take, then accumulate**. *Take*: the adjoint of the written window is what the rest of the
program wants from the values written there; the values before had no influence through that window any more, so it is
cleared, and what remains of the buffer, the adjoint of the storage as the write found it, is handed down to the writer
before, without copying. *Accumulate*: the operation's rules turn what was taken into adjoints of its inputs, each added
into the window through which the input was read.

Take `y = x * 2; y[0] = 5; y.sum().backward()`. `sum` gives [1,1,1] to y as `y[0] = 5` left it. That write takes window [0],
leaving [0,1,1], and hands the buffer to `*`, which gives [0,2,2] to x.

Why it is right: an adjoint belongs to a *version* of a storage, and is keyed by the node that wrote the version. Everything
that read a version is newer than its writer, so when a node is popped its adjoint is complete. Why it is linear: a buffer
moves down a chain of writes and is touched only inside windows. Adjoints that arrive through a window before the buffer
does wait in a list (`pending`) and are added when it comes; otherwise each version of a long chain would get a buffer
of its own, as happens in double backward, where newer nodes read older versions.

Who may change an adjoint in place? Only its sole owner: the reference count says so (see `Arithmetic.own`), which spares
every rule from declaring whether its result is fresh.

All state of one backward lives in the call: sweeps nest and run in threads. One that raises has freed what it has visited,
as a finished one has, and leaves nothing else behind.
The same loop runs on raw arrays and, for `create_graph=True`, on tensors, whose operations are recorded in turn: the
backward pass is then one more mutating program. `Arithmetic` is what the two differ in.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from heapq import heappop, heappush
from itertools import repeat
from operator import or_
from sys import getrefcount
from typing import Any

from ..arrays import np, parallel as large
from ..arrays.numpy import add_at, fp_error
from ..base.counters import counters
from ..base.errors import GradientError
from ..base.modes import mode
from ..base.provenance import Where, describe
from .graph import Freed, Hooks, Leaf, Node
from .window import As, Shape, Whole, Window, broadcast_axes, covers, shape_of


class Output:
    """The operation of a node that stands for one of several results; its input is the node that made them all."""

    name = "output"
    frees = False
    adds = False


OUTPUT = Output()
SMALL = 1024
TINY, MANY = 64, 64  # adjoints of so few elements wait until there are so many of them, and are then added in one go


class Arithmetic:
    """What a sweep does to adjoints, on raw arrays. (second_order has the same on tensors.)"""

    xp: Any = None  # the operations by name on raw arrays; set where they are declared

    restore: Callable[[Node], Any] | None = None  # how to make what rules compute with out of `node.saved`, if it is not that
    small: Any = np.ndarray  # of which type small adjoints may simply be added with +

    def reshape(self, g: Any, shape: Shape) -> Any:
        return g.reshape(shape)

    def sum_to(self, g: Any, shape: Shape) -> Any:
        axes, squeeze = broadcast_axes(g.shape, shape)
        if g.dtype.char in "eE":  # in a short type a running sum sticks: 2048 + 1 is 2048, or 256 + 1 is 256
            g = self.xp.sum(g.astype(np.float32), axes, True).astype(g.dtype)
        else:
            g = self.xp.sum(g, axes, True)
        return g.reshape(shape) if squeeze else g

    def zeros(self, whole: Whole) -> Any:
        buffer = np.zeros(*whole)
        counters.allocated += buffer.nbytes
        return buffer

    def own(self, holder: list[Any], dtype: Any) -> Any:
        """The one adjoint in `holder` as a C-contiguous buffer that nobody else can see; copied only if need be."""
        g = holder.pop()
        dtype = dtype or g.dtype
        if getrefcount(g) <= SOLE and g.__class__ is np.ndarray and g.base is None and g.dtype == dtype and g.flags.c_contiguous:
            return g
        counters.allocated += g.nbytes
        return np.array(g.real if g.dtype.kind == "c" and dtype.kind != "c" else g, dtype, order="C")

    def view(self, buffer: Any, window: Any) -> Any:
        offset, shape, strides, index = window
        return np.ndarray(shape, index.dtype if index.__class__ is As else buffer.dtype, buffer, offset, strides)

    def take(self, buffer: Any, window: Any, clear: bool) -> Any:
        """What stands in the window (a copy), which is cleared if asked."""
        if window.__class__ is int:  # one element: far cheaper by number than by window
            flat, item = buffer.reshape(-1), buffer.itemsize
            g = flat[window // item]
            if clear:
                flat[window // item] = 0
            counters.touched += item
            return g
        view, index = self.view(buffer, window), window[3]
        if index.__class__ is As:
            index = index.index
        g = view.copy() if index is None else view[index]
        if clear:
            view[... if index is None else index] = 0
        counters.touched += g.nbytes
        return g

    def add_window(self, buffer: Any, window: Any, g: Any) -> None:
        if window.__class__ is int:
            item = buffer.itemsize
            flat = buffer if buffer.ndim == 1 else buffer.reshape(-1)
            flat[window // item] += g
            counters.touched += item
            return
        counters.touched += g.nbytes
        view, index = self.view(buffer, window), window[3]
        if index.__class__ is As:
            index = index.index
        if index is None:
            np.add(view, g, view)
        else:
            add_at(view, index, g)

    def add(self, holder: list[Any], g: Any) -> Any:
        """Their sum, in the memory of the one in `holder` where nobody else can see that."""
        a = holder.pop()
        if a.size > SMALL and getrefcount(a) <= SOLE and a.base is None and a.dtype == g.dtype and a.flags.writeable:
            return a if a.size >= large.LARGE and large.apply(np.add, (a, g), (), a) else np.add(a, g, a)
        return a + g

    def total(self, gs: list[Any]) -> Any:
        """Their sum; of many small ones in one go."""
        if len(gs) > 8 and gs[0].__class__ is self.small and gs[0].size <= TINY:
            return np.add.reduce(gs, 0)
        while len(gs) > 1:
            gs.append(self.add([gs.pop()], gs.pop()))
        return gs.pop()

    def call_hooks(self, hooks: Hooks, g: Any) -> tuple[Any, bool]:
        """The adjoint, which is the sweep's own, after the hooks have seen it, and whether it still is."""
        raise AssertionError("autograd gives this")


def _references_to_sole() -> int:
    holder = [np.zeros(1)]
    a = holder.pop()
    return getrefcount(a)


# How many references an array has where `a` in the methods above is the only name for it: measured, because interpreters
# differ. It is asked there and not in a function of its own, since how a call counts its arguments can change while a
# program runs, by a debugger for example.
SOLE = _references_to_sole()


class Sweep:
    """The adjoints of one backward pass, and the nodes that wait to be visited.

    `adjoints` holds for a node a buffer; or a list of what arrived through windows, pending; or, for a node with several
    outputs, {number: adjoint}. `mine` are the nodes whose buffer nobody else can see. `useful`, if given, holds the only
    nodes worth visiting; `wanted` and `edge` are those whose adjoint somebody asked for.
    """

    __slots__ = ("arithmetic", "adjoints", "mine", "heap", "useful", "wanted", "edge")

    def __init__(self, arithmetic: Arithmetic, useful: set[Any] | None, wanted: dict[Any, Any], edge: dict[Any, Any]) -> None:
        self.arithmetic, self.useful, self.wanted, self.edge = arithmetic, useful, wanted, edge
        self.adjoints: dict[Any, Any] = {}
        self.mine: set[Any] = set()
        self.heap: list[tuple[int, Any]] = []

    def show(self, node: Any, holder: list[Any]) -> Any:
        """Runs hooks and capture callbacks on the one adjoint in `holder`; returns it, or None where the sweep goes no further."""
        if node in self.edge:
            self.edge[node](holder.pop())
            return None
        if node.hooks:
            g = holder.pop() if node in self.mine or holder[0].__class__ is dict else self.arithmetic.own(holder, None)
            g, mine = self.arithmetic.call_hooks(node.hooks, g)
            if mine:
                self.mine.add(node)
            else:
                self.mine.discard(node)
        else:
            g = holder.pop()
        if node in self.wanted:
            self.wanted[node](g)
            if self.useful is not None and not any(before in self.useful for before in node.inputs):
                return None  # what lies beyond is of no interest, and may be gone
        return g

    def accumulate(self, node: Any, window: Window | None, g: Any) -> None:
        """Adds g to the adjoint of what `node` wrote."""
        adjoints, arithmetic = self.adjoints, self.arithmetic
        if self.useful is not None and node not in self.useful:
            return
        if window is not None:
            shape = shape_of(window)
            if shape is not None and g.shape != shape:
                g = arithmetic.sum_to(g, shape)
            if node in self.mine:
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
            self.mine.discard(node)
        else:
            adjoints[node] = arithmetic.own([adjoints.pop(node)], node.whole[1])
            self.mine.add(node)
            arithmetic.add_window(adjoints[node], window, g)

    def settle(self, whole_of: Whole, pending: list[tuple[Window | None, Any]]) -> Any:
        """One buffer out of all that arrived: whole (accumulated or handed down) or through windows."""
        arithmetic = self.arithmetic
        whole = [g for window, g in pending if window is None]
        parts = [(window, g) for window, g in pending if window is not None]
        pending.clear()
        if len(whole) > 1:
            whole = [arithmetic.total(whole)]
        if whole_of[1] is None:  # nobody has looked at a part: there are none, and nobody will add to one
            return whole.pop()
        buffer = arithmetic.own(whole, whole_of[1]) if whole else arithmetic.zeros(whole_of)
        for window, g in parts:
            arithmetic.add_window(buffer, window, g)
        return buffer

    def take_leaf(self, leaf: Leaf, holder: list[Any]) -> bool:
        """Makes one adjoint of what arrived at a leaf; and whether it is of its window alone, because all came through that."""
        if holder[0].__class__ is not list:
            return False
        pending = holder.pop()
        own = leaf.window
        if own is not None and all(w == own if w.__class__ is int else w is not None and w[3] is None and w == own for w, _ in pending):
            holder.append(self.arithmetic.total([g for _, g in pending]))
            return True
        holder.append(self.settle(leaf.whole, pending))
        return False

    def hand_down(self, node: Any, holder: list[Any]) -> None:
        """The buffer that a write has taken from, which nobody else can see, goes to the writer before it."""
        adjoints = self.adjoints
        if self.useful is not None and node not in self.useful:
            return
        if node not in adjoints:
            adjoints[node] = holder.pop()
            heappush(self.heap, (node.order, node))
        elif adjoints[node].__class__ is list:
            pending = adjoints[node]
            pending.append((None, holder.pop()))
            adjoints[node] = self.settle(node.whole, pending)
        else:
            adjoints[node] = self.arithmetic.add(holder, adjoints[node])
            return  # a sum may be a bare number, which cannot be changed in place
        self.mine.add(node)

    def reverse_elements(self, node: Node, holder: list[Any], freed: Freed | None) -> int:
        """Reverses writes of single elements of one storage, one after the other, for as long as nothing else is due.

        Loops over elements are made of these: the same as the sweep does, on the one buffer that they hand down; and how many.
        """
        adjoints, heap, xp, accumulate = self.adjoints, self.heap, self.arithmetic.xp, self.accumulate
        if node not in self.mine:
            holder.append(self.arithmetic.own(holder, node.whole[1]))
        buffer = holder[0]
        flat, item, alarm = buffer.reshape(-1), buffer.itemsize, fp_error.raised if mode.now.strong_zeros else ()
        count = touched = 0
        while True:
            op, windows, saved, before, place = node.op, node.windows, node.saved, node[-1], node.written // item  # type: ignore[operator]
            if saved.__class__ is Freed:
                raise already_freed(node)
            g = flat[place]
            inputs: Any = node
            if accumulates(node):
                inputs = (None, *node[1:])
            elif before is not None:
                flat[place] = 0
            grads = op.reverse(xp, g, saved, inputs)
            if alarm:
                grads = strong_zeros(node, xp, g, saved, inputs, grads)
            for writer, window, gx in zip(inputs, windows or repeat(None), grads):
                if gx is not None:
                    if writer is before and window.__class__ is int:
                        flat[window // item] += gx
                        touched += item
                    else:
                        accumulate(writer, window, gx)
            if freed is not None and op.frees:
                node.saved = freed
            count += 1
            if (before.__class__ is not Node or before.written.__class__ is not int or before.hooks is not None or before.op is OUTPUT
                    or before in adjoints or heap and heap[0][0] < before.order):
                break
            node = before
        counters.touched += touched + item * count
        if before is not None:
            del buffer, flat
            self.hand_down(before, holder)
        return count

    def reverse_again(self, node: Node, g: Any, saved: Any, inputs: Any, grads: Any) -> Any:
        """The adjoints of the inputs once more, where a write on another thread has moved a saved value aside meanwhile.

        That write may have begun while the rule was reading. (User code is not run twice; it is given copies.)
        """
        while node.saved is not saved and node.saved.__class__ is tuple and getattr(node.op, "pure", False):
            saved = node.saved
            grads = node.op.reverse(self.arithmetic.xp, g, saved, inputs)
        return grads

    def take_written(self, node: Node, holder: list[Any]) -> tuple[Any, Any]:
        """Reverses the write of a part: takes what is wanted of it, hands the rest down; and the inputs left to serve.

        Of an accumulating write, `x += y`, what x was still counts: there is nothing to clear and nothing to add to x.
        """
        before = node[-1]
        adds = accumulates(node)
        inputs = [None, *node[1:]] if adds else node
        if node not in self.mine:
            holder.append(self.arithmetic.own(holder, node.whole[1]))
        g = None
        if not adds or any(k is not None for k in inputs[:-1]):
            g = self.arithmetic.take(holder[0], node.written, not adds and before is not None)
        if before is not None:
            self.hand_down(before, holder)
        return g, inputs


def accumulates(node: Node) -> bool:
    """Whether a write adds to what was there, as `x += y` and `x[i] = x[i] + y` do."""
    windows = node.windows
    return (node.op.adds and windows is not None and node[0] is node[-1] is not None
            and (windows[0] is node.written or windows[0].__class__ is int and windows[0] == node.written))


def sweep(seeds: list[tuple[Any, Window | None, Any]], arithmetic: Arithmetic, *, where: Where, retain: bool,
          deposit: Callable[[Leaf, list[Any], bool], None] | None, wanted: dict[Any, Callable[[Any], None]], useful: set[Any] | None,
          edge: dict[Any, Callable[[Any], None]] | None = None) -> None:
    """Runs backwards from `seeds`, each a writer, a window and an adjoint.

    Leaves get their adjoint by `deposit`, and whoever else is `wanted` by a callback. At an `edge` the sweep ends: its hooks and
    what lies beyond are for another one.
    """
    state = Sweep(arithmetic, useful, wanted, edge or {})
    adjoints, mine, heap, accumulate = state.adjoints, state.mine, state.heap, state.accumulate
    xp, restore, small = arithmetic.xp, arithmetic.restore, arithmetic.small
    freed, nodes = Freed(where), 0
    now = mode.now
    anomaly = now.anomaly and now.anomaly_checks_nan
    alarm, look = ([True], _no_nan) if anomaly else (fp_error.raised if now.strong_zeros else (), strong_zeros)
    asked = bool(wanted or edge)
    elements = restore is None and useful is None and not asked and not anomaly
    fp_error.raised.clear()
    g = gx = grads = found = None  # type: Any
    while seeds:
        accumulate(*seeds.pop())
    newest = its = None  # type: Any  # of those waiting, one that is on hand with its adjoint: in a chain it comes next
    while heap or newest is not None:
        if newest is not None and (not heap or newest.order < heap[0][0]):
            node, g, newest, its = newest, its, None, None
        else:
            if newest is not None:
                adjoints[newest] = its
                heappush(heap, (newest.order, newest))
                newest = its = None
            node = heappop(heap)[1]
            g = adjoints.pop(node)
        nodes += 1
        if g.__class__ is list and (node.op is not None or node.hooks is not None or asked):
            g = state.settle(node.whole, g)
        if node.hooks is not None or asked:
            holder, g = [g], None
            g = state.show(node, holder)
            if g is None:
                continue
        op = node.op
        if op is None:
            holder, g = [g], None
            if deposit is not None:
                deposit(node, holder, state.take_leaf(node, holder))
            continue
        inputs, windows = node, node.windows
        if node.written is not None:
            holder, g = [g], None
            if elements and node.written.__class__ is int and op is not OUTPUT:
                nodes += state.reverse_elements(node, holder, None if retain else freed) - 1
                continue
            g, inputs = state.take_written(node, holder)
            if g is None:
                continue
        if op is OUTPUT:
            if inputs[0] not in adjoints:
                adjoints[inputs[0]] = {}
                heappush(heap, (inputs[0].order, inputs[0]))
            adjoints[inputs[0]][node.saved] = g
            continue
        saved = node.saved
        if saved.__class__ is Freed:
            raise already_freed(node)
        if restore is not None:
            saved = restore(node)
        grads = op.reverse(xp, g, saved, inputs)
        if node.saved is not saved and restore is None:
            grads = state.reverse_again(node, g, saved, inputs, grads)
        if alarm:
            grads = look(node, xp, g, saved, inputs, grads)
        if windows is not None or useful is not None:
            for before, window, gx in zip(inputs, windows or repeat(None), grads):
                if gx is not None:
                    accumulate(before, window, gx)
        else:  # the plainest case, of most nodes of most programs: no calls
            for before, gx in zip(inputs, grads):
                if gx is not None:
                    if before is newest:
                        its = arithmetic.add([its], gx)
                        continue
                    found = adjoints.get(before)
                    if found is None:
                        if newest is None:
                            newest, its = before, gx
                        else:
                            adjoints[before] = gx
                            heappush(heap, (before.order, before))
                    elif found.__class__ is list:
                        found.append((None, gx))
                        if len(found) == MANY:
                            adjoints[before] = state.settle(before.whole, found)
                    elif found.__class__ is small and found.size <= SMALL:
                        adjoints[before] = found + gx if found.size > TINY or before in mine else [(None, found), (None, gx)]
                        if mine:
                            mine.discard(before)
                    else:
                        found = None
                        accumulate(before, None, gx)
        gx = grads = found = saved = None  # or the newest adjoint would seem to have another owner
        if not retain and op.frees:
            node.saved = freed
    counters.nodes += nodes


def strong_zeros(node: Any, xp: Any, g: Any, saved: Any, inputs: Any, grads: Any) -> Any:
    """What nothing depends on has no influence, however steep the function is there: 0 times infinite or undefined is 0.

    So `where(x > 0, sqrt(x), 0.)` has a finite gradient. Only elementwise operations are looked at, and only when a
    division by zero or something undefined occurred (`fp_error`). Finite values are left alone: a recorded sweep differentiates
    them, and must not find a constant where the adjoint happens to be zero. What a recorded rule has computed out of the
    undefined would be undefined again in the next sweep, so there the rule is applied once more to harmless numbers.
    """
    op = node.op
    fp_error.raised.clear()
    wrong = [~xp.isfinite(gx) for gx in grads if gx is not None and gx.shape == g.shape] if op.promotes else []
    if not wrong:
        return grads
    wrong = (g == 0) & reduce(or_, wrong)
    for harmless in (0.5, 1.5) if saved is not node.saved else ():
        kept = [v if v is None or kind in ("setting", "shape") else xp.where(wrong, harmless, v) for (kind, _), v in zip(op.saves, saved)]
        grads = op.reverse(xp, g, kept, inputs)
        if not fp_error.raised:
            break
        fp_error.raised.clear()
    return [gx if gx is None or gx.shape != g.shape else xp.where(wrong, xp.zeros_like(gx), gx) for gx in grads]


def _no_nan(node: Any, xp: Any, g: Any, saved: Any, inputs: Any, grads: Any) -> Any:
    """Where anomalies are to be detected: the first nan that a rule makes is an error that names the operation."""
    if fp_error.raised and mode.now.strong_zeros:
        grads = strong_zeros(node, xp, g, saved, inputs, grads)
    for i, gx in enumerate(grads):
        if gx is not None and not bool((gx == gx).all()):
            raise GradientError(f"detect_anomaly: Function '{node.name()}' returned nan values in its {i}th output",
                                why=f"it is the derivative of {node.op.name} at {describe(node.where)}",
                                fix="look at the values there: a division by zero, or the logarithm or root of a negative number")
    return grads


def already_freed(node: Node) -> GradientError:
    return GradientError(
        f"backward: the values saved by {node.op.name} at {describe(node.where)} are gone",
        why=f"an earlier backward() at {describe(node.saved.where)} freed them",
        fix="Specify retain_graph=True in that earlier backward()",
    )


def reaching(seeds: Iterable[Any], targets: Iterable[Any]) -> set[Any]:
    """The nodes from which a target can be reached: all that a sweep for these targets must visit."""
    useful = set(targets)
    oldest = max((t.order for t in useful), default=0)
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(node, False) for node in seeds]
    while stack:
        node, done = stack.pop()
        if done:
            if node not in useful and any(p in useful for p in node.inputs):
                useful.add(node)
        elif node is not None and node not in seen and node.order <= oldest:
            seen.add(node)
            stack.append((node, True))
            stack.extend((p, False) for p in node.inputs)
    return useful
