"""Elements that are read, written and added to by position.

Compiled as those of rows.py are. Where elements are only moved, a kernel for float32 or float64 serves all types of
their size. There are no checks here: positions have been checked before, and `checked` is what does that. Of positions
that occur twice the order counts, so whoever calls these shares out what cannot meet: with `cuts`, `start` and `stop`
count parts of the positions, which begin and end there.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def checked(start, stop, part, size, least, places, wrong):
    """Positions, of which negative ones count from the end; `wrong` tells whether one is out of range."""
    given, found = part[start:stop], places[start:stop]
    low, high = np.int64(0), np.int64(0)
    for k in range(given.size):
        p = given[k]
        low, high = min(low, p), max(high, p)
        found[k] = p + size if p < 0 else p
    if low < least or high >= size:
        wrong[0] = True


def beside_rows(start, stop, index, size, places, wrong):
    """Positions in a vector of what `index` picks along the rows of a matrix."""
    low, high = np.int64(0), np.int64(0)
    for r in range(start, stop):
        row, found = index[r], places[r]
        first = r * size
        for k in range(row.size):
            p = row[k]
            low, high = min(low, p), max(high, p)
            found[k] = first + p
    if low < 0 or high >= size:
        wrong[0] = True


def take_beside(start, stop, x, index, places, wrong, out):
    """The same, and the elements of the matrix that are there."""
    size = x.shape[1]
    for r in range(start, stop):
        row, given, at, found = x[r], index[r], places[r], out[r]
        low, high, first = np.int64(0), np.int64(0), r * size
        for k in range(given.size):
            p = given[k]
            low, high = min(low, p), max(high, p)
            at[k] = first + p
        if low < 0 or high >= size:
            wrong[0] = True
            return
        for k in range(given.size):
            found[k] = row[np.uint64(given[k])]


def beside(start, stop, index, size, places, wrong):
    """The same along the second of three dimensions; `start` and `stop` count rows of what is picked."""
    m, inner = index.shape[1], index.shape[2]
    low, high = np.int64(0), np.int64(0)
    for item in range(start, stop):
        o, k = item // m, item % m
        row, found = index[o, k], places[o, k]
        first = o * size * inner
        for i in range(inner):
            p = row[i]
            low, high = min(low, p), max(high, p)
            found[i] = first + p * inner + i
    if low < 0 or high >= size:
        wrong[0] = True


def bounds(start, stop, cuts, width, places, found):
    """The first and the last position in each part of rows that are so wide."""
    for p in range(start, stop):
        given = places[cuts[p] * width:cuts[p + 1] * width]
        low, high = given[0], given[0]
        for k in range(given.size):
            low, high = min(low, given[k]), max(high, given[k])
        found[p, 0], found[p, 1] = low, high


def take(start, stop, x, places, out):
    given, found = places[start:stop], out[start:stop]
    for k in range(given.size):
        found[k] = x[np.uint64(given[k])]


def take_columns(start, stop, x, columns, out):
    for r in range(start, stop):
        row, found = x[r], out[r]
        for k in range(columns.size):
            found[k] = row[np.uint64(columns[k])]


def take_slices(start, stop, x, rows, out):
    """Slices along the second of three dimensions; `start` and `stop` count rows of the result."""
    m, inner = out.shape[1], out.shape[2]
    for item in range(start, stop):
        o, k = item // m, item % m
        row, found = x[o, rows[k]], out[o, k]
        for i in range(inner):
            found[i] = row[i]


def put(start, stop, cuts, x, places, values):
    given, new = places[cuts[start]:cuts[stop]], values[cuts[start]:cuts[stop]]
    for k in range(given.size):
        x[np.uint64(given[k])] = new[k]


def add(start, stop, cuts, x, places, values):
    given, more = places[cuts[start]:cuts[stop]], values[cuts[start]:cuts[stop]]
    for k in range(given.size):
        x[np.uint64(given[k])] += more[k]


def add_columns(start, stop, x, columns, values):
    for r in range(start, stop):
        row, more = x[r], values[r]
        for k in range(columns.size):
            row[np.uint64(columns[k])] += more[k]


def add_slices(start, stop, x, rows, values):
    """Slices along the second of three dimensions; `start` and `stop` count the first, or columns if that is one."""
    first, end = (0, x.shape[0]) if x.shape[0] == 1 else (start, stop)
    left, right = (start, stop) if x.shape[0] == 1 else (0, x.shape[2])
    for o in range(first, end):
        for k in range(rows.size):
            row, more = x[o, rows[k], left:right], values[o, k, left:right]
            for i in range(row.size):
                row[i] += more[i]


def add_bags(start, stop, x, rows, ends, out):
    """The sums of rows in bags, each of which begins where the one before ends."""
    for b in range(start, stop):
        found = out[b]
        for i in range(found.size):
            found[i] = 0
        k = ends[b - 1] if b else 0
        while k + 3 < ends[b]:  # several at a time: then sums are read and written less often
            first, second, third, fourth = x[rows[k]], x[rows[k + 1]], x[rows[k + 2]], x[rows[k + 3]]
            for i in range(found.size):
                found[i] += (first[i] + second[i]) + (third[i] + fourth[i])
            k += 4
        while k < ends[b]:
            row = x[rows[k]]
            for i in range(found.size):
                found[i] += row[i]
            k += 1


def multiply(start, stop, cuts, x, places, values):
    given, more = places[cuts[start]:cuts[stop]], values[cuts[start]:cuts[stop]]
    for k in range(given.size):
        x[np.uint64(given[k])] *= more[k]


def extreme(start, stop, cuts, x, places, values, least):
    """The largest (or smallest) of what goes to one place; nan where one of them is."""
    given, new = places[cuts[start]:cuts[stop]], values[cuts[start]:cuts[stop]]
    for k in range(given.size):
        at = np.uint64(given[k])
        a, b = x[at], new[k]
        x[at] = b if (b < a if least else b > a) or b != b else a


def count(start, stop, mask, block, counts):
    """How many of each block of bytes are not zero."""
    for b in range(start, stop):
        part = mask[b * block:(b + 1) * block]
        total = np.int64(0)
        for j in range(part.size):
            total += part[j] != 0
        counts[b] = total


def nonzero(start, stop, mask, block, offsets, sizes, down, across, out):
    """Where bytes of each block are not zero: positions in all dimensions, from `offsets` on.

    From one of them to the next it is `down` in memory, from one dimension to the next `across`.
    """
    last = sizes.size - 1
    n = sizes[last]
    found = np.empty(257, np.int64)
    for b in range(start, stop):
        i, end, k = b * block, min((b + 1) * block, mask.size), offsets[b]
        while i < end:
            row = i // n
            first = i - row * n
            part = mask[i:min(i + 256, i + n - first, end)]
            many = np.int64(0)
            for j in range(part.size):  # without a branch, which would be mispredicted half of the time
                found[many] = first + j
                many += part[j] != 0
            for j in range(many):
                out[(k + j) * down + last * across] = found[j]
            for d in range(last - 1, -1, -1):
                at = row % sizes[d]
                row //= sizes[d]
                for j in range(many):
                    out[(k + j) * down + d * across] = at
            k += many
            i += part.size


def insert(start, stop, sequence, values, right, out):
    """Where values fit into sorted rows: as many steps for each, so that there is nothing to mispredict.

    nan is beyond all others. `start` and `stop` count rows of values, which share one sequence or have one each.
    """
    n = sequence.shape[1]
    for r in range(start, stop):
        row, given, found = sequence[r if sequence.shape[0] > 1 else 0], values[r], out[r]
        for k in range(given.size):
            v = given[k]
            at, left = np.uint64(0), n
            while left > 1:
                half = left // 2
                a = row[at + np.uint64(half - 1)]
                before = not ((v < a) | (a != a) & (v == v)) if right else (a < v) | (v != v) & (a == a)
                at += np.uint64(half * before)
                left -= half
            a = row[at]
            before = not ((v < a) | (a != a) & (v == v)) if right else (a < v) | (v != v) & (a == a)
            found[k] = np.int64(at) + before


def triangle(start, stop, x, diagonal, lower, out):
    """What lies in matrices below a diagonal and on it, or above it and on it; `start` and `stop` count rows."""
    n, m = x.shape[1], x.shape[2]
    for r in range(start, stop):
        row, found = x[r // n, r % n], out[r // n, r % n]
        edge = min(max(r % n + diagonal + lower, 0), m)
        left, right, zeros = (row[:edge], found[:edge], found[edge:]) if lower else (
            row[edge:], found[edge:], found[:edge])
        for k in range(left.size):
            right[k] = left[k]
        for k in range(zeros.size):
            zeros[k] = 0


def first_of(start, stop, x, largest, places):
    """Where the first few of each row are in its order, equal ones by place; nan is the largest."""
    k = places.shape[1]
    values = np.empty(k, x.dtype)
    for r in range(start, stop):
        row, found = x[r], places[r]
        known = 0
        for j in range(row.size):
            v = row[j]
            if known == k:
                last = values[k - 1]
                if not ((v > last) | ((v != v) & (last == last)) if largest else
                        (v < last) | ((last != last) & (v == v))):
                    continue
            else:
                known += 1
            at = known - 1
            while at > 0:
                before = values[at - 1]
                if not ((v > before) | ((v != v) & (before == before)) if largest else
                        (v < before) | ((before != before) & (v == v))):
                    break
                values[at], found[at] = before, found[at - 1]
                at -= 1
            values[at], found[at] = v, j
