"""`mutagrad run` and `as_torch`: programs that say `import torch` run as they do under Python itself."""
from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.torch_api import import_hook as stand_in

SOURCE = Path(mg.__file__).parents[1]


def run(folder: Path, *arguments: str, source: str = "", said: str | None = None, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs `mutagrad run` in a folder that holds program.py; `said` is what comes from standard input."""
    (folder / "program.py").write_text(textwrap.dedent(source))
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **settings}
    return subprocess.run([sys.executable, "-m", "mutagrad", "run", *arguments], cwd=folder, env=environment, capture_output=True, text=True, input=said)


def python(folder: Path, *arguments: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs Python itself in that folder."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, input=said)


# The program is run as Python runs it


def test_arguments_name_and_path_are_pythons(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "beside.py").write_text("import torch\nvalue = torch.ones(2).sum().item()\n")
    (inner / "script.py").write_text("import sys, os, beside\nprint(__name__, sys.argv, os.path.basename(sys.path[0]), __file__, beside.value, __spec__)\n")
    done = run(tmp_path, "inner/script.py", "-x", "--version", "-m", "y")
    assert done.stdout.split("\n")[0] == f"__main__ ['inner/script.py', '-x', '--version', '-m', 'y'] inner {inner / 'script.py'} 2.0 None", done.stderr


def test_a_module_is_run_by_name(tmp_path: Path) -> None:
    source = """
        import sys, torch
        print(__name__, sys.argv[1:], sys.path[0], __spec__.name, torch.tensor([1.]))
    """
    done = run(tmp_path, "-m", "program", "--flag", source=source)
    assert done.stdout == f"__main__ ['--flag'] {tmp_path} program tensor([1.])\n", done.stderr
    missing = run(tmp_path, "-m", "nowhere.at_all")
    assert missing.returncode == 1 and "No module named nowhere.at_all" in missing.stderr


@pytest.mark.parametrize("ending, status", [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('bad')", 1), ("raise KeyError(1)", 1), ("pass", 0)])
def test_exit_status(tmp_path: Path, ending: str, status: int) -> None:
    assert run(tmp_path, "program.py", source=f"import sys\n{ending}\n").returncode == status


SHOW = """
import sys
main = sys.modules["__main__"]
shown = {k: repr(v) for k, v in vars(main).items() if k not in ("shown", "main", "sys", "__loader__", "__builtins__", "__cached__", "__annotations__", "__conditional_annotations__")}
print(sys.argv, sys.path[0], shown, type(main.__loader__).__name__, main.__builtins__, vars(main) is globals())
def f():
    raise KeyError(1)
if "raise" in sys.argv:
    f()
"""


@pytest.mark.parametrize("given", [["program.py"], ["-m", "program"], ["-c", SHOW], ["-"]])
@pytest.mark.parametrize("arguments", [["-x", "-m", "--help"], ["raise"]])
def test_it_is_as_with_python_itself(given: list[str], arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SHOW)
    ours, theirs = run(tmp_path, *given, *arguments, source=SHOW, said=SHOW), python(tmp_path, *given, *arguments, said=SHOW)
    shown = [line for line in theirs.stderr.splitlines() if "runpy" not in line and line.strip() not in ("return _run_code(code, main_globals, None,", "exec(code, run_globals)")]
    assert re.sub("0x[0-9a-f]+", "", ours.stdout) == re.sub("0x[0-9a-f]+", "", theirs.stdout) and ours.returncode == theirs.returncode
    assert [line for line in ours.stderr.splitlines() if not set(line.strip()) <= {"^"}] == [line for line in shown if not set(line.strip()) <= {"^"}]


def test_errors_show_the_lines_of_a_program_that_is_in_no_file(tmp_path: Path) -> None:
    source = "import torch\nx = torch.ones(2)\ny = x + torch.ones(3)\n"
    for given, name in ((["-c", source], "<string>"), (["-"], "<stdin>")):
        done = run(tmp_path, *given, said=source)
        assert done.returncode == 1 and f"at {name}:3: y = x + torch.ones(3)" in done.stderr, done.stderr


def test_the_debugger_shows_the_programs_frames_only(tmp_path: Path) -> None:
    source = "import torch\ndef f():\n    x = torch.ones(2)\n    breakpoint()\n    return x\nf()\nprint('end')\n"
    for given, name in ((["program.py"], f"{tmp_path}/program.py"), (["-m", "program"], f"{tmp_path}/program.py"), (["-c", source], "<string>")):
        done = run(tmp_path, *given, source=source, said="where\np x\nup\nup\nc\n")
        frames = [line.removeprefix("(Pdb) ").strip("> ").partition("(")[0] for line in done.stdout.splitlines() if re.search(r"\(\d+\)", line)]
        assert set(frames) == {name}, done.stdout
        assert "tensor([1., 1.])" in done.stdout and "Oldest frame" in done.stdout and done.stdout.endswith("end\n")
    assert run(tmp_path, "program.py", source=source, PYTHONBREAKPOINT="0").stdout == "end\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_it_as_it_ends_python(name: str, tmp_path: Path) -> None:
    source = f"import atexit, os, signal\natexit.register(lambda: print('bye'))\nos.kill(os.getpid(), signal.{name})\nwhile True: pass\n"
    ours, theirs = run(tmp_path, "program.py", source=source), python(tmp_path, "program.py")
    assert ours.returncode == theirs.returncode == -getattr(signal, name) and ours.stdout == theirs.stdout
    assert [line for line in ours.stderr.splitlines() if "^" not in line] == [line for line in theirs.stderr.splitlines() if "^" not in line]


def test_no_such_file(tmp_path: Path) -> None:
    done = run(tmp_path, "absent.py")
    assert done.returncode == 2 and "can't open file" in done.stderr and "absent.py" in done.stderr
    assert run(tmp_path).returncode == 2


def test_a_traceback_begins_at_the_program(tmp_path: Path) -> None:
    source = """\
        import torch
        def f(x):
            return x + torch.ones(3)
        f(torch.ones(2))
    """
    for arguments in (["program.py"], ["-m", "program"]):
        lines = run(tmp_path, *arguments, source=source).stderr.splitlines()
        assert lines[0].startswith("Traceback")
        assert lines[1].endswith('program.py", line 4, in <module>'), lines
        assert "program.py:3: return x + torch.ones(3)" in "\n".join(lines)


def test_a_syntax_error_is_reported_by_its_line(tmp_path: Path) -> None:
    lines = run(tmp_path, "program.py", source="x = 1\ny = = 2\n").stderr.splitlines()
    assert lines[0].endswith('program.py", line 2') and lines[-1].startswith("SyntaxError")


def test_what_runs_at_exit_still_has_its_names(tmp_path: Path) -> None:
    source = "import atexit, torch\nx = torch.ones(2)\natexit.register(lambda: print(x.sum().item()))\n"
    assert run(tmp_path, "program.py", source=source).stdout == "2.0\n"


def test_classes_of_the_program_can_be_pickled(tmp_path: Path) -> None:
    source = """
        import pickle, torch
        class Net(torch.nn.Linear):
            pass
        net = pickle.loads(pickle.dumps(Net(2, 1)))
        print(type(net) is Net, net(torch.ones(2)).shape)
    """
    assert run(tmp_path, "program.py", source=source).stdout == "True torch.Size([1])\n"


def test_a_folder_with_a_main_is_run(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("import helper\n")
    (tmp_path / "package" / "helper.py").write_text("import torch; print(torch.arange(3))\n")
    assert run(tmp_path, "package").stdout == "tensor([0, 1, 2])\n"


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_child_processes_mean_the_same(tmp_path: Path, method: str) -> None:
    source = f"""
        import multiprocessing, subprocess, sys
        import torch

        def work(queue):
            queue.put((torch.__version__, torch.ones(3).sum().item()))

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print(queue.get(timeout=60))
            process.join()
            print(subprocess.run([sys.executable, "-c", "import torch.nn; print(torch.__version__)"], capture_output=True, text=True).stdout.strip())
    """
    done = run(tmp_path, "program.py", source=source)
    assert done.stdout.splitlines() == [f"('{stand_in.VERSION}', 3.0)", str(stand_in.VERSION)], done.stderr


def test_a_start_up_module_of_the_users_own_is_run_as_well(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.seen = True\n")
    source = "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'import sys, torch; print(sys.seen, torch.ones(1))'], capture_output=True, text=True))\n"
    done = run(tmp_path, "program.py", source=source, PYTHONPATH=f"{tmp_path / 'site'}{os.pathsep}{SOURCE}")
    assert "True tensor([1.])" in done.stdout, done.stdout


def test_workers_of_a_data_loader(tmp_path: Path) -> None:
    source = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            print(sum(x.sum().item() for x, in DataLoader(TensorDataset(torch.arange(10.)), batch_size=3, num_workers=2)))
    """
    assert run(tmp_path, "program.py", source=source).stdout == "45.0\n"


# Names


def names(source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with mg.as_torch():
        exec(textwrap.dedent(source), found)
    return found


def test_modules_are_the_same_objects() -> None:
    found = names("""
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.autograd.functional, torch.backends.cudnn, torch.cuda.amp, torch.utils.data, torch.utils._pytree, torch.distributions.normal
        import torch.nn.utils.rnn, torch.nn.parallel, torch.optim.lr_scheduler, torch.func, torch.sparse, torch.utils.checkpoint, torch.version
        import torch.linalg, torch.fft, torch.special, torch.jit, torch.multiprocessing, torch.distributed, torch.testing, torch.nn.init
        from torch import Tensor, optim
        from torch.autograd import Variable
        from torch.utils.tensorboard import SummaryWriter
    """)
    torch = found["torch"]
    assert found["nn"] is mg.nn is torch.nn and found["F"] is mg.nn.functional and found["Tensor"] is mg.Tensor and found["optim"] is mg.optim
    assert isinstance(torch.ones(2), mg.Tensor) and torch.float32 is mg.float32 and torch.distributions.normal.Normal is mg.distributions.Normal
    assert mg.nn.__spec__.name == "mutagrad.nn" and mg.nn.__name__ == "mutagrad.nn"


def test_versions_can_be_parsed_and_compared() -> None:
    torch = names("import torch")["torch"]
    assert torch.__version__ == torch.version.__version__ == "2.13.0+mutagrad" and mg.__version__ != torch.__version__
    assert torch.__version__ >= (1, 10) and torch.__version__ > "2.2" and not torch.__version__ < "2.13" and torch.__version__ <= "10.0"
    assert [int(n) for n in torch.__version__.split("+")[0].split(".")] == [2, 13, 0]
    assert torch.version.cuda is None


MISSING = [
    ("torch.reul(x)", AttributeError, "torch.relu"),
    ("from torch import Tensr", ImportError, "torch.Tensor"),
    ("from torch.nn import Conv2D", ImportError, "torch.nn.Conv2d"),
    ("torch.nn.Liner", AttributeError, "torch.nn.Linear"),
    ("from torch.nn.functional import crossentropy", ImportError, "torch.nn.functional.cross_entropy"),
    ("import torch.nonexistent", ModuleNotFoundError, "torch.nonexistent"),
    ("import torch.linalgg", ModuleNotFoundError, "torch.linalg"),
    ("import torch.fx.passes", ModuleNotFoundError, "compiler"),
    ("import torch.distributed.pipelining", ModuleNotFoundError, "by placing them"),
    ("from torch.distributed import pipelining", ImportError, "by placing them"),
    ("import torch.utils.cpp_extension", ModuleNotFoundError, "C++"),
    ("torch.cuda.nvtx", AttributeError, "CPU"),
    ("from torch.onnx import symbolic_opset9", ImportError, "not exported"),
]


@pytest.mark.parametrize("source, error, said", MISSING)
def test_what_is_missing_says_so_and_names_the_nearest(source: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match="is not in mutagrad, which stands in for torch") as caught:
        names(f"import torch\n{source}")
    assert said in str(caught.value)


def test_a_module_that_was_not_imported_by_its_own_name_says_so_too() -> None:
    code = "import torch\nfor m in (torch.linalg, torch.optim, torch.cuda):\n    try: m.Adamm\n    except AttributeError as e: print(e)"
    done = subprocess.run([sys.executable, "-m", "mutagrad", "run", "-c", code], capture_output=True, text=True)
    assert done.stdout.count("is not in mutagrad, which stands in for torch here") == 3, done.stdout + done.stderr
    assert "nearest is torch.optim.Adam\n" in done.stdout


def test_asking_whether_a_name_is_there() -> None:
    torch = names("import torch, torch.nn")["torch"]
    assert not hasattr(torch, "compile_everything") and not hasattr(torch.nn, "Nothing") and hasattr(torch, "vmap") is hasattr(mg, "vmap")
    assert names("try:\n    from torch.nn import Nothing\nexcept ImportError:\n    Nothing = None")["Nothing"] is None
    with pytest.raises(AttributeError, match=r"'mutagrad\.nn' has no attribute"):
        _ = mg.nn.Nothing


def test_star_imports_bring_functions() -> None:
    found = names("from torch import *")
    assert found["relu"] is mg.relu and found["Tensor"] is mg.Tensor and "rooms" not in found and "nn" not in found


def test_the_import_system_knows_the_modules() -> None:
    with mg.as_torch():
        assert importlib.util.find_spec("torch").name == "torch" and importlib.util.find_spec("torch.optim") is not None
        assert importlib.import_module("torch.optim") is mg.optim


# The block


def test_afterwards_the_modules_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    other = type(sys)("torch")
    monkeypatch.setitem(sys.modules, "torch", other)
    monkeypatch.setitem(sys.modules, "torch.nn", type(sys)("torch.nn"))
    before, finders = dict(sys.modules), list(sys.meta_path)
    with mg.as_torch() as torch:
        import torch.nn as inside
        assert inside is mg.nn and torch is sys.modules["torch"] is not other
        with mg.as_torch() as again:
            assert again is torch
        assert sys.modules["torch"] is torch
    assert {k: v for k, v in sys.modules.items() if k.startswith("torch")} == {k: v for k, v in before.items() if k.startswith("torch")}
    assert sys.meta_path == finders and sys.modules["torch"] is other
    assert torch.ones(2).sum().item() == 2 and torch.lgamma(torch.ones(1)).item() == 0


def test_it_ends_by_an_exception_too_and_decorates() -> None:
    finders = list(sys.meta_path)
    with pytest.raises(KeyError), mg.as_torch():
        raise KeyError
    assert sys.meta_path == finders

    @mg.as_torch()
    def work() -> Any:
        import torch
        return torch.ones(2)

    assert isinstance(work(), mg.Tensor) and sys.meta_path == finders
