"""Write docs/benchmarks.md and its picture from the figures of two runs of bench.py: `make bench-document`.

    python benchmarks/document.py FAST.json NUMPY.json [--peers PEERS.json] [--scale SCALE.json]

The first run had compiled kernels (the extra `mutagrad[fast]`), the second NumPy alone; it may be of fewer rows. PEERS is
written by bench_peers.py and SCALE by scale.py; a file that is not there leaves its section out.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import OURS, QUIET, THEIRS, amount
from bench_peers import LIBRARIES, NAMES, Result, cell
from call_table import ROWS
from figures import Where, read
from scale import FIELDS, figure

Rows = dict[str, dict[str, Any]]

DOCS = Path(__file__).parents[1] / "docs"
# What the README shows of it.
SHOWN = {
    "writes_30k": "y[i] = y[i] + y[i-1], 30,000 writes",
    "small_mix": "small operations, 10 elements",
    "pond_large": "a simulator in place, 512 x 512",
    "train_gpt": "a training step of a small GPT",
    "train_cnn_32": "a training step of a CNN",
}
WIDTH = 130
LEVEL = 0.05  # a difference that means nothing
STEPWISE = OURS, THEIRS, "jax_eager", "mygrad", "autograd"  # libraries that compute as the program runs
TEXT = """# Benchmarks

What `make bench-document` has measured: the same programs ([programs.py](../benchmarks/programs.py)) in both libraries, in turns;
[bench.py](../benchmarks/bench.py) says how. The ratios are what to read: below 1 mutagrad is the faster one. They move by some five
percent from run to run, and by more from machine to machine where both pass over much memory.

{machine}.

## When each library is the faster one

{verdict}

## mutagrad and PyTorch

{table}

`make bench-calls` measures {calls} single calls of the API in the same way, by family. `make bench` also measures importing and peaks of
memory. Rows without a figure for NumPy alone were measured with kernels only.
"""
PEERS = """
## Other libraries

What `make bench-peers` has measured: some of the programs, written for each library as its manual says
([peers](../benchmarks/peers), [bench_peers.py](../benchmarks/bench_peers.py)), in turns with mutagrad and PyTorch. PyTorch's column is
its time, the others are ratios to it: below 1 is faster than PyTorch. Compiling is not counted, which JAX under `jit`, tinygrad,
Warp and Taichi do before the first result. Every gradient was compared with mutagrad's before anything was timed. Warp
computes on one thread of a CPU, the others on as many as are named here.

{machine}.

{table}

{notes}
"""
SCALE = """
## Very many views, writes and nodes

What `make bench-scale` has measured ([scale.py](../benchmarks/scale.py)): the cost of one item, at a tenth of the size and at the whole. It
is constant where the two lines are equal. The last four columns are counted by `mutagrad.stats()`, not measured.

{table}
"""


def table(fast: Rows, plain: Rows) -> str:
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


def shown(fast: Rows, plain: Rows) -> dict[str, str]:
    return {name: title for name, title in SHOWN.items() if name in fast and name in plain}


def short_table(fast: Rows, plain: Rows) -> str:
    lines = ["| time, as a ratio to PyTorch's | mutagrad[fast] | NumPy alone |", "|---|--:|--:|"]
    return "\n".join(lines + [f"| {title} | {fast[name]['ratio']:.2f} | {plain[name]['ratio']:.2f} |" for name, title in shown(fast, plain).items()])


def picture(fast: Rows, plain: Rows) -> str:
    """Bars of the times as ratios to PyTorch's, whose own is the line at 1."""
    unit, left, high = 220, 270, 46
    width, height = left + 2 * unit + 60, high * len(shown(fast, plain)) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (name, title) in enumerate(shown(fast, plain).items()):
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


# ------------------------------------------------------------------------------ who is the faster one


def verdict(fast: Rows, peers: Rows) -> str:
    return textwrap.fill(" ".join(filter(None, [against_torch(fast), among_all(peers), among_stepwise(peers)])), WIDTH)


def against_torch(fast: Rows) -> str:
    timed = [r for r in fast.values() if not r["error"] and not r["group"].startswith("Import")]
    ahead, behind = (sum(sign * math.log(r["ratio"]) > LEVEL for r in timed) for sign in (-1, 1))
    means = {group: mean([r["ratio"] for r in timed if r["group"] == group]) for group in dict.fromkeys(r["group"] for r in timed)}
    kinds: dict[str, Callable[[float], bool]] = {
        "mutagrad is ahead in": lambda m: math.log(m) < -LEVEL,
        "they are level in": lambda m: abs(math.log(m)) <= LEVEL,
        "PyTorch is ahead in": lambda m: math.log(m) > LEVEL,
    }
    parts = [f"{text} {listed(group.partition(':')[0].lower() + f' ({m:.2f})' for group, m in means.items() if fits(m))}" for text, fits in kinds.items() if any(map(fits, means.values()))]
    return (
        f"Of {len(timed)} programs mutagrad[fast] is ahead of PyTorch by more than {LEVEL:.0%} in {ahead}, and behind by more in {behind}. "
        f"By kind, with the geometric mean of the ratios: {'; '.join(parts)}. Where operations are small, the cost of a call decides; "
        "where they are large, that of the kernels, and PyTorch's are written for each processor."
    )


