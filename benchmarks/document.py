"""Write docs/benchmarks.md and its picture from the figures of two runs of bench.py: `make bench-document`.

    python benchmarks/document.py FAST.json NUMPY.json

The first run had compiled kernels (the extra `mutagrad[fast]`), the second NumPy alone; it may be of fewer rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench import amount
from call_table import ROWS

DOCS = Path(__file__).parents[1] / "docs"
# What the README shows of it.
SHOWN = {
    "writes_30k": "y[i] = y[i] + y[i-1], 30,000 writes",
    "small_mix": "small operations, 10 elements",
    "pond_large": "a simulator in place, 512 x 512",
    "train_gpt": "a training step of a small GPT",
    "train_cnn_32": "a training step of a CNN",
}
TEXT = """# Benchmarks

What `make bench-document` has measured: the same programs ([programs.py](../benchmarks/programs.py)) in both libraries, in turns;
[bench.py](../benchmarks/bench.py) says how. The ratios are what to read: below 1 mutagrad is the faster one. They move by some five
percent from run to run, and by more from machine to machine where both pass over much memory.

{machine}.

{table}

`make bench-calls` measures {calls} single calls of the API in the same way, by family. `make bench` also measures importing and peaks of
memory. Rows without a figure for NumPy alone were measured with kernels only.
"""


def rows(path: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    found = json.loads(Path(path).read_text())
    return found["machine"], {r["name"]: r for r in found["rows"]}


def table(fast: dict[str, dict[str, Any]], plain: dict[str, dict[str, Any]]) -> str:
    lines = ["| | mutagrad[fast] | NumPy alone | PyTorch | ratio | NumPy's ratio | target |", "|---|--:|--:|--:|--:|--:|--:|"]
    group = None
    for name, r in fast.items():
        if r["group"] != group:
            group = r["group"]
            lines.append(f"| **{group}** | | | | | | |")
        other = plain.get(name)
        target = "" if r["target"] is None else f"≤ {r['target']:g}" + (" (missed)" if r["missed"] else "")
        alone = ("", "") if other is None else (amount(other["mutagrad"], name), f"{other['ratio']:.2f}")
        figures = [amount(r["mutagrad"], name), alone[0], amount(r["torch"], name), f"{r['ratio']:.2f}", alone[1]]
        lines.append(f"| {r['title']} | {' | '.join(figures)} | {target} |")
    return "\n".join(lines)


def short_table(fast: dict[str, dict[str, Any]], plain: dict[str, dict[str, Any]]) -> str:
    lines = ["| time, as a ratio to PyTorch's | mutagrad[fast] | NumPy alone |", "|---|--:|--:|"]
    return "\n".join(lines + [f"| {title} | {fast[name]['ratio']:.2f} | {plain[name]['ratio']:.2f} |" for name, title in SHOWN.items()])


def picture(fast: dict[str, dict[str, Any]], plain: dict[str, dict[str, Any]]) -> str:
    """Bars of the times as ratios to PyTorch's, whose own is the line at 1."""
    unit, left, high = 220, 270, 46
    width, height = left + 2 * unit + 60, high * len(SHOWN) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (name, title) in enumerate(SHOWN.items()):
        top = 30 + i * high
        parts.append(f'<text x="{left - 8}" y="{top + 19}" text-anchor="end">{title}</text>')
        for k, (found, color) in enumerate(((fast, "#2a6f97"), (plain, "#a9c6d9"))):
            ratio = found[name]["ratio"]
            length = min(ratio, 2) * unit
            parts.append(f'<rect x="{left}" y="{top + 15 * k}" width="{length:.0f}" height="13" fill="{color}"/>')
            parts.append(f'<text x="{left + length + 4:.0f}" y="{top + 11 + 15 * k}" font-size="11">{ratio:.2f}</text>')
    parts += [
        f'<line x1="{left + unit}" y1="20" x2="{left + unit}" y2="{height - 15}" stroke="#c1440e" stroke-dasharray="4 3"/>',
        f'<text x="{left + unit}" y="14" text-anchor="middle" fill="#c1440e">PyTorch</text>',
        f'<text x="{left}" y="{height - 4}" font-size="11">time as a ratio to PyTorch: dark with mutagrad[fast], light with NumPy alone</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    machine, fast = rows(sys.argv[1])
    _, plain = rows(sys.argv[2])
    calls = len(ROWS)
    where = "Measured with " + ", ".join(f"{key} {value}" for key, value in machine.items() if key != "mutagrad")
    (DOCS / "benchmarks.md").write_text(TEXT.format(machine=where, table=table(fast, plain), calls=calls))
    (DOCS / "benchmarks.svg").write_text(picture(fast, plain))
    print(short_table(fast, plain))


if __name__ == "__main__":
    main()
