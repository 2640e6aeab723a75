"""`mutagrad doctor`: what it finds, in which form it says so, and that it never gets in the program's way."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from explain import kept_programs, transformed_programs
from mutagrad.explain.doctor.diagnosis import Diagnosis

START = "x = torch.ones(3, requires_grad=True)\n"
# What PyTorch 2.13 does with each was observed; tests/oracle/test_doctor.py asks it again.
PROGRAMS = {
    "leaf": ("x[0] = 5.\n(x * x).sum().backward()", "raises", "write_to_leaf", 2),
    "view of a leaf": ("x[:2].mul_(2)", "raises", "write_to_leaf", 2),
    "result overwritten": ("y = x.exp()\ny.zero_()\ny.sum().backward()", "raises", "overwritten_saved_value", 3),
    "operand overwritten": ("y = x * 1\nz = (y * y).sum()\ny[0] = 7.\nz.backward()", "raises", "overwritten_saved_value", 4),
    "other elements": ("y = x * 2\nv = y[:2]\nz = (v * v).sum()\ny[2] = 7.\nz.backward()", "raises", "overwritten_saved_value", 5),
    "through detach": ("y = x * x\nx.detach().mul_(3)\ny.sum().backward()", "raises", "overwritten_saved_value", 3),
    "through data": ("y = x * x\nx.data.mul_(3)\ny.sum().backward()", "wrong", "data_write", 3),
    "by NumPy": ("y = x * 2\na = y.detach().numpy()\nl = (y * y).sum()\na[0] = 9\nl.backward()", "wrong", "numpy_write", 3),
    "unbind": ("y = x * 1\na, b, c = y.unbind()\na.mul_(2)", "raises", "write_to_one_of_several_views", 4),
    "rows": ("y = x * 1\nfor row in y:\n    row.add_(1)", "raises", "write_to_one_of_several_views", 4),
    "no derivative": ("torch.bincount(torch.tensor([0, 2, 2]), x).sum().backward()", "raises", "no_derivative", 2),
    "stale": ("y = x * 1\na, b, c = y.unbind()\ny.mul_(2)\nz = a * 1", "raises", "stale_view", 5),
    "made in no_grad": ("y = x * 1\nwith torch.no_grad():\n    v = y[:2]\nv.mul_(2)", "raises", "write_to_view_made_in_no_grad", 5),
    "duplicates": ("y = torch.zeros(3)\ny[torch.tensor([0, 0])] = x[:2] * 2\ny.sum().backward()", "wrong", "duplicate_indices", 3),
    "a list of duplicates": ("y = torch.zeros(3)\ny[[0, 0]] += x[:2]\ny.sum().backward()", "wrong", "duplicate_indices", 3),
    "twice": ("y = x.exp()\ny.sum().backward()\ntry:\n    y.sum().backward()\nexcept RuntimeError:\n    pass", "raises", "backward_twice", 5),
    "several": ("(x * 2).backward()", "raises", "backward_of_several", 2),
    "overlap": ("y = torch.ones(4)\ny[1:] += y[:-1]", "raises", "overlapping_write", 3),
    "out": ("y = torch.empty(3)\ntorch.cos(x, out=y)", "raises", "out_argument", 3),
    "list": ("y = torch.zeros(3)\ny[:2] = [1., 2.]", "raises", "assigned_list", 3),
    "autograd.grad": ("y = x.exp()\ny.add_(1)\ntorch.autograd.grad(y.sum(), x)", "raises", "overwritten_saved_value", 3),
    "recurrence": ("y = torch.zeros(4)\nfor t in range(1, 4):\n    y[t] = y[t - 1] * x[0] + 1\ny.sum().backward()", "raises",
                   "overwritten_saved_value", 4),
    "optimizer": ("w = torch.nn.Linear(3, 3)\no = torch.optim.SGD(w.parameters(), 0.1)\nh = w(w(x)).sum()\nw.weight.grad = torch.ones(3, 3)\n"
                  "o.step()\nh.backward()", "raises", "overwritten_saved_value", 6),
    "fill": ("y = torch.zeros(3)\ny[0] = x[0]\n(y * 2).sum().backward()", "accepts", None, 0),
    "view read after the write": ("y = x * 2\nv = y[:2]\ny.add_(1)\n(v * v).sum().backward()", "accepts", None, 0),
    "sum keeps nothing": ("y = x + 1\ny.sum().backward()\ny.sum().backward()", "accepts", None, 0),
    "sin keeps its input": ("y = x * 1\nz = y.sin()\nz.add_(1)\nz.sum().backward()", "accepts", None, 0),
    "under no_grad": ("with torch.no_grad():\n    x.add_(1)\n(x * x).sum().backward()", "accepts", None, 0),
    "only one gradient wanted": ("w = torch.ones(3)\ny = x * w\nx2 = x.detach()\ny.sum().backward()", "accepts", None, 0),
    "write after backward": ("y = x * x\ny.sum().backward()\nx.data.mul_(3)", "accepts", None, 0),
    **transformed_programs.PROGRAMS,
    **kept_programs.PROGRAMS,
    "training": ("w = torch.nn.Linear(3, 1)\ntorch.nn.init.ones_(w.weight)\no = torch.optim.Adam(w.parameters())\nfor _ in range(3):\n    o.zero_grad()\n"
                 "    w(x).sum().backward()\n    o.step()", "accepts", None, 0),
}


def diagnosed(source: str, name: str = "program.py") -> Diagnosis:
    with Diagnosis() as found:
        exec(compile(source, name, "exec"), {"torch": mg})
    return found


@pytest.mark.parametrize("name", [*PROGRAMS, *kept_programs.VALUES])
def test_verdict_and_place(name: str) -> None:
    source, verdict, kind, line = (PROGRAMS | kept_programs.VALUES)[name]
    found = diagnosed(START + source)
    assert found.findings.verdict == verdict, [f.message for f in found.findings]
    if kind is not None:
        assert (kind, line) in [(f.kind, f.place[1]) for f in found.findings]
    assert not found.unknown and not found.stumbled


# Where mutagrad itself refuses what PyTorch gets wrong.
REFUSED = {
    "windows that overlap": ("h = x * 2\nu = h.unfold(0, 2, 1)\nu.mul_(3)\n(h * h).sum().backward()", "wrong", "overlapping_target", 4),
    "an expanded tensor": ("h = (x * 2).sum().expand(3)\nh.mul_(3)", "raises", "error", 3),
    "an input that is not marked": (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n        a.mul_(3)\n        return a * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 6\nh = x * 2\n(F.apply(h).sum() + (h * h).sum()).backward()",
        "wrong", "not_marked_dirty", 11),
    "what a checkpoint reads": (
        "n = torch.zeros(3)\ndef f(a):\n    n.add_(1)\n    return a * n\ny = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)\n"
        "y.sum().backward()", "wrong", "changed_before_recomputed", 7),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_mutagrad_refuses(name: str) -> None:
    source, verdict, kind, line = REFUSED[name]
    found = Diagnosis()
    with pytest.raises(mg.MutagradError), found:
        exec(compile(START + source, "program.py", "exec"), {"torch": mg})
    assert found.findings.verdict == verdict
    assert [(f.kind, f.place[1]) for f in found.findings] == [(kind, line)]


def test_a_finding_says_who_saved_what() -> None:
    found = diagnosed(START + "y = x * 1\nz = (y * y).sum()\ny[1] = 7.\nz.backward()")
    one = next(f for f in found.findings if f.kind == "overwritten_saved_value")
    assert one.saved_at == "program.py:3" and "(elements 1)" in one.message and "mul" in one.message


def test_what_a_function_keeps() -> None:
    source = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * x * scale
    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return 2 * x * scale * g, None
scale = torch.full((3,), 2.)
z = Square.apply(x * 1, scale)
scale.add_(1)
z.sum().backward()
"""
    found = diagnosed(START + source)
    assert [(f.kind, f.place[1]) for f in found.findings] == [("overwritten_saved_value", 14)]


