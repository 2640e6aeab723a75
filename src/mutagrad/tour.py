"""The tour: short programs that mutate, each differentiated here and judged by finite differences.

The programs stand in `examples/mutation/`, each readable alone. A program is a file that defines `START` (values of
the leaf), `program(mg, x)` and `reference(np, x)`: the same statements for a tensor library and for NumPy, which
alias and mutate alike. Only NumPy judges: PyTorch's column was recorded by `examples/record_torch.py`.
"""
from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import mutagrad

from .arrays import np
from .base.operands import Array
from .tensors.tensor import Tensor

SUMMARY = "differentiate short programs that mutate, and judge each by finite differences"
STEP = 1e-6
TOLERANCE = 1e-5  # of the largest entry; central differences in float64 are good to about 1e-9

_HERE = Path(__file__).resolve().parent
_PLACES = (_HERE / "_examples" / "mutation", _HERE.parents[1] / "examples" / "mutation")  # a wheel's, a checkout's
_RECORD = _HERE / "tour_torch.json"


# The programs


@dataclass(frozen=True)
class Program:
    """One example file."""

    name: str
    source: str
    summary: str
    start: list[Any]
    run: Callable[[Any, Tensor], Tensor]
    reference: Callable[[Any, Array], float]

    @property
    def fingerprint(self) -> str:
        """Changes with the source: a recording of another source is stale."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


def load(path: Path) -> Program:
    """Read a program from its file."""
    source = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), names)  # not an import: that would leave a __pycache__ in examples/
    summary = " ".join(names["__doc__"].split())
    return Program(path.stem, source, summary, names["START"], names["program"], names["reference"])


def find_programs() -> list[Program]:
    """Return every program of the tour, shortest first: they build up without anyone keeping an order."""
    for place in _PLACES:
        programs = [load(path) for path in sorted(place.glob("*.py"))]
        if programs:
            return sorted(programs, key=lambda program: program.source.count("\n"))
    raise FileNotFoundError(f"the tour's programs are in none of: {', '.join(map(str, _PLACES))}")


# Judging them


@dataclass(frozen=True)
class Verdict:
    """What became of a program: its gradient and the one by finite differences, or why there is none."""

    program: Program
    expected: Array
    gradient: Array | None = None
    deviation: float = float("inf")
    trouble: str = ""

    @property
    def right(self) -> bool:
        return self.deviation <= TOLERANCE


def gradient(program: Program, library: Any) -> tuple[float, Array]:
    """Return the loss and the leaf's gradient (an array) by a library with PyTorch's API."""
    x = library.tensor(program.start, dtype=library.float64, requires_grad=True)
    loss = program.run(library, x)
    loss.backward()
    if x.grad is None:
        raise ValueError("x.grad is None after backward()")
    return loss.item(), np.array(x.grad.tolist())


def finite_differences(program: Program) -> tuple[float, Array]:
    """Return the loss and its gradient by central differences of the program's statements on NumPy arrays."""
    start = np.array(program.start, dtype=np.float64)
    loss = _loss_at(program, start)
    slopes = np.empty_like(start)
    for i in np.ndindex(*start.shape):
        nudge = np.zeros_like(start)
        nudge[i] = STEP
        slopes[i] = (_loss_at(program, start + nudge) - _loss_at(program, start - nudge)) / (2 * STEP)
    return loss, slopes


def _loss_at(program: Program, x: Array) -> float:
    return float(program.reference(np, x.copy()))


def judge(program: Program, library: Any) -> Verdict:
    """Differentiate a program by the library and by finite differences, and compare."""
    expected_loss, expected = finite_differences(program)
    try:
        loss, got = gradient(program, library)
    except Exception as error:  # any error is a verdict: the tour goes on
        return Verdict(program, expected, trouble=f"{type(error).__name__}: {error}")
    if got.shape != expected.shape:
        return Verdict(program, expected, got, trouble=f"a gradient of shape {got.shape}, not {expected.shape}")
    deviation = max(_deviation(got, expected), _deviation(np.array(loss), np.array(expected_loss)))
    return Verdict(program, expected, got, deviation, "" if deviation <= TOLERANCE else f"off by {deviation:.1e}")


def _deviation(got: Array, expected: Array) -> float:
    """Return the largest difference as a part of the largest entry; NaN counts as infinitely wrong."""
    difference = float(np.abs(got - expected).max()) / (float(np.abs(expected).max()) or 1.0)
    return difference if difference == difference else float("inf")


