"""What doctor says: for people, in colour where there is a terminal; as JSON for tools; as SARIF for editors."""
from __future__ import annotations

import json
import linecache
import os
from io import StringIO
from typing import Any, TextIO

from .diagnosis import Diagnosis
from .findings import FINE, KINDS, RAISES, SLOW, WRONG, Finding
from .fixes import propose

COLOURS = {RAISES: "31", WRONG: "35", SLOW: "33", FINE: "36"}
VERDICTS = {RAISES: "PyTorch raises an error for this program",
            WRONG: "PyTorch accepts this program, and its gradients or values are wrong",
            "accepts": "PyTorch accepts this program"}
LEVELS = {RAISES: "error", WRONG: "error", SLOW: "warning", FINE: "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class doctor(Diagnosis):
    """What PyTorch would reject or get wrong in a block: `with mutagrad.doctor() as found: ...; print(found)`.

    >>> import mutagrad as mg
    >>> x = mg.ones(3, requires_grad=True)
    >>> with mg.doctor() as found:
    ...     y = x.exp()
    ...     y[0] = 0.
    ...     y.sum().backward()
    >>> "PyTorch raises" in str(found)
    True
    """

    def __str__(self) -> str:
        propose(self.findings)
        text = StringIO()
        Text(text).report(self)
        return text.getvalue().strip()


def as_json(diagnosis: Diagnosis) -> str:
    """Return the findings for tools."""
    found = diagnosis.findings
    return json.dumps({"verdict": found.verdict, "findings": [finding.as_dict() for finding in found]}, indent=2)


# ----------------------------------------------------------------------------------------------------------- for people

def _how_far(diagnosis: Diagnosis, verdict: str) -> str:
    """Say that a program which was accepted was not seen to its end."""
    stopped = next((found for found in diagnosis.findings if found.kind == "not_supported"), None)
    return "" if stopped is None or verdict != "accepts" else ", as far as it ran: up to {}:{}".format(*stopped.place)


class Text:
    """Writes findings to a stream, in colour if it is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.coloured = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.coloured else text

    def write(self, *lines: str) -> None:
        self.stream.write("".join(f"{line}\n" for line in lines))

    def report(self, diagnosis: Diagnosis) -> None:
        """Write all: the findings, what was not looked at, and the verdict."""
        self.write("", self.paint("1", "mutagrad doctor"))
        for finding in diagnosis.findings:
            self.finding(finding)
        if diagnosis.unknown:
            names = ", ".join(sorted(diagnosis.unknown)[:8])
            self.write("", f"  not known: what PyTorch keeps for backward of {names}")
        for one in diagnosis.stumbled[:3]:
            self.write("", f"  doctor itself could not follow a call: {one}")
        verdict = diagnosis.findings.verdict
        colour = COLOURS.get(verdict, "32")
        self.write("", self.paint(f"1;{colour}", f"{VERDICTS[verdict]}{self._first(diagnosis, verdict)}"
                                                 f"{_how_far(diagnosis, verdict)}."))

    def _first(self, diagnosis: Diagnosis, verdict: str) -> str:
        first = next((finding for finding in diagnosis.findings if finding.torch == verdict), None)
        return "" if first is None else ", at {}:{}".format(*first.place)

    def finding(self, finding: Finding) -> None:
        file, line = finding.place
        times = f" ({finding.count} times)" if finding.count > 1 else ""
        label = "note" if finding.torch == FINE else f"PyTorch {finding.torch}"
        label = self.paint(f"1;{COLOURS[finding.torch]}", label)
        self.write("", f"{self.paint('1', f'{file}:{line}')}: {label}: {finding.kind}{times}")
        self._source("", finding.where[0].co_filename, line)
        if finding.saved_where is not None:
            saved_file, saved_line = finding.saved_at.rsplit(":", 1)  # type: ignore[union-attr]
            if (saved_file, int(saved_line)) != (file, line):
                self._source(f"{saved_file}:", finding.saved_where[0].co_filename, int(saved_line))
        self.write(f"  {finding.message}")
        if finding.diff:
            self.write("  for PyTorch:", *(self._diff_line(one) for one in finding.diff.splitlines()))
        elif finding.advice:
            self.write(f"  for PyTorch: {finding.advice}" if finding.torch != FINE else f"  {finding.advice}")

    def _source(self, place: str, filename: str, line: int) -> None:
        text = linecache.getline(filename, line).rstrip()
        if text:
            self.write(f"  {place}{line:>5} | {text}")

    def _diff_line(self, line: str) -> str:
        return "    " + self.paint({"+": "32", "-": "31"}.get(line[:1], "0"), line)


# ---------------------------------------------------------------------------------------------------------------- SARIF

def as_sarif(diagnosis: Diagnosis) -> str:
    """Return the findings as a SARIF log, which editors and code hosts show beside the lines."""
    used = sorted({finding.kind for finding in diagnosis.findings})
    rules = [{"id": kind, "shortDescription": {"text": kind.replace("_", " ")},
              "defaultConfiguration": {"level": LEVELS[KINDS[kind].torch]}} for kind in used]
    driver = {"name": "mutagrad doctor", "rules": rules}
    results = [_result(finding, used) for finding in diagnosis.findings]
    run = {"tool": {"driver": driver}, "results": results, "properties": {"verdict": diagnosis.findings.verdict}}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding, used: list[str]) -> dict[str, Any]:
    fix = f"\n{finding.diff or finding.advice}" if finding.diff or finding.advice else ""
    found = {"ruleId": finding.kind, "ruleIndex": used.index(finding.kind), "level": LEVELS[finding.torch],
             "message": {"text": f"{finding.message}{fix}"}, "locations": [_location(*finding.place)]}
    if finding.saved_at is not None:
        file, _, line = finding.saved_at.rpartition(":")
        found["relatedLocations"] = [{**_location(file, int(line)), "message": {"text": "kept for backward here"}}]
    return found


def _location(file: str, line: int) -> dict[str, Any]:
    uri = file.replace(os.sep, "/")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
