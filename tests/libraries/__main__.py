"""Runs libraries' own tests, or scripts, with `import torch` meaning mutagrad, and writes docs/libraries.md: `make libraries`.

    make libraries ONLY="einops zuko"              # some of them
    make libraries ONLY="einops --torch"           # what failed, under PyTorch as well: what fails there is not counted
    make libraries ONLY="zuko --suites DIR"        # tests from DIR/zuko, where a repository cannot be reached
    make libraries ONLY="zuko --limit 20"          # 20 minutes for it, or for each of its parts

Each library has an environment of its own, build/libraries/NAME, without PyTorch. What was counted is kept in results.json, so
that libraries may be run one by one.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

from .table import LIBRARIES, Library

ROOT = Path(__file__).parents[2]
SCRIPTS, PLUGINS = Path(__file__).parent / "scripts", Path(__file__).parent / "plugin"
WORK, RESULTS, DOCUMENT = ROOT / "build/libraries", Path(__file__).parent / "results.json", ROOT / "docs/libraries.md"
TORCH = "torch==2.13.0"
LIMIT = 60  # minutes for a suite, or for each of its parts
GRACE = 300  # seconds for its report after that


def environment(library: Library, torch: bool) -> Path:
    """Make an environment with the library in it, and return its interpreter."""
    folder = WORK / (library.name + "-torch" * torch)
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, "numpy", "scipy", "pytest", "ml_dtypes", TORCH if torch else f"-e{ROOT}"], check=True)
        subprocess.run([*pip, "--no-deps", f"{library.name}=={library.version}", *library.needs.split()], check=True)
        (folder / "ready").touch()
    return python


def suite(library: Library, python: Path, given: Path | None) -> Path:
    """Return a folder with the tests: one that was given, the library's repository, or its archive on PyPI."""
    if given is not None and (given / library.name).exists():
        return given / library.name
    folder = WORK / f"{library.name}-{library.version}"
    if folder.exists():
        return folder if library.home else next(folder.iterdir())
    if library.home:
        for tag in (f"v{library.version}", library.version):
            if not subprocess.run(["git", "clone", "-q", "--depth", "1", "-b", tag, library.home, str(folder)]).returncode:
                return folder
        raise SystemExit(f"{library.name}: {library.home} has no tests of {library.version} that can be reached; "
                         "--suites DIR takes them from DIR")
    command = [str(python), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(WORK)]
    subprocess.run([*command, f"{library.name}=={library.version}"], check=True)
    archive = next(WORK.glob(f"{library.name.replace('-', '[-_]')}-{library.version}.tar.gz"))
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return next(folder.iterdir())


def surroundings(library: Library, python: Path) -> dict[str, str]:
    """Return the environment variables for a library's programs: ours, but for the path on which this tool itself is found."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**own, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", **library.settings}


def script(library: Library, python: Path, torch: bool, limit: int = LIMIT) -> str:
    """Run the library's script; return "" if it ended well, or why not."""
    command = [str(python), *(() if torch else ("-m", "mutagrad", "run")), str(SCRIPTS / library.script)]
    try:
        run = subprocess.run(command, cwd=WORK, timeout=limit * 60, capture_output=True, text=True,
                               env=surroundings(library, python))
    except subprocess.TimeoutExpired:
        return f"no end after {limit} min"
    said = [line for line in run.stderr.splitlines() if re.match(r"[\w.]+(Error|NotSupported|Missing\w*)\b", line)]
    return "" if not run.returncode else (said or [f"exit status {run.returncode}"])[-1]


def outcomes(library: Library, python: Path, tests: Path, torch: bool, limit: int = LIMIT) -> tuple[dict[str, str], bool]:
    """Run the suite, under PyTorch what of it failed; return for each test "" if it passed, "skipped", or why it failed.

    And whether it ended within the limit: if not, these are the tests that did.
    """
    found, whole = {}, True
    for number, part in enumerate(library.tests.split("|")):
        ended_in_part, in_time = outcomes_of_part(library, python, tests, torch, number, part.split(), limit)
        found, whole = found | ended_in_part, whole and in_time
    return found, whole


def outcomes_of_part(library: Library, python: Path, tests: Path, torch: bool, number: int,
                     part: list[str], limit: int) -> tuple[dict[str, str], bool]:
    """The same for one part. Each has a cache of its own, so that pytest knows what of this one has failed, or that nothing has."""
    report = WORK / f"{library.name}-{number}{'-torch' * torch}.xml"
    report.unlink(missing_ok=True)
    cache = WORK / f"{library.name}-{number}.cache"
    run = [str(python), "-m", *(["pytest", "--last-failed", "--last-failed-no-failures=none"] if torch else ["mutagrad", "run", "-m", "pytest"])]
    run += ["-q", "-o", f"cache_dir={cache}", "-p", "no:warnings", "-p", "same_draws", "--tb=short",
            f"--junitxml={report}"]
    whole = ended([*run, *part], limit * 60, cwd=tests, env={**surroundings(library, python), "PYTHONPATH": str(PLUGINS)})
    found = {}
    if not report.exists():  # it was killed, or could not begin
        return {}, False
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [part for part in case if part.tag in ("failure", "error")]
        why = re.sub(r"/\S+", "…", (wrong[0].get("message") or "?").splitlines()[0]) if wrong else ""  # paths say nothing elsewhere
        name = f"{case.get('classname')}.{case.get('name')}"
        found[name] = why or found.get(name) or ("skipped" if case.find("skipped") is not None else "")
    if not torch:
        remember_failures(cache / "v/cache", found)
    return found, whole


