"""Every script in examples/training learns something within a few steps; `make examples` runs them in full."""
from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRAINING = ROOT / "examples" / "training"
SCRIPTS = sorted(p.stem for p in TRAINING.glob("*.py") if p.stem != "common")
STEPS = {"ctc": 12, "digits_cnn": 30, "digits_mlp": 40, "dtw": 6, "gpt": 10, "lstm": 20, "policy_gradient": 10, "rnn_document": 15, "vae": 40, "wave": 10}
NEEDS = dict.fromkeys(("digits_cnn", "digits_mlp", "vae"), "sklearn")
RUN = "import importlib, json, sys; print(json.dumps(importlib.import_module(sys.argv[1]).main(sys.argv[2:])))"


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script's main in a process of its own, with one thread, since others may be using the cores."""
    command = [sys.executable, "-W", "error", "-c", RUN, name, *arguments]
    return subprocess.run(command, cwd=TRAINING, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120)


def missing(library: str) -> bool:
    return importlib.util.find_spec(library) is None


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_learns(name: str) -> None:
    if name in NEEDS and missing(NEEDS[name]):
        pytest.skip(f"{NEEDS[name]} is not installed; the extra `examples` has it")
    done = run(name, "--steps", str(STEPS[name]), "--no-plot")
    assert done.returncode == 0, done.stderr
    history = json.loads(done.stdout.splitlines()[-1])
    assert len(history) == STEPS[name]
    few = max(1, len(history) // 4)
    before, after = sum(history[:few]), sum(history[-few:])
    if name == "policy_gradient":
        before, after = after, before  # lengths of episodes, which grow
    assert after < 0.95 * before


def test_a_plot_is_saved_or_the_way_to_get_it_is_said(tmp_path: Path) -> None:
    done = run("wave", "--steps", "1", "--out", str(tmp_path / "plots"))
    assert done.returncode == 0, done.stderr
    if missing("matplotlib"):
        assert "pip install matplotlib" in done.stdout
    else:
        assert (tmp_path / "plots" / "wave.png").stat().st_size > 1000


def test_a_full_run_that_misses_its_goal_is_an_error() -> None:
    program = "from common import finish, options; finish(options('', [*'{}'.split()], steps=5), 'loss', 2.0, at_most=1.0)"
    full, short = (subprocess.run([sys.executable, "-c", program.format(given)], cwd=TRAINING, capture_output=True, text=True) for given in ("", "--steps 4"))
    assert full.returncode == 1 and "missed the goal: loss should be at most 1.0" in full.stderr
    assert short.returncode == 0 and short.stdout == "loss: 2\n"


def test_the_readme_names_every_script_and_its_pictures_are_small() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [name for name in SCRIPTS if f"training/{name}.py" not in text] == []
    targets = re.findall(r"\]\(([^)\s#]+)\)", text)
    assert [t for t in targets if not (ROOT / "examples" / t).exists()] == []
    pictures = [t for t in targets if t.endswith(".png")]
    assert pictures and max((ROOT / "examples" / p).stat().st_size for p in pictures) < 60_000
