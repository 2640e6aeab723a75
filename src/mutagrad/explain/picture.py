"""What a drawing shows: items with their lines of text, and arrows between them, before anything is placed."""
from __future__ import annotations

import linecache
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, Union

from ..base.provenance import describe
from ..core.dtypes import of_array
from ..core.graph import Leaf, Node
from ..core.window import Whole
from ..tensors.tensor import Tensor
from .folding import Box, Boxes, census
from .index_text import index_text
from .recorded import Read
from .source_lines import line_of

MANY_READERS = 6  # a leaf that more boxes read is drawn beside each of them
MANY_LEAVES = 16  # of more, those that one box reads are named inside it
LONGEST_LINE, MOST_LINES = 38, 12


class Item(NamedTuple):
    """A box to draw: what it is, its title, lines below with the kind of each, and what the pointer shows."""

    kind: str
    title: str
    lines: list[tuple[str, str]]
    tip: str


class Arrow(NamedTuple):
    """From item to item; `kind` is "read", "kept" (the writer before a partial write), or "back" (in a loop)."""

    source: int
    target: int
    kind: str
    label: str


Leaves = dict[tuple[int, Union[Box, None]], int]


class Picture(NamedTuple):
    """Items are in an order in which arrows go from lower numbers to higher ones, but for those of kind "back"."""

    items: list[Item]
    arrows: list[Arrow]


def shape_text(whole: Whole | None) -> str:
    """Return shape and type as a label: the type where it is not the usual one."""
    if whole is None:
        return ""
    shape, dtype = whole
    name = of_array(dtype).name if dtype is not None else "float32"
    return (str(tuple(shape)) if shape else "scalar") + ("" if name == "float32" else f" {name}")


def shortened(text: str, most: int = LONGEST_LINE) -> str:
    return text if len(text) <= most else f"{text[:most - 1]}…"


def picture(boxes: Boxes, names: Mapping[Leaf, str]) -> Picture:
    """Return what to draw of these boxes."""
    return _Builder(boxes, names).build()