def remember_failures(cache: Path, found: dict[str, str]) -> None:
    """Tell pytest's cache what has failed: by itself it forgets tests of which a subtest failed."""
    known = json.loads((cache / "nodeids").read_text())
    failed = {name for name, why in found.items() if why not in ("", "skipped")}
    (cache / "lastfailed").write_text(json.dumps({test: True for test in known if as_reported(test) in failed}))


def as_reported(test: str) -> str:
    """Return the name that a report gives to the test of this name on the command line."""
    path, bracket, parameters = test.partition("[")
    file, *names = path.split("::")
    return ".".join([file.removesuffix(".py").replace("/", "."), *names]) + bracket + parameters


def ended(command: list[str], limit: float, **settings: Any) -> bool:
    """Run a command, and return whether it ended within so many seconds. If not, it is interrupted, so that pytest reports."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **settings) as process:
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
            return False
    return True


def counted(here: dict[str, str], there: dict[str, str] | None) -> dict[str, object]:
    """Return the figures: without what fails under PyTorch as well, if it was asked."""
    failed = {name: why for name, why in here.items() if why not in ("", "skipped")}
    if there is not None:
        failed = {name: why for name, why in failed.items() if there.get(name, "") == ""}
    return {"passed": sum(why == "" for why in here.values()), "failed": len(failed), "compared": there is not None,
            "skipped": sum(why == "skipped" for why in here.values()),
            "reasons": Counter(why[:110] for why in failed.values()).most_common(3)}


def run_script(library: Library, python: Path, given: argparse.Namespace) -> dict[str, object]:
    """Return why the script failed, "" if it did not, and whether its numbers were seen to be PyTorch's."""
    why = script(library, python, False, given.limit)
    return {"failed": why, "compared": given.torch and not script(library, environment(library, True), True, given.limit)}


def run_suite(library: Library, python: Path, given: argparse.Namespace) -> dict[str, object]:
    """Return the figures of the library's tests."""
    tests = suite(library, python, given.suites)
    here, whole = outcomes(library, python, tests, False, given.limit)
    if not here:
        raise SystemExit(f"{library.name}: no tests ran in {tests}; its row is as before")
    failed = any(why not in ("", "skipped") for why in here.values())
    there = outcomes(library, environment(library, True), tests, True, given.limit)[0] if given.torch and failed else {}
    return {"whole": whole, "minutes": given.limit, **counted(here, there if given.torch else None)}


def ran(row: dict[str, object]) -> str:
    return f"{'fails' if row['failed'] else 'runs'} its script{'' if row['compared'] else ' *'}"


def document(results: dict[str, dict[str, object]]) -> str:
    rows = []
    for library in LIBRARIES:
        row = results.get(library.name)
        if row is None:
            rows.append(f"| {library.name} | {library.version} | not run yet | | | |")
            continue
        if library.script:
            rows.append(f"| {library.name} | {row['version']} | {ran(row)} | | | {row['failed']} |")
            continue
        passed, failed = int(str(row["passed"])), int(str(row["failed"]))
        share = passed / max(passed + failed, 1)
        reasons = "; ".join(f"{count} × `{why.replace('|', '/').replace('`', '')}`" for why, count in row["reasons"])  # type: ignore[attr-defined]
        note = "" if row.get("whole", True) else f" in {row.get('minutes', LIMIT)} min"
        rows.append(f"| {library.name} | {row['version']} | {passed:,}{'' if row['compared'] else ' *'}{note} | {failed:,} | "
                    f"{share:.1%} of {library.bar:.0%} | {reasons} |")
    return HEAD + "\n".join(rows) + "\n"


HEAD = """# Libraries

Libraries that are written for PyTorch, and their own tests with `import torch` meaning mutagrad. `make libraries` runs them, each
in an environment of its own without PyTorch, and writes this page. What fails here is run under PyTorch 2.13, too, and is not
counted if it fails there; a star says that this was not asked. Each test starts from the same seeds under both. A suite that takes
longer than an hour, or each part of it, is stopped then, and its row, which says so, counts the tests that had ended. A library
with a script has no tests here, but runs [a program](../tests/libraries/scripts) that trains something, and fails unless its losses
are those of PyTorch for the same seed.

| library | version | passed | failed | share, of the bar | most frequent reasons |
|---|---|--:|--:|--:|---|
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make libraries", description="Run libraries' own tests with torch meaning mutagrad.")
    parser.add_argument("names", nargs="*", help="libraries; all of them if none is named")
    parser.add_argument("--torch", action="store_true", help="run what failed under PyTorch, too, and do not count what fails there")
    parser.add_argument("--suites", type=Path, help="a folder that has tests, each in a folder of its library's name")
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="MINUTES", help=f"for a suite, or each of its parts; {LIMIT} if not given")
    given = parser.parse_args()
    unknown = set(given.names) - {library.name for library in LIBRARIES}
    if unknown:
        parser.error(f"no such library: {', '.join(sorted(unknown))}")
    WORK.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and what they start, ignore it
    for library in LIBRARIES:
        if given.names and library.name not in given.names:
            continue
        python = environment(library, False)
        found = run_script if library.script else run_suite
        row = {"version": library.version, **found(library, python, given)}
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}  # another run may have written meanwhile
        results[library.name] = row
        print(library.name, results[library.name], flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        DOCUMENT.write_text(document(results), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
