"""Makes few boxes of many writes: modules, chains, what repeats along a chain, loops, functions, lines, files.

Each way takes a list of boxes and gives a shorter one. `fold` tries them from the finest to the coarsest, until what is
left can be read.
"""
from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from .module_paths import Path
from .recorded import Recorded, op_name
from .source_lines import line_of

WAYS = ("modules", "chains", "repeats", "loops", "functions", "lines", "files")
LONGEST_PATTERN = 24
MANY = 5000  # writes, of which loops are folded first
FEWEST = 4  # a picture of fewer functions says little


@dataclass(eq=False)
class Box:
    """Writes that are drawn as one, in the order of time; `alike` is the same for boxes that do the same."""

    kind: str
    title: str
    writes: list[int]
    alike: str = ""
    path: Path = ()
    parts: list[str] = field(default_factory=list)


class Boxes(list[Box]):
    """Boxes in the order of their first writes, with who reads from whom."""

    def __init__(self, graph: Recorded, boxes: Iterable[Box]) -> None:
        super().__init__(sorted(boxes, key=lambda box: box.writes[0]))
        self.graph = graph
        self.of = {write: box for box in self for write in box.writes}

    def links(self) -> tuple[dict[Box, set[Box]], dict[Box, set[Box]], set[Box]]:
        """Return the boxes that each one reads, those that read it, and those that read leaves."""
        before, after, from_leaves = defaultdict(set), defaultdict(set), set()
        for box in self:
            for read in (read for write in box.writes for read in self.graph.reads(write)):
                source = self.of.get(read.source)
                if source is None:
                    from_leaves.add(box)
                elif source is not box:
                    before[box].add(source)
                    after[source].add(box)
        return before, after, from_leaves

    def runs(self, join: Callable[[Box, set[Box]], bool]) -> list[list[Box]]:
        """Return the boxes in runs, each box the only one that the next reads and read by it only.

        `join` may start a new run, seeing a box and those that read leaves.
        """
        before, after, from_leaves = self.links()
        ends = {self.of[self.graph.source_of(t)] for t in self.graph.outputs.values()
                if self.graph.source_of(t) in self.of}
        runs: list[list[Box]] = []
        last: dict[Box, list[Box]] = {}
        for box in self:
            only = next(iter(before[box])) if len(before[box]) == 1 else None
            run = last.pop(only, None) if only is not None and only not in ends else None
            if run is None or after[run[-1]] != {box} or not join(box, from_leaves):
                run = []
                runs.append(run)
            run.append(box)
            last[box] = run
        return runs


def single_boxes(graph: Recorded, paths: Sequence[Path]) -> Boxes:
    """Return a box for each write."""
    return Boxes(graph, (Box("write", op_name(node), [k], op_name(node), path)
                         for k, (node, path) in enumerate(zip(graph.writes, paths))))


# --------------------------------------------------------------------------------------------------------------- ways

def by_key(boxes: Boxes, key: Callable[[Box], Hashable | None], make: Callable[[list[Box]], Box]) -> Boxes:
    """Put boxes with the same key together; those whose key is None stay as they are."""
    together: dict[Hashable, list[Box]] = defaultdict(list)
    alone = []
    for box in boxes:
        found = key(box)
        if found is None:
            alone.append(box)
        else:
            together[found].append(box)
    made = (make(group) if len(group) > 1 else group[0] for group in together.values())
    return Boxes(boxes.graph, [*alone, *made])


def _joined(group: Sequence[Box]) -> list[int]:
    return sorted(write for box in group for write in box.writes)


def by_module(boxes: Boxes, paths: Sequence[Path], kinds: dict[Path, str], depth: int) -> Boxes:
    """Put the writes of each module at this depth together."""
    def key(box: Box) -> Path | None:
        path = paths[box.writes[0]]
        return path[:depth] if len(path) >= depth else None

    def make(group: list[Box]) -> Box:
        path = paths[group[0].writes[0]][:depth]
        return Box("module", path[-1], _joined(group), kinds.get(path, path[-1]), path)

    return by_key(boxes, key, make)


