"""The site builds, its links lead somewhere, its reference has every public name; the notebooks do what they show."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import mutagrad as mg

ROOT = Path(__file__).parents[1]
REASON = "needs the extra 'docs'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason=REASON)
    pytest.importorskip("mkdocs_jupyter", reason=REASON)
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)], cwd=ROOT,
                           env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "JUPYTER_PLATFORM_DIRS": "1"}, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for link in re.findall(r'<(?:a|img|script|link)\b[^>]*?\b(?:href|src)="([^"]*)"', text):
            name, _, anchor = unquote(unescape(link)).partition("#")
            if re.match(r"\w+:|//", name):
                continue
            there = (page.parent / name.partition("?")[0]).resolve() if name else page
            if not there.exists() or anchor and there in anchors and anchor not in anchors[there]:
                broken.append((page.relative_to(site).as_posix(), link))
    assert len(texts) > 40 and broken == []


def test_the_site_asks_for_nothing_elsewhere_and_names_no_path_of_this_machine(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)\b[^>]*?\bsrc="(\w+:[^"]*)"|<link\b[^>]*rel="stylesheet"[^>]*href="(\w+:[^"]*)"', text)
        assert [x for pair in loaded for x in pair if x and not x.startswith("data:")] == [], page.name
        assert str(ROOT) not in text, page.name


def test_the_reference_has_every_public_name(site: Path) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    functions = [n for n in dir(mg) if not n.startswith("_") and callable(getattr(mg, n))
                 and str(getattr(getattr(mg, n), "__module__", "")).startswith("mutagrad")]
    methods = [n for n in dir(mg.Tensor) if not n.startswith("_") and callable(getattr(mg.Tensor, n))]
    assert len(functions) > 600 and len(methods) > 400
    assert [n for n in functions if f'id="mutagrad-{n}"' not in text] == []
    assert [n for n in methods if f'id="mutagrad-Tensor-{n}"' not in text] == []
    assert [n for n in ("parameters", "forward", "register_forward_hook") if f'id="mutagrad-nn-Module-{n}"' not in text] == []


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_print_what_they_show(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason=REASON)
    nbformat = pytest.importorskip("nbformat", reason=REASON)
    pytest.importorskip("ipykernel", reason=REASON)
    pytest.importorskip("matplotlib", reason=REASON)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MUTAGRAD_KERNELS", "numpy")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    shown = nbformat.read(notebook, as_version=4)
    ran = nbclient.NotebookClient(nbformat.read(notebook, as_version=4), timeout=120).execute()
    for before, after in zip(shown.cells, ran.cells):
        if before.cell_type == "code":
            assert printed(after) == printed(before), before.source
    assert any(printed(cell) for cell in shown.cells if cell.cell_type == "code")


def printed(cell: Any) -> list[str]:
    """Return what a cell prints and the text of its result."""
    return ["".join(output.get("text", "") for output in cell.outputs),
            *(output.data.get("text/plain", "") for output in cell.outputs if "data" in output)]
