"""The documents cannot rot: their programs run, their output is real, their quotations and links exist.

In every document, blocks of `python` run from top to bottom in one namespace. One with `>>>` is a doctest; any other is executed, and if a
block of `text` follows at once, that is what it must have printed. A block that begins with `# NAME.py` runs under that name, so
that errors in it say where. A block of `py` quotes the file that its first line names.

A block of `python torch` is a program for PyTorch. It runs in the namespace as well, with `torch` standing for mutagrad, and it is a
file for the `console` blocks below it: their `$ mutagrad` commands run here, their `$ python` commands, which are about PyTorch
itself, in `tests/oracle/test_questions.py`. `...` in what they print stands for anything.

A block of `python with LIBRARY` is one of `python` that runs where that library, PyTorch itself for example, is installed.
"""
from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import matrix
from mutagrad import as_torch, cli, tour
from mutagrad.base.errors import MissingExtra
from mutagrad.core.evidence import SWEEPS
from mutagrad.core.op import TABLE

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```([\w ]*)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ (\w+) (.*)\n((?:(?!\$ ).*\n)*)", re.M)
CARETS = re.compile(r"^ *\^+\n", re.M)  # Python 3.10 does not know the columns of an expression


class Block(NamedTuple):
    kind: str
    text: str
    line: int  # of the document, where the text begins
    printed: str | None  # the block of `text` that follows at once


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for fence, after in zip(found, [*found[1:], None]):
        follows = after is not None and after[1] == "text" and not text[fence.end():after.start()].strip()
        yield Block(fence[1], fence[2], text.count("\n", 0, fence.start(2)) + 1, after[2] if follows else None)


def each(kind: str, marks: Callable[[Path], list[pytest.MarkDecorator]] = lambda document: []) -> Any:
    """Parametrizes over the documents that have blocks of this kind."""
    found = [d for d in DOCUMENTS if any(b.kind.partition(" with ")[0] == kind for b in blocks(d))]
    return pytest.mark.parametrize("document", [pytest.param(d, marks=marks(d)) for d in found], ids=lambda d: d.relative_to(ROOT).as_posix())


def quick(document: Path) -> list[pytest.MarkDecorator]:
    """Documents whose programs are compiled take as long as all others together."""
    return [] if any("mg.compile" in b.text for b in blocks(document)) else [pytest.mark.smoke]


def run(block: Block, document: Path, names: dict[str, Any]) -> str:
    """Executes a block and returns what it printed."""
    named = re.match(r"# (\w+\.py)\n", block.text)
    filename, source = (named[1], block.text) if named else (str(document), "\n" * (block.line - 1) + block.text)
    if named:
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    if "mg.compile" in source and find_spec("jax") is None:
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, filename, "exec"), names)
    return printed.getvalue()


class Command(NamedTuple):
    name: str  # python or mutagrad
    arguments: list[str]
    printed: str
    line: int


def commands(block: Block) -> Iterator[Command]:
    """The commands of a `console` block, with what is shown below them."""
    for found in COMMAND.finditer(block.text):
        yield Command(found[1], found[2].split(), found[3], block.line + block.text.count("\n", 0, found.start()))


class Checker(doctest.OutputChecker):
    """Compares with `...`, and without the carets where Python has none."""

    def check_output(self, want: str, got: str, optionflags: int = 0) -> bool:
        return super().check_output(want if sys.version_info >= (3, 11) else CARETS.sub("", want), got, doctest.ELLIPSIS)


class Runner(doctest.DocTestRunner):
    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        if isinstance(exc_info[1], MissingExtra):
            raise exc_info[1]
        super().report_unexpected_exception(out, test, example, exc_info)


def check_session(block: Block, document: Path, names: dict[str, Any]) -> None:
    """Types the lines after `>>>` and compares what comes back."""
    session = doctest.DocTestParser().get_doctest(block.text, names, document.name, str(document), block.line - 1)
    failures = io.StringIO()
    Runner(Checker(), optionflags=doctest.ELLIPSIS).run(session, out=failures.write, clear_globs=False)
    names.update(session.globs)
    assert not failures.getvalue(), failures.getvalue()


def file_name(block: Block) -> str:
    return block.text.partition("\n")[0].removeprefix("# ")


def run_as_torch(block: Block, document: Path, names: dict[str, Any]) -> None:
    """Executes a program for PyTorch on mutagrad, and leaves it as a file for the commands that follow."""
    Path(file_name(block)).write_text(block.text, encoding="utf-8")
    with as_torch(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(block, document, names)


def check_commands(block: Block, document: Path) -> None:
    """Executes the `$ mutagrad` commands of a `console` block and compares what they print."""
    for command in commands(block) if block.kind == "console" else ():
        if command.name == "mutagrad":
            printed = io.StringIO()
            with as_torch(), contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cli.main(command.arguments)
            same = Checker().check_output(command.printed, printed.getvalue())
            assert same, f"{document.name}:{command.line} prints\n{printed.getvalue()}"


def check(block: Block, document: Path, names: dict[str, Any]) -> None:
    """Runs a block, and compares if it shows what is printed."""
    if block.kind.startswith("python with "):
        library = block.kind.removeprefix("python with ")
        if find_spec(library) is None:
            return
        block = block._replace(kind="python")
    if block.kind == "python torch":
        run_as_torch(block, document, names)
    elif block.kind == "python" and ">>> " in block.text:
        check_session(block, document, names)
    elif block.kind == "python":
        printed = run(block, document, names)
        assert block.printed is None or printed == block.printed, f"{document.name}:{block.line}"


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a `$ mutagrad` command changes in its process is put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """The names of a document. What it declares, and what its functions still hold of it, is gone afterwards."""
    before, found = set(TABLE), {"__name__": "document"}
    yield found
    for name in TABLE.keys() - before:
        del TABLE[name]
    found.clear()
    SWEEPS.clear()  # what is remembered for `why`


@each("python", quick)
def test_programs_run_and_print_what_is_shown(document: Path, names: dict[str, Any], own_process: None) -> None:
    for block in blocks(document):
        check(block, document, names)
    for block in blocks(document):  # afterwards: they are other processes, of whose sweeps `why` must not know
        check_commands(block, document)


@each("py")
def test_quotations_are_in_the_file_that_they_name(document: Path) -> None:
    for block in blocks(document):
        if block.kind == "py":
            name, *lines = block.text.splitlines()
            source = (ROOT / name.removeprefix("# ")).read_text(encoding="utf-8")
            assert not [line for line in lines if line.strip() not in source], f"{document.name}:{block.line}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    prose = FENCE.sub("", document.read_text(encoding="utf-8"))
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", prose) if not t.startswith(("http", "#"))]
    assert [t for t in targets if not (document.parent / t).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.relative_to(ROOT).as_posix())
def test_make_commands_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z]+)`|^make ([a-z]+)", document.read_text(encoding="utf-8"), re.M))
    assert {a or b for a, b in named} <= targets


