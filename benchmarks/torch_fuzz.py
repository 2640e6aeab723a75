"""How many random mutating programs does each library differentiate rightly?

    PYTHONPATH=src python benchmarks/torch_fuzz.py [300]

Needs torch and NumPy. Finite differences of the same statements on NumPy arrays are the judge (tests/fuzz/judge.py).
`other value`: already the forward differs from NumPy's, where a statement reads what it writes.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fuzz.generator import generate
from fuzz.judge import judge

COLUMNS = {"right": "right", "wrong": "wrong, silently", "diverged": "other value", "error": "error"}


def contestants():
    if find_spec("torch"):
        torch = import_module("torch")
        torch.set_num_threads(1)
        yield f"torch {torch.__version__}", torch, nullcontext
        yield "torch, allow_mutation_on_saved_tensors", torch, torch.autograd.graph.allow_mutation_on_saved_tensors
    if find_spec("mutagrad"):
        yield "mutagrad", import_module("mutagrad"), nullcontext


def verdicts(library, around, programs):
    """The first so many that finite differences can judge at all: the same ones for every library."""
    kinds = (judge(generate(seed), library, around=around).kind for seed in count())
    judged = (kind for kind in kinds if kind != "discarded")
    return Counter(next(judged) for _ in range(programs))


def main(programs=300):
    warnings.simplefilter("ignore")
    print(f"{programs} random mutating programs".ljust(42), *(title.rjust(16) for title in COLUMNS.values()))
    for name, library, around in contestants():
        counted = verdicts(library, around, programs)
        print(name.ljust(42), *(str(counted[kind]).rjust(16) for kind in COLUMNS))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
