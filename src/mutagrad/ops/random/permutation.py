"""Exchanging each item with a random one of those that follow it, for all items at once.

The loop is `for i, step in enumerate(steps): a[i], a[i + step] = a[i + step], a[i]`. It leaves at i what stood at the
place `i + step` before. If an earlier item was put there, it was the one that stood at the last i that had exchanged
with that place, and so on back to an item that had not moved. All these chains are followed together, each step twice
as far as the one before.
"""
from __future__ import annotations

from typing import Any

from ...arrays.kinds import raw as np

FEW = 1500  # items for which the loop is quicker


def permuted(steps: Any) -> Any:
    """The numbers from 0 to `len(steps)` after these exchanges."""
    return _in_turn(steps.tolist()) if len(steps) < FEW else _together(steps)


def _in_turn(steps: list[int]) -> Any:
    order = list(range(len(steps) + 1))
    for i, step in enumerate(steps):
        if step:
            order[i], order[i + step] = order[i + step], order[i]
    return np.array(order, np.int64)


def _together(steps: Any) -> Any:
    count = len(steps) + 1
    place = np.arange(count)
    target = place.copy()
    target[:-1] += steps
    # Exchanges by the place that they take from, and for each place in their order.
    bits = count.bit_length()
    found = np.sort(target << bits | place)
    turn, taken = found & (1 << bits) - 1, found >> bits
    again = taken[1:] == taken[:-1]
    before = np.full(count, -1)  # the exchange before that took from the same place
    before[turn[1:]] = _either(again, turn[:-1], -1)
    last = np.full(count, -1)  # the exchange that put something at i, before i's own turn
    last[taken] = turn  # of several the latest, which comes last
    last = _either(last == place, before, last)
    stands = _either(last < 0, place, last)  # from where what stands at i in its turn came there
    while True:
        further = stands.take(stands)
        if np.array_equal(further, stands):
            break
        stands = further
    return _either(before < 0, target, stands[before])


def _either(condition: Any, a: Any, b: Any) -> Any:
    """As np.where, which guesses for each element."""
    return b ^ ((a ^ b) & -condition.astype(np.int64))