def test_calls_on_other_threads_are_seen() -> None:
    source = "import threading\ndef work():\n    x[0] = 5.\nt = threading.Thread(target=work); t.start(); t.join()"
    assert [f.kind for f in diagnosed(START + source).findings] == ["write_to_leaf"]


def test_threads_that_share_tensors_do_not_disturb_the_books() -> None:
    source = """
import threading
y = x * 1
def work():
    for _ in range(60):
        v = y[:2]
        (v * v).sum().exp()
        y.data.mul_(1)
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
"""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        found = diagnosed(START + source)
    finally:
        sys.setswitchinterval(before)
    assert not found.stumbled and found.findings.verdict == "accepts"


def test_a_loop_of_writes_is_slow_in_pytorch() -> None:
    source = "y = torch.zeros(100)\nfor i in range(100):\n    y[i] = x[0] * i\ny.sum().backward()"
    found = diagnosed(START + source)
    assert [f.kind for f in found.findings] == ["quadratic_loop"] and found.findings.verdict == "accepts"


def test_nothing_is_left_behind() -> None:
    before = mg.Tensor.__setitem__, mg.autograd.Function.apply.__func__
    diagnosed(START)
    assert (mg.Tensor.__setitem__, mg.autograd.Function.apply.__func__) == before


# ------------------------------------------------------------------------------------------------------------ the command

