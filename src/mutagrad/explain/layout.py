"""Places boxes in layers, so that arrows point down, few of them cross, and they are short.

The four steps of Sugiyama, Tagawa and Toda: give each box a layer; cut arrows over several layers into short ones, by
points that take part like boxes; order each layer by where its neighbours are; and choose coordinates.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

GAP, POINT_GAP, LAYER_GAP = 28.0, 14.0, 46.0
SWEEPS, MOVES = 12, 24
WEAK = 1e-3
MOST_POINTS = 20_000  # with more, long arrows run straight


class Size(NamedTuple):
    width: float
    height: float


@dataclass(eq=False)
class Spot:
    """A box, or a point through which an arrow runs: its layer, its centre, the height of its layer,
    and how much its neighbours care where it is."""

    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    row: float = 0.0
    pull: float = 1.0
    up: list[Spot] = field(default_factory=list)
    down: list[Spot] = field(default_factory=list)

    @property
    def is_point(self) -> bool:
        return self.width == 0

    @property
    def weight(self) -> float:
        """How much its own wishes count: arrows would be straight."""
        return 3 * self.pull if self.is_point else self.pull


class Placed(NamedTuple):
    """Centres of the boxes; the points that each arrow runs through, from below the layer of its source to above that
    of its target; and the size of it all."""

    centres: list[tuple[float, float]]
    arrows: list[list[tuple[float, float]]]
    width: float
    height: float


def place(sizes: Sequence[Size], arrows: Sequence[tuple[int, int]]) -> Placed:
    """Return where to draw boxes of these sizes and arrows between them; an arrow goes from a lower number to a higher.

    >>> place([Size(40, 20), Size(40, 20)], [(0, 1)]).centres
    [(20.0, 10.0), (20.0, 76.0)]
    """
    spots = [Spot(width, height) for width, height in sizes]
    for spot, layer in zip(spots, _layers(len(sizes), arrows)):
        spot.layer = layer
    through_points = sum(spots[t].layer - spots[s].layer - 1 for s, t in arrows) <= MOST_POINTS
    for source in set(range(len(sizes))) - {target for _, target in arrows}:
        spots[source].pull = WEAK  # what comes from nowhere makes room for the others
    trails = [_trail(spots, arrow, through_points) for arrow in arrows]
    layers = _ordered(_rows(spots, trails))
    _align(layers)
    width, height = _to_origin(layers)
    return Placed([(s.x, s.y) for s in spots], [_stations(trail) for trail in trails], width, height)


def _stations(trail: list[Spot]) -> list[tuple[float, float]]:
    """Return where an arrow runs: straight down through each layer, so that it passes between the boxes there."""
    middle = [(spot.x, spot.y + side * spot.row / 2) for spot in trail[1:-1] for side in (-1, 1)]
    first, last = trail[0], trail[-1]
    return [(first.x, first.y + first.row / 2), *middle, (last.x, last.y - last.row / 2)]


# ------------------------------------------------------------------------------------------------------------- layers

def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: below all that it reads; sources, and what reads only them, just above readers."""
    layer = [0] * count
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for source, target in arrows:
        into[target].append(source)
        out[source].append(target)
    for box in range(count):
        layer[box] = max((layer[source] + 1 for source in into[box]), default=0)
    for box in reversed(range(count)):
        if out[box] and not any(into[source] for source in into[box]):
            layer[box] = min(layer[target] for target in out[box]) - 1
    lowest = min(layer, default=0)
    return [number - lowest for number in layer]


def _trail(spots: list[Spot], arrow: tuple[int, int], through_points: bool) -> list[Spot]:
    """Return the spots that an arrow runs through, linked with each other."""
    source, target = spots[arrow[0]], spots[arrow[1]]
    between = range(source.layer + 1, target.layer) if through_points else ()
    trail = [source, *(Spot(0.0, 0.0, layer, pull=source.pull) for layer in between), target]
    for above, below in pairwise(trail):
        if below.layer == above.layer + 1:
            above.down.append(below)
            below.up.append(above)
    return trail


def _rows(spots: list[Spot], trails: list[list[Spot]]) -> list[list[Spot]]:
    every = list(dict.fromkeys([*spots, *(spot for trail in trails for spot in trail)]))
    rows: list[list[Spot]] = [[] for _ in range(max((spot.layer for spot in every), default=-1) + 1)]
    for spot in every:
        rows[spot.layer].append(spot)
    return rows


