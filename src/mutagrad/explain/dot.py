"""Writes a picture in the language of Graphviz, for those who want to lay it out or change it themselves."""
from __future__ import annotations

from .picture import Picture

_SHAPES = {"leaf": "oval", "leaves": "oval", "output": "oval", "fold": "box3d"}
_COLOURS = {"leaf": "#2da44e", "leaves": "#2da44e", "part": "#bc4c00", "fold": "#0969da", "output": "#8250df"}
_STYLES = {"read": "solid", "kept": "dashed", "back": "dotted"}


def dot(picture: Picture, caption: str) -> str:
    """Return the picture as the text of a DOT file."""
    rows = ["digraph mutagrad {", f"  label={quoted(caption)}; labelloc=t; fontname=Helvetica;",
            "  node [fontname=Helvetica, fontsize=11, shape=box];", "  edge [fontname=Helvetica, fontsize=9];"]
    for k, item in enumerate(picture.items):
        label = "\n".join([item.title, *(text for _, text in item.lines)])
        rows.append(f"  n{k} [label={quoted(label)}, tooltip={quoted(item.tip)}, "
                    f"shape={_SHAPES.get(item.kind, 'box')}, color={quoted(_COLOURS.get(item.kind, '#818b98'))}];")
    for arrow in picture.arrows:
        label = f", label={quoted(arrow.label)}" if arrow.label else ""
        rows.append(f"  n{arrow.source} -> n{arrow.target} [style={_STYLES[arrow.kind]}"
                    f"{', constraint=false' if arrow.kind == 'back' else ''}{label}];")
    return "\n".join([*rows, "}"]) + "\n"


def quoted(text: str) -> str:
    r"""Return a string of DOT's.

    >>> print(quoted('say "x"'))
    "say \"x\""
    """
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inside}"'
