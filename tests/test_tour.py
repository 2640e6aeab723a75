"""The tour passes, and it is able to fail."""
import dataclasses
import doctest
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mutagrad
from mutagrad import cli, tour

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples" / "mutation").glob("*.py"))
PROGRAMS = tour.find_programs()
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


def run_python(*arguments, stdout=subprocess.PIPE, encoding="utf-8"):
    """Run this interpreter on the package under test, wherever it was imported from."""
    path = os.pathsep.join([str(Path(mutagrad.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": encoding}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, stdout=stdout, stderr=subprocess.PIPE, encoding=encoding)


# It passes


@each_program
def test_gradient_is_right(program):
    verdict = tour.judge(program, mutagrad)
    assert verdict.right, verdict.trouble


def test_tour_exits_0_and_shows_every_program(capsys):
    assert cli.main(["tour"]) == 0
    shown = capsys.readouterr().out
    assert f"mutagrad: {len(PROGRAMS)} of {len(PROGRAMS)} right, " in shown
    for program in PROGRAMS:
        assert program.name in shown
        assert program.summary in shown
    assert "not recorded" not in shown


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_table_fits_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    cli.main(["tour"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= min(100, max(80, columns))


def test_only_shows_one_in_full(capsys):
    assert cli.main(["tour", "--only", "leaf_write"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("[0, 4, 6]") == 2
    assert "RuntimeError at line 7" in shown
    assert "saved_value" not in shown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_alone(path):
    done = run_python(str(path))
    assert done.returncode == 0, done.stderr
    assert "loss = " in done.stdout and "x.grad = " in done.stdout


def test_programs_of_the_tour_are_the_examples():
    assert sorted(program.name for program in PROGRAMS) == [path.stem for path in EXAMPLES]


# It can fail


def spoil(monkeypatch, change, name="leaf_write"):
    """Put one program in the tour whose loss is changed."""
    program = next(program for program in PROGRAMS if program.name == name)
    spoiled = dataclasses.replace(program, run=lambda mg, x: change(program.run(mg, x), x))
    monkeypatch.setattr(tour, "find_programs", lambda: [spoiled, *PROGRAMS[1:3]])


SPOILED = {
    "wrong gradient of the right loss": lambda loss, x: 2.0 * loss - loss.detach(),
    "gradient wrong in the fourth digit": lambda loss, x: 1.0001 * loss - 0.0001 * loss.detach(),
    "wrong loss with the right gradient": lambda loss, x: loss + 1.0,
    "no gradient": lambda loss, x: mutagrad.ones(1, dtype=mutagrad.float64, requires_grad=True).sum(),
    "NaN": lambda loss, x: loss * float("nan"),
    "an error": lambda loss, x: loss.no_such_method(),
}


@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED.keys())
@pytest.mark.parametrize("arguments", [[], ["--only", "leaf_write"]], ids=["table", "only"])
def test_spoiled_gradient_exits_1(monkeypatch, capsys, change, arguments):
    spoil(monkeypatch, change)
    assert cli.main(["tour", *arguments]) == 1
    shown = capsys.readouterr().out
    assert "✗ leaf_write" in shown
    assert f"mutagrad: {0 if arguments else 2} of {1 if arguments else 3} right." in shown


def test_unspoiled_control_exits_0(monkeypatch):
    spoil(monkeypatch, lambda loss, x: loss)
    assert cli.main(["tour"]) == 0


def test_gradient_of_another_shape_is_wrong():
    program = dataclasses.replace(PROGRAMS[0], start=[[1.0, 2.0, 3.0]], run=lambda mg, x: (x * x).sum())
    program = dataclasses.replace(program, reference=lambda np, x: (x * x).sum())
    assert tour.judge(program, mutagrad).right

    class Flattened:
        """A library that reports the gradient in another shape."""

        float64 = mutagrad.float64

        @staticmethod
        def tensor(start, **settings):
            return mutagrad.tensor(start[0], **settings)

    assert "shape" in tour.judge(program, Flattened).trouble


@each_program
def test_reference_feels_every_entry_or_overwrites_it(program):
    """A reference that ignored its argument would judge everything to be zero."""
    _, slopes = tour.finite_differences(program)
    assert np.isfinite(slopes).all()
    assert np.abs(slopes).max() > 0.01


# The recording


@each_program
def test_recording_is_of_this_source(program):
    entry = tour.recorded()["programs"][program.name]
    assert entry["fingerprint"] == program.fingerprint, "run examples/record_torch.py again"


@each_program
def test_recording_is_what_torch_does(program):
    torch = pytest.importorskip("torch", reason="compares the recording with PyTorch itself")
    record = tour.recorded()
    if torch.__version__.partition("+")[0] != record["torch"]:
        pytest.skip(f"recorded with PyTorch {record['torch']}, this is {torch.__version__}")
    outcome = runpy.run_path(str(ROOT / "examples" / "record_torch.py"))["outcome"](program)
    assert {**outcome, "fingerprint": program.fingerprint} == record["programs"][program.name]


def test_unrecorded_program_says_so():
    assert tour.torch_in_short({"outcome": "unrecorded"}, 24)[0] == "not recorded"


# The command line


def test_no_arguments_print_help(capsys):
    assert cli.main([]) == 0
    assert "tour" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"mutagrad {mutagrad.__version__}\n"


def test_list_names_and_describes(capsys):
    assert cli.main(["tour", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [program.name for program in PROGRAMS]
    assert all(line.endswith(program.summary) for line, program in zip(lines, PROGRAMS, strict=True))


def test_source_prints_the_file(capsys):
    assert cli.main(["tour", "--source", "leaf_write"]) == 0
    assert capsys.readouterr().out == (ROOT / "examples" / "mutation" / "leaf_write.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--only", "--source"])
@pytest.mark.parametrize(
    ("name", "hint"), [("leaf_wrte", "did you mean 'leaf_write'?"), ("zzz", "--list"), ("", "--list")]
)
def test_unknown_program_exits_2(capsys, option, name, hint):
    assert cli.main(["tour", option, name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"no program is called {name!r}" in shown.err and hint in shown.err


def test_unknown_command_exits_2(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["detour"])
    assert stop.value.code == 2
    assert "detour" in capsys.readouterr().err


def test_tour_main_is_the_command_alone(capsys):
    assert tour.main(["--only", "leaf_write"]) == 0
    assert tour.main(["--only", "zzz"]) == 2


def test_python_m_mutagrad():
    done = run_python("-m", "mutagrad", "tour", "--only", "leaf_write")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_leaves_early_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = run_python("-m", "mutagrad", "tour", "--list", stdout=write)
    os.close(write)
    assert done.stderr == ""


# How it looks


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_colours_only_on_a_terminal_that_wants_them(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[" in tour.Ink.of(Terminal())("✓", "right")
    assert tour.Ink.of(io.StringIO()).colour is False
    monkeypatch.setenv("NO_COLOR", "1")
    assert tour.Ink.of(Terminal())("✓", "right") == "✓"


def test_output_without_unicode():
    done = run_python("-m", "mutagrad", "tour", encoding="ascii")
    assert done.returncode == 0, done.stderr
    assert "+ leaf_write" in done.stdout and done.stdout.isascii()


def test_docstrings():
    assert doctest.testmod(tour).failed == 0
