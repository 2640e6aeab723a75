"""Gated rows, and the ways through a sequence that spell its labels. As rows.py, for Numba to read."""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def gated(start, stop, x, out):
    """The first half of each row times the sigmoid of the second."""
    n = out.shape[1]
    for r in range(start, stop):
        first, second, found = x[r, :n], x[r, n:], out[r]
        for j in range(n):
            share = F(1) / (F(1) + exp(-second[j]))
            found[j] = first[j] * (share if second[j] == second[j] else second[j])


def gated_back(start, stop, x, g, out):
    n = g.shape[1]
    for r in range(start, stop):
        first, second, slope = x[r, :n], x[r, n:], g[r]
        left, right = out[r, :n], out[r, n:]
        for j in range(n):
            share = F(1) / (F(1) + exp(-second[j]))
            share = share if second[j] == second[j] else second[j]
            left[j] = slope[j] * share
            right[j] = slope[j] * first[j] * share * (F(1) - share)


def ways_here(start, stop, e, begin, skip, never, out):
    """For each step the log-probability of all ways from the start to each state, sample by sample."""
    steps, states = e.shape[0], e.shape[2]
    last = np.full(states + 2, F(never))
    for n in range(start, stop):
        over = skip[n]
        for s in range(states):
            out[0, n, s] = e[0, n, s] + begin[n, s]
        for t in range(1, steps):
            last[2:] = out[t - 1, n]
            found, step = out[t, n], e[t, n]
            for s in range(states):
                found[s] = step[s] + logaddexp(logaddexp(last[s + 2], last[s + 1]), last[s] + over[s])


def ways_on(start, stop, e, end, skip, last, never, out):
    """For each step the log-probability of all ways from each state to an end, without the step itself."""
    steps, states = e.shape[0], e.shape[2]
    here = np.full(states + 2, F(never))
    over = np.full(states + 2, F(0))
    for n in range(start, stop):
        over[:states] = skip[n]
        for t in range(steps - 1, -1, -1):
            found = out[t, n]
            if last[n] == t:
                found[:] = end[n]
            elif t + 1 == steps:
                found[:] = F(never)
            else:
                here[:states] = out[t + 1, n] + e[t + 1, n]
                for s in range(states):
                    found[s] = logaddexp(logaddexp(here[s], here[s + 1]), here[s + 2] + over[s + 2])