def doctor(tmp_path: Path, source: str, *arguments: str, given: str = "", **settings: Any) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(source)
    command = [sys.executable, "-m", "mutagrad", "doctor", *arguments]
    command = [str(script) if part == "SCRIPT" else part for part in command]
    environment = {**os.environ, "PYTHONPATH": str(Path(mg.__file__).parents[1])}
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment, **settings)


BAD = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny += 1\nprint('loss', y.sum().item())\ny.sum().backward()\n"


def test_text(tmp_path: Path) -> None:
    found = doctor(tmp_path, BAD, "SCRIPT")
    assert found.returncode == 1 and found.stdout.startswith("loss")
    assert "script.py:4: PyTorch raises: overwritten_saved_value" in found.stdout
    assert "4 | y += 1" in found.stdout and "3 | y = x.exp()" in found.stdout and "\x1b" not in found.stdout
    assert found.stdout.rstrip().endswith("PyTorch raises an error for this program, at script.py:4.")


@pytest.mark.parametrize("arguments", [("--json", "SCRIPT"), ("SCRIPT", "--json")])
def test_json_is_all_that_stdout_has(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    found = doctor(tmp_path, BAD, *arguments)
    told = json.loads(found.stdout)
    assert told["verdict"] == "raises" and found.returncode == 1 and "loss" in found.stderr
    first = told["findings"][0]
    assert {"kind", "torch", "file", "line", "saved_at", "message", "fix"} <= set(first)
    assert (first["kind"], first["torch"], first["file"], first["line"], first["saved_at"]) == (
        "overwritten_saved_value", "raises", "script.py", 4, "script.py:3")


def test_sarif(tmp_path: Path) -> None:
    told = json.loads(doctor(tmp_path, BAD, "--sarif", "SCRIPT").stdout)
    run, = told["runs"]
    assert told["version"] == "2.1.0"
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] and result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 4


def test_findings_go_to_a_file(tmp_path: Path) -> None:
    found = doctor(tmp_path, BAD, "--json", "-o", "found.json", "SCRIPT")
    assert found.stdout.startswith("loss") and json.loads((tmp_path / "found.json").read_text())["verdict"] == "raises"


def test_fix_writes_the_file(tmp_path: Path) -> None:
    """Also what only the second look finds."""
    source = "import torch\nx = torch.ones(2, requires_grad=True)\nx[0] = 3.  # a leaf\ny = x.exp()\ny += 1\ny.sum().backward()\n"
    found = doctor(tmp_path, source, "SCRIPT", "--fix")
    assert found.returncode == 1 and "script.py is rewritten" in found.stderr
    text = (tmp_path / "script.py").read_text()
    assert "# a leaf" in text and "y = x_copy.exp().clone()" in text and "x_copy = x.clone()" in text
    assert doctor(tmp_path, text, "SCRIPT").returncode == 0


def test_gradients_that_did_not_come(tmp_path: Path) -> None:
    source = ("import torch\nv = torch.ones(2, requires_grad=True)\nw = torch.ones(2, requires_grad=True)\nm = torch.nn.Linear(2, 2)\n"
              "loss = (w * torch.zeros(2) + v.detach()).sum() + torch.relu(m(torch.ones(2)) - 100).sum()\nloss.backward()\n")
    told = {f["line"]: f["message"] for f in json.loads(doctor(tmp_path, source, "--json", "SCRIPT").stdout)["findings"]}
    assert "v has no gradient at the end: it was cut off by detach() (script.py:5)" in told[2]
    assert "the gradient of w is zero everywhere" in told[3] and "m.weight" in told[4] and "dead" in told[4]


