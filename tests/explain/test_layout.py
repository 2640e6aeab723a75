"""Boxes in layers: arrows point down, boxes of a layer do not touch, few arrows cross."""
from __future__ import annotations

import random
from itertools import pairwise

import pytest

from mutagrad.explain import layout
from mutagrad.explain.layout import Placed, Size, place


def graph(seed: int, count: int) -> tuple[list[Size], list[tuple[int, int]]]:
    draw = random.Random(seed)
    sizes = [Size(draw.randint(40, 200), draw.randint(20, 80)) for _ in range(count)]
    return sizes, [(draw.randrange(max(0, k - 12), k), k) for k in range(1, count) for _ in range(draw.randint(0, 3))]


def overlapping(sizes: list[Size], placed: Placed) -> list[tuple[int, int]]:
    boxes = [(x - s.width / 2, x + s.width / 2, y - s.height / 2, y + s.height / 2) for s, (x, y) in zip(sizes, placed.centres)]
    return [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i])
            if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]]


@pytest.mark.parametrize("seed", range(8))
def test_boxes_do_not_overlap_and_arrows_point_down(seed: int) -> None:
    sizes, arrows = graph(seed, 60)
    placed = place(sizes, arrows)
    assert not overlapping(sizes, placed)
    assert all(placed.centres[s][1] + sizes[s].height / 2 < placed.centres[t][1] - sizes[t].height / 2 for s, t in arrows)
    assert all(x - s.width / 2 >= -0.1 and x + s.width / 2 <= placed.width + 0.1 and y + s.height / 2 <= placed.height for s, (x, y) in zip(sizes, placed.centres))


@pytest.mark.parametrize("seed", range(8))
def test_arrows_pass_between_boxes(seed: int) -> None:
    """Where an arrow runs straight down through a layer, no box is in its way."""
    sizes, arrows = graph(seed, 40)
    placed = place(sizes, arrows)
    for trail in placed.arrows:
        for (x0, y0), (x1, y1) in pairwise(trail):
            if x0 == x1:
                assert not [k for k, (s, (x, y)) in enumerate(zip(sizes, placed.centres)) if abs(x0 - x) < s.width / 2 and y0 < y < y1]


def test_a_chain_is_straight_whatever_leaves_hang_on_it() -> None:
    """0 .. 19 are leaves, the others a chain, each with a leaf."""
    arrows = sorted([(k, 20 + k) for k in range(20)] + [(19 + k, 20 + k) for k in range(1, 20)])
    placed = place([Size(60, 30)] * 20 + [Size(100 + k, 30) for k in range(20)], arrows)
    chain = [x for x, _ in placed.centres[20:]]
    assert max(chain) - min(chain) < 12


def test_crossings_are_counted_and_removed() -> None:
    assert layout._inversions([2, 1, 0], 3) == 3 and layout._inversions([0, 1, 2], 3) == 0 and layout._inversions([1, 1, 0], 2) == 2
    # Two chains side by side, given so that they cross at every step: 0-3, 1-2, 2-5, 3-4, ...
    arrows = [(k, k + 3 if k % 2 == 0 else k + 1) for k in range(8)]
    placed = place([Size(50, 20)] * 12, arrows)
    spots = {k: x for k, (x, _) in enumerate(placed.centres)}
    pairs = [((0, 3), (1, 2)), ((2, 5), (3, 4)), ((4, 7), (5, 6))]
    assert all((spots[a] - spots[c]) * (spots[b] - spots[d]) > 0 for (a, b), (c, d) in pairs)


def test_a_source_is_just_above_who_reads_it_first() -> None:
    placed = place([Size(50, 20)] * 5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert placed.centres[3][1] == placed.centres[2][1] > placed.centres[1][1]
    below = place([Size(50, 20)] * 7, [(0, 2), (1, 3), (2, 4), (4, 5), (3, 6), (5, 6)]).centres
    assert below[3][1] == below[5][1] and below[1][1] == below[4][1], "and so is what reads nothing but sources"


def test_nothing_and_one() -> None:
    assert place([], []) == Placed([], [], 0, 0)
    assert place([Size(40, 20)], []) == Placed([(20, 10)], [], 40, 20)


def test_long_arrows_run_straight_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    arrows = [(k, k + 1) for k in range(9)] + [(0, 9)]
    assert len(place([Size(40, 20)] * 10, arrows).arrows[-1]) == 18
    monkeypatch.setattr(layout, "MOST_POINTS", 3)
    assert len(place([Size(40, 20)] * 10, arrows).arrows[-1]) == 2
