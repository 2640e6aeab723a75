"""Single calls of the public API against PyTorch: `make bench-calls`.

    python benchmarks/calls.py                          # every row, about five minutes
    python benchmarks/calls.py --quick                  # one turn each, for a first look
    python benchmarks/calls.py --family sorting --family linalg
    python benchmarks/calls.py conv2d "x.cumsum"        # rows whose text contains one of these
    python benchmarks/calls.py --json calls.json

The rows are the lines of `call_table.py`. Each library has a process of its own for the whole run (`worker.py`) and they
take turns, as in `bench.py`: the figure is the least of several samples of some 12 ms. The environment is inherited, so
that a variable that chooses how mutagrad computes is heeded.

Before a row is timed both libraries' results are compared, all elements, with their shapes and types: a row whose
results differ is an error, not a figure. Calls that draw random numbers are compared by shape and type alone.

What is printed last is the geometric mean of the ratios, by family and in all, and how many rows are beyond 1, 2, 3 and
5. As there, ratios mean nothing while other programs use the machine; a row during which they did is measured once more.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from bench import OURS, QUIET, THEIRS, Result, Worker, amount, machine, our_seconds, paint, undisturbed
from call_table import CALLS, ROWS, Call

SAMPLE_S = 0.012
ROUNDS, LEAST_ROUNDS, ROW_S = 5, 2, 0.3
LIMITS = 1, 2, 3, 5
# Of the root mean square and of each element; sums of a thousand products round differently in either library.
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float64": 1e-8, "complex128": 1e-8, "float": 1e-3}
TOLERANCE_SINGLE = 1e-3

# -------------------------------------------------------------------------------------- measuring


def measured(rows: list[Call], threads: int, rounds: int) -> Iterator[Result]:
    with TemporaryDirectory() as folder, Worker(OURS, threads, "call_table") as ours, Worker(THEIRS, threads, "call_table") as theirs:
        workers = {OURS: ours, THEIRS: theirs}
        for row in rows:
            attempt = partial(compare, row, workers, Path(folder), rounds)
            yield undisturbed(attempt, lambda: our_seconds() + ours.seconds() + theirs.seconds())


def compare(row: Call, workers: dict[str, Worker], folder: Path, rounds: int) -> Result:
    """The least time of each library, if they compute the same."""
    least = dict.fromkeys(workers, math.inf)
    error = difference(row, workers, folder)
    start = perf_counter()
    for done in range(0 if error else rounds):
        if done >= LEAST_ROUNDS and perf_counter() - start > ROW_S:
            break
        for library, worker in workers.items():
            answer = worker.ask("seconds", row.name, SAMPLE_S)
            least[library] = min(least[library], answer.get("value", math.inf))
    return Result(row.name, row.name, row.family, least[OURS], least[THEIRS], None, error)


def difference(row: Call, workers: dict[str, Worker], folder: Path) -> str:
    """What is different between the results of the first runs; nothing if they are equal."""
    results = []
    for library, worker in workers.items():
        path = folder / f"{library}.npz"
        answer = worker.ask("save", row.name, str(path))
        if "error" in answer:
            return f"{library}: {answer['error']}"
        with np.load(path) as file:
            results.append(dict(file))
    ours, theirs = results
    if list(ours) != list(theirs):
        return f"{list(ours)} instead of {list(theirs)}"
    return next(filter(None, (unlike(ours[key], theirs[key], key, row.compared) for key in ours)), "")


def unlike(a: np.ndarray, b: np.ndarray, key: str, by_value: bool) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    if not by_value or not a.size:
        return ""
    if a.dtype.kind in "biu":
        count = int((a != b).sum())
    else:
        tolerance = TOLERANCE.get(key.split()[1], TOLERANCE_SINGLE)
        finite = b[np.isfinite(b)].astype(np.complex128 if b.dtype.kind == "c" else np.float64)
        spread = np.sqrt(np.mean(np.abs(finite) ** 2)) if finite.size else 0.0
        count = int((~np.isclose(a, b, rtol=tolerance, atol=tolerance * spread, equal_nan=True)).sum())
    return f"result {key}: {count:,} of {a.size:,} elements differ" if count else ""


# ---------------------------------------------------------------------------------------- printing


def shown(results: Iterator[Result]) -> Iterator[Result]:
    """Print each result as it comes."""
    family = None
    for r in results:
        if r.group != family:
            family = r.group
            print(f"\n{paint(family, '1')}")
        line = f"{r.name:84} {amount(r.mutagrad, ''):>9} {amount(r.torch, ''):>9} {ratio(r)}"
        print(paint(line, "31" if r.error or r.ratio > 3 else "32" if r.ratio <= 1 else "0"), flush=True)
        if note := r.error or (ROWS[r.name].reason if r.ratio > 3 else ""):
            print(f"    {note}", flush=True)
        yield r


def ratio(r: Result) -> str:
    return "   error" if r.error else f"{r.ratio:8.2f}"


def summary(results: list[Result]) -> dict[str, dict[str, float]]:
    """For each family, and for all: how many rows, the geometric mean, and how many are beyond each limit."""
    good = [r for r in results if not r.error]
    families = {family: [r.ratio for r in good if r.group == family] for family in dict.fromkeys(r.group for r in good)}
    families["all"] = [r.ratio for r in good]
    return {family: figures(ratios) for family, ratios in families.items() if ratios}


def figures(ratios: list[float]) -> dict[str, float]:
    beyond = {f"> {limit}": sum(r > limit for r in ratios) for limit in LIMITS}
    return {"rows": len(ratios), "mean": math.exp(sum(map(math.log, ratios)) / len(ratios)), "<= 1": len(ratios) - beyond["> 1"]} | beyond


def print_summary(families: dict[str, dict[str, float]]) -> None:
    heads = list(next(iter(families.values())))
    print(f"\n{'':16}" + "".join(f"{head:>8}" for head in heads))
    for family, row in families.items():
        line = f"{family:16}" + "".join(f"{row[head]:8.2f}" if head == "mean" else f"{row[head]:8}" for head in heads)
        print(paint(line, "1" if family == "all" else "0"))


# -------------------------------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="single calls of mutagrad against PyTorch")
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="only rows whose text contains one of these")
    parser.add_argument("--family", action="append", choices=CALLS, metavar="NAME", help="only this family (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    parser.add_argument("--quick", action="store_true", help="one turn for each row")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures to FILE")
    parser.add_argument("--threads", type=int, default=2, help="threads for each library (2)")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    rows = [r for r in ROWS.values() if r.family in (args.family or CALLS) and (not args.texts or any(t in r.name for t in args.texts))]
    if args.list:
        print("\n".join(f"{r.family:16} {r.name}" for r in rows))
        return 0
    if not rows:
        sys.exit("no row is called so; --list names them")
    where = machine(args.threads)
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    start = perf_counter()
    results = list(shown(measured(rows, args.threads, 1 if args.quick else ROUNDS)))
    seconds = perf_counter() - start
    families = summary(results)
    print_summary(families)
    wrong = [r.name for r in results if r.error]
    print(f"\n{len(results)} rows in {seconds:.0f} s" + (f", {len(wrong)} with an error: {', '.join(wrong)}" if wrong else ""))
    if busy := sum(r.others >= QUIET for r in results):
        print(f"{busy} rows were measured while others used more than {QUIET:.0%} of the machine: repeat it")
    if args.json:
        listed = [asdict(r) | {"ratio": r.ratio, "reason": ROWS[r.name].reason} for r in results]
        args.json.write_text(json.dumps({"machine": where, "families": families, "rows": listed}, indent=1) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