# Printing


@dataclass(frozen=True)
class Ink:
    """How to write to a stream: in colour for a person who has not declined, in ASCII where it knows no more."""

    colour: bool
    ascii_only: bool

    @classmethod
    def of(cls, stream: TextIO) -> Ink:
        try:
            "✓✗─…".encode(stream.encoding or "ascii")
            ascii_only = False
        except UnicodeEncodeError:
            ascii_only = True
        return cls(colour=stream.isatty() and not os.environ.get("NO_COLOR"), ascii_only=ascii_only)

    def __call__(self, text: str, style: str = "") -> str:
        if self.ascii_only:
            text = text.translate(_ASCII).encode("ascii", "replace").decode()
        return f"\033[{_STYLES[style]}m{text}\033[0m" if self.colour and style else text


_ASCII = str.maketrans({"✓": "+", "✗": "x", "─": "-", "…": "~"})
_STYLES = {"title": "1", "dim": "2", "right": "32", "wrong": "31", "error": "33"}


def numbers(array: Any, width: int = 10**6) -> str:
    """Return a (nested) list with 4 digits to each number, cut after a whole number to fit the width.

    >>> numbers([[1.0, 0.25], [1 / 3, 2.0]])
    '[[1, 0.25], [0.3333, 2]]'
    >>> numbers([1.0, 2.0, 3.0, 4.0], 10)
    '[1, 2, …'
    """
    text = _brackets(np.asarray(array).tolist())
    if len(text) <= width:
        return text
    kept = text[: width - 1]  # the cut marker needs one column
    return kept[: kept.rfind(" ") + 1] + "…"


def _brackets(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_brackets, value)) + "]"
    return f"{0.0 if abs(value) < 5e-9 else value:.4g}"  # finite differences leave dust where the slope is zero


def recorded() -> dict[str, Any]:
    """Return what PyTorch did with each program, from the recording."""
    record: dict[str, Any] = json.loads(_RECORD.read_text(encoding="utf-8"))
    return record


_UNRECORDED = {"outcome": "unrecorded"}


def torch_in_short(entry: dict[str, Any], width: int) -> tuple[str, str]:
    """Return PyTorch's outcome as a cell of the table, and its style."""
    match entry["outcome"]:
        case "right":
            return "right", "right"
        case "wrong":
            return "wrong: " + numbers(entry["gradient"], width - len("wrong: ")), "wrong"
        case "error":
            return f"{entry['class']}, {entry['where']}"[:width], "error"
        case _:
            return "not recorded", "dim"


def torch_in_full(entry: dict[str, Any]) -> str:
    """Return PyTorch's outcome as a sentence."""
    if entry["outcome"] == "error":
        return f"{entry['class']} at {entry['where']}: {entry['message']}"
    if entry["outcome"] == "wrong":
        return f"{numbers(entry['gradient'])}: wrong, and no error"
    return torch_in_short(entry, 80)[0]


def print_table(verdicts: Sequence[Verdict], record: dict[str, Any], ink: Ink) -> None:
    """Print all programs: two lines each, the figures and what it is about."""
    width = min(100, max(80, shutil.get_terminal_size((100, 24)).columns - 1))
    name_width, torch_width = max(len(verdict.program.name) for verdict in verdicts), 24
    cell = (width - 3 - name_width - torch_width - 3 * 2) // 2
    row = f"{{:{name_width}}}  {{:{cell}}}  {{:{cell}}}  "
    rule = ink("─" * width, "dim")
    judge_title = "finite differences" if cell >= 18 else "finite diff."

    print(ink(f"{len(verdicts)} programs that mutate, differentiated as they ran", "title"))
    print()
    print("   " + ink(row.format("program", "mutagrad", judge_title) + f"PyTorch {record['torch']}", "title"))
    print(rule)
    for verdict in verdicts:
        name = verdict.program.name
        got = numbers(verdict.gradient, cell) if verdict.gradient is not None else "error"
        does, style = torch_in_short(record["programs"].get(name, _UNRECORDED), torch_width)
        line = row.format(name, got, numbers(verdict.expected, cell))
        print(f" {_mark(verdict, ink)} {ink(line)}{ink(does, style)}")
        print("     " + ink(textwrap.shorten(verdict.program.summary, width - 5, placeholder=" …"), "dim"))
        if not verdict.right:
            print("     " + ink(textwrap.shorten(verdict.trouble, width - 5, placeholder=" …"), "wrong"))
    print(rule)
    print(ink("In full: mutagrad tour --only NAME. The program: mutagrad tour --source NAME.\n", "dim"))


