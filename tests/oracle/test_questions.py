"""What `docs/questions` says of PyTorch is what PyTorch does: its programs run in it, and print what is shown below `$ python`."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from test_docs import ROOT, Checker, Command, blocks, commands, file_name

pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle


def programs() -> Iterator[tuple[Path, Command, str]]:
    """Every `$ python NAME.py` of the pages, with the program."""
    for page in sorted((ROOT / "docs" / "questions").glob("*.md")):
        files = {}
        for block in blocks(page):
            if block.kind == "python torch":
                files[file_name(block)] = block.text
            for command in commands(block) if block.kind == "console" else ():
                if command.name == "python":
                    yield page, command, files[command.arguments[0]]


def printed(source: str) -> str:
    """What a program prints in PyTorch, and the first line of what it raises."""
    stdout = StringIO()
    with warnings.catch_warnings(), redirect_stdout(stdout):
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    return stdout.getvalue()


@pytest.mark.parametrize("page, command, source", [pytest.param(*p, id=f"{p[0].stem}-{p[1].arguments[0]}") for p in programs()])
def test_pytorch_prints_what_is_shown(page: Path, command: Command, source: str) -> None:
    found = printed(source)
    assert Checker().check_output(command.printed, found), f"{page.name}:{command.line} prints\n{found}"


def test_every_page_asks_pytorch() -> None:
    assert {page.stem for page, _, _ in programs()} == {p.stem for p in (ROOT / "docs" / "questions").glob("*.md")} - {"README"}


def test_the_test_can_fail() -> None:
    assert not Checker().check_output("tensor([1.])\n", printed("import torch\nprint(torch.zeros(1))"))
