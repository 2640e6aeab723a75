"""Boxes by which threads hand each other shares of work: see workers.py.

Like rows.py, this is for Numba to read.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

# The words of a box. The first is its state: nothing to do, being written, to be done, begun, done.
FREE, TAKEN, POSTED, BEGUN, DONE = range(5)
AWAKE, FUNCTION, START, STOP, GIVEN, FOUND = 8, 16, 24, 32, 40, 48
SIZE = 128  # bytes, so that no two are in one line of the cache
PATIENCE = 2000  # looks at a box before others are let run


def serve(box, spins):
    """Do what is posted in a box, until there has been nothing for a while."""
    idle = 0
    while True:
        if load_word(box) == POSTED and exchange_word(box, POSTED, BEGUN):
            store_word(box + FOUND, call_kernel(load_word(box + FUNCTION), load_word(box + START),
                                                load_word(box + STOP), load_word(box + GIVEN)))
            store_word(box, DONE)
            idle = 0
        idle += 1
        if idle % PATIENCE == 0:  # a thread of BLAS's may wait for this core
            let_others_run()
        if idle >= spins:
            store_word(box + AWAKE, 0)
            if load_word(box) != POSTED:
                return
            store_word(box + AWAKE, 1)
            idle = 0


def share(boxes, function, given, bounds):
    """Have a kernel called for all items between bounds, by whoever is free, and by the caller."""
    at = given.ctypes.data
    busy = 0
    for k in range(1, bounds.size - 1):
        box = boxes + (k - 1) * SIZE
        if exchange_word(box, FREE, TAKEN):
            store_word(box + FUNCTION, function)
            store_word(box + START, bounds[k])
            store_word(box + STOP, bounds[k + 1])
            store_word(box + GIVEN, at)
            store_word(box, POSTED)
        else:
            busy |= 1 << k
    found = call_kernel(function, bounds[0], bounds[1], at)
    for k in range(1, bounds.size - 1):
        box = boxes + (k - 1) * SIZE
        if busy >> k & 1 or exchange_word(box, POSTED, FREE):
            found |= call_kernel(function, bounds[k], bounds[k + 1], at)
        else:
            spins = 0
            while load_word(box) != DONE:
                spins += 1
                if spins > PATIENCE:
                    let_others_run()
            found |= load_word(box + FOUND)
            store_word(box, FREE)
    return found


def run(function, start, stop, given):
    """Call a kernel."""
    return call_kernel(function, start, stop, given.ctypes.data)
