"""Draws a picture as SVG: light or dark as the reader's system is, with lines of the program under the pointer."""
from __future__ import annotations

from collections import defaultdict
from html import escape

from .layout import Placed, Size, place
from .picture import Arrow, Item, Picture

MARGIN, TITLE, LINE = 24.0, 18.0, 15.0
# How wide a letter is in each kind of text; rather too wide, since fonts differ.
LETTER = {"title": 7.8, "shape": 6.7, "note": 6.4, "part": 6.6, "leaf": 6.4, "code": 6.8}

_LIGHT = {"paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "arrow": "#818b98", "write": "#f6f8fa",
          "write-edge": "#818b98", "leaf": "#dafbe1", "leaf-edge": "#2da44e", "part": "#fff1e5", "part-edge": "#bc4c00",
          "fold": "#ddf4ff", "fold-edge": "#0969da", "output": "#fbefff", "output-edge": "#8250df"}
_DARK = {"paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "arrow": "#767f8a", "write": "#1b222b",
         "write-edge": "#6e7681", "leaf": "#12291d", "leaf-edge": "#3fb950", "part": "#3a2110", "part-edge": "#f0883e",
         "fold": "#0c2d4a", "fold-edge": "#58a6ff", "output": "#2a1e40", "output-edge": "#a371f7"}


def _colours(table: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in table.items())


# Notebooks have themes of their own, which JupyterLab and VS Code tell by an attribute or class of the page.
STYLE = f"""
.mg-graph {{{_colours(_LIGHT)}}}
@media (prefers-color-scheme: dark) {{.mg-graph {{{_colours(_DARK)}}}}}
[data-jp-theme-light="true"] .mg-graph, .vscode-light .mg-graph {{{_colours(_LIGHT)}}}
[data-jp-theme-light="false"] .mg-graph, .vscode-dark .mg-graph {{{_colours(_DARK)}}}
.mg-graph text {{font: 11px system-ui, sans-serif; fill: var(--ink); text-anchor: middle;}}
.mg-graph .title {{font-size: 13px; font-weight: 600;}}
.mg-graph .note, .mg-graph .shape, .mg-graph .label, .mg-graph .head {{fill: var(--faint);}}
.mg-graph .code {{font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 10.5px;}}
.mg-graph .part {{fill: var(--part-edge); font-weight: 600;}}
.mg-graph .leaf {{fill: var(--leaf-edge);}}
.mg-graph .head, .mg-graph .label {{text-anchor: start;}}
.mg-graph .label {{paint-order: stroke; stroke: var(--paper); stroke-width: 3px; font-size: 10px;}}
.mg-graph rect {{stroke-width: 1.2;}}
.mg-graph .paper {{fill: var(--paper);}}
.mg-graph .box-write {{fill: var(--write); stroke: var(--write-edge);}}
.mg-graph .box-leaf {{fill: var(--leaf); stroke: var(--leaf-edge);}}
.mg-graph .box-part {{fill: var(--part); stroke: var(--part-edge); stroke-width: 2;}}
.mg-graph .box-fold {{fill: var(--fold); stroke: var(--fold-edge);}}
.mg-graph .box-output {{fill: var(--output); stroke: var(--output-edge);}}
.mg-graph path {{fill: none; stroke: var(--arrow); stroke-width: 1.3;}}
.mg-graph .kept {{stroke: var(--part-edge); stroke-dasharray: 5 3;}}
.mg-graph .back {{stroke: var(--fold-edge); stroke-dasharray: 2 3;}}
.mg-graph marker path {{fill: var(--arrow); stroke: none;}}
.mg-graph marker .kept {{fill: var(--part-edge);}}
.mg-graph marker .back {{fill: var(--fold-edge);}}
.mg-graph g.item:hover rect {{stroke-width: 2.6;}}
"""
_MARKERS = "".join(
    f'<marker id="mg-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path class="{kind}" d="M0 0.5 L8 4 L0 7.5 z"/></marker>' for kind in ("read", "kept", "back"))
_LEGEND = {"leaf": "leaf", "write": "write", "part": "write to a part", "fold": "several writes", "output": "result"}
_KINDS = {"leaves": "leaf"}


def svg(picture: Picture, caption: str) -> str:
    """Return the picture as the text of an SVG file."""
    sizes = [_size(item) for item in picture.items]
    forward = [arrow for arrow in picture.arrows if arrow.kind != "back"]
    placed = place(sizes, [(arrow.source, arrow.target) for arrow in forward])
    back = [arrow for arrow in picture.arrows if arrow.kind == "back"]
    top = 2 * LINE + 12
    width = max(placed.width + (150 if back else 0), len(caption) * 6.2, 460) + 2 * MARGIN
    height = placed.height + top + 2 * MARGIN
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg-graph" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">', f"<title>{escape(caption)}</title>",
        f"<style>{STYLE}</style><defs>{_MARKERS}</defs>", '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="head" x="{MARGIN}" y="{MARGIN}">{escape(caption)}</text>', _legend(picture),
        f'<g transform="translate({MARGIN + (width - 2 * MARGIN - placed.width) / 2:.1f} {MARGIN + top})">',
        *_arrows(forward, placed, sizes), *(_back_arrow(arrow, placed, sizes) for arrow in back),
        *(_box(item, size, *centre) for item, size, centre in zip(picture.items, sizes, placed.centres)),
        "</g></svg>"]
    return "\n".join(rows) + "\n"


