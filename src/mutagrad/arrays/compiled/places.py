"""Elements that are read, written and added to by position.

Compiled as those of rows.py are. Where elements are only moved, a kernel for float32 or float64 serves all types of
their size. There are no checks here: positions have been checked before, and `checked` is what does that. Of positions
that occur twice the order counts, so whoever calls these shares out what cannot meet.
"""
# mypy: ignore-errors
from __future__ import annotations


def checked(start, stop, part, size, least, places, wrong):
    """Positions, of which negative ones count from the end; `wrong` tells whether one is out of range."""
    bad = False
    for k in range(start, stop):
        p = part[k]
        bad |= (p < least) | (p >= size)
        places[k] = p + size if p < 0 else p
    if bad:
        wrong[0] = True


def beside(start, stop, index, size, places, wrong):
    """Positions in a vector of what `index` picks along the second of three dimensions: rows, or rows of columns."""
    m, inner = index.shape[1], index.shape[2]
    bad = False
    if inner == 1:
        for o in range(start, stop):
            row, found = index[o, :, 0], places[o, :, 0]
            first = o * size
            for k in range(m):
                p = row[k]
                bad |= (p < 0) | (p >= size)
                found[k] = first + p
    else:
        for item in range(start, stop):
            o, k = item // m, item % m
            row, found = index[o, k], places[o, k]
            first = o * size * inner
            for i in range(inner):
                p = row[i]
                bad |= (p < 0) | (p >= size)
                found[i] = first + p * inner + i
    if bad:
        wrong[0] = True


def bounds(start, stop, places, found):
    low, high = places[start], places[start]
    for k in range(start, stop):
        low, high = min(low, places[k]), max(high, places[k])
    found[0], found[1] = low, high


def take(start, stop, x, places, out):
    for k in range(start, stop):
        out[k] = x[places[k]]


def take_slices(start, stop, x, rows, out):
    """Slices along the second of three dimensions; `start` and `stop` count rows of the result, or matrices of one."""
    m, inner = out.shape[1], out.shape[2]
    if inner == 1:
        for o in range(start, stop):
            row, found = x[o, :, 0], out[o, :, 0]
            for k in range(m):
                found[k] = row[rows[k]]
    else:
        for item in range(start, stop):
            o, k = item // m, item % m
            row, found = x[o, rows[k]], out[o, k]
            for i in range(inner):
                found[i] = row[i]


def put(start, stop, x, places, values):
    for k in range(start, stop):
        x[places[k]] = values[k]


def add(start, stop, x, places, values):
    for k in range(start, stop):
        x[places[k]] += values[k]


def add_slices(start, stop, x, rows, values):
    """Slices along the second of three dimensions; `start` and `stop` count the first, or columns if that is one."""
    m, inner = values.shape[1], values.shape[2]
    if x.shape[0] == 1:
        for k in range(m):
            row, more = x[0, rows[k], start:stop], values[0, k, start:stop]
            for i in range(row.size):
                row[i] += more[i]
    elif inner == 1:
        for o in range(start, stop):
            row, more = x[o, :, 0], values[o, :, 0]
            for k in range(m):
                row[rows[k]] += more[k]
    else:
        for o in range(start, stop):
            for k in range(m):
                row, more = x[o, rows[k]], values[o, k]
                for i in range(inner):
                    row[i] += more[i]


def multiply(start, stop, x, places, values):
    for k in range(start, stop):
        x[places[k]] *= values[k]


def extreme(start, stop, x, places, values, least):
    """The largest (or smallest) of what goes to one place; nan where one of them is."""
    for k in range(start, stop):
        v, p = values[k], places[k]
        if (v < x[p] if least else v > x[p]) or v != v:
            x[p] = v
