"""Runs the tests over interpreters and versions of NumPy: `make matrix`, or `make matrix ONLY="3.13 oldest"` for a part of it.

Each row has an environment of its own, `.venv-3.13-oldest` for example, in which `log.txt` says what was run and how it went.
oldest: NumPy and the extras at the lower bounds of pyproject.toml; newest: all at the newest that pip finds; alone: NumPy and
nothing else. Interpreters that are not on the PATH are named, and left out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
KINDS = ("oldest", "newest", "alone")
TESTS = ["-n", "2", "-m", "not oracle", "tests"]
DOCTESTS = ["--doctest-modules", "src/mutagrad", "--ignore=src/mutagrad/__main__.py", "--ignore-glob=*/interop/torch_*.py"]
AT_THEIR_OLDEST = ("numpy", "scipy", "ml_dtypes", "safetensors", "tqdm", "array-api-strict")
LATER = {"3.13": {"numpy": "2.1", "ml_dtypes": "0.5"}}  # the first that exist for it


def packages(version: str, kind: str) -> list[str]:
    if kind == "newest":
        return ["-e", ".[dev]"]
    if kind == "alone":
        return ["-e", ".", "pytest", "pytest-xdist"]
    bounds = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))) | LATER.get(version, {})
    return ["-e", ".", "pytest", "pytest-xdist", *(f"{name}=={bounds[name]}" for name in AT_THEIR_OLDEST)]


def interpreter(version: str) -> str | None:
    """One that runs: what is on the PATH may be a stand-in for one that is not there."""
    found = shutil.which(f"python{version}")
    return found if found and not subprocess.run([found, "-c", ""], capture_output=True).returncode else None


def run(python: str, version: str, kind: str) -> tuple[bool, str]:
    """Make the environment anew and run the tests in it; return whether they passed, and a row of the table."""
    environment = ROOT / f".venv-{version}-{kind}"
    own, started, done, outcomes = str(environment / "bin" / "python"), time.monotonic(), "", []
    steps = [[python, "-m", "venv", "--clear", str(environment)], [own, "-m", "pip", "install", "-q", *packages(version, kind)], [own, "-m", "pip", "list"],
             *([own, "-m", "pytest", "-q", *tests] for tests in (TESTS, DOCTESTS)[:1 if kind == "alone" else 2])]
    for step in steps:
        finished = subprocess.run(step, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done += f"$ {' '.join(step)}\n{finished.stdout}\n"
        (environment / "log.txt").write_text(done, encoding="utf-8")
        if step[1:3] == ["-m", "pytest"]:
            outcomes += finished.stdout.strip().splitlines()[-1:]
        if finished.returncode:
            outcomes.append(f"see {environment.name}/log.txt")
            break
    numpy = re.search(r"^numpy +(\S+)", done, re.M)
    row = f"{version:5} {kind:7} NumPy {numpy[1] if numpy else '-':6} {'; '.join(outcomes)} ({time.monotonic() - started:.0f} s with setting up)"
    return not finished.returncode, "\n    ".join([row, *re.findall(r"^(?:FAILED|ERROR) .*", done, re.M)])


def rows(only: list[str]) -> Iterator[tuple[str, str]]:
    versions = [v for v in PYTHONS if v in only] or list(PYTHONS)
    kinds = [k for k in KINDS if k in only] or list(KINDS)
    if unknown := set(only) - set(PYTHONS) - set(KINDS):
        sys.exit(f"matrix: {', '.join(sorted(unknown))}: choose among {', '.join(PYTHONS + KINDS)}")
    return ((v, k) for v in versions for k in kinds)


def main(only: list[str]) -> int:
    bad, missing = 0, set()
    for version, kind in rows(only):
        python = interpreter(version)
        if python is None:
            missing.add(version)
            continue
        passed, row = run(python, version, kind)
        bad += not passed
        print(row, flush=True)
    for version in sorted(missing):
        print(f"{version:8} not run: there is no python{version} on the PATH")
    return 1 if bad or len(missing) == len({v for v, _ in rows(only)}) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