def test_the_table_of_mutating_programs_is_from_the_tour(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert tour.main([]) == 0
    printed = capsys.readouterr().out
    shown = next(b.text for b in blocks(ROOT / "docs/mutation.md") if b.text.startswith("   program"))
    rows = [line for line in shown.splitlines() if line.strip() not in ("", "...")]
    assert len(rows) > 8
    assert [line for line in rows if line not in printed] == []


def test_the_versions_that_are_claimed_are_those_that_are_run() -> None:
    project, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "README.md"))
    assert tuple(re.findall(r"Python :: (3\.\d+)", project)) == matrix.PYTHONS
    assert f"Python {matrix.PYTHONS[0]} to {matrix.PYTHONS[-1]}" in readme
    table = [line.split("|")[1:3] for line in (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines() if re.match(r"\| 3\.\d+ \|", line)]
    assert tuple(version.strip() for version, _ in table) == matrix.PYTHONS
    oldest, newest = min(numbers(cell)[0] for _, cell in table), max(numbers(cell)[-1] for _, cell in table)
    assert f"NumPy from {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}" in readme and f'"numpy>={oldest[0]}.{oldest[1]}"' in project


def numbers(cell: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, version.split("."))) for version in re.findall(r"\d+\.\d+\.\d+", cell)]