# -------------------------------------------------------------------------------------------------------------- order

def _ordered(layers: list[list[Spot]]) -> list[list[Spot]]:
    """Return the layers in the order that had the fewest crossings, of those met while following the neighbours."""
    best, fewest = layers, _crossings(layers)
    for sweep in range(SWEEPS):
        layers = _sorted_along(layers, downwards=sweep % 2 == 0)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = layers, crossings
        if not fewest:
            break
    return best


def _sorted_along(layers: list[list[Spot]], downwards: bool) -> list[list[Spot]]:
    """Return each layer sorted by the mean place of its neighbours in the layer before."""
    made: list[list[Spot]] = []
    for row in layers if downwards else reversed(layers):
        place_of = {spot: i for i, spot in enumerate(made[-1])} if made else {}
        means = {}
        for i, spot in enumerate(row):
            near = [place_of[other] for other in (spot.up if downwards else spot.down) if other in place_of]
            means[spot] = sum(near) / len(near) if near else float(i)
        made.append(sorted(row, key=means.__getitem__))
    return made if downwards else made[::-1]


def _crossings(layers: list[list[Spot]]) -> int:
    """Return how many pairs of arrows cross."""
    total = 0
    for upper, lower in pairwise(layers):
        place_of = {spot: i for i, spot in enumerate(lower)}
        ends = [place for spot in upper for place in sorted(place_of[other] for other in spot.down)]
        total += _inversions(ends, len(lower))
    return total


def _inversions(ends: list[int], count: int) -> int:
    """Return how many pairs are in the wrong order, by a tree of partial counts (Fenwick's)."""
    tree, total = [0] * (count + 1), 0
    for seen, end in enumerate(ends):
        not_right, i = 0, end + 1
        while i:
            not_right, i = not_right + tree[i], i & (i - 1)
        total += seen - not_right
        i = end + 1
        while i <= count:
            tree[i] += 1
            i += i & -i
    return total


# -------------------------------------------------------------------------------------------------------- coordinates

def _align(layers: list[list[Spot]]) -> None:
    """Move boxes towards their neighbours, layer by layer, as far as those beside them allow."""
    for row in layers:
        _spread(row, [0.0] * len(row))
    for sweep in range(MOVES):
        for row in layers if sweep % 2 == 0 else reversed(layers):
            _spread(row, [_wished(spot, sweep) for spot in row])
    y = 0.0
    for row in layers:
        height = max(spot.height for spot in row)
        for spot in row:
            spot.y, spot.row = y + height / 2, height
        y += height + LAYER_GAP


def _wished(spot: Spot, sweep: int) -> float:
    """Where a box would be if it were alone: between its neighbours above and below, in the end of both."""
    near = spot.up + spot.down if sweep >= MOVES - 8 else spot.up if sweep % 2 == 0 else spot.down
    return sum(other.pull * other.x for other in near) / sum(other.pull for other in near) if near else spot.x


def _spread(row: list[Spot], wished: list[float]) -> None:
    """Set x so that spots keep their order and distance and are as near as can be to where they would be.

    Least squares: spots that push each other become one block, which goes to the mean of what its members wish.
    """
    offsets, reach = [], 0.0
    for i, spot in enumerate(row):
        gap = POINT_GAP if spot.is_point or i and row[i - 1].is_point else GAP
        reach += (row[i - 1].width + spot.width) / 2 + gap if i else 0.0
        offsets.append(reach)
    blocks: list[list[float]] = []  # weight, sum of wishes, members
    for spot, wish, offset in zip(row, wished, offsets):
        blocks.append([spot.weight, spot.weight * (wish - offset), 1])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] >= blocks[-1][1] / blocks[-1][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    starts = [block[1] / block[0] for block in blocks for _ in range(int(block[2]))]
    for spot, start, offset in zip(row, starts, offsets):
        spot.x = start + offset


def _to_origin(layers: list[list[Spot]]) -> tuple[float, float]:
    """Move all to the top left corner; return the size."""
    every = [spot for row in layers for spot in row]
    left = min((spot.x - spot.width / 2 for spot in every), default=0.0)
    for spot in every:
        spot.x = round(spot.x - left, 1)
    return (max((spot.x + spot.width / 2 for spot in every), default=0.0),
            max((spot.y + spot.height / 2 for spot in every), default=0.0))
