"""Running sums, products and extremes: one pass over each row, or over columns side by side.

These functions are compiled for float32, float64 and int64, as those of rows.py are. `W` is the type that totals are
kept in: float64 for floats. Columns are taken `WIDE` at a time; `start` and `stop` then count such blocks, those of all
matrices one after the other.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

WIDE = 256  # columns whose totals lie in the first cache


def along(start, stop, x, out, product, back):
    n = x.shape[1]
    for r in range(start, stop):
        row, found = x[r], out[r]
        total = W(1) if product else W(0)
        if product:
            for j in range(n):
                total *= row[j]
                found[j] = total
        elif back:
            for j in range(n - 1, -1, -1):
                total += row[j]
                found[j] = total
        else:
            for j in range(n):
                total += row[j]
                found[j] = total


def down(start, stop, x, out, product, back):
    n, inner = x.shape[1], x.shape[2]
    blocks = (inner + 255) // 256
    total = np.empty(256, W)
    for item in range(start, stop):
        outer, first = item // blocks, item % blocks * 256
        many = min(256, inner - first)
        total[:] = W(1) if product else W(0)
        for i in range(n):
            k = n - 1 - i if back else i
            row, found = x[outer, k, first:first + many], out[outer, k, first:first + many]
            if product:
                for j in range(many):
                    total[j] *= row[j]
                    found[j] = total[j]
            else:
                for j in range(many):
                    total[j] += row[j]
                    found[j] = total[j]


def extreme_along(start, stop, x, out, places, least):
    """The largest (or smallest) so far and where it is: the latest of equal ones; after a nan, the latest nan."""
    n = x.shape[1]
    for r in range(start, stop):
        row, found, at = x[r], out[r], places[r]
        best, place = row[0], 0
        if least:
            for j in range(n):
                v = row[j]
                if not v > best and (best == best or v != v):
                    best, place = v, j
                found[j] = best
                at[j] = place
        else:
            for j in range(n):
                v = row[j]
                if not v < best and (best == best or v != v):
                    best, place = v, j
                found[j] = best
                at[j] = place


def extreme_down(start, stop, x, out, places, least):
    n, inner = x.shape[1], x.shape[2]
    blocks = (inner + 255) // 256
    best, place = np.empty(256, x.dtype), np.empty(256, np.int64)
    for item in range(start, stop):
        outer, first = item // blocks, item % blocks * 256
        many = min(256, inner - first)
        for j in range(many):
            best[j] = x[outer, 0, first + j]
        for i in range(n):
            row, found = x[outer, i, first:first + many], out[outer, i, first:first + many]
            at = places[outer, i, first:first + many]
            for j in range(many):
                v = row[j]
                new = (v <= best[j] if least else v >= best[j]) or v != v
                best[j] = v if new else best[j]
                place[j] = i if new else place[j]
                found[j] = best[j]
                at[j] = place[j]


def log_sum_exp(start, stop, x, out):
    """Relative to the largest of a row, in double: all at once where no exponential is lost so, else step by step."""
    n = x.shape[1]
    sums = np.empty(n, np.float64)
    for r in range(start, stop):
        row, found = x[r], out[r]
        top, low = -np.inf, np.inf
        for j in range(n):
            v = np.float64(row[j])
            top = v if v > top or v != v else top
            low = v if v < low and v > -np.inf else low
        if abs(top) < np.inf and top - low < 700.0:
            for j in range(n):
                sums[j] = exp_64(row[j] - top)
            total = 0.0
            for j in range(n):
                total += sums[j]
                sums[j] = total
            for j in range(n):
                found[j] = log_64(sums[j]) + top
            continue
        top, total = -np.inf, 0.0
        for j in range(n):
            v = np.float64(row[j])
            if v != v or top != top:
                top = np.nan
            elif v > top:
                total = total * exp_64(top - v) + 1.0
                top = v
            elif top < np.inf and v > -np.inf:
                total += exp_64(v - top)
            found[j] = log_64(total) + top


def differences(start, stop, x, out, lag):
    for r in range(start, stop):
        row, found = x[r], out[r]
        later = row[lag:]
        for j in range(found.size):
            found[j] = later[j] - row[j]


def differences_back(start, stop, g, out, lag):
    for r in range(start, stop):
        slope, found = g[r], out[r]
        n = slope.size
        for j in range(lag):
            found[j] = -slope[j]
            found[n + j] = slope[n - lag + j]
        later, inside = slope[lag:], found[lag:]
        for j in range(later.size):
            inside[j] = slope[j] - later[j]
