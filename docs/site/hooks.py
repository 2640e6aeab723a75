"""What `make docs` adds to the documents of this folder: the README, the examples, the API reference; and their links.

The documents are written to be read in the repository, too, so they link to files beside this folder. On the site those
that have a page are links to it; the others are names.
"""
from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "src")]

import reference  # noqa: E402 (it is beside this file, which is no package)

# Documents outside of this folder, and where the site has them.
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md",
         "examples/README.md": "gallery.md", "docs/README.md": "index.md"}
FOLDERS = {"examples": "gallery.md", "examples/mutation": "gallery.md", "examples/training": "gallery.md"}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    for source, path in PAGES.items():
        if not source.startswith("docs/"):
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, path, content=_linked(text, source, path)))
    for plot in sorted((ROOT / "examples/plots").glob("*.png")):
        files.append(File.generated(config, f"plots/{plot.name}", abs_src_path=str(plot)))
    for path, text in reference.pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    file = page.file
    return markdown if file.generated_by else _linked(markdown, f"docs/{file.src_uri}", file.src_uri)


def _linked(text: str, source: str, path: str) -> str:
    """Return the text of the repository's `source` with its links as they are from `path` of the site."""
    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if re.match(r"\w+:|#", target):
            return found[0]
        name, mark, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
        page = _page_of(there)
        if page is None:
            return words
        from_here = posixpath.relpath(page, posixpath.dirname(path) or ".")
        return f"{picture}[{words}]({from_here}{mark}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # code is left alone
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def _page_of(there: str) -> str | None:
    """Return the site's path of a file of the repository, or None."""
    if there in PAGES or there in FOLDERS:
        return PAGES.get(there) or FOLDERS[there]
    if there.startswith("examples/plots/"):
        return there.removeprefix("examples/")
    if there.startswith("docs/") and os.path.isfile(ROOT / there):
        return there.removeprefix("docs/")
    return None
