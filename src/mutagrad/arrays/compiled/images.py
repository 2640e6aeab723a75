"""Images: convolution, pooling, and reading at coordinates.

As in rows.py, these functions are for Numba to read; `F` is the type of the numbers. Images have five dimensions here:
samples, channels, and three more, which may have a size of 1.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def correlate(start, stop, x, weight, bias, parts, form, sources, taps, targets, out):
    """Convolution, or its transpose: see ops/nn/correlate.py for what the tables hold.

    `weight` is (groups, channels of the result, channels, kernel elements). The units from `start` to `stop` are the
    samples, `parts` times: each part is a share of the channels of the result.
    """
    n, rows, channels, count = x.shape[0], weight.shape[1], weight.shape[2], taps.shape[0]
    q1, q2 = form[7], form[8]
    size = form[6] * q1 * q2
    together = max(min(512 // size, n), 1)
    length = together * size + form[12] + 2 * POSITIONS
    image = np.zeros(channels * sources.shape[0] * length, x.dtype)
    lines = max(1024 // q2, 1)
    pitch = (lines * q2 + POSITIONS - 1) // POSITIONS * POSITIONS
    products = np.empty((rows + ROWS) * pitch, x.dtype)
    weights, places = np.empty((rows + ROWS) * channels * count, x.dtype), np.empty(channels * count, np.intp)
    ends = np.empty(targets.shape[0], np.intp)
    k = 0
    for b in range(targets.shape[0]):
        for c in range(channels):
            for t in range(targets[b, 0], targets[b, 1]):
                places[k] = (c * sources.shape[0] + taps[t, 1]) * length + taps[t, 2]
                k += 1
    total = weight.shape[0] * rows
    for part in range(start // n, (stop - 1) // n + 1):
        begin, end = max(start - part * n, 0), min(stop - part * n, n)
        low, high = part * total // parts, (part + 1) * total // parts
        for group in range(low // rows, (high - 1) // rows + 1):
            m0, m1 = max(low - group * rows, 0), min(high - group * rows, rows)
            at = 0
            for b in range(targets.shape[0]):
                at = arrange(weight[group, m0:m1], taps[targets[b, 0]:targets[b, 1]], weights, at)
                ends[b] = at
            for first in range(begin, end, together):
                last = min(first + together, end)
                lay_out(x, first, last, group * channels, channels, form, sources, length, image)
                every = (last - first) * form[6] * q1
                for b in range(targets.shape[0]):
                    known = channels * (targets[b, 1] - targets[b, 0])
                    table = places[channels * targets[b, 0]:]
                    for line in range(0, every if known else 0, lines):
                        until = min(line + lines, every)
                        multiply(image, line * q2, (until - line) * q2, table, known, weights,
                                 ends[b - 1] if b else 0, m1 - m0, products, pitch)
                        put_lines(products, pitch, line, until, first, group * rows + m0, m1 - m0, bias, form,
                                  targets[b], out)


def correlate_weights(start, stop, g, x, parts, form, sources, taps, out):
    """The derivative of a convolution by its weight; added to `out` (groups, rows, channels, taps)."""
    n, rows, channels, count = x.shape[0], out.shape[1], out.shape[2], taps.shape[0]
    q1, q2 = form[7], form[8]
    size = form[6] * q1 * q2
    together = max(min(512 // size, n), 1)
    length = together * size + form[12] + 2 * POSITIONS
    image, slopes = np.zeros(channels * sources.shape[0] * length, x.dtype), np.zeros(rows * length, x.dtype)
    places = np.empty(channels * count, np.intp)
    plain, whole = form.copy(), np.zeros((1, 3), np.intp)
    plain[:3] = 1
    plain[3:6] = 0
    for c in range(channels):
        for t in range(count):
            places[c * count + t] = (c * sources.shape[0] + taps[t, 1]) * length + taps[t, 2]
    total = out.shape[0] * rows
    found = out.reshape(out.size)
    for part in range(start // n, (stop - 1) // n + 1):
        begin, end = max(start - part * n, 0), min(stop - part * n, n)
        low, high = part * total // parts, (part + 1) * total // parts
        for group in range(low // rows, (high - 1) // rows + 1):
            m0, m1 = max(low - group * rows, 0), min(high - group * rows, rows)
            for first in range(begin, end, together):
                last = min(first + together, end)
                if last - first < together:
                    slopes[:] = 0
                lay_out(x, first, last, group * channels, channels, form, sources, length, image)
                lay_out(g, first, last, group * rows + m0, m1 - m0, plain, whole, length, slopes)
                for at in range(0, (last - first) * size, 1024):
                    add_dots(slopes, at, length, m1 - m0, image, places, channels * count,
                             min((last - first) * size - at, 1024), found, (group * rows + m0) * channels * count)


def pick(start, stop, x, along0, along1, along2, out):
    """What lies at given positions along each of the last three dimensions."""
    n = along2.size
    low, high, first = 0, 0, 0  # the longest run of positions that follow each other
    for k in range(1, n + 1):
        if k == n or along2[k] != along2[k - 1] + 1:
            if k - first > high - low:
                low, high = first, k
            first = k
    for p in range(start, stop):
        for i in range(along0.size):
            for j in range(along1.size):
                row, found = x[p, along0[i], along1[j]], out[p, i, j]
                for k in range(low):
                    found[k] = row[along2[k]]
                run, inside = row[along2[low]:], found[low:high]
                for k in range(inside.size):
                    inside[k] = run[k]
                for k in range(high, n):
                    found[k] = row[along2[k]]


def surround(start, stop, x, before0, before1, before2, value, out):
    """Put a value before and behind the last three dimensions, or cut off where `before` is negative."""
    low, high = max(before2, 0), min(before2 + x.shape[3], out.shape[3])
    begin = low - before2
    for p in range(start, stop):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                found, a, b = out[p, i, j], i - before0, j - before1
                if a < 0 or b < 0 or a >= x.shape[1] or b >= x.shape[2] or low >= high:
                    for k in range(found.size):
                        found[k] = value
                else:
                    row = x[p, a, b]
                    for k in range(low):
                        found[k] = value
                    for k in range(high, found.size):
                        found[k] = value
                    run, inside = row[begin:], found[low:high]
                    for k in range(inside.size):
                        inside[k] = run[k]


def weigh(start, stop, x, places, weights, out):
    """Along the middle dimension: sums of what lies at some places, weighted."""
    each, inner = places.shape[1], x.shape[2]
    for o in range(start, stop):
        image = x[o]
        for i in range(places.shape[0]):
            if inner == 1:
                total = F(0)
                for k in range(each):
                    total += image[places[i, k], 0] * weights[i, k]
                out[o, i, 0] = total
            else:
                found = out[o, i]
                row, factor = image[places[i, 0]], weights[i, 0]
                for j in range(inner):
                    found[j] = row[j] * factor
                for k in range(1, each):
                    row, factor = image[places[i, k]], weights[i, k]
                    for j in range(inner):
                        found[j] += row[j] * factor


def weigh_two(start, stop, x, places, weights, out):
    """The same along the last dimension, where there are two of them."""
    for o in range(start, stop):
        row, found = x[o], out[o]
        for i in range(found.size):
            found[i] = row[places[i, 0]] * weights[i, 0] + row[places[i, 1]] * weights[i, 1]


def sample(start, stop, x, grid, nearest, border, align, out):
    """Images read at the coordinates of a grid: those from `start` to `stop`, counted over all samples.

    A few hundred points at a time: first where they are, then each channel.
    """
    points, size = grid.shape[1], x.shape[2] * x.shape[3]
    places, weights, flat = np.empty(4 * POINTS, np.intp), np.empty(12 * POINTS, x.dtype), grid.reshape(grid.size)
    q = start
    while q < stop:
        n, first = q // points, q % points
        count = min(POINTS, points - first, stop - q)
        find_corners(flat, q, q + count, x.shape[2], x.shape[3], nearest, border, align, places, weights)
        q += count
        for c in range(x.shape[1]):
            image, found = x[n, c].reshape(size), out[n, c, first:first + count]
            if nearest:
                for k in range(count):
                    found[k] = image[places[k]] * weights[k]
            else:
                for k in range(count):
                    found[k] = (image[places[k]] * weights[k] + image[places[POINTS + k]] * weights[POINTS + k]
                                + image[places[2 * POINTS + k]] * weights[2 * POINTS + k]
                                + image[places[3 * POINTS + k]] * weights[3 * POINTS + k])


def sample_back(start, stop, g, x, grid, nearest, border, align, by_grid, out):
    """The derivative of the same for samples from `start` to `stop`: by the grid to `out`, or by the images to `x`."""
    points, size, corners = grid.shape[1], x.shape[2] * x.shape[3], 1 if nearest else 4
    places, weights, flat = np.empty(4 * POINTS, np.intp), np.empty(12 * POINTS, x.dtype), grid.reshape(grid.size)
    dots = np.empty(4 * POINTS, x.dtype)
    for n in range(start, stop):
        for first in range(0, points, POINTS):
            count = min(POINTS, points - first)
            q = n * points + first
            find_corners(flat, q, q + count, x.shape[2], x.shape[3], nearest, border, align, places, weights)
            dots[:] = 0
            for c in range(x.shape[1]):
                image, slopes = x[n, c].reshape(size), g[n, c, first:first + count]
                for corner in range(corners):
                    at = corner * POINTS
                    if by_grid:
                        for k in range(count):
                            dots[at + k] += slopes[k] * image[places[at + k]]
                    else:
                        for k in range(count):
                            image[places[at + k]] += slopes[k] * weights[at + k]
            for k in range(count if by_grid else 0):
                for d in range(2):
                    total = F(0)
                    for corner in range(corners):
                        total += dots[corner * POINTS + k] * weights[(4 + 4 * d + corner) * POINTS + k]
                    out[n, first + k, d] = total