def by_chain(boxes: Boxes) -> Boxes:
    """Put each write together with those that only go on with its result and bring in nothing else."""
    runs = boxes.runs(lambda box, from_leaves: box not in from_leaves and box.kind != "module")
    return Boxes(boxes.graph, (_chain(run) if len(run) > 1 else run[0] for run in runs))


def _chain(run: list[Box]) -> Box:
    names = [name for box in run for name in box.parts or [box.title]]
    return Box("chain", sequence_text(names), _joined(run), " → ".join(box.alike for box in run), parts=names)


def by_repeat(boxes: Boxes) -> Boxes:
    """Put together what repeats along a chain of boxes: one layer after another of the same kind."""
    made: list[Box] = []
    for run in boxes.runs(lambda box, from_leaves: True):
        names, at = [box.alike for box in run], 0
        while at < len(run):
            period, times = _pattern(names, at)
            part = run[at:at + period * times]
            made.append(_repeat(part, period, times) if times > 1 else run[at])
            at += len(part) if times > 1 else 1
    return Boxes(boxes.graph, made)


def _pattern(names: list[str], at: int) -> tuple[int, int]:
    """Return the length of the pattern there that repeats over the longest stretch, and how often it does."""
    best = 1, 1
    for period in range(1, min(LONGEST_PATTERN, (len(names) - at) // 2) + 1):
        same = 0
        while at + period + same < len(names) and names[at + same] == names[at + period + same]:
            same += 1
        times = same // period + 1
        if times > 1 and period * times > best[0] * best[1]:
            best = period, times
    return best


def _repeat(run: list[Box], period: int, times: int) -> Box:
    alike = " → ".join(box.alike for box in run)
    if run[0].kind == "module" and period == 1:
        title, parts = f"{run[0].title} … {run[-1].title}", [f"{run[0].alike} ×{times:,}"]
        return Box("repeat", title, _joined(run), alike, parts=parts)
    return Box("repeat", f"{sequence_text([box.title for box in run[:period]])} ×{times:,}", _joined(run), alike)


def by_loop(boxes: Boxes) -> Boxes:
    """Put writes of one operation at one place of the program together."""
    nodes = boxes.graph.writes

    def key(box: Box) -> Hashable | None:
        node = nodes[box.writes[0]]
        return (node.code, node.at, op_name(node)) if len(box.writes) == 1 else None

    def make(group: list[Box]) -> Box:
        return Box("loop", f"{group[0].title} ×{len(group):,}", _joined(group), group[0].alike)

    return by_key(boxes, key, make)


def by_function(boxes: Boxes) -> Boxes:
    """Put all writes of one function of the program together."""
    def make(group: list[Box]) -> Box:
        name = boxes.graph.writes[group[0].writes[0]].code.co_name
        return Box("function", name if name.startswith("<") else f"{name}()", _joined(group), name)

    return by_key(boxes, lambda box: boxes.graph.writes[box.writes[0]].code, make)


def by_lines(boxes: Boxes, most: int) -> Boxes:
    """Put what a function does one after another together, in stretches of the same length, so that few are left."""
    nodes, length = boxes.graph.writes, -(-len(boxes) // most)
    stretches: list[list[Box]] = []
    for box in boxes:
        last = stretches[-1] if stretches else []
        if not last or len(last) == length or nodes[last[0].writes[0]].code is not nodes[box.writes[0]].code:
            stretches.append([])
        stretches[-1].append(box)
    return Boxes(boxes.graph, (_stretch(boxes.graph, group) if len(group) > 1 else group[0] for group in stretches))


def _stretch(graph: Recorded, group: list[Box]) -> Box:
    lines = [line_of(graph.writes[box.writes[0]]) for box in group]
    title = f"lines {min(lines)}–{max(lines)}" if min(lines) < max(lines) else f"line {lines[0]}"
    return Box("lines", title, _joined(group), title)


def by_file(boxes: Boxes) -> Boxes:
    """Put all writes of one file of the program together."""
    def file(box: Box) -> str:
        return boxes.graph.writes[box.writes[0]].code.co_filename

    return by_key(boxes, file, lambda group: Box("file", os.path.basename(file(group[0])), _joined(group)))


# ------------------------------------------------------------------------------------------------------------- choice

@dataclass
class Folding:
    """How to fold: where modules are, and which ways are asked for (None: as many as are needed)."""

    paths: list[Path]
    kinds: dict[Path, str]
    ways: Sequence[str] | None
    depth: int | None
    limit: int

    @property
    def deepest(self) -> int:
        return max(map(len, self.paths), default=0)


def fold(graph: Recorded, folding: Folding) -> tuple[Boxes, list[str]]:
    """Return the boxes to draw and the ways in which they were folded."""
    boxes, done = single_boxes(graph, folding.paths), []
    if folding.ways is not None:
        for way in folding.ways:
            before, boxes = len(boxes), _fold_by(way, boxes, folding, folding.depth or folding.deepest)
            done += [way] if len(boxes) < before else []
        return boxes, done
    if folding.depth is not None:
        boxes = _fold_by("modules", boxes, folding, folding.depth)
        done = ["modules"] if len(boxes) < len(graph.writes) else []
    best = boxes, done
    for ways, depth in _plans(folding):
        if len(best[0]) <= folding.limit:
            break
        tried = boxes
        for way in ways:
            tried = _fold_by(way, tried, folding, depth)
        if FEWEST <= len(tried) < len(best[0]) or "functions" not in ways and len(tried) < len(best[0]):
            best = tried, [*done, *ways]
    return best


def _plans(folding: Folding) -> list[tuple[tuple[str, ...], int]]:
    """Return what to try, the finest first."""
    depths = range(folding.deepest, 0, -1) if folding.depth is None else ()
    modules = [(ways, depth) for depth in depths
               for ways in (("modules",), ("modules", "chains"), ("modules", "chains", "repeats"))]
    if len(folding.paths) > MANY:  # first by what needs no look at who reads whom
        return [(("loops",), 0), (("loops", "chains"), 0), (("loops", "chains", "repeats"), 0), (("functions",), 0),
                (("loops", "lines"), 0)]
    others = (("chains",), ("chains", "repeats"), ("loops",), ("loops", "chains"), ("functions",),
              ("loops", "lines"))
    return [*modules, *((ways, 0) for ways in others)]


def _fold_by(way: str, boxes: Boxes, folding: Folding, depth: int) -> Boxes:
    if way == "modules":
        return by_module(boxes, folding.paths, folding.kinds, depth) if depth else boxes
    if way == "lines":
        return by_lines(boxes, folding.limit)
    ways: dict[str, Callable[[Boxes], Boxes]] = {
        "chains": by_chain, "repeats": by_repeat, "loops": by_loop, "functions": by_function, "files": by_file}
    return ways[way](boxes)


# --------------------------------------------------------------------------------------------------------------- text

def sequence_text(names: Sequence[str], most: int = 4) -> str:
    """Return names in a row, those that repeat counted and the middle left out.

    >>> sequence_text(["mul", "add", "add", "exp"])
    'mul → add ×2 → exp'
    """
    counted: list[tuple[str, int]] = []
    for name in names:
        times = counted.pop()[1] if counted and counted[-1][0] == name else 0
        counted.append((name, times + 1))
    texts = [name if times == 1 else f"{name} ×{times:,}" for name, times in counted]
    return " → ".join(texts if len(texts) <= most else [*texts[:most - 2], "…", texts[-1]])


def census(graph: Recorded, box: Box, most: int = 5) -> str:
    """Return how often each operation occurs in a box."""
    counts = Counter(op_name(graph.writes[k]) for k in box.writes).most_common()
    texts = [name if times == 1 else f"{name} ×{times:,}" for name, times in counts[:most]]
    return ", ".join(texts) + (f" and {len(counts) - most} more" if len(counts) > most else "")