def print_details(verdicts: Sequence[Verdict], record: dict[str, Any], ink: Ink) -> None:
    """Print a few programs: everything there is to say about each."""
    for verdict in verdicts:
        entry = record["programs"].get(verdict.program.name, _UNRECORDED)
        print(f"{_mark(verdict, ink)} {ink(verdict.program.name, 'title')}")
        print(ink(f"  {verdict.program.summary}\n", "dim"))
        facts = {
            "mutagrad": numbers(verdict.gradient) if verdict.gradient is not None else "no gradient",
            "finite differences": numbers(verdict.expected),
            "verdict": verdict.trouble or f"right to {verdict.deviation:.0e} of the largest entry",
            f"PyTorch {record['torch']}": torch_in_full(entry),
        }
        for label, text in facts.items():
            print(ink(textwrap.fill(text, 96, initial_indent=f"  {label:18}  ", subsequent_indent=" " * 22)))
        print()


def _mark(verdict: Verdict, ink: Ink) -> str:
    return ink("✓", "right") if verdict.right else ink("✗", "wrong")


def print_summary(verdicts: Sequence[Verdict], record: dict[str, Any], ink: Ink) -> None:
    """Print how many are right, here and there."""
    right, worst = sum(verdict.right for verdict in verdicts), max(verdict.deviation for verdict in verdicts)
    outcomes = [record["programs"].get(verdict.program.name, _UNRECORDED)["outcome"] for verdict in verdicts]
    if right == len(verdicts):
        text, style = f"{right} of {right} right, none further than {worst:.0e} from finite differences.", "right"
    else:
        text, style = f"{right} of {len(verdicts)} right.", "wrong"
    print(ink(f"mutagrad: {text}", style))
    print(f"PyTorch {record['torch']}: {_counts(outcomes)}.")


def _counts(outcomes: list[str]) -> str:
    """
    >>> _counts(["right", "error", "error"])
    '1 right, 2 errors'
    """
    errors = "error" if outcomes.count("error") == 1 else "errors"
    names = {"right": "right", "wrong": "silently wrong", "error": errors, "unrecorded": "not recorded"}
    return ", ".join(f"{outcomes.count(kind)} {name}" for kind, name in names.items() if kind in outcomes)


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `mutagrad tour`."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--list", action="store_true", help="name the programs, and run none")
    choice.add_argument("--source", metavar="NAME", help="print a program, and run none")
    choice.add_argument("--only", metavar="NAME", action="append", help="run this one, in full (may be repeated)")


def run(options: argparse.Namespace) -> int:
    """Carry out `mutagrad tour`: 0 if every gradient is right, 1 if any is off, 2 for a name it does not know."""
    programs = {program.name: program for program in find_programs()}
    wanted = options.only or ([options.source] if options.source is not None else list(programs))
    unknown = [name for name in wanted if name not in programs]
    if unknown:
        print(f"mutagrad tour: {_unknown(unknown[0], programs)}", file=sys.stderr)
        return 2
    if options.list:
        return _print_list(programs)
    if options.source is not None:
        return _print_source(programs[options.source])
    return _show([programs[name] for name in wanted], in_full=bool(options.only))


def _unknown(name: str, programs: dict[str, Program]) -> str:
    close = difflib.get_close_matches(name, programs, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`mutagrad tour --list` names them all"
    return f"no program is called {name!r}; {hint}"


def _print_list(programs: dict[str, Program]) -> int:
    width = max(map(len, programs))
    for name, program in programs.items():
        print(f"{name:{width}}  {program.summary}")
    return 0


def _print_source(program: Program) -> int:
    print(program.source, end="")
    return 0


def _show(programs: Sequence[Program], in_full: bool) -> int:
    ink, record = Ink.of(sys.stdout), recorded()
    verdicts = [judge(program, mutagrad) for program in programs]
    (print_details if in_full else print_table)(verdicts, record, ink)
    print_summary(verdicts, record, ink)
    return 0 if all(verdict.right for verdict in verdicts) else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour by itself: `main(["--only", "leaf_write"])`."""
    parser = argparse.ArgumentParser(prog="mutagrad tour", description=SUMMARY)
    add_arguments(parser)
    return run(parser.parse_args(argv))
