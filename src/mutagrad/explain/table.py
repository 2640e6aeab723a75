"""Tables as text and as HTML."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape

Row = Sequence[str]
WORDS = ("layer", "output")
# Colours are the page's own, so that it is readable in light and dark.
_CELL = "padding: 1px 10px; text-align: {}; white-space: pre"


def text_table(head: Row, rows: Sequence[Row]) -> str:
    """Return a table whose columns of words are aligned to the left, those of numbers to the right.

    >>> print(text_table(["layer", "output", "size"], [["a", "(1,)", "10"]]))
    layer  output  size
    -------------------
    a      (1,)      10
    """
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(w) if name in WORDS else cell.rjust(w) for name, cell, w in zip(head, row, widths))
             for row in [head, *rows]]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join(line.rstrip() for line in [lines[0], rule, *lines[1:]])


def html_table(head: Row, rows: Sequence[Row]) -> str:
    """Return the same table as HTML."""
    body = "".join(_html_row(head, row, "td") for row in rows)
    return ('<table style="border-collapse: collapse; font: 12px ui-monospace, Menlo, Consolas, monospace">'
            f"<thead>{_html_row(head, head, 'th')}</thead><tbody>{body}</tbody></table>")


def _html_row(head: Row, row: Row, tag: str) -> str:
    cells = (f'<{tag} style="{_CELL.format("left" if name in WORDS else "right")}">{escape(cell)}</{tag}>'
             for name, cell in zip(head, row))
    return f"<tr>{''.join(cells)}</tr>"


def bytes_text(count: int) -> str:
    """Return bytes as people say them.

    >>> bytes_text(512), bytes_text(3 << 20)
    ('512 B', '3.0 MiB')
    """
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024 ** power:.1f} {' KMGT'[power]}iB"
