"""`mutagrad trace`: the program runs as it does alone, however it ends, and the page shows what it did until then."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import cli
from mutagrad.explain.trace import _take_output

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(mg.__file__).parents[1])}
COMPUTE = "import torch\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()\n"


def trace(folder: Path, source: str, *arguments: str, command: str = "trace", **settings: Any) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(source))
    given = arguments or ("program.py",)
    return subprocess.run([sys.executable, "-m", "mutagrad", command, *given], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, **settings)


def page(path: Path) -> Any:
    """What a page shows."""
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', path.read_text(encoding="utf-8"), re.S)[1])  # type: ignore[index]


def operations(path: Path) -> list[str]:
    data = page(path)
    return [data["names"][row[2]] for row in data["events"] if data["kinds"][row[1]] != "backward"]


def test_a_program_is_traced(tmp_path: Path) -> None:
    done = trace(tmp_path, COMPUTE + "print(x.grad)")
    assert done.returncode == 0 and done.stdout == "tensor([2., 2., 2.])\n" and "trace.html: 9 events" in done.stderr
    data = page(tmp_path / "trace.html")
    assert operations(tmp_path / "trace.html") == ["ones", "mul", "sum", "backward", ".grad", "repr"]
    assert data["title"] == "program.py" and data["error"] is None and data["sweeps"] == 1
    assert data["places"][0]["file"] == "program.py" and data["places"][0]["text"] == "x = torch.ones(3, requires_grad=True)"


@pytest.mark.parametrize("arguments, output, given", [
    ("program.py -o a.html -o b", "a.html", ["program.py", "-o", "b"]), ("-o a.html program.py -m x", "a.html", ["program.py", "-m", "x"]),
    ("program.py --output=a.html", "a.html", ["program.py"]), ("program.py x -o a.html", None, ["program.py", "x", "-o", "a.html"]),
    ("program.py -- -o a.html", None, ["program.py", "-o", "a.html"]), ("-m program -o a.html y", "a.html", ["program", "y"]),
    ("--max-events 10 program.py --max-events 9", None, ["program.py", "--max-events", "9"]), ("-o a.html program.py -o b.html", "b.html", ["program.py"])])
def test_which_arguments_are_the_programs(arguments: str, output: str | None, given: list[str]) -> None:
    options = cli.parser().parse_args(["trace", *arguments.split()])
    left = options.module if options.module is not None else options.script
    assert (_take_output(left) or options.output, left) == (output, given)


def test_the_program_gets_its_arguments(tmp_path: Path) -> None:
    done = trace(tmp_path, "import sys, torch; torch.ones(3); print(sys.argv[1:])", "program.py", "-o", "a.html", "-o", "b")
    assert done.stdout == "['-o', 'b']\n" and [path.name for path in tmp_path.glob("*.html")] == ["a.html"]


@pytest.mark.parametrize("ending, status, error", [
    ("raise ValueError('mine')", 1, "ValueError: mine"), ("sys.exit(3)", 3, "SystemExit: 3"), ("sys.exit()", 0, None),
    ("torch.ones(3) + torch.ones(4)", 1, "ShapeError: "), ("signal.signal(2, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT); time.sleep(5)", 130, "KeyboardInterrupt: "),
    ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)", -15, "a signal to terminate"), ("argparse.ArgumentParser().parse_args(['--no'])", 2, "SystemExit: 2"),
    ("1 +", 1, "SyntaxError: "), ("os._exit(0)", 0, None), ("os._exit(4)", 4, None)])
def test_however_it_ends(tmp_path: Path, ending: str, status: int, error: str | None) -> None:
    done = trace(tmp_path, f"import argparse, os, signal, sys, time\n{COMPUTE}{ending}\n")
    assert done.returncode == status and done.stdout == "" and done.stderr.endswith("to look at first\n"), done.stderr
    assert "explain/trace.py" not in done.stderr and (status != 1 or done.stderr.count("\n") > 1)
    data = page(tmp_path / "trace.html")
    assert data["error"] is None if error is None else data["error"].startswith(error)
    assert "backward" in operations(tmp_path / "trace.html") or "1 +" in ending


def test_the_users_error_is_shown_as_without_it(tmp_path: Path) -> None:
    source = f"{COMPUTE}print('out')\ndef f():\n    raise ValueError('mine')\nf()\n"
    done, alone = trace(tmp_path, source), trace(tmp_path, source, command="run")
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (1, "out\n")
    assert re.sub(r"(?m)^mutagrad trace: .*\n", "", done.stderr) == alone.stderr and "ValueError: mine" in alone.stderr


def test_input_and_much_output(tmp_path: Path) -> None:
    done = trace(tmp_path, "import sys, torch\nprint(sys.stdin.read() * 300_000)\ntorch.ones(2).exp()", input="1234567\n")
    assert len(done.stdout) == 8 * 300_000 + 1 and operations(tmp_path / "trace.html") == ["ones", "exp"]


def test_a_loop_that_is_ended_from_outside(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch\nx = torch.ones(3)\nprint('on', flush=True)\nwhile True:\n    x.mul_(1.)\n")
    process = subprocess.Popen([sys.executable, "-m", "mutagrad", "trace", "--max-events", "100", "program.py"], cwd=tmp_path, env=ENVIRONMENT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "on\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    data = page(tmp_path / "trace.html")
    assert process.returncode == -signal.SIGTERM and data["count"] > 100 and len(data["events"]) == 100 and data["folded"] == data["count"] - 100


def test_threads_and_handlers_that_outlive_the_script(tmp_path: Path) -> None:
    done = trace(tmp_path, """
        import atexit, threading, time, torch
        from concurrent.futures import ThreadPoolExecutor
        def later():
            time.sleep(0.3)
            torch.ones(5).log()
        threading.Thread(target=later).start()
        ThreadPoolExecutor(1).submit(torch.zeros, 3)  # never shut down
        atexit.register(lambda: torch.ones(2).exp())
    """)
    assert done.returncode == 0, done.stderr
    assert {"log", "exp", "zeros"} <= set(operations(tmp_path / "trace.html"))


def test_children_write_no_page(tmp_path: Path) -> None:
    done = trace(tmp_path, f"""import os, subprocess, sys
{COMPUTE}
child = os.fork()
if not child:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print(subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(1).item())"], capture_output=True, text=True).stdout)
""")
    assert done.stdout == "7\n1.0\n\n" and done.stderr.count("mutagrad trace:") == 1, done.stderr


def test_a_program_with_a_handler_of_its_own_keeps_it(tmp_path: Path) -> None:
    done = trace(tmp_path, f"""import os, signal, sys
{COMPUTE}
signal.signal(signal.SIGTERM, lambda *_: (print("mine"), sys.exit(4)))
os.kill(os.getpid(), signal.SIGTERM)
""")
    assert done.returncode == 4 and done.stdout == "mine\n" and page(tmp_path / "trace.html")["error"] == "SystemExit: 4"


@pytest.mark.parametrize("arguments, said", [((), "give a script"), (("-o", ".", "program.py"), "it is a folder"),
                                             (("-o", "no/where.html", "program.py"), "there is no such folder"), (("--max-events", "1", "program.py"), "at least 2")])
def test_mistakes_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["trace", *arguments]) == 2 and said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = trace(tmp_path, "", "absent.py")
    assert done.returncode == 2 and "mutagrad trace: can't open file" in done.stderr and not list(tmp_path.glob("*.html"))


def test_a_script_that_closes_its_streams(tmp_path: Path) -> None:
    trace(tmp_path, COMPUTE + "import sys\nsys.stderr.close()\nsys.stdout.close()\n")
    assert page(tmp_path / "trace.html")["count"] > 4