class _Builder:
    """Collects items and arrows: leaves first, then boxes in the order of time, then results."""

    def __init__(self, boxes: Boxes, names: Mapping[Leaf, str]) -> None:
        self.boxes, self.names, self.graph = boxes, names, boxes.graph
        self.items: list[Item] = []
        self.arrows: dict[tuple[int, int, str], list[str]] = defaultdict(list)
        self.inside: dict[Box, list[int]] = defaultdict(list)
        self.commonest = self._commonest_line()

    def build(self) -> Picture:
        leaves = self._add_leaves()
        place = {id(box): len(self.items) + i for i, box in enumerate(self.boxes)}
        self.items += [self._box_item(box) for box in self.boxes]
        for box in self.boxes:
            for write in box.writes:
                for read in self.graph.reads(write):
                    self._add_read(read, box, place, leaves)
        for name, tensor in self.graph.outputs.items():
            self._add_output(name, tensor, place, leaves)
        return Picture(self.items, [Arrow(*key, _label(texts)) for key, texts in self.arrows.items()])

    # ----------------------------------------------------------------------------------------------------------- leaves

    def _add_leaves(self) -> Leaves:
        """Add items for leaves; return which one is meant where a box (None: any) reads a leaf."""
        readers: dict[int, dict[Box, None]] = defaultdict(dict)
        for box in self.boxes:
            for read in (r for write in box.writes for r in self.graph.reads(write)):
                if read.source >= len(self.graph.writes):
                    readers[read.source][box] = None
        found: Leaves = {}
        for number in range(len(self.graph.writes), len(self.graph.number)):
            boxes = list(readers[number])
            if len(boxes) == 1 and (len(self.graph.leaves) > MANY_LEAVES or len(boxes[0].writes) > 1):
                self.inside[boxes[0]].append(number)
            else:
                self._add_leaf([number], boxes if len(boxes) > MANY_READERS else [None], found)
        if len(self.graph.leaves) <= MANY_LEAVES:
            self._draw_inside(found)
        return found

    def _draw_inside(self, found: Leaves) -> None:
        """Draw the leaves that a folded box reads beside it: few of them each, more as one."""
        for numbers in self.inside.values():
            for group in [numbers] if len(numbers) > 2 else [[number] for number in numbers]:
                self._add_leaf(group, [None], found)
        self.inside.clear()

    def _add_leaf(self, group: list[int], readers: Sequence[Box | None], found: Leaves) -> None:
        for reader in readers:
            found.update({(number, reader): len(self.items) for number in group})
            self.items.append(self._leaf_item(group))

    def _inside_line(self, box: Box) -> list[tuple[str, str]]:
        numbers = self.inside.get(box, [])
        if len(numbers) > 2:
            count = sum(prod(self._leaf(k).shape) for k in numbers)
            return [("leaf", f"{len(numbers)} leaves, {count:,} elements")]
        names = [self.names.get(self._leaf(k), "leaf") for k in numbers]
        text = ", ".join(name.rpartition(".")[2] if i else name for i, name in enumerate(names))
        return [("leaf", shortened(text))] if names else []

    def _leaf(self, number: int) -> Leaf:
        return self.graph.leaves[number - len(self.graph.writes)]

    def _leaf_item(self, group: list[int]) -> Item:
        leaves = [self._leaf(k) for k in group]
        names = [self.names.get(leaf, "leaf") for leaf in leaves]
        shapes = {leaf.shape for leaf in leaves}
        lines = [("shape", shape_text((leaves[0].shape, leaves[0].whole[1])))] if len(shapes) == 1 else []
        if len(group) == 1:
            return Item("leaf", shortened(names[0]), lines, _leaf_tip(leaves[0], names[0]))
        count = sum(prod(leaf.shape) for leaf in leaves)
        lines += [("note", f"{len(group)} leaves, {count:,} elements")]
        return Item("leaves", shortened(common_name(names)), lines, "\n".join(map(_leaf_tip, leaves[:30], names)))

    # ------------------------------------------------------------------------------------------------------------ boxes

    def _box_item(self, box: Box) -> Item:
        node, whole = self.graph.writes[box.writes[-1]], self.graph.wholes.get(box.writes[-1])
        if len(box.writes) > 1:
            lines = [*self._fold_lines(box), *self._inside_line(box), *self._code_line(self._span(box))]
            return Item("fold", shortened(box.title, 60), lines, self._tip(box))
        lines = self._part_line(node, whole) or ([("shape", shape_text(whole))] if whole is not None else [])
        lines += [("note", shortened(f"in {box.path[-1]}"))] if box.path else []
        lines += [*self._inside_line(box), *self._code_line(self._line(node))]
        return Item("write" if node.written is None else "part", box.title, lines, self._tip(box))

    def _code_line(self, text: str) -> list[tuple[str, str]]:
        return [("code", text)] if text != self.commonest else []

    def _commonest_line(self) -> str:
        """The line that most boxes would show, if they are many: where a model is called, which then says nothing."""
        self.one_file = len({node.code.co_filename for node in self.graph.writes}) < 2
        lines = Counter(map(self._span, self.boxes)).most_common(1)
        return lines[0][0] if lines and lines[0][1] > max(4, len(self.boxes) / 3) else ""

    def _part_line(self, node: Node, whole: Whole | None) -> list[tuple[str, str]]:
        if node.written is None or whole is None:
            return []
        index = index_text(node.written, whole) or "all"
        return [("part", f"writes {index} of {shape_text(whole)}")]

    def _fold_lines(self, box: Box) -> list[tuple[str, str]]:
        wholes = {self.graph.wholes.get(k) for k in box.writes} if box.kind == "loop" else {
            self.graph.wholes.get(box.writes[-1])}
        whole = wholes.pop() if len(wholes) == 1 else None
        lines = [("shape", shape_text(whole))] if whole is not None else []
        parts = sum(self.graph.writes[k].written is not None for k in box.writes)
        counted = "" if box.kind == "loop" else f"{len(box.writes):,} writes"
        counted = ", ".join(filter(None, [counted, f"{parts:,} to parts" if parts else ""]))
        what = f"{box.alike} · " if box.kind == "module" and box.alike != box.title else ""
        what = f"{box.parts[0]} · " if box.kind == "repeat" and box.parts else what
        return [*lines, *([("part" if parts else "note", what + counted)] if counted else [])]

    def _line(self, node: Node) -> str:
        """The user's line as a label."""
        line, file = line_of(node), node.code.co_filename
        source = linecache.getline(file, line).strip()
        place = str(line) if self.one_file and source else f"{os.path.basename(file)}:{line}"
        return shortened(f"{place}: {source}" if source else place)

    def _span(self, box: Box) -> str:
        """The user's line, or from which line to which."""
        nodes = [self.graph.writes[k] for k in box.writes]
        places = {(node.code, node.at): node for node in nodes}.values()
        files = {node.code.co_filename for node in places}
        lines = {line_of(node) for node in places}
        if len(files) > 1:
            return f"{len(files)} files"
        if len(lines) == 1:
            return self._line(nodes[0])
        return shortened(f"{os.path.basename(files.pop())}:{min(lines)}–{max(lines)}")

    def _tip(self, box: Box) -> str:
        nodes = [self.graph.writes[k] for k in box.writes]
        places = list({(node.code.co_filename, line_of(node)): node for node in nodes}.values())
        more = [f"and {len(places) - MOST_LINES} more lines"] if len(places) > MOST_LINES else []
        shown = [*(describe(node.where) for node in places[:MOST_LINES]), *more]
        whole = shape_text(self.graph.wholes.get(box.writes[-1])) or "shape not known"
        head = f"{nodes[0].name()}, {whole}" if len(nodes) == 1 else f"{len(nodes):,} writes: {census(self.graph, box)}"
        return "\n".join([head, *self._part_tip(nodes), *shown])

    def _part_tip(self, nodes: Sequence[Node]) -> list[str]:
        if len(nodes) > 1 or nodes[0].written is None:
            return []
        kept = "" if nodes[0].previous is None else "; the dashed arrow comes from who wrote the rest"
        return [f"a write to part of a storage{kept}"]

    # ----------------------------------------------------------------------------------------------------------- arrows

    def _add_read(self, read: Read, box: Box, place: dict[int, int], leaves: Leaves) -> None:
        target, source = place[id(box)], self._source(read.source, box, place, leaves)
        if source is not None and source != target:
            kind = "back" if source > target else "kept" if read.kept else "read"
            labels = self.arrows[source, target, kind]
            if len(labels) < MOST_LINES:
                labels.append(self._window_label(read))

    def _source(self, number: int, box: Box | None, place: dict[int, int], leaves: Leaves) -> int | None:
        """The item that stands for a writer where a box reads it; None if it is named inside that box."""
        if number < len(self.graph.writes):
            return place[id(self.boxes.of[number])]
        return leaves.get((number, box), leaves.get((number, None)))

    def _window_label(self, read: Read) -> str:
        whole = self.graph.wholes.get(read.source)
        return "" if whole is None or read.kept else index_text(read.window, whole)

    def _add_output(self, name: str, tensor: Tensor, place: dict[int, int], leaves: Leaves) -> None:
        lines = [("shape", shape_text((tensor._array.shape, tensor._array.dtype)))]
        source = self._source(self.graph.source_of(tensor), None, place, leaves)
        self.items.append(Item("output", shortened(name), lines, f"{name}: what was drawn"))
        if source is not None:
            self.arrows[source, len(self.items) - 1, "read"].append("")


