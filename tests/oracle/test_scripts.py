"""Ordinary PyTorch programs, unchanged, under PyTorch and under `mutagrad run`: the losses are the same."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="compares with PyTorch")
pytestmark = pytest.mark.oracle

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "scripts").glob("*.py"))
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01, "weight_decay": 0.1},
    "RMSprop": {"lr": 0.003, "momentum": 0.5},
    "Adagrad": {"lr": 0.05},
    "NAdam": {"lr": 0.01},
    "Adadelta": {"lr": 1.0},
}


def losses(command: list[str], script: Path, file: Path, *more: str) -> Any:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, *command, str(script), str(file), "--optimizers", json.dumps(OPTIMIZERS), *more], capture_output=True, text=True,
                          env=environment)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_losses_are_the_same(script: Path, tmp_path: Path) -> None:
    file = tmp_path / "initial.npz"
    ours = losses(["-m", "mutagrad", "run"], script, file, "--prepare")
    theirs = losses([], script, file)
    for name in OPTIMIZERS:
        assert len(ours[name]) >= 20
        np.testing.assert_allclose(ours[name], theirs[name], 2e-4, 1e-5, err_msg=name)
        assert ours[name][19] < ours[name][0], name


def test_pytorch_itself_is_not_touched() -> None:
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    with mg.as_torch():
        import torch as inside
        import torch.nn.functional as F
        assert inside.Tensor is mg.Tensor and F is mg.nn.functional
    import torch as outside
    import torch.nn.functional as theirs
    assert outside is torch and theirs is torch.nn.functional is not F
    assert {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"} == before


def test_pytorch_is_not_imported_by_a_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys, torch.nn\nprint(torch.__version__, [m for m in sys.modules if 'torch._C' in m])\n")
    done = subprocess.run([sys.executable, "-m", "mutagrad", "run", str(program)], capture_output=True, text=True)
    assert done.stdout == "2.13.0+mutagrad []\n", done.stderr