def _size(item: Item) -> Size:
    widths = [len(item.title) * LETTER["title"], *(len(text) * LETTER[kind] for kind, text in item.lines)]
    return Size(max(54.0, *widths) + 22, TITLE + LINE * len(item.lines) + 12)


def _legend(picture: Picture) -> str:
    """The colours that occur, with a word each."""
    present = {_KINDS.get(item.kind, item.kind) for item in picture.items}
    x, rows = MARGIN, []
    for kind, word in _LEGEND.items():
        if kind in present:
            rows.append(f'<rect class="box-{kind}" x="{x:.0f}" y="{MARGIN + 10}" width="11" height="11" rx="2"/>'
                        f'<text class="head" x="{x + 16:.0f}" y="{MARGIN + 20}">{word}</text>')
            x += 34 + 6.2 * len(word)
    return "".join(rows)


def _box(item: Item, size: Size, x: float, y: float) -> str:
    kind = _KINDS.get(item.kind, item.kind)
    left, top, round_ = x - size.width / 2, y - size.height / 2, 14 if kind in ("leaf", "output") else 5
    rect = (f'<rect class="box-{kind}" x="{{:.1f}}" y="{{:.1f}}" width="{size.width:.1f}" height="{size.height:.1f}" '
            f'rx="{round_}"/>')
    several = rect.format(left + 4, top + 4) if item.kind in ("fold", "leaves") else ""
    texts = [f'<text class="title" x="{x:.1f}" y="{top + TITLE:.1f}">{escape(item.title)}</text>']
    texts += [f'<text class="{kind}" x="{x:.1f}" y="{top + TITLE + LINE * (i + 1):.1f}">{escape(text)}</text>'
              for i, (kind, text) in enumerate(item.lines)]
    return f'<g class="item"><title>{escape(item.tip)}</title>{several}{rect.format(left, top)}{"".join(texts)}</g>'


# ------------------------------------------------------------------------------------------------------------- arrows

def _arrows(arrows: list[Arrow], placed: Placed, sizes: list[Size]) -> list[str]:
    """Arrows that go down: they leave a box and arrive at one side by side, in the order of where they come from."""
    leave = _ports([(a.source, trail[1][0]) for a, trail in zip(arrows, placed.arrows)], sizes, 26)
    arrive = _ports([(a.target, trail[-2][0]) for a, trail in zip(arrows, placed.arrows)], sizes, 40)
    rows = []
    for i, (arrow, trail) in enumerate(zip(arrows, placed.arrows)):
        x0, x1 = placed.centres[arrow.source][0] + leave[i], placed.centres[arrow.target][0] + arrive[i]
        start = x0, placed.centres[arrow.source][1] + sizes[arrow.source].height / 2
        end = x1, placed.centres[arrow.target][1] - sizes[arrow.target].height / 2 - 1
        line = _curve([start, (x0, trail[0][1]), *trail[1:-1], (x1, trail[-1][1] - 1), end])
        rows.append(f'<path class="{arrow.kind}" marker-end="url(#mg-{arrow.kind})" d="{line}"/>')
        if arrow.label:
            rows.append(f'<text class="label" x="{end[0] + 5:.1f}" y="{end[1] - 9:.1f}">{escape(arrow.label)}</text>')
    return rows


def _ports(ends: list[tuple[int, float]], sizes: list[Size], widest: float) -> dict[int, float]:
    """Return for each arrow how far from the middle of its box it ends."""
    at: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for i, (box, other) in enumerate(ends):
        at[box].append((other, i))
    ports = {}
    for box, found in at.items():
        step = min(widest, sizes[box].width / (len(found) + 1))
        for k, (_, i) in enumerate(sorted(found)):
            ports[i] = (k - (len(found) - 1) / 2) * step
    return ports


def _curve(points: list[tuple[float, float]]) -> str:
    """A smooth line that leaves and arrives vertically."""
    (x, y), text = points[0], f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for u, v in points[1:]:
        if (u, v) == (x, y):
            continue
        bend = (v - y) / 2
        text += f" V{v:.1f}" if u == x else f" C{x:.1f} {y + bend:.1f} {u:.1f} {v - bend:.1f} {u:.1f} {v:.1f}"
        x, y = u, v
    return text


def _back_arrow(arrow: Arrow, placed: Placed, sizes: list[Size]) -> str:
    """An arrow back up, around the side on which less is in its way: what the next round of a loop reads."""
    side = min((1, -1), key=lambda side: sum(len(_beside(box, side, placed)) for box in (arrow.source, arrow.target)))
    (x0, y0), (x1, y1) = placed.centres[arrow.source], placed.centres[arrow.target]
    start, end = x0 + side * sizes[arrow.source].width / 2, x1 + side * (sizes[arrow.target].width / 2 + 5)
    out = side * (max(side * start, side * end) + 26 + min(60.0, abs(y0 - y1) / 8))
    return (f'<path class="back" marker-end="url(#mg-back)" d="M{start:.1f} {y0:.1f} '
            f'C{out:.1f} {y0:.1f} {out:.1f} {y1:.1f} {end:.1f} {y1:.1f}"/>')


def _beside(box: int, side: int, placed: Placed) -> list[int]:
    """The boxes of the same layer on one side of a box."""
    x, y = placed.centres[box]
    return [k for k, (u, v) in enumerate(placed.centres) if v == y and side * (u - x) > 0]
