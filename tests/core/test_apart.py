"""Adjoints of windows that have nothing in common are put side by side; those of others are added."""
from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.core.window import are_apart

SHAPE = 120, 150  # large enough that a sweep looks
BASE = np.zeros(SHAPE, np.float32)
CUTS = [np.s_[:40], np.s_[40:120], np.s_[:, :50], np.s_[:, 50:], np.s_[::2], np.s_[1::2], np.s_[:, ::2], np.s_[:, 1::2], np.s_[30:60, 20:90],
        np.s_[60:, 90:], np.s_[5], np.s_[:, 7], np.s_[::-1, 149:], np.s_[0:0], np.s_[2:3, 4:5]]


def window(cut: object) -> tuple[int, tuple[int, ...], tuple[int, ...], None]:
    part = BASE[cut]  # type: ignore[index]
    return (part.__array_interface__["data"][0] - BASE.__array_interface__["data"][0] if part.size else 0, part.shape, part.strides, None)


def covered(*cuts: object) -> np.ndarray:
    seen = np.zeros(SHAPE, int)
    for cut in cuts:
        seen[cut] += 1  # type: ignore[index]
    return seen


@pytest.mark.parametrize("a", range(len(CUTS)))
@pytest.mark.parametrize("b", range(len(CUTS)))
def test_windows_that_are_said_to_be_apart_are(a: int, b: int) -> None:
    if are_apart([window(CUTS[a]), window(CUTS[b])], 4):
        assert covered(CUTS[a], CUTS[b]).max() <= 1


def test_rows_and_columns_are_apart() -> None:
    assert are_apart([window(c) for c in (np.s_[:40], np.s_[40:90], np.s_[90:])], 4)
    assert are_apart([window(c) for c in (np.s_[:, 100:], np.s_[:, :50], np.s_[:, 50:100])], 4)
    assert not are_apart([window(c) for c in (np.s_[:, 100:], np.s_[:, :51], np.s_[:, 50:100])], 4)
    assert not are_apart([window(np.s_[:40]), 4], 4)


FORWARDS = [i for i in range(len(CUTS)) if i != 12]  # a tensor has no view backwards


@pytest.mark.parametrize("a", FORWARDS)
@pytest.mark.parametrize("b", FORWARDS)
def test_gradients_through_two_windows(a: int, b: int) -> None:
    x = mg.zeros(*SHAPE, requires_grad=True)
    parts = [x[cut] for cut in (CUTS[a], CUTS[b])]
    rng = np.random.default_rng(0)
    gs = [rng.standard_normal(tuple(p.shape)).astype(np.float32) for p in parts]
    mg.autograd.backward(parts, [mg.tensor(g) for g in gs])
    exact = np.zeros(SHAPE, np.float32)
    for cut, g in zip((CUTS[a], CUTS[b]), gs):
        np.add.at(exact, cut, g)  # type: ignore[arg-type]
    np.testing.assert_array_equal(x.grad.numpy(), exact)
