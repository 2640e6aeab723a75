"""All steps of recurrent layers, forward and in reverse: each a product with the state, then row by row, in one pass.

These functions are compiled like those of rows.py; `start` and `stop` are items of the batch. Of each step `steps` says
which row is its first of all that is kept for the whole sequence, and how many it has; `h` and `c` are the states, of
which it changes the first rows. `blas` and `w` are what `times` takes (tiles.py). Loops are short and many, because a
compiler vectorises one that touches few arrays.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def lstm(start, stop, steps, blas, w, x, h, c, gates, before_h, before_c, out):
    """Gates are (i, f, g, o)."""
    size = h.shape[1]
    z, lines, places = room_for_product(stop - start, size, 4 * size, F)
    for s in range(steps.shape[0]):
        at, last = steps[s, 0], min(stop, steps[s, 1])
        if start < last:
            times(blas, h[start:last], w, True, lines, places, z)
        for r in range(start, last):
            given, added, gate = x[at + r], z[r - start], gates[at + r]
            hidden, cell = h[r], c[r]
            old_h, old_c, result = before_h[at + r], before_c[at + r], out[at + r]
            for j in range(size):
                old_h[j] = hidden[j]
            for j in range(size):
                old_c[j] = cell[j]
            for j in range(4 * size):
                gate[j] = given[j] + added[j]
            i, f, new, o = gate[:size], gate[size:2 * size], gate[2 * size:3 * size], gate[3 * size:]
            for j in range(2 * size):
                gate[j] = F(1) / (F(1) + exp(-gate[j]))
            for j in range(size):
                new[j] = tanh(new[j])
            for j in range(size):
                o[j] = F(1) / (F(1) + exp(-o[j]))
            for j in range(size):
                cell[j] = f[j] * cell[j] + i[j] * new[j]
            for j in range(size):
                hidden[j] = o[j] * tanh(cell[j])
            for j in range(size):
                result[j] = hidden[j]


def lstm_back(start, stop, steps, blas, w, dout, gates, before_c, dh, dc, dx):
    """The adjoint of the gates, and in `dc` that of the cell state before the step."""
    size = dh.shape[1]
    z, lines, places = room_for_product(stop - start, 4 * size, size, F)
    for s in range(steps.shape[0] - 1, -1, -1):
        at, last = steps[s, 0], min(stop, steps[s, 1])
        for r in range(start, last):
            gate, old, found, coming = gates[at + r], before_c[at + r], dx[at + r], dout[at + r]
            d, cell = dh[r], dc[r]
            i, f, new, o = gate[:size], gate[size:2 * size], gate[2 * size:3 * size], gate[3 * size:]
            di, df = found[:size], found[size:2 * size]
            dnew, do = found[2 * size:3 * size], found[3 * size:]
            for j in range(size):
                d[j] += coming[j]
            for j in range(size):
                do[j] = tanh(f[j] * old[j] + i[j] * new[j])
            for j in range(size):
                cell[j] += d[j] * o[j] * (F(1) - do[j] * do[j])
            for j in range(size):
                do[j] *= d[j] * o[j] * (F(1) - o[j])
            for j in range(size):
                di[j] = cell[j] * new[j] * i[j] * (F(1) - i[j])
            for j in range(size):
                dnew[j] = cell[j] * i[j] * (F(1) - new[j] * new[j])
            for j in range(size):
                df[j] = cell[j] * old[j] * f[j] * (F(1) - f[j])
            for j in range(size):
                cell[j] *= f[j]
        if start < last:
            times(blas, dx[at + start:at + last], w, False, lines, places, z)
        for r in range(start, last):
            d, back = dh[r], z[r - start]
            for j in range(size):
                d[j] = back[j]


def gru(start, stop, steps, blas, w, x, b, h, gates, part, before, out):
    """Gates are (r, z, n), and `part` the state's part in n."""
    size = h.shape[1]
    z, lines, places = room_for_product(stop - start, size, 3 * size, F)
    for s in range(steps.shape[0]):
        at, last = steps[s, 0], min(stop, steps[s, 1])
        if start < last:
            times(blas, h[start:last], w, True, lines, places, z)
        for r in range(start, last):
            given, added, gate = x[at + r], z[r - start], gates[at + r]
            hidden, old, share, result = h[r], before[at + r], part[at + r], out[at + r]
            for j in range(size):
                old[j] = hidden[j]
            for j in range(2 * size):
                gate[j] = given[j] + added[j] + b[j]
            for j in range(2 * size):
                gate[j] = F(1) / (F(1) + exp(-gate[j]))
            reset, update, new = gate[:size], gate[size:2 * size], gate[2 * size:]
            third, bias, own = added[2 * size:], b[2 * size:], given[2 * size:]
            for j in range(size):
                share[j] = third[j] + bias[j]
            for j in range(size):
                new[j] = own[j] + reset[j] * share[j]
            for j in range(size):
                new[j] = tanh(new[j])
            for j in range(size):
                hidden[j] = new[j] + update[j] * (hidden[j] - new[j])
            for j in range(size):
                result[j] = hidden[j]


