"""Windows of images: the largest in each, averages, and where they came from.

As in rows.py, these functions are for Numba to read. Images have four dimensions here: planes, and three more, which
may have a size of 1. `form` holds sizes of the window, strides and borders, for three dimensions each.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def largest(start, stop, x, form, best, where):
    """The largest in each window, and its number in there: the first of several, but the last nan.

    For each row of windows first the largest of each column, then of those in each window.
    """
    k0, k1, k2, s0, s1, s2, p0, p1, p2 = form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7], form[8]
    width = x.shape[3]
    tops, numbers = np.empty(width, x.dtype), np.empty(width, np.int32)
    for p in range(start, stop):
        for i in range(best.shape[1]):
            for j in range(best.shape[2]):
                a0, a1 = max(p0 - i * s0, 0), min(x.shape[1] + p0 - i * s0, k0)
                b0, b1 = max(p1 - j * s1, 0), min(x.shape[2] + p1 - j * s1, k1)
                row, number = x[p, i * s0 + a0 - p0, j * s1 + b0 - p1], np.int32((a0 * k1 + b0) * k2)
                found, at = best[p, i, j], where[p, i, j]
                if k0 * k1 == 1:
                    for k in range(found.size):
                        begin = k * s2 - p2
                        place = max(-begin, 0)
                        top = row[begin + place]
                        for c in range(place + 1, min(width - begin, k2)):
                            v = row[begin + c]
                            better = (v > top) | (v != v)
                            top = v if better else top
                            place = c if better else place
                        found[k], at[k] = top, place
                    continue
                for k in range(width):
                    tops[k] = row[k]
                    numbers[k] = number
                for a in range(a0, a1):
                    for b in range(b0 if a > a0 else b0 + 1, b1):
                        row, number = x[p, i * s0 + a - p0, j * s1 + b - p1], np.int32((a * k1 + b) * k2)
                        for k in range(width):
                            v = row[k]
                            better = (v > tops[k]) | (v != v)
                            tops[k] = v if better else tops[k]
                            numbers[k] = number if better else numbers[k]
                if k2 * s2 == 1:
                    for k in range(found.size):
                        found[k] = tops[k]
                        at[k] = numbers[k]
                    continue
                for k in range(found.size):
                    begin = k * s2 - p2
                    first = max(-begin, 0)
                    top, number = tops[begin + first], numbers[begin + first] + first
                    for c in range(first + 1, min(width - begin, k2)):
                        v, other = tops[begin + c], numbers[begin + c] + c
                        better = (v > top) | ((v == top) & (other < number)) | (
                            (v != v) & ((top == top) | (other > number)))
                        top = v if better else top
                        number = other if better else number
                    found[k] = top
                    at[k] = number


def largest_alone(start, stop, x, form, best):
    """The largest in each window, or nan."""
    k0, k1, k2, s0, s1, s2, p0, p1, p2 = form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7], form[8]
    width = x.shape[3]
    tops = np.empty(width, x.dtype)
    for p in range(start, stop):
        for i in range(best.shape[1]):
            for j in range(best.shape[2]):
                a0, a1 = max(p0 - i * s0, 0), min(x.shape[1] + p0 - i * s0, k0)
                b0, b1 = max(p1 - j * s1, 0), min(x.shape[2] + p1 - j * s1, k1)
                row, found = x[p, i * s0 + a0 - p0, j * s1 + b0 - p1], best[p, i, j]
                if k2 * s2 == 1:
                    for k in range(width):
                        found[k] = row[k]
                    for a in range(a0, a1):
                        for b in range(b0 if a > a0 else b0 + 1, b1):
                            row = x[p, i * s0 + a - p0, j * s1 + b - p1]
                            for k in range(width):
                                found[k] = larger(found[k], row[k])
                    continue
                if k0 * k1 > 1:
                    for k in range(width):
                        tops[k] = row[k]
                    for a in range(a0, a1):
                        for b in range(b0 if a > a0 else b0 + 1, b1):
                            row = x[p, i * s0 + a - p0, j * s1 + b - p1]
                            for k in range(width):
                                tops[k] = larger(tops[k], row[k])
                    row = tops
                # Windows that lie inside, one element of them after the other; at the ends there may be less of them.
                first = min((p2 + s2 - 1) // s2, found.size)
                end = max(min((width + p2 - k2) // s2 + 1, found.size), first)
                if s2 == 1:
                    inner = row[first - p2:]
                    for k in range(end - first):
                        found[first + k] = inner[k]
                    for c in range(1, k2):
                        for k in range(end - first):
                            found[first + k] = larger(found[first + k], inner[k + c])
                elif s2 == 2 and k2 == 2:
                    inner, here = row[first * 2 - p2:], found[first:]
                    for k in range(end - first):
                        here[k] = larger(inner[2 * k], inner[2 * k + 1])
                elif s2 == 2 and k2 == 3:
                    inner, here = row[first * 2 - p2:], found[first:]
                    for k in range(end - first):
                        here[k] = larger(larger(inner[2 * k], inner[2 * k + 1]), inner[2 * k + 2])
                elif s2 == 4 and k2 == 4:
                    inner, here = row[first * 4 - p2:], found[first:]
                    for k in range(end - first):
                        here[k] = larger(larger(inner[4 * k], inner[4 * k + 1]),
                                         larger(inner[4 * k + 2], inner[4 * k + 3]))
                else:
                    for k in range(first, end):
                        top = row[k * s2 - p2]
                        for c in range(1, k2):
                            top = larger(top, row[k * s2 - p2 + c])
                        found[k] = top
                for outer in range(found.size + first - end):
                    k = outer if outer < first else outer + end - first
                    begin = k * s2 - p2
                    place = max(-begin, 0)
                    top = row[begin + place]
                    for c in range(place + 1, min(width - begin, k2)):
                        top = larger(top, row[begin + c])
                    found[k] = top


def largest_between(start, stop, x, first0, end0, first1, end1, first2, end2, where):
    """Where the largest is in windows that go from `first` to `end` along each dimension; or the last nan."""
    for p in range(start, stop):
        for i in range(first0.size):
            for j in range(first1.size):
                for k in range(first2.size):
                    a, b, c = first0[i], first1[j], first2[k]
                    top, place = x[p, a, b, c], (a * x.shape[2] + b) * x.shape[3] + c
                    for a in range(first0[i], end0[i]):
                        for b in range(first1[j], end1[j]):
                            row, begin = x[p, a, b], (a * x.shape[2] + b) * x.shape[3]
                            for c in range(first2[k], end2[k]):
                                v = row[c]
                                better = (v > top) | (v != v)
                                top = v if better else top
                                place = begin + c if better else place
                    where[p, i, j, k] = place


def put_back(start, stop, g, where, starts, distances, out):
    """Add each element to where it was picked from."""
    for p in range(start, stop):
        image, slopes, numbers = out[p], g[p], where[p]
        for k in range(image.size):
            image[k] = 0
        for k in range(slopes.size):
            image[starts[k] + distances[numbers[k]]] += slopes[k]


def averages(start, stop, x, form, divisors, out):
    """For each row of windows first the sums of columns, then of those in each window."""
    k0, k1, k2, s0, s1, s2, p0, p1, p2 = form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7], form[8]
    width = x.shape[3]
    sums = np.empty(width, x.dtype)
    for p in range(start, stop):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                for k in range(width):
                    sums[k] = 0
                for a in range(max(p0 - i * s0, 0), min(x.shape[1] + p0 - i * s0, k0)):
                    for b in range(max(p1 - j * s1, 0), min(x.shape[2] + p1 - j * s1, k1)):
                        row = x[p, i * s0 + a - p0, j * s1 + b - p1]
                        for k in range(width):
                            sums[k] += row[k]
                found, shares = out[p, i, j], divisors[i, j]
                if k2 * s2 == 1:
                    for k in range(found.size):
                        found[k] = sums[k] / shares[k]
                    continue
                for k in range(found.size):
                    begin, total = k * s2 - p2, F(0)
                    for c in range(max(-begin, 0), min(width - begin, k2)):
                        total += sums[begin + c]
                    found[k] = total / shares[k]


def shares(start, stop, g, form, divisors, out):
    """The transpose of `averages`."""
    k0, k1, k2, s0, s1, s2, p0, p1, p2 = form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7], form[8]
    width = out.shape[3]
    sums = np.empty(width, g.dtype)
    for p in range(start, stop):
        image = out[p].reshape(out[p].size)
        for k in range(image.size):
            image[k] = 0
        for i in range(g.shape[1]):
            for j in range(g.shape[2]):
                for k in range(width):
                    sums[k] = 0
                if k2 * s2 == 1:
                    row, parts = g[p, i, j], divisors[i, j]
                    for k in range(width):
                        sums[k] = row[k] / parts[k]
                for k in range(g.shape[3] if k2 * s2 > 1 else 0):
                    begin, share = k * s2 - p2, g[p, i, j, k] / divisors[i, j, k]
                    for c in range(max(-begin, 0), min(width - begin, k2)):
                        sums[begin + c] += share
                for a in range(max(p0 - i * s0, 0), min(out.shape[1] + p0 - i * s0, k0)):
                    for b in range(max(p1 - j * s1, 0), min(out.shape[2] + p1 - j * s1, k1)):
                        row = out[p, i * s0 + a - p0, j * s1 + b - p1]
                        for k in range(width):
                            row[k] += sums[k]
