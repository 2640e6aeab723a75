"""The long form: it goes on where it stopped, tells what it has done, and keeps what failed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mutagrad
from mutagrad.core.op import TABLE

from . import soak

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def command(tmp_path):
    """Starts it on one worker, with all that it writes in a folder of the test's."""
    def start(*arguments):
        paths = [str(TESTS), str(Path(mutagrad.__file__).parents[1])]
        return subprocess.Popen(
            [sys.executable, "-m", "fuzz.soak", "--workers", "1", "--state", str(tmp_path / "state.json"), "--failures", str(tmp_path / "failures"), *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return start


def test_it_stops_and_goes_on(command, tmp_path):
    state = tmp_path / "state.json"
    first = command("--every", "1")
    end = time.monotonic() + 120
    while not state.exists() and time.monotonic() < end:
        time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    told, _ = first.communicate(timeout=240)
    assert first.returncode == 130 and "the same command goes on from here" in told, told
    done = json.loads(state.read_text())
    assert done["done"] + len(done["beyond"]) >= 1
    second = command("--programs", "1")  # which there are by now
    told, _ = second.communicate(timeout=240)
    assert re.search(r"going on after [\d,]+ programs", told), told
    assert re.search(r"[\d,]+ of 1 programs, .* a second, .* \d+ failed", told), told


def test_the_state_is_kept(tmp_path):
    state = soak.State(tmp_path / "state.json", 7)
    for number in (0, 1, 3):
        state.add(number, soak.Result("core order 1", soak.Counter(right=49, wrong=1), {}))
    state.save()
    again = soak.State.load(state.path, 7, False)
    assert (again.done, again.beyond, again.programs, again.failures) == (2, {3}, 150, {"core order 1: wrong": 3})
    numbers = again.left()
    assert [next(numbers) for _ in range(3)] == [2, 4, 5]
    assert soak.State.load(state.path, 8, fresh=True).programs == 0
    with pytest.raises(SystemExit, match="is of seed 7"):
        soak.State.load(state.path, 8, fresh=False)


def test_failures_are_made_small_and_written(monkeypatch, tmp_path):
    op = TABLE["sin"]
    right = op.reverse
    monkeypatch.setattr(op, "reverse", lambda xp, g, saved, inputs: tuple(1.01 * gx for gx in right(xp, g, saved, inputs)))
    result = soak.judged(soak.Job(1), range(60, 70))
    assert result.counts["wrong"] and result.counts["right"] and 1 <= len(result.reports) <= soak.REPORTS
    soak.kept(result.reports, tmp_path / "failures")
    texts = [path.read_text() for path in (tmp_path / "failures").iterdir()]
    assert len(texts) == len(result.reports) and all("smallest that fails" in text and "expected" in text for text in texts)


def test_stress_cases_are_found_and_called(monkeypatch):
    names = [job.module for job in soak.stress_jobs()]
    assert {"stress.test_modes", "stress.test_interrupts"} <= set(names)
    module = __import__("stress.test_modes", fromlist=["run"])
    called = []
    monkeypatch.setattr(module, "run", called.append)
    assert soak.called(soak.Job(1, module="stress.test_modes"), 5).counts == {"right": 1} and called == [5]
    monkeypatch.setattr(module, "run", lambda seed: 1 // 0)
    failed = soak.called(soak.Job(1, module="stress.test_modes"), 5)
    assert failed.counts == {"failed": 1} and "ZeroDivisionError" in next(iter(failed.reports.values()))


def test_a_chunk_is_always_the_same():
    jobs = [soak.Job(1), soak.Job(1, ("aliases",))]
    assert soak.work(3, 4, jobs)[:2] == soak.work(3, 4, jobs)[:2]


def test_every_kind_of_chunk_runs():
    """On a program or two."""
    for job in soak.JOBS:
        if not job.module:
            assert sum(soak.judged(job, range(5_000_000, 5_000_001)).counts.values()) == 1, job


def test_a_process_that_dies_is_found(tmp_path):
    """By looking at the chunks that were at work one by one."""
    options = soak.parsed(["--state", str(tmp_path / "state.json"), "--failures", str(tmp_path / "failures")])
    running = soak.Soak(soak.State(options.state), options.failures, options)
    running.broken([4, 2])
    assert running.suspects == [2, 4]
    running.finish(2, soak.Result("core order 1", soak.Counter(right=50), {}))
    running.broken([4])
    assert running.suspects == [] and running.state.failures == {"chunk 4: crashed": 1} and list((tmp_path / "failures").iterdir())