def gru_back(start, stop, steps, blas, w, dout, gates, part, before, dh, dx, dstate):
    """The adjoints of the gates, by input and by the product of the state;"""
    size = dh.shape[1]
    z, lines, places = room_for_product(stop - start, 3 * size, size, F)
    for s in range(steps.shape[0] - 1, -1, -1):
        at, last = steps[s, 0], min(stop, steps[s, 1])
        for r in range(start, last):
            gate, share, old, coming = gates[at + r], part[at + r], before[at + r], dout[at + r]
            d, found, back = dh[r], dx[at + r], dstate[at + r]
            reset, update, new = gate[:size], gate[size:2 * size], gate[2 * size:]
            dreset, dupdate, dnew = found[:size], found[size:2 * size], found[2 * size:]
            for j in range(size):
                d[j] += coming[j]
            for j in range(size):
                dnew[j] = d[j] * (F(1) - update[j]) * (F(1) - new[j] * new[j])
            for j in range(size):
                dreset[j] = dnew[j] * share[j] * reset[j] * (F(1) - reset[j])
            for j in range(size):
                dupdate[j] = d[j] * (old[j] - new[j]) * update[j] * (F(1) - update[j])
            third = back[2 * size:]
            for j in range(size):
                third[j] = dnew[j] * reset[j]
            for j in range(2 * size):
                back[j] = found[j]
            for j in range(size):
                d[j] *= update[j]
        if start < last:
            times(blas, dstate[at + start:at + last], w, False, lines, places, z)
        for r in range(start, last):
            d, more = dh[r], z[r - start]
            for j in range(size):
                d[j] += more[j]


def attend(start, stop, scores, queries, first, causal):
    """softmax in place; a row of which nothing is seen is zero. If `causal`, query i sees the keys up to first + i."""
    for r in range(start, stop):
        row = scores[r]
        n = row.size
        if causal:
            n = min(first + r % queries + 1, row.size)
            rest = row[n:]
            for j in range(rest.size):
                rest[j] = F(0)
        seen = row[:n]
        if n == 0:
            continue
        top = largest(seen)
        if top == -np.inf:
            top = F(0)
        total = F(0)
        for j in range(n):
            e = exp(seen[j] - top)
            seen[j] = e
            total += e
        share = F(1) / total if total != F(0) else F(1)
        for j in range(n):
            seen[j] *= share


def attend_back(start, stop, weights, slope):
    """The adjoint of the scores in the place of that of the weights."""
    for r in range(start, stop):
        row, found = weights[r], slope[r]
        along = F(0)
        for j in range(row.size):
            along += row[j] * found[j]
        for j in range(row.size):
            found[j] = (found[j] - along) * row[j]
