"""Loops that reduce the rows of a matrix, or its columns, to one element each.

`take` is what counts of an element, `join` what is done with two of these, `EMPTY` what changes nothing, and `result`
what is written in the end; the types are those of elements (`F`), of short runs (`P`) and of totals (`W`). As in
rows.py this is for Numba to read; reductions.py says what the names mean.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def rows(start, stop, x, out):
    for r in range(start, stop):
        row = x[r]
        total = W(EMPTY)
        for low in range(0, row.size, 512):
            part, run = P(EMPTY), row[low:low + 512]
            for j in range(run.size):
                part = join(part, take(run[j]))
            total = join(total, W(part))
        out[r] = result(total)


def far_rows(start, stop, at, pitch, n, out):
    """The same of rows that begin so many bytes apart, from an address on."""
    for r in range(start, stop):
        row = row_at(at + r * pitch, n)
        total = W(EMPTY)
        for low in range(0, n, 512):
            part, run = P(EMPTY), row[low:low + 512]
            for j in range(run.size):
                part = join(part, take(run[j]))
            total = join(total, W(part))
        out[r] = result(total)


def columns(start, stop, x, width, out):
    """The middle one of three dimensions. A unit of work is `width` columns; they are counted over the first, too."""
    n, inner = x.shape[1], x.shape[2]
    tiles = (inner + width - 1) // width
    part, total = np.empty(width, P), np.empty(width, W)
    for unit in range(start, stop):
        o, left = unit // tiles, unit % tiles * width
        count = min(width, inner - left)
        total[:] = EMPTY
        for low in range(0, n, 64):
            part[:] = EMPTY
            end = min(low + 64, n)
            for i in range(low, end - 3, 4):
                row0, row1 = x[o, i, left:left + count], x[o, i + 1, left:left + count]
                row2, row3 = x[o, i + 2, left:left + count], x[o, i + 3, left:left + count]
                for j in range(count):
                    four = join(join(take(row0[j]), take(row1[j])), join(take(row2[j]), take(row3[j])))
                    part[j] = join(part[j], four)
            for i in range(end - (end - low) % 4, end):
                row = x[o, i, left:left + count]
                for j in range(count):
                    part[j] = join(part[j], take(row[j]))
            for j in range(count):
                total[j] = join(total[j], W(part[j]))
        for j in range(count):
            out[o, left + j] = result(total[j])


def spread(start, stop, x, middle, squares, left):
    """The sum of squares around the middle of each row; and the sum of distances, which is little, but not zero."""
    for r in range(start, stop):
        row = x[r]
        centre = F(middle[r])
        total, rest = 0.0, 0.0
        for low in range(0, row.size, 512):
            part, remaining, run = F(0), F(0), row[low:low + 512]
            for j in range(run.size):
                d = take(run[j]) - centre
                part += d * d
                remaining += d
            total += part
            rest += remaining
        squares[r] = total
        left[r] = rest


def places(start, stop, x, width, out):
    """Where in the middle one of three dimensions the largest is, or the smallest: the first of several."""
    n, inner = x.shape[1], x.shape[2]
    tiles = (inner + width - 1) // width
    best, at = np.empty(width, W), np.empty(width, np.int32)
    for unit in range(start, stop):
        o, left = unit // tiles, unit % tiles * width
        count = min(width, inner - left)
        row = x[o, 0, left:left + count]
        for j in range(count):
            best[j] = take(row[j])
            at[j] = 0
        for i in range(1, n):
            row = x[o, i, left:left + count]
            for j in range(count):
                key = take(row[j])
                nearer = join(key, best[j]) != best[j]
                best[j] = key if nearer else best[j]
                at[j] = np.int32(i) if nearer else at[j]
        for j in range(count):
            out[o, left + j] = at[j]
