"""The benchmarks' own tools: figures survive a cut, wrong or slow libraries get no figure, documents say what was measured."""
import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MACHINE = {"torch": "2.13.0", "threads": 2}


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmarks, for one test."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_each_row_is_in_the_file_at_once_and_a_run_goes_on_from_there(load, tmp_path):
    figures, path = load("figures"), tmp_path / "figures.json"
    first = figures.Figures(path, MACHINE)
    first.add({"name": "a", "value": 1})
    assert list(figures.read(path)[1]) == ["a"]
    first.add({"name": "b", "value": 2})
    assert list(figures.Figures(path, MACHINE, resume=True).rows) == ["a", "b"]
    assert figures.Figures(path, MACHINE).rows == {}
    assert figures.Figures(path, MACHINE | {"torch": "3"}, resume=True).rows == {}


def test_a_wrong_gradient_is_noticed(load):
    unlike, right = load("bench_peers").unlike, np.ones((100, 3), np.float32)
    wrong = right.copy()
    wrong[5] *= 1.01
    assert unlike(right * (1 + 1e-5), right) == ""
    assert unlike(wrong, right) == "3 of 300 elements of the gradient differ"
    assert "shape" in unlike(right[:50], right)
    assert unlike(right * np.nan, right)


def test_a_library_that_does_not_answer_is_given_up(load, monkeypatch, tmp_path):
    peers = load("bench_peers")
    (tmp_path / "slow.py").write_text("import time, types\nROWS = {'slow': types.SimpleNamespace(make=lambda lib: lambda: time.sleep(600))}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    worker = peers.Patient("json", 1, "slow")
    assert worker.ask("save_gradient", "other", str(tmp_path / "g.npy")) == {"absent": True}
    monkeypatch.setattr(peers, "LIMIT_S", 0.2)
    assert "no answer" in worker.ask("save_gradient", "slow", str(tmp_path / "g.npy"))["error"]
    assert worker.process.poll() is not None


def row(name, ratio, group):
    return {"name": name, "title": name, "group": group, "mutagrad": ratio, "torch": 1.0, "ratio": ratio, "target": None, "missed": False, "error": ""}


def test_the_document_says_who_is_faster_and_leaves_out_what_was_not_measured(load):
    document = load("document")
    fast = MACHINE, {"small_mul": row("small_mul", 0.5, "Small ops: x"), "large": row("large", 2.0, "Large arrays: y")}
    peers = MACHINE, {"pond_80": {"name": "pond_80", "title": "pond", "seconds": {"mutagrad": 1.0, "torch": 2.0, "warp": 0.5},
                                  "notes": {"tinygrad": "no answer within 90 s"}, "error": "", "others": 0.0}}
    scale = {"nodes": {"name": "nodes", "title": "nodes", "sizes": [1, 10], "error": ""} | {key: [3.25, 4.5] for key in document.FIELDS}}
    short, long = document.document(fast, {}, ({}, {}), {}), document.document(fast, {}, peers, scale)
    assert "mutagrad is ahead in small ops (0.50); PyTorch is ahead in large arrays (2.00)" in " ".join(short.split())
    assert "Other libraries" not in short and "Very many" not in short
    flat = " ".join(long.split())
    assert "the fastest is Warp at a pond of 32 x 32 over 80 steps." in flat
    assert "| pond | 0.50 | 2 s | - | - | - | - | - | 0.25 | - |" in long
    assert "tinygrad: no answer within 90 s (a pond of 32 x 32 over 80 steps)." in flat
    assert "| nodes | 1 | 3.25 |" in long and "| 10 | 4.50 |" in long


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells how much memory a process has")
def test_what_one_item_costs(load):
    scale = load("scale")
    small, large = scale.once("views", 100), scale.once("views", 400)
    assert large["nodes"] == pytest.approx(small["nodes"], abs=0.05)
    assert large["touched"] == small["touched"] == 8
    assert small["record"] > 0 and small["backward"] > 0