def among_all(peers: Rows) -> str:
    """Which library is the fastest at what, if others were measured."""
    wins = winners(peers, tuple(LIBRARIES))
    if not wins:
        return ""
    parts = [f"{LIBRARIES[library].title} at {listed(names)}" for library, names in wins.items()]
    text = f"Of all the libraries below, the fastest is {'; '.join(parts)}."
    if "jax_jit" in wins:
        text += (
            " JAX under `jit` compiles the whole program, which takes a while before the first result and asks for a program without "
            "mutation, whose shapes are known; one that can be written so, and runs often, belongs there."
        )
    return text


def among_stepwise(peers: Rows) -> str:
    wins = winners(peers, STEPWISE)
    if not wins:
        return ""
    count = sum(map(len, wins.values()))
    parts = [f"{LIBRARIES[library].title} at {len(names)}" + (f" ({listed(names)})" if len(names) < 5 else "") for library, names in wins.items()]
    return f"Of those that compute as the program runs, without compiling it, the fastest at {count} programs is {'; '.join(parts)}."


def winners(peers: Rows, libraries: tuple[str, ...]) -> dict[str, list[str]]:
    """What each library is the fastest of some at; the one with most is first."""
    found: dict[str, list[str]] = {}
    for r in peers.values():
        if seconds := {library: r["seconds"][library] for library in libraries if library in r["seconds"]}:
            found.setdefault(min(seconds, key=seconds.__getitem__), []).append(NAMES[r["name"]])
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def listed(texts: Any) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


# ---------------------------------------------------------------------------------- the other sections


def peers_section(machine: Where, peers: Rows) -> str:
    lines = ["| | " + " | ".join(library.title for library in LIBRARIES.values()) + " |", "|---" + "|--:" * len(LIBRARIES) + "|"]
    results = [Result(**r) for r in peers.values()]
    for r in results:
        busy = " (machine busy)" if r.others >= QUIET else ""
        lines.append(f"| {r.title}{busy} | " + " | ".join(cell(r, library) for library in LIBRARIES) + " |")
    return PEERS.format(machine=measured_with(machine), table="\n".join(lines), notes=peers_notes(results))


def peers_notes(results: list[Result]) -> str:
    """What kept a library from having a figure where it has a program."""
    notes: dict[str, list[str]] = {}
    for r in results:
        for library, note in r.notes.items():
            notes.setdefault(f"{LIBRARIES[library].title}: {note}", []).append(NAMES[r.name])
    text = "A dash: the library was not installed, or it has no program for this row (Warp and Taichi are asked for the ponds only)."
    return textwrap.fill(text + "".join(f" {note} ({listed(names)})." for note, names in notes.items()), WIDTH)


def scale_section(scale: Rows) -> str:
    heads = ["", "items", *FIELDS.values()]
    lines = [f"| {' | '.join(heads)} |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for r in scale.values():
        if r["error"]:
            lines.append(f"| {r['title']}: {r['error']} |" + " |" * (len(heads) - 1))
            continue
        for place, size in enumerate(r["sizes"]):
            figures = [figure(key, r[key][place]) for key in FIELDS]
            lines.append(f"| {r['title'] if place == 0 else ''} | {size:,} | {' | '.join(figures)} |")
    return SCALE.format(table="\n".join(lines))


def measured_with(machine: Where) -> str:
    return textwrap.fill("Measured with " + ", ".join(f"{key} {value}" for key, value in machine.items() if key != OURS), WIDTH)


# -------------------------------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="write docs/benchmarks.md and its picture")
    parser.add_argument("fast", type=Path, help="figures of bench.py with compiled kernels")
    parser.add_argument("plain", type=Path, help="figures of bench.py with NumPy alone")
    parser.add_argument("--peers", type=Path, help="figures of bench_peers.py, if there are any")
    parser.add_argument("--scale", type=Path, help="figures of scale.py, if there are any")
    return parser.parse_args()


def read_if_there(path: Path | None) -> tuple[Where, Rows]:
    return read(path) if path is not None and path.exists() else ({}, {})


def document(fast: tuple[Where, Rows], plain: Rows, peers: tuple[Where, Rows], scale: Rows) -> str:
    text = TEXT.format(machine=measured_with(fast[0]), verdict=verdict(fast[1], peers[1]), table=table(fast[1], plain), calls=len(ROWS))
    return text + (peers_section(*peers) if peers[1] else "") + (scale_section(scale) if scale else "")


def main() -> None:
    args = arguments()
    fast, (_, plain) = read(args.fast), read(args.plain)
    text = document(fast, plain, read_if_there(args.peers), read_if_there(args.scale)[1])
    (DOCS / "benchmarks.md").write_text(text)
    (DOCS / "benchmarks.svg").write_text(picture(fast[1], plain))
    print(short_table(fast[1], plain))


if __name__ == "__main__":
    main()
