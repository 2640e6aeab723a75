"""The sweep without its calls: the steps of `Sweep.run`, written into one loop for the nodes of most programs.

What it adds are shortcuts, each measured. The newest of the nodes that wait is kept at hand with its adjoint, since in
a chain of operations it comes next and need not go through the heap. Adjoints of few elements that meet wait in a list
and are added in one go. Writes of single elements, of which loops are made, are reversed one after the other on the one
buffer that they hand down.
"""
from __future__ import annotations

from heapq import heappop, heappush
from itertools import repeat
from typing import Any

from ..arrays import np
from ..arrays.numpy import fp_error
from ..base.counters import counters
from ..base.modes import mode
from .arithmetic import SMALL, TINY
from .graph import Adjoint, Freed, Node, Writer
from .sweep import OUTPUT, Sweep, _no_nan, accumulates, already_freed, strong_zeros
from .window import Window

add = np.add
MANY = 64  # tiny adjoints that wait at most


class FastSweep(Sweep):
    """What runs. `Sweep` says what it computes."""

    __slots__ = ()

    # As long as it is because a call costs as much as an operation.
    def run(self, seeds: list[tuple[Writer, Window | None, Adjoint]]) -> None:
        arithmetic, adjoints, owned = self.arithmetic, self.adjoints, self.owned
        heap, accumulate, keep = self.heap, self.accumulate, self.keep
        xp, restore, small, reachable = arithmetic.xp, arithmetic.restore, arithmetic.small, self.reachable
        retain, freed, deposit, nodes, touched = self.retain, self.freed, self.deposit, 0, 0
        wrong, look = ([True], _no_nan) if self.anomaly else (self.fp_error, strong_zeros)
        watched = self.captures.keys() | self.stop_at.keys()
        elements = restore is None and not self.anomaly
        g = gx = grads = found = None  # type: Any
        while seeds:
            accumulate(*seeds.pop())
        # Of those waiting, one that is at hand with its adjoint: in a chain it comes next.
        newest = next_adjoint = None  # type: Any
        while heap or newest is not None:
            if newest is not None and (not heap or newest.order < heap[0][0]):
                node, g, newest, next_adjoint = newest, next_adjoint, None, None
            else:
                if newest is not None:
                    adjoints[newest] = next_adjoint
                    heappush(heap, (newest.order, newest))
                    newest = next_adjoint = None
                node = heappop(heap)[1]
                g = adjoints.pop(node)
            nodes += 1
            met = node.hooks is not None or node in watched  # by somebody who has to see its adjoint
            if g.__class__ is list and (met or node.op is not None and node.written is None):
                g = self.materialize(node.whole, g)
            if met:
                holder, g = [g], None
                g = self.run_hooks(node, holder)
                if g is None:
                    continue
            op = node.op
            if op is None:
                holder, g = [g], None
                if deposit is not None:
                    deposit(node, holder, self.take_leaf(node, holder))
                continue
            inputs, windows = node, node.windows
            if node.written is not None:
                holder, g = [g], None
                if elements and node.written.__class__ is int and op is not OUTPUT:
                    nodes += self.reverse_elements(node, holder, None if retain else freed, watched) - 1
                    continue
                g, inputs = self.take_written(node, holder)
                if g is None:
                    continue
            if op is OUTPUT:
                self.collect(node, g)
                continue
            saved = node.saved
            if saved.__class__ is Freed:
                raise already_freed(node)
            if restore is not None:
                saved = restore(node)
            grads = op.reverse(xp, g, saved, inputs)
            if node.saved is not saved and restore is None:
                grads = self.reverse_again(node, g, saved, inputs, grads)
            if wrong:
                grads = look(node, xp, g, saved, inputs, grads)
            if windows is not None:
                for before, window, gx in zip(inputs, windows, grads):
                    if gx is None:
                        continue
                    if before in owned and window.__class__ is tuple and gx.__class__ is small:
                        found = adjoints[before]
                        if (gx.shape == window[1] and window[3] is None and gx.size <= SMALL
                                and found.__class__ is small):  # add_window, without the calls
                            part = small(window[1], found.dtype, found, window[0], window[2])
                            add(part, gx, part)
                            touched += gx.nbytes
                            continue
                    accumulate(before, window, gx)
            else:  # the plainest case, of most nodes of most programs: no calls
                for before, gx in zip(inputs, grads):
                    if gx is not None and (reachable is None or before in reachable):
                        if before is newest:
                            next_adjoint = arithmetic.add([next_adjoint], gx)
                            continue
                        found = adjoints.get(before)
                        if found is None:
                            if newest is None:
                                newest, next_adjoint = before, gx
                            else:
                                adjoints[before] = gx
                                heappush(heap, (before.order, before))
                        elif found.__class__ is list:
                            found.append((None, gx))
                            if len(found) == MANY:
                                adjoints[before] = self.materialize(before.whole, found)
                        elif found.__class__ is small and found.size <= SMALL:
                            adjoints[before] = (found + gx if found.size > TINY or before in owned
                                                else [(None, found), (None, gx)])
                            if owned:
                                owned.discard(before)
                        else:
                            found = None
                            accumulate(before, None, gx)
            gx = grads = found = saved = None  # or the newest adjoint would seem to have another owner
            if not retain and op.frees:
                keep(node.saved)
                node.saved = freed
        counters.nodes += nodes
        counters.touched += touched

    def reverse_elements(self, node: Node, holder: list[Any], freed: Freed | None, watched: set[Writer]) -> int:
        """Reverse writes of single elements of one storage, one after the other, while nothing else is due.

        Loops over elements are made of these: the same as the sweep does, on the one buffer that they hand down. It
        ends before one that is `watched`, whose adjoint somebody has to see. Return how many there were.
        """
        adjoints, heap, xp, accumulate, keep = self.adjoints, self.heap, self.arithmetic.xp, self.accumulate, self.keep
        reachable = self.reachable
        if holder[0].__class__ is list:
            holder.append(self.materialize(node.whole, holder.pop()))
        if node not in self.owned:
            holder.append(self.arithmetic.own(holder, node.whole[1]))
        buffer = holder[0]
        flat, item, alarm = buffer.reshape(-1), buffer.itemsize, fp_error.raised if mode.now.strong_zeros else ()
        count = touched = 0
        while True:
            op, windows, saved = node.op, node.windows, node.saved
            before, place = node[-1], node.written // item  # type: ignore[operator]
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
                keep(saved)
                node.saved = freed
            count += 1
            if (before.__class__ is not Node or before.written.__class__ is not int or before.hooks is not None
                    or before.op is OUTPUT or before in adjoints or heap and heap[0][0] < before.order
                    or before in watched or reachable is not None and before not in reachable):
                break
            node = before
        counters.touched += touched + item * count
        if before is not None:
            del buffer, flat
            self.hand_down(before, holder)
        return count