def _label(texts: list[str]) -> str:
    """Of several reads by one box the windows, if they are few and short."""
    found = [text for text in dict.fromkeys(texts) if text]
    return ", ".join(found) if len(found) <= 2 and sum(map(len, found)) <= 24 else ""


def _leaf_tip(leaf: Leaf, name: str) -> str:
    tensor = leaf.variable
    grad = tensor._grad if tensor is not None else None
    state = "the tensor is gone" if tensor is None else "no gradient yet" if grad is None else "has a gradient"
    return f"{name}: leaf, {shape_text((leaf.shape, leaf.whole[1]))}, {state}"


def common_name(names: Sequence[str]) -> str:
    """Return what several names have in common.

    >>> common_name(["layers.0.weight", "layers.1.weight"])
    'layers.*.weight'
    """
    parts = [name.split(".") for name in names]
    if len(set(names)) == 1:
        return f"{names[0]} ×{len(names)}"
    if len({len(p) for p in parts}) > 1:
        same = [column[0] for column in zip(*parts) if len(set(column)) == 1]
        return ".".join([*same, "*"]) if same else f"{names[0]} … {names[-1]}"
    same = [column[0] if len(set(column)) == 1 else "*" for column in zip(*parts)]
    return ".".join(same) if set(same) != {"*"} else f"{names[0]} … {names[-1]}"