def test_a_good_program(tmp_path: Path) -> None:
    found = doctor(tmp_path, "import torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\nprint(x.grad)", "SCRIPT")
    assert found.returncode == 0 and "PyTorch accepts this program" in found.stdout and "tensor([2., 2.])" in found.stdout


def test_arguments_are_the_programs(tmp_path: Path) -> None:
    source = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int)\np.add_argument('--json', action='store_true')\nprint(p.parse_args())"
    assert "n=4, json=False" in doctor(tmp_path, source, "SCRIPT", "--n", "4").stdout
    assert "n=4, json=True" in doctor(tmp_path, source, "SCRIPT", "--n", "4", "--", "--json").stdout


@pytest.mark.parametrize(("end", "status"), [("sys.exit(3)", 3), ("sys.exit()", 1), ("sys.exit('no')", 1), ("raise ValueError('mine')", 1), ("1 / 0", 1)])
def test_the_programs_own_end(tmp_path: Path, end: str, status: int) -> None:
    found = doctor(tmp_path, BAD + f"import sys\n{end}", "SCRIPT")
    assert found.returncode == status and "overwritten_saved_value" in found.stdout
    assert ("mine" in found.stderr) == ("mine" in end) and ("ZeroDivisionError" in found.stderr) == ("/ 0" in end)


def test_an_error_of_a_call_is_shown_and_reported(tmp_path: Path) -> None:
    found = doctor(tmp_path, "import torch\ntorch.ones(2) + torch.ones(3)", "SCRIPT")
    assert "Traceback" in found.stderr and "script.py:2: PyTorch raises: error" in found.stdout and found.returncode == 1


def test_an_error_is_told_once(tmp_path: Path) -> None:
    source = "import copy, torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp().sum()\ny.backward()\ny.backward()\n"
    told = json.loads(doctor(tmp_path, source, "--json", "SCRIPT").stdout)["findings"]
    assert [(f["kind"], f["line"]) for f in told] == [("backward_twice", 5)]
    told = json.loads(doctor(tmp_path, source.replace("y.backward()\ny.backward()", "copy.deepcopy(y)"), "--json", "SCRIPT").stdout)["findings"]
    assert [(f["kind"], f["line"]) for f in told] == [("error", 4)]


def test_a_rewrite_that_does_not_help_is_taken_back(tmp_path: Path) -> None:
    source = ("import torch\nclass Add(torch.nn.Module):\n    def forward(self, x):\n        x += 1\n        return x\n"
              "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid(), Add())\nnet(torch.ones(1, 2)).sum().backward()\n")
    found = doctor(tmp_path, source, "--fix", "SCRIPT")
    assert found.returncode == 1 and (tmp_path / "script.py").read_text().count(".clone()") <= 1


def test_stdin_and_much_output(tmp_path: Path) -> None:
    found = doctor(tmp_path, "import torch\nprint(input() * 1_000_000)\n" + BAD, "--json", "SCRIPT", given="ab")
    assert json.loads(found.stdout)["verdict"] == "raises" and found.stderr.startswith("ab" * 1000)


def test_a_program_that_is_terminated(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(BAD + "print('ready', flush=True)\nimport time\nwhile True:\n    time.sleep(0.01)\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(mg.__file__).parents[1])}
    command = [sys.executable, "-m", "mutagrad", "doctor", "script.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 128 + signal.SIGTERM and "overwritten_saved_value" in rest


def test_help_is_about_doctor(tmp_path: Path) -> None:
    said = doctor(tmp_path, "", "--help").stdout
    assert said.startswith("usage: mutagrad doctor [--json") and "Run a PyTorch program" in said and "--once" not in said


def test_fix_of_a_module_and_of_a_program_that_ends_without_a_report(tmp_path: Path) -> None:
    ends = "import os, sys\nif os.path.exists('seen'):\n    os._exit(0)\nopen('seen', 'w').close()\n"
    for source, how in ((BAD, ("-m", "script")), (BAD + ends, ("SCRIPT",))):
        found = doctor(tmp_path, source, "--fix", *how)
        assert found.returncode == 1 and "Traceback" not in found.stderr, found.stderr
        assert "y = x.exp().clone()" in (tmp_path / "script.py").read_text()


def test_no_script(tmp_path: Path) -> None:
    assert doctor(tmp_path, "", "nowhere.py").returncode == 2
    assert doctor(tmp_path, "").returncode == 2
